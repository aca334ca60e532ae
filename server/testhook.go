package server

import (
	"strconv"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testhook"
)

// This file is what package atomredistest can do to a server: see Options.Hook.

// startHook has the hook asked before each command, if there is one.
func (srv *Server) startHook(h *testhook.Hook) {
	if srv.hook = h; h == nil {
		return
	}
	srv.table = command.BuildTable()
	for _, cmd := range srv.table.ByName {
		fallible(cmd, h)
	}
	h.SetOverdue(srv.overdue)
	h.SetKnown(srv.commandName)
}

// commandName returns the name of the command, or the sub-command, that words call.
func (srv *Server) commandName(words []string) (name string, ok bool) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	if len(args) == 0 || len(args) > 2 {
		return "", false
	}
	cmd, _ := srv.table.LookupEither(args)
	if cmd == nil || len(args) == 2 && cmd.Parent == nil {
		return "", false
	}
	return cmd.Name, true
}

// fallible makes executions of the command fail, and be late, as the hook says, but for those by scripts and other
// commands.
func fallible(cmd *command.Command, h *testhook.Hook) {
	do := cmd.Do
	if do == nil {
		return
	}
	cmd.Do = func(c *command.Ctx) {
		if !c.Origin.In(fromCommand) {
			if reply, fails := h.Failure(hookedCall(cmd, c), sessionOf(c)); fails {
				c.W.Error(reply)
				return
			}
		}
		do(c)
	}
}

// hookedCall is what the hook is told of an execution.
func hookedCall(cmd *command.Command, c *command.Ctx) *testhook.Call {
	return &testhook.Call{
		Command: cmd.Name,
		Key: func(match func(key []byte) bool) bool {
			found := false
			cmd.EachKey(c.Args, func(i int, _ *command.KeySpec) bool {
				found = found || match(c.Args[i])
				return true
			})
			return found
		},
		Client: func(match func(name string) bool) bool {
			s := sessionOf(c)
			return match(s.modes.options.Name) || match(strconv.FormatInt(s.id, 10)) || match(s.peer.Addr)
		},
	}
}

// overdue reports whether a client is blocked although its time is up. Its transport knows, and is about to end that.
func (srv *Server) overdue() bool {
	now := srv.ks.Now()
	for _, s := range srv.clients.all() {
		if w := s.snapshot().wait; w != nil {
			if at := w.deadline.Load(); at != 0 && at <= now {
				return true
			}
		}
	}
	return false
}
