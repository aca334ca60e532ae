package protocols_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// mixedVariable determines how many messages pass through a queue that clients of all kinds share.
const mixedVariable = "ATOMREDIS_PRESSURE_MIXED"

// onShards runs a test on the server that the environment names, or otherwise on one with one shard and on one with
// sixteen shards and two event loops.
func onShards(t *testing.T, test func(t *testing.T, addr string)) {
	if os.Getenv(addrVariable) != "" {
		test(t, server(t))
		return
	}
	for _, shards := range shardCounts() {
		t.Run("shards "+shards, func(t *testing.T) {
			db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: shardConfig(shards)})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			test(t, db.Addr())
		})
	}
}

func shardCounts() []string {
	if shards := os.Getenv("ATOMREDIS_TEST_SHARDS"); shards != "" {
		return []string{shards}
	}
	return []string{"1", "16"}
}

func shardConfig(shards string) map[string]string {
	config := map[string]string{"shards": shards}
	if shards != "1" {
		config["io-threads"] = "2"
	}
	return config
}

// got is a message as its consumer saw it.
type got struct {
	producer string
	number   int   // the producer's
	place    int64 // in the order in which messages were taken, or slightly more; 0 if it was not counted
	exact    bool
}

func parseGot(line string) (g got, err error) {
	_, err = fmt.Sscanf(line, "got %d %t %s %d", &g.place, &g.exact, &g.producer, &g.number)
	return g, err
}

// limits are the first and the last place that a message can have.
type limits struct{ first, last int64 }

// checkOrder fails if messages of a producer were not taken in the order in which it put them. Each place belongs to
// one message, so upper limits alone say much: if n messages have places up to n, all others come after them.
// checkOrder returns the number of places that are known exactly.
func checkOrder(all []got) (exact int, err error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b got) int { return cmp.Compare(a.place, b.place) })
	places := map[string]map[int]limits{} // by producer and number
	for begin := 0; begin < len(all); {
		end := begin // of the shortest run of messages whose places are those from begin+1 to end
		for end == begin || end < len(all) && all[end-1].place > int64(end) {
			if all[end].place <= int64(end) {
				return 0, fmt.Errorf("more than %d messages have places up to that", end)
			}
			end++
		}
		for _, g := range all[begin:end] {
			at := limits{int64(begin) + 1, g.place}
			if g.exact {
				at.first = g.place
			}
			if at.first == at.last {
				exact++
			}
			if places[g.producer] == nil {
				places[g.producer] = map[int]limits{}
			}
			if _, twice := places[g.producer][g.number]; twice {
				return 0, fmt.Errorf("message %d of %s was taken twice", g.number, g.producer)
			}
			places[g.producer][g.number] = at
		}
		begin = end
	}
	for producer, messages := range places {
		last := int64(0)
		for _, n := range slices.Sorted(maps.Keys(messages)) {
			if last = max(last+1, messages[n].first); last > messages[n].last {
				return exact, fmt.Errorf("message %d of %s was taken before one that was put earlier", n, producer)
			}
		}
	}
	return exact, nil
}

func TestCheckOrderNoticesWhatIsOutOfOrder(t *testing.T) {
	for _, test := range []struct {
		name  string
		all   []got
		exact int
		error string
	}{
		{name: "in order", all: []got{{"a", 0, 1, true}, {"b", 0, 2, false}, {"a", 1, 3, false}}, exact: 3},
		{name: "in any order among producers", all: []got{{"a", 7, 2, true}, {"b", 0, 1, true}, {"b", 1, 3, true}}, exact: 3},
		{name: "limits that allow the right order", all: []got{{"a", 0, 2, false}, {"a", 1, 2, false}, {"a", 2, 3, false}},
			exact: 1},
		{name: "swapped", all: []got{{"a", 1, 1, true}, {"a", 0, 2, true}}, error: "earlier"},
		{name: "swapped, by limits alone", all: []got{{"a", 1, 1, false}, {"a", 0, 2, false}, {"a", 2, 3, false}},
			error: "earlier"},
		{name: "swapped behind a run", all: []got{{"b", 0, 2, false}, {"b", 1, 2, false}, {"a", 1, 3, false},
			{"a", 0, 4, true}}, error: "earlier"},
		{name: "the same place", all: []got{{"a", 0, 1, true}, {"a", 1, 1, true}}, error: "more than 1 messages"},
		{name: "doubled", all: []got{{"a", 0, 1, true}, {"a", 0, 2, true}}, error: "twice"},
	} {
		exact, err := checkOrder(test.all)
		if test.error != "" {
			require.ErrorContains(t, err, test.error, test.name)
			continue
		}
		require.NoError(t, err, test.name)
		require.Equal(t, test.exact, exact, test.name)
	}
}

// startUser starts a process that is a client of some kind, or a goroutine for the server's own commands. wait waits
// until the client has ended and returns the lines that it wrote.
func startUser(t *testing.T, addr, name, kind, role, id string, count int) (wait func() []string) {
	lines := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }) }
	if kind != nativeKind {
		wait := process(t, addr, name, role, id, count, kindVariable+"="+kind)
		return func() []string { return lines(wait()) }
	}
	u, closeUser, err := newUser(t.Context(), kind, name, id, nil, addr)
	require.NoError(t, err)
	var out strings.Builder
	done := make(chan error, 1)
	go func() { done <- work(t.Context(), u, role, id, count, &out) }()
	return func() []string {
		require.NoError(t, <-done, "%s %s", role, id)
		require.NoError(t, closeUser())
		return lines(out.String())
	}
}

// Two clients of each role use the server's commands, and two more, each a separate process, go through the steps of
// the protocol: one like the C client, the other with package pressure.
func TestPressureMixedClientsShareAQueue(t *testing.T) {
	messages := setting(t, mixedVariable, 2000)
	onShards(t, func(t *testing.T, addr string) {
		mixedClients(t, addr, 10, messages)
		mixedClients(t, addr, 0, messages/5)
	})
}

// mixedClients passes a number of messages through a queue with a bound, or without one if bound is 0.
func mixedClients(t *testing.T, addr string, bound, messages int) {
	kinds := []string{nativeKind, cKind, nativeKind, packageKind}
	each := messages / len(kinds)
	ctx := t.Context()
	r := client(t, addr)
	q := &queue{r: r, name: "mixed", id: "parent"}
	require.NoError(t, q.create(ctx, bound))
	endWatch := watchRoles(t, r, q)
	var consumers, producers []func() []string
	for i, kind := range kinds {
		consumers = append(consumers, startUser(t, addr, q.name, kind, "consumer", fmt.Sprint("consumer", i), 0))
		producers = append(producers, startUser(t, addr, q.name, kind, "producer", fmt.Sprint("producer", i), each))
	}
	for _, wait := range producers {
		require.Len(t, wait(), each)
	}
	require.NoError(t, r.Do(ctx, "PRESSURE.CLOSE", q.name).Err())

	size := func(g got) int { return len(fmt.Sprint(g.producer, " ", g.number)) }
	var counted, all []got
	bytes, countedBytes := 0, 0
	seen := map[string]bool{}
	for _, wait := range consumers {
		before := map[string]int{} // the number of the message before, plus one
		for _, line := range wait() {
			g, err := parseGot(line)
			require.NoError(t, err, line)
			message := fmt.Sprint(g.producer, " ", g.number)
			require.False(t, seen[message], "%s comes twice", message)
			seen[message] = true
			require.GreaterOrEqual(t, g.number, before[g.producer], "messages of %s stay in order for each consumer", g.producer)
			before[g.producer] = g.number + 1
			all = append(all, g)
			bytes += size(g)
			if g.place > 0 {
				counted = append(counted, g)
				countedBytes += size(g)
			}
		}
	}
	total := each * len(kinds)
	require.Len(t, all, total, "none is lost")
	// The C client does not count messages that it gets from a closed queue.
	if bound > 0 {
		require.LessOrEqual(t, total-len(counted), bound+2, "messages that were left when the queue was closed")
	}
	exact, err := checkOrder(counted)
	require.NoError(t, err)
	for key, want := range map[string]int{"produced_messages": total, "produced_bytes": bytes,
		"consumed_messages": len(counted),
		"consumed_bytes":    countedBytes} {
		require.Equal(t, strconv.Itoa(want), r.Get(ctx, q.key(":stats:"+key)).Val(), key)
	}
	roles := endWatch()
	require.Equal(t, total, roles.producer.heldMoves+roles.producer.instantMoves)
	require.Equal(t, total, roles.consumer.heldMoves+roles.consumer.instantMoves)
	t.Logf("bound %d: of %d messages %d have an exact place; puts %d with the role taken and %d at once, gets %d and %d",
		bound, total, exact,
		roles.producer.heldMoves, roles.producer.instantMoves, roles.consumer.heldMoves, roles.consumer.instantMoves)

	require.NoError(t, r.Do(ctx, "PRESSURE.DELETE", q.name).Err())
	require.Empty(t, r.Keys(ctx, "*").Val(), "Delete leaves no key behind")
}
