package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

func TestWithoutAGroupItsCommandsAreRefused(t *testing.T) {
	c := servertest.Start(t, server.Options{}).Connect()
	for _, command := range []string{"RAFT.ADD 127.0.0.1:1", "RAFT.CHECK", "RAFT.REMOVE 127.0.0.1:1", "RAFT.STATUS",
		"RAFT.TRANSFER", "RAFT.TRANSFER 127.0.0.1:1", "RAFT.POSITION", "RAFT.AWAIT 1 1"} {
		require.Equal(t, "-ERR This server belongs to no group: it has no raft-addr", c.Line(command), command)
	}
	require.Contains(t, c.Line("RAFT.HELP"), "Describe the group and its servers")
}
