package session

import (
	"iter"
	"unsafe"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/hashes"
	"github.com/atomredis/atomredis/internal/config"
)

// This file has the methods of the session and of the register that commands about clients call.

// Infos returns the descriptions of all clients, in order of their IDs.
func (r *Register) Infos(now int64) iter.Seq[*clients.Info] {
	return func(yield func(*clients.Info) bool) {
		for _, s := range r.All() {
			if d := s.about(now); !d.Killed && !yield(&d) {
				return
			}
		}
	}
}

// ByID returns the description of one client.
func (r *Register) ByID(id, now int64) (info clients.Info, ok bool) {
	s := r.get(id)
	if s == nil {
		return info, false
	}
	info = s.about(now)
	return info, !info.Killed
}

// Kill disconnects the clients that match the filter, for the client by, and returns how many.
func (r *Register) Kill(by command.Client, f *clients.Filter, now int64) (killed int) {
	for _, s := range r.All() {
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

// Unblock ends the wait of a client, as after a timeout or with an error, and reports whether the client was
// blocked.
func (r *Register) Unblock(id int64, withError bool) bool {
	s := r.get(id)
	if s == nil {
		return false
	}
	// Whichever withdraws the waiter first decides how the wait ends: the key, the timeout, or this call.
	if w := s.snapshot().keyWait; w == nil || !w.waiter.Withdraw() {
		return false
	}
	if withError {
		s.post(mailError)
	} else {
		s.post(mailUnblocked)
	}
	return true
}

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
		s.shared.monitors.remove(s)
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

// Evictable returns the memory of each client that may be disconnected because of maxmemory-clients.
func (r *Register) Evictable() (sizes []int64) {
	for _, s := range r.All() {
		if d := s.snapshot(); !s.dying() && !d.NoEvict {
			sizes = append(sizes, d.Memory)
		}
	}
	return sizes
}

// Size is the size of a session in bytes, without what it points to.
const Size = unsafe.Sizeof(Session{})

// Has implements servercommands.Client.
func (s *Session) Has(a config.Access) bool {
	return a == config.AccessYes || a == config.AccessLocal && !s.forwarded && s.peer.SameMachine()
}

// End implements servercommands.Client.
func (s *Session) End() { s.closing, s.why = true, door.ErrClosed }
