package server

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servercommands "github.com/atomredis/atomredis/internal/commands/server"
)

func TestDebugReplyBuffer(t *testing.T) {
	s := startTestServer(t, Options{}, "enable-debug-command", "yes")
	c := s.connect()
	for _, step := range [][2]string{
		{"DEBUG REPLYBUFFER PEAK-RESET-TIME 100", "+OK"},
		{"DEBUG REPLYBUFFER peak-reset-time x", "-ERR value is not an integer or out of range"},
		{"DEBUG REPLYBUFFER x 1", "-ERR unknown subcommand or wrong number of arguments for 'REPLYBUFFER'. Try DEBUG HELP."},
		{"DEBUG REPLYBUFFER RESIZING 0", "+OK"},
	} {
		require.Equal(t, step[1], c.do(step[0]))
	}
	require.True(t, s.sessions.ReplyBuffers.Fixed.Load())
	require.Equal(t, int64(100), s.sessions.ReplyBuffers.PeakAge.Load())
	require.Equal(t, "+OK", c.do("DEBUG REPLYBUFFER PEAK-RESET-TIME never"))
	require.Negative(t, s.sessions.ReplyBuffers.PeakAge.Load())
	require.Equal(t, "+OK", c.do("DEBUG REPLYBUFFER PEAK-RESET-TIME RESET"))
	require.Equal(t, servercommands.DefaultReplyBufferPeakAge, s.sessions.ReplyBuffers.PeakAge.Load())
}

// A client that gets large replies keeps a buffer of the largest size, whichever transport it has.
func TestClientListShowsTheReplyBuffer(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, settings...)
		busy, c := s.connect(), s.connect()
		busy.do("CLIENT SETNAME busy")
		require.Equal(t, "+OK", c.Call("SET", "big", strings.Repeat("x", 32768)))
		size := regexp.MustCompile(` name=busy .* rbs=(\d+) rbp=(\d+) `)
		require.Eventually(t, func() bool {
			require.Len(t, busy.do("GET big"), 32768)
			m := size.FindStringSubmatch(c.do("CLIENT LIST"))
			return m[1] == "16384" && len(m[2]) >= 5
		}, testTimeout, time.Millisecond)
	})
}
