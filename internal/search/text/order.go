package text

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// order lists words as a hash table of Redis does, which clients see in FT.SYNDUMP. That table has chains and a power
// of two of slots. When it has as many words as slots it grows: each further access moves a slot to a table of twice
// the size, until all have moved.
type order struct {
	tables [2]slots // the second one is there while the table grows
	next   int      // the slot that moves next
}

// slots are the slots of a table with their words, the newest last.
type slots struct {
	words [][]string
	used  int // number of words
}

const (
	firstSlots = 4
	maxSkipped = 10 // empty slots that an access passes
)

func (o *order) grows() bool { return o.tables[1].words != nil }

// access does what each access to the table does.
func (o *order) access() {
	from, to := &o.tables[0], &o.tables[1]
	if !o.grows() {
		return
	}
	for skipped := 0; len(from.words[o.next]) == 0; {
		o.next++
		if skipped++; skipped == maxSkipped {
			return
		}
	}
	chain := from.words[o.next]
	for _, word := range slices.Backward(chain) {
		to.add(word)
	}
	from.used -= len(chain)
	from.words[o.next] = nil
	if o.next++; from.used == 0 {
		o.tables = [2]slots{*to}
	}
}

// add adds a word that is not there.
func (o *order) add(word string) {
	o.access()
	if first := &o.tables[0]; o.grows() {
		o.tables[1].add(word)
		return
	} else if len(first.words) == 0 {
		first.words = make([][]string, firstSlots)
	} else if first.used >= len(first.words) {
		o.tables[1].words, o.next = make([][]string, 2*len(first.words)), 0
		o.tables[1].add(word)
		return
	}
	o.tables[0].add(word)
}

func (s *slots) add(word string) {
	i := sipHash(word) % uint64(len(s.words))
	s.words[i] = append(s.words[i], word)
	s.used++
}

// all calls yield for each word until it returns false.
func (o *order) all(yield func(word string) bool) {
	for _, t := range o.tables {
		for _, chain := range t.words {
			for _, word := range slices.Backward(chain) {
				if !yield(word) {
					return
				}
			}
		}
	}
}

// clone returns an independent copy.
func (o *order) clone() order {
	c := *o
	for i := range c.tables {
		c.tables[i].words = slices.Clone(c.tables[i].words)
		for j, chain := range c.tables[i].words {
			c.tables[i].words[j] = slices.Clip(chain)
		}
	}
	return c
}

// sipHash returns the SipHash-1-2 of a text under a key of zeros.
func sipHash(s string) uint64 {
	v := [4]uint64{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573}
	round := func() {
		v[0] += v[1]
		v[2] += v[3]
		v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
		v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[1]
		v[0] += v[3]
		v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
		v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
	block := func(m uint64) {
		v[3] ^= m
		round()
		v[0] ^= m
	}
	rest := []byte(s)
	for ; len(rest) >= 8; rest = rest[8:] {
		block(binary.LittleEndian.Uint64(rest))
	}
	last := [8]byte{7: byte(len(s))}
	copy(last[:], rest)
	block(binary.LittleEndian.Uint64(last[:]))
	v[2] ^= 0xff
	round()
	round()
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}
