package engine

import (
	"cmp"
	"encoding/binary"
	"slices"
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

// headRef stands for a headItem during the sort. There may be millions, so it is small and has no pointers for the
// garbage collector.
type headRef struct {
	start uint64 // see sortBehind
	at    uint32 // index in headList
	space uint32
}

// headList is the target of headRefs: chunks of entries, followed by chunks of removed keys. All have room for
// entryChunk.
type headList struct {
	entries [][]*Entry
	removed [][]removal
}

// item returns the item for a reference.
func (l *headList) item(r headRef) headItem {
	chunk, i := int(r.at/entryChunk), r.at%entryChunk
	if chunk < len(l.entries) {
		e := l.entries[chunk][i]
		return headItem{key: e.keyUnlocked(), entry: e, space: r.space}
	}
	removed := &l.removed[chunk-len(l.entries)][i]
	return headItem{key: removed.key, space: r.space, external: removed.external}
}

func (l *headList) key(r headRef) string { return l.item(r).key }

// heads returns the changed and removed keys, sorted by space and key.
func (f *Frozen) heads() (l *headList, refs []headRef) {
	l = new(headList)
	for i := range f.dirty {
		l.entries = append(l.entries, f.dirty[i].chunks...)
		l.removed = slices.AppendSeq(l.removed, slices.Chunk(f.removed[i], entryChunk))
	}
	var g Guard
	g.Lock(f.ks, AllShards, 0)
	spaces := slices.Clone(f.ks.spaces)
	g.unlockShards()
	refs = make([]headRef, 0, f.Len())
	for c, chunk := range l.entries {
		f.pause()
		for i, e := range chunk {
			refs = append(refs, headRef{at: uint32(c*entryChunk + i), space: spaces[e.space].number})
		}
	}
	for c, chunk := range l.removed {
		for i := range chunk {
			refs = append(refs, headRef{at: uint32((len(l.entries)+c)*entryChunk + i), space: chunk[i].space})
		}
	}
	sortHeads(refs, l.key, f.pause)
	return l, refs
}

// sortHeads sorts by space and key, and calls pause now and then.
func sortHeads(refs []headRef, key func(headRef) string, pause func()) {
	slices.SortFunc(refs, func(a, b headRef) int { return cmp.Compare(a.space, b.space) })
	for len(refs) > 0 {
		n := 1
		for n < len(refs) && refs[n].space == refs[0].space {
			n++
		}
		sortBehind(refs[:n], key, 0, sortRounds, pause)
		refs = refs[n:]
	}
}

const (
	sortRounds = 3  // more rounds only help keys made to be slow
	sortFew    = 16 // up to this number, compare whole keys
)

// sortBehind sorts by keys that share their first known bytes. Keys tend to share a prefix. The eight bytes after it
// decide most comparisons without access to the keys, which are elsewhere in memory. Keys with equal eight bytes are
// sorted in another round, by the bytes after their own common prefix.
func sortBehind(refs []headRef, key func(headRef) string, known, rounds int, pause func()) {
	common := key(refs[0])
	for i, r := range refs {
		if i%freezeBatch == 0 {
			pause()
		}
		n := known
		for k := key(r); n < min(len(common), len(k)) && k[n] == common[n]; n++ {
		}
		common = common[:n]
	}
	for i := range refs {
		if i%freezeBatch == 0 {
			pause()
		}
		var b [8]byte
		copy(b[:], key(refs[i])[len(common):])
		refs[i].start = binary.BigEndian.Uint64(b[:])
	}
	sortByStart(refs, 0, pause)
	for len(refs) > 0 {
		n := 1
		for n < len(refs) && refs[n].start == refs[0].start {
			n++
		}
		if equal := refs[:n]; n > sortFew && rounds > 1 {
			sortBehind(equal, key, len(common), rounds-1, pause)
		} else if n > 1 {
			slices.SortFunc(equal, func(a, b headRef) int { return cmp.Compare(key(a), key(b)) })
		}
		refs = refs[n:]
	}
}

const (
	radixFew = 64 // up to this number, comparing takes about as long as another pass by a byte
	// from this number on, pause between buckets; reading the clock takes as long as moving a few
	radixPause = 1 << 12
)

// sortByStart sorts by start, whose first bytes are equal: by the next byte in place (American flag sort), and then
// each bucket by the byte after that.
func sortByStart(refs []headRef, bytes int, pause func()) {
	pause()
	if len(refs) <= radixFew {
		slices.SortFunc(refs, func(a, b headRef) int { return cmp.Compare(a.start, b.start) })
		return
	}
	if bytes == 8 {
		return
	}
	shift := 8 * (7 - bytes)
	var next, end [256]int // where the next item of a bucket goes, and where the bucket ends
	for i := range refs {
		end[byte(refs[i].start>>shift)]++
	}
	for b, begin := 0, 0; b < len(end); b++ {
		next[b], end[b] = begin, begin+end[b]
		begin = end[b]
	}
	for b := range end {
		if len(refs) >= radixPause {
			pause()
		}
		for next[b] < end[b] {
			ref := refs[next[b]]
			for to := byte(ref.start >> shift); int(to) != b; to = byte(ref.start >> shift) {
				refs[next[to]], ref = ref, refs[next[to]]
				next[to]++
			}
			refs[next[b]] = ref
			next[b]++
		}
	}
	for b, begin := 0, 0; b < len(end); b++ {
		if end[b] > begin+1 {
			sortByStart(refs[begin:end[b]], bytes+1, pause)
		}
		begin = end[b]
	}
}
