package session

import (
	"net"
	"os"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// This file connects sessions and services; see command.Service.

// tellServices tells the services of a keyspace event that a client has caused.
func (sh *Shared) tellServices(from *origin, class engine.EventClass, event string, db int, key string) {
	for _, s := range sh.Services {
		if s.Events()&class != 0 {
			s.Heard(from.session, from == &from.session.origin, event, db, key)
		}
	}
}

// newStates returns the services' state for a new client.
func (sh *Shared) newStates() []any {
	states := make([]any, len(sh.Services))
	for i, s := range sh.Services {
		states[i] = s.NewClient()
	}
	return states
}

// tellGone tells the services that a client has disconnected.
func (sh *Shared) tellGone(s *Session) {
	for _, service := range sh.Services {
		service.Gone(s)
	}
}

// mustSeeGone reports whether a service must know when the client disconnects.
func (sh *Shared) mustSeeGone(s *Session) bool {
	for _, service := range sh.Services {
		if service.MustSee(s) {
			return true
		}
	}
	return false
}

// State implements command.Client.
func (s *Session) State(id command.ServiceID) any { return s.states[id] }

// After implements command.Client.
func (s *Session) After(fn func(now int64)) { s.after = append(s.after, fn) }

// runAfter calls the functions that a command has registered with After, without a guard.
func (s *Session) runAfter() {
	after := s.after
	s.after = nil
	for _, fn := range after {
		fn(s.now)
	}
}

// Name returns the name that CLIENT SETNAME has given the client.
func (s *Session) Name() string { return s.modes.options.Name }

// Addr returns the address of the client, as CLIENT LIST shows it.
func (s *Session) Addr() string { return s.peer.Addr }

// LocalAddr returns the address that the client has connected to.
func (s *Session) LocalAddr() string { return s.peer.Local }

// HostName returns the host of a client: its address, or for a Unix socket the name of this host.
func (s *Session) HostName() string {
	p := s.peer
	if !p.Unix() {
		if host, _, err := net.SplitHostPort(p.Addr); err == nil {
			return host
		}
	}
	host, _ := os.Hostname() // if the name is unknown it is empty
	return host
}
