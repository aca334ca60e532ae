package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/session"
)

// shardPair is two shards between which slot 100 migrates with some keys, and clients of their leaders.
type shardPair struct {
	t        *testing.T
	from, to *groupNode
	a, b     *testClient
	tag      string
	digests  map[string]string // of the keys
}

func startShardPair(t *testing.T, settings ...string) *shardPair {
	list := startShards(t, 2, 1, append([]string{"enable-debug-command=yes"}, settings...)...)
	m := &shardPair{t: t, from: list[0].leader(), to: list[1].leader(), tag: cluster.TagOf(100)}
	m.a, m.b = m.from.client(), m.to.client()
	id := m.b.importSlots("16000 16383") // so that the target has keys of its own
	m.b.waitForTask(id, "completed")
	require.Equal(t, "+OK", m.b.do("SET {"+cluster.TagOf(16000)+"} own"))
	m.fill()
	return m
}

// fill makes the keys.
func (m *shardPair) fill() {
	for _, command := range keysOfAllTypes(m.tag) {
		require.NotContains(m.t, m.a.do(command), "ERR", command)
	}
	m.digests = digestsAt(m.a)
}

func digestsAt(c *testClient) map[string]string {
	digests := map[string]string{}
	for _, key := range c.list("CLUSTER GETKEYSINSLOT 100 1000") {
		digests[key] = c.do("DEBUG DIGEST-VALUE " + key)
	}
	return digests
}

// has counts the keys of slot 100 that the node has, visible or not.
func (n *groupNode) has() (keys int) {
	var g engine.Guard
	g.Lock(n.ks, engine.AllShards, n.ks.Now())
	defer g.Unlock()
	g.Each(0, func(e *engine.Entry) bool {
		if cluster.SlotOf([]byte(e.Key())) == 100 {
			keys++
		}
		return true
	})
	return keys
}

// settle waits until no migration runs and no keys are to be removed.
func (m *shardPair) settle() {
	m.t.Helper()
	waitUntil(m.t, "everything is settled", func() bool {
		for _, n := range []*groupNode{m.from, m.to} {
			if r := n.shards.Committed(); len(r.Imports)+len(r.Exports)+len(r.Trims) > 0 {
				return false
			}
		}
		return true
	})
}

// begin begins a migration, which stops until goOn is called: before the target takes the first key, or when it has
// all and the source is about to export the slot.
func (m *shardPair) begin(atTheEnd bool) (id string, goOn func()) {
	m.t.Helper()
	m.settle()
	if !atTheEnd {
		m.to.eviction.HoldValues(true) // other values must leave before new ones come, but none does
		require.Equal(m.t, "+OK", m.b.do("CONFIG SET maxmemory-policy tier maxmemory 1"))
		id = m.b.waitToImport("100 100")
		m.b.waitForTask(id, "streaming-buffer")
		require.Zero(m.t, m.to.has())
		return id, func() {
			require.Equal(m.t, "+OK", m.b.do("CONFIG SET maxmemory-policy noeviction maxmemory 0"))
			m.to.eviction.HoldValues(false)
		}
	}
	goOn = m.beforeTheExport()
	id = m.b.waitToImport("100 100")
	waitUntil(m.t, "the target has promised to keep the keys", func() bool { return m.to.migrations.Promised(id) })
	return id, goOn
}

// beforeTheExport prevents the source from recording an export until goOn is called.
func (m *shardPair) beforeTheExport() (goOn func()) {
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.from.shards.BetweenChanges(func() error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	goOn = sync.OnceFunc(func() { close(end); <-ended })
	m.t.Cleanup(goOn)
	return goOn
}

// After a cancelled migration the source still has the slot, with all keys.
func TestAMigrationIsCancelled(t *testing.T) {
	t.Parallel()
	m := startShardPair(t)
	for _, atTheEnd := range []bool{false, true} {
		for _, by := range []*testClient{m.a, m.b} {
			id, goOn := m.begin(atTheEnd)
			written := m.from.client()
			written.Append("SET", "meanwhile{"+m.tag+"}", id)
			require.NoError(t, written.Flush())
			if !atTheEnd { // otherwise it waits
				require.Equal(t, "+OK", written.read())
			}
			require.Equal(t, "1", by.do("CLUSTER MIGRATION CANCEL ID "+id))
			require.Equal(t, "0", by.do("CLUSTER MIGRATION CANCEL ID "+id))
			// The target requests the cancellation. If the source has exported the slot before it receives the
			// request, the migration completes.
			waitUntil(t, "the source will not export the slot", func() bool { return !m.from.migrations.Exporting() })
			goOn()
			by.waitForTask(id, "canceled")
			if by == m.a {
				m.b.waitForTask(id, "failed")
				require.Contains(t, m.b.do("CLUSTER MIGRATION STATUS ID "+id), "Cancelled due to user request")
			}
			if atTheEnd {
				require.Equal(t, "+OK", written.read())
			}
			require.Equal(t, id, m.a.do("GET meanwhile{"+m.tag+"}"))
			require.Equal(t, "1", m.a.do("DEL meanwhile{"+m.tag+"}"))
			require.Equal(t, m.digests, digestsAt(m.a))
			require.Equal(t, "-MOVED 100 "+m.from.clientAddr(), m.b.do("GET s{"+m.tag+"}"))
			m.settle()
			require.Zero(t, m.to.has())
			require.Equal(t, "own", m.b.do("GET {"+cluster.TagOf(16000)+"}"))
		}
	}
	m.b.waitForTask(m.b.waitToImport("100 100"), "completed")
	require.Equal(t, m.digests, digestsAt(m.b))
}

// The keys of the target are as blessed as those of the source, also after a change during the migration, and after the
// target has repeated its journal.
func TestBlessedKeysMigrate(t *testing.T) {
	t.Parallel()
	m := startShardPair(t)
	bless := func(word, name string) {
		require.Equal(t, "1", m.a.do("BLESS "+word+" "+name+"{"+m.tag+"} NO-EVICT"))
	}
	for _, name := range []string{"s", "l", "long"} {
		bless("SET", name)
	}
	id, goOn := m.begin(false)
	bless("CLEAR", "s")
	bless("CLEAR", "long")
	bless("SET", "z")
	goOn()
	m.b.waitForTask(id, "completed")
	requireBlessed := func() {
		for name, want := range map[string]string{"s": "[]", "long": "[]", "set": "[]", "l": `["NO-EVICT"]`, "z": `["NO-EVICT"]`} {
			require.Equal(t, want, m.b.do("BLESS GET "+name+"{"+m.tag+"}"), name)
		}
		require.Equal(t, m.digests, digestsAt(m.b))
	}
	requireBlessed()
	m.settle()
	m.to.kill()
	m.to.start()
	m.b = m.to.g.leader().client()
	requireBlessed()
}

// FLUSHALL removes the shard's own keys during a migration: the migration fails, or it was too late to stop it.
func TestFlushallDuringAMigration(t *testing.T) {
	t.Parallel()
	m := startShardPair(t)
	own := "{" + cluster.TagOf(16000) + "}"
	for _, command := range []string{"FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC"} {
		for _, atTheEnd := range []bool{false, true} { // at the source
			id, goOn := m.begin(atTheEnd)
			require.Equal(t, "+OK", m.a.do(command))
			require.Zero(t, m.from.has())
			goOn()
			require.Equal(t, "+OK", m.a.do("SET after{"+m.tag+"} x"))
			m.b.waitForTask(id, "failed")
			m.a.waitForTask(id, "failed")
			m.settle()
			require.Equal(t, "1", m.a.do("DBSIZE"))
			require.Zero(t, m.to.has())
			require.Equal(t, "own", m.b.do("GET "+own))
			require.Equal(t, "1", m.a.do("DEL after{"+m.tag+"}"))
			m.fill()
		}
		id, goOn := m.begin(false)
		m.to.migrations.Tick() // as twice a second: it does not affect a migration in progress
		require.Equal(t, "+OK", m.b.do(command))
		goOn()
		m.b.waitForTask(id, "failed")
		m.a.waitForTask(id, "failed")
		m.settle()
		require.Equal(t, m.digests, digestsAt(m.a))
		require.Equal(t, "0", m.b.do("DBSIZE"))
		require.Zero(t, m.to.has())
		require.Equal(t, "+OK", m.b.do("SET "+own+" own"))
	}
	id, goOn := m.begin(true)
	require.Equal(t, "-"+string(session.ErrTryAgain), m.b.do("FLUSHALL"))
	goOn()
	m.b.waitForTask(id, "completed")
	require.Equal(t, m.digests, digestsAt(m.b))
	require.Equal(t, "own", m.b.do("GET "+own))
	require.Equal(t, "+OK", m.b.do("FLUSHALL"))
	require.Zero(t, m.to.has())
	m.settle()
	require.Equal(t, "0", m.a.do("DBSIZE"))
}

// leaveMemory stores everything and removes all values from memory.
func (n *groupNode) leaveMemory() {
	t := n.g.t
	waitUntil(t, "values may leave", func() bool {
		n.MakeRoom(n.ks.Now())
		return n.sessions.Tiered.Load()
	})
	require.NoError(t, n.storage.Save())
	n.ks.Evict(n.ks.Now(), func() bool { return true })
}

// unloaded returns how many values have left memory.
func (n *groupNode) unloaded() int64 {
	var g engine.Guard
	g.Lock(n.ks, engine.AllShards, n.ks.Now())
	defer g.Unlock()
	return g.Stats().Unloaded
}

// Values that are not in memory migrate as others do, and values may leave memory on either side meanwhile.
func TestValuesThatAreAwayMigrate(t *testing.T) {
	t.Parallel()
	m := startShardPair(t, "maxmemory=1gb", "maxmemory-policy=tier")
	m.from.leaveMemory()
	require.NotZero(t, m.from.unloaded())
	m.settle()
	goOn := m.beforeTheExport()
	id := m.b.waitToImport("100 100")
	waitUntil(t, "the target has all keys", func() bool { return m.to.has() == len(m.digests) })
	m.to.leaveMemory() // before they are visible
	require.NotZero(t, m.to.unloaded())
	goOn()
	m.b.waitForTask(id, "completed")
	require.Equal(t, m.digests, digestsAt(m.b))
	m.settle()

	m.to.leaveMemory()
	m.a.waitForTask(m.a.waitToImport("100 100"), "completed")
	require.Equal(t, m.digests, digestsAt(m.a))
	m.settle()
	require.Zero(t, m.to.has())
}

// Clients that wait for keys of the slot are redirected to its new owner, and have taken no elements.
func TestBlockedClientsAreRedirectedWhenTheirSlotLeaves(t *testing.T) {
	t.Parallel()
	m := startShardPair(t)
	for _, protocol := range []string{"2", "3"} {
		var waiting []*testClient
		for _, command := range []string{"BLPOP empty{t} 0", "BLMOVE empty{t} other{t} LEFT RIGHT 0", "BZPOPMIN empty{t} 0",
			"XREAD BLOCK 0 STREAMS empty{t} $", "XREADGROUP GROUP g c BLOCK 0 STREAMS x{t} >"} {
			c := m.from.client()
			c.do("HELLO " + protocol)
			c.Append(strings.Fields(strings.ReplaceAll(command, "{t}", "{"+m.tag+"}"))...)
			require.NoError(t, c.Flush())
			waiting = append(waiting, c)
		}
		elsewhere := m.from.client() // waits for a key that stays
		elsewhere.Append("BLPOP", "{"+cluster.TagOf(101)+"}", "0")
		require.NoError(t, elsewhere.Flush())
		m.a.waitFor("INFO clients", fmt.Sprintf("blocked_clients:%d\r\n", len(waiting)+1))
		m.b.waitForTask(m.b.waitToImport("100 100"), "completed")
		for _, c := range waiting {
			require.Equal(t, "-MOVED 100 "+m.to.clientAddr(), c.read())
		}
		require.Equal(t, "1", m.b.do("RPUSH empty{"+m.tag+"} a"))
		require.Equal(t, "1", m.b.do("DEL empty{"+m.tag+"}"))
		require.Equal(t, "1", m.a.do("RPUSH {"+cluster.TagOf(101)+"} a"))
		require.Contains(t, elsewhere.read(), `"a"`)
		m.settle()
		m.a.waitForTask(m.a.waitToImport("100 100"), "completed")
		require.Equal(t, m.digests, digestsAt(m.a))
	}
}

// No command of a transaction whose slot leaves is executed.
func TestTransactionsWhoseSlotLeaves(t *testing.T) {
	t.Parallel()
	m := startShardPair(t)
	key := "n{" + m.tag + "}"
	moved := "-MOVED 100 " + m.to.clientAddr()
	require.Equal(t, "+OK", m.a.do("SET "+key+" 1"))
	script := func(commands ...string) *testClient {
		c := m.from.client()
		for _, command := range commands {
			require.NotContains(t, c.do(command), "-", command)
		}
		return c
	}
	whole := script("MULTI", "INCR "+key)              // queued completely before
	half := script("MULTI", "INCR "+key)               // queued partly before
	watching := script("WATCH "+key, "MULTI", "PING")  // no queued command has a key
	back := script("WATCH "+key, "MULTI", "INCR "+key) // executed after the slot has come back
	late := script("WATCH " + key)                     // begins after the slot has left
	id, goOn := m.begin(true)
	held := script("MULTI") // executed while the slot is about to leave
	held.Append("INCR", key)
	held.Append("EXEC")
	require.NoError(t, held.Flush())
	goOn()
	m.b.waitForTask(id, "completed")
	require.Equal(t, moved, held.read())
	require.Contains(t, held.read(), "-EXECABORT")
	require.Equal(t, moved, whole.do("EXEC"))
	require.Equal(t, "-ERR EXEC without MULTI", whole.do("EXEC"))
	require.Equal(t, moved, half.do("INCR "+key))
	require.Contains(t, half.do("EXEC"), "-EXECABORT")
	require.Equal(t, "+OK", late.do("MULTI"))
	require.Equal(t, moved, late.do("GET "+key))
	require.Contains(t, late.do("EXEC"), "-EXECABORT")
	require.Equal(t, moved, m.a.do("WATCH "+key))
	m.settle() // the keys are removed here
	require.Equal(t, "nil[]", watching.do("EXEC"))

	require.Equal(t, "1", m.b.do("GET "+key))
	m.a.waitForTask(m.a.waitToImport("100 100"), "completed")
	require.Equal(t, "nil[]", back.do("EXEC"))
	require.Equal(t, "1", m.a.do("GET "+key))
}

// Subscribers of shard channels of a slot are told that their subscription has ended when the slot leaves, in any
// way.
func TestSubscribersOfShardChannelsAreToldWhenTheirSlotLeaves(t *testing.T) {
	t.Parallel()
	m := startShardPair(t)
	gone, stays := "{"+m.tag+"}", "{"+cluster.TagOf(101)+"}"
	leaves := []func(){
		func() { m.b.waitForTask(m.b.waitToImport("100 100"), "completed") },
		func() { require.Equal(t, "+OK", m.a.do("CLUSTER DELSLOTS 100")) },
	}
	for i, leave := range leaves {
		for _, protocol := range []string{"2", "3"} {
			kind := map[string]string{"2": "", "3": "push"}[protocol]
			c := m.from.client()
			c.do("HELLO " + protocol)
			require.Equal(t, kind+fmt.Sprintf(`["ssubscribe" %q 1]`, gone), c.do("SSUBSCRIBE "+gone))
			require.Equal(t, kind+fmt.Sprintf(`["ssubscribe" %q 2]`, stays), c.do("SSUBSCRIBE "+stays))
			leave()
			require.Equal(t, kind+fmt.Sprintf(`["sunsubscribe" %q 1]`, gone), c.read())
			require.Equal(t, "1", m.a.do("SPUBLISH "+stays+" x"))
			require.Equal(t, kind+fmt.Sprintf(`["smessage" %q "x"]`, stays), c.read())
			require.NotContains(t, m.a.do("PUBSUB SHARDCHANNELS"), gone)
			require.Equal(t, kind+fmt.Sprintf(`["sunsubscribe" %q 0]`, stays), c.do("SUNSUBSCRIBE "+stays))
			if i == 0 {
				require.Equal(t, "0", m.b.do("SPUBLISH "+gone+" x"))
				m.settle()
				m.a.waitForTask(m.a.waitToImport("100 100"), "completed")
				m.settle()
			} else {
				m.a.waitUntil("CLUSTER ADDSLOTS 100", "+OK")
			}
		}
	}
}
