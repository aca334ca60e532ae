package session

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// TestPreparedInputIsExecutedAsIfItWereNot sends the same bytes in the same pieces to two servers, of which one
// parses some of them beforehand.
func TestPreparedInputIsExecutedAsIfItWereNot(t *testing.T) {
	words := [][]byte{request("SET", "k", "v"), request("GET", "k"), request("LPUSH", "l", "a", "b"),
		request("RPOP", "l"), request("BLPOP", "l", "1"),
		request("BLPOP", "none", "1"), request("MULTI"), request("EXEC"), request("INCR", "n"), request("NONE"),
		request("GET"), request("CLIENT", "REPLY", "SKIP"),
		request("CLIENT", "PAUSE", "1000", "WRITE"), request("HSET", "h", "f", "v"), request("MGET", "k", "n", "none"),
		request("SELECT", "1"), request("SELECT", "0"),
		[]byte("*0\r\n"), []byte("PING\r\n"), []byte("\r\n"), []byte("GET k\r\n")}
	wrong := [][]byte{[]byte("*1\r\n:3\r\n"), []byte("*1\r\n$-5\r\n"), request("QUIT"), []byte("POST / HTTP/1.1\r\n"),
		request("CLIENT", "KILL", "ID", "1")}
	testseed.Check(t, func(t *rapid.T) {
		plain, prepared := newHarness(t), newHarness(t)
		s, p := plain.session(), prepared.session()
		var stream []byte
		for range rapid.IntRange(1, 150).Draw(t, "commands") {
			from := words
			if rapid.IntRange(0, 400).Draw(t, "wrong") == 400 {
				from = wrong
			}
			stream = append(stream, rapid.SampledFrom(from).Draw(t, "command")...)
		}
		for len(stream) > 0 {
			piece := stream[:min(rapid.SampledFrom([]int{1, 5, 20, 100, 1000}).Draw(t, "piece"), len(stream))]
			stream = stream[len(piece):]
			if !p.Closing() && rapid.IntRange(0, 3).Draw(t, "prepare") > 0 {
				if rapid.IntRange(0, 200).Draw(t, "killed") == 200 {
					p.Kill()
					s.Kill()
				}
				p.prepare(slices.Clone(piece), nil)
			}
			require.Equal(t, plain.feed(s, slices.Clone(piece)), prepared.feed(p, slices.Clone(piece)))
			require.Equal(t, s.Closing(), p.Closing())
			require.Nil(t, p.pipeline.ahead)
		}
		plain.finish(t, s)
		prepared.finish(t, p)
	})
}
