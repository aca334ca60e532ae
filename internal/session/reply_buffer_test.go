package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/resp"
)

func TestReplyBufferIsAsLargeAsRepliesOfLate(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	second := func() {
		b.clock.Advance(time.Second)
		require.False(t, s.Expired(b.Keyspace.Now()))
	}
	reply := func(size int) {
		s.Input(request("PING", strings.Repeat("x", size)), b.Keyspace.Now())
		require.Greater(t, len(s.Output()), size)
		s.SetOutput(s.Output()[:0])
	}
	require.Equal(t, minReplyBuffer, cap(s.out.Buf))
	reply(5000)
	grown := cap(s.out.Buf)
	require.GreaterOrEqual(t, grown, 5000)
	require.LessOrEqual(t, grown, maxReplyBuffer)
	reply(100_000)
	require.Equal(t, maxReplyBuffer, cap(s.out.Buf), "what is more is given back")
	require.Greater(t, s.out.Expected, 100_000)
	for range 4 {
		second()
		require.Equal(t, maxReplyBuffer, cap(s.out.Buf), "a large reply may come again")
	}
	for range 3 {
		second()
	}
	require.Equal(t, minReplyBuffer, cap(s.out.Buf))
	require.Regexp(t, ` rbs=1024 rbp=0 `, b.feed(s, request("CLIENT", "LIST")))
	reply(1)
	require.Less(t, s.out.Expected, 1000)
}

// The bytes sent are the bytes written, whatever is written and however much of it can be sent at once.
func TestReplyBufferKeepsWhatIsToBeSent(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var b replyBuffer
		w := resp.Writer{Proto: 2, Buf: make([]byte, 0, minReplyBuffer)}
		var written, sent []byte
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "replies") {
				n := len(w.Buf)
				size := rapid.SampledFrom([]int{0, 10, 1000, 5000, maxReplyBuffer - 40, maxReplyBuffer, 30_000, 70_000}).Draw(t,
					"size")
				w.Bulk([]byte(strings.Repeat(string(rune('a'+len(written)%26)), size)))
				written = append(written, w.Buf[n:]...)
			}
			n := rapid.IntRange(0, len(w.Buf)).Draw(t, "sent")
			if rapid.Bool().Draw(t, "all") {
				n = len(w.Buf)
			}
			sent = append(sent, w.Buf[:n]...)
			w.Buf = b.sent(len(w.Buf), w.Buf[:copy(w.Buf, w.Buf[n:])])
			require.LessOrEqual(t, cap(b.own), maxReplyBuffer)
		}
		require.Equal(t, string(written), string(sent)+string(w.Buf))
	})
}
