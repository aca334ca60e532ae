package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A client's role at a queue of pressure ends when the group gets another leader, and does not come back when its
// server leads again.
func TestRolesEndWithTheLead(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	first, second := g.settled(), g.followers()[0]
	c := first.client()
	require.Equal(t, "+OK", c.do("PRESSURE.CREATE q BOUND 3"))
	waiting := first.client()
	waiting.send("PRESSURE.GET", "q") // becomes the consumer
	c.waitFor("EXISTS __pressure__:q:consumer_free", "0")
	for _, leader := range []*groupNode{second, first, second} {
		g.handOver(g.leader(), leader)
		c := leader.client()
		require.Equal(t, "1", c.do("PRESSURE.PUT q x"))
		require.Equal(t, "x", c.do("PRESSURE.GET q TIMEOUT 5000"))
		waiting := leader.client()
		waiting.send("PRESSURE.GET", "q")
		c.waitFor("EXISTS __pressure__:q:consumer_free", "0")
	}
}
