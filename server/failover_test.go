package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// pair is a master and its replica.
func pair(t *testing.T) (master, replica *member) {
	master, replica = newMember(t, crashfs.New()), newMember(t, crashfs.New())
	require.Equal(t, "+OK", replica.c.do("REPLICAOF "+master.address()))
	requireSame(t, master, replica)
	return master, replica
}

// followersListenAt makes the server believe that its current followers listen on a port. Followers in tests
// announce a port on which they do not listen.
func (m *member) followersListenAt(port int64) {
	for _, s := range m.sessions.Clients.All() {
		if s.Follower().Following() {
			s.Follower().Capabilities.Port.Store(port)
		}
	}
}

func TestClientsWaitForReplicas(t *testing.T) {
	t.Parallel()
	master, replica := pair(t)
	master.c.waitFor("WAIT 0 0", "1") // it waits only until the master has sent the whole copy
	require.Equal(t, "+OK", master.c.do("SET a b"))
	require.Equal(t, "1", master.c.do("WAIT 1 0"))
	require.Equal(t, "+OK", master.c.do("SET a c"))
	require.Equal(t, "[1 1]", master.c.do("WAITAOF 1 1 0"))
	require.Equal(t, "1", master.c.do("WAIT 2 10"))
	require.Equal(t, "[1 1]", master.c.do("WAITAOF 0 2 10"))
	require.Contains(t, replica.c.do("WAIT 0 0"), "ERR WAIT cannot be used with replica instances.")
	require.Contains(t, replica.c.do("WAITAOF 0 0 0"), "ERR WAITAOF cannot be used with replica instances.")

	// One more replica is enough for a client that waits for two.
	require.Equal(t, "+OK", master.c.do("SET a d"))
	require.Equal(t, "1", master.c.do("WAIT 1 0"))
	waiting := master.connect()
	require.Equal(t, "+OK", waiting.do("SET a e"))
	waiting.send("WAIT", "2", "0")
	master.c.waitFor("INFO clients", "blocked_clients:1")
	other := newMember(t, crashfs.New())
	require.Equal(t, "+OK", other.c.do("REPLICAOF "+master.address()))
	require.Equal(t, "2", waiting.read())
	gone := master.connect()
	gone.do("SET a f")
	gone.send("WAIT", "9", "0")
	master.c.waitFor("INFO clients", "blocked_clients:1")
	gone.Close()
	master.c.waitFor("INFO clients", "blocked_clients:0")
}

func TestServersChangePlaces(t *testing.T) {
	t.Parallel()
	master, replica := pair(t)
	var port int64
	fmt.Sscan(memberPort(replica), &port)
	master.followersListenAt(port)
	other := newMember(t, crashfs.New())
	require.Equal(t, "+OK", other.c.do("REPLICAOF "+master.address()))
	requireSame(t, master, other)
	list, _ := master.followed.Status()
	require.Len(t, list, 2)
	master.write(3)
	for line, want := range map[string]string{"FAILOVER ABORT": "ERR No failover in progress.",
		"FAILOVER TO nowhere 1": "ERR FAILOVER target HOST and PORT is not a replica.",
		"FAILOVER TIMEOUT 0":    "ERR FAILOVER timeout must be greater than 0"} {
		require.Contains(t, master.c.do(line), want)
	}
	require.Contains(t, replica.c.do("FAILOVER"), "ERR FAILOVER is not valid when server is a replica.")
	raw := newRawFollower(t, "127.0.0.1", memberPort(master))
	raw.say("PSYNC ? -1 FAILOVER")
	require.Equal(t, "-ERR PSYNC FAILOVER can't be sent to a master.", raw.line())
	raw = newRawFollower(t, "127.0.0.1", memberPort(replica))
	raw.say("PSYNC another 1 FAILOVER")
	require.Equal(t, "-ERR PSYNC FAILOVER replid must match my replid.", raw.line())

	writer := master.connect()
	require.Equal(t, "+OK", master.c.do("FAILOVER TO 127.0.0.1 "+memberPort(replica)))
	writer.send("SET", "late", "1") // it waits, and reaches a replica
	require.Contains(t, writer.read(), "READONLY")
	replica.c.waitFor("INFO replication", "role:master")
	master.c.waitFor("INFO replication", "master_failover_state:no-failover")
	require.Equal(t, "", master.c.do("GET late"))
	replica.write(2)
	requireSame(t, replica, master)
	requireSame(t, replica, other)
	require.Zero(t, replica.followed.Copies.Load())
	require.Equal(t, int64(2), master.followed.Copies.Load(), "both that it had before")
	require.Equal(t, replication.LinkConnected, other.linkStatus().State)
}

func TestAFailoverThatCannotBe(t *testing.T) {
	t.Parallel()
	master, _ := pair(t)
	require.Equal(t, "+OK", master.c.do("SET a b"))
	other := master.connect()
	// No server listens at the replica's announced address.
	master.followersListenAt(1)
	require.Equal(t, "+OK", master.c.do("FAILOVER"))
	require.Contains(t, master.c.do("FAILOVER"), "ERR FAILOVER already in progress.")
	require.Contains(t, master.c.do("REPLICAOF NO ONE"), "ERR REPLICAOF not allowed while failing over.")
	master.c.waitFor("INFO replication", "master_failover_state:failover-in-progress")
	other.send("SET", "a", "c")
	require.Equal(t, "+OK", master.c.do("CLIENT UNPAUSE"))
	require.Equal(t, "b", master.c.do("GET a"))
	require.Contains(t, other.read(), "READONLY", "it is a replica already")
	require.Equal(t, "+OK", master.c.do("FAILOVER ABORT"))
	master.c.waitFor("INFO replication", "role:master")
	require.Equal(t, "+OK", master.c.do("SET a d"))

	// The failover waits for a follower that does not acknowledge until the timeout.
	alone := newMember(t, crashfs.New())
	raw := newRawFollower(t, "127.0.0.1", memberPort(alone))
	raw.follow("eof")
	alone.c.waitFor("INFO replication", "state=online")
	alone.c.do("SET a b")
	require.Equal(t, "+OK", alone.c.do("FAILOVER TIMEOUT 50"))
	require.Equal(t, "+OK", alone.c.do("SET a c"))
	require.Contains(t, alone.c.do("INFO replication"), "role:master")
	require.Contains(t, alone.c.do("INFO replication"), "master_failover_state:no-failover")
}
