package session

import (
	"bytes"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/scripting"
)

// This file executes the commands that scripts call. Scripts themselves are package internal/commands/scripts.

// scriptCaller executes the commands that scripts and functions of a session call.
type scriptCaller struct {
	scripts.Limits
	wrote bool // the script has called a command that may write
	// failure is the error, without its line end, of the last command that failed. If the script replies with it, it
	// is not counted again.
	failure []byte
	db      int // the session's database when the script began
	ctx     command.Ctx
	w       resp.Writer // takes one reply at a time
}

// BeginScript implements scripts.Client.
func (s *Session) BeginScript(c *command.Ctx, l scripts.Limits) scripting.Host {
	if s.script == nil {
		s.script = new(scriptCaller)
	}
	h := s.script
	h.Limits, h.wrote, h.db, h.failure = l, false, s.db, h.failure[:0]
	h.ctx = command.Ctx{W: &h.w, G: c.G, Client: s, Host: s.ctx.Host, NoBlock: true, Origin: c.Origin | command.FromScript,
		Micros: s.shared.Keyspace.Clock().Now().UnixMicro()}
	return h
}

// EndScript implements scripts.Client.
func (s *Session) EndScript() {
	s.db = s.script.db
	if cap(s.script.w.Buf) > keepBuffer {
		s.script = nil
	}
}

// Call implements scripting.Host.
func (h *scriptCaller) Call(args [][]byte, proto int) []byte {
	c := &h.ctx
	s := sessionOf(c)
	h.w.Buf, h.w.Proto = h.w.Buf[:0], proto
	cmd, _ := s.shared.Table.Lookup(args)
	if e := s.admit(command.FromScript, cmd, nil, args); e != "" {
		if cmd != nil {
			s.shared.CommandStats.Of(cmd).Rejected.Add(1)
		}
		s.shared.Counters.Errors.Count([]byte(e))
		c.Err(e)
		h.noteFailure()
		return h.w.Buf
	}
	c.Cmd, c.Args, c.DB = cmd, args, s.db
	s.runMonitored(c)
	if s.modes.tracking.On() {
		s.rememberKeys(cmd, args)
	}
	h.noteFailure()
	return h.w.Buf
}

// noteFailure remembers the reply if it is an error, which has been counted.
func (h *scriptCaller) noteFailure() {
	if b := h.w.Buf; len(b) > 0 && b[0] == '-' {
		h.failure = append(h.failure[:0], bytes.TrimRight(b[1:], "\r\n")...)
	}
}

// passesOn reports whether the error that a script replies with is that of a command that it has called.
func (s *Session) passesOn(cmd *command.Command, failure []byte) bool {
	return cmd.Script != nil && s.script != nil && len(s.script.failure) > 0 && bytes.HasPrefix(failure, s.script.failure)
}

// Check implements scripting.Host.
func (h *scriptCaller) Check(args [][]byte) (allowed bool, wrong string) {
	cmd, _ := sharedOf(&h.ctx).Table.Lookup(args)
	switch {
	case cmd == nil:
		return false, scripting.UnknownToCheck
	case !cmd.ArityOK(len(args)):
		return false, scripting.WrongArityToCheck
	}
	return sessionOf(&h.ctx).check(cmd, args).Reason == acl.Allowed, ""
}

// mayWrite reports whether the script may call a command that writes: it must not have been killed. After that it
// cannot be killed.
func (h *scriptCaller) mayWrite() bool {
	if !h.wrote {
		h.wrote = sharedOf(&h.ctx).Scripts.MayWrite()
	}
	return h.wrote
}

// Debugging implements scripts.Client.
func (s *Session) Debugging() bool { return s.modes.debugging }

// SetDebugging implements scripts.Client.
func (s *Session) SetDebugging(yes bool) { s.modes.debugging = yes }
