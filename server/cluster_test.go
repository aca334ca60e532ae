package server

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
)

func TestJournalOfSeveralDatabasesIsRepeatedInClusterMode(t *testing.T) {
	b := newHarnessWith(t, "cluster-enabled", "yes")
	r := b.Server.sessions.NewReplayer(command.FromJournal)
	require.NoError(t, r.Apply(1, slices.Concat(request("SELECT", "1"), request("MSET", "a", "1", "b", "2"),
		request("COPY", "a", "b", "DB", "2", "REPLACE"),
		request("MOVE", "a", "0"), request("SWAPDB", "1", "2"))))
	s := b.session()
	require.Equal(t, "$1\r\n1\r\n", b.feed(s, request("GET", "a")))
	b.finish(t, s)
}
