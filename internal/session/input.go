package session

import (
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/resp"
)

// received is the input of a client that has not been executed. It belongs to the goroutine of the session's
// transport.
type received struct {
	parser resp.Parser
	input  []byte // bytes that do not make a whole command yet, or that wait for the client to be unblocked
	long   longArg
	owned  ownedArg
	taken  int64 // total number of bytes received
}

// Input takes bytes that the client sent, at time now in ms since 1970, and executes the commands that they
// complete. b is not kept. It returns how many commands the last batch had, at most maxAhead.
func (s *Session) Input(b []byte, now int64) (commands int) {
	s.now = now
	s.in.parser.MaxBulk = s.shared.MaxBulk()
	s.shared.Counters.BytesIn.Add(int64(len(b)))
	s.in.taken += int64(len(b))
	if s.box.filled.Load() {
		s.readMail()
	}
	s.in.owned.bulky = false
	if s.in.long.Active() {
		b = s.receiveLong(b)
	}
	switch {
	case len(b) == 0:
	case len(s.in.input) > 0 || s.Waiting():
		s.in.input = append(buffers.Grow(s.in.input, len(b)), b...)
		s.processInput()
	default:
		if rest := s.process(b); len(rest) > 0 {
			s.in.input = append(buffers.Grow(s.in.input, len(rest)), rest...)
		}
	}
	s.checkInput()
	return s.pipeline.depth
}

// ReadsAlone reports whether the client gets a read of its own, because it is closing or receiving a long argument,
// or the last input had one and the next may have one too: the fewer bytes are read before Room returns a place for
// them, the fewer are copied.
func (s *Session) ReadsAlone() bool { return s.closing || s.in.owned.bulky || len(s.Room()) > 0 }

// Room returns the memory into which the next bytes of a long command should be read, so that they need not be
// moved; nil if there is no such command. Received must be called with the number of bytes read.
func (s *Session) Room() []byte {
	if room := s.in.long.Room(); len(room) > 0 {
		return room
	}
	n := s.in.parser.Missing(len(s.in.input))
	if n < minDirect || s.in.long.Active() || s.Waiting() {
		return nil
	}
	// Memory is allocated as the bytes arrive, not for the announced length.
	n = min(n, max(directStep, len(s.in.input)))
	s.in.input = buffers.Grow(s.in.input, n)
	return s.in.input[len(s.in.input) : len(s.in.input)+n]
}

// Received is Input for n bytes that were read to Room.
func (s *Session) Received(n int, now int64) {
	s.now = now
	s.shared.Counters.BytesIn.Add(int64(n))
	s.in.taken += int64(n)
	if s.in.long.Active() {
		s.in.long.Received(n)
	} else {
		s.in.input = s.in.input[:len(s.in.input)+n]
	}
	if s.box.filled.Load() {
		s.readMail()
	}
	if !s.in.long.Active() && s.in.parser.Missing(len(s.in.input)) == 0 {
		s.processInput()
	}
	s.checkInput()
}

const (
	maxInput   = 64 << 10 // bytes of memory that a session keeps for its input
	minDirect  = 16 << 10 // least number of missing bytes that are read directly to their final place
	directStep = 1 << 20  // bytes for which a client gets memory before it has sent as many
)

// checkInput does the last part of Input.
func (s *Session) checkInput() {
	s.startLong()
	if len(s.in.input)+s.in.long.Arrived() > s.inputLimit() {
		s.shared.Counters.InputTooLong.Add(1)
		s.shared.Log.Warn("closing client that reached the query buffer limit", "client", s.id, "addr", s.peer.Addr)
		s.Abort()
	}
	s.delayOutput()
	s.publish()
}

func (s *Session) processInput() {
	if len(s.in.input) == 0 || s.in.long.Active() || s.Waiting() {
		return
	}
	rest := s.process(s.in.input)
	s.in.input = s.in.input[:copy(s.in.input, rest)]
	if len(s.in.input) == 0 && cap(s.in.input) >= maxInput {
		buffers.Put(s.in.input)
		s.in.input = nil
	}
}
