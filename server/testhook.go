package server

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testhook"
)

// This file lets package atomredistest cause failures in a server: see Options.Hook.

// startHook makes the server ask the hook, if there is one, before each command.
func (srv *Server) startHook(h *testhook.Hook) {
	if h == nil {
		return
	}
	srv.table = command.BuildTable()
	srv.sessions.Table, srv.sessions.Hook = srv.table, h
	for _, cmd := range srv.table.ByName {
		session.Fallible(cmd, h)
	}
	h.SetOverdue(srv.sessions.Overdue)
	h.SetKnown(srv.commandName)
}

// commandName returns the server's own name of the command or sub-command that words name.
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
