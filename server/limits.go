package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// outputLimit returns the limit on the output that waits for the client. Any goroutine may call it.
func (s *Session) outputLimit() config.OutputLimit {
	set := s.srv.config.Get()
	if s.modes.follower.Following() {
		return set.OutputLimits.Replica
	}
	if s.Subscribed() {
		return set.OutputLimits.PubSub
	}
	return set.OutputLimits.Normal
}

// What a client may cost that has not authenticated, in bytes; resp.Parser limits its arguments.
const (
	// unauthenticatedOutput is how many bytes of replies may wait for it. Redis allows as much: a buffer of 16 KiB, and
	// 1 KiB more.
	unauthenticatedOutput = 17 << 10
	// unauthenticatedInput is how much it may have sent that has not been executed, which is part of a command. While
	// clients are paused it can be more than one: then it is unauthenticatedPaused, as always in Redis.
	unauthenticatedInput  = 64 << 10
	unauthenticatedPaused = 1 << 20
)

// floodsUnauthenticated reports whether the client must be closed because it has not authenticated and does not read
// the replies to what it sends.
func (s *Session) floodsUnauthenticated() bool {
	if s.out.Len() <= unauthenticatedOutput || !s.mustAuthenticate() {
		return false
	}
	s.srv.log.Warn("closing client that has not authenticated and does not read its output", "client", s.id, "addr",
		s.peer.Addr, "bytes", s.out.Len())
	return true
}

// inputLimit returns how many bytes of input the session may hold.
func (s *Session) inputLimit() int {
	limit := s.srv.config.Get().QueryBufferLimit
	if !s.authenticated.Load() && s.mustAuthenticate() {
		most := unauthenticatedInput
		if s.waiting() {
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

// overLimit reports whether the client must be closed because too much output waits for it: extra bytes that are on
// their way to the session, or if extra is 0 what the session holds itself, which only the session's transport may ask.
func (s *Session) overLimit(extra int) bool {
	srv := s.srv
	size := extra
	if extra == 0 {
		size = s.unsent()
	}
	if int64(size) <= srv.leastLimit.Load() {
		return false // whatever its class is; this is asked for each message to each subscriber
	}
	hard := s.outputLimit().Hard
	if hard == 0 || int64(size) <= hard || s.dying() {
		return false
	}
	srv.stats.outputTooLong.Add(1)
	srv.log.Warn("closing client that does not read its output", "client", s.id, "addr", s.peer.Addr, "bytes", size)
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
	srv := s.srv
	srv.rates.sample(srv, now)
	s.resizeReplies(now)
	d := s.snapshot()
	srv.clients.peaks.note(now, &d)
	set := srv.config.Get()
	idle := set.Timeout > 0 && s.blocked == nil && s.pausedUntil == 0 && !s.modes.subs.Any() && !s.modes.monitor &&
		!s.modes.follower.Following() && !s.relaying.relay.busy()
	if idle && now-d.LastActive > int64(set.Timeout)*1000 {
		srv.log.Debug("closing idle client", "client", s.id, "addr", s.peer.Addr)
		return true
	}
	limit := s.outputLimit()
	switch {
	case limit.Soft == 0 || int64(s.unsent()) <= limit.Soft:
		s.floodedSince = 0
	case s.floodedSince == 0:
		s.floodedSince = now
	case now-s.floodedSince > int64(limit.SoftSeconds)*1000:
		srv.stats.outputTooLong.Add(1)
		srv.log.Warn("closing client that does not read its output", "client", s.id, "addr", s.peer.Addr, "bytes", s.unsent())
		return true
	}
	return false
}

// unsent returns how many bytes wait for the client, with those that a follower will get when it has a copy.
func (s *Session) unsent() int { return s.out.Len() + command.AsInt(s.modes.follower.Backlog()) }

// refuseClient returns the error with which a new connection is turned away, "" if it is welcome.
func (srv *Server) refuseClient(loopback bool) string {
	open := srv.config.Get().ProtectedMode && !srv.users.Default().User().NeedsPassword()
	return srv.refuse(srv.clients.count.Load(), open && !loopback)
}

// refuse is refuseClient where there are count clients, and protected-mode forbids this one or does not.
func (srv *Server) refuse(count int64, protected bool) string {
	if count >= srv.maxClients() {
		srv.stats.rejected.Add(1)
		return "ERR max number of clients reached"
	}
	srv.stats.connections.Add(1)
	if protected {
		srv.stats.rejected.Add(1)
		return protectedMode
	}
	return ""
}

// reservedFiles are the files that a server needs for itself.
const reservedFiles = 32

// maxClients returns the setting maxclients, or fewer if the process may not open as many sockets.
func (srv *Server) maxClients() int64 {
	n := int64(srv.config.Get().MaxClients)
	if srv.maxFiles > 0 {
		reserved := int64(reservedFiles)
		if srv.shards != nil {
			reserved += srv.maxRaftConnections()
		}
		n = min(n, max(srv.maxFiles-reserved, 1))
	}
	return n
}

// raftConnections is how many connections other servers may have to raft-addr, without those that are for clients. Each
// server of the group has less than ten.
const raftConnections = 512

// maxRaftConnections returns raftConnections, or a quarter of the files that the process may open.
func (srv *Server) maxRaftConnections() int64 {
	if srv.maxFiles > 0 {
		return min(raftConnections, max(srv.maxFiles/4, 1))
	}
	return raftConnections
}

// maxDoorClients returns how many connections all doors may have together.
func (srv *Server) maxDoorClients() int64 {
	most := srv.maxClients()
	if n := int64(srv.config.Get().DoorMaxClients); n > 0 {
		return min(n, most)
	}
	return max(most/2, 1)
}

const protectedMode = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"Until one is set, or protected mode is switched off, only clients on the server's own machine are served: those that connect to a loopback address or to the Unix socket. " +
	"To let others in, give the server a password with the directive requirepass (the safe choice); or, if nobody who is not trusted can reach its port, " +
	"send CONFIG SET protected-mode no from the server's machine, start the server with --protected-mode no, or put protected-mode no into its configuration file."

// rates measures how much there is to do per second. Samples are taken about once a second while there are clients.
type rates struct {
	due atomic.Int64 // when the next sample is to be taken, in ms since 1970

	mu   sync.Mutex // protects what follows
	at   int64      // of the last sample
	then totals
	last throughput
}

// sample takes a sample if one is due.
func (r *rates) sample(srv *Server, now int64) {
	if due := r.due.Load(); now < due || !r.due.CompareAndSwap(due, now+int64(time.Second/time.Millisecond)) {
		return
	}
	srv.peakMemory.See(srv.UsedMemory())
	n := srv.totals()
	r.mu.Lock()
	defer r.mu.Unlock()
	// The first sample has nothing to compare with, nor has one after CONFIG RESETSTAT or a leap of the clock.
	if ms := now - r.at; r.at != 0 && ms > 0 && n.since(&r.then) {
		perSecond := func(now, then int64) float64 { return float64(now-then) * 1000 / float64(ms) }
		r.last = throughput{
			commands: int64(perSecond(n.commands, r.then.commands)),
			rounds:   int64(perSecond(n.rounds, r.then.rounds)),
			in:       perSecond(n.in, r.then.in) / 1024,
			out:      perSecond(n.out, r.then.out) / 1024,
			replIn:   perSecond(n.replIn, r.then.replIn) / 1024,
			replOut:  perSecond(n.replOut, r.then.replOut) / 1024,
		}
		if rounds := n.rounds - r.then.rounds; rounds > 0 {
			r.last.roundMicros = (n.loops - r.then.loops).Microseconds() / rounds
		}
	}
	r.at, r.then = now, n
}

// totals are counters as they were at some time.
type totals struct {
	commands, rounds, in, out, replIn, replOut int64
	loops                                      time.Duration
}

func (srv *Server) totals() totals {
	s := &srv.stats
	return totals{commands: srv.commandCalls(), rounds: s.loops.Rounds.Load(), in: srv.bytesIn(), out: srv.bytesOut(),
		replIn: srv.replica.Received.Load(), replOut: srv.followed.Sent.Load(), loops: srv.loopTime()}
}

// since reports whether then was earlier, and nothing was set to zero in between.
func (n *totals) since(then *totals) bool {
	return n.commands >= then.commands && n.rounds >= then.rounds && n.in >= then.in && n.out >= then.out &&
		n.replIn >= then.replIn && n.replOut >= then.replOut && n.loops >= then.loops
}

// throughput returns what was done between the last two samples.
func (r *rates) throughput() throughput {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// throughput is per second.
type throughput struct {
	commands, rounds         int64
	in, out, replIn, replOut float64 // kilobytes
	roundMicros              int64   // processor time of a round of an event loop
}

// loopTime returns how long event loops have used processors since the last ResetStats; 0 without any.
func (srv *Server) loopTime() time.Duration {
	if srv.loops == nil {
		return 0
	}
	return srv.loops.ProcessorTime() - time.Duration(srv.stats.loopsBefore.Load())
}

// commandTime returns how long commands took.
func (srv *Server) commandTime() time.Duration {
	n := int64(0)
	for s := range srv.commandStats.All() {
		n += s.Nanos.Load()
	}
	return time.Duration(n)
}

// commandCalls returns how many commands have been executed.
func (srv *Server) commandCalls() int64 {
	n := int64(0)
	for s := range srv.commandStats.All() {
		n += s.Calls.Load()
	}
	return n
}
