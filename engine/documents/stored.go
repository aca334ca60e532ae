package documents

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/delta"
)

// A document without pages is stored whole: the format, then the value. A document with pages is stored in parts: the
// root, and every chunk of every container that is divided. The name of a part is two big-endian numbers: the id of the
// container and the key of the chunk, or twice 0 for the root. Its data is the format, and then the value of the root,
// or the kind of the container and the elements of the chunk. A value is its kind (see below) and then
//
//	an integer: a varint
//	an integer beyond int64: a uvarint
//	a double: eight bytes, little-endian
//	a string: its length as a uvarint, and its bytes
//	an array, an object: the number of elements as a uvarint, and the elements
//	an array, an object that is divided: its id as a uvarint
//
// A member of an object is its name, as a string, and its value. Chunks are in the order of their keys, which is the
// byte order of their names, too.

// format is the first byte of every stored form.
const format = 1

// The kinds of stored values.
const (
	storedNull = iota
	storedFalse
	storedTrue
	storedInt
	storedUint
	storedDouble
	storedText
	storedArray
	storedObject
	storedArrayPages
	storedObjectPages
)

// What is wrong with stored data.
var (
	errFormat  = errors.New("document: unknown stored format")
	errValue   = errors.New("document: a stored value is malformed")
	errTwice   = errors.New("document: a stored object has a member twice")
	errDepth   = errors.New("document: stored values are nested too deep")
	errName    = errors.New("document: a stored part has no proper name")
	errOrder   = errors.New("document: stored parts are out of order")
	errNoRoot  = errors.New("document: the root is not stored")
	errPages   = errors.New("document: stored pages belong to no container or to several")
	errNoPages = errors.New("document: a value that is stored whole refers to pages")
)

// partNameLen is the length of the name of a part.
const partNameLen = 16

// partName returns the name of a part.
func partName(id, key uint64) string {
	var b [partNameLen]byte
	binary.BigEndian.PutUint64(b[:], id)
	binary.BigEndian.PutUint64(b[8:], key)
	return string(b[:])
}

func parsePart(name string) (id, key uint64, ok bool) {
	if len(name) != partNameLen {
		return 0, 0, false
	}
	b := []byte(name)
	return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), true
}

// note must be called before a part changes, appears or goes.
func (d *Document) note(name string) {
	if d.log != nil {
		d.log.Before([]byte(name), d)
		d.log.After(name, 0)
	}
}

// noteWay must be called before what a way leads to changes.
func (d *Document) noteWay(frames []frame) {
	if d.log == nil {
		return
	}
	for _, f := range slices.Backward(frames) {
		if f.c.big != nil {
			d.note(partName(f.c.big.id, f.c.big.chunks[f.k].key))
			return
		}
	}
	d.note(partName(0, 0))
}

// Large reports whether the document must be stored in parts. One that has been large stays so.
func (d *Document) Large() bool { return d.large }

// Track makes a document that is Large note in l from now on which parts change. All that it has count as changed.
func (d *Document) Track(l *delta.Log) {
	d.Attach(l)
	l.After(partName(0, 0), 0)
	for _, b := range d.big {
		if !b.gone {
			for _, ch := range b.chunks {
				l.After(partName(b.id, ch.key), 0)
			}
		}
	}
}

// Attach makes a document that is Large note in l from now on which parts change; nil ends that.
func (d *Document) Attach(l *delta.Log) { d.log = l }

// Log returns the record of changes, nil if the document has none.
func (d *Document) Log() *delta.Log { return d.log }

// Walk calls fn with the names of about count parts from c on, the root first, and returns where to go on.
func (d *Document) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	if c.Name == "" {
		c.Name = partName(0, 0)
		fn(c.Name)
		count--
	}
	id, key, _ := parsePart(c.Name) // which this method has made
	i := sort.Search(len(d.big), func(i int) bool { return d.big[i].id >= id })
	for ; i < len(d.big); i++ {
		b, k := d.big[i], 0
		if b.gone {
			continue
		}
		if b.id == id {
			k = sort.Search(len(b.chunks), func(k int) bool { return b.chunks[k].key > key })
		}
		for ; k < len(b.chunks); k++ {
			if count <= 0 {
				return c, true
			}
			c.Name = partName(b.id, b.chunks[k].key)
			fn(c.Name)
			count--
		}
	}
	return c, false
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (d *Document) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	id, key, ok := parsePart(name)
	if !ok {
		return dst, false
	}
	if id == 0 {
		if key != 0 || !d.large {
			return dst, false
		}
		return d.root.appendStored(append(dst, format)), true
	}
	b := d.pagesOf(id)
	if b == nil {
		return dst, false
	}
	k, ok := b.find(key)
	if !ok {
		return dst, false
	}
	dst = append(dst, format, byte(storedArray+btoi(b.object)))
	return appendItems(dst, b.chunks[k].vals, b.chunks[k].keys), true
}

// AppendBlob appends the stored form of a document that is not Large.
func (d *Document) AppendBlob(dst []byte) []byte { return d.root.appendStored(append(dst, format)) }

// appendStored appends the stored form of a value.
func (v Value) appendStored(dst []byte) []byte {
	switch v.Kind() {
	case Null:
		return append(dst, storedNull)
	case Boolean:
		return append(dst, byte(storedFalse+btoi(v.Bool())))
	case Integer:
		if i, ok := v.Int(); ok {
			return binary.AppendVarint(append(dst, storedInt), i)
		}
		return binary.AppendUvarint(append(dst, storedUint), v.n)
	case Number:
		return binary.LittleEndian.AppendUint64(append(dst, storedDouble), v.n)
	case String:
		if v.p == tagShort {
			return appendText(append(dst, storedText), v.Text())
		}
		return appendText(append(dst, storedText), v.long())
	}
	object := btoi(v.Kind() == Object)
	c := v.container()
	if c.big != nil {
		return binary.AppendUvarint(append(dst, byte(storedArrayPages+object)), c.big.id)
	}
	dst = binary.AppendUvarint(append(dst, byte(storedArray+object)), uint64(len(c.vals)))
	return appendItems(dst, c.vals, c.keys)
}

func appendItems(dst []byte, vals []Value, keys []string) []byte {
	for j, v := range vals {
		if keys != nil {
			dst = appendText(dst, keys[j])
		}
		dst = v.appendStored(dst)
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// DecodeBlob returns the document that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Document, error) {
	if len(b) == 0 || b[0] != format {
		return nil, errFormat
	}
	r := reader{b: b[1:]}
	v, err := r.value(0)
	switch {
	case err != nil:
		return nil, err
	case len(r.b) > 0:
		return nil, errValue
	}
	return New(v), nil
}

// reader takes stored values off b.
type reader struct {
	b []byte
	// divided returns the container with an id; nil if there can be none.
	divided func(id uint64, object bool) (*container, error)
}

func (r *reader) uvarint() (uint64, bool) {
	n, w := binary.Uvarint(r.b)
	if w <= 0 {
		return 0, false
	}
	r.b = r.b[w:]
	return n, true
}

func (r *reader) text() (string, error) {
	n, ok := r.uvarint()
	if !ok || n > uint64(len(r.b)) || !utf8.Valid(r.b[:n]) {
		return "", errValue
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s, nil
}

// value takes a value that is depth levels deep.
func (r *reader) value(depth int) (Value, error) {
	if len(r.b) == 0 {
		return Value{}, errValue
	}
	kind := r.b[0]
	r.b = r.b[1:]
	switch kind {
	case storedNull:
		return Value{}, nil
	case storedFalse, storedTrue:
		return Bool(kind == storedTrue), nil
	case storedInt:
		i, w := binary.Varint(r.b)
		if w <= 0 {
			return Value{}, errValue
		}
		r.b = r.b[w:]
		return Int(i), nil
	case storedUint:
		u, ok := r.uvarint()
		if !ok || u <= math.MaxInt64 {
			return Value{}, errValue
		}
		return Uint(u), nil
	case storedDouble:
		if len(r.b) < 8 {
			return Value{}, errValue
		}
		f := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return Value{}, errValue
		}
		r.b = r.b[8:]
		return Double(f), nil
	case storedText:
		s, err := r.text()
		return Text(s), err
	case storedArray, storedObject:
		n, ok := r.uvarint()
		if !ok || n > uint64(len(r.b)) {
			return Value{}, errValue
		}
		if depth == MaxDepth {
			return Value{}, errDepth
		}
		vals, keys, err := r.items(int(n), kind == storedObject, depth+1)
		if err != nil {
			return Value{}, err
		}
		if kind == storedObject {
			return NewObject(keys, vals), nil
		}
		return NewArray(vals...), nil
	case storedArrayPages, storedObjectPages:
		id, ok := r.uvarint()
		if !ok {
			return Value{}, errValue
		}
		if r.divided == nil {
			return Value{}, errNoPages
		}
		object := kind == storedObjectPages
		c, err := r.divided(id, object)
		return wrap(c, object), err
	}
	return Value{}, errValue
}

// items takes n elements, or all that there are if n is negative.
func (r *reader) items(n int, object bool, depth int) (vals []Value, keys []string, err error) {
	seen := map[string]struct{}{}
	for len(vals) != n && (n >= 0 || len(r.b) > 0) {
		if object {
			name, err := r.text()
			if err != nil {
				return nil, nil, err
			}
			if len(keys) >= manyMembers {
				if len(seen) == 0 {
					for _, key := range keys {
						seen[key] = struct{}{}
					}
				}
				if _, twice := seen[name]; twice {
					return nil, nil, errTwice
				}
				seen[name] = struct{}{}
			} else if indexOf(keys, name) >= 0 {
				return nil, nil, errTwice
			}
			keys = append(keys, name)
		}
		v, err := r.value(depth)
		if err != nil {
			return nil, nil, err
		}
		vals = append(vals, v)
	}
	return slices.Clip(vals), slices.Clip(keys), nil
}

// Loader builds a document that is Large from its parts.
type Loader struct {
	d    *Document
	last string // the name of the last part
	root bool   // seen
	// containers are those that are divided, by their ids. One that a value refers to and one of which a chunk was seen
	// may come first.
	containers map[uint64]*loaded
}

// loaded is a container that is divided.
type loaded struct {
	c       *container
	used    bool // a value refers to it
	visited bool
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader {
	return &Loader{d: &Document{large: true}, containers: map[uint64]*loaded{}}
}

// Add adds the part with the given name and data, neither of which it keeps. Parts come in the byte order of their
// names, each once; it is an error if this one does not, or is no part of a document. After an error the Loader is of
// no more use.
func (l *Loader) Add(name, data []byte) error {
	id, key, ok := parsePart(string(name))
	if !ok || id == 0 && key != 0 {
		return errName
	}
	if string(name) <= l.last { // no name is empty
		return errOrder
	}
	l.last = string(name)
	if len(data) == 0 || data[0] != format {
		return errFormat
	}
	r := reader{data[1:], l.use}
	if id == 0 {
		v, err := r.value(0)
		if err == nil && len(r.b) > 0 {
			err = errValue
		}
		l.d.root, l.root = v, true
		return err
	}
	if len(r.b) < 2 || r.b[0] != storedArray && r.b[0] != storedObject {
		return errValue
	}
	object := r.b[0] == storedObject
	r.b = r.b[1:]
	vals, keys, err := r.items(-1, object, 1) // it is at least one level deep
	if err != nil {
		return err
	}
	c, err := l.container(id, object)
	if err != nil {
		return err
	}
	c.c.big.chunks = append(c.c.big.chunks, &chunk{vals: vals, keys: keys, key: key})
	return nil
}

// container returns a container that is divided.
func (l *Loader) container(id uint64, object bool) (*loaded, error) {
	c := l.containers[id]
	if c == nil {
		c = &loaded{c: &container{big: &pages{id: id, object: object}}}
		l.containers[id] = c
	}
	if id == 0 || c.c.big.object != object {
		return nil, errPages
	}
	return c, nil
}

// use returns a container for the value that refers to it.
func (l *Loader) use(id uint64, object bool) (*container, error) {
	c, err := l.container(id, object)
	if err != nil {
		return nil, err
	}
	if c.used {
		return nil, errPages
	}
	c.used = true
	return c.c, nil
}

// Finish returns the document, whose changes will be noted in log.
func (l *Loader) Finish(log *delta.Log) (*Document, error) {
	d := l.d
	if !l.root {
		return nil, errNoRoot
	}
	if err := l.settle(d.root, 0); err != nil {
		return nil, err
	}
	for id, c := range l.containers {
		if !c.visited {
			return nil, errPages
		}
		d.ids = max(d.ids, id)
		d.big = append(d.big, c.c.big)
	}
	slices.SortFunc(d.big, func(a, b *pages) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	d.log = log
	return d, nil
}

// settle fills in what is not stored of a value at a depth.
func (l *Loader) settle(v Value, depth int) error {
	c := v.container()
	if c == nil {
		return nil
	}
	if depth == MaxDepth {
		return errDepth
	}
	if c.big == nil {
		size, mem, err := l.settleItems(c.vals, c.keys, depth)
		if err != nil {
			return err
		}
		// A container that is stored whole may be larger than one that would be divided now.
		c.setTakes(min(size+sizeContainer, maxFlat), mem+containerSize)
		return nil
	}
	b := c.big
	l.containers[b.id].visited = true
	b.mem = containerSize + pagesSize + chunkSize*len(b.chunks)
	for _, ch := range b.chunks {
		size, mem, err := l.settleItems(ch.vals, ch.keys, depth)
		if err != nil {
			return err
		}
		ch.size = size
		b.mem += mem
		b.count += len(ch.vals)
	}
	if b.mem += b.reindex(); b.index != nil && len(b.index) != b.count {
		return errTwice
	}
	return nil
}

func (l *Loader) settleItems(vals []Value, keys []string, depth int) (size, mem int, err error) {
	for j, v := range vals {
		if err := l.settle(v, depth+1); err != nil {
			return 0, 0, err
		}
		size += itemSize(v, keys, j)
		mem += itemMemory(v, keys, j)
	}
	return size, mem, nil
}
