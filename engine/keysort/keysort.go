// Package keysort sorts the names of millions of keys, for a checkpoint, in steps between which it can pause.
package keysort

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Ref stands for a key during the sort. There may be millions, so it is small and has no pointers for the garbage
// collector.
type Ref struct {
	start uint64 // see sortBehind
	At    uint32 // what the caller finds the key by
	Space uint32 // the space of the key
}

// pauseEach is the number of keys that are read between two pauses.
const pauseEach = 64

// Sort sorts references by space and by key, the name that key returns for one. It calls pause now and then.
func Sort(refs []Ref, key func(Ref) string, pause func()) {
	slices.SortFunc(refs, func(a, b Ref) int { return cmp.Compare(a.Space, b.Space) })
	for len(refs) > 0 {
		n := 1
		for n < len(refs) && refs[n].Space == refs[0].Space {
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
func sortBehind(refs []Ref, key func(Ref) string, known, rounds int, pause func()) {
	common := key(refs[0])
	for i, r := range refs {
		if i%pauseEach == 0 {
			pause()
		}
		n := known
		for k := key(r); n < min(len(common), len(k)) && k[n] == common[n]; n++ {
		}
		common = common[:n]
	}
	for i := range refs {
		if i%pauseEach == 0 {
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
			slices.SortFunc(equal, func(a, b Ref) int { return cmp.Compare(key(a), key(b)) })
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
func sortByStart(refs []Ref, bytes int, pause func()) {
	pause()
	if len(refs) <= radixFew {
		slices.SortFunc(refs, func(a, b Ref) int { return cmp.Compare(a.start, b.start) })
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
