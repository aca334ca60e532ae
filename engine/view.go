package engine

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Views: some keys, or the names of all, as of one instant, for a command that takes long and continues without its
// guard. A view is taken under the guard, at a cost independent of the size of the values. Later changes first leave
// the old content to the view, as for a snapshot.

// View has some keys as of one instant. One goroutine uses it.
type View struct {
	copier
	db     int
	now    int64
	images []Image
	blobs  []byte // of the images
}

// View returns a view of those of the keys, which must be distinct, that exist; nil if the value of one is not in
// memory. The caller must call Close.
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

// Keyspace returns a separate keyspace with the keys of the view, in the same database, at the view's time and without
// deadlines. Once stop is set it gives up and returns nil. Long strings are lent to it, so it must not be used after
// the view is closed.
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
		g.link(v.db, e) // not earlier: no entry may be without a value when the guard ends
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

// Names has the names of all keys of a database as of one instant. One goroutine uses it.
type Names struct {
	s       *Snapshot
	space   uint32
	undying bool // nothing had expired for the guard
	mu      sync.Mutex
	found   []string // not taken yet; protected by mu, under which no other lock is taken
	spare   []string // becomes the next found
}

// namesPieces limits the reading of names: each key takes little time.
var namesPieces = pieces{entries: 256, bytes: 1, step: 64}

// Names returns the names of the keys of a database, nil if that is not possible now: some are not in memory, or a
// snapshot is under way. The guard must hold all shards. The caller must call Close.
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

// add adds the name of an entry, unless it had expired at the instant. The entry's shard is held.
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
		return e.flags&(flagFields|flagUnloaded) == flagFields && e.expiring().AllExpired(now)
	}
}

// All iterates over the names as of the instant, in no order. It ends early once stop is set. It may be called once.
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

// emit passes the found names to yield, until yield returns false.
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

// SetPause sets Snapshot.Pause.
func (n *Names) SetPause(pause func()) { n.s.Pause = pause }

// Close ends the reading. If not everything was read, it must visit every remaining key.
func (n *Names) Close() { _ = n.s.Close() } // fails only if there are values
