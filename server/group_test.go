package server

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/persist/disk"
)

// testGroup is three servers or more that share a journal, each with a directory and an address of its own.
type testGroup struct {
	t        *testing.T
	settings []string
	segment  int64 // length of a segment of the journal in bytes; 0 is the default
	nodes    []*groupNode
}

type groupNode struct {
	*Server  // nil while it is down
	addr     string
	dir      string
	fs       disk.FS // nil is the system's files
	g        *testGroup
	settings []string               // beside those of the group
	log      *slog.Logger           // nil drops all
	refused  chan struct{}          // see refusals
	at       atomic.Pointer[string] // its address for clients, or the last one
}

func startGroup(t *testing.T, n int, settings ...string) *testGroup {
	g := &testGroup{t: t, settings: settings}
	g.begin(n)
	return g
}

// begin starts n nodes.
func (g *testGroup) begin(n int) {
	t := g.t
	for range n {
		g.nodes = append(g.nodes, &groupNode{addr: freeport.Addr(t), dir: t.TempDir(), g: g})
	}
	for _, n := range g.nodes {
		n.start()
	}
	t.Cleanup(func() {
		for _, n := range g.nodes {
			if n.Server != nil {
				n.Close()
			}
		}
	})
}

func (g *testGroup) peers() string {
	var addrs []string
	for _, n := range g.nodes {
		addrs = append(addrs, n.addr)
	}
	return strings.Join(addrs, ",")
}

// raftTimeout is the time in ms without a leader after which a group elects another one: long enough that a leader that is only
// busy, because other tests run, keeps the lead.
const raftTimeout = "2000"

func (n *groupNode) start() {
	t := n.g.t
	t.Helper()
	srv, _ := n.prepare()
	require.NoError(t, srv.Start())
	n.Server = srv
	at := srv.Addrs()[0].String()
	n.at.Store(&at)
}

// prepare returns the node's server, which is not started, and its listener.
func (n *groupNode) prepare() (*Server, net.Listener) {
	t := n.g.t
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conf := config.NewConfig()
	for _, pair := range append([]string{"port=0", "dir=" + n.dir, "save=", "appendonly=yes", "raft-addr=" + n.addr,
		"raft-peers=" + n.addr + "," + n.g.peers(), "raft-timeout=" + raftTimeout}, append(n.g.settings[:len(n.g.settings):len(n.g.settings)], n.settings...)...) {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false), pair)
	}
	log := slog.New(slog.DiscardHandler)
	if n.log != nil {
		log = n.log
	}
	if os.Getenv("GROUP_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", n.addr)
	}
	srv, err := New(conf, log, Options{Listeners: []net.Listener{l}, FS: n.fs, Group: GroupNetwork{SegmentSize: n.g.segment}})
	require.NoError(t, err)
	return srv, l
}

// kill ends the server as a crash would, but the file system keeps all data.
func (n *groupNode) kill() {
	n.Abandon()
	n.Server = nil
}

// client connects to the node.
func (n *groupNode) client() *testClient {
	nc, err := transcript.Dial(n.Addrs()[0].String())
	require.NoError(n.g.t, err)
	return newTestClient(n.g.t, nc)
}

// leader waits until one of the nodes leads.
func (g *testGroup) leader() *groupNode {
	g.t.Helper()
	var found *groupNode
	require.Eventually(g.t, func() bool {
		for _, n := range g.nodes {
			if n.Server != nil && n.group.members.Status().State == "leader" {
				found = n
				return true
			}
		}
		return false
	}, testTimeout, time.Millisecond, "nobody leads")
	return found
}

// settled waits until all nodes count for majorities, and returns the leader.
func (g *testGroup) settled() *groupNode {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		st := g.leader().group.members.Status()
		ok := len(st.Members) == len(g.nodes)
		for _, m := range st.Members {
			ok = ok && m.Role.Votes() && m.Online
		}
		return ok
	}, testTimeout, time.Millisecond, "the group is not whole")
	return g.leader()
}

// handOver makes another node the leader, and waits until both know.
func (g *testGroup) handOver(from, to *groupNode) {
	g.t.Helper()
	leads := func(n *groupNode) bool { return n.group.members.Status().State == "leader" }
	require.Eventually(g.t, func() bool {
		if leads(from) {
			_ = from.group.node().Transfer(to.addr) // again, if no node has taken it
		}
		return leads(to) && !leads(from)
	}, testTimeout, time.Millisecond, "the lead is not handed over")
}

// followers are the nodes that are up and do not lead.
func (g *testGroup) followers() (list []*groupNode) {
	leader := g.leader()
	for _, n := range g.nodes {
		if n.Server != nil && n != leader {
			list = append(list, n)
		}
	}
	return list
}

func TestAGroupHasWhatItsLeaderAcknowledged(t *testing.T) {
	t.Parallel()
	for _, reads := range []string{"lease", "quorum"} {
		t.Run(reads, func(t *testing.T) { testAcknowledged(t, startGroup(t, 3, "replicated-reads="+reads)) })
	}
}

func testAcknowledged(t *testing.T, g *testGroup) {
	first := g.settled()
	c := first.client()
	for i := range 100 {
		require.Equal(t, "+OK", c.do(fmt.Sprintf("SET key:%d %d", i, i)))
	}
	require.Equal(t, "3", c.do("RPUSH list a b c"))
	for _, f := range g.followers() {
		fc := f.client()
		fc.waitFor("LRANGE list 0 -1", "c")
		require.Equal(t, "99", fc.do("GET key:99"))
		require.Contains(t, fc.do("SET key x"), "READONLY")
		require.Contains(t, fc.do("INFO replication"), "role:slave")
	}
	first.kill()
	second := g.leader()
	require.NotSame(t, first, second)
	c = second.client()
	require.Equal(t, "42", c.do("GET key:42"))
	require.Equal(t, "+OK", c.do("SET after failover"))
	first.start()
	first.client().waitFor("GET after", "failover")
}

// Nothing is undone when the lead is handed over, and the old leader disconnects its clients.
func TestTheLeadOfAGroupIsHandedOver(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "raft-timeout=3000") // for twice as long the first one refuses clients: early must come in time
	first := g.settled()
	c := first.client()
	require.Equal(t, "+OK", c.do("SET key value"))
	idle, heard, waits := first.client(), first.client(), first.client()
	require.Contains(t, heard.do("SUBSCRIBE news"), "subscribe")
	waits.send("XREAD", "BLOCK", "0", "STREAMS", "none", "$")
	c.waitFor("INFO clients", "blocked_clients:1")
	second := g.followers()[1]
	asks := first.client()
	require.Equal(t, "+OK", asks.do("RAFT.TRANSFER "+second.addr), "the reply comes before the end")
	early := first.client() // believes that the first one still leads
	require.Contains(t, early.do("GET key"), "-MASTERDOWN ")
	for _, c := range []*testClient{c, idle, heard, waits, asks} {
		require.Equal(t, "closed", c.read())
	}
	require.Eventually(t, func() bool { return second.group.members.Status().State == "leader" }, testTimeout, time.Millisecond)
	c = second.client()
	require.Equal(t, "value", c.do("GET key"))
	require.Equal(t, "+OK", c.do("SET key other"))
	require.Equal(t, "closed", early.read())
	fc := first.client()
	fc.waitFor("GET key", "other")
	require.Contains(t, fc.do("SET key x"), "READONLY")
	require.Contains(t, fc.do("REPLICAOF NO ONE"), "not allowed")
	require.Error(t, first.group.node().Transfer(""), "it does not lead")
}

// A server that joins late, or was away for long, gets a copy.
func TestAServerOfAGroupThatIsFarBehindGetsACopy(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	leader := g.settled()
	c := leader.client()
	away := g.followers()[0]
	away.kill()
	require.NoError(t, os.RemoveAll(away.dir)) // with all its data
	for i := range 1000 {
		require.Equal(t, fmt.Sprint(i+1), c.do(fmt.Sprintf("RPUSH list %d", i)))
	}
	require.Equal(t, "+OK", c.do("SAVE"))
	away.start()
	away.client().waitFor("LLEN list", "1000")
	require.Equal(t, "1001", c.do("RPUSH list last"))
	away.client().waitFor("LINDEX list -1", "last")
	away.kill()
	away.start()
	away.client().waitFor("LINDEX list -1", "last")
}

// A group begins with the earlier data of one of its servers, and gets more servers.
func TestAGroupBeginsWithTheDataOfAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alone := startTestServer(t, Options{}, "dir", dir, "appendonly", "yes")
	c := alone.connect()
	for i := range 500 {
		require.Equal(t, "+OK", c.do(fmt.Sprintf("SET key:%d %d", i, i)))
	}
	require.NoError(t, alone.Close())
	g := &testGroup{t: t}
	for i := range 3 {
		g.nodes = append(g.nodes, &groupNode{addr: freeport.Addr(t), dir: t.TempDir(), g: g})
		if i == 1 {
			g.nodes[i].dir = dir
		}
	}
	for _, n := range g.nodes {
		n.start()
	}
	t.Cleanup(func() {
		for _, n := range g.nodes {
			n.Close()
		}
	})
	leader := g.settled()
	require.Equal(t, "499", leader.client().do("GET key:499"))
	require.Equal(t, "+OK", leader.client().do("SET more x"))
	for _, f := range g.followers() {
		f.client().waitFor("GET more", "x")
		require.Equal(t, "7", f.client().do("GET key:7"))
		f.client().waitFor("DBSIZE", "501")
	}
}

// The journal that a server had before it belonged to a group is executed once. Its records are in the store then, and
// must not be executed again on the group's data.
func TestTheEarlierJournalOfAServerIsExecutedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alone := startTestServer(t, Options{}, "dir", dir, "appendonly", "yes", "save", "")
	c := alone.connect()
	require.Equal(t, "+OK", c.do("SET key alone"))
	require.Equal(t, "1", c.do("INCR n"))
	require.NoError(t, alone.Abandon()) // its journal has all of it
	g := &testGroup{t: t}
	n := &groupNode{addr: freeport.Addr(t), dir: dir, g: g}
	g.nodes = append(g.nodes, n)
	n.start()
	t.Cleanup(func() { n.Close() })
	c = g.settled().client()
	require.Equal(t, "+OK", c.do("SET key group"))
	require.Equal(t, "2", c.do("INCR n"))
	require.Eventually(t, func() bool { return c.do("SAVE") == "+OK" }, testTimeout, 10*time.Millisecond)
	for range 2 {
		n.kill()
		n.start()
		c = g.settled().client()
		require.Equal(t, "group", c.do("GET key"))
		require.Equal(t, "2", c.do("GET n"))
	}
}

// Replicas of a leader have to learn that the next leader has the history, and continue it at any server.
func TestReplicasOfALeaderAreDisconnectedWhenItLosesTheLead(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	first, second := g.settled(), g.followers()[0]
	replica := first.newRawFollower()
	require.NotEmpty(t, replica.follow(""))
	for i, leader := range []*groupNode{second, first} {
		was := first.followed.Present()
		g.handOver(g.leader(), leader)
		replica = replica.goOn(first, was)
		require.Equal(t, "+OK", leader.client().do(fmt.Sprint("SET key ", i)))
		require.Equal(t, "SELECT 0", replica.next())
		require.Equal(t, fmt.Sprint("SET key ", i), replica.next())
	}
	require.EqualValues(t, 1, first.followed.Copies.Load())
}

// What is acknowledged is on a majority; WAIT and WAITAOF wait for further servers, and for replicas outside the group.
func TestWaitCountsTheServersOfAGroup(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	leader := g.settled()
	c := leader.client()
	require.Equal(t, "+OK", c.do("SET a 1"))
	require.Regexp(t, "^[12]$", c.do("WAIT 0 0"))
	require.Regexp(t, "^[12]$", c.do("WAIT 1 0"))
	require.Equal(t, "2", c.do("WAIT 2 0"))
	require.Equal(t, "+OK", c.do("SET a 2"))
	require.Equal(t, "[1 2]", c.do("WAITAOF 1 2 0"))
	require.Equal(t, "2", leader.client().do("WAIT 0 0"), "a client that has written nothing")
	require.Equal(t, "2", leader.client().do("WAIT 3 1"))

	c.Append("SET", "a", "3")
	c.Append("WAIT", "2", "0")
	require.NoError(t, c.Flush())
	require.Equal(t, "+OK", c.read())
	require.Equal(t, "2", c.read())
	for _, line := range []string{"MULTI", "SET a 4", "WAIT 0 0"} {
		require.Contains(t, c.do(line), "+")
	}
	require.Regexp(t, `^\[\+OK [12]\]$`, c.do("EXEC"))
	require.Equal(t, "2", c.do("WAIT 2 0"))

	away := g.followers()[0]
	require.Contains(t, away.client().do("WAIT 0 0"), "ERR WAIT cannot be used with replica instances.")
	away.kill()
	require.Equal(t, "+OK", c.do("SET a 5"))
	require.Equal(t, "1", c.do("WAIT 1 0"))
	require.Equal(t, "[1 1]", c.do("WAITAOF 1 1 0"))
	require.Equal(t, "1", c.do("WAIT 2 5"))
	require.Equal(t, "[1 1]", c.do("WAITAOF 0 2 5"))
	c.send("WAIT", "2", "0")
	leader.client().waitFor("INFO clients", "blocked_clients:1")
	away.start()
	require.Equal(t, "2", c.read())

	replica := newMember(t, crashfs.New())
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+strings.Replace(*leader.at.Load(), ":", " ", 1)))
	require.Equal(t, "+OK", c.do("SET a 6"))
	require.Equal(t, "3", c.do("WAIT 3 0"))
	require.Equal(t, "[1 3]", c.do("WAITAOF 1 3 0"))
}

// A client does not wait for ever when the lead is lost.
func TestWaitsForServersOfAGroupEndWithTheLead(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "cluster-enabled=yes")
	leader := g.settled()
	c := leader.client()
	require.Equal(t, "+OK", c.do("SET a 1"))
	c.send("WAIT", "3", "0")
	leader.client().waitFor("INFO clients", "blocked_clients:1")
	g.handOver(leader, g.followers()[0])
	require.Regexp(t, "^-UNBLOCKED |^closed$", c.read())
}

// A client that reads at a follower waits there for what it has written at the leader.
func TestAClientReadsItsOwnWritesAtAFollower(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	leader := g.settled()
	c := leader.client()
	followers := []*testClient{g.followers()[0].client(), g.followers()[1].client()}
	position := ""
	for i := range 20 {
		c.Append("SET", "key", fmt.Sprint(i))
		c.Append("RAFT.POSITION")
		require.NoError(t, c.Flush())
		require.Equal(t, "+OK", c.read())
		position = c.read()
		for _, f := range followers {
			require.Equal(t, "1", f.do("RAFT.AWAIT "+position+" 0"))
			require.Equal(t, fmt.Sprint(i), f.do("GET key"))
		}
	}
	require.Equal(t, "1", c.do("RAFT.AWAIT "+position+" 0"))
	require.Equal(t, "0", followers[0].do("RAFT.AWAIT 1000000 1"))
	require.Equal(t, "-ERR position is not an integer or out of range", c.do("RAFT.AWAIT x 1"))
	require.Contains(t, followers[0].do("RAFT.POSITION"), "-NOTLEADER")
}

// A follower that has not heard of the leader for longer than replica-max-lag refuses reads.
func TestAFollowerWithoutALeaderRefusesReads(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "replica-max-lag=3600", "cluster-enabled=yes")
	leader := g.settled()
	alone, other := g.followers()[0], g.followers()[1]
	c := alone.client()
	require.Equal(t, "+OK", c.do("READONLY"))
	require.Equal(t, "+OK", leader.client().do("SET key value"))
	c.waitFor("GET key", "value")
	other.kill()
	leader.kill()
	require.Equal(t, "+OK", c.do("CONFIG SET replica-max-lag 30ms"))
	require.Equal(t, `["replica-max-lag" "30ms"]`, c.do("CONFIG GET replica-max-lag"))
	c.waitFor("GET key", "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
	require.Equal(t, "+OK", c.do("CONFIG SET replica-max-lag 3600s"))
	require.Equal(t, "value", c.do("GET key"))
}
