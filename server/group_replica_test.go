package server

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/replication"
)

// replicates waits until a replica has what a leader has.
func (m *member) replicates(leader *groupNode) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		st := m.replica.link().status()
		here, there := m.followed.present(), leader.followed.present()
		return st.State == replication.LinkConnected && here.ID == there.ID && here.Offset == there.Offset
	}, testTimeout, time.Millisecond)
	now := leader.ks.Now()
	require.Equal(m.t, dump(leader.ks, now), dump(m.ks, now))
}

// A replica of a group finds whoever leads, and goes on with it, whether that one had the history from the log, from a copy
// of another server or from its own disk.
func TestAReplicaOfAGroupGoesOnWithTheNextLeader(t *testing.T) {
	g := startGroup(t, 3)
	replica := newMember(t, vfs.NewCrashableMem())
	heard := replica.connect()
	require.Contains(t, heard.do("SUBSCRIBE news"), "subscribe")
	n := 0
	follow := func(leader *groupNode, copies int64) {
		t.Helper()
		copies += leader.stats.copies.Load()
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
		// When this is acknowledged all of the stream before it has been agreed on.
		require.Equal(t, "+OK", leader.client().do(fmt.Sprint("SET last ", n)))
		replica.replicates(leader)
		require.Equal(t, copies, leader.stats.copies.Load())
	}
	first := g.settled()
	require.Equal(t, "+OK", first.client().do("SET before replicas"))
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+strings.Replace(*g.followers()[1].at.Load(), ":", " ", 1)))
	follow(first, 1)

	second := g.followers()[0]
	require.NoError(t, first.group.node.Transfer(second.addr))
	require.Same(t, second, g.settled())
	follow(second, 0)

	second.kill()
	third := g.leader()
	follow(third, 0)
	second.start()
	second.client().waitFor("GET last", fmt.Sprint(n))

	// One that gets a copy of everything has the history too.
	other := g.followers()[0]
	other.kill()
	require.NoError(t, os.RemoveAll(other.dir))
	require.Equal(t, "+OK", third.client().do("SAVE"))
	follow(third, 0)
	other.start()
	other.client().waitFor("GET missed", fmt.Sprint(n-2))
	require.Eventually(t, func() bool { return third.group.node.Transfer(other.addr) == nil }, testTimeout, time.Millisecond)
	require.Same(t, other, g.settled())
	follow(other, 0)

	// All of them start anew.
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
