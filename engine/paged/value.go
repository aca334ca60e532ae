package paged

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/listpack"
)

// The parts of a value, in the order of their names. The head has everything beside pages and items. The name of a page
// continues with the numbers of its array, in two bytes, and of the page, in four. Items have no fixed place in an
// array.
const (
	partHead = 'h'
	partItem = 'i'
	partPage = 'p'

	headName = string(partHead)
	pageName = 1 + 2 + 4
)

var headBytes = []byte(headName) // read-only

// smallBytes is the most bytes of pages of a value that is stored whole.
const smallBytes = 2 * PageSize

// MaxArrays is the largest number of arrays of a value.
const MaxArrays = 1 << 10

// Errors of stored data.
var (
	errCut   = errors.New("stored form ends within a part")
	errOrder = errors.New("stored parts are out of order")
	errName  = errors.New("the name of a stored part is malformed")
	errHead  = errors.New("the head is not stored")
	errPage  = errors.New("a stored page has another size")
)

// Owner is the type that embeds a Value.
type Owner interface {
	// AppendHead appends the stored form of everything except pages and items.
	AppendHead(dst []byte) []byte
}

// Items is implemented by an Owner that also has items: named pieces stored separately.
type Items interface {
	// AppendItem appends the stored form of an item; ok is false if there is none with this name.
	AppendItem(dst []byte, name string) (out []byte, ok bool)
	// ItemsFrom calls fn with the names of the items from name on, in their order, until it returns false.
	ItemsFrom(name string, fn func(name string) bool)
}

// Value has the arrays of a sketch and implements their storage. Types embed it.
type Value struct {
	arrays  []Bytes
	written int // size of the pages written to, in bytes
	owner   Owner
	track   *tracking
}

// tracking is the state of a value whose changes are tracked.
type tracking struct {
	log  *delta.Log
	head uint32         // the last epoch in which a change of the head was noted
	name [pageName]byte // buffer for a part's name
	item []byte         // buffer for an item's name
}

// Init initialises a value without arrays.
func (v *Value) Init(owner Owner) { v.owner = owner }

// Stored returns the value itself.
func (v *Value) Stored() *Value { return v }

// Sparse reports whether the arrays have more than size bytes, of which less than an eighth are in pages that were
// written to.
func (v *Value) Sparse(size uint64) bool {
	n := uint64(0)
	for i := range v.arrays {
		n += v.arrays[i].Size()
	}
	return n > size && uint64(v.written) < n/8
}

// AddArray adds an array after the others, up to MaxArrays.
func (v *Value) AddArray(b Bytes) {
	v.NoteHead()
	v.arrays = append(v.arrays, b)
}

// Array returns one of the arrays for reading.
func (v *Value) Array(i int) *Bytes { return &v.arrays[i] }

// Write returns a page for writing.
func (v *Value) Write(array, page int) []byte {
	b := &v.arrays[array]
	if t := v.track; t != nil && !(t.log.Quiet() && b.notedIn(uint64(page)) == t.log.Epoch()) {
		t.name = [pageName]byte{partPage}
		binary.BigEndian.PutUint16(t.name[1:], uint16(array))
		binary.BigEndian.PutUint32(t.name[3:], uint32(page))
		t.log.Before(t.name[:], v)
		if b.note(page, t.log.Epoch()) {
			t.log.After(string(t.name[:]), 0)
		}
	}
	p, made := b.write(page)
	if made {
		v.written += listpack.Allocated(len(p))
	}
	return p
}

// Noted returns which pages may be written to without Write for now.
func (v *Value) Noted() Noted {
	switch t := v.track; {
	case t == nil:
		return Unnoted
	case t.log.Quiet():
		return Noted(t.log.Epoch())
	}
	return never
}

// Truncate zeroes an array from a page on, and frees that memory.
func (v *Value) Truncate(array, page int) {
	b := &v.arrays[array]
	for i, p := range b.from(page) {
		v.Write(array, i)
		v.written -= listpack.Allocated(len(p))
		b.setPage(i, nil)
	}
}

// DropArray removes the last array.
func (v *Value) DropArray() {
	last := len(v.arrays) - 1
	v.Truncate(last, 0)
	v.NoteHead()
	v.arrays = v.arrays[:last]
}

// NoteHead must be called before a change of what AppendHead writes.
func (v *Value) NoteHead() {
	t := v.track
	if t == nil || t.log.Quiet() && t.head == t.log.Epoch() {
		return
	}
	t.log.Before(headBytes, v)
	if t.head != t.log.Epoch() {
		t.head = t.log.Epoch()
		t.log.After(headName, 0)
	}
}

// NoteItem must be called before an item changes, appears or goes.
func (v *Value) NoteItem(name []byte) {
	t := v.track
	if t == nil {
		return
	}
	t.item = append(append(t.item[:0], partItem), name...)
	t.log.Before(t.item, v)
	t.log.After(string(t.item), 1)
}

// CopyTo copies the value to to, which has an owner and no arrays.
func (v *Value) CopyTo(to *Value) {
	to.arrays = make([]Bytes, len(v.arrays))
	for i := range v.arrays {
		to.arrays[i] = v.arrays[i].clone()
	}
	to.written = v.written
}

// MemoryUsage returns how many bytes the arrays take.
func (v *Value) MemoryUsage() int {
	n := v.written + cap(v.arrays)*int(unsafe.Sizeof(Bytes{}))
	for i := range v.arrays {
		b := &v.arrays[i]
		if b.pages > 1 {
			n += len(b.groups)*int(unsafe.Sizeof(group{})) + 8*min(int(b.pages), v.written/int(b.size))
		}
	}
	return n
}

// Large reports whether the value must be stored in parts.
func (v *Value) Large() bool { return v.written > smallBytes }

// Track makes the value note changed parts in l from now on. All present parts count as changed.
func (v *Value) Track(l *delta.Log) {
	v.Attach(l)
	v.names(delta.Cursor{}, func(name string) bool {
		l.After(name, 0)
		return true
	})
}

// Attach makes the value note changed parts in l from now on; nil ends that.
func (v *Value) Attach(l *delta.Log) {
	for i := range v.arrays {
		v.arrays[i].forget()
	}
	v.track = nil
	if l != nil {
		v.track = &tracking{log: l}
	}
}

// Log returns the record of changes, nil if there is none.
func (v *Value) Log() *delta.Log {
	if v.track == nil {
		return nil
	}
	return v.track.log
}

// Walk calls fn with the names of about count parts.
func (v *Value) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	v.names(c, func(name string) bool {
		if count == 0 {
			next, more = delta.Cursor{Name: name}, true
			return false
		}
		fn(name)
		count--
		return true
	})
	return next, more
}

// names calls fn with the names of the parts from a position on, in order, until it returns false.
func (v *Value) names(c delta.Cursor, fn func(name string) bool) {
	kind, array, page, rest := byte(partHead), 0, 0, ""
	if c.Name != "" { // a name made by names
		kind, rest = c.Name[0], c.Name[1:]
	}
	if kind == partHead && !fn(headName) {
		return
	}
	if kind == partPage {
		array, page, _ = parsePage([]byte(rest))
	} else if items, ok := v.owner.(Items); ok {
		more := true
		if kind == partHead {
			rest = ""
		}
		items.ItemsFrom(rest, func(name string) bool {
			more = fn(string(partItem) + name)
			return more
		})
		if !more {
			return
		}
	}
	for ; array < len(v.arrays); array, page = array+1, 0 {
		for i := range v.arrays[array].from(page) {
			name := make([]byte, 0, pageName)
			name = binary.BigEndian.AppendUint16(append(name, partPage), uint16(array))
			name = binary.BigEndian.AppendUint32(name, uint32(i))
			if !fn(unsafe.String(unsafe.SliceData(name), len(name))) {
				return
			}
		}
	}
}

// parsePage parses the name of a page after its first byte.
func parsePage(name []byte) (array, page int, ok bool) {
	if len(name) != pageName-1 {
		return 0, 0, false
	}
	return int(binary.BigEndian.Uint16(name)), int(binary.BigEndian.Uint32(name[2:])), true
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (v *Value) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	if name == "" {
		return dst, false
	}
	switch name[0] {
	case partHead:
		return v.owner.AppendHead(dst), true
	case partItem:
		return v.owner.(Items).AppendItem(dst, name[1:])
	}
	array, page, ok := parsePage([]byte(name[1:]))
	if !ok || array >= len(v.arrays) || page >= v.arrays[array].Pages() {
		return dst, false
	}
	p := v.arrays[array].Page(page)
	return append(dst, p...), p != nil
}

// AppendBlob appends the stored form of the whole value to dst: name and data of every part with their lengths, as
// unsigned varints.
func (v *Value) AppendBlob(dst []byte) []byte {
	var data []byte
	v.names(delta.Cursor{}, func(name string) bool {
		data, _ = v.AppendPart(data[:0], name)
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
		return true
	})
	return dst
}

// Sketch is a type that embeds a Value.
type Sketch interface{ Stored() *Value }

// Loader builds a sketch from its parts.
type Loader[T Sketch] struct {
	// Head makes a sketch from the output of AppendHead. It may have arrays, but no memory for pages yet.
	Head func(data []byte) (T, error)
	// Item adds an item; nil if there are none.
	Item func(sketch T, name, data []byte) error
	// End checks the whole; it may be nil.
	End func(sketch T) error

	sketch T
	last   string // the name of the last part added
}

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no such sketch, is an error. After an error the Loader is useless.
func (l *Loader[T]) Add(name, data []byte) error {
	if string(name) <= l.last { // no name is empty
		return errOrder
	}
	first := l.last == ""
	l.last = string(name)
	switch {
	case first != (string(name) == headName):
		return errHead
	case first:
		sketch, err := l.Head(data)
		l.sketch = sketch
		return err
	case name[0] == partItem && l.Item != nil:
		return l.Item(l.sketch, name[1:], data)
	case name[0] == partPage:
		array, page, ok := parsePage(name[1:])
		if !ok {
			return errName
		}
		return l.sketch.Stored().SetPage(array, page, data)
	}
	return errName
}

// SetPage writes a page that comes from elsewhere. It fails if there is no such page, or if its size differs.
func (v *Value) SetPage(array, page int, data []byte) error {
	if array >= len(v.arrays) || page >= v.arrays[array].Pages() {
		return errName
	}
	if len(data) != v.arrays[array].sizeOf(page) {
		return errPage
	}
	copy(v.Write(array, page), data)
	return nil
}

// Fill writes data at a place of an array, where there is room for it. Where only zeros would be written to a page of zeros it
// takes no memory.
func (v *Value) Fill(array int, at uint64, data []byte) {
	b := &v.arrays[array]
	for len(data) > 0 {
		page, i := int(at/uint64(b.size)), int(at%uint64(b.size))
		n := min(b.sizeOf(page)-i, len(data))
		if b.Page(page) != nil || !bytes.Equal(data[:n], zeros[:n]) {
			copy(v.Write(array, page)[i:], data[:n])
		}
		data, at = data[n:], at+uint64(n)
	}
}

// Finish returns the sketch, which notes its changes in log.
func (l *Loader[T]) Finish(log *delta.Log) (sketch T, err error) {
	if l.last == "" {
		return sketch, errHead
	}
	if l.End != nil {
		if err := l.End(l.sketch); err != nil {
			return sketch, err
		}
	}
	if log != nil {
		l.sketch.Stored().Attach(log)
	}
	return l.sketch, nil
}

// Decode returns the sketch that AppendBlob has stored, or an error if b is not one. It does not keep b.
func (l *Loader[T]) Decode(b []byte) (sketch T, err error) {
	for len(b) > 0 {
		var part [2][]byte
		for i := range part {
			n, w := binary.Uvarint(b)
			if w <= 0 || n > uint64(len(b)-w) {
				return sketch, errCut
			}
			part[i], b = b[w:w+int(n)], b[w+int(n):]
		}
		if err := l.Add(part[0], part[1]); err != nil {
			return sketch, err
		}
	}
	return l.Finish(nil)
}

// Reader reads the numbers of a head. After an error it returns zeros.
type Reader struct {
	b   []byte
	bad bool
}

// NewReader returns a Reader of b.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Uint reads an unsigned varint between min and max.
func (r *Reader) Uint(min, max uint64) uint64 {
	n, w := binary.Uvarint(r.b)
	if r.bad = r.bad || w <= 0 || n < min || n > max; r.bad {
		return 0
	}
	r.b = r.b[w:]
	return n
}

// Fixed reads eight bytes, little-endian.
func (r *Reader) Fixed() uint64 {
	if r.bad = r.bad || len(r.b) < 8; r.bad {
		return 0
	}
	n := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return n
}

// OK reports whether all reads so far succeeded.
func (r *Reader) OK() bool { return !r.bad }

// Err returns an error that names the type if a read failed or bytes are left.
func (r *Reader) Err(what string) error {
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%s: the stored head is malformed", what)
	}
	return nil
}
