package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A client that has a role of a queue of pressure has it no more when the group has another leader, and not again when
// its server leads once more.
func TestRolesEndWithTheLead(t *testing.T) {
	g := startGroup(t, 3)
	first, second := g.settled(), g.followers()[0]
	c := first.client()
	require.Equal(t, "+OK", c.do("PRESSURE.CREATE q BOUND 3"))
	waiting := first.client()
	waiting.send("PRESSURE.GET", "q") // is the consumer
	c.waitFor("EXISTS q:consumer_free", "0")
	for _, leader := range []*groupNode{second, first, second} {
		g.handOver(g.leader(), leader)
		c := leader.client()
		require.Equal(t, "1", c.do("PRESSURE.PUT q x"))
		require.Equal(t, "x", c.do("PRESSURE.GET q TIMEOUT 5000"))
		waiting := leader.client()
		waiting.send("PRESSURE.GET", "q")
		c.waitFor("EXISTS q:consumer_free", "0")
	}
}
