package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// failoverTimeout is how long to wait for elections on a busy machine.
const failoverTimeout = 6 * testTimeout

// redirectedClient is a client of several shards that follows redirections.
type redirectedClient struct {
	t     *testing.T
	nodes []*groupNode
	conns map[string]*transcript.Conn
	at    string
}

func newRedirectedClient(t *testing.T, list []*testGroup) *redirectedClient {
	c := &redirectedClient{t: t, conns: map[string]*transcript.Conn{}}
	for _, g := range list {
		c.nodes = append(c.nodes, g.nodes...)
	}
	return c
}

func (c *redirectedClient) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// try sends a command to the last known server of the slot. unsure means that there was no reply; otherwise v is the
// reply, or nil if the command was not executed.
func (c *redirectedClient) try(args ...string) (v *transcript.Value, unsure bool) {
	conn := c.conns[c.at]
	if conn == nil {
		nc, err := transcript.Dial(c.at)
		if err != nil {
			return nil, false
		}
		conn = transcript.NewConn(nc)
		c.conns[c.at] = conn
	}
	got, err := conn.Do(testTimeout, args...)
	if err != nil || got.Kind == transcript.Closed {
		conn.Close()
		delete(c.conns, c.at)
		return nil, true
	}
	return &got, false
}

// do repeats a command until it is executed. unsure means that it may have been executed more than once.
func (c *redirectedClient) do(args ...string) (v transcript.Value, unsure bool) {
	for end := time.Now().Add(failoverTimeout); time.Now().Before(end); {
		if c.at == "" {
			c.at = c.nodes[time.Now().Nanosecond()%len(c.nodes)].clientAddrOf()
		}
		got, lost := c.try(args...)
		switch {
		case lost:
			c.at = ""
			return v, true
		case got == nil:
			c.at = ""
		case got.Kind != transcript.Error:
			return *got, false
		case strings.HasPrefix(got.Text, "MOVED "):
			c.at = got.Text[strings.LastIndexByte(got.Text, ' ')+1:]
			continue
		case !strings.HasPrefix(got.Text, "TRYAGAIN") && !strings.HasPrefix(got.Text, "CLUSTERDOWN") &&
			!strings.HasPrefix(got.Text, "UNBLOCKED") && !strings.HasPrefix(got.Text, "READONLY"):
			require.Fail(c.t, "an error", "%v: %s", args, got.Text)
		}
		time.Sleep(time.Millisecond)
	}
	require.Fail(c.t, "no answer", "%v", args)
	return v, true
}

// migrationLoad is clients that change and read keys of some slots, each with values of its own.
type migrationLoad struct {
	t       *testing.T
	list    []*testGroup
	stop    atomic.Bool
	writers sync.WaitGroup

	mu    sync.Mutex
	added map[string][]string // by list: what was acknowledged
	maybe map[string]bool     // elements that may exist or not
	sums  map[string][2]int   // by counter: the least and the greatest possible number of increments
	done  atomic.Int64
}

func startMigrationLoad(t *testing.T, list []*testGroup, slots []int) *migrationLoad {
	l := &migrationLoad{t: t, list: list, added: map[string][]string{}, maybe: map[string]bool{}, sums: map[string][2]int{}}
	for i, slot := range slots {
		tag := cluster.TagOf(slot)
		l.writers.Go(func() { l.push(fmt.Sprintf("list{%s}", tag), i) })
		l.writers.Go(func() { l.count(fmt.Sprintf("counter{%s}", tag)) })
		l.writers.Go(func() { l.pop(fmt.Sprintf("queue{%s}", tag), i) })
	}
	t.Cleanup(l.end)
	return l
}

// push appends to a list, and reads its own writes.
func (l *migrationLoad) push(key string, client int) {
	c := newRedirectedClient(l.t, l.list)
	defer c.close()
	for i := 0; !l.stop.Load(); i++ {
		value := fmt.Sprintf("%d-%d", client, i)
		_, unsure := c.do("RPUSH", key, value)
		l.mu.Lock()
		if unsure {
			l.maybe[value] = true
		} else {
			l.added[key] = append(l.added[key], value)
		}
		l.mu.Unlock()
		if unsure {
			continue
		}
		l.done.Add(1)
		if v, unsure := c.do("LINDEX", key, "-1"); !unsure && v.Text != value {
			require.Fail(l.t, "a stale read", "%s: %q, not %q", key, v.Text, value)
		}
	}
}

// count increases a counter, and checks that it never decreases.
func (l *migrationLoad) count(key string) {
	c := newRedirectedClient(l.t, l.list)
	defer c.close()
	sure, most := 0, 0
	for !l.stop.Load() {
		v, unsure := c.do("INCR", key)
		if most++; unsure {
			continue
		}
		sure++
		l.done.Add(1)
		var n int
		_, err := fmt.Sscan(v.Text, &n)
		require.NoError(l.t, err)
		if n < sure || n > most {
			require.Fail(l.t, "a counter", "%s: %d is not from %d to %d", key, n, sure, most)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sums[key] = [2]int{sure, most}
}

// pop waits for an element that it pushes into a queue with another client.
func (l *migrationLoad) pop(key string, client int) {
	var taken sync.Map
	sure := true // no reply was lost
	var popping sync.WaitGroup
	popping.Go(func() {
		c := newRedirectedClient(l.t, l.list)
		defer c.close()
		for !l.stop.Load() {
			v, unsure := c.do("BLPOP", key, "0.2")
			sure = sure && !unsure
			if unsure || len(v.Elems) != 2 {
				continue
			}
			if _, again := taken.LoadOrStore(v.Elems[1].Text, true); again {
				require.Fail(l.t, "taken twice", v.Elems[1].Text)
			}
			l.done.Add(1)
		}
	})
	c := newRedirectedClient(l.t, l.list)
	defer c.close()
	var pushed []string
	certain := true
	for i := 0; !l.stop.Load(); i++ {
		value := fmt.Sprintf("%d-%d", client, i)
		_, unsure := c.do("RPUSH", key, value)
		certain = certain && !unsure
		pushed = append(pushed, value)
	}
	popping.Wait()
	if v, _ := c.do("LRANGE", key, "0", "-1"); sure && certain {
		for _, e := range v.Elems {
			taken.Store(e.Text, true)
		}
		for _, value := range pushed {
			_, ok := taken.Load(value)
			require.True(l.t, ok, "%s: %s is lost", key, value)
		}
	}
}

func (l *migrationLoad) end() {
	l.stop.Store(true)
	l.writers.Wait()
}

// goesOn waits until n more writes are acknowledged.
func (l *migrationLoad) goesOn(n int64) {
	n += l.done.Load()
	waitUntil(l.t, "writes are acknowledged", func() bool { return l.done.Load() >= n })
}

// check ends the load, and compares the data with the acknowledged changes.
func (l *migrationLoad) check() {
	l.end()
	c := newRedirectedClient(l.t, l.list)
	defer c.close()
	for key, want := range l.added {
		v, unsure := c.do("LRANGE", key, "0", "-1")
		require.False(l.t, unsure)
		var got []string
		for _, e := range v.Elems {
			if !l.maybe[e.Text] {
				got = append(got, e.Text)
			}
		}
		require.True(l.t, slices.Equal(want, got), "%s: %d elements were acknowledged, %d are there", key, len(want), len(got))
	}
	for key, sum := range l.sums {
		v, unsure := c.do("GET", key)
		require.False(l.t, unsure)
		var n int
		_, err := fmt.Sscan(v.Text, &n)
		require.NoError(l.t, err)
		require.GreaterOrEqual(l.t, n, sum[0], key)
		require.LessOrEqual(l.t, n, sum[1], key)
	}
	l.t.Log(l.done.Load(), "acknowledged")
}

// clientAddrOf returns the node's address for clients; the node may be down.
func (n *groupNode) clientAddrOf() string {
	if at := n.at.Load(); at != nil {
		return *at
	}
	return "127.0.0.1:1"
}

func TestNothingIsLostWhileSlotsMigrate(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 1)
	load := startMigrationLoad(t, list, []int{100, 101, 250})
	clients := []*testClient{list[0].leader().client(), list[1].leader().client()}
	setMany(t, list, 300)
	for i := range 6 {
		to := clients[(i+1)%2]
		to.waitForTask(to.waitToImport("90 260 5000 9000"), "completed")
	}
	load.check()
	c := newRedirectedClient(t, list)
	defer c.close()
	for i := range 300 {
		v, _ := c.do("STRLEN", fmt.Sprintf("k:%d", i))
		require.Equal(t, "1000", v.Text)
	}
}

// waitToImport is importSlots, once the shard knows the owner of the slots.
func (c *testClient) waitToImport(slots string) (id string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		id = c.do("CLUSTER MIGRATION IMPORT " + slots)
		return len(id) == 40
	}, testTimeout, time.Millisecond, "%s", &id)
	return id
}

// waitUntil waits until a condition holds; only this goroutine evaluates it.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(failoverTimeout); !holds(); time.Sleep(200 * time.Microsecond) {
		require.True(t, time.Now().Before(end), "it does not come that %s", what)
	}
}

// leads returns the node of the group that leads, nil if there is none.
func (g *testGroup) leads() *groupNode {
	for _, n := range g.nodes {
		if n.Server != nil && n.group.members.Status().State == "leader" {
			return n
		}
	}
	return nil
}

// taskStates are the states of a task, by operation, in the order in which it has them.
var taskStates = map[string][]string{
	"import":  {"none", "connecting", "streaming-buffer", "takeover"},
	"migrate": {"none", "send-bulk-and-stream", "send-stream", "handoff-prep", "handoff"},
}

// reached reports whether a task has had a state on the node, or has ended.
func (n *groupNode) reached(id, operation, state string) bool {
	states := taskStates[operation]
	return slices.ContainsFunc(n.migrations.Tasks(), func(t cluster.MigrationTask) bool {
		return t.ID == id && t.Operation == operation &&
			(t.LastError != "" || !t.Ended.IsZero() || slices.Index(states, t.State) >= slices.Index(states, state))
	})
}

// setMany sets keys k:0, k:1 and so on to 1000 bytes each.
func setMany(t *testing.T, list []*testGroup, n int) {
	const clients = 16
	var setting sync.WaitGroup
	for i := range clients {
		setting.Go(func() {
			c := newRedirectedClient(t, list)
			defer c.close()
			for i := i; i < n; i += clients {
				c.do("SET", fmt.Sprintf("k:%d", i), strings.Repeat("x", 1000))
			}
		})
	}
	setting.Wait()
}

// Leaders are killed while slots move back and forth.
func TestNothingIsLostWhileSlotsMigrateAndLeadersFail(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes long")
	}
	list := startShards(t, 2, 3)
	load := startMigrationLoad(t, list, []int{100, 250})
	setMany(t, list, 1000)
	for _, at := range []struct {
		operation, state string // that of a leader that is killed then
	}{
		{"import", "streaming-buffer"}, {"migrate", "send-stream"}, {"migrate", "handoff-prep"}, {"migrate", "handoff"},
		{"import", "takeover"},
	} {
		var from, to *testGroup
		var source, target *groupNode
		var id string
		waitUntil(t, "a migration begins", func() bool {
			for i := range list {
				from, to = list[i], list[1-i]
				source, target = from.leads(), to.leads()
				if source == nil || target == nil || !source.shards.Now().Own.Has(100) {
					continue
				}
				id, _ = target.migrations.Import(cluster.SetOf(cluster.Range{First: 0, Last: 9000}))
				return id != ""
			}
			return false
		})
		group, killed := to, target
		if at.operation == "migrate" {
			group, killed = from, source
		}
		waitUntil(t, "the migration is at "+at.state, func() bool {
			return killed.reached(id, at.operation, at.state) || target.reached(id, "import", "takeover")
		})
		killed.kill()
		waitUntil(t, "another one leads", func() bool { return group.leads() != nil })
		killed.start()
		waitUntil(t, "the migration has ended in one way or the other", func() bool {
			return !slices.ContainsFunc(list, func(g *testGroup) bool {
				n := g.leads()
				if n == nil {
					return true
				}
				r := n.shards.Committed()
				return len(r.Imports)+len(r.Exports) > 0
			})
		})
		load.goesOn(100)
	}
	load.check()
	c := newRedirectedClient(t, list)
	defer c.close()
	for i := range 1000 {
		v, unsure := c.do("STRLEN", fmt.Sprintf("k:%d", i))
		for unsure { // its connection was to a server that was killed
			v, unsure = c.do("STRLEN", fmt.Sprintf("k:%d", i))
		}
		require.Equal(t, "1000", v.Text)
	}
}
