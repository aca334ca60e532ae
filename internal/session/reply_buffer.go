package session

import (
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/buffers"
)

// replyBuffer is the memory that a client keeps for its replies. Its size is that of the largest recent replies,
// within limits. Memory for larger replies is borrowed, and given back once they are sent.
type replyBuffer struct {
	room    int    // the largest size of own since it was made smaller
	own     []byte // empty; nil while the client's own buffer is in use
	peak    int    // most bytes that waited to be sent since resetAt
	resetAt int64  // when peak was last reset, in ms since 1970
}

const (
	minReplyBuffer = 1 << 10  // bytes; a smaller buffer would be too short even for many short replies
	maxReplyBuffer = 16 << 10 // bytes; buffers.Put must not share buffers of this size, because own may have grown beyond room
)

// maxExpected bounds, in bytes, the buffer that is borrowed because recent replies were long.
const maxExpected = 256 << 10

// ReplyBuffers has the settings for the sizes of all clients' buffers.
type ReplyBuffers struct {
	// PeakAge is the time in ms for which a client's largest reply counts; negative means without end.
	PeakAge atomic.Int64
	// Fixed keeps the buffers at their size. DEBUG sets it.
	Fixed atomic.Bool
}

// sent takes back a buffer of replies: size bytes waited to be sent, and rest still does. It returns the buffer for
// the next replies.
func (b *replyBuffer) sent(size int, rest []byte) []byte {
	b.peak = max(b.peak, size)
	if len(rest) > 0 {
		return rest
	}
	if cap(rest) > maxReplyBuffer {
		buffers.Put(rest)
		rest = b.own
	}
	if cap(rest) < min(size, maxReplyBuffer) || cap(rest) < minReplyBuffer {
		rest = make([]byte, 0, min(max(2*size, minReplyBuffer), maxReplyBuffer))
	}
	b.own = rest
	return rest
}

// grew reports whether the client's buffer has become larger; the first buffer does not count. A transport may use
// two buffers alternately.
func (b *replyBuffer) grew() bool {
	if cap(b.own) <= b.room {
		return false
	}
	first := b.room == 0
	b.room = cap(b.own)
	return !first
}

// resizeReplies makes the client's buffer smaller if its replies have been small for some time. The session's
// transport calls it about once a second.
func (s *Session) resizeReplies(now int64) {
	all, b := &s.shared.ReplyBuffers, &s.replyBuffer
	if all.Fixed.Load() {
		return
	}
	size := cap(s.out.Buf)
	if len(s.out.Buf) == 0 && size/2 >= minReplyBuffer && b.peak < size/2 {
		b.own = make([]byte, 0, max(b.peak+1, minReplyBuffer))
		s.out.Buf, b.room = b.own, cap(b.own)
		s.shared.Counters.Shrinks.Add(1)
	}
	if age := all.PeakAge.Load(); age >= 0 && now-b.resetAt > age {
		b.peak, b.resetAt = len(s.out.Buf), now
	}
}
