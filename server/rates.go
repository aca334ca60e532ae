package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// This file measures how much there is to do per second, for INFO.

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

// Sample implements session.Host.
func (srv *Server) Sample(now int64) {
	srv.rates.sample(srv, now)
	srv.sessions.SampleDue.Store(srv.rates.due.Load())
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
	for s := range srv.sessions.CommandStats.All() {
		n += s.Nanos.Load()
	}
	return time.Duration(n)
}

// commandCalls returns how many commands have been executed.
func (srv *Server) commandCalls() int64 {
	n := int64(0)
	for s := range srv.sessions.CommandStats.All() {
		n += s.Calls.Load()
	}
	return n
}
