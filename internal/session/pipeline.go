package session

import (
	"bytes"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file is how the commands of a client are executed: several are parsed, the memory that they will use is
// fetched, and they are executed one after the other.

// maxAhead is how many commands are parsed before they are executed.
const maxAhead = 16

// pipeline is where a session is among the commands that it has parsed. It belongs to the goroutine of the session's
// transport.
type pipeline struct {
	ahead     *lookahead       // what prepare has parsed for Input
	next      *command.Command // the command behind the one that is executed; nil if it is not known
	depth     int              // with how many others a command came last, and itself; no more than maxAhead
	executing int              // bytes of the command that is being executed
}

// prepare parses what is about to be the Input, unless it has already or there is some left from before, and appends
// to hints what it will use if it is a single command. It executes nothing. Input must be the next that is called.
func (s *Session) prepare(b []byte, hints []engine.Hint) []engine.Hint {
	if s.pipeline.ahead != nil || len(s.in.input) > 0 || s.Waiting() || s.closing || !s.authenticated.Load() {
		return hints
	}
	s.in.parser.MaxBulk = s.shared.MaxBulk()
	s.pipeline.ahead = lookaheads.Get().(*lookahead)
	s.parseAhead(s.pipeline.ahead, b)
	if len(s.pipeline.ahead.commands) != 1 {
		return hints // process sees to a pipeline
	}
	return append(hints, s.pipeline.ahead.hints...)
}

// lookahead is a stretch of parsed commands that are about to be executed.
type lookahead struct {
	commands []parsedCommand
	args     [][]byte      // of all commands
	used     int           // how many of them there were at most since it was taken
	hints    []engine.Hint // what the commands will use
	template resp.Template // of the commands that are being parsed

	more bool  // there may be another command behind them
	err  error // a violation of the protocol behind them
}

// parsedCommand is one command as the table and the parser have it.
type parsedCommand struct {
	cmd, container *command.Command
	args           [][]byte
	size           int // in bytes
}

// lookaheads are shared by all sessions: one is needed only while input is processed.
var lookaheads = sync.Pool{New: func() any {
	return &lookahead{args: make([][]byte, 0, fewArgs)}
}}

const (
	fewArgs  = 32 * maxAhead // that a lookahead has room for from the first
	mostArgs = 1 << 14       // that it keeps room for once there were more
)

// giveBack returns a lookahead to the pool, without references to many arguments, so that their memory can be freed.
func (ahead *lookahead) giveBack() {
	if ahead.used > fewArgs {
		clear(ahead.args[fewArgs:ahead.used])
	}
	ahead.used = 0
	lookaheads.Put(ahead)
}

// process executes the commands at the start of b and returns the rest of it.
func (s *Session) process(b []byte) []byte {
	ahead := s.beginPipeline(b)
	defer ahead.giveBack()
	defer s.endCommands() // before ahead, in which the arguments lie, is given back
	for len(b) > 0 && !s.closing {
		if !s.authenticated.Load() && s.floodsUnauthenticated() {
			s.Abort()
			return nil
		}
		s.warm(ahead)
		var done bool
		if b, done = s.executeAhead(ahead, b); !done {
			return b
		}
		if ahead.err != nil {
			s.out.Error("ERR " + ahead.err.Error())
			s.closing = true
			return nil
		}
		if !ahead.more {
			break
		}
		s.flushCalls() // before the arguments are overwritten
		s.parseAhead(ahead, b)
	}
	return b
}

// beginPipeline parses the first commands, unless prepare has.
func (s *Session) beginPipeline(b []byte) *lookahead {
	s.flushCalls()
	ahead := s.pipeline.ahead
	if s.pipeline.ahead = nil; ahead == nil {
		ahead = lookaheads.Get().(*lookahead)
		s.parseAhead(ahead, b)
	}
	s.pipeline.depth = len(ahead.commands)
	return ahead
}

// warm has the memory fetched that several commands will use.
func (s *Session) warm(ahead *lookahead) {
	if len(ahead.hints) > 1 && s.shared.Scripts.Busy() == "" {
		s.shared.Keyspace.TryWarm(s.db, ahead.hints)
	}
}

// executeAhead executes the commands that have been parsed, which b begins with. It returns what is left of b, and
// false if what follows must not be executed now: it waits for something, or the connection ends.
func (s *Session) executeAhead(ahead *lookahead, b []byte) (rest []byte, done bool) {
	for i := range ahead.commands {
		if s.shared.Ending.Load() {
			s.endGuard()
			s.closing = true
			return nil, false
		}
		if !s.executeNext(ahead.commands[i:]) {
			s.in.parser.Reset()
			return b, false
		}
		if s.closing {
			return nil, false
		}
		b = b[ahead.commands[i].size:]
		if s.Waiting() {
			s.in.parser.Reset()
			return b, false
		}
	}
	return b, true
}

// executeNext executes the first of some commands. It reports false if it must wait its turn.
func (s *Session) executeNext(commands []parsedCommand) bool {
	p := &commands[0]
	s.pipeline.executing = p.size
	s.pipeline.next, s.fetching.behind = nil, commands[1:]
	if len(commands) > 1 {
		s.pipeline.next = commands[1].cmd
	}
	done := len(p.args) == 0 || s.execute(p.cmd, p.container, p.args)
	s.pipeline.executing = 0
	if s.modes.subs.Publishing() && s.pipeline.next != p.cmd {
		s.modes.subs.EndPublishing()
	}
	if done && len(s.after) > 0 {
		s.runAfter()
	}
	return done
}

// endCommands releases the arguments of executed commands, and what was kept for their sake.
func (s *Session) endCommands() {
	s.pipeline.next, s.fetching.behind = nil, nil
	if s.modes.subs.Publishing() {
		s.modes.subs.EndPublishing()
	}
	s.flushCalls()
	if s.forwarding.to != nil {
		s.forwarding.to.Flush()
	}
	if len(s.in.owned.kept) > 0 || len(s.in.owned.spare) > 0 {
		s.releaseOwned()
	}
}

// parseAhead parses a stretch of commands at the start of b.
func (s *Session) parseAhead(ahead *lookahead, b []byte) {
	depth := maxAhead
	if !s.authenticated.Load() {
		depth = 1 // the limits change with authentication
		s.in.parser.Unauthenticated = s.mustAuthenticate()
	}
	ahead.commands, ahead.hints = ahead.commands[:0], ahead.hints[:0]
	used := 0
	var last *command.Command // the one found last, by the name it was called; the template's, if there is one
	var name []byte
	ahead.template.Forget()
	for len(ahead.commands) < depth {
		room := ahead.args[used:used:cap(ahead.args)]
		args, n, alike := ahead.template.Next(b, room)
		if !alike {
			var err error
			if args, n, err = s.in.parser.Next(b, room); err != nil || n == 0 {
				ahead.more, ahead.err = false, err
				return
			}
		}
		p := parsedCommand{args: args, size: n}
		switch {
		case len(args) == 0:
		case alike:
			p.cmd = last
		case last != nil && bytes.Equal(args[0], name):
			p.cmd = last // pipelines repeat themselves
			ahead.template.Learn(b, n, args)
		default:
			called := args[0] // which lookup replaces if the command is renamed
			p.cmd, p.container = s.shared.Table.Lookup(args)
			if p.cmd != nil && p.cmd.Parent == nil && p.cmd.Subs == nil && &called[0] == &args[0][0] {
				last, name = p.cmd, called
				ahead.template.Learn(b, n, args)
			}
		}
		switch used += len(args); {
		case used <= cap(ahead.args):
		case len(args) <= mostArgs && cap(args) > cap(ahead.args):
			ahead.args, used = args, len(args) // which did not fit: the next will
		default:
			used = cap(ahead.args)
		}
		ahead.used = max(ahead.used, used)
		if p.cmd != nil && len(args) > 1 && len(ahead.hints) < command.MaxHints {
			ahead.hints = p.cmd.AppendHints(ahead.hints, args)
		}
		ahead.commands = append(ahead.commands, p)
		b = b[n:]
		if used > fewArgs {
			break // the next one may be as long, and has the room to itself
		}
	}
	ahead.more, ahead.err = true, nil
}
