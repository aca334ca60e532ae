package session

import (
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/psync"
)

// This file has the methods of a session that packages psync and internal/commands/replication call for a replica.

// followerConn is a session as psync.Client.
type followerConn Session

// Send implements psync.Client.
func (c *followerConn) Send(b []byte) { (*Session)(c).post(0, b) }

// Close implements psync.Client.
func (c *followerConn) Close() { (*Session)(c).Kill() }

// ID implements psync.Client.
func (c *followerConn) ID() int64 { return c.id }

// Addr implements psync.Client.
func (c *followerConn) Addr() string { return c.peer.Addr }

// Following implements replication.Client.
func (s *Session) Following() bool { return s.modes.follower.Following() }

// StartFollowing implements replication.Client.
func (s *Session) StartFollowing(announce bool) {
	s.shared.Followed.StartFollowing(&s.modes.follower, (*followerConn)(s), announce)
}

// GoOn implements replication.Client.
func (s *Session) GoOn(id string, offset int64) bool {
	return s.shared.Followed.GoOn(&s.modes.follower, (*followerConn)(s), id, offset)
}

// Capabilities implements replication.Client.
func (s *Session) Capabilities() *replication.Capabilities { return &s.modes.follower.Capabilities }

// Acknowledge implements replication.Client.
func (s *Session) Acknowledge(offset, synced int64) { s.modes.follower.Acknowledge(offset, synced) }

// Wrote implements replication.Client. Within a transaction its own changes are not in the journal yet.
func (s *Session) Wrote() replication.Written {
	return s.shared.Followed.Wrote(&s.modes.follower, s.guard.Changes(), !s.guard.Logged())
}

// Follower returns the client's state as a replica.
func (s *Session) Follower() *psync.Follower { return &s.modes.follower }
