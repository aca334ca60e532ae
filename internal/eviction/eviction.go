// Package eviction keeps the memory of data and clients within maxmemory: above it, keys are evicted, values are
// moved to the store, or commands are refused. Package session counts the memory of clients and asks for room before
// a command that needs memory.
package eviction

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
)

// Eviction makes room in memory. Any goroutine may call its methods.
type Eviction struct {
	sh *session.Shared
	ks *engine.Keyspace
	// replayed reports whether the journal has been read, so that the data is complete. It is called only while commands are
	// restricted.
	replayed func() bool

	tiering sync.Mutex // held during SetTier; taken before any shard

	// Times are from Shared.Ticks.
	since atomic.Int64 // when the present excess was first seen; 0 within the limit
	total atomic.Int64 // ns of earlier excesses
	asked atomic.Int64 // when a checkpoint was last asked for
	later atomic.Int64 // until this time no more values can leave memory

	mu      sync.Mutex // protects the fields below; a leaf in the order of locks
	timer   engine.Timer
	closed  bool
	running sync.WaitGroup // timers that have fired and not finished
}

// New returns the Eviction of a server, whose sessions share sh. Nothing is evicted before replayed returns true.
func New(sh *session.Shared, replayed func() bool) *Eviction {
	return &Eviction{sh: sh, ks: sh.Keyspace, replayed: replayed}
}

// Apply applies the settings about memory.
func (e *Eviction) Apply(set *config.Settings) {
	e.sh.Limits.Memory.Store(int64(set.Memory.Max))
	e.sh.Limits.Clients.Store(clientLimit(&set.Memory))
	e.sh.Limits.Output.Store(set.Clients.OutputLimits.LeastHard())
	e.ks.SetEviction(set.Memory.Eviction)
}

// Follow applies changes of the settings about memory from now on.
func (e *Eviction) Follow() {
	e.sh.Config.Follow(func(set *config.Settings) {
		e.Apply(set)
		e.Schedule(0) // by a timer, because a guard may be held, under which nothing can be evicted
	}, "maxmemory", "maxmemory-policy", "tier", "maxmemory-samples", "lfu-log-factor", "lfu-decay-time",
		"maxmemory-clients", "client-output-buffer-limit")
}

// MakeRoom implements session.Host: it evicts keys until data and clients are within maxmemory, but only for as long
// as maxmemory-eviction-tenacity allows. A timer continues. No guard may be held. No keys are evicted before the
// journal has been read.
func (e *Eviction) MakeRoom(now int64) session.Room {
	if e.sh.Restricted.Load() && !e.replayed() {
		return session.RoomEnough
	}
	set := e.sh.Config.Get()
	if e.elsewhere(set) {
		return session.RoomEnough
	}
	e.switchTier()
	if !e.over() {
		e.note(true)
		return session.RoomEnough
	}
	if e.sh.Ticks() < e.later.Load() {
		return session.RoomLater
	}
	relief := e.evict(now, set)
	switch {
	case !e.over():
		e.note(true)
		return session.RoomEnough
	case relief == engine.Spared && e.sh.UsedMemory() <= e.sh.Limits.Memory.Load()/4*5: // as in Redis
		e.note(false)
		return session.RoomEnough
	case relief == engine.Unrelieved || relief == engine.Spared:
		e.note(false)
		return session.RoomNowhere
	}
	e.note(false)
	if relief == engine.Relieved { // only the time limit ended it
		e.Schedule(0)
		return session.RoomSoon
	}
	if relief == engine.AfterCheckpoint {
		e.askForCheckpoint()
	}
	e.later.Store(e.sh.Ticks() + retryAfter.Nanoseconds())
	e.Schedule(retryAfter)
	return session.RoomLater
}

// keysPerCheck is the number of evicted keys between readings of the clock.
const keysPerCheck = 16

// evict evicts keys within the time limit of one command.
func (e *Eviction) evict(now int64, set *config.Settings) engine.Relief {
	limit, start, n := timeLimit(set.Memory.EvictionTenacity), e.sh.Ticks(), 0
	relief := e.ks.Evict(now, func() bool {
		n++
		return e.over() && (n%keysPerCheck != 0 || e.sh.Ticks()-start <= limit)
	})
	if n > 1 {
		e.sh.Latency.Add("eviction-cycle", now, e.sh.Ticks()-start, set.Monitoring.LatencyMonitorThreshold)
	}
	return relief
}

// over reports whether data and clients take more than maxmemory.
func (e *Eviction) over() bool {
	limit := e.sh.Limits.Memory.Load()
	return limit != 0 && e.sh.UsedMemory() > limit
}

// elsewhere reports whether the server's master or leader evicts, and not this server.
func (e *Eviction) elsewhere(set *config.Settings) bool {
	return set.Clients.ImportMode || e.sh.Following.Load() || e.sh.Replica.Following() && set.Replication.IgnoreMaxMemory
}

// switchTier lets values leave memory or not, as configured. No guard may be held.
func (e *Eviction) switchTier() {
	if on := e.tiers(); on != e.sh.Tiered.Load() {
		e.tiering.Lock()
		defer e.tiering.Unlock()
		on = e.tiers()
		e.ks.SetTier(on)
		e.sh.Tiered.Store(on)
	}
}

// tiers reports whether values may leave memory.
func (e *Eviction) tiers() bool {
	return e.sh.Limits.Memory.Load() != 0 && e.sh.Storage != nil && e.sh.Config.Get().Memory.Eviction.Tiers()
}

// AwaitRoom waits until there is room for another value. It returns false if nothing can be evicted.
func (e *Eviction) AwaitRoom(ctx context.Context) (ok bool, err error) {
	for e.sh.Limits.Memory.Load() != 0 {
		room := e.MakeRoom(e.ks.Now())
		if room == session.RoomNowhere {
			return false, nil
		}
		if room != session.RoomLater || e.sh.Excess() < 1 {
			break
		}
		select {
		case <-time.After(session.TierPause * time.Millisecond):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return true, nil
}

// note records whether the memory is within the limit.
func (e *Eviction) note(within bool) {
	switch since := e.since.Load(); {
	case within && since != 0:
		if e.since.CompareAndSwap(since, 0) {
			e.total.Add(e.sh.Ticks() - since)
		}
	case !within && since == 0:
		e.since.CompareAndSwap(0, max(e.sh.Ticks(), 1))
	}
}

// Exceeded returns for how many ns the limit has been exceeded without a break, and for how many in all.
func (e *Eviction) Exceeded() (current, total int64) {
	if since := e.since.Load(); since != 0 {
		current = e.sh.Ticks() - since
	}
	return current, e.total.Load() + current
}

// ResetStats sets the total of Exceeded to zero.
func (e *Eviction) ResetStats() { e.total.Store(0) }

// retryAfter is the interval between attempts to make room while values must be stored first: an attempt takes time.
const retryAfter = 20 * time.Millisecond

// Schedule makes a timer call MakeRoom after some time.
func (e *Eviction) Schedule(after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil || e.closed {
		return
	}
	e.running.Add(1)
	e.timer = e.ks.Clock().AfterFunc(after, func() {
		defer e.running.Done()
		e.mu.Lock()
		e.timer = nil
		closed := e.closed
		e.mu.Unlock()
		if !closed {
			e.MakeRoom(e.ks.Now())
		}
	})
}

// Close stops the timer, and waits for it if it is running.
func (e *Eviction) Close() {
	e.mu.Lock()
	e.closed = true
	if e.timer != nil && e.timer.Stop() {
		e.running.Done()
	}
	e.mu.Unlock()
	e.running.Wait()
}

// checkpointInterval is the least time in ns between two checkpoints that are made for more room.
const checkpointInterval = 100e6

// askForCheckpoint begins a checkpoint, after which values can leave memory. If one is under way, the next attempt
// to make room asks again.
func (e *Eviction) askForCheckpoint() {
	last, now := e.asked.Load(), e.sh.Ticks()
	if now-last >= checkpointInterval && e.asked.CompareAndSwap(last, now) {
		_ = e.sh.Storage.Begin() // fails if one is under way
	}
}
