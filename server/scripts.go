package server

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/scripts"
)

// This file has the methods of the server that package internal/commands/scripts calls.

// Scripts returns the scripts and functions.
func (srv *Server) Scripts() *scripts.Scripts { return srv.scripts }

// WriteRestriction implements scripts.Host.
func (srv *Server) WriteRestriction(c *command.Ctx) command.Error {
	if !srv.sessions.Restricted.Load() || c.Origin.In(command.Accepted) || c.G.Logged() {
		return ""
	}
	return srv.Restriction(c.Cmd, c.Cmd.Flags, true)
}

// IsStale implements scripts.Host.
func (srv *Server) IsStale(c *command.Ctx) bool {
	return srv.sessions.Restricted.Load() && !c.Origin.In(command.Accepted) &&
		srv.Restriction(c.Cmd, c.Cmd.Flags&^command.Stale, false) == command.ErrMasterDown
}

// relieve lets other goroutines continue the event loops that are inside a session: the session that calls it, if
// one does, and those that wait for it.
func (srv *Server) relieve() {
	if srv.loops != nil {
		srv.loops.Relieve()
	}
}

// startScripts prepares the server for scripts.
func (srv *Server) startScripts() {
	srv.scripts = scripts.New(scripts.Options{
		Keyspace: srv.ks, Config: srv.config, Log: srv.log,
		Relieve: srv.relieve,
		Resume: func() {
			if srv.loops != nil {
				srv.loops.Resume()
			}
		},
	})
}
