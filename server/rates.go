package server

import (
	"time"

	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/internal/transport"
)

// This file counts the server's work, for INFO.

// Sample implements session.Host.
func (srv *Server) Sample(now int64) {
	if srv.rates.Due(now) {
		srv.peakMemory.See(srv.UsedMemory(), now)
		srv.rates.Add(now, srv.totals())
	}
	srv.sessions.SampleDue.Store(srv.rates.Next())
}

func (srv *Server) totals() stats.Totals {
	s := &srv.stats
	return stats.Totals{Commands: srv.sessions.CommandStats.Totals().Calls, Rounds: transport.Sum(s.loops).Rounds,
		In: srv.bytesIn(), Out: srv.bytesOut(),
		ReplIn: srv.replica.Received.Load(), ReplOut: srv.followed.Sent.Load(), Loops: srv.loopTime()}
}

// bytesIn returns how many bytes have been received from clients and masters.
func (srv *Server) bytesIn() int64 {
	return srv.sessions.Counters.BytesIn.Load() + srv.replica.Received.Load()
}

// bytesOut returns how many bytes have been sent.
func (srv *Server) bytesOut() int64 {
	s := &srv.stats
	return s.goroutines.Sent.Load() + transport.Sum(s.loops).Sent + srv.doors.Sent.Load()
}

// loopTime returns the processor time of event loops since the last ResetStats; 0 without any.
func (srv *Server) loopTime() time.Duration {
	if srv.loops == nil {
		return 0
	}
	return srv.loops.ProcessorTime() - time.Duration(srv.stats.loopsBefore.Load())
}
