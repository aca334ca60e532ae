package resp

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// written returns the first n bytes of the replies.
func written(w *Writer, n int) []byte {
	all := []byte{}
	for p := range w.Pieces(n) {
		if len(p) == 0 {
			panic("an empty piece")
		}
		all = append(all, p...)
	}
	return all
}

// readers counts the readers of a string.
type readers int

// Return implements Loan.
func (r *readers) Return() { *r-- }

// However strings are lent, inserted, taken back and sent in parts, the output is the same as that of a writer that
// copies everything.
func TestLentRepliesAreAsThoseThatAreCopied(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		w, plain := Writer{Proto: 3, Lends: true}, Writer{Proto: 3}
		values := make([][]byte, 4)
		readers := make([]readers, len(values))
		for i := range values {
			values[i] = bytes.Repeat([]byte{byte('a' + i)}, rapid.IntRange(1, 20).Draw(t, "length"))
		}
		reply := func() {
			if i := rapid.IntRange(0, 2*len(values)-1).Draw(t, "value"); i < len(values) {
				readers[i]++
				w.BulkLent(values[i], &readers[i])
				plain.Bulk(values[i])
			} else {
				w.Simple("OK")
				plain.Simple("OK")
			}
		}
		sent := 0 // bytes of what plain has written
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			mark, end := len(w.Buf), len(plain.Buf)
			step := rapid.SampledFrom([]string{"reply", "collection", "truncate", "send", "end", "aside"}).Draw(t, "step")
			switch step {
			case "aside":
				push := bytes.Repeat([]byte{byte('A' + i%26)},
					rapid.SampledFrom([]int{1, 100, asideFrom - 1, asideFrom, asideRoom + 1}).Draw(t, "aside"))
				w.RawPart(push)
				plain.Raw(push)
			case "reply":
				reply()
			case "collection":
				m, pm := w.Defer(), plain.Defer()
				reply()
				reply()
				w.EndArray(m, 2)
				plain.EndArray(pm, 2)
			case "truncate":
				reply()
				reply()
				w.Truncate(mark)
				plain.Truncate(end)
			case "send":
				n := rapid.IntRange(0, w.Len()).Draw(t, "sent")
				require.Equal(t, string(plain.Buf[sent:sent+n]), string(written(&w, n)))
				w.Sent(n)
				sent += n
			case "end":
				w.Truncate(0)
				plain.Truncate(sent)
			}
			require.Equal(t, len(plain.Buf)-sent, w.Len())
			require.Equal(t, string(plain.Buf[sent:]), string(written(&w, w.Len())))
			require.Equal(t, lentTo(&w), w.Lent(), "what was set aside is the writer's own")
			// Only readers that still have bytes to read are counted.
			for i := range readers {
				n := 0
				for _, l := range w.parts {
					if l.loan == &readers[i] {
						require.NotEmpty(t, l.data)
						n++
					}
				}
				require.EqualValues(t, n, readers[i])
			}
		}
	})
}

// lentTo returns how many bytes of the replies lie in memory that is not the writer's.
func lentTo(w *Writer) int {
	n := 0
	for _, l := range w.parts {
		if l.loan != nil {
			n += len(l.data)
		}
	}
	return n
}

// Output that a client leaves unread takes little more memory than its length, and is not moved when more output
// follows, whatever the sizes of the portions.
func TestWhatPilesUpIsNotMoved(t *testing.T) {
	const total = 16 << 20
	for _, portion := range []int{100, 1000, 16_001, 131_001, 1 << 20} {
		w := Writer{Lends: true}
		b := bytes.Repeat([]byte("x"), portion)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for w.Len() < total {
			w.RawPart(b)
		}
		runtime.ReadMemStats(&after)
		require.Less(t, float64(after.TotalAlloc-before.TotalAlloc), 1.35*total, "portions of %d bytes", portion)
		held := cap(w.Buf)
		for i := range w.parts {
			held += cap(w.parts[i].data)
		}
		require.Less(t, float64(held), 1.25*float64(w.Len()), "portions of %d bytes", portion)
		w.Sent(w.Len())
		require.Zero(t, w.Len())
	}
}

// A sender that uses only Buf finds all replies there.
func TestNothingIsSetAsideForWhoDoesNotAskForPieces(t *testing.T) {
	var w Writer
	b := bytes.Repeat([]byte("x"), 1000)
	for range 1000 {
		w.RawPart(b)
	}
	require.Len(t, w.Buf, 1_000_000)
}

// A lent reply can be cut anywhere.
func TestLentReplyIsSentInParts(t *testing.T) {
	const want = "+OK\r\n$5\r\nhello\r\n:7\r\n$1\r\nx\r\n$2\r\nyz\r\n"
	for first := range len(want) + 1 {
		for second := range len(want) - first + 1 {
			readers := readers(3)
			w := Writer{Lends: true}
			w.OK()
			w.BulkLent([]byte("hello"), &readers)
			w.Int(7)
			w.BulkLent([]byte("x"), &readers)
			w.BulkLent([]byte("yz"), &readers)
			got := slices.Clone(written(&w, first))
			w.Sent(first)
			got = append(got, written(&w, second)...)
			w.Sent(second)
			got = append(got, written(&w, w.Len())...)
			require.Equal(t, want, string(got), "%d and %d", first, second)
			w.Sent(w.Len())
			require.Zero(t, w.Len())
			require.Zero(t, readers)
		}
	}
}

// When a client reads slowly, the remaining output must not be moved again and again, and no room is lost.
func TestSendingLittleOfALongReplyMovesLittle(t *testing.T) {
	var w Writer
	w.Buf = bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	want := bytes.Clone(w.Buf)
	room, sent, moved := cap(w.Buf), 0, 0
	for i := 0; w.Len() > 0; i++ {
		if i%100 == 99 && i < 1000 {
			w.Simple("more")
			want = append(want, "+more\r\n"...)
		}
		first := &w.Buf[min(1000, len(w.Buf))-1]
		n := min(999, w.Len())
		w.Sent(n)
		sent += n
		require.True(t, bytes.Equal(want[sent:], w.Buf))
		if len(w.Buf) > 0 && n == 999 && &w.Buf[0] != first {
			moved += len(w.Buf)
		}
	}
	require.Positive(t, moved)
	require.LessOrEqual(t, moved, 2*sent)
	require.GreaterOrEqual(t, cap(w.Buf), room)
}

func TestWriterKeepsNoRoomForManyLentReplies(t *testing.T) {
	var readers readers
	value := []byte("x")
	w := Writer{Lends: true}
	for range 10 * maxKeptLent {
		w.BulkLent(value, &readers)
	}
	w.Sent(w.Len() - 1)
	w.Sent(1)
	require.Zero(t, cap(w.parts))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		w.BulkLent(value, &readers)
		w.Sent(w.Len())
	}))
}

func TestRoomIsMadeForWhatIsExpected(t *testing.T) {
	w := Writer{Expected: 100_000}
	w.Bulk(make([]byte, 100))
	require.Less(t, cap(w.Buf), 1000, "a short reply needs no more")
	w.Bulk(make([]byte, largeReply))
	require.GreaterOrEqual(t, cap(w.Buf), 100_000)
}
