// Package due calls protocols when a deadline of theirs has passed, such as that of a message or task that was
// handed out for some time. The deadlines are in the keys themselves, so they survive a restart; this package only
// knows which key to check next.
package due

import (
	"runtime/debug"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/expiry"
	"github.com/atomredis/atomredis/internal/command"
)

// ID names a key with deadlines: its database and its name.
type ID struct {
	DB  int
	Key string
}

// Schedule knows which item to check when. Its lock is taken last.
type Schedule struct {
	host   command.Host
	look   func(id ID, now int64)
	stored func(e *engine.Entry) (key string, ok bool)

	mu      sync.Mutex
	items   map[ID]*item
	due     expiry.Index[*item]
	timer   engine.Timer // fires at armed; nil without a timer
	armed   int64        // ms since 1970
	closed  bool
	finding bool           // there may be stored items from before the start that the schedule does not know
	arrived bool           // there may be such items of keys that have arrived since then
	calls   int            // of FindStored and FindArrived
	running sync.WaitGroup // timers that will fire or have fired and not finished
}

// item is an ID with a future deadline.
type item struct {
	ID
	earliest int64 // no deadline is earlier; ms since 1970
	slot     int
}

// SetSlot implements expiry.Item.
func (i *item) SetSlot(slot int) { i.slot = slot }

// Slot implements expiry.Item.
func (i *item) Slot() int { return i.slot }

// Start prepares a schedule. look is called, with no guard held, when an item is due. The item is then removed; look
// must note it again if it has further deadlines. stored reports whether an entry has deadlines, and the key of its
// ID.
func (s *Schedule) Start(h command.Host, look func(id ID, now int64), stored func(e *engine.Entry) (key string, ok bool)) {
	s.host, s.look, s.stored = h, look, stored
	s.items = map[ID]*item{}
}

// Close stops the timer and waits for running calls.
func (s *Schedule) Close() {
	s.mu.Lock()
	s.closed = true
	s.disarm()
	s.mu.Unlock()
	s.running.Wait()
}

// Note records that an item will be due at a time, in ms since 1970, or earlier.
func (s *Schedule) Note(id ID, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[id]
	if i == nil {
		i = &item{ID: id, earliest: at}
		s.items[id] = i
	}
	i.earliest = min(i.earliest, at)
	s.due.Set(i, i.earliest)
	s.arm()
}

// Earliest returns a time before which the item is not due, in ms since 1970; 0 if the item is unknown.
func (s *Schedule) Earliest(id ID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.items[id]; i != nil {
		return i.earliest
	}
	return 0
}

// Forget removes an item that has no deadlines any more.
func (s *Schedule) Forget(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.items[id]; i != nil {
		s.due.Remove(i)
		delete(s.items, id)
	}
}

// arm sets the timer to the deadline of the next item. mu must be locked.
func (s *Schedule) arm() {
	now := s.host.Keyspace().Now()
	_, at, ok := s.due.Min()
	if look := now + findEvery; (s.finding || s.arrived) && (!ok || look < at) {
		at, ok = look, true
	}
	if !ok || s.closed || s.timer != nil && s.armed <= at {
		return
	}
	s.disarm()
	s.armed = at
	s.running.Add(1)
	wait := min(max(at-now, 0), maxSleep)
	s.timer = s.host.Keyspace().Clock().AfterFunc(time.Duration(wait)*time.Millisecond, func() {
		defer s.running.Done()
		s.fire()
	})
}

// maxSleep in ms limits the timer, so that far deadlines fit into a Duration.
const maxSleep = int64(time.Hour / time.Millisecond)

// disarm stops the timer. mu must be locked.
func (s *Schedule) disarm() {
	if s.timer != nil && s.timer.Stop() {
		s.running.Done()
	}
	s.timer = nil
}

// fire calls look for the items that are due.
func (s *Schedule) fire() {
	s.mu.Lock()
	s.timer = nil
	search, calls := s.finding || s.arrived, s.calls
	s.mu.Unlock()
	found := search && s.find()
	now := s.host.Keyspace().Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if found && s.calls == calls { // otherwise the search has not seen everything
		s.finding, s.arrived = false, false
	}
	for {
		i, at, ok := s.due.Min()
		if !ok || at > now || s.closed {
			s.arm()
			return
		}
		s.due.Remove(i)
		delete(s.items, i.ID)
		s.mu.Unlock()
		s.look(i.ID, now)
		s.mu.Lock()
	}
}

// After a start, and when keys have arrived from another shard, there may be stored items that the schedule does not
// know. It searches for them once all keys are in memory.

const (
	findEvery = 100  // ms between checks whether the keys are in memory
	findBatch = 1000 // keys that are checked under one guard
)

// FindStored searches in the background for items from before the start.
func (s *Schedule) FindStored() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finding = true
	s.calls++
	s.arm()
}

// FindArrived searches in the background for items of keys that have arrived. Found does not change: what is here was
// not stored by an earlier run of this server.
func (s *Schedule) FindArrived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = true
	s.calls++
	s.arm()
}

// Found reports whether the search of the last FindStored is complete.
func (s *Schedule) Found() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.finding
}

// find searches the keyspace for stored items, in pieces, and reports whether it could.
func (s *Schedule) find() bool {
	ks := s.host.Keyspace()
	if s.host.Loading() {
		return false
	}
	for db := range ks.Databases() {
		for cursor, more := uint64(0), true; more; more = cursor != 0 && !s.isClosed() {
			var found []ID
			var g engine.Guard
			g.Lock(ks, engine.AllShards, ks.Now())
			cursor = g.Scan(db, cursor, findBatch, nil, func(e *engine.Entry) {
				if key, ok := s.stored(e); ok {
					found = append(found, ID{db, key})
				}
			})
			g.Unlock()
			for _, id := range found {
				s.look(id, ks.Now())
			}
		}
	}
	return true
}

func (s *Schedule) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Under calls fn with a Ctx without a client, under its own guard over some shards. It does nothing while the server
// follows a master, which does the work, and for keys of another server: some may not be here yet, and KeysArrived
// follows. If a value cannot be read, nothing changes. No guard may be held.
func Under(h command.Host, id ID, shards uint64, now int64, fn func(c *command.Ctx)) {
	var g engine.Guard
	g.Lock(h.Keyspace(), shards, now)
	defer g.Unlock()
	if h.Follows() {
		return
	}
	if foreign := h.Foreign(); foreign != nil && foreign([]byte(id.Key)) {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			h.Log().Error("cannot handle a deadline", "key", id.Key, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	fn(&command.Ctx{G: &g, DB: id.DB, Host: h, NoBlock: true})
}
