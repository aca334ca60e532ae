package server

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/resp"
)

// member is a server that replicates, on a disk of its own.
type member struct {
	*testServer
	c   *testClient
	mem *crashfs.FS
}

func newMember(t *testing.T, mem *crashfs.FS, settings ...string) *member {
	return newMemberOn(t, mem, mem, settings...)
}

// newMemberOn is newMember with fs, the file system through which the server uses mem.
func newMemberOn(t *testing.T, mem *crashfs.FS, fs disk.FS, settings ...string) *member {
	s := startTestServer(t, Options{FS: fs}, append([]string{"appendonly", "yes", "save", "", "dir", "/db", "appendfsync",
		"always", "databases", "4"}, settings...)...)
	return &member{s, s.connect(), mem}
}

// address returns the address of the server in the form of replicaof.
func (m *member) address() string {
	host, port, _ := net.SplitHostPort(m.Addrs()[0].String())
	return host + " " + port
}

// again restarts the server, after an orderly end or a power loss.
func (m *member) again(crash bool, settings ...string) *member {
	m.t.Helper()
	mem := m.mem
	if crash {
		mem = m.mem.CrashClone(crashfs.CloneCfg{})
	}
	require.NoError(m.t, m.Close())
	return newMember(m.t.(*testing.T), mem, settings...)
}

// write changes data in several ways.
func (m *member) write(n int) {
	m.t.Helper()
	for range n {
		for _, line := range []string{"SELECT 2", "INCR n", "RPUSH l x", "SELECT 0", "SET k v PX 100000", "SADD s a b c d",
			"SPOP s 2", "DEL no", "XADD x * f v", "MULTI", "INCR n", "HINCRBYFLOAT h f 0.5", "EXEC"} {
			reply := m.c.do(line)
			require.NotContains(m.t, reply, "ERR", line)
			require.NotContains(m.t, reply, "READONLY", line)
		}
	}
}

// requireSame waits until all have the data of the first.
func requireSame(t *testing.T, first *member, others ...*member) {
	t.Helper()
	for _, m := range others {
		require.Eventually(t, func() bool {
			st := m.linkStatus()
			here, there := m.followed.Present(), first.followed.Present()
			return st.State == replication.LinkConnected && here.ID == there.ID && here.Offset == there.Offset
		}, testTimeout, time.Millisecond)
		now := first.ks.Now()
		require.Equal(t, dump(first.ks, now), dump(m.ks, now))
	}
}

func TestReplicasGoOnWhereTheyWere(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			master, replica := newMember(t, crashfs.New()), newMember(t, crashfs.New())
			leaf := newMember(t, crashfs.New())
			master.write(5)
			require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
			requireSame(t, master, replica)
			require.Equal(t, "+OK", leaf.c.do("REPLICAOF "+replica.address()))
			master.write(5)
			requireSame(t, master, replica, leaf)
			require.Equal(t, int64(1), master.followed.Copies.Load())

			// The master is restarted, and the others miss changes before they find it again.
			was := master.followed.Present().ID
			master = master.again(crash)
			require.Equal(t, crash, was != master.followed.Present().ID)
			master.write(3)
			require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
			requireSame(t, master, replica, leaf)
			require.Zero(t, master.followed.Copies.Load())
			require.Equal(t, int64(1), master.followed.Partial.Load())
			require.Equal(t, int64(1), replica.followed.Copies.Load())

			// The replica is restarted.
			replica = replica.again(crash, "replicaof", master.address())
			master.write(3)
			require.Equal(t, "+OK", leaf.c.do("REPLICAOF "+replica.address()))
			requireSame(t, master, replica, leaf)
			require.Zero(t, master.followed.Copies.Load()+replica.followed.Copies.Load())

			// The last one is down while the others continue.
			master.write(1)
			requireSame(t, master, replica, leaf)
			leaf = leaf.again(crash, "replicaof", replica.address())
			master.write(1)
			requireSame(t, master, replica, leaf)
			require.Zero(t, master.followed.Copies.Load()+replica.followed.Copies.Load())

			// The replica leads: its own replica continues, and so does its former master.
			require.Equal(t, "+OK", replica.c.do("REPLICAOF NO ONE"))
			replica.write(2)
			require.Equal(t, "+OK", master.c.do("REPLICAOF "+replica.address()))
			requireSame(t, replica, master, leaf)
			require.Zero(t, master.followed.Copies.Load()+replica.followed.Copies.Load())
			require.Contains(t, replica.c.do("INFO replication"), "master_replid2:"+master.followed.Backlog().Former.ID)

			// A replica that starts as a master, and changes something, has another history.
			leaf = leaf.again(crash)
			leaf.write(1)
			require.Equal(t, "+OK", leaf.c.do("REPLICAOF "+replica.address()))
			replica.write(1)
			requireSame(t, replica, master, leaf)
			require.Equal(t, int64(1), replica.followed.Copies.Load())
			require.Equal(t, int64(1), replica.followed.NoPartial.Load())
		})
	}
}

// A master that has lost changes which its replicas have received sends them a full copy.
func TestAMasterThatHasLostSomethingIsNotGoneOnFrom(t *testing.T) {
	t.Parallel()
	master, replica := newMember(t, crashfs.New()), newMember(t, crashfs.New())
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
	requireSame(t, master, replica)
	master.write(1)
	before := master.mem.CrashClone(crashfs.CloneCfg{})
	master.write(1)
	requireSame(t, master, replica)
	require.NoError(t, master.Close())
	master = newMember(t, before)
	master.write(3)
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
	requireSame(t, master, replica)
	require.Equal(t, int64(1), master.followed.Copies.Load())
	require.Zero(t, master.followed.Partial.Load())
}

func TestTheBacklogGoesWhenNobodyWantsIt(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	srv := startTestServer(t, Options{Clock: clock}, "repl-backlog-ttl", "60", "repl-backlog-size", "100", "repl-timeout", "1000")
	host, port, _ := net.SplitHostPort(srv.Addrs()[0].String())
	c := srv.connect()
	require.Contains(t, c.do("INFO replication"), "repl_backlog_active:0\r\nrepl_backlog_size:16384")
	f := newRawFollower(t, host, port)
	f.follow("eof")
	c.do("SET a b")
	require.Contains(t, c.do("INFO replication"), "repl_backlog_active:1\r\nrepl_backlog_size:16384\r\n"+
		"repl_backlog_first_byte_offset:1\r\nrepl_backlog_histlen:50")
	id := srv.followed.Present().ID
	f.Close()
	c.waitFor("INFO replication", "connected_slaves:0")
	clock.Advance(59 * time.Second)
	require.True(t, srv.followed.Present().Known)

	f = newRawFollower(t, host, port)
	f.say(fmt.Sprint("PSYNC ", id, " 24"))
	require.Equal(t, "+CONTINUE", f.line())
	f.commands = resp.NewCommandReader(f.in)
	require.Equal(t, "SET a b", f.next())
	clock.Advance(120 * time.Second)
	require.True(t, srv.followed.Present().Known)
	f.Close()
	c.waitFor("INFO replication", "connected_slaves:0")
	clock.Advance(61 * time.Second)
	require.Eventually(t, func() bool { return !srv.followed.Present().Known && !srv.followed.Active() }, testTimeout,
		time.Millisecond)
	require.NotEqual(t, id, srv.followed.Present().ID)
}

// memberPort returns the port of a server.
func memberPort(m *member) string {
	_, port, _ := net.SplitHostPort(m.Addrs()[0].String())
	return port
}

// Messages published at a master reach its replicas, after earlier changes, and not again when the journal is
// repeated.
func TestWhatIsPublishedIsHeardAtReplicas(t *testing.T) {
	t.Parallel()
	master, replica := newMember(t, crashfs.New()), newMember(t, crashfs.New())
	leaf := newMember(t, crashfs.New())
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
	require.Equal(t, "+OK", leaf.c.do("REPLICAOF "+replica.address()))
	requireSame(t, master, replica, leaf)
	var hear []*testClient
	for _, m := range []*member{replica, leaf} {
		c := m.connect()
		require.Contains(t, c.do("SUBSCRIBE news"), "subscribe")
		require.Contains(t, c.do("SSUBSCRIBE news"), "ssubscribe")
		hear = append(hear, c)
	}
	f := newRawFollower(t, "127.0.0.1", strings.Fields(master.address())[1])
	f.follow("eof")
	require.Equal(t, "0", master.c.do("PUBLISH news alone"))
	require.Equal(t, "0", master.c.do("SPUBLISH news shard"))
	master.c.do("SET before 1")
	master.c.do("MULTI")
	master.c.do("SET key 1")
	master.c.do("PUBLISH news queued")
	require.Equal(t, "[+OK 0]", master.c.do("EXEC"))
	require.Equal(t, "0", master.c.call("EVAL", "redis.call('set', 'key', 2); return redis.call('publish', 'news', 'script')", "1", "key"))
	require.Equal(t, "0", replica.c.do("PUBLISH elsewhere x"), "nobody else hears of what is published at a replica")
	master.c.do("SET after 1")
	for _, want := range []string{"PUBLISH news alone", "SPUBLISH news shard", "SELECT 0", "SET before 1", "SET key 1",
		"PUBLISH news queued", "set key 2", "publish news script", "SET after 1"} {
		require.Equal(t, want, f.next())
	}
	for _, c := range hear {
		for _, want := range []string{"alone", "shard", "queued", "script"} {
			require.Contains(t, c.read(), want)
		}
	}
	requireSame(t, master, replica, leaf)
	master = master.again(true)
	require.Equal(t, "2", master.c.do("GET key"))
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
	requireSame(t, master, replica, leaf)
	require.Zero(t, master.followed.Copies.Load(), "the stream is what it was")
	require.Equal(t, "0", master.c.do("PUBLISH news again"))
	for _, c := range hear {
		require.Contains(t, c.read(), "again")
	}
}

// A replica executes only what it can store, unless configured otherwise, and continues when there is room.
func TestAReplicaOnAFullDisk(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	mem := crashfs.New()
	master, replica := newMember(t, crashfs.New()), newMemberOn(t, mem, crashfs.Full(mem, &full))
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
	master.write(1)
	requireSame(t, master, replica)
	full.Store(true)
	for n := 0; replica.linkStatus().State == replication.LinkConnected; n++ {
		require.Less(t, n, 10_000, "it goes on")
		master.write(1)
	}
	require.Eventually(t, func() bool { return replica.linkStatus().Problem != "" }, testTimeout, time.Millisecond)
	require.Contains(t, replica.linkStatus().Problem, "cannot be stored")
	require.Equal(t, "v", replica.c.do("GET k"), "what it has is served")
	replica.c.do("CONFIG SET replica-ignore-disk-write-errors yes")
	master.write(1)
	requireSame(t, master, replica)
	replica.c.do("CONFIG SET replica-ignore-disk-write-errors no")
	full.Store(false)
	master.write(1)
	requireSame(t, master, replica)
	require.Equal(t, int64(1), master.followed.Copies.Load(), "it has not got everything anew")
}
