package engine

import (
	"slices"

	"github.com/atomredis/atomredis/engine/keysort"
)

// The order in which a checkpoint writes: by space and key. Millions of keys are sorted without holding a lock or
// delaying clients.

// headItem is a key that Heads handles.
type headItem struct {
	key      string
	entry    *Entry // nil for a removed key
	space    uint32
	external bool // of a removed key
}

// headList has the keys that are sorted: chunks of entries, followed by chunks of removed keys. All have room for
// entryChunk. The At of a reference is an index in it.
type headList struct {
	entries [][]*Entry
	removed [][]removal
}

// item returns the item for a reference.
func (l *headList) item(r keysort.Ref) headItem {
	chunk, i := int(r.At/entryChunk), r.At%entryChunk
	if chunk < len(l.entries) {
		e := l.entries[chunk][i]
		return headItem{key: e.keyUnlocked(), entry: e, space: r.Space}
	}
	removed := &l.removed[chunk-len(l.entries)][i]
	return headItem{key: removed.key, space: r.Space, external: removed.external}
}

func (l *headList) key(r keysort.Ref) string { return l.item(r).key }

// heads returns the changed and removed keys, sorted by space and key.
func (f *Frozen) heads() (l *headList, refs []keysort.Ref) {
	l = new(headList)
	for i := range f.dirty {
		l.entries = append(l.entries, f.dirty[i].chunks...)
		l.removed = slices.AppendSeq(l.removed, slices.Chunk(f.removed[i], entryChunk))
	}
	var g Guard
	g.Lock(f.ks, AllShards, 0)
	spaces := slices.Clone(f.ks.spaces)
	g.unlockShards()
	refs = make([]keysort.Ref, 0, f.Len())
	for c, chunk := range l.entries {
		f.pause()
		for i, e := range chunk {
			refs = append(refs, keysort.Ref{At: uint32(c*entryChunk + i), Space: spaces[e.space].number})
		}
	}
	for c, chunk := range l.removed {
		for i := range chunk {
			refs = append(refs, keysort.Ref{At: uint32((len(l.entries)+c)*entryChunk + i), Space: chunk[i].space})
		}
	}
	keysort.Sort(refs, l.key, f.pause)
	return l, refs
}
