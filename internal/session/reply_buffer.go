package session

import (
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/buffers"
)

// replyBuffer is the memory that a client keeps for its replies: as much as its largest replies of late took, within
// limits. What they take beyond that is borrowed, and given back once it is sent.
type replyBuffer struct {
	room    int    // the largest size of own since it was made smaller
	own     []byte // empty; nil if what the client has of its own is somewhere else
	peak    int    // most bytes that waited to be sent since resetAt
	resetAt int64  // when peak was last reset, in ms since 1970
}

const (
	minReplyBuffer = 1 << 10  // bytes; with less, short replies would outgrow it again and again
	maxReplyBuffer = 16 << 10 // bytes; buffers.Put must not share so little, because own may be what has outgrown its room
)

// maxExpected bounds, in bytes, the buffer that is borrowed because recent replies were long.
const maxExpected = 256 << 10

// ReplyBuffers is how the buffers of all clients are sized.
type ReplyBuffers struct {
	// peakAge is for how many ms a client's largest reply counts; negative is for ever.
	PeakAge atomic.Int64
	// fixed buffers keep their size. DEBUG sets it.
	Fixed atomic.Bool
}

// sent takes the buffer of replies back of which size bytes waited to be sent, and rest still do. It returns the
// buffer to go on with.
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

// grew reports whether the client's buffer has become larger; the first one has not. A transport may use two in turns.
func (b *replyBuffer) grew() bool {
	if cap(b.own) <= b.room {
		return false
	}
	first := b.room == 0
	b.room = cap(b.own)
	return !first
}

// resizeReplies makes the client's buffer smaller if its replies have long been small. The session's transport calls
// it about once a second.
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
