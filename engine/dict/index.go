package dict

import "unsafe"

// The index: from hash to entry number, in a table that grows and shrinks one small piece at a time.

// A slot is the 32 hash bits of an entry in its upper half and the number of that entry plus one in
// its lower half. Zero is an empty slot.
type slot = uint64

func makeSlot(hash uint32, entry int) slot { return uint64(hash)<<32 | uint64(uint32(entry+1)) }

func slotHash(s slot) uint32 { return uint32(s >> 32) }

func slotEntry(s slot) int { return int(uint32(s)) - 1 }

const (
	minSlots = 8
	maxSlots = 1024 // a full segment of this size splits
	maxDepth = 22   // so that directory bits and position bits never overlap: 22 + 10 = 32
)

// index is an extendible hash table. The directory has 2^depth places, and the top `depth` bits of a
// hash choose one. A place points to a segment, which is shared by all places that agree in the
// segment's own (shorter or equal) depth. A segment that is full doubles, and once it has maxSlots
// it splits in two by one more bit, so that no operation ever moves more than one segment's slots
// (and, once per doubling of the whole table, the directory, which is a thousand times smaller).
// The zero value is empty and ready.
type index struct {
	dir     []*segment
	depth   int
	deepest int // segments with the directory's depth; at 0 the directory can halve

	segments, slots int // totals
}

// segment is an open-addressing table with linear probing. Probing for an entry starts at the low bits of its hash, and
// no slot from there to the entry is empty. At least one slot is always empty.
type segment struct {
	slots []slot // a power of two of them
	count int
	depth int // all hashes here share this many top bits
}

func newSegment(slots, depth int) *segment {
	return &segment{slots: make([]slot, slots), depth: depth}
}

// full reports whether one more entry would make probing slow.
func (s *segment) full() bool { return s.count >= len(s.slots)/5*4 }

// add stores a slot where probing finds it.
func (s *segment) add(v slot) {
	mask := uint32(len(s.slots) - 1)
	p := slotHash(v) & mask
	for s.slots[p] != 0 {
		p = (p + 1) & mask
	}
	s.slots[p] = v
	s.count++
}

// find returns the position of a slot, which must be present.
func (s *segment) find(v slot) uint32 {
	mask := uint32(len(s.slots) - 1)
	p := slotHash(v) & mask
	for s.slots[p] != v {
		p = (p + 1) & mask
	}
	return p
}

// remove empties position p and moves back later slots of the same run that probing would no longer reach.
func (s *segment) remove(p uint32) {
	mask := uint32(len(s.slots) - 1)
	hole := p
	for q := (p + 1) & mask; s.slots[q] != 0; q = (q + 1) & mask {
		home := slotHash(s.slots[q]) & mask
		if (q-home)&mask >= (q-hole)&mask {
			s.slots[hole] = s.slots[q]
			hole = q
		}
	}
	s.slots[hole] = 0
	s.count--
}

// resize rebuilds the segment with another number of slots, and adds the slots in others.
func (s *segment) resize(slots int, others ...slot) {
	old := s.slots
	s.slots, s.count = make([]slot, slots), 0
	for _, part := range [2][]slot{old, others} {
		for _, v := range part {
			if v != 0 {
				s.add(v)
			}
		}
	}
}

// segment returns the segment for a hash. The index must not be empty.
func (x *index) segment(hash uint32) *segment { return x.dir[hash>>(32-x.depth)] }

// insert adds an entry, which must be absent.
func (x *index) insert(hash uint32, entry int) {
	if len(x.dir) == 0 {
		x.dir, x.deepest = []*segment{newSegment(minSlots, 0)}, 1
		x.segments, x.slots = 1, minSlots
	}
	s := x.segment(hash)
	for s.full() {
		if len(s.slots) < maxSlots || s.depth == maxDepth {
			x.slots += len(s.slots)
			s.resize(2 * len(s.slots))
		} else {
			x.split(s, hash)
		}
		s = x.segment(hash)
	}
	s.add(makeSlot(hash, entry))
}

// remove removes an entry, which must be present.
func (x *index) remove(hash uint32, entry int) {
	s := x.segment(hash)
	s.remove(s.find(makeSlot(hash, entry)))
	if s.count < len(s.slots)/8 && len(s.slots) > minSlots {
		x.shrink(s, hash)
	}
}

// renumber changes the number of an entry, which must be present.
func (x *index) renumber(hash uint32, from, to int) {
	s := x.segment(hash)
	s.slots[s.find(makeSlot(hash, from))] = makeSlot(hash, to)
}

// places returns the part of the directory that belongs to the `depth` top bits of hash.
func (x *index) places(hash uint32, depth int) []*segment {
	width := 1 << (x.depth - depth)
	first := int(hash>>(32-depth)) * width
	return x.dir[first : first+width]
}

// split divides segment s, the one for hash, by one more hash bit.
func (x *index) split(s *segment, hash uint32) {
	if s.depth == x.depth {
		dir := make([]*segment, 0, 2*len(x.dir))
		for _, s := range x.dir {
			dir = append(dir, s, s)
		}
		x.dir = dir
		x.depth++
		x.deepest = 0
	}
	places := x.places(hash, s.depth)
	bit := uint32(1) << (31 - s.depth)
	s.depth++
	if s.depth == x.depth {
		x.deepest += 2
	}
	upper := newSegment(len(s.slots), s.depth)
	x.segments++
	x.slots += len(s.slots)
	// A copy, so that the slots can be reused: in a growing table all segments split at about the same time.
	var all [maxSlots]slot
	copy(all[:], s.slots)
	clear(s.slots)
	s.count = 0
	for _, v := range all {
		switch {
		case v == 0:
		case slotHash(v)&bit == 0:
			s.add(v)
		default:
			upper.add(v)
		}
	}
	for i := len(places) / 2; i < len(places); i++ {
		places[i] = upper
	}
}

// shrink makes s, the segment for hash, smaller: it merges with the segment it once split from if that is as empty,
// else it halves alone.
func (x *index) shrink(s *segment, hash uint32) {
	if s.depth > 0 {
		buddy := x.segment(hash ^ 1<<(32-s.depth))
		if buddy.depth == s.depth && s.count+buddy.count <= maxSlots/4 {
			x.merge(s, buddy, hash)
			return
		}
	}
	x.slots -= len(s.slots) / 2
	s.resize(len(s.slots) / 2)
}

// merge moves the slots of buddy into s, the segment for hash, and halves the directory as long as no segment needs its
// last bit.
func (x *index) merge(s, buddy *segment, hash uint32) {
	if s.depth == x.depth {
		x.deepest -= 2
	}
	s.depth--
	x.segments--
	x.slots += maxSlots/2 - len(s.slots) - len(buddy.slots)
	s.resize(maxSlots/2, buddy.slots...)
	places := x.places(hash, s.depth)
	for i := range places {
		places[i] = s
	}
	for x.deepest == 0 {
		x.halve()
	}
}

// halve drops the directory's last bit, which no segment needs.
func (x *index) halve() {
	dir := make([]*segment, len(x.dir)/2)
	x.depth--
	for i := range dir {
		dir[i] = x.dir[2*i]
		if dir[i].depth == x.depth {
			x.deepest++
		}
	}
	x.dir = dir
}

// clone returns an independent copy.
func (x *index) clone() index {
	c := index{dir: make([]*segment, len(x.dir)), depth: x.depth, deepest: x.deepest, segments: x.segments, slots: x.slots}
	for i, s := range x.dir {
		if i > 0 && s == x.dir[i-1] {
			c.dir[i] = c.dir[i-1]
			continue
		}
		c.dir[i] = &segment{slots: append([]slot(nil), s.slots...), count: s.count, depth: s.depth}
	}
	return c
}

// memoryUsage returns how many bytes the directory and the segments take.
func (x *index) memoryUsage() int {
	return cap(x.dir)*int(unsafe.Sizeof((*segment)(nil))) + x.segments*int(unsafe.Sizeof(segment{})) +
		x.slots*int(unsafe.Sizeof(slot(0)))
}
