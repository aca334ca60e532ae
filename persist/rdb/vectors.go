package rdb

import (
	"encoding/binary"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/vectors"
)

// vectorKind is the kind of vector sets. They belong to a module of Redis, which writes
//
//	dimensions, number of elements, and quantisation (8 bits) with M above it
//	flags; with flagMatrix the dimensions before projection, and the matrix as 32-bit floats in a string
//	for each element its name, with flagAttributes its attributes, its vector as it is kept, the number of its parameters
//	and these: its number, its highest level with the version above it, for each level the number of its links, how many
//	there can be, the numbers of the elements that they lead to, in version 1 which of them is the farthest; and at last
//	the length of the vector (32 bits) with the largest component above it
//
// Elements are written in version 0, which every Redis with vector sets reads. It has no empty attributes.
var vectorKind = kind{
	module:        "atomVECTR", // our own form, which older versions have written
	moduleVersion: 1,
	read: func(d *decoder, _ byte, _ *Limits) (any, error) {
		return readParts[*vectors.Set](d, vectors.NewLoader())
	},
	redis: []moduleForm{{name: vectorModule, read: readVectors}},
	form:  plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) { e.vectors(entry.Vectors()) },
}

const (
	vectorModule = "vectorset" // its only version is 0

	flagMatrix     = 1
	flagAttributes = 2

	maxElementVersion = 1
)

// quantisations is indexed by the module's numbers.
var quantisations = [...]vectors.Quantisation{0: vectors.None, 1: vectors.Q8, 2: vectors.Bin}

func (e *Encoder) vectors(s *vectors.Set) {
	w := e.moduleHead(vectorModule, 0)
	config := uint64(s.M()) << 8
	for number, q := range quantisations {
		if q == s.Quant() {
			config |= uint64(number)
		}
	}
	flags := uint64(0)
	if s.Projection() != nil {
		flags |= flagMatrix
	}
	if s.WithAttributes() > 0 {
		flags |= flagAttributes
	}
	w.Uint(uint64(s.Dim()), uint64(s.Len()), config, flags)
	if p := s.Projection(); p != nil {
		w.Uint(uint64(p.Input))
		var matrix []byte
		var row []float32
		for i := range p.Output {
			row = p.AppendRow(row[:0], i)
			for _, x := range row {
				matrix = binary.LittleEndian.AppendUint32(matrix, math.Float32bits(x))
			}
		}
		e.moduleString(matrix)
	}
	var raw []byte
	for id := range uint32(s.Len()) {
		w.Text(s.Name(id))
		if attributes, _ := s.Attributes(id); flags&flagAttributes != 0 {
			w.Text(attributes)
		}
		var norm, unit float32
		raw, norm, unit = s.AppendRaw(raw[:0], id)
		e.moduleString(raw)
		e.vectorNode(s, id)
		w.Uint(uint64(math.Float32bits(norm)) | uint64(math.Float32bits(unit))<<32)
		e.written()
	}
	w.End()
}

// vectorNode writes the number of an element's parameters, and all parameters except the last.
func (e *Encoder) vectorNode(s *vectors.Set, id uint32) {
	top := s.Level(id)
	count := uint64(3) // number, level, length
	for level := range top + 1 {
		count += 2 + uint64(len(s.Links(id, level)))
	}
	w := ModuleWriter{e}
	w.Uint(count, nodeNumber(s, id), uint64(top))
	for level := range top + 1 {
		links := s.Links(id, level)
		w.Uint(uint64(len(links)), uint64(s.Room(level)))
		for _, other := range links {
			w.Uint(nodeNumber(s, other))
		}
	}
}

// nodeNumber returns the number of an element. The last element's number is the count of elements ever added.
func nodeNumber(s *vectors.Set, id uint32) uint64 {
	if int(id) == s.Len()-1 {
		return max(s.Added(), uint64(id)+1)
	}
	return uint64(id) + 1
}

// readVectors reads a set.
func readVectors(m *Module, _ *Limits) any {
	c := vectors.Settings{Dim: int(min(m.Uint(), math.MaxInt32))}
	count, config, flags := m.Uint(), m.Uint(), m.Uint()
	if config&0xff >= uint64(len(quantisations)) {
		m.Corrupt("a vector set of the unknown quantisation %d", config&0xff)
		return nil
	}
	c.Quant = quantisations[config&0xff]
	if c.M = int(config >> 8 & 0xffff); c.M == 0 { // the first versions had only this one
		c.M = vectors.DefaultM
	}
	var matrix []float32
	if flags&flagMatrix != 0 {
		c.Input = int(min(m.Uint(), math.MaxInt32))
		b := m.bytes()
		matrix = make([]float32, len(b)/4)
		for i := range matrix {
			matrix[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	a, err := vectors.NewAdopter(c, matrix)
	if err != nil {
		m.Corrupt("%v", err)
		return nil
	}
	for ; count > 0 && m.err == nil; count-- {
		e := vectors.Element{Name: []byte(m.Text())}
		if flags&flagAttributes != 0 {
			e.Attributes = []byte(m.Text())
		}
		e.Raw = []byte(m.Text())
		m.vectorNode(&e)
		if m.err == nil {
			if err := a.Add(&e); err != nil {
				m.Corrupt("%v", err)
			}
		}
	}
	if m.err != nil {
		return nil
	}
	s, err := a.Finish()
	if err != nil {
		m.Corrupt("%v", err)
	}
	return s
}

// vectorNode reads the number of an element's parameters, and the parameters.
func (m *Module) vectorNode(e *vectors.Element) {
	left := m.Uint()
	next := func() uint64 {
		if left == 0 {
			m.Corrupt("an element of a vector set with too few parameters")
			return 0
		}
		left--
		return m.Uint()
	}
	e.Number = next()
	head := next()
	version := head >> 24 & 0xff
	if version > maxElementVersion {
		m.Corrupt("an element of a vector set in the unknown version %d", version)
	}
	for level := uint64(0); level <= head&0xff && m.err == nil; level++ {
		n := next()
		next() // the limit of links
		var links []uint64
		for ; n > 0 && m.err == nil; n-- {
			links = append(links, next())
		}
		e.Links = append(e.Links, links)
		if version > 0 {
			next()
		}
	}
	last := next()
	e.Norm, e.Unit = math.Float32frombits(uint32(last)), math.Float32frombits(uint32(last>>32))
	if left > 0 {
		m.Corrupt("an element of a vector set with too many parameters")
	}
}
