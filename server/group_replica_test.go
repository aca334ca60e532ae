package server

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/psync"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/resp"
)

// replicates waits until a replica has the leader's data.
func (m *member) replicates(leader *groupNode) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		st := m.linkStatus()
		here, there := m.followed.Present(), leader.followed.Present()
		return st.State == replication.LinkConnected && here.ID == there.ID && here.Offset == there.Offset
	}, testTimeout, time.Millisecond)
	now := leader.ks.Now()
	require.Equal(m.t, dump(leader.ks, now), dump(m.ks, now))
}

// A replica of a group finds the leader and continues with it, whether the leader has the history from the log, from
// a copy of another server or from its own disk.
func TestAReplicaOfAGroupGoesOnWithTheNextLeader(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	replica := newMember(t, crashfs.New())
	heard := replica.connect()
	require.Contains(t, heard.do("SUBSCRIBE news"), "subscribe")
	n := 0
	follow := func(leader *groupNode, copies int64) {
		t.Helper()
		copies += leader.followed.Copies.Load()
		write := func() {
			c := leader.client()
			for _, line := range []string{"SELECT 2", "INCR n", "RPUSH l x", "SELECT 0", "SET k v PX 100000", "SADD s a b c d", "SPOP s 2",
				"XADD x * f v", "MULTI", "INCR n", "HINCRBYFLOAT h f 0.5", fmt.Sprint("PUBLISH news ", n), "EXEC"} {
				require.NotContains(t, c.do(line), "ERR", line)
			}
			require.Contains(t, heard.read(), fmt.Sprint(n))
			n++
		}
		if n > 0 {
			c := leader.client()
			require.Equal(t, "+OK", c.do("SET missed "+fmt.Sprint(n)))
		}
		replica.replicates(leader)
		write()
		write()
		// When this is acknowledged the whole stream before it is committed.
		require.Equal(t, "+OK", leader.client().do(fmt.Sprint("SET last ", n)))
		replica.replicates(leader)
		require.Equal(t, copies, leader.followed.Copies.Load())
	}
	first := g.settled()
	require.Equal(t, "+OK", first.client().do("SET before replicas"))
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+strings.Replace(*g.followers()[1].at.Load(), ":", " ", 1)))
	follow(first, 1)

	second := g.followers()[0]
	g.handOver(first, second)
	follow(second, 0)

	second.kill()
	third := g.leader()
	follow(third, 0)
	second.start()
	second.client().waitFor("GET last", fmt.Sprint(n))

	// A server that gets a full copy has the history too.
	other := g.followers()[0]
	other.kill()
	require.NoError(t, os.RemoveAll(other.dir))
	require.Equal(t, "+OK", third.client().do("SAVE"))
	follow(third, 0)
	other.start()
	other.client().waitFor("GET missed", fmt.Sprint(n-2))
	g.handOver(third, other)
	follow(other, 0)

	// All of them restart.
	require.Equal(t, "+OK", other.client().do("SAVE"))
	follow(other, 0)
	for _, n := range g.nodes {
		n.kill()
	}
	for _, n := range g.nodes {
		n.start()
	}
	leader := g.settled()
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+strings.Replace(*leader.at.Load(), ":", " ", 1)))
	follow(leader, 0)
}

// newRawFollower connects a rawFollower to the node.
func (n *groupNode) newRawFollower() *rawFollower {
	host, port, _ := strings.Cut(*n.at.Load(), ":")
	return newRawFollower(n.g.t, host, port)
}

// rawFollower returns a follower to which this node, which does not lead, has sent a copy.
func (n *groupNode) rawFollower() *rawFollower {
	f := n.newRawFollower()
	require.Eventually(n.g.t, func() bool { // for the first one the leader begins the stream
		f.say("PSYNC ? -1")
		answer := f.line()
		require.Regexp(n.g.t, `^(\+FULLRESYNC |-NOMASTERLINK )`, answer)
		return answer[0] == '+'
	}, testTimeout, time.Millisecond)
	require.NotEmpty(n.g.t, f.file())
	f.commands = resp.NewCommandReader(f.in)
	return f
}

// goOn makes the follower connect again to a server that has disconnected it because its group has another leader,
// and returns the new connection. The follower gets the following part of the server's history.
func (f *rawFollower) goOn(at *groupNode, was psync.Position) *rawFollower {
	t := f.t
	t.Helper()
	_, err := io.Copy(io.Discard, f.in)
	require.NoError(t, err)
	// It may be disconnected once because the lead is lost, and once more because the history has another ID.
	leader := at.g.leader()
	require.Eventually(t, func() bool { return at.followed.Present().ID == leader.followed.Present().ID }, testTimeout, time.Millisecond)
	f = at.newRawFollower()
	f.say("REPLCONF capa psync2")
	require.Equal(t, "+OK", f.line())
	f.say(fmt.Sprintf("PSYNC %s %d", was.ID, was.Offset+1))
	require.Regexp(t, `^\+CONTINUE [0-9a-f]{40}$`, f.line())
	f.commands = resp.NewCommandReader(f.in)
	return f
}

// Replicas that can follow only a fixed server, as those of Redis, may follow any server of a group, and stay with
// it whichever server leads.
func TestAnyServerOfAGroupHasFollowers(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "repl-ping-replica-period=1")
	first := g.settled()
	require.Equal(t, "+OK", first.client().do("SET before 1"))
	at := g.followers()[0]
	at.client().waitFor("GET before", "1")
	f := at.rawFollower()
	c := first.client()
	for _, line := range []string{"SELECT 3", "SET k 1", "MULTI", "INCR k", "INCR k", "PUBLISH news hello", "EXEC"} {
		require.NotContains(t, c.do(line), "ERR", line)
	}
	require.Equal(t, "0", at.client().do("PUBLISH news here"))
	for _, want := range []string{"SELECT 3", "SET k 1", "MULTI", "INCR k", "INCR k", "EXEC", "PUBLISH news hello", "PUBLISH news here"} {
		require.Equal(t, want, f.next())
	}
	require.Contains(t, at.client().do("INFO replication"), "connected_slaves:1")
	args, err := f.commands.Next()
	require.NoError(t, err)
	require.Equal(t, "[PING]", fmt.Sprintf("%s", args), "the leader has no followers itself")

	was := at.followed.Present()
	first.kill()
	require.Equal(t, "+OK", g.leader().client().do("SET after 1"))
	f = f.goOn(at, was)
	require.Equal(t, "SELECT 0", f.next())
	require.Equal(t, "SET after 1", f.next())
	require.EqualValues(t, 1, at.followed.Copies.Load())
}

// A server that gets a full copy has the history of the copy, or none if the copy has none.
func TestACopyHasTheHistoryOfTheGroup(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 2)
	leader, at := g.settled(), g.followers()[0]
	var b bytes.Buffer
	require.NoError(t, leader.group.Copy(&b, func() {}))
	f := at.rawFollower()
	require.True(t, at.followed.Present().Known)
	require.NoError(t, at.group.Replace(&b, func() {}))
	_, err := io.Copy(io.Discard, f.in)
	require.NoError(t, err)
	require.False(t, at.followed.Present().Known)
}

// A backup needs no stream, so a follower sends it although the leader has begun none.
func TestAFollowerSendsACopyWithoutAStream(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	require.Equal(t, "+OK", g.settled().client().do("SET key value"))
	at := g.followers()[0]
	at.client().waitFor("GET key", "value")
	f := at.newRawFollower()
	f.say("REPLCONF rdb-only 1")
	require.Equal(t, "+OK", f.line())
	f.say("SYNC")
	require.Contains(t, string(f.file()), "value")
	require.False(t, g.leader().followed.Present().Known)
}
