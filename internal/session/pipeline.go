package session

import (
	"bytes"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file executes the commands of a client: it parses several, fetches the memory that they will use, and
// executes them one after the other.

// maxAhead is how many commands are parsed before they are executed.
const maxAhead = 16

// pipeline is the position of a session among the commands that it has parsed. It belongs to the goroutine of the
// session's transport.
type pipeline struct {
	ahead     *lookahead       // the commands that prepare has parsed for Input
	next      *command.Command // the command after the one that is executed; nil if it is not known
	depth     int              // number of commands in the last batch, at most maxAhead
	executing int              // bytes of the command that is being executed
}

// prepare parses the next Input, unless it has done so already or earlier input is left. If the input is a single
// command, prepare appends hints for the memory that the command will use. It executes nothing. The next call must
// be Input.
func (s *Session) prepare(b []byte, hints []engine.Hint) []engine.Hint {
	if s.pipeline.ahead != nil || len(s.in.input) > 0 || s.Waiting() || s.closing || !s.authenticated.Load() {
		return hints
	}
	s.in.parser.MaxBulk = s.shared.MaxBulk()
	s.pipeline.ahead = lookaheads.Get().(*lookahead)
	s.parseAhead(s.pipeline.ahead, b)
	if len(s.pipeline.ahead.commands) != 1 {
		return hints // process fetches the memory for a pipeline
	}
	return append(hints, s.pipeline.ahead.hints...)
}

// lookahead is a stretch of parsed commands that are about to be executed.
type lookahead struct {
	commands []parsedCommand
	args     [][]byte      // of all commands
	used     int           // their highest number since it was taken
	hints    []engine.Hint // the memory that the commands will use
	template resp.Template // of the commands that are being parsed

	more bool  // there may be another command after them
	err  error // a violation of the protocol after them
}

// parsedCommand is a parsed command with its entry of the table.
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
	fewArgs  = 32 * maxAhead // initial room of a lookahead
	mostArgs = 1 << 14       // room that it keeps after a longer batch
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
	defer s.endCommands() // before ahead, which has the arguments, is given back
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

// warm fetches the memory that several commands will use.
func (s *Session) warm(ahead *lookahead) {
	if len(ahead.hints) > 1 && s.shared.Scripts.Busy() == "" {
		s.shared.Keyspace.TryWarm(s.db, ahead.hints)
	}
}

// executeAhead executes the parsed commands, which are at the start of b. It returns the rest of b, and false if the
// rest must not be executed now, because the session waits or the connection ends.
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

// executeNext executes the first of some commands. It reports false if the command must wait.
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

// endCommands releases the arguments of executed commands, and the state that was kept for them.
func (s *Session) endCommands() {
	s.pipeline.next, s.fetching.behind = nil, nil
	if s.modes.subs.Publishing() {
		s.modes.subs.EndPublishing()
	}
	s.flushCalls()
	s.forwarding.each(Forwarder.Flush)
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
	var last *command.Command // the last one found, with the name that the client used; the template's, if there is one
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
			p.cmd = last // pipelines often repeat a command
			ahead.template.Learn(b, n, args)
		default:
			called := args[0] // lookup replaces it if the command is renamed
			p.cmd, p.container = s.shared.Table.Lookup(args)
			if p.cmd != nil && p.cmd.Parent == nil && p.cmd.Subs == nil && &called[0] == &args[0][0] {
				last, name = p.cmd, called
				ahead.template.Learn(b, n, args)
			}
		}
		switch used += len(args); {
		case used <= cap(ahead.args):
		case len(args) <= mostArgs && cap(args) > cap(ahead.args):
			ahead.args, used = args, len(args) // they did not fit; the next commands will
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
			break // the next one may be as long, and then has all the room
		}
	}
	ahead.more, ahead.err = true, nil
}
