package server

import (
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/resp"
)

// received is what a client has sent that has not been executed. It belongs to the goroutine of the session's
// transport.
type received struct {
	parser resp.Parser
	input  []byte // bytes that do not make a whole command yet, or that wait for the client to be unblocked
	long   longArg
	owned  ownedArg
	taken  int64 // bytes that have come in all
}

// Input takes bytes that the client sent, at time now in ms since 1970, and executes the commands that they complete.
// b is not kept. It returns with how many others a command came last, and itself, but no more than maxAhead.
func (s *Session) Input(b []byte, now int64) (commands int) {
	s.now = now
	s.parser.MaxBulk = s.srv.MaxBulk()
	s.srv.stats.bytesIn.Add(int64(len(b)))
	s.taken += int64(len(b))
	if s.box.filled.Load() {
		s.readMail()
	}
	s.owned.bulky = false
	if s.long.Active() {
		b = s.receiveLong(b)
	}
	switch {
	case len(b) == 0:
	case len(s.input) > 0 || s.waiting():
		s.input = append(buffers.Grow(s.input, len(b)), b...)
		s.processInput()
	default:
		if rest := s.process(b); len(rest) > 0 {
			s.input = append(buffers.Grow(s.input, len(rest)), rest...)
		}
	}
	s.checkInput()
	return s.depth
}

// ReadsAlone reports that the client gets a read of its own, because it is closing or receiving a long argument, or the
// last input had one and the next one may have: the less of that is read before Room can tell where to, the less is
// copied.
func (s *Session) ReadsAlone() bool { return s.closing || s.owned.bulky || len(s.Room()) > 0 }

// Room returns where the next bytes of a long command should be read to, so that they need not be moved; nil if there
// is no such command. Received tells how many there are.
func (s *Session) Room() []byte {
	if room := s.long.Room(); len(room) > 0 {
		return room
	}
	n := s.parser.Missing(len(s.input))
	if n < minDirect || s.long.Active() || s.waiting() {
		return nil
	}
	// What the client claims it will send gets memory as it does.
	n = min(n, max(directStep, len(s.input)))
	s.input = buffers.Grow(s.input, n)
	return s.input[len(s.input) : len(s.input)+n]
}

// Received is Input for n bytes that were read to Room.
func (s *Session) Received(n int, now int64) {
	s.now = now
	s.srv.stats.bytesIn.Add(int64(n))
	s.taken += int64(n)
	if s.long.Active() {
		s.long.Received(n)
	} else {
		s.input = s.input[:len(s.input)+n]
	}
	if s.box.filled.Load() {
		s.readMail()
	}
	if !s.long.Active() && s.parser.Missing(len(s.input)) == 0 {
		s.processInput()
	}
	s.checkInput()
}

const (
	maxInput   = 64 << 10 // bytes of memory that a session keeps for its input
	minDirect  = 16 << 10 // bytes that must be missing for them to be read to where they stay
	directStep = 1 << 20  // bytes that a client gets room for before it has sent that much
)

// checkInput ends what Input does.
func (s *Session) checkInput() {
	s.startLong()
	if len(s.input)+s.long.Arrived() > s.inputLimit() {
		s.srv.stats.inputTooLong.Add(1)
		s.srv.log.Warn("closing client that reached the query buffer limit", "client", s.id, "addr", s.peer.Addr)
		s.Abort()
	}
	s.delayOutput()
	s.publish()
}

func (s *Session) processInput() {
	if len(s.input) == 0 || s.long.Active() || s.waiting() {
		return
	}
	rest := s.process(s.input)
	s.input = s.input[:copy(s.input, rest)]
	if len(s.input) == 0 && cap(s.input) >= maxInput {
		buffers.Put(s.input)
		s.input = nil
	}
}
