package server

import "github.com/atomredis/atomredis/internal/testhook"

// This file is what package atomredistest can do to a server: see Options.Hook.

// startHook has the hook asked before each command, if there is one.
func (srv *Server) startHook(h *testhook.Hook) {
	if srv.hook = h; h == nil {
		return
	}
	srv.table = buildTable()
	for _, cmd := range srv.table.byName {
		cmd.fallible(h)
	}
	h.SetOverdue(srv.overdue)
}

// fallible makes executions of the command fail as the hook says, but for those by scripts and other commands.
func (cmd *Command) fallible(h *testhook.Hook) {
	do := cmd.Do
	if do == nil {
		return
	}
	cmd.Do = func(c *Ctx) {
		if !c.InScript && c.caller == nil {
			if reply, fails := h.Failure(cmd.Name); fails {
				c.W.Error(reply)
				return
			}
		}
		do(c)
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
