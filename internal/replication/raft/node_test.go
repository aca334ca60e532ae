package raft

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	consensus "github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Commands may use a node that has been opened while it starts: the race detector watches.
func TestANodeIsUsedWhileItStarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := errors.New("nobody is there")
	n, err := Open(quorum.Options{Addr: "x:1", Peers: []string{"x:1", "y:1"}, Timeout: time.Second, FS: crashfs.New(), Dir: "d",
		Log: slog.New(slog.DiscardHandler), Listener: l, Dial: func(string, time.Duration) (net.Conn, error) { return nil, nobody }})
	require.NoError(t, err)
	_, err = n.Dial("y:1", peer.Shards, time.Second)
	require.ErrorIs(t, err, net.ErrClosed)
	dialled := make(chan struct{})
	go func() {
		defer close(dialled)
		for err := net.ErrClosed; errors.Is(err, net.ErrClosed); {
			_, err = n.Dial("y:1", peer.Shards, time.Second)
		}
	}()
	require.NoError(t, n.Start(nil))
	<-dialled
	_, err = n.Dial("y:1", peer.Shards, time.Second)
	require.ErrorIs(t, err, nobody)
	require.NoError(t, n.Close())
}

// A server that joins a recovered group knows its number also if the leader has not begun to lead.
func TestAServerThatJoinsGetsTheNumberOfTheRecovery(t *testing.T) {
	leader := opened(t, "y:1", nil)
	require.NoError(t, leader.log.SetUint64(recoveryKey, 7))
	require.EqualValues(t, 7, leader.peers.own().Recovery)
	n := opened(t, "x:1", answering(func(q question) news {
		a := leader.peers.own()
		a.Established, a.Leader, a.Joined = true, "y:1", q.Join != ""
		return a
	}))
	n.mux = newMux(n, nil)
	first, err := n.peers.find()
	require.NoError(t, err)
	require.Nil(t, first)
	require.EqualValues(t, 7, n.recovery())
}

// answering returns a function that connects to y:1, which answers questions with answer.
func answering(answer func(q question) news) func() net.Conn {
	return func() net.Conn {
		here, there := memconn.Pipe(1 << 20)
		go func() {
			defer there.Close()
			c, err := peer.Accept(there, nil, "y:1", "", func(*peer.Hello) error { return nil }, time.Now().Add(deadline))
			if err != nil {
				return
			}
			var q question
			if c.ReadRequest(&q) == nil {
				_ = c.Reply(answer(q))
			}
		}()
		return here
	}
}

// A member of another group is told by the group that it knows, also while it has no leader.
func TestAMemberOfAnotherGroupIsNotAdded(t *testing.T) {
	var a news
	n := opened(t, "x:1", answering(func(question) news { return a }))
	n.mux = newMux(n, nil)
	n.applied.config.Servers = []consensus.Server{{ID: "x:1"}}
	require.NoError(t, n.addable("y:1", true), "it is empty")
	require.NoError(t, n.identify(0))
	own := n.number(groupKey)
	require.NotZero(t, own)
	require.NoError(t, n.identify(own+1))
	require.Equal(t, own, n.number(groupKey))
	require.NoError(t, n.addable("y:1", true))
	a.Group = own
	require.NoError(t, n.addable("y:1", true), "it was a member")
	for _, online := range []bool{true, false} {
		a.Leader, a.Group = "", own-1
		require.EqualError(t, n.addable("y:1", online), "y:1 belongs to another group: give it an empty directory")
		a.Leader, a.Group = "z:1", 0 // an older server
		require.EqualError(t, n.addable("y:1", online),
			"y:1 belongs to another group, which z:1 leads: give it an empty directory")
		a = news{Recovery: 7}
		require.NoError(t, n.addable("y:1", online), "it is empty")
		a.Established = true
		require.EqualError(t, n.addable("y:1", online), "y:1 belongs to another group: give it an empty directory")
		a = news{}
	}
}

// A server that was added while it was down learns from the leader which group it belongs to. Only its own group removes it.
func TestAMemberLearnsItsGroupFromItsLeader(t *testing.T) {
	n := opened(t, "x:1", nil)
	is := func(group, recovery uint64) {
		require.Equal(t, group, n.number(groupKey))
		require.Equal(t, recovery, n.recovery())
	}
	require.NoError(t, n.log.SetUint64(recoveryKey, 1))
	require.True(t, n.learn(&membership{Recovery: 1, Group: 7}), "the own group may be 7")
	require.False(t, n.learn(&membership{Recovery: 2, Group: 7}))
	is(0, 1)
	require.False(t, n.learn(&membership{Member: true, Recovery: 2, Group: 8}))
	is(8, 2)
	require.False(t, n.learn(&membership{Recovery: 2, Group: 7}))
	require.False(t, n.learn(&membership{Recovery: 1, Group: 8}))
	require.False(t, n.learn(&membership{Member: true}), "an older server")
	is(8, 2)
	require.True(t, n.learn(&membership{Recovery: 2}), "an older server")
	require.True(t, n.learn(&membership{Recovery: 2, Group: 8}))
	require.False(t, n.learn(&membership{Member: true, Group: 9}), "a group without recovery")
	is(9, 0)

	// As a leader it adds servers of this group, and none of the former one.
	a := news{Established: true, Group: 9}
	n.o.Dial = func(string, time.Duration) (net.Conn, error) {
		return answering(func(question) news { return a })(), nil
	}
	n.mux = newMux(n, nil)
	require.NoError(t, n.addable("y:1", true))
	a.Group, a.Recovery = 0, 1
	require.Error(t, n.addable("y:1", true))
}

// opened opens a node of a group of x:1 and y:1.
func opened(t *testing.T, addr string, dial func() net.Conn) *Node {
	n, err := Open(quorum.Options{Addr: addr, Peers: []string{"x:1", "y:1"}, Timeout: time.Second, FS: crashfs.New(), Dir: "d",
		Log: slog.New(slog.DiscardHandler), Dial: func(string, time.Duration) (net.Conn, error) { return dial(), nil }})
	require.NoError(t, err)
	t.Cleanup(func() { n.log.Close() })
	return n
}

// Only a refused connection, and a name without a machine, show that no server runs.
func TestWhichServersAreLost(t *testing.T) {
	dialled := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		err  error
		lost bool
	}{
		{dialled(os.NewSyscallError("connect", syscall.ECONNREFUSED)), true},
		{dialled(&net.DNSError{Err: "no such host", IsNotFound: true}), true},
		{dialled(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), false},
		{dialled(os.ErrDeadlineExceeded), false},
		{dialled(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), false},
	} {
		r := quorum.Recovery{Dial: func(string, time.Duration) (net.Conn, error) { return nil, c.err }}
		notReached, err := isLost(r, "y:1")
		require.ErrorContains(t, notReached, "not reached: y:1 (dial tcp")
		require.Equal(t, c.lost, err == nil, "%s", c.err)
		r.Force = true
		notReached, err = isLost(r, "y:1")
		require.Error(t, notReached)
		require.NoError(t, err)
	}
}
