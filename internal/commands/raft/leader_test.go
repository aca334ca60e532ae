package raft

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// A change that the leader does not make for others names it.
func TestAChangeThatOnlyTheLeaderMakes(t *testing.T) {
	for want, st := range map[string]quorum.Status{
		"NOTLEADER The group has no leader":                            {Addr: "a:1"},
		"NOTLEADER The leader of the group is b:1, for clients b:6379": {Addr: "a:1", Leader: "b:1", LeaderAt: "b:6379"},
	} {
		require.Equal(t, want, notLeader(st))
	}
	require.Equal(t, "NOTLEADER The group has no leader", notLeader(quorum.Status{Addr: "a:1", Leader: "a:1"}), "not yet")
}
