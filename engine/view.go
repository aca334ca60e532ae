package engine

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Views: some keys, or the names of all, as they were at one instant, for a command that takes long and goes on without
// its guard. A view is taken under the guard at a cost that does not depend on how large the values are. What changes
// afterwards leaves the old content to the view first, in the same way as to a snapshot.

// View is some keys as they were at one instant. One goroutine uses it.
type View struct {
	copier
	db     int
	now    int64
	images []Image
	blobs  []byte // of the images
}

// View returns a view of those of some different keys that are there; nil if the value of one is not in memory. Close must be
// called in the end.
func (g *Guard) View(db int, keys [][]byte) *View {
	v := &View{copier: copier{reader: reader{ks: g.ks}, pieces: copiedPieces}, db: db, now: g.now}
	for _, key := range keys {
		e := g.Peek(db, key)
		if e == nil {
			continue
		}
		if e.flags&flagUnloaded != 0 {
			v.end()
			return nil
		}
		img := g.image(e)
		g.take(&img, e, &v.blobs, lendFrom)
		img.beginCopy()
		v.images = append(v.images, img)
	}
	return v
}

// Keyspace returns a keyspace of its own with the keys of the view, in the same database, at their time and without
// deadlines. It gives up, and returns nil, when stop is set. Long strings are lent to it: it must not be used any more when
// the view has been closed.
func (v *View) Keyspace(stop *atomic.Bool) (*Keyspace, error) {
	ks := New(Options{Databases: v.ks.databases, Clock: NewManualClock(time.UnixMilli(v.now))})
	ks.SetListLimit(v.ks.storedListLimit())
	v.stop = stop
	var g Guard
	g.Lock(ks, AllShards, v.now)
	defer g.Unlock()
	for i := range v.images {
		img := &v.images[i]
		var err error
		e := g.prepare(v.db, img.Key, nil)
		if e.typ = img.Head.Type; img.values[0].parts == nil {
			err = e.decode(img.Head.Blob, ks)
		} else {
			err = v.copy(e, img, nil)
		}
		switch {
		case stop.Load():
			return nil, nil
		case err != nil:
			return nil, err
		}
		g.link(v.db, e) // not before: an entry without a value must not be there when the guard ends
	}
	return ks, nil
}

// Now returns the instant of the view in ms since 1970.
func (v *View) Now() int64 { return v.now }

// Close ends the view. It may be called more than once. No guard may be held.
func (v *View) Close() { v.lockAll(v.end) }

// end is Close under a guard that holds the shards of the values.
func (v *View) end() {
	for i := range v.images {
		v.images[i].release()
		for k := range v.images[i].values {
			v.images[i].values[k].endCopy(func(string, []byte) {})
		}
	}
}

// Names are the names of all keys of a database as they were at one instant. One goroutine uses it.
type Names struct {
	s       *Snapshot
	space   uint32
	undying bool // nothing had expired for the guard
	mu      sync.Mutex
	found   []string // not yet taken; protected by mu, under which nothing is locked
	spare   []string // the next found
}

// namesPieces is how names are read: of a key they take little time.
var namesPieces = pieces{entries: 256, bytes: 1, step: 64}

// Names returns the names of the keys of a database, nil if they cannot be had now: some are not in memory, or a
// snapshot is under way. The guard must hold all shards. Close must be called in the end.
func (g *Guard) Names(db int) *Names {
	if !g.Complete() {
		return nil
	}
	select {
	case g.ks.snapshots <- struct{}{}:
	default:
		return nil
	}
	s := g.beginSnapshot(namesPieces)
	s.names = &Names{s: s, space: s.spaces[db], undying: g.IgnoresDeadlines()}
	return s.names
}

// add adds the name of an entry as it was, whose shard is held, unless it had expired.
func (n *Names) add(e *Entry) {
	if e.space != n.space || n.expired(e) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.found = append(n.found, e.Key())
}

func (n *Names) expired(e *Entry) bool {
	switch now := n.s.Now; {
	case n.undying:
		return false
	case e.deadline != 0 && e.deadline <= now:
		return true
	default:
		return e.flags&(flagFields|flagUnloaded) == flagFields && e.Hash().AllExpired(now)
	}
}

// All iterates over the names, which stay as they are, in no order. It ends early when stop is set. It can be done once.
func (n *Names) All(stop *atomic.Bool) iter.Seq[string] {
	return func(yield func(key string) bool) {
		for !n.s.ended && !stop.Load() {
			n.s.pause()
			n.s.readBatch(nil)
			if !n.emit(yield) {
				return
			}
		}
		if n.s.ended {
			n.s.finish()
			n.emit(yield)
		}
	}
}

// emit gives yield what has been found, until it returns false.
func (n *Names) emit(yield func(key string) bool) bool {
	n.mu.Lock()
	found := n.found
	n.found, n.spare = n.spare, nil
	n.mu.Unlock()
	for _, key := range found {
		if !yield(key) {
			return false
		}
	}
	clear(found)
	n.spare = found[:0]
	return true
}

// SetPause is Snapshot.Pause.
func (n *Names) SetPause(pause func()) { n.s.Pause = pause }

// Close ends it. If not all was read that takes the time to look at every key.
func (n *Names) Close() { _ = n.s.Close() } // which fails only if there are values
