package session

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// This file has the limits on a client's input, output and idle time.

// outputLimit returns the limit on the output that waits for the client. Any goroutine may call it.
func (s *Session) outputLimit() config.OutputLimit {
	set := s.shared.Config.Get()
	if s.modes.follower.Following() {
		return set.Clients.OutputLimits.Replica
	}
	if s.Subscribed() {
		return set.Clients.OutputLimits.PubSub
	}
	return set.Clients.OutputLimits.Normal
}

// Limits in bytes for a client that has not authenticated; resp.Parser limits its arguments.
const (
	// unauthenticatedOutput limits the replies that wait for it. Redis has the same limit: a buffer of 16 KiB, and 1
	// KiB more.
	unauthenticatedOutput = 17 << 10
	// unauthenticatedInput limits its input that has not been executed, usually a part of a command. While clients
	// are paused the input can have more commands, so the limit is unauthenticatedPaused, which Redis always uses.
	unauthenticatedInput  = 64 << 10
	unauthenticatedPaused = 1 << 20
)

// floodsUnauthenticated reports whether the client must be closed because it has not authenticated and leaves its replies
// unread.
func (s *Session) floodsUnauthenticated() bool {
	if s.out.Len() <= unauthenticatedOutput || !s.mustAuthenticate() {
		return false
	}
	s.shared.Log.Warn("closing client that has not authenticated and does not read its output", "client", s.id, "addr",
		s.peer.Addr, "bytes", s.out.Len())
	return true
}

// inputLimit returns how many bytes of input the session may hold.
func (s *Session) inputLimit() int {
	limit := s.shared.Config.Get().Clients.QueryBufferLimit
	if !s.authenticated.Load() && s.mustAuthenticate() {
		most := unauthenticatedInput
		if s.Waiting() {
			most = unauthenticatedPaused
		}
		limit = min(limit, most)
	}
	return limit
}

// Subscribed reports whether the client has subscriptions, as of its last batch of commands. Any goroutine may call it.
func (s *Session) Subscribed() bool {
	s.info.Lock()
	defer s.info.Unlock()
	return s.infoData.Subscriptions() > 0
}

// overLimit reports whether the client must be closed because too much output waits for it. extra is the number of
// bytes that are about to be added; if it is 0 the session's own output is counted, and only the session's transport
// may call it.
func (s *Session) overLimit(extra int) bool {
	sh := s.shared
	size := extra
	if extra == 0 {
		size = s.unsent()
	}
	if int64(size) <= sh.Limits.Output.Load() {
		return false // for all classes; overLimit is called for each message to each subscriber
	}
	hard := s.outputLimit().Hard
	if hard == 0 || int64(size) <= hard || s.dying() {
		return false
	}
	sh.Counters.OutputTooLong.Add(1)
	sh.Log.Warn("closing client that does not read its output", "client", s.id, "addr", s.peer.Addr, "bytes", size)
	return true
}

// dying reports whether another goroutine has asked to close the session at once.
func (s *Session) dying() bool {
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	return s.box.mail&mailKill != 0
}

// GiveUp reports whether the connection must be closed although output waits for the client; see overLimit.
func (s *Session) GiveUp(extra int) bool { return s.overLimit(extra) || s.dying() }

// Expired reports whether the client must be closed because it has been idle for longer than the timeout, or beyond the
// soft limit of its output for too long. Its transport calls it about once a second.
func (s *Session) Expired(now int64) bool {
	sh := s.shared
	sh.sample(now)
	s.resizeReplies(now)
	d := s.snapshot()
	sh.Clients.peaks.note(now, &d)
	set := sh.Config.Get()
	idle := set.Network.Timeout > 0 && !s.Waiting() && !s.modes.subs.Any() && !s.modes.monitor &&
		!s.modes.follower.Following() && (s.forwarding.to == nil || !s.forwarding.to.Busy())
	if idle && now-d.LastActive > int64(set.Network.Timeout)*1000 {
		sh.Log.Debug("closing idle client", "client", s.id, "addr", s.peer.Addr)
		return true
	}
	limit := s.outputLimit()
	switch {
	case limit.Soft == 0 || int64(s.unsent()) <= limit.Soft:
		s.floodedSince = 0
	case s.floodedSince == 0:
		s.floodedSince = now
	case now-s.floodedSince > int64(limit.SoftSeconds)*1000:
		sh.Counters.OutputTooLong.Add(1)
		sh.Log.Warn("closing client that does not read its output", "client", s.id, "addr", s.peer.Addr, "bytes", s.unsent())
		return true
	}
	return false
}

// unsent returns how many bytes wait for the client, including those that a follower will get after its copy.
func (s *Session) unsent() int { return s.out.Len() + command.AsInt(s.modes.follower.Backlog()) }
