package replication_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
)

func record(lines ...string) (out []byte) {
	for _, line := range lines {
		var args [][]byte
		for _, w := range strings.Fields(line) {
			args = append(args, []byte(w))
		}
		out = command.AppendRequest(out, args)
	}
	return out
}

func TestARecordOfSeveralCommandsIsATransaction(t *testing.T) {
	var s replication.Stream
	require.Equal(t, record("SELECT 0", "SET a 1"), s.Translate(record("SET a 1")))
	require.Equal(t, record("SET a 2"), s.Translate(record("SELECT 0", "SET a 2")), "it is in that database already")
	require.Equal(t, record("SELECT 3", "MULTI", "INCR a", "SELECT 0", "INCR b", "EXEC"),
		s.Translate(record("SELECT 3", "INCR a", "SELECT 0", "INCR b")))
	require.Empty(t, s.Translate(record("CHANGES GROUP ACK g 00000000-0", "REPLCONF history x")), "these are for the journal only")
	s.Restart()
	require.Equal(t, record("SELECT 0", "SET a 3"), s.Translate(record("SET a 3")), "a new follower does not know it")
}
