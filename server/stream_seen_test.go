package server

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A consumer was seen when it asked, also if there was nothing to read, and that is no change of the data.
func TestConsumersAreSeenThatFindNothing(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	times := func() string { return b.feed(s, request("XINFO", "CONSUMERS", "s", "g")) }
	ask := request("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
	b.feed(s, request("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"), ask)
	require.Contains(t, times(), "$4\r\nidle\r\n:1000\r\n$8\r\ninactive\r\n:-1\r\n")
	b.feed(s, request("XADD", "s", "1-1", "f", "v"), ask)
	times()
	changes := func() string {
		return regexp.MustCompile(`rdb_changes_since_last_save:\d+`).FindString(b.feed(s, request("INFO", "persistence")))
	}
	before := changes()
	require.NotEmpty(t, before)
	require.Equal(t, "*-1\r\n", b.feed(s, ask))
	require.Equal(t, before, changes())
	require.Contains(t, times(), "$4\r\nidle\r\n:2000\r\n$8\r\ninactive\r\n:5000\r\n")
	blocks := request("XREADGROUP", "GROUP", "g", "c", "BLOCK", "1500", "STREAMS", "s", ">")
	require.Empty(t, b.feed(s, blocks))
	require.Equal(t, "*-1\r\n", b.feed(s))
	require.Contains(t, times(), "$4\r\nidle\r\n:2000\r\n")
}
