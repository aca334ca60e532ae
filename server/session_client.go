package server

import (
	"iter"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/hashes"
)

// This file is the server and the session as the commands of connections see them.

// Role is what clients are told that the server is.
func (srv *Server) Role() string {
	if srv.follows() {
		return "replica"
	}
	return "master"
}

// Clients implements connection.Host.
func (srv *Server) Clients(now int64) iter.Seq[*clients.Info] {
	return func(yield func(*clients.Info) bool) {
		for _, s := range srv.clients.all() {
			if d := s.about(now); !d.Killed && !yield(&d) {
				return
			}
		}
	}
}

// ClientByID implements connection.Host.
func (srv *Server) ClientByID(id, now int64) (info clients.Info, ok bool) {
	s := srv.clients.get(id)
	if s == nil {
		return info, false
	}
	info = s.about(now)
	return info, !info.Killed
}

// Kill implements connection.Host.
func (srv *Server) Kill(by command.Client, f *clients.Filter, now int64) (killed int) {
	for _, s := range srv.clients.all() {
		if d := s.about(now); d.Killed || !f.Matches(&d, now) {
			continue
		}
		s.expel(by)
		if killed++; f.First {
			break
		}
	}
	return killed
}

// Unblock implements connection.Host.
func (srv *Server) Unblock(id int64, withError bool) bool {
	s := srv.clients.get(id)
	if s == nil {
		return false
	}
	// Whoever withdraws the waiter decides how its wait ends: the key that it waits for, its timeout, or we.
	if w := s.snapshot().wait; w == nil || !w.waiter.Withdraw() {
		return false
	}
	if withError {
		s.post(mailError)
	} else {
		s.post(mailUnblocked)
	}
	return true
}

// Pause implements connection.Host.
func (srv *Server) Pause(now, until int64, all bool) { srv.pause.begin(now, until, all) }

// Unpause implements connection.Host.
func (srv *Server) Unpause() { srv.pause.resume() }

// Authenticate implements connection.Client.
func (s *Session) Authenticate(name, password []byte) bool { return s.enter(name, password) }

// Authenticated implements connection.Client.
func (s *Session) Authenticated() bool { return s.authenticated.Load() }

// SetProtocol implements connection.Client.
func (s *Session) SetProtocol(version int) { s.setProto(version) }

// Select implements connection.Client.
func (s *Session) Select(db int) { s.db = db }

// Options implements connection.Client.
func (s *Session) Options() *clients.Options { return &s.modes.options }

// Refresh implements connection.Client.
func (s *Session) Refresh(cmd *command.Command, now int64) clients.Info {
	if s.tx.running == 0 {
		s.lastCmd = cmd
	}
	s.publish()
	return s.about(now)
}

// Reset implements connection.Client.
func (s *Session) Reset() {
	s.Discard()
	s.modes.subs.UnsubscribeAll()
	s.modes.tracking.Stop()
	if s.modes.monitor {
		s.srv.monitors.remove(s)
	}
	s.db = 0
	s.modes.options = clients.Options{Library: s.modes.options.Library, LibraryVersion: s.modes.options.LibraryVersion}
	s.guard.NoTouch, s.guard.SeesExpired, s.modes.debugging = false, false, false
	s.fieldsets = hashes.Fieldsets{}
	s.becomeDefault()
	s.setProto(2)
}

// Fieldsets implements hashes.Client.
func (s *Session) Fieldsets() *hashes.Fieldsets { return &s.fieldsets }

// Quit implements connection.Client.
func (s *Session) Quit() { s.closing = true }
