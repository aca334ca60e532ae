package server

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// This file keeps the memory that data and clients take within limits: maxmemory, beyond which keys are evicted or
// commands refused, and maxmemory-clients, beyond which clients are disconnected.

const errOOM command.Error = "OOM command not allowed when used memory > 'maxmemory'."

// eviction is what the server has for both limits, in bytes; 0 is none.
type eviction struct {
	limit       atomic.Int64
	clientLimit atomic.Int64

	tiering sync.Mutex // held by the one who calls SetTier; taken before any shard

	since   atomic.Int64 // when the limit was first seen to be exceeded, as Server.ticks gives it; 0 if it is not
	total   atomic.Int64 // ns for which it was exceeded before
	asked   atomic.Int64 // when a checkpoint was last asked for, as Server.ticks gives it
	later   atomic.Int64 // until when it is of no use to look for what can leave memory, likewise
	clients atomic.Int64 // how many were disconnected

	mu      sync.Mutex // protects what follows; a leaf in the order of locks
	timer   engine.Timer
	closed  bool
	running sync.WaitGroup // timers that have fired and not finished
}

// evictionResult is what makeRoom came to.
type evictionResult uint8

const (
	roomEnough  evictionResult = iota
	roomSoon                   // keys are still to be evicted, which goes on
	roomLater                  // nothing can go before it is stored
	roomNowhere                // there is nothing to evict
)

// setLimits applies the settings about memory.
func (srv *Server) setLimits(set *config.Settings) {
	srv.eviction.limit.Store(int64(set.MaxMemory))
	srv.eviction.clientLimit.Store(clientLimit(set))
	srv.leastLimit.Store(set.OutputLimits.LeastHard())
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
	if on := srv.tiers(); on != srv.tiered.Load() {
		srv.eviction.tiering.Lock()
		defer srv.eviction.tiering.Unlock()
		on = srv.tiers()
		srv.ks.SetTier(on)
		srv.tiered.Store(on)
	}
}

// UsedMemory returns how many bytes are in use by data and clients: what maxmemory is compared with, and what INFO and
// MEMORY STATS show, so that both speak of the same. What the process takes beside them is no part of it: garbage, the
// journal, the store, and what waits for replicas. Replies that are lent count once for all clients, and
// not at all as long as they are the value of a key, which counts itself.
func (srv *Server) UsedMemory() int64 {
	return srv.ks.UsedMemory() + srv.ks.LentMemory() + srv.clients.memory.Load() - srv.clients.lent.Load()
}

// overMemory reports whether data and clients take more than maxmemory.
func (srv *Server) overMemory() bool {
	limit := srv.eviction.limit.Load()
	return limit != 0 && srv.UsedMemory() > limit
}

// needsMemory reports whether needs says so of a command, or of one of those that EXEC runs.
func (s *Session) needsMemory(cmd *command.Command, args [][]byte,
	needs func(cmd *command.Command, host command.Host, args [][]byte) bool) bool {
	if cmd.RunsQueue {
		return slices.ContainsFunc(s.tx.queue, func(q queuedCommand) bool { return needs(q.cmd, s.srv, q.args) })
	}
	return needs(cmd, s.srv, args)
}

// evictionCheck is after how many evicted keys the clock is read.
const evictionCheck = 16

// makeRoom evicts keys until data and clients are within maxmemory, but only for as long as
// maxmemory-eviction-tenacity allows; the rest is left to a timer. No guard may be held.
func (srv *Server) makeRoom(now int64) evictionResult {
	if srv.evictsElsewhere(srv.config.Get()) {
		return roomEnough
	}
	srv.tierMemory()
	if !srv.overMemory() {
		srv.noteMemory(true)
		return roomEnough
	}
	if srv.ticks() < srv.eviction.later.Load() {
		return roomLater
	}
	set := srv.config.Get()
	patience, start, n := evictionTime(set.EvictionTenacity), srv.ticks(), 0
	relief := srv.ks.Evict(now, func() bool {
		n++
		return srv.overMemory() && (n%evictionCheck != 0 || srv.ticks()-start <= patience)
	})
	if n > 1 {
		srv.latency.Add("eviction-cycle", now, srv.ticks()-start, set.LatencyMonitorThreshold)
	}
	switch {
	case !srv.overMemory():
		srv.noteMemory(true)
		return roomEnough
	case relief == engine.Unrelieved:
		srv.noteMemory(false)
		return roomNowhere
	}
	srv.noteMemory(false)
	if relief == engine.Relieved { // patience is at its end
		srv.evictLater(0)
		return roomSoon
	}
	if relief == engine.AfterCheckpoint {
		srv.storeSoon()
	}
	srv.eviction.later.Store(srv.ticks() + relievedAfter.Nanoseconds())
	srv.evictLater(relievedAfter)
	return roomLater
}

// evictsElsewhere reports whether the server where the data come from evicts, and this one does not.
func (srv *Server) evictsElsewhere(set *config.Settings) bool {
	return set.ImportMode || srv.group.following.Load() || srv.replica.Following() && set.ReplicaIgnoreMaxmemory
}

// excess returns by how much maxmemory is exceeded: at 1 nothing more may come before something has left.
func (srv *Server) excess() float64 {
	limit := srv.eviction.limit.Load()
	return float64(srv.UsedMemory()-limit) / float64(max(limit/tierExcess, 1))
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
			v.total.Add(srv.ticks() - since)
		}
	case !within && since == 0:
		v.since.CompareAndSwap(0, max(srv.ticks(), 1))
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

// countMemory counts the memory of a client, of which d has just been refreshed. s.info is locked.
func (s *Session) countMemory(d *clientInfo) {
	n := int64(unsafe.Sizeof(*s)) + int64(d.Input+d.InputFree+max(d.Output, d.Buffer)) + d.Queued + int64(s.modes.subs.Bytes())
	lent := int64(s.out.Lent())
	if s.modes.follower.Following() {
		n, lent = 0, 0 // as in Redis what waits for replicas does not count: evicted keys would make it more
	}
	if n != d.Memory || lent != d.lent {
		s.srv.clients.lent.Add(lent - d.lent)
		s.srv.clients.memory.Add(n - d.Memory)
		d.Memory, d.lent = n, lent
	}
}

// uncountMemory is countMemory for a client that is gone.
func (s *Session) uncountMemory() {
	s.info.Lock()
	defer s.info.Unlock()
	s.srv.clients.memory.Add(-s.infoData.Memory)
	s.srv.clients.lent.Add(-s.infoData.lent)
	s.infoData.Memory, s.infoData.lent = 0, 0
}

// evictClients disconnects clients until all of them take no more than limit bytes, those that take most first. It
// may be called under a guard.
func (srv *Server) evictClients(limit int64) {
	type client struct {
		s *Session
		d clientInfo
	}
	var all []client
	sum := int64(0)
	for _, s := range srv.clients.all() {
		d := s.snapshot()
		if s.dying() || d.Closing {
			continue // what it has is about to be free
		}
		sum += d.Memory
		if !d.NoEvict && d.Memory > 0 {
			all = append(all, client{s, d})
		}
	}
	slices.SortFunc(all, func(a, b client) int { return cmp.Compare(b.d.Memory, a.d.Memory) })
	for _, c := range all {
		if sum <= limit {
			return
		}
		srv.log.Info("disconnecting a client because clients use more memory than maxmemory-clients allows", "client", c.s.id,
			"addr", c.s.peer.Addr, "bytes", c.d.Memory)
		if w := c.d.wait; w != nil {
			w.waiter.Withdraw() // from now on it takes nothing
		}
		c.s.post(mailKill)
		srv.eviction.clients.Add(1)
		sum -= c.d.Memory
	}
}
