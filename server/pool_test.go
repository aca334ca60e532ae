package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
)

// A client of a pool whose change may be undone, because the lead is lost, ends with the reason; the pool goes on without it.
func TestAPoolOutlivesAClientThatLosesTheLead(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	leader, others := g.settled(), g.followers()
	d, err := leader.Direct(0)
	require.NoError(t, err)
	first := door.NewClient(d)
	defer first.Close()
	p := door.NewPool(&first, 3)
	_, err = p.Get() // as the console does: others are forked from it
	require.NoError(t, err)
	c, err := p.Get()
	require.NoError(t, err)
	for _, n := range others {
		n.kill()
	}
	_, err = c.Do(t.Context(), "SET", "key", "value")
	require.ErrorIs(t, err, door.ErrUndone)
	require.ErrorIs(t, err, door.ErrKilled)
	require.True(t, c.Undone())
	<-c.Done()
	p.Drop(c)
	require.Eventually(t, func() bool { // the server loads its last checkpoint first
		reply, err := p.Do(t.Context(), "PING")
		return err == nil && reply.String() == "PONG"
	}, testTimeout, time.Millisecond)
	select {
	case <-first.Done():
		require.Fail(t, "the pool has ended")
	default:
	}
	for _, n := range others {
		n.start()
	}
	g.settled()
}
