package documents

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine/delta"
)

// This file reads documents stored in form 1, the only form before form 2. The parts had the same names. A value was
// its kind, followed by:
//
//	an integer: a varint
//	an integer beyond int64: a uvarint
//	a double: eight bytes, little-endian
//	a string: its length as a uvarint, and its bytes
//	an array, an object: the number of elements as a uvarint, and the elements
//	a divided array or object: its id as a uvarint
//
// A member of an object was its name, as a string, and its value.

// formerFormat is the first byte of all data stored in form 1.
const formerFormat = 1

// The kinds of values of form 1.
const (
	formerNull = iota
	formerFalse
	formerTrue
	formerInt
	formerUint
	formerDouble
	formerText
	formerArray
	formerObject
	formerArrayPages
	formerObjectPages
)

// formerDepth is how deep values may be nested: stored values may be one level deeper than MaxDepth.
const formerDepth = 128

// formerReader consumes values of form 1 from b.
type formerReader struct {
	b []byte
	// divided returns a container that is stored in parts; nil if none is possible.
	divided func(id uint64, object bool, depth int) (Value, error)
}

func (r *formerReader) uvarint() (uint64, bool) {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		return 0, false
	}
	r.b = r.b[size:]
	return n, true
}

func (r *formerReader) text() (string, error) {
	n, ok := r.uvarint()
	if !ok || n > uint64(len(r.b)) {
		return "", errValue
	}
	checked := reader{b: r.b[:n]}
	if err := checked.text(n); err != nil {
		return "", err
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s, nil
}

// value reads a value nested in depth others.
func (r *formerReader) value(depth int) (Value, error) {
	if len(r.b) == 0 {
		return Value{}, errValue
	}
	kind := r.b[0]
	r.b = r.b[1:]
	switch kind {
	case formerNull:
		return Value{}, nil
	case formerFalse, formerTrue:
		return Bool(kind == formerTrue), nil
	case formerInt:
		i, size := binary.Varint(r.b)
		if size <= 0 {
			return Value{}, errValue
		}
		r.b = r.b[size:]
		return Int(i), nil
	case formerUint:
		u, ok := r.uvarint()
		if !ok || u <= math.MaxInt64 {
			return Value{}, errValue
		}
		return Uint(u), nil
	case formerDouble:
		if len(r.b) < 8 {
			return Value{}, errValue
		}
		f := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return Value{}, errValue
		}
		r.b = r.b[8:]
		return Double(f), nil
	case formerText:
		s, err := r.text()
		return Text(s), err
	case formerArray, formerObject:
		n, ok := r.uvarint()
		if !ok || n > uint64(len(r.b)) {
			return Value{}, errValue
		}
		return r.container(int(n), kind == formerObject, depth)
	case formerArrayPages, formerObjectPages:
		id, ok := r.uvarint()
		switch {
		case !ok:
			return Value{}, errValue
		case r.divided == nil:
			return Value{}, errNoPages
		}
		return r.divided(id, kind == formerObjectPages, depth)
	}
	return Value{}, errValue
}

// container reads the n elements of a container nested in depth others.
func (r *formerReader) container(n int, object bool, depth int) (Value, error) {
	var c formerContainer
	if err := c.take(r, n, object, depth); err != nil {
		return Value{}, err
	}
	return c.value(object)
}

// formerContainer collects the elements of a container.
type formerContainer struct {
	names  []string
	values []Value
}

// take adds n elements, or all there are if n is negative. The container is nested in depth others.
func (c *formerContainer) take(r *formerReader, n int, object bool, depth int) error {
	if depth == formerDepth {
		return errDepth
	}
	for taken := 0; taken != n && (n >= 0 || len(r.b) > 0); taken++ {
		if object {
			name, err := r.text()
			if err != nil {
				return err
			}
			c.names = append(c.names, name)
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
	}
	return nil
}

func (c *formerContainer) value(object bool) (Value, error) {
	if !object {
		return NewArray(c.values...), nil
	}
	names := make(map[string]struct{}, len(c.names))
	for _, name := range c.names {
		names[name] = struct{}{}
	}
	if len(names) < len(c.names) {
		return Value{}, errTwice
	}
	return NewObject(c.names, c.values), nil
}

// decodeFormer returns a document that was stored whole in form 1.
func decodeFormer(b []byte) (*Document, error) {
	r := formerReader{b: b}
	v, err := r.value(0)
	if err == nil && len(r.b) > 0 {
		err = errValue
	}
	if err != nil {
		return nil, err
	}
	return New(v), nil
}

// formerParts has the parts, read so far, of a document stored in form 1.
type formerParts struct {
	names []string
	root  []byte
	// chunks has those of each divided container, in the order of their keys.
	chunks map[uint64][][]byte
	used   int // containers referred to by a value
}

// add adds a copy of a part; data follows the format byte.
func (f *formerParts) add(id uint64, name, data []byte) {
	f.names = append(f.names, string(name))
	data = slices.Clone(data)
	if id == 0 {
		f.root = data
		return
	}
	if f.chunks == nil {
		f.chunks = map[uint64][][]byte{}
	}
	f.chunks[id] = append(f.chunks[id], data)
}

// divided returns a container nested in depth others. Only one value may refer to it.
func (f *formerParts) divided(id uint64, object bool, depth int) (Value, error) {
	chunks := f.chunks[id]
	if len(chunks) == 0 {
		return Value{}, errPages
	}
	f.chunks[id] = nil
	f.used++
	var c formerContainer
	for _, data := range chunks {
		if len(data) < 2 || data[0] != byte(formerArray+btoi(object)) {
			return Value{}, errPages
		}
		if err := c.take(&formerReader{data[1:], f.divided}, -1, object, depth); err != nil {
			return Value{}, err
		}
	}
	return c.value(object)
}

// document returns the document. Its parts differ from the stored ones: its first change marks all of them as changed.
func (f *formerParts) document(log *delta.Log) (*Document, error) {
	if f.root == nil {
		return nil, errNoRoot
	}
	r := formerReader{f.root, f.divided}
	v, err := r.value(0)
	switch {
	case err != nil:
		return nil, err
	case len(r.b) > 0:
		return nil, errValue
	case f.used < len(f.chunks):
		return nil, errPages
	}
	d := New(v)
	if d.parts == nil {
		d.parts = &parts{}
	}
	d.parts.log, d.parts.former = log, f.names
	slices.SortFunc(d.parts.big, func(a, b *pages) int { return cmp.Compare(a.id, b.id) })
	return d, nil
}

// noteFormer marks all parts as changed, and those of form 1 as gone.
func (d *Document) noteFormer() {
	names := d.parts.former
	d.parts.former = nil
	for _, name := range names {
		d.parts.log.After(name, len(names))
	}
	d.eachPart(func(name string) { d.parts.log.After(name, len(names)) })
}
