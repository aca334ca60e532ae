package server

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// follower is a node whose leader answers questions with an error.
type follower struct {
	quorum.Node
	answer error
}

func (follower) Add(string, quorum.AddOptions) error { return quorum.ErrNotLeader }

func (follower) Status() quorum.Status { return quorum.Status{Addr: "a:1", Leader: "b:1"} }

func (f follower) Dial(_ string, purpose peer.Purpose, _ time.Duration) (*peer.Conn, error) {
	here, there := memconn.Pipe(1 << 20)
	go func() {
		defer there.Close()
		c := peer.NewConn(there, purpose, 1, nil, nil)
		var q peers.Question
		if c.ReadRequest(&q) == nil {
			_ = c.Fail(f.answer)
		}
	}()
	return peer.NewConn(here, purpose, 1, nil, nil), nil
}

// A leader of an earlier version does not know changes that others ask for.
func TestALeaderThatMakesNoChangesForOthers(t *testing.T) {
	t.Parallel()
	ask := func(answer error) error {
		srv := new(Server)
		var node quorum.Node = follower{answer: answer}
		srv.group.joined.Store(&node)
		return srv.ChangeGroup(quorum.Add, "c:1")
	}
	for _, answer := range []error{shards.ErrNoCluster, errors.New("unknown question"), &peer.Error{Code: peer.NotLeading, Text: "not here"}} {
		require.Equal(t, quorum.ErrNotLeader, ask(answer))
	}
	require.EqualError(t, ask(errors.New("the address of a server is a host and a port")), "the address of a server is a host and a port")
}
