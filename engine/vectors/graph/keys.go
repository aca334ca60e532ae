package graph

import (
	"math"
	"slices"
)

// Key is a distance and a node. Keys are ordered by distance, then by node.
type Key uint64

// MakeKey returns the key of a distance, which must not be a NaN, and a node.
func MakeKey(distance float32, id uint32) Key {
	b := math.Float32bits(distance)
	b ^= uint32(int32(b)>>31) | 1<<31 // now ordered like the floats
	return Key(b)<<32 | Key(id)
}

// ID returns the node.
func (k Key) ID() uint32 { return uint32(k) }

// Distance returns the distance.
func (k Key) Distance() float32 {
	b := uint32(k >> 32)
	b ^= ^uint32(int32(b)>>31) | 1<<31
	return math.Float32frombits(b)
}

// nearest is a heap with the lowest key first.
type nearest []Key

func (h *nearest) push(k Key) {
	s := append(*h, k)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up] <= k {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = k
	*h = s
}

func (h *nearest) pop() Key {
	s := *h
	first, k := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return first
	}
	i := 0
	for {
		kid := 2*i + 1
		if kid >= len(s) {
			break
		}
		if kid+1 < len(s) && s[kid+1] < s[kid] {
			kid++
		}
		if s[kid] >= k {
			break
		}
		s[i] = s[kid]
		i = kid
	}
	s[i] = k
	return first
}

// Farthest is a heap with the highest key first.
type Farthest []Key

// Push adds a key.
func (h *Farthest) Push(k Key) {
	s := append(*h, k)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up] >= k {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = k
	*h = s
}

// Replace replaces the highest key.
func (h Farthest) Replace(k Key) {
	i := 0
	for {
		kid := 2*i + 1
		if kid >= len(h) {
			break
		}
		if kid+1 < len(h) && h[kid+1] > h[kid] {
			kid++
		}
		if h[kid] <= k {
			break
		}
		h[i] = h[kid]
		i = kid
	}
	h[i] = k
}

// Sort sorts the keys in ascending order.
func (h Farthest) Sort() { slices.Sort(h) }
