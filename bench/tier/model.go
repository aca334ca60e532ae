//go:build linux

package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// The keys of a long run and their contents. A key's content, and that of each element, is a function of its number and
// of how often the element was written. So every reply is known beforehand.

// Types of values.
const (
	aString = iota
	aHash
	aZSet
	aStream
	aList
)

const (
	stringSize  = 1000 // bytes of a string
	elementSize = 100  // bytes of a field's value, of an entry and of a list element; members are short
	shareString = 12   // of 16 keys

	small, large, huge = 40, 4000, 100_000 // elements of a collection: 4 KB, 400 KB and 10 MB
	oneLarge, oneHuge  = 100, 20_000       // one collection in this many is that large
)

// meanSize is the approximate mean size of a key's values in bytes.
func meanSize() float64 {
	elements := small + float64(large)/oneLarge + float64(huge)/oneHuge
	return (shareString*stringSize + (16-shareString)*elements*elementSize) / 16
}

// mix maps a number to one that looks random.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// kind returns a key's type and its initial number of elements.
func kind(key uint32) (typ, elements int) {
	x := mix(uint64(key))
	if x%16 < shareString {
		return aString, 1
	}
	typ = aHash + int(x>>8%4)
	switch x >>= 16; {
	case x%oneHuge == 0:
		return typ, huge
	case x%oneLarge == 0:
		return typ, large
	}
	return typ, small
}

// appendValue appends the content of an element. One half of it looks random, the other does not.
func appendValue(dst []byte, key uint32, element int, version uint32, size int) []byte {
	seed := mix(uint64(key)<<32 | uint64(version))
	seed = mix(seed ^ uint64(element))
	end := len(dst) + size
	for x := seed; len(dst) < end; {
		dst = binary.LittleEndian.AppendUint64(dst, x)
		if len(dst) < end-size/2 {
			x = mix(x)
		}
	}
	return dst[:end]
}

// score is the score of a member of a sorted set: an integer, so that its text is known.
func score(key uint32, member int, version uint32) uint64 {
	return mix(mix(uint64(key)<<32|uint64(version))^uint64(member)) >> 24
}

// model is the content of the keys that one connection writes.
type model struct {
	versions map[element]uint32 // how often elements were written since the beginning; missing for none
	ends     map[uint32]ends    // of lists and streams that have changed
}

type element struct {
	key uint32
	at  int32
}

// ends are the numbers of the first element of a list or a stream, and of the position after the last.
type ends struct{ first, behind int }

func (m *model) endsOf(key uint32) ends {
	if e, ok := m.ends[key]; ok {
		return e
	}
	_, n := kind(key)
	return ends{0, n}
}

func (m *model) version(key uint32, at int) uint32 { return m.versions[element{key, int32(at)}] }

func (m *model) next(key uint32, at int) uint32 {
	e := element{key, int32(at)}
	m.versions[e]++
	return m.versions[e]
}

// zipf draws numbers from 0 to n-1, the k-th in proportion to k to the power of -skew, which is below 1. The method is
// that of Gray et al., Quickly generating billion-record synthetic databases.
type zipf struct {
	n, skew, alpha, zeta, eta float64
	r                         *rand.Rand
}

func newZipf(n int, skew float64) *zipf {
	z := &zipf{n: float64(n), skew: skew, alpha: 1 / (1 - skew), r: rand.New(rand.NewPCG(1, 2))}
	for k := range n {
		z.zeta += math.Pow(float64(k+1), -skew)
	}
	z.eta = (1 - math.Pow(2/z.n, 1-skew)) / (1 - (1+math.Pow(2, -skew))/z.zeta)
	return z
}

func (z *zipf) next() int {
	u := z.r.Float64()
	switch uz := u * z.zeta; {
	case uz < 1:
		return 0
	case uz < 1+math.Pow(2, -z.skew):
		return 1
	}
	return min(int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), int(z.n)-1)
}
