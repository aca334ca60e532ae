package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// importSlots makes the shard of c import slots, and returns the name of the task.
func (c *testClient) importSlots(slots string) string {
	c.t.Helper()
	id := c.do("CLUSTER MIGRATION IMPORT " + slots)
	require.Len(c.t, id, 40, id)
	return id
}

// waitForTask waits until a task has a state.
func (c *testClient) waitForTask(id, state string) {
	c.t.Helper()
	var last string
	for end := time.Now().Add(testTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if last = c.do("CLUSTER MIGRATION STATUS ID " + id); strings.Contains(last, `"state" "`+state+`"`) {
			return
		}
	}
	require.Fail(c.t, "the task does not get there", "%s: %s", state, last)
}

// keysOfAllTypes returns commands that make keys of all types in one slot.
func keysOfAllTypes(tag string) []string {
	list := []string{
		"SET s{t} value", "SET long{t} " + strings.Repeat("x", 200_000), "SET soon{t} x PX 100000000", "RPUSH l{t} a b c",
		"SADD set{t} a b c 1", "SADD ints{t} 1 2 3", "ZADD z{t} 1 a 2 b", "HSET h{t} f 1 g 2", "HPEXPIRE h{t} 100000000 FIELDS 1 f",
		"XADD x{t} 1-1 a b", "XGROUP CREATE x{t} g 0", "XREADGROUP GROUP g c COUNT 1 STREAMS x{t} >", "PFADD p{t} a b c",
		"GEOADD geo{t} 13 38 a", "SETBIT bits{t} 100 1", "JSON.SET j{t} $ {\"a\":[1,2]}", "BF.ADD bf{t} a", "CF.ADD cf{t} a",
		"CMS.INITBYDIM cms{t} 10 5", "TOPK.RESERVE topk{t} 5", "TDIGEST.CREATE td{t}", "TS.ADD ts{t} 1000 5",
		"VADD v{t} VALUES 3 1 2 3 a", "ARSET ar{t} 5 x",
	}
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "{t}", "{"+tag+"}")
	}
	return list
}

func TestSlotsMigrateWithTheirKeys(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 1, "cluster-databases=2", "enable-debug-command=yes")
	from, to := list[0].leader(), list[1].leader()
	a, b := from.client(), to.client()
	tag := cluster.TagOf(100)
	for _, command := range keysOfAllTypes(tag) {
		require.NotContains(t, a.do(command), "ERR", command)
	}
	require.Equal(t, "+OK", a.do("SELECT 1"))
	require.Equal(t, "+OK", a.do("SET other{"+tag+"} x"))
	require.Equal(t, "+OK", a.do("SELECT 0"))
	for i := range 2000 {
		require.Equal(t, "+OK", a.do(fmt.Sprintf("SET key:%d %d", i, i)))
	}
	z := a.do("ZADD big{" + tag + "} " + manyScores(5000))
	require.Equal(t, "5000", z)
	had := map[string]string{}
	ttl := a.do("PEXPIRETIME soon{" + tag + "}")
	require.Equal(t, "22", a.do("CLUSTER COUNTKEYSINSLOT 100"))
	for _, key := range a.list("CLUSTER GETKEYSINSLOT 100 100") {
		had[key] = a.do("DEBUG DIGEST-VALUE " + key)
	}
	total := a.do("DBSIZE")

	id := b.importSlots("100 100 300 5000")
	b.waitForTask(id, "completed")
	a.waitForTask(id, "completed")
	for key, digest := range had {
		require.Equal(t, digest, b.do("DEBUG DIGEST-VALUE "+key), key)
		require.Equal(t, "-MOVED 100 "+to.clientAddr(), a.do("TYPE "+key))
	}
	require.Equal(t, ttl, b.do("PEXPIRETIME soon{"+tag+"}"))
	require.Equal(t, "+OK", b.do("SELECT 1"))
	require.Equal(t, "x", b.do("GET other{"+tag+"}"))
	require.Equal(t, "+OK", b.do("SELECT 0"))

	// Keys that are still to be removed are not visible.
	sum := func() int {
		var n, m int
		_, err := fmt.Sscan(a.do("DBSIZE")+" "+b.do("DBSIZE"), &n, &m)
		require.NoError(t, err)
		return n + m
	}
	require.Equal(t, total, fmt.Sprint(sum()))
	require.Eventually(t, func() bool { return len(from.shards.Record().Trims) == 0 }, testTimeout, time.Millisecond)
	require.Equal(t, total, fmt.Sprint(sum()))
	require.Eventually(t, func() bool { return len(to.shards.Record().Imports) == 0 }, testTimeout, time.Millisecond)

	// And back, with a part of them.
	require.Equal(t, "-ERR slots belong to different source nodes", a.do("CLUSTER MIGRATION IMPORT 100 400"))
	id = a.importSlots("100 100 300 400")
	a.waitForTask(id, "completed")
	for key, digest := range had {
		require.Equal(t, digest, a.do("DEBUG DIGEST-VALUE "+key), key)
		require.Equal(t, "-MOVED 100 "+from.clientAddr(), b.do("TYPE "+key))
	}
	require.Equal(t, total, fmt.Sprint(sum()))
}

func manyScores(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d member:%d ", i, i)
	}
	return b.String()
}

// list returns the strings of an array.
func (c *testClient) list(command string) (list []string) {
	c.t.Helper()
	v, err := c.Do(testTimeout, strings.Fields(command)...)
	require.NoError(c.t, err)
	require.Equal(c.t, transcript.Array, v.Kind)
	for _, e := range v.Elems {
		list = append(list, e.Text)
	}
	return list
}

// A source that has just been started, and has not all keys in memory yet, exports all of them.
func TestSlotsMigrateWithKeysThatAreStillBeingLoaded(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 1, "key-load-delay=2000")
	from, to := list[0].leader(), list[1].leader()
	a, b := from.client(), to.client()
	const keys = 1000
	for i := range keys {
		require.Equal(t, "+OK", a.do(fmt.Sprintf("SET key:%d %d", i, i)))
	}
	require.Equal(t, "+OK", a.do("SAVE"))
	from.kill()
	from.start()
	list[0].leader()
	a = from.client()
	b.waitForTask(b.importSlots("0 16383"), "completed")
	require.Equal(t, fmt.Sprint(keys), b.do("DBSIZE"))
	require.Eventually(t, func() bool { return len(from.shards.Record().Trims) == 0 }, testTimeout, time.Millisecond)
	require.Equal(t, "0", a.do("DBSIZE"))
	var g engine.Guard
	g.Lock(from.ks, engine.AllShards, from.ks.Now())
	defer g.Unlock()
	require.Zero(t, g.Len(0))
}

func TestSlotsStayWhileItIsNotKnownWhetherThereAreKeys(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 1, "cluster-enabled=yes", "key-load-delay=2000000000")
	n := g.leader()
	c := n.client()
	require.Equal(t, "+OK", c.do("SET a 1"))
	require.Equal(t, "-ERR DB must be empty to perform CLUSTER FLUSHSLOTS.", c.do("CLUSTER FLUSHSLOTS"))
	require.Equal(t, "+OK", c.do("SAVE"))
	n.kill()
	n.start()
	g.leader()
	require.Equal(t, "-ERR the keys are still being loaded", n.client().do("CLUSTER FLUSHSLOTS"))
}

// Keys that belong to another shard are not counted.
func TestKeysOfOthersAreNotCounted(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 1)
	from := list[0].leader()
	a := from.client()
	for i := range 100 {
		require.Equal(t, "+OK", a.do(fmt.Sprintf("SET key:%d %d", i, i)))
	}
	slot := cluster.SlotOf([]byte("key:1"))
	ofSlot := len(a.list(fmt.Sprintf("CLUSTER GETKEYSINSLOT %d 100", slot)))
	require.Positive(t, ofSlot)
	require.NoError(t, from.shards.Change(func(_ *engine.Guard, r *cluster.Record) error {
		slots := cluster.SetOf(cluster.Range{First: slot, Last: slot})
		r.Disclaim(&slots)
		// They are not removed as long as they seem to come from a shard that never answers.
		r.Imports = append(r.Imports, cluster.Import{Task: "t", From: "nobody", Slots: slots.Ranges()})
		return nil
	}))
	require.Equal(t, fmt.Sprint(100-ofSlot), a.do("DBSIZE"))
	require.Equal(t, "0", a.do(fmt.Sprint("CLUSTER COUNTKEYSINSLOT ", slot)))
	require.Empty(t, a.list(fmt.Sprintf("CLUSTER GETKEYSINSLOT %d 100", slot)))
	require.Contains(t, a.do(fmt.Sprintf("CLUSTER SLOT-STATS SLOTSRANGE %d %[1]d", slot)), `"key-count" 0`)
	require.NoError(t, from.shards.Change(func(_ *engine.Guard, r *cluster.Record) error { return r.EndImport("t") }))
	require.Eventually(t, func() bool { return len(from.shards.Record().Trims) == 0 }, testTimeout, time.Millisecond)
	require.Equal(t, fmt.Sprint(100-ofSlot), a.do("DBSIZE"))
}

// What is due in a queue is found by the shard that the queue comes to.
func TestQueuesThatMigrateHaveATimer(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 1)
	a, b := list[0].leader().client(), list[1].leader().client()
	queue := "q{" + cluster.TagOf(100) + "}"
	require.Equal(t, "+OK", a.do("PRESSURE.CREATE "+queue))
	require.Equal(t, "1", a.do("PRESSURE.PUT "+queue+" later DELAY 3000"))
	id := b.importSlots("100 100")
	b.waitForTask(id, "completed")
	require.Eventually(t, func() bool { return b.do("LLEN __pressure__:"+queue) == "1" }, testTimeout, 10*time.Millisecond)
}
