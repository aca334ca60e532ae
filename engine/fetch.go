package engine

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Values that are not in memory come back when they are used. A caller that cannot wait reads them at once, under its
// guard. A caller that can wait calls OnAway. Then it panics out of its work before anything has changed, requests the
// value with Fetch, and starts again when it has come. So other clients continue meanwhile, and many values are read
// side by side.

// Away is a value that is needed but not in memory.
type Away struct {
	DB  int
	Key string
	// Some are the needed parts of the value; nil means all of it.
	Some *Some
}

// OnAway makes the guard call fn before it reads a value that is not in memory, unless something has changed under the
// guard since. That lasts until OnAway(nil) or the end of the guard. fn may end its caller by a panic. If it returns,
// the value is read at once.
func (g *Guard) OnAway(fn func(*Away)) {
	g.onAway, g.repeats = fn, g.changes
	for m := g.locked; m != 0; m &= m - 1 {
		s := &g.ks.shards[bits.TrailingZeros64(m)]
		if s.waits = nil; fn != nil {
			s.waits = g
			s.counted = lookups{s.stats.Hits, s.stats.Misses}
		}
	}
}

// canWait reports whether nothing has changed since OnAway, so that the work can start again.
func (g *Guard) canWait() bool { return g.changes == g.repeats }

// lookups are the counters of lookups at the time of OnAway.
type lookups struct{ hits, misses int64 }

// Uncount resets the counters of lookups to their state at OnAway: the lookups will be repeated.
func (g *Guard) Uncount() {
	for m := g.locked; m != 0; m &= m - 1 {
		s := &g.ks.shards[bits.TrailingZeros64(m)]
		s.stats.Hits, s.stats.Misses = s.counted.hits, s.counted.misses
	}
}

// coming is a value, or some of its parts, being read from the store.
type coming struct {
	at      stored
	some    *Some       // nil for the whole value
	numbers partNumbers // with some: the location of the parts
	entry   *Entry
	waiting []func() // called when the value has come; protected by the entry's shard
	ended   bool     // protected likewise
}

// fetcher reads values from the store.
type fetcher struct {
	mu      sync.Mutex // protects the fields below; no other lock is taken under it
	queue   []*coming
	readers int
	running sync.WaitGroup
}

// maxReaders is how many values are read side by side: enough reads to keep disks busy.
const maxReaders = 64

// Fetch starts to load the value of a key that is not in memory, and returns whether it did. Afterwards it calls done,
// from any goroutine without locks, when the value has come or could not be read. If some is not nil and the value is
// stored in parts, only these parts are loaded. No guard may be held.
func (ks *Keyspace) Fetch(db int, key []byte, some *Some, done func()) bool {
	var g Guard
	g.Lock(ks, ks.ShardOf(key), 0)
	defer g.unlockShards()
	p, ok := g.shardOfKey(key).dbs[db].dict.Get(key)
	if !ok || (*p).flags&flagUnloaded == 0 {
		return false
	}
	e := *p
	s := e.unloaded()
	if c := s.coming; c != nil && !c.ended && c.entry == e {
		c.waiting = append(c.waiting, done)
		return true
	}
	c := &coming{entry: e, waiting: []func(){done}}
	if some != nil && e.mayHave(some) {
		if s.hasRead(some) {
			return false
		}
		c.numbers = s.numbers()
		c.some, c.at = some.bounded(s), stored{unloaded: s, typ: e.typ, key: e.Key()}
	} else {
		defer ks.resized(e, e.size())
		s = s.copied()
		s.coming = c
		c.at = ks.whereStored(e, s)
		e.obj = unsafe.Pointer(s)
	}
	ks.fetcher.add(ks, c)
	return true
}

// add queues a value for reading.
func (f *fetcher) add(ks *Keyspace, c *coming) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, c)
	if f.readers < maxReaders {
		f.readers++
		f.running.Add(1)
		go f.read(ks)
	}
}

// next returns the next value to read, nil if there is none: then the reader ends.
func (f *fetcher) next() *coming {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		f.queue = nil
		f.readers--
		return nil
	}
	c := f.queue[0]
	f.queue[0] = nil
	f.queue = f.queue[1:]
	return c
}

// read reads queued values until none are left.
func (f *fetcher) read(ks *Keyspace) {
	defer f.running.Done()
	for c := f.next(); c != nil; c = f.next() {
		var arrive func(g *Guard)
		if c.some != nil {
			parts, err := ks.readParts(c.numbers, c.some)
			arrive = func(g *Guard) { g.arriveSome(c, parts, err) }
		} else {
			v, err := ks.readStored(c.at)
			arrive = func(g *Guard) { g.arrive(c, v, err) }
		}
		for _, done := range ks.end(c, arrive) {
			done()
		}
	}
}

// end calls arrive with the value read, unless the entry was removed or has another value by now. It returns the
// callbacks of those that wait for the value.
func (ks *Keyspace) end(c *coming, arrive func(g *Guard)) (waiting []func()) {
	var g Guard
	g.Lock(ks, 1<<c.entry.shard, ks.Now())
	defer g.Unlock()
	e := c.entry
	waiting, c.ended, c.waiting = c.waiting, true, nil
	p, ok := ks.shards[e.shard].dbs[ks.spaces[e.space].db].dict.GetString(c.at.key)
	if ok && *p == e && e.flags&flagUnloaded != 0 && e.unloaded() == c.at.unloaded {
		arrive(&g)
	}
	return waiting
}

// arrive stores the value read in its entry. After a failed read, the next use of the entry tries again and gets the
// error.
func (g *Guard) arrive(c *coming, v storedValue, err error) {
	e := c.entry
	c.at.coming = nil
	if err != nil {
		return
	}
	g.copyAway(e)
	_ = e.comeBack(c.at.unloaded, v) // a failed decoding surfaces in the same way
}

// arriveSome is arrive for some parts.
func (g *Guard) arriveSome(c *coming, parts []partRead, err error) {
	if err == nil {
		g.copyAway(c.entry)
		_ = c.entry.keepParts(c.at.unloaded, parts)
	}
}

// copyAway lets the snapshot under way copy an entry before its value is loaded. The image then refers to the store, so
// the value can leave memory again.
func (g *Guard) copyAway(e *Entry) {
	if s := g.ks.copying; s != nil && s.waitsFor(e) {
		s.keep(g, e)
	}
}
