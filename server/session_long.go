package server

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/buffers"
)

// A long argument at the end of a command, as most long values are, is received into memory of its own, of its size.
// A command that stores it keeps that memory, and the memory of the value that it replaces receives the next one.

// minLong is the length in bytes from which on an argument gets memory of its own. Memory is given in whole pages, of
// which a shorter one would waste more.
const minLong = 64 << 10

const (
	// longPart is the size in bytes of the pieces in which the beginning of a very long argument is received,
	longPart = 4 << 20
	// which is the part of it after which it gets memory of its size.
	longShare = 4
)

// longArg is the last argument of a command that is incomplete. What comes before it is Session.input.
//
// What a client only claims that it will send gets no memory. So one of more than directStep bytes is received into
// parts until a quarter of it is there. Then it gets memory of its size, in which the rest is received at its place,
// and to which the parts are moved meanwhile, one with each piece that comes: to move hundreds of megabytes at once
// would hold up everybody.
type longArg struct {
	// what has arrived behind the parts; if own is set all that has, of which the parts are still to be copied
	b     []byte
	parts [][]byte // of longPart bytes each
	own   bool     // b has room for all of it
	size  int      // in bytes; 0 if there is no such argument
	end   int      // how many of the two bytes behind it have arrived
}

// arrived returns how many bytes of it have.
func (l *longArg) arrived() int {
	if l.own {
		return len(l.b)
	}
	return len(l.parts)*longPart + len(l.b)
}

// memory returns how many bytes it takes.
func (l *longArg) memory() int { return len(l.parts)*longPart + cap(l.b) }

// room returns where the next bytes of the argument should be read to.
func (l *longArg) room() []byte {
	if l.own {
		return l.b[len(l.b):l.size]
	}
	return l.b[len(l.b):min(longPart, l.size-len(l.parts)*longPart)]
}

// received notes that n bytes are in the room.
func (l *longArg) received(n int) {
	l.b = l.b[:len(l.b)+n]
	switch {
	case l.own:
		l.movePart()
	case len(l.b) == longPart:
		l.parts = append(l.parts, l.b)
		if had := len(l.parts) * longPart; longShare*had < l.size {
			l.b = buffers.Get(longPart)
		} else {
			l.b, l.own = buffers.GetFitting(l.size)[:had], true
		}
	}
}

// movePart copies a part to its place, if there is one.
func (l *longArg) movePart() {
	i := len(l.parts) - 1
	if i < 0 {
		return
	}
	copy(l.b[i*longPart:], l.parts[i][:longPart])
	buffers.Put(l.parts[i])
	l.parts[i] = nil
	l.parts = l.parts[:i]
}

// take takes those of the bytes that belong to it, and returns the others.
func (l *longArg) take(b []byte) []byte {
	for len(b) > 0 && l.arrived() < l.size {
		n := copy(l.room(), b)
		l.received(n)
		b = b[n:]
	}
	return b
}

// whole returns it, once all has arrived.
func (l *longArg) whole() []byte {
	for len(l.parts) > 0 {
		l.movePart()
	}
	return l.b
}

// ownedArg is a long argument of the command that runs, which may keep its memory, and what has become of others.
type ownedArg struct {
	b     []byte         // nil if there is none, or once a command has kept it
	kept  []*engine.Loan // those that were kept, of which the session is a reader until the commands have been logged
	spare [][]byte       // memory of queued commands, which others may use when they have been logged
	bulky bool           // there was one in the last input
}

// startLong has the last argument of the incomplete command in input received into memory of its own if it is long.
func (s *Session) startLong() {
	if s.long.size > 0 || s.closing || s.waiting() {
		return // the input need not be what the parser has seen
	}
	start, size, ok := s.parser.Last()
	arrived := len(s.input) - start
	if !ok || size < minLong || arrived >= size {
		return
	}
	s.long.own = size <= max(directStep, longShare*arrived)
	switch {
	case s.long.own:
		s.long.b = buffers.GetFitting(size)
	case arrived < directStep:
		return
	default:
		s.long.b = buffers.Get(longPart)
	}
	s.long.size = size
	s.long.take(s.input[start:])
	if s.input = s.input[:start]; cap(s.input) >= maxInput && start <= maxInput/2 {
		head := append([]byte(nil), s.input...)
		buffers.Put(s.input)
		s.input = head
	}
}

// receiveLong takes the bytes of b that belong to the long argument and what ends it, has the command executed once
// it is complete, and returns the other bytes.
func (s *Session) receiveLong(b []byte) []byte {
	b = s.long.take(b)
	n := min(len(b), 2-s.long.end) // whatever they are: see resp.Parser
	s.long.end, b = s.long.end+n, b[n:]
	if s.long.end < 2 {
		return b
	}
	long := s.long.whole()
	s.long = longArg{}
	s.owned.b, s.owned.bulky = long, true

	ahead := lookaheads.Get().(*lookahead)
	args := s.parser.Join(s.input, long, ahead.args)
	p := parsedCommand{args: args, size: len(s.input)}
	p.cmd, p.container = s.srv.table.Lookup(args)
	ahead.commands, ahead.hints, ahead.more, ahead.err = append(ahead.commands[:0], p), ahead.hints[:0], false, nil
	s.ahead = ahead
	if rest := s.process(s.input); len(rest) > 0 { // it must wait its turn
		s.owned.b = nil
		s.input = append(append(buffers.Grow(s.input, len(long)+2), long...), "\r\n"...)
		buffers.Put(long)
		return b
	}
	s.input = s.input[:0]
	if s.owned.b != nil {
		buffers.Put(s.owned.b)
		s.owned.b = nil
	}
	return b
}

// MayKeep implements Client.
func (s *Session) MayKeep(arg []byte) bool {
	return s.owned.b != nil && len(arg) == len(s.owned.b) && &arg[0] == &s.owned.b[0]
}

// Kept implements Client. The argument stays as it is until the command has been logged.
func (s *Session) Kept(g *engine.Guard, e *engine.Entry, old []byte) {
	_, loan := g.Lend(e)
	s.owned.kept = append(s.owned.kept, loan)
	s.owned.b = nil
	buffers.Put(old)
}

// runQueued calls run for a queued command, which may keep long, its last argument, if that is not nil.
func (s *Session) runQueued(c *command.Ctx, long []byte) {
	s.owned.b = long
	s.runMonitored(c)
	if s.owned.b != nil {
		s.owned.spare, s.owned.b = append(s.owned.spare, s.owned.b), nil
	}
}

// releaseOwned tells that nobody looks at the arguments of commands any more.
func (s *Session) releaseOwned() {
	for _, loan := range s.owned.kept {
		loan.Return()
	}
	for _, b := range s.owned.spare {
		buffers.Put(b)
	}
	clear(s.owned.kept)
	clear(s.owned.spare)
	s.owned.kept, s.owned.spare = s.owned.kept[:0], s.owned.spare[:0]
}
