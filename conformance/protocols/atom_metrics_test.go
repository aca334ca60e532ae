package protocols_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atom"
)

// metricsClient sends the commands of an atom element with metrics (the forms of RedisTimeSeries 1.4).
type metricsClient struct {
	t      *testing.T
	client *redis.Client
}

// aggregation is a rule of a metric: an aggregator and a bucket in minutes, kept for a number of milliseconds.
type aggregation struct {
	how             string
	minutes, retain int64
}

// create makes a series, or alters it after any error of TS.CREATE, which means that it exists.
func (m metricsClient) create(key string, retain int64, labels ...any) {
	options := append([]any{key, "RETENTION", retain, "DUPLICATE_POLICY", "last", "LABELS"}, labels...)
	if m.client.Do(m.t.Context(), append([]any{"TS.CREATE"}, options...)...).Err() != nil {
		require.NoError(m.t, m.client.Do(m.t.Context(), append([]any{"TS.ALTER"}, options...)...).Err())
	}
}

// metric makes a series and those that its rules fill. It requests the existing rules before it adds one.
func (m metricsClient) metric(key string, labels []any, rules []aggregation) {
	m.create(key, 3600_000, append(labels, "agg", "none", "agg_type", "none")...)
	there := map[string]bool{}
	for _, rule := range m.info(key)["rules"].([]any) {
		there[rule.([]any)[0].(string)] = true
	}
	for _, rule := range rules {
		to := fmt.Sprintf("%s:%s:%dm", key, rule.how, rule.minutes)
		m.create(to, rule.retain, append(labels, "agg", fmt.Sprintf("%s:%dm", rule.how, rule.minutes), "agg_type", rule.how)...)
		if there[to] {
			require.Equal(m.t, "OK", m.client.Do(m.t.Context(), "TS.DELETERULE", key, to).Val())
		}
		require.Equal(m.t, "OK",
			m.client.Do(m.t.Context(), "TS.CREATERULE", key, to, "AGGREGATION", rule.how, rule.minutes*60_000).Val())
	}
}

// info is TS.INFO as a client of that version reads it: a flat list.
func (m metricsClient) info(key string) map[string]any {
	list, err := m.client.Do(m.t.Context(), "TS.INFO", key).Slice()
	require.NoError(m.t, err)
	fields := map[string]any{}
	for i := 0; i < len(list); i += 2 {
		fields[list[i].(string)] = list[i+1]
	}
	for _, needed := range strings.Fields(
		"rules sourceKey chunkCount memoryUsage totalSamples labels retentionTime lastTimestamp firstTimestamp") {
		require.Contains(m.t, fields, needed)
	}
	return fields
}

func (m metricsClient) samples(command ...any) []string {
	list, err := m.client.Do(m.t.Context(), command...).Slice()
	require.NoError(m.t, err)
	samples := []string{}
	for _, sample := range list {
		pair := sample.([]any)
		samples = append(samples, fmt.Sprint(pair[0], "=", pair[1]))
	}
	return samples
}

// An element with metrics uses two Unix sockets: the nucleus, with streams and commands, and the metrics. They may
// belong to two servers, or to one under both names.
func TestAnElementOfAtomWithMetrics(t *testing.T) {
	for _, servers := range []int{1, 2} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			sockets := make([]*redis.Client, 2)
			path := ""
			for i := range sockets {
				if i < servers {
					path = filepath.Join(t.TempDir(), "redis.sock")
					db, err := atomredis.Open(atomredis.Options{UnixSocket: path, Config: testConfig()})
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, db.Close()) })
				}
				// With version 2 of the protocol, like the clients of atom.
				sockets[i] = redis.NewClient(&redis.Options{Network: "unix", Addr: path, Protocol: 2, DisableIdentity: true})
				t.Cleanup(func() { sockets[i].Close() })
			}
			elementWithMetrics(t, sockets[0], metricsClient{t, sockets[1]})
			if servers == 2 {
				require.NoError(t, sockets[0].Set(t.Context(), "nucleus", "kept", 0).Err())
				require.NoError(t, sockets[1].FlushAll(t.Context()).Err())
				require.Equal(t, "kept", sockets[0].Get(t.Context(), "nucleus").Val())
			}
		})
	}
}

func elementWithMetrics(t *testing.T, nucleus *redis.Client, metrics metricsClient) {
	camera, err := atom.New(t.Context(), nucleus, "camera", atom.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, camera.Close(ctxBackground)) }()

	const written, length = "camera:atom_core:entry_write", "queue:fifo:frames:size"
	labels := []any{"element", "camera", "type", "atom_core", "subtype0", "entry_write", "container", "c1",
		"device", "d1", "language", "Go", "version", "1", "level", "INFO"}
	rules := []aggregation{{"SUM", 10, 3 * 86400_000}, {"avg", 1, 86400_000}, {"std.p", 1, 86400_000}, {"LAST", 60, 7 * 86400_000}}
	for range 2 { // The second time is that after a restart of the element: everything exists.
		metrics.metric(written, labels, rules)
		metrics.metric(length, []any{"level", "INFO", "desc", "size", "type", "queue", "subtype0", "fifo", "subtype1", "frames"},
			[]aggregation{{"MAX", 1, 86400_000}})
	}

	// The measurements of a call go in one pipeline.
	pipe := metrics.client.Pipeline()
	var replies []*redis.Cmd
	for i := range 180 {
		_, err := camera.EntryWrite(t.Context(), "frames", map[string]any{"n": i}, atom.WriteOptions{})
		require.NoError(t, err)
		at := int64(600_000 + i*1000)
		replies = append(replies, pipe.Do(t.Context(), "TS.MADD", written, at, i%3),
			pipe.Do(t.Context(), "TS.MADD", length, at, fmt.Sprint(i%7)))
	}
	_, err = pipe.Exec(t.Context())
	require.NoError(t, err)
	for i, reply := range replies {
		require.Equal(t, []any{int64(600_000 + i/2*1000)}, reply.Val())
	}
	entries, err := camera.EntryReadN(t.Context(), "camera", "frames", 200, atom.Decoding{})
	require.NoError(t, err)
	require.Len(t, entries, 180)

	info := metrics.info(written)
	require.Equal(t, []any{int64(180), int64(600_000), int64(779_000), int64(3600_000), nil},
		[]any{info["totalSamples"], info["firstTimestamp"], info["lastTimestamp"], info["retentionTime"], info["sourceKey"]})
	require.Len(t, info["rules"], len(rules))
	require.Equal(t, []any{written + ":SUM:10m", int64(600_000), "SUM"}, info["rules"].([]any)[0].([]any)[:3])
	require.Equal(t, written, metrics.info(written + ":avg:1m")["sourceKey"])
	require.Len(t, metrics.samples("TS.RANGE", written, 0, -1), 180)
	require.Equal(t, []string{"600000=1", "660000=1"}, metrics.samples("TS.RANGE", written+":avg:1m", 0, -1))
	require.Equal(t, []string{"600000=6", "660000=6"}, metrics.samples("TS.RANGE", length+":MAX:1m", 0, -1))
	last, err := metrics.client.Do(t.Context(), "TS.GET", written).Slice()
	require.NoError(t, err)
	require.Equal(t, []any{int64(779_000), "2"}, last)

	// Metrics that do not exist: with enforce_exists the reply contains an error, otherwise they are created.
	refused, err := metrics.client.Do(t.Context(), "TS.MADD", "camera:new", 1, 1).Slice()
	require.NoError(t, err)
	require.EqualError(t, refused[0].(error), "ERR TSDB: the key is not a TSDB key")
	require.Equal(t, int64(1), metrics.client.Do(t.Context(), "TS.ADD", "camera:new", 1, 1, "RETENTION", 60_000,
		"LABELS", "element", "camera").Val())

	// The parameter log, and the requests of dashboards.
	require.NoError(t, metrics.client.XAdd(t.Context(), &redis.XAddArgs{Stream: "camera:parameters", MaxLen: 100, Approx: true,
		Values: []any{"2026-11-26 key", "value"}}).Err())
	found, err := metrics.client.Do(t.Context(), "TS.QUERYINDEX", "element=camera", "agg_type=avg").Slice()
	require.NoError(t, err)
	require.Equal(t, []any{written + ":avg:1m"}, found)
	ranges, err := metrics.client.Do(t.Context(), "TS.MRANGE", 0, "+", "WITHLABELS", "FILTER", "type=queue", "agg=none").Slice()
	require.NoError(t, err)
	require.Len(t, ranges, 1)
	require.Equal(t, length, ranges[0].([]any)[0])
}
