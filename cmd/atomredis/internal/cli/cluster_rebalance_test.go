package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// portOf returns the port of an address.
func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// startCluster starts shards of one server each, which know each other, and returns the servers and their
// addresses, for each other and for clients.
func startCluster(t *testing.T, slots ...string) (dbs []*atomredis.DB, raft, client []string) {
	for i, own := range slots {
		raft, client = append(raft, freeport.Addr(t)), append(client, freeport.Addr(t))
		db, err := atomredis.Open(atomredis.Options{Addr: client[i], Dir: t.TempDir(), Config: map[string]string{
			"raft-addr": raft[i], "raft-peers": raft[i], "appendonly": "yes", "cluster-enabled": "yes", "cluster-slots": own,
			"replica-announce-port": portOf(client[i])}})
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		dbs = append(dbs, db)
	}
	for i := range slots[1:] {
		require.EventuallyWithT(t, func(c *assert.CollectT) { // a server that was just elected does not lead yet
			_, err := dbs[0].Do(t.Context(), "CLUSTER", "MEET", "127.0.0.1", portOf(client[i+1]), portOf(raft[i+1]))
			require.NoError(c, err)
		}, time.Minute, 50*time.Millisecond)
	}
	for i := range slots {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			out, code := ask(append([]string{"cluster", "status"}, at(client[i])...)...)
			require.Zero(c, code, out)
			require.Equal(c, len(slots), strings.Count(out, "\tleader\tyes\t"), out)
		}, time.Minute, 50*time.Millisecond)
	}
	return dbs, raft, client
}

func TestShardsAreBalanced(t *testing.T) {
	dbs, _, client := startCluster(t, "0-8191", "8192-16383", "none")
	rebalance := func(options ...string) (string, int) {
		return ask(append(append([]string{"cluster", "rebalance"}, options...), at(client[1])...)...)
	}
	for n := range 300 {
		key := fmt.Sprint("key", n)
		for _, db := range dbs[:2] { // one of them has the slot
			if _, err := db.Do(t.Context(), "SET", key, n); err == nil {
				break
			}
		}
	}
	keys := func() (sum int64, each []int64) {
		for _, db := range dbs {
			reply, err := db.Do(t.Context(), "DBSIZE")
			require.NoError(t, err)
			n, err := reply.Int()
			require.NoError(t, err)
			sum, each = sum+n, append(each, n)
		}
		return sum, each
	}
	slots := func(want ...string) { // soon, as the other shards learn of moved slots
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			out, code := ask(append([]string{"cluster", "status"}, at(client[0])...)...)
			require.Zero(c, code)
			for i, w := range want {
				require.Regexp(c, regexp.QuoteMeta(client[i])+"\t.*\t"+w+"\n", out)
			}
		}, time.Minute, 50*time.Millisecond)
	}

	plan := fmt.Sprintf("to move from %[1]s to %[3]s: slots 5461-8191 (2731)\nto move from %[2]s to %[3]s: slots 13654-16383 (2730)\n",
		client[0], client[1], client[2])
	out, code := rebalance("--dry-run")
	require.Zero(t, code, out)
	require.Equal(t, plan, out)
	slots("0-8191", "8192-16383", "none")

	out, code = rebalance("--batch", "2000", "--max-latency", "0")
	require.Zero(t, code, out)
	require.Equal(t, 4, strings.Count(out, "moved from "), out)
	require.Contains(t, out, fmt.Sprintf("moved from %s to %s: slots 5461-7460 (2000)\n", client[0], client[2]))
	slots("0-5460", "8192-13653", "5461-8191 13654-16383")
	sum, each := keys()
	require.EqualValues(t, 300, sum, each)
	require.NotZero(t, each[2])
	out, code = rebalance()
	require.Zero(t, code, out)
	require.Equal(t, "Each shard has its part.\n", out)

	out, code = rebalance("--by", "keys", "--threshold", "0", "--batch", "20000", "--max-latency", "1m")
	require.Zero(t, code, out)
	sum, each = keys()
	require.EqualValues(t, 300, sum, each)
	for _, n := range each {
		require.InDelta(t, 100, n, 4, each) // some slots have several keys
	}

	for _, db := range dbs {
		_, err := db.Do(t.Context(), "CONFIG", "SET", "cluster-slot-stats-enabled", "mem", "cluster-rebalance", "auto")
		require.NoError(t, err)
	}
	out, code = rebalance("--by", "memory", "--threshold", "20", "--dry-run")
	require.Zero(t, code, out)
	require.Equal(t, "Each shard has its part.\n", out, "keys are of the same size")

	out, code = rebalance("--by", "keys", "--threshold", "0")
	require.NotZero(t, code, out)
	require.Contains(t, out, " has cluster-rebalance auto by slots, and would move slots back: use --by slots, set cluster-rebalance no, or "+
		"give --force")
	out, code = rebalance("--by", "keys", "--threshold", "20", "--force")
	require.Zero(t, code, out)

	out, code = rebalance("--without", client[2], "--batch", "20000", "--max-latency", "0", "--json")
	require.Zero(t, code, out)
	require.Contains(t, out, `{"from":"`+client[2]+`","to":"`)
	setting, err := dbs[2].Do(t.Context(), "CONFIG", "GET", "cluster-rebalance")
	require.NoError(t, err)
	require.Contains(t, setting.String(), "no", "it does not take slots back")
	sum, each = keys()
	require.Zero(t, each[2])
	require.EqualValues(t, 300, sum, each)

	for options, want := range map[string]string{
		"--by load":             "--by takes slots, keys, memory or time",
		"--batch 0":             "--batch takes a number above 0",
		"--by time":             "does not count cpu-usec: CONFIG SET cluster-slot-stats-enabled yes",
		"--without 127.0.0.1:1": "no shard has a server with the address 127.0.0.1:1",
	} {
		out, code = rebalance(strings.Fields(options)...)
		require.NotZero(t, code, options)
		require.Contains(t, out, want)
	}
}

func TestRanges(t *testing.T) {
	require.Equal(t, "0-2 4 7-8", rangesText([]int{0, 1, 2, 4, 7, 8}))
	require.Empty(t, rangesText(nil))
}
