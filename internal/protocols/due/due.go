// Package due calls protocols when something of theirs is due: messages or tasks that were handed out for some time and
// have to go back. When that is stands in the keys themselves, so that a restart forgets nothing; this package only
// knows where to look next.
package due

import (
	"runtime/debug"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/expiry"
	"github.com/atomredis/atomredis/internal/command"
)

// ID names what has deadlines: a database, and a key in it.
type ID struct {
	DB  int
	Key string
}

// Schedule knows when to look after what. Its lock is taken last.
type Schedule struct {
	host   command.Host
	look   func(id ID, now int64)
	stored func(e *engine.Entry) (key string, ok bool)

	mu      sync.Mutex
	items   map[ID]*item
	due     expiry.Index[*item]
	timer   engine.Timer // fires at armed; nil if there is none
	armed   int64        // ms since 1970
	closed  bool
	finding bool           // there may be something stored of which nothing is known
	running sync.WaitGroup // timers that will fire or have fired and not finished
}

// item is something that will be due.
type item struct {
	ID
	earliest int64 // it is not due before, in ms since 1970
	slot     int
}

// SetSlot implements expiry.Item.
func (i *item) SetSlot(slot int) { i.slot = slot }

// Slot implements expiry.Item.
func (i *item) Slot() int { return i.slot }

// Start prepares a schedule. look is called, with no guard held, when an item is due; it is forgotten then, and noted
// again if it will be due another time. stored reports whether an entry has deadlines, and the key of its ID.
func (s *Schedule) Start(h command.Host, look func(id ID, now int64), stored func(e *engine.Entry) (key string, ok bool)) {
	s.host, s.look, s.stored = h, look, stored
	s.items = map[ID]*item{}
}

// Close ends the timer and waits for what it has begun.
func (s *Schedule) Close() {
	s.mu.Lock()
	s.closed = true
	s.disarm()
	s.mu.Unlock()
	s.running.Wait()
}

// Note says that an item will be due at a time, in ms since 1970, or before.
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

// Earliest returns a time before which the item is not due, in ms since 1970; 0 if nothing is known.
func (s *Schedule) Earliest(id ID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.items[id]; i != nil {
		return i.earliest
	}
	return 0
}

// Forget says that nothing that was noted of the item is due any more.
func (s *Schedule) Forget(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.items[id]; i != nil {
		s.due.Remove(i)
		delete(s.items, id)
	}
}

// arm makes sure that the timer fires when the next item is due. mu must be locked.
func (s *Schedule) arm() {
	now := s.host.Keyspace().Now()
	_, at, ok := s.due.Min()
	if look := now + findEvery; s.finding && (!ok || look < at) {
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

// maxSleep in ms keeps far deadlines within a Duration.
const maxSleep = int64(time.Hour / time.Millisecond)

// disarm stops the timer. mu must be locked.
func (s *Schedule) disarm() {
	if s.timer != nil && s.timer.Stop() {
		s.running.Done()
	}
	s.timer = nil
}

// fire looks after the items that are due.
func (s *Schedule) fire() {
	s.mu.Lock()
	s.timer = nil
	finding := s.finding
	s.mu.Unlock()
	found := finding && s.find()
	now := s.host.Keyspace().Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finding = s.finding && !found
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

// After a start, there may be something stored of which nothing is known. It is looked for once all keys are in memory.

const (
	findEvery = 100  // ms between looks whether the keys are in memory
	findBatch = 1000 // keys that are looked at under one guard
)

// FindStored has items looked for that were there before the start.
func (s *Schedule) FindStored() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finding = true
	s.arm()
}

// Found reports whether all has been looked at that was there when FindStored was called last.
func (s *Schedule) Found() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.finding
}

// find looks for stored items, a piece of the keyspace at a time, and reports whether it could.
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

// Under calls fn with a Ctx that has a guard of its own over some shards, on behalf of no client; not while the server
// follows a master, which does it. If a value cannot be read everything stays as it is. No guard may be held.
func Under(h command.Host, id ID, shards uint64, now int64, fn func(c *command.Ctx)) {
	var g engine.Guard
	g.Lock(h.Keyspace(), shards, now)
	defer g.Unlock()
	if h.Follows() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			h.Log().Error("cannot look after what is due", "key", id.Key, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	fn(&command.Ctx{G: &g, DB: id.DB, Host: h, NoBlock: true})
}
