package streams_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// A consumer counts as seen when it asks, even if there is nothing to read; that is no change of the data.
func TestConsumersAreSeenThatFindNothing(t *testing.T) {
	b := servertest.NewStepped(t)
	defer b.Finish()
	second := func(line string) string { // moves the clock by a second after the command
		reply := b.Step(line)
		b.Pass(1000)
		return reply + b.Reply("0")
	}
	times := func() string { return second("XINFO CONSUMERS s g") }
	const ask = "XREADGROUP GROUP g c STREAMS s >"
	b.Step("XGROUP CREATE s g $ MKSTREAM")
	second(ask)
	require.Contains(t, times(), "$4\r\nidle\r\n:1000\r\n$8\r\ninactive\r\n:-1\r\n")
	b.Step("XADD s 1-1 f v")
	second(ask)
	times()
	changes := func() string {
		return regexp.MustCompile(`rdb_changes_since_last_save:\d+`).FindString(second("INFO persistence"))
	}
	before := changes()
	require.NotEmpty(t, before)
	require.Equal(t, "*-1\r\n", second(ask))
	require.Equal(t, before, changes())
	require.Contains(t, times(), "$4\r\nidle\r\n:2000\r\n$8\r\ninactive\r\n:5000\r\n")
	require.Empty(t, second("XREADGROUP GROUP g c BLOCK 1500 STREAMS s >"))
	b.Pass(1000)
	require.Equal(t, "*-1\r\n", b.Reply("0"))
	require.Contains(t, times(), "$4\r\nidle\r\n:2000\r\n")
}
