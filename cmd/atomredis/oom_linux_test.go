package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheScoreForLackOfMemory(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	require.NoError(t, err)
	socket := filepath.Join(t.TempDir(), "s")
	cmd := program(t, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--oom-score-adj",
		"absolute", "--oom-score-adj-values", "810 850 890")
	require.NoError(t, cmd.Start())
	listening(t, socket)
	score := func() string {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", cmd.Process.Pid))
		require.NoError(t, err)
		return strings.TrimSpace(string(content))
	}
	eventually(t, func() bool { return score() == "810" })
	require.Equal(t, "+OK", ask(t, socket, "REPLICAOF 127.0.0.1 1"))
	require.Equal(t, "850", score())
	require.Equal(t, "+OK", ask(t, socket, `CONFIG SET oom-score-adj-values "820 860 900"`))
	require.Equal(t, "860", score())
	require.Equal(t, "+OK", ask(t, socket, "REPLICAOF NO ONE"))
	require.Equal(t, "820", score())
	if reply := ask(t, socket, "CONFIG SET oom-score-adj no"); reply == "+OK" { // otherwise the process may not lower its score
		require.Equal(t, strings.TrimSpace(string(own)), score())
	} else {
		require.Contains(t, reply, "Failed to apply new oom_score_adj configuration")
	}
	require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
	require.NoError(t, cmd.Wait())
}
