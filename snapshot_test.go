package atomredis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// fill makes keys of every type and encoding in two databases, with deadlines, and streams whose groups have pending
// entries that are not in the stream any more.
func fill(t testing.TB, db *atomredis.DB) {
	t.Helper()
	run := func(db *atomredis.DB, commands string) {
		for line := range strings.Lines(commands) {
			var args []any
			for _, word := range strings.Fields(line) {
				args = append(args, word)
			}
			if len(args) > 0 {
				do(t, db, args...)
			}
		}
	}
	run(db, `
		SET string value
		SET number 12345
		SET soon x PX 10000000
		RPUSH list a b 3 c
		SADD ints 3 1 2
		SADD set a b c 4
		ZADD zset 1.5 a -inf b +inf c 0.1 d 1e300 e -0 f
		HSET hash field value other 2
		PEXPIRE hash 20000000
		XADD stream 5-1 a 1 b 2
		XADD stream 5-2 a 3 b 4
		XADD stream 6-0 other field
		XADD stream 7-0 a x
		XADD stream 8-0 a y
		XGROUP CREATE stream readers 0
		XGROUP CREATE stream fresh $
		XGROUP CREATECONSUMER stream readers idle
		XREADGROUP GROUP readers alice COUNT 2 STREAMS stream >
		XREADGROUP GROUP readers bob COUNT 2 STREAMS stream >
		XREADGROUP GROUP readers bob COUNT 1 STREAMS stream 5
		XCLAIM stream readers bob 0 5-2 RETRYCOUNT 7 TIME 1700000000000
		XTRIM stream MINID 5-2
		XDEL stream 6-0
		XADD trimmed 1-1 a 1
		XADD trimmed 1-2 a 1
		XGROUP CREATE trimmed g 0 ENTRIESREAD 2
		XREADGROUP GROUP g c STREAMS trimmed >
		XTRIM trimmed MAXLEN 0
		XGROUP CREATE empty g $ MKSTREAM
		XADD lost 9-9 a b
		XDEL lost 9-9
		XGROUP CREATE lost g 3-3`)
	do(t, db, "SET", "binary \x00\r\n", []byte{0, 255, '\r', '\n'})
	do(t, db, "SET", "", strings.Repeat("long", 10000))
	other, err := db.Database(3)
	require.NoError(t, err)
	run(other, "SET string of_3\nSADD set x")
	for i := range 300 {
		do(t, other, "RPUSH", "list", strings.Repeat("e", i), i)
		do(t, other, "SADD", "set", fmt.Sprint("member", i))
		do(t, other, "SADD", "ints", i*i)
		do(t, other, "ZADD", "zset", float64(i)/7, fmt.Sprint("member", i))
		do(t, other, "HSET", "hash", fmt.Sprint("field", i), strings.Repeat("v", 10*i))
		do(t, other, "XADD", "stream", fmt.Sprint(i+1, "-0"), "i", i, "text", strings.Repeat("t", i))
	}
	run(other, "XGROUP CREATE stream g 0\nXREADGROUP GROUP g c COUNT 200 STREAMS stream >")
	for i := 2; i < 300; i += 3 {
		do(t, other, "XDEL", "stream", fmt.Sprint(i, "-0"))
	}
}

// state describes all keys of a database.
func state(t testing.TB, client *redis.Client) map[string]string {
	t.Helper()
	ctx := t.Context()
	out := map[string]string{}
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		typ, err := client.Type(ctx, key).Result()
		require.NoError(t, err)
		var v any
		switch typ {
		case "string":
			v, err = client.Get(ctx, key).Result()
		case "list":
			v, err = client.LRange(ctx, key, 0, -1).Result()
		case "set":
			var members []string
			members, err = client.SMembers(ctx, key).Result()
			slices.Sort(members)
			v = members
		case "zset":
			v, err = client.ZRangeWithScores(ctx, key, 0, -1).Result()
		case "hash":
			v, err = client.HGetAll(ctx, key).Result() // maps are printed in order
		case "stream":
			v = streamState(t, client, key)
		}
		require.NoError(t, err)
		at, err := client.PExpireTime(ctx, key).Result()
		require.NoError(t, err)
		out[key] = fmt.Sprintf("%s %v %q", typ, at, fmt.Sprint(v))
	}
	return out
}

func streamState(t testing.TB, client *redis.Client, key string) string {
	t.Helper()
	ctx := t.Context()
	entries, err := client.XRange(ctx, key, "-", "+").Result()
	require.NoError(t, err)
	info, err := client.XInfoStreamFull(ctx, key, -1).Result()
	require.NoError(t, err)
	text := fmt.Sprint(entries, info.Length, info.LastGeneratedID, info.MaxDeletedEntryID, info.EntriesAdded, "\n")
	for _, g := range info.Groups {
		text += fmt.Sprintln(g.Name, g.LastDeliveredID, g.EntriesRead, g.Lag, g.PelCount)
		for _, p := range g.Pending {
			text += fmt.Sprintln(p.ID, p.Consumer, p.DeliveryTime.UnixMilli(), p.DeliveryCount)
		}
		for _, c := range g.Consumers {
			text += fmt.Sprintln(c.Name, c.PelCount)
		}
	}
	return text
}

// states describes the databases that fill has filled, and counts all keys.
func states(t testing.TB, dial func(db int) *redis.Client) []map[string]string {
	t.Helper()
	var out []map[string]string
	for n := range 16 {
		client := dial(n)
		out = append(out, state(t, client))
		require.NoError(t, client.Close())
	}
	return out
}

func statesOf(t testing.TB, db *atomredis.DB) []map[string]string {
	t.Helper()
	return states(t, func(n int) *redis.Client { return dial(db, &redis.Options{DB: n}) })
}

func snapshot(t testing.TB, db *atomredis.DB) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, db.Snapshot(&b))
	return b.Bytes()
}

func TestRestoreMakesWhatSnapshotWrote(t *testing.T) {
	db := open(t, atomredis.Options{})
	fill(t, db)
	image := snapshot(t, db)
	want := statesOf(t, db)
	require.Len(t, want[0], 14)
	require.Len(t, want[3], 7)
	for name, o := range map[string]atomredis.Options{"in memory": {},
		"durable": {Dir: t.TempDir(), Config: map[string]string{"appendfsync": "always"}}} {
		copied, err := atomredis.Open(o)
		require.NoError(t, err)
		require.NoError(t, copied.Restore(bytes.NewReader(image)), name)
		if o.Dir != "" {
			require.NoError(t, copied.Close())
			copied, err = atomredis.Open(o)
			require.NoError(t, err)
			snapshot(t, copied) // waits until all keys are in memory
		}
		require.Equal(t, want, statesOf(t, copied), name)
		require.Equal(t, len(image), len(snapshot(t, copied)), name)
		require.ErrorIs(t, copied.Restore(bytes.NewReader(image)), atomredis.ErrNotEmpty)
		require.NoError(t, copied.Close())
	}
	empty := open(t, atomredis.Options{})
	require.Empty(t, snapshot(t, empty))
	require.NoError(t, empty.Restore(strings.NewReader("")))
}

func TestRedisLoadsASnapshotAsAppendOnlyFile(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	db := open(t, atomredis.Options{})
	fill(t, db)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "appendonly.aof"), snapshot(t, db), 0o600))
	port := freeport.Port(t)
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "redis-server", "--port", port, "--dir", dir, "--appendonly", "yes",
		"--save", "")
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	connect := func(n int) *redis.Client { return redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, DB: n}) }
	client := connect(0)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for client.Ping(ctx).Err() != nil {
		require.NoError(t, ctx.Err(), "redis-server does not start")
	}
	require.Equal(t, statesOf(t, db), states(t, connect))
}

func TestRestoreThatFailsLeavesNothing(t *testing.T) {
	db := open(t, atomredis.Options{})
	set := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
	for commands, want := range map[string]string{
		set + "*3\r\n$3\r\nSET\r\n$1":              "unexpected EOF",
		set + "*1\r\n!3\r\n":                       "command 2: Protocol error",
		set + "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n":     `command 2: "GET" is no command that changes anything`,
		set + "*1\r\n$5\r\nMULTI\r\n":              `command 2: "MULTI" is no command that changes anything`,
		set + "*1\r\n$6\r\nNOSUCH\r\n":             `command 2: "NOSUCH" is no command that changes anything`,
		set + "*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n":    "command 2: incr: ERR value is not an integer",
		set + "*2\r\n$6\r\nSELECT\r\n$2\r\n99\r\n": "command 2: select: ERR DB index is out of range",
		// and the second does not wait
		set + "*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n0\r\n*1\r\n$3\r\nxyz\r\n": `command 3: "xyz"`,
	} {
		require.ErrorContains(t, db.Restore(strings.NewReader(commands)), want, commands)
		require.Equal(t, "0", text(t, do(t, db, "DBSIZE")), commands)
	}
	failing := errors.New("the reader fails")
	require.ErrorIs(t, db.Restore(&failingReader{strings.NewReader(set), failing}), failing)
	require.Equal(t, "0", text(t, do(t, db, "DBSIZE")))
	require.NoError(t, db.Restore(&failingReader{strings.NewReader(set), nil}),
		"from a reader that gives a byte at a time")
	require.Equal(t, "v", text(t, do(t, db, "GET", "k")))
	require.ErrorIs(t, db.Snapshot(failingWriter{failing}), failing)
}

// failingReader returns one byte at a time, and then err or io.EOF.
type failingReader struct {
	r   *strings.Reader
	err error
}

func (f *failingReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b[:1])
	if err != nil && f.err != nil {
		err = f.err
	}
	return n, err
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// Two counters are always changed together, so they are equal in every snapshot.
func TestSnapshotIsOfOneMoment(t *testing.T) {
	db := open(t, atomredis.Options{Config: map[string]string{"shards": "16"}})
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		for ctx.Err() == nil {
			err := db.Tx(ctx, func(tx *atomredis.Tx) error {
				tx.Do("INCR", "a")
				tx.Do("INCR", "b")
				return nil
			})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		image := snapshot(t, db)
		copied := open(t, atomredis.Options{})
		require.NoError(t, copied.Restore(bytes.NewReader(image)))
		values, err := do(t, copied, "MGET", "a", "b").Texts()
		require.NoError(t, err)
		require.Equal(t, values[0], values[1])
	}
	cancel()
	wg.Wait()
}

func BenchmarkSnapshot(b *testing.B) {
	db := open(b, atomredis.Options{})
	const keys = 100_000
	for i := range keys {
		do(b, db, "SET", fmt.Sprint("key:", i), "a value of about forty bytes, more or less")
	}
	for b.Loop() {
		var n counter
		if err := db.Snapshot(&n); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}

type counter int

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}
