package server

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
)

// This file keeps the memory that data takes within maxmemory: beyond it keys are evicted, values leave memory, or commands
// are refused. Package session counts what clients take.

// eviction is what the server has for both limits, in bytes; 0 is none.
type eviction struct {
	tiering sync.Mutex // held by the one who calls SetTier; taken before any shard

	since atomic.Int64 // when the limit was first seen to be exceeded, as Shared.Ticks gives it; 0 if it is not
	total atomic.Int64 // ns for which it was exceeded before
	asked atomic.Int64 // when a checkpoint was last asked for, as Shared.Ticks gives it
	later atomic.Int64 // until when it is of no use to look for what can leave memory, likewise

	mu      sync.Mutex // protects what follows; a leaf in the order of locks
	timer   engine.Timer
	closed  bool
	running sync.WaitGroup // timers that have fired and not finished
}

// setLimits applies the settings about memory.
func (srv *Server) setLimits(set *config.Settings) {
	srv.sessions.Limits.Memory.Store(int64(set.MaxMemory))
	srv.sessions.Limits.Clients.Store(clientLimit(set))
	srv.sessions.Limits.Output.Store(set.OutputLimits.LeastHard())
	srv.ks.SetEviction(set.Eviction)
}

// followMemory applies changes of the settings about memory.
func (srv *Server) followMemory() {
	srv.config.Follow(func(set *config.Settings) {
		srv.setLimits(set)
		srv.evictLater(0) // a guard may be held, under which nothing can be evicted
	}, "maxmemory", "maxmemory-policy", "tier", "maxmemory-samples", "lfu-log-factor", "lfu-decay-time",
		"maxmemory-clients", "client-output-buffer-limit")
}

// tierMemory has values leave memory, or stay in it, as the settings say. No guard may be held.
func (srv *Server) tierMemory() {
	if on := srv.tiers(); on != srv.sessions.Tiered.Load() {
		srv.eviction.tiering.Lock()
		defer srv.eviction.tiering.Unlock()
		on = srv.tiers()
		srv.ks.SetTier(on)
		srv.sessions.Tiered.Store(on)
	}
}

// overMemory reports whether data and clients take more than maxmemory.
func (srv *Server) overMemory() bool {
	limit := srv.sessions.Limits.Memory.Load()
	return limit != 0 && srv.UsedMemory() > limit
}

// evictionCheck is after how many evicted keys the clock is read.
const evictionCheck = 16

// makeRoom evicts keys until data and clients are within maxmemory, but only for as long as
// maxmemory-eviction-tenacity allows; the rest is left to a timer. No guard may be held.
func (srv *Server) makeRoom(now int64) session.Room {
	if srv.evictsElsewhere(srv.config.Get()) {
		return session.RoomEnough
	}
	srv.tierMemory()
	if !srv.overMemory() {
		srv.noteMemory(true)
		return session.RoomEnough
	}
	if srv.sessions.Ticks() < srv.eviction.later.Load() {
		return session.RoomLater
	}
	set := srv.config.Get()
	patience, start, n := evictionTime(set.EvictionTenacity), srv.sessions.Ticks(), 0
	relief := srv.ks.Evict(now, func() bool {
		n++
		return srv.overMemory() && (n%evictionCheck != 0 || srv.sessions.Ticks()-start <= patience)
	})
	if n > 1 {
		srv.sessions.Latency.Add("eviction-cycle", now, srv.sessions.Ticks()-start, set.LatencyMonitorThreshold)
	}
	switch {
	case !srv.overMemory():
		srv.noteMemory(true)
		return session.RoomEnough
	case relief == engine.Unrelieved:
		srv.noteMemory(false)
		return session.RoomNowhere
	}
	srv.noteMemory(false)
	if relief == engine.Relieved { // patience is at its end
		srv.evictLater(0)
		return session.RoomSoon
	}
	if relief == engine.AfterCheckpoint {
		srv.storeSoon()
	}
	srv.eviction.later.Store(srv.sessions.Ticks() + relievedAfter.Nanoseconds())
	srv.evictLater(relievedAfter)
	return session.RoomLater
}

// MakeRoom implements session.Host. Before the journal has been read no keys can be evicted.
func (srv *Server) MakeRoom(now int64) session.Room {
	if !srv.replayed() {
		return session.RoomEnough
	}
	return srv.makeRoom(now)
}

// evictsElsewhere reports whether the server where the data come from evicts, and this one does not.
func (srv *Server) evictsElsewhere(set *config.Settings) bool {
	return set.ImportMode || srv.group.following.Load() || srv.replica.Following() && set.ReplicaIgnoreMaxmemory
}

// evictionTime returns how many ns one command may evict keys for.
func evictionTime(tenacity int) int64 {
	const least = 500 * time.Microsecond
	switch {
	case tenacity >= 100:
		return math.MaxInt64
	case tenacity > 10:
		return int64(float64(least) * math.Pow(1.15, float64(tenacity-10)))
	}
	return int64(least) * int64(tenacity) / 10
}

// noteMemory notes whether the memory is within the limit.
func (srv *Server) noteMemory(within bool) {
	v := &srv.eviction
	switch since := v.since.Load(); {
	case within && since != 0:
		if v.since.CompareAndSwap(since, 0) {
			v.total.Add(srv.sessions.Ticks() - since)
		}
	case !within && since == 0:
		v.since.CompareAndSwap(0, max(srv.sessions.Ticks(), 1))
	}
}

// exceeded returns for how many ns the limit is exceeded now, and was in all.
func (v *eviction) exceeded(now int64) (current, total int64) {
	if since := v.since.Load(); since != 0 {
		current = now - since
	}
	return current, v.total.Load() + current
}

// relievedAfter is when it is tried again to make room if nothing can go before it is stored: to look for it takes time.
const relievedAfter = 20 * time.Millisecond

// evictLater has a timer go on, after some time, with what makeRoom has not finished.
func (srv *Server) evictLater(after time.Duration) {
	v := &srv.eviction
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.timer != nil || v.closed {
		return
	}
	v.running.Add(1)
	v.timer = srv.ks.Clock().AfterFunc(after, func() {
		defer v.running.Done()
		v.mu.Lock()
		v.timer = nil
		closed := v.closed
		v.mu.Unlock()
		if !closed && srv.replayed() {
			srv.makeRoom(srv.ks.Now())
		}
	})
}

// close stops the timer, and waits for it if it is running.
func (v *eviction) close() {
	v.mu.Lock()
	v.closed = true
	if v.timer != nil && v.timer.Stop() {
		v.running.Done()
	}
	v.mu.Unlock()
	v.running.Wait()
}

// minClientLimit is the least that maxmemory-clients may come to in bytes: with less no client could send the command
// that raises it.
const minClientLimit = 128 << 10

// clientLimit returns maxmemory-clients in bytes.
func clientLimit(set *config.Settings) int64 {
	limit := int64(set.MaxMemoryClients)
	switch {
	case limit == 0:
		return 0
	case limit < 0 && set.MaxMemory == 0:
		return 0
	case limit < 0:
		limit = int64(float64(set.MaxMemory) * float64(-limit) / 100)
	}
	return max(limit, minClientLimit)
}

// tiers reports whether values leave memory.
func (srv *Server) tiers() bool {
	return srv.sessions.Limits.Memory.Load() != 0 && srv.storage.Storage != nil && srv.config.Get().Eviction.Tiers()
}

// storeEvery is after how many ns another checkpoint is asked for, if the one before has not made enough room.
const storeEvery = 100e6

// storeSoon has a checkpoint made, after which values can leave memory. If one is under way it is the next one's turn
// later.
func (srv *Server) storeSoon() {
	v := &srv.eviction
	last, now := v.asked.Load(), srv.sessions.Ticks()
	if now-last >= storeEvery && v.asked.CompareAndSwap(last, now) {
		_ = srv.storage.Begin() // which fails if one is under way
	}
}

// tierUnstored is which part of maxmemory may be journalled before a checkpoint stores it.
const tierUnstored = 8

// checkpointSize returns how long the journal may grow, in bytes, until a checkpoint makes it short again: values can
// leave memory only once they are stored.
func checkpointSize(set *config.Settings) int64 {
	size := int64(set.CheckpointSize)
	if set.MaxMemory != 0 && set.Eviction.Tiers() {
		size = min(size, int64(set.MaxMemory)/tierUnstored)
	}
	return size
}
