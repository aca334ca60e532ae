package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Before a checkpoint the group's journal keeps entries for servers that were away: at most as many bytes as
// checkpoint-size, however few entries these are.
func TestTheJournalOfAGroupIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	g := &testGroup{t: t, settings: []string{"checkpoint-size=1mb"}, segment: 64 << 10}
	g.begin(3)
	leader := g.settled()
	c, value := leader.client(), strings.Repeat("v", 100<<10)
	write := func() { // a busy machine may cost the leader its lead, which ends its clients' connections
		for n := 0; n < 60; {
			if c.do("SET key "+value) == "+OK" {
				n++
				continue
			}
			leader = g.leader()
			c = leader.client()
		}
	}
	write()
	require.Eventually(t, func() bool {
		require.Contains(t, []string{"+OK", "-ERR Background save already in progress"}, c.do("SAVE"))
		return leader.group.node().Size() < 3<<20
	}, testTimeout, 10*time.Millisecond, "%d bytes", leader.group.node().Size())
	away := g.followers()[0]
	away.kill()
	write()
	require.Equal(t, "+OK", c.do("SET last yes"))
	require.Eventually(t, func() bool { return c.do("SAVE") == "+OK" }, testTimeout, 10*time.Millisecond)
	away.start() // it gets a copy
	away.client().waitFor("GET last", "yes")
	g.settled()
}
