package engine

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Values that are not in memory come back when they are used. Whoever cannot wait reads them at once, under the guard.
// The holder of a guard who can wait says so with OnAway. It then ends its work by a panic before anything has changed,
// asks for the value with Fetch, and begins anew when it is there. So others go on meanwhile, and many values are read
// side by side.

// Away is a value that is needed and is not in memory.
type Away struct {
	DB  int
	Key string
	// Some are the parts of the value that are needed; nil if that is all of it.
	Some *Some
}

// OnAway has fn called, until OnAway(nil) or the guard is given back, when a value is read that is not in memory, unless
// something has changed under the guard since. fn may end its caller by a panic. If it returns, the value is read at
// once.
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

// canWait reports whether nothing has changed yet that could not be done again.
func (g *Guard) canWait() bool { return g.changes == g.repeats }

// lookups are the counters of lookups as they were when a guard began that may wait.
type lookups struct{ hits, misses int64 }

// Uncount takes the lookups back that were counted since OnAway: they will be made once more.
func (g *Guard) Uncount() {
	for m := g.locked; m != 0; m &= m - 1 {
		s := &g.ks.shards[bits.TrailingZeros64(m)]
		s.stats.Hits, s.stats.Misses = s.counted.hits, s.counted.misses
	}
}

// coming is a value, or parts of one, being read from the store.
type coming struct {
	at      stored
	some    *Some       // nil for the whole value
	numbers partNumbers // with some: where they are
	entry   *Entry
	waiting []func() // called when it has come; protected by the entry's shard
	ended   bool     // likewise
}

// fetcher reads values from the store.
type fetcher struct {
	mu      sync.Mutex // protects what follows; nothing is locked under it
	queue   []*coming
	readers int
	running sync.WaitGroup
}

// maxReaders is how many values are read side by side: as many reads as disks are asked for at once.
const maxReaders = 64

// Fetch begins to bring the value of a key into memory if it is not there, and reports whether it has. Then done is
// called, by any goroutine without locks, when the value has come or could not be read. If no more than some parts are
// needed (which may be nil), and the value is stored in parts, these come. No guard may be held.
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

// add has a value read.
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

// next returns a value that is to be read, nil if there is none: then the reader ends.
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

// read reads values until there are none to be read.
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

// end calls arrive with the value that was read, unless the entry was removed or has another value by now, and returns the
// callbacks of those that wait for it.
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

// arrive gives an entry its value. If the value could not be read, the next use of the entry tries again and gets the error.
func (g *Guard) arrive(c *coming, v storedValue, err error) {
	e := c.entry
	c.at.coming = nil
	if err != nil {
		return
	}
	g.copyAway(e)
	_ = e.comeBack(c.at.unloaded, v) // as above
}

// arriveSome is arrive for some parts.
func (g *Guard) arriveSome(c *coming, parts []partRead, err error) {
	if err == nil {
		g.copyAway(c.entry)
		_ = c.entry.keepParts(c.at.unloaded, parts)
	}
}

// copyAway has an entry copied by the snapshot under way while it is away, so that the value can leave again when it has
// come: that of the image is in the store.
func (g *Guard) copyAway(e *Entry) {
	if s := g.ks.copying; s != nil && s.waitsFor(e) {
		s.keep(g, e)
	}
}
