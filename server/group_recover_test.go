package server

import (
	"log/slog"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
)

// recover makes a new group of a stopped node, and returns what it has.
func (n *groupNode) recover() (found quorum.Found, err error) {
	ok, err := persist.OpenMember(disk.System, n.dir, func(fs disk.FS, dir string, state []byte) error {
		var err error
		found, err = quorum.Recovery{Stopped: quorum.Stopped{FS: fs, Dir: dir, State: state}, Addr: n.addr,
			Dial: func(addr string, timeout time.Duration) (net.Conn, error) {
				return net.DialTimeout("tcp", addr, timeout)
			},
		}.Recover()
		return err
	})
	require.True(n.g.t, ok)
	return found, err
}

// stored reads the data of a stopped node as export does, and returns the reply to a command.
func (n *groupNode) stored(command string) string {
	t := n.g.t
	conf := config.NewConfig()
	for name, value := range map[string]string{"dir": n.dir, "appendonly": "yes", "save": "", "raft-addr": n.addr, "raft-peers": n.addr} {
		require.NoError(t, conf.Set(name, value, false))
	}
	conf.ListenNowhere()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{Listeners: []net.Listener{l}, Stopped: true})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	nc, err := transcript.Dial(l.Addr().String())
	require.NoError(t, err)
	reply := newTestClient(t, nc).do(command)
	require.NoError(t, srv.Close())
	return reply
}

// Two of three directories are lost, with a checkpoint and without one: the third is read, and makes a new group, which the
// others join.
func TestAGroupIsRecoveredFromOneServer(t *testing.T) {
	t.Parallel()
	for _, saved := range []bool{false, true} {
		t.Run(map[bool]string{false: "from the journal", true: "from a checkpoint"}[saved], func(t *testing.T) {
			t.Parallel()
			g := startGroup(t, 3)
			leader := g.settled()
			c := leader.client()
			for _, command := range []string{"SET key value", "RPUSH list a b c", "SET other 1", "INCR other"} {
				c.do(command)
			}
			left, lost := g.followers()[0], g.followers()[1]
			left.client().waitFor("GET other", "2")
			if saved {
				require.Equal(t, "+OK", left.client().do("SAVE"))
			}
			require.Equal(t, "+OK", c.do("SET last yes"))
			left.client().waitFor("GET last", "yes")
			left.kill()
			_, err := left.recover()
			require.ErrorContains(t, err, leader.addr+" answers, and its group has a leader")
			leader.kill()
			_, err = left.recover()
			require.ErrorContains(t, err, lost.addr+" answers, and")
			lost.kill()

			require.Equal(t, "yes", left.stored("GET last"))
			require.Equal(t, "3", left.stored("LLEN list"))
			for _, n := range []*groupNode{leader, lost} {
				require.NoError(t, os.RemoveAll(n.dir))
				require.NoError(t, os.Mkdir(n.dir, 0o700))
			}
			lost.start() // with an empty directory, it may wait for the group already
			found, err := left.recover()
			require.NoError(t, err)
			require.Len(t, found.Members, 3)
			require.GreaterOrEqual(t, found.Index, found.Committed)
			left.start()
			leader.start()
			require.Same(t, left, g.settled())
			c = left.client()
			require.Equal(t, "+OK", c.do("SET after recovery"))
			for _, n := range g.nodes {
				n.client().waitFor("GET after", "recovery")
				require.Equal(t, "yes", n.client().do("GET last"))
				require.Equal(t, "2", n.client().do("GET other"))
			}
			require.Equal(t, "+OK", c.do("RAFT.TRANSFER "+lost.addr))
			require.Eventually(t, func() bool { return g.leader() == lost }, testTimeout, time.Millisecond)
			require.Equal(t, "+OK", lost.client().do("SET after transfer"))
		})
	}
}

// A server that comes back with the data of the group before does not disturb the recovered one, and is not added while it
// runs. If it is added while it is down it cannot become a member if it has stored changes that the others lack.
func TestAFormerMemberOfARecoveredGroup(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	g.settled()
	left := g.followers()[0]
	left.kill()
	c := g.leader().client()
	require.Equal(t, "+OK", c.do("SET key only:the:others"))
	former := slices.DeleteFunc(slices.Clone(g.nodes), func(n *groupNode) bool { return n == left })
	for _, n := range former {
		n.client().waitFor("GET key", "only:the:others")
		require.Equal(t, "+OK", n.client().do("SAVE"))
	}
	for _, n := range former {
		n.kill()
	}
	_, err := left.recover()
	require.NoError(t, err)
	left.start()
	require.Same(t, left, g.leader())
	c = left.client()
	for range 3 {
		require.Equal(t, "+OK", c.do("SET key new"))
	}
	back := former[0]
	back.start()
	back.waitForState("candidate")
	require.Equal(t, "leader", left.GroupStatus().State)
	require.Len(t, left.GroupStatus().Members, 1)
	require.Equal(t, "+OK", c.do("SET key newer"))
	require.Contains(t, c.do("RAFT.ADD "+back.addr), "belongs to another group: give it an empty directory")
	back.kill()
	require.Equal(t, "+OK", c.do("RAFT.ADD "+back.addr))
	back.start()
	back.waitForState("failed")
	require.Contains(t, back.client().do("INFO replication"), "contradicts one that the group has agreed on")
	require.Equal(t, "newer", c.do("GET key"))
}

// A server that was removed, and then added to the group that was recovered from another member, takes part again.
func TestARemovedServerJoinsTheRecoveredGroup(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	g.settled()
	removed := g.followers()[0]
	require.Equal(t, "+OK", g.leader().client().do("SET key 1"))
	removed.client().waitFor("GET key", "1")
	require.Equal(t, "+OK", g.leader().client().do("RAFT.REMOVE "+removed.addr))
	removed.waitForState("removed")
	for _, n := range g.nodes {
		n.kill()
	}
	left := slices.DeleteFunc(slices.Clone(g.nodes), func(n *groupNode) bool { return n == removed })[0]
	_, err := left.recover()
	require.NoError(t, err)
	left.start()
	require.Same(t, left, g.leader())
	require.Equal(t, "+OK", left.client().do("RAFT.ADD "+removed.addr))
	removed.start()
	removed.waitForState("follower")
	left.client().waitFor("SET key 2", "+OK")
	removed.client().waitFor("GET key", "2")
}

// A directory without data of a group cannot be recovered.
func TestWhatCannotBeRecovered(t *testing.T) {
	t.Parallel()
	g := &testGroup{t: t}
	n := &groupNode{addr: freeport.Addr(t), dir: t.TempDir(), g: g}
	other := &groupNode{addr: freeport.Addr(t), dir: t.TempDir(), g: g}
	g.nodes = []*groupNode{n, other}
	n.start() // it waits for the other one
	n.kill()
	_, err := n.recover()
	require.ErrorContains(t, err, "the server has not joined one")
}
