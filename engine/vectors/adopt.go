package vectors

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine/vectors/graph"
)

// This file takes over sets of another server with their vectors, projections and links unchanged.

// Errors in sets of another server.
var (
	errSettings = errors.New("vector set: dimensions, links or projection are out of range")
	errElement  = errors.New("vector set: an element is malformed")
	errNumber   = errors.New("vector set: two elements have the same number, or a link leads to none")
)

// Element is an element of another server's set.
type Element struct {
	Name, Attributes []byte // empty attributes are none
	// Raw, Norm and Unit are as AppendRaw returns them.
	Raw        []byte
	Norm, Unit float32
	// Number stands for the element in the links of others. It is above 0.
	Number uint64
	// Links has the numbers of the linked elements for each level, from the lowest up.
	Links [][]uint64
}

// Adopter builds a set from the elements of another server.
type Adopter struct {
	s       *Set
	numbers map[uint64]uint32
	links   []uint64 // of all elements: for each level the number of links, and the links
	levels  []uint8  // of all elements
	max     uint64   // the largest number
}

// NewAdopter returns an Adopter without elements. matrix has the rows of the projection, if c has one; it is kept.
func NewAdopter(c Settings, matrix []float32) (*Adopter, error) {
	if c.Dim < 1 || c.Dim > MaxDim || c.M < MinM || c.M > MaxM || c.Quant > None || c.Input < 0 ||
		(matrix != nil) != (c.Input > 0) || len(matrix) != c.Input*c.Dim {
		return nil, errSettings
	}
	for _, x := range matrix {
		if !(math.Abs(float64(x)) <= math.MaxFloat32) {
			return nil, errSettings
		}
	}
	s := &Set{dim: c.Dim, quant: c.Quant, m: c.M, proj: Projection{c.Input, c.Dim, seed, matrix}, seed: seed}
	s.prepare()
	return &Adopter{s: s, numbers: map[uint64]uint32{}}, nil
}

// Add adds an element. It keeps none of its memory.
func (a *Adopter) Add(e *Element) error {
	s := a.s
	id := uint32(s.Len())
	if _, twice := a.numbers[e.Number]; twice || e.Number == 0 || id == math.MaxInt32 {
		return errNumber
	}
	if !(e.Norm >= 0) || len(e.Links) == 0 || len(e.Links) > graph.MaxLevel+1 || !a.addVector(e) {
		return errElement
	}
	if _, twice := s.order.get(view(e.Name)); twice {
		return errTwice
	}
	s.norms.Push()[0] = min(e.Norm, math.MaxFloat32)
	s.texts.Push()
	if len(e.Attributes) > 0 {
		s.withAttributes++
		s.setText(id, makeText(e.Name, e.Attributes))
	} else {
		s.setText(id, makeText(e.Name, nil))
	}
	s.order.insert(s.Name(id), id)
	a.numbers[e.Number] = id
	a.max = max(a.max, e.Number)
	a.levels = append(a.levels, uint8(len(e.Links)-1))
	for _, links := range e.Links {
		a.links = append(append(a.links, uint64(len(links))), links...)
	}
	return nil
}

// addVector adds the vector of an element, and reports whether it is valid.
func (a *Adopter) addVector(e *Element) bool {
	s := a.s
	words, floats := s.quant.code(s.dim)
	switch s.quant {
	case Q8:
		if len(e.Raw) != s.dim {
			return false
		}
		w := s.words.Push()
		sum := uint64(0)
		for i := range 8 * (words - 1) {
			c := uint64(shift8)
			if i < s.dim {
				c = uint64(int64(int8(e.Raw[i])) + shift8)
			}
			w[1+i/8] |= c << (8 * (i % 8))
			sum += c
		}
		w[0] = uint64(math.Float32bits(e.Unit)) | sum<<32
		return valid8(w, s.dim)
	case Bin:
		if len(e.Raw) != 8*words {
			return false
		}
		w := s.words.Push()
		for i := range w {
			w[i] = binary.LittleEndian.Uint64(e.Raw[8*i:])
		}
		return s.dim%64 == 0 || w[words-1]>>(s.dim%64) == 0
	}
	if len(e.Raw) != 4*floats {
		return false
	}
	v := s.floats.Push()
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(e.Raw[4*i:]))
		if !(v[i] >= -1.001 && v[i] <= 1.001) {
			return false
		}
	}
	return true
}

// Finish returns the set. It is an error if there is no element, or if a link does not go both ways. Elements lose
// links for which there is no room.
func (a *Adopter) Finish() (*Set, error) {
	s := a.s
	if s.Len() == 0 {
		return nil, errOrder
	}
	dropped, err := a.resolve()
	if err != nil {
		return nil, err
	}
	load := s.graph.Load(s.Len())
	var data []byte
	a.each(func(id uint32, level int, links []uint64) {
		if len(dropped) > 0 {
			links = slices.DeleteFunc(slices.Clone(links), func(other uint64) bool {
				return dropped[pairOf(id, uint32(other), level)]
			})
		}
		data = binary.AppendUvarint(data, uint64(len(links)))
		last := uint64(0)
		for _, other := range links {
			data = binary.AppendUvarint(data, other-last)
			last = other
		}
		if level == int(a.levels[id]) && err == nil {
			err = load.Add(data)
			data = data[:0]
		}
	})
	if err != nil {
		return nil, err
	}
	entry := slices.Index(a.levels, slices.Max(a.levels))
	if err := load.Finish(max(a.max, uint64(s.Len())), uint32(entry), int(a.levels[entry])); err != nil {
		return nil, err
	}
	s.large = s.isLarge()
	return s, nil
}

// pair is a link on a level, in either direction.
type pair struct {
	low, high uint32
	level     int
}

func pairOf(a, b uint32, level int) pair { return pair{min(a, b), max(a, b), level} }

// each calls fn with the links of each element on each level, in order.
func (a *Adopter) each(fn func(id uint32, level int, links []uint64)) {
	rest := a.links
	for id, top := range a.levels {
		for level := range int(top) + 1 {
			n := 1 + rest[0]
			fn(uint32(id), level, rest[1:n])
			rest = rest[n:]
		}
	}
}

// resolve converts links to sorted node numbers, and returns the links for which there is no room.
func (a *Adopter) resolve() (dropped map[pair]bool, err error) {
	full := false
	a.each(func(_ uint32, level int, links []uint64) {
		for i, number := range links {
			other, ok := a.numbers[number]
			if !ok {
				err = errNumber
			}
			links[i] = uint64(other)
		}
		slices.Sort(links)
		full = full || len(links) > a.s.graph.Room(level)
	})
	if err != nil || !full {
		return nil, err
	}
	return a.prune(), nil
}

// prune chooses links to drop until all others have room: of an element with too many links, those to the elements with
// the most links.
func (a *Adopter) prune() map[pair]bool {
	type place struct {
		id    uint32
		level int
	}
	count := map[place]int{}
	a.each(func(id uint32, level int, links []uint64) { count[place{id, level}] = len(links) })
	dropped := map[pair]bool{}
	a.each(func(id uint32, level int, links []uint64) {
		beyond := count[place{id, level}] - a.s.graph.Room(level)
		if beyond <= 0 {
			return
		}
		byCount := slices.SortedStableFunc(slices.Values(links), func(x, y uint64) int {
			return count[place{uint32(y), level}] - count[place{uint32(x), level}]
		})
		for _, other := range byCount {
			p := pairOf(id, uint32(other), level)
			if beyond == 0 || dropped[p] {
				continue
			}
			dropped[p] = true
			count[place{id, level}]--
			count[place{uint32(other), level}]--
			beyond--
		}
	})
	return dropped
}
