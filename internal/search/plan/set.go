package plan

import (
	"math/bits"
	"slices"
)

// set is a set of document numbers, as a list or as bits, whichever is smaller. It is read in ascending order.
type set struct {
	list []uint64
	bits []uint64
	size int
	at   int // where the last search in the list ended
}

// newSet returns an empty set for about n numbers up to last.
func newSet(n int, last uint64) set {
	if uint64(n) > last/64 {
		return set{bits: make([]uint64, last/64+1)}
	}
	return set{list: make([]uint64, 0, n)}
}

// setSize returns how many bytes such a set takes.
func setSize(n int, last uint64) int { return 8 * min(n, int(last/64)+1) }

// add adds a number, in any order. Numbers above last are ignored.
func (s *set) add(doc uint64) {
	if s.bits == nil {
		s.list = append(s.list, doc)
	} else if i := doc / 64; i < uint64(len(s.bits)) {
		s.bits[i] |= 1 << (doc % 64)
	}
}

// done must be called when all numbers have been added.
func (s *set) done() {
	if s.bits == nil {
		if !slices.IsSorted(s.list) {
			slices.Sort(s.list)
		}
		s.list = slices.Compact(s.list)
		s.size = len(s.list)
		return
	}
	for _, w := range s.bits {
		s.size += bits.OnesCount64(w)
	}
}

func (s *set) len() int { return s.size }
func (s *set) rewind()  { s.at = 0 }

// has reports whether a number is in the set.
func (s *set) has(doc uint64) bool {
	if s.bits == nil {
		_, ok := slices.BinarySearch(s.list, doc)
		return ok
	}
	i := doc / 64
	return i < uint64(len(s.bits)) && s.bits[i]>>(doc%64)&1 != 0
}

// next returns the first number from doc on, or end. It must be called with ascending numbers.
func (s *set) next(doc uint64) uint64 {
	if s.bits == nil {
		if s.at = ahead(len(s.list), s.at, func(i int) bool { return s.list[i] < doc }); s.at == len(s.list) {
			return end
		}
		return s.list[s.at]
	}
	i := doc / 64
	if i >= uint64(len(s.bits)) {
		return end
	}
	for w := s.bits[i] &^ (1<<(doc%64) - 1); ; w = s.bits[i] {
		if w != 0 {
			return i*64 + uint64(bits.TrailingZeros64(w))
		}
		if i++; i == uint64(len(s.bits)) {
			return end
		}
	}
}

// ahead returns the first index from at on for which before is false, or n. It takes steps of growing length, so a near one
// is found at once and a far one in logarithmic time.
func ahead(n, at int, before func(i int) bool) int {
	step := 1
	low, high := at, at
	for high < n && before(high) {
		low = high + 1
		high += step
		step *= 2
	}
	for high = min(high, n); low < high; {
		if middle := (low + high) / 2; before(middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
