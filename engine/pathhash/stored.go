package pathhash

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/atomredis/atomredis/engine/delta"
)

// How path hashes are stored. The parts are named
//
//	a            the format
//	p and bytes  the path that the bytes are: its fields, each with its value; all with their lengths
//
// in this order. A small path hash is stored whole: each part's name and data with their lengths.

// format is the first byte of the first part.
const format = 1

const (
	headName = "a"
	kindPath = 'p'

	// smallBytes is the most memory, in bytes, that a path hash stored whole may take.
	smallBytes = 8 << 10
)

// Errors of stored data.
var (
	errFormat = errors.New("path hash: unknown stored format")
	errCut    = errors.New("path hash: stored form ends within a part")
	errOrder  = errors.New("path hash: stored parts are out of order")
	errName   = errors.New("path hash: the name of a stored part is malformed")
	errNoHead = errors.New("path hash: the part that every path hash has is missing or malformed")
	errFields = errors.New("path hash: the stored fields of a path are malformed")
)

// tracking is the state of a path hash whose changes are tracked.
type tracking struct {
	log  *delta.Log
	name []byte // buffer for a part's name
}

// note must be called before the fields of a path change, appear or go; e has them, or is nil for a new path. It returns
// the present epoch.
func (t *Tree) note(path []byte, e *entry) (epoch uint32) {
	if t.track == nil {
		return 0
	}
	log := t.track.log
	t.track.name = append(append(t.track.name[:0], kindPath), path...)
	log.Before(t.track.name, t)
	epoch = log.Epoch()
	if e == nil || e.noted != epoch {
		if e != nil {
			e.noted = epoch
		}
		log.After(string(t.track.name), t.paths)
	}
	return epoch
}

// Large reports whether the path hash must be stored in parts.
func (t *Tree) Large() bool { return t.memory > smallBytes }

// Track makes the path hash note changed parts in log from now on. All present parts count as changed.
func (t *Tree) Track(log *delta.Log) {
	t.Attach(log)
	for c, more := (delta.Cursor{}), true; more; {
		c, more = t.Walk(c, math.MaxInt, func(name string) { log.After(name, t.paths) })
	}
}

// Attach makes the path hash note changed parts in log from now on; nil ends that.
func (t *Tree) Attach(log *delta.Log) {
	t.track = nil
	if log == nil {
		return
	}
	t.track = &tracking{log: log}
	for _, e := range t.from(nil) {
		e.noted = 0
	}
}

// Log returns the record of changes, nil if the path hash has none.
func (t *Tree) Log() *delta.Log {
	if t.track == nil {
		return nil
	}
	return t.track.log
}

// Walk calls fn with the names of about count parts, or fewer, in their order.
func (t *Tree) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	if c.Name == "" {
		fn(headName)
		c.Name = string(kindPath)
	}
	for path := range t.from([]byte(c.Name[1:])) {
		name := string(kindPath) + string(path)
		if count <= 0 {
			return delta.Cursor{Name: name}, true
		}
		fn(name)
		count--
	}
	return delta.Cursor{}, false
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (t *Tree) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	switch {
	case name == headName:
		return append(dst, format), true
	case name == "" || name[0] != kindPath:
		return dst, false
	}
	e := t.find([]byte(name[1:]))
	if e == nil {
		return dst, false
	}
	return e.appendStored(dst), true
}

func (e *entry) appendStored(dst []byte) []byte {
	for field, value := range e.fields.All() {
		dst = appendElement(appendElement(dst, field), value)
	}
	return dst
}

// appendElement appends bytes with their length.
func appendElement(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// cut removes bytes with their length from the front of b.
func cut(b []byte) (element, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	end := w + int(n)
	return b[w:end], b[end:], true
}

// AppendBlob appends the stored form of the whole path hash to dst.
func (t *Tree) AppendBlob(dst []byte) []byte {
	dst = appendElement(appendElement(dst, []byte(headName)), []byte{format})
	var data, name []byte
	for path, e := range t.from(nil) {
		name = append(append(name[:0], kindPath), path...)
		data = e.appendStored(data[:0])
		dst = appendElement(appendElement(dst, name), data)
	}
	return dst
}

// DecodeBlob returns the path hash that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Tree, error) {
	l := NewLoader()
	for len(b) > 0 {
		var name, data []byte
		var ok bool
		if name, b, ok = cut(b); !ok {
			return nil, errCut
		}
		if data, b, ok = cut(b); !ok {
			return nil, errCut
		}
		if err := l.Add(name, data); err != nil {
			return nil, err
		}
	}
	return l.Finish(nil)
}

// Loader builds a path hash from its parts.
type Loader struct {
	t    *Tree
	last string // the name of the last part
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{t: New()} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no path hash, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if l.last != "" && string(name) <= l.last {
		return errOrder
	}
	first := l.last == ""
	l.last = string(name)
	switch {
	case first != (l.last == headName):
		return errNoHead
	case first && (len(data) != 1 || data[0] != format):
		return errFormat
	case first:
		return nil
	case name[0] != kindPath:
		return errName
	}
	e, count := new(entry), 0
	for len(data) > 0 {
		var field, value []byte
		var ok bool
		if field, data, ok = cut(data); !ok {
			return errFields
		}
		if value, data, ok = cut(data); !ok {
			return errFields
		}
		e.fields.Set(field, value, limits)
		if count++; e.fields.Len() != count {
			return errFields
		}
	}
	if count == 0 {
		return errFields
	}
	l.t.node(name[1:]).entry = e
	l.t.paths++
	l.t.memory += e.size()
	return nil
}

// Finish returns the path hash, which notes its changes in log.
func (l *Loader) Finish(log *delta.Log) (*Tree, error) {
	if l.last == "" {
		return nil, errNoHead
	}
	if log != nil {
		l.t.track = &tracking{log: log}
	}
	return l.t, nil
}
