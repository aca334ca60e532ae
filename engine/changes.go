package engine

import (
	"strings"

	"github.com/atomredis/atomredis/engine/delta"
)

// The changes that the next checkpoint writes: changed entries, removed keys, and values in parts that are no longer needed.
// The delta.Log of a large value has its changed parts. Freeze (freeze.go) takes all of it.

// removal is a key that was removed since the last checkpoint and may be in the store.
type removal struct {
	space    uint32
	key      string
	external bool
}

// entryList is a list of entries. It grows by chunks: copying a list of millions would hold up the command that adds an entry.
type entryList struct {
	chunks [][]*Entry
	swept  int // where sweep continues
}

const entryChunk = 4096

func (l *entryList) add(e *Entry) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == entryChunk {
		l.chunks = append(l.chunks, make([]*Entry, 0, entryChunk))
		last++
	}
	l.chunks[last] = append(l.chunks[last], e)
}

// at returns the location of the entry with index i.
func (l *entryList) at(i int) **Entry { return &l.chunks[i/entryChunk][i%entryChunk] }

// drop removes the entry at a location that at returned, by moving the last entry there.
func (l *entryList) drop(at **Entry) {
	last := len(l.chunks) - 1
	chunk := l.chunks[last]
	end := len(chunk) - 1
	*at, chunk[end] = chunk[end], nil
	if l.chunks[last] = chunk[:end]; end == 0 {
		l.chunks[last] = nil
		l.chunks = l.chunks[:last]
	}
}

// sweepStep is how many entries of a list each sweep examines.
const sweepStep = 4

// sweep drops removed entries from the list, which would keep their memory alive. It runs whenever an entry is removed
// and examines only a few entries, so at most about a quarter of the list is stale.
func (l *entryList) sweep() {
	for range sweepStep {
		if l.swept >= l.len() {
			l.swept = 0
			return
		}
		if at := l.at(l.swept); (*at).flags&flagRemoved == 0 {
			l.swept++
		} else {
			l.drop(at)
		}
	}
}

func (l *entryList) len() int {
	if len(l.chunks) == 0 {
		return 0
	}
	return (len(l.chunks)-1)*entryChunk + len(l.chunks[len(l.chunks)-1])
}

// markDirty marks an entry as different from its stored state.
func (g *Guard) markDirty(e *Entry) {
	ks := g.ks
	if e.inHead() {
		e.load() // the head is about to be written
	}
	if ks.waitsFor(e) {
		panic("engine: a key was changed that was not asked for with Write")
	}
	if e.flags&ks.mark == 0 {
		e.flags |= ks.mark
		g.shard(e.shard).dirty.add(e)
	}
	if ks.tiering {
		ks.enlist(e)
	}
	if e.typ != String && e.flags&flagParts == 0 {
		if v := e.value(); v != nil && v.Large() {
			if l := v.Log(); l != nil && l.ID != 0 {
				l.Adopt() // Prepare has done the rest
			} else {
				v.Track(delta.NewLog(ks.nextParts.Add(1), &ks.epochs))
			}
			e.flags |= flagParts
		}
	}
	if kinds[e.typ].fields != nil && e.flags&flagParts != 0 {
		g.trackDeadlines(e)
	}
}

// trackDeadlines makes a value that is stored in parts also store the deadlines of its fields, once it has any.
func (g *Guard) trackDeadlines(e *Entry) {
	known := e
	if p := e.partial(); p != nil {
		known = &p.view
	} else if e.flags&flagUnloaded != 0 {
		return
	}
	if d := known.expiring().DeadlineIndex(); d != nil && d.Log() == nil {
		d.Track(delta.NewLog(g.ks.nextParts.Add(1), &g.ks.epochs))
		if known != e {
			e.unloaded().own().fieldParts = d.Log().ID
		}
	}
}

// Prepare marks all parts of a value that belongs to no key yet, a collection or a Value, as to be stored. For a large
// value that takes long, so it is done here, without a guard. It does nothing for other values.
func (ks *Keyspace) Prepare(v any) {
	if whole, ok := v.(*Value); ok {
		v = whole.value
	}
	own, ok := v.(value)
	if !ok || ks.source == nil {
		return
	}
	if _, p := typeOf(v); p != nil && own.Large() {
		own.Track(delta.NewLog(ks.nextParts.Add(1), &ks.epochs))
	}
}

// maxSpareText is how many bytes of memory after a removed key are kept with it until the next checkpoint.
const maxSpareText = 64

// forget notes that a key was removed from its database. The entry must have been preserved.
func (g *Guard) forget(e *Entry) {
	s := g.shard(e.shard)
	space := g.ks.spaces[e.space].number
	e.flags |= flagRemoved
	if e.flags&flagStored != 0 {
		key := e.Key()
		if e.room() > maxSpareText {
			key = strings.Clone(key) // drops the value that follows it in memory
		}
		s.removed = append(s.removed, removal{space, key, e.flags&flagExternal != 0})
	}
	if e.flags&g.ks.mark != 0 {
		s.dirty.sweep()
	}
	if e.flags&flagResident != 0 {
		s.resident.sweep()
	}
	if s.lost != nil {
		s.lost[spaceKey{e.space, e.Key()}] = struct{}{}
	}
}

// dropParts notes that the stored parts of an entry's value, if any, are no longer needed.
func (g *Guard) dropParts(e *Entry) {
	if e.typ == String {
		e.dropText()
	}
	if e.flags&flagParts == 0 {
		return
	}
	s := g.shard(e.shard)
	s.dropped = appendParts(s.dropped, e)
	e.flags &^= flagParts
}

// appendParts appends the numbers under which an entry's parts are stored.
func appendParts(ids []uint64, e *Entry) []uint64 {
	h := Head{Parts: e.parts(), FieldParts: e.fieldParts()}
	return append(ids, h.AllParts()...)
}
