package session

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/command"
)

// A long argument at the end of a command, as most long values are, is received into memory of its own, of its size.
// A command that stores it keeps that memory, and the memory of the value that it replaces receives the next one.

// minLong is the least length in bytes of an argument that gets memory of its own. Memory is allocated in whole
// pages, so shorter arguments would waste a larger part of it.
const minLong = 64 << 10

// longArg is the last argument of a command that is incomplete. The input before it is received.input. An argument
// of more than directStep bytes gets memory of its full size only when part of it has arrived: see buffers.Incoming.
type longArg struct {
	buffers.Incoming
	end int // how many of the two bytes after it have arrived
}

// ownedArg is a long argument of the running command, whose memory the command may keep, and the state of earlier ones.
type ownedArg struct {
	b     []byte         // nil if there is none, or once a command has kept it
	kept  []*engine.Loan // kept arguments; the session is one of their readers until the commands have been logged
	spare [][]byte       // memory of queued commands, which is reused once they have been logged
	bulky bool           // the last input had a long argument
}

// startLong arranges that the last argument of the incomplete command in input is received into memory of its own,
// if it is long.
func (s *Session) startLong() {
	if s.in.long.Active() || s.closing || s.Waiting() {
		return // the parser may not have seen this input
	}
	start, size, ok := s.in.parser.Last()
	arrived := len(s.in.input) - start
	if !ok || size < minLong || arrived >= size {
		return
	}
	if size > directStep && arrived < directStep {
		return
	}
	s.in.long.Begin(size, max(arrived, directStep/4))
	s.in.long.Take(s.in.input[start:])
	if s.in.input = s.in.input[:start]; cap(s.in.input) >= maxInput && start <= maxInput/2 {
		head := append([]byte(nil), s.in.input...)
		buffers.Put(s.in.input)
		s.in.input = head
	}
}

// receiveLong takes the bytes of b that belong to the long argument and its line end, executes the command once it
// is complete, and returns the other bytes.
func (s *Session) receiveLong(b []byte) []byte {
	b = s.in.long.Take(b)
	n := min(len(b), 2-s.in.long.end) // their values are not checked: see resp.Parser
	s.in.long.end, b = s.in.long.end+n, b[n:]
	if s.in.long.end < 2 {
		return b
	}
	long := s.in.long.Whole()
	s.in.long.end = 0
	s.in.owned.b, s.in.owned.bulky = long, true

	ahead := lookaheads.Get().(*lookahead)
	args := s.in.parser.Join(s.in.input, long, ahead.args)
	p := parsedCommand{args: args, size: len(s.in.input)}
	p.cmd, p.container = s.shared.Table.Lookup(args)
	ahead.commands, ahead.hints, ahead.more, ahead.err = append(ahead.commands[:0], p), ahead.hints[:0], false, nil
	s.pipeline.ahead = ahead
	if rest := s.process(s.in.input); len(rest) > 0 { // the session waits
		s.in.owned.b = nil
		s.in.input = append(append(buffers.Grow(s.in.input, len(long)+2), long...), "\r\n"...)
		buffers.Put(long)
		return b
	}
	s.in.input = s.in.input[:0]
	if s.in.owned.b != nil {
		buffers.Put(s.in.owned.b)
		s.in.owned.b = nil
	}
	return b
}

// MayKeep implements Client.
func (s *Session) MayKeep(arg []byte) bool {
	return s.in.owned.b != nil && len(arg) == len(s.in.owned.b) && &arg[0] == &s.in.owned.b[0]
}

// Kept implements Client. The argument is not changed until the command has been logged.
func (s *Session) Kept(g *engine.Guard, e *engine.Entry, old []byte) {
	_, loan := g.Lend(e)
	s.in.owned.kept = append(s.in.owned.kept, loan)
	s.in.owned.b = nil
	buffers.Put(old)
}

// runQueued calls run for a queued command, which may keep long, its last argument, if that is not nil.
func (s *Session) runQueued(c *command.Ctx, long []byte) {
	s.in.owned.b = long
	s.runMonitored(c)
	if s.in.owned.b != nil {
		s.in.owned.spare, s.in.owned.b = append(s.in.owned.spare, s.in.owned.b), nil
	}
}

// releaseOwned marks the end of all uses of commands' arguments.
func (s *Session) releaseOwned() {
	for _, loan := range s.in.owned.kept {
		loan.Return()
	}
	for _, b := range s.in.owned.spare {
		buffers.Put(b)
	}
	clear(s.in.owned.kept)
	clear(s.in.owned.spare)
	s.in.owned.kept, s.in.owned.spare = s.in.owned.kept[:0], s.in.owned.spare[:0]
}
