package arrays

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/atomredis/atomredis/engine/delta"
)

// How arrays are stored. The parts are named
//
//	a                    the format and the cursor: its position, 0 if it was never set
//	p and eight bytes    a page; the bytes are its number, big-endian
//	v and eight bytes    a value kept outside its page; the bytes are its index
//
// in this order. A page has the number of its elements, less one; their positions, one byte each, or a bitmap of all
// positions if that is shorter; and for each element twice its length as a varint and its bytes, or 1 for a value
// outside. A small array is stored whole: each part's name and data with their lengths.

// format is the first byte of the first part.
const format = 1

const (
	kindCursor = 'a'
	kindPage   = 'p'
	kindLong   = 'v'

	cursorName = string(kindCursor)
	nameLen    = 1 + 8

	// smallBytes is the most memory, in bytes, that an array stored whole may take.
	smallBytes = 8 << 10
)

// Errors of stored data.
var (
	errFormat  = errors.New("array: unknown stored format")
	errCut     = errors.New("array: stored form ends within a part")
	errOrder   = errors.New("array: stored parts are out of order")
	errName    = errors.New("array: the name of a stored part is malformed")
	errNoHead  = errors.New("array: the part that every array has is missing or malformed")
	errPage    = errors.New("array: a stored page is malformed")
	errLong    = errors.New("array: stored values do not fit the pages")
	errIndices = errors.New("array: an index is too large")
)

// tracking is the state of an array whose changes are tracked.
type tracking struct {
	log    *delta.Log
	cursor uint32        // the last epoch in which a change of the cursor was noted
	name   [nameLen]byte // buffer for a part's name
}

// partName returns the name of a part, valid until the next call.
func (t *tracking) partName(kind byte, n uint64) []byte {
	t.name[0] = kind
	binary.BigEndian.PutUint64(t.name[1:], n)
	return t.name[:]
}

// part notes that a part is about to change, appear or go. epoch is the one in which this was last noted.
func (a *Array) part(kind byte, n uint64, epoch *uint32) {
	t := a.track
	name := t.partName(kind, n)
	t.log.Before(name, a)
	if now := t.log.Epoch(); *epoch != now {
		*epoch = now
		t.log.After(string(name), a.pages)
	}
}

// noteCursor must be called before the cursor moves.
func (a *Array) noteCursor() {
	t := a.track
	if t == nil {
		return
	}
	t.name[0] = kindCursor
	t.log.Before(t.name[:1], a)
	if now := t.log.Epoch(); t.cursor != now {
		t.cursor = now
		t.log.After(cursorName, 0)
	}
}

// noteSet must be called before an element is stored in a page; p is nil for a new page. It returns the epoch in which
// a change of the page was last noted.
func (a *Array) noteSet(p *page, index uint64, v []byte) (epoch uint32) {
	if a.track == nil {
		return 0
	}
	at := int(index % pageSize)
	was, is := p != nil && p.isLong(at), len(v) >= longValue
	if was || is {
		var noted uint32
		a.part(kindLong, index, &noted)
	}
	if p != nil {
		epoch = p.noted
	}
	if !was || !is {
		a.part(kindPage, index/pageSize, &epoch)
	}
	return epoch
}

// noteClear must be called before elements of a page are removed.
func (a *Array) noteClear(p *page, from, to int) {
	if a.track == nil {
		return
	}
	a.part(kindPage, p.number, &p.noted)
	for _, l := range p.long {
		if at := int(l.at); from <= at && at <= to {
			var noted uint32
			a.part(kindLong, p.number*pageSize+uint64(at), &noted)
		}
	}
}

// Large reports whether the array must be stored in parts.
func (a *Array) Large() bool { return a.memory > smallBytes }

// Track makes the array note changed parts in log from now on. All present parts count as changed.
func (a *Array) Track(log *delta.Log) {
	a.Attach(log)
	for c, more := (delta.Cursor{}), true; more; {
		c, more = a.Walk(c, math.MaxInt, func(name string) { log.After(name, a.pages) })
	}
}

// Attach makes the array note changed parts in log from now on; nil ends that.
func (a *Array) Attach(log *delta.Log) {
	a.track = nil
	if log == nil {
		return
	}
	a.track = &tracking{log: log}
	for c := a.seek(0); a.at(c) != nil; c.next() {
		a.at(c).noted = 0
	}
}

// Log returns the record of changes, nil if the array has none.
func (a *Array) Log() *delta.Log {
	if a.track == nil {
		return nil
	}
	return a.track.log
}

// Walk calls fn with the names of about count parts, or fewer, in their order.
func (a *Array) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	if c.Name == "" {
		fn(cursorName)
		c.Name = string(kindPage)
	}
	var t tracking
	at := a.seek(c.Number)
	for ; count > 0; at.next() {
		p := a.at(at)
		switch {
		case p != nil && c.Name == string(kindPage):
			fn(string(t.partName(kindPage, p.number)))
		case p != nil:
			p.eachLong(func(index uint64) { fn(string(t.partName(kindLong, index))) })
			count -= len(p.long)
		case c.Name == string(kindLong):
			return delta.Cursor{}, false
		default:
			return delta.Cursor{Name: string(kindLong)}, true
		}
		count--
	}
	if p := a.at(at); p != nil {
		return delta.Cursor{Name: c.Name, Number: p.number}, true
	}
	return delta.Cursor{Name: string(kindLong)}, c.Name == string(kindPage)
}

// eachLong calls fn with the indices of the values kept outside the page.
func (p *page) eachLong(fn func(index uint64)) {
	for _, l := range p.long {
		fn(p.number*pageSize + uint64(l.at))
	}
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (a *Array) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	if name == cursorName {
		return a.appendHead(dst), true
	}
	if len(name) != nameLen {
		return dst, false
	}
	n := binary.BigEndian.Uint64([]byte(name[1:]))
	switch name[0] {
	case kindPage:
		if p := a.page(n); p != nil && !p.empty() {
			return p.appendStored(dst), true
		}
	case kindLong:
		if p := a.page(n / pageSize); p != nil {
			if at := int(n % pageSize); p.isLong(at) {
				return append(dst, p.long[p.longAt(at)].value...), true
			}
		}
	}
	return dst, false
}

func (a *Array) appendHead(dst []byte) []byte {
	return binary.AppendUvarint(append(dst, format), a.Next())
}

// appendStored appends the stored form of a page without the values kept outside.
func (p *page) appendStored(dst []byte) []byte {
	dst = append(dst, byte(p.count()-1))
	if p.count() < pageSize/8 {
		for at := p.from(0); at >= 0; at = p.from(at + 1) {
			dst = append(dst, byte(at))
		}
	} else {
		for _, w := range p.has {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	}
	for _, offset := range p.offsets {
		if offset == apart {
			dst = append(dst, 1)
			continue
		}
		v, _ := p.element(offset)
		dst = append(binary.AppendUvarint(dst, uint64(len(v))<<1), v...)
	}
	return dst
}

// decodePage reads the output of appendStored. Values kept outside are missing.
func decodePage(number uint64, b []byte) (*page, error) {
	if len(b) == 0 {
		return nil, errPage
	}
	p, n := &page{number: number}, int(b[0])+1
	b = b[1:]
	if n < pageSize/8 {
		if len(b) < n {
			return nil, errPage
		}
		for i, at := range b[:n] {
			if i > 0 && b[i-1] >= at {
				return nil, errPage
			}
			p.has[at/64] |= 1 << (at % 64)
		}
		b = b[n:]
	} else {
		if len(b) < pageSize/8 {
			return nil, errPage
		}
		sum := 0
		for i := range p.has {
			p.has[i] = binary.LittleEndian.Uint64(b[8*i:])
			sum += bits.OnesCount64(p.has[i])
		}
		if sum != n {
			return nil, errPage
		}
		b = b[pageSize/8:]
	}
	p.offsets = make([]uint32, 0, n)
	p.buf = make([]byte, 0, len(b))
	for at := p.from(0); at >= 0; at = p.from(at + 1) {
		size, w := binary.Uvarint(b)
		if w <= 0 || size != 1 && (size&1 == 1 || size>>1 >= longValue || size>>1 > uint64(len(b)-w)) {
			return nil, errPage
		}
		b = b[w:]
		if size == 1 {
			p.offsets = append(p.offsets, apart)
			p.long = append(p.long, long{at: uint8(at)})
			continue
		}
		size >>= 1
		p.offsets = append(p.offsets, uint32(len(p.buf)))
		p.buf = append(binary.AppendUvarint(p.buf, size), b[:size]...)
		b = b[size:]
	}
	if len(b) > 0 {
		return nil, errPage
	}
	return p, nil
}

// AppendBlob appends the stored form of the whole array to dst.
func (a *Array) AppendBlob(dst []byte) []byte {
	add := func(name string, data []byte) {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	}
	add(cursorName, a.appendHead(nil))
	var data []byte
	var t tracking
	for c := a.seek(0); a.at(c) != nil; c.next() {
		data = a.at(c).appendStored(data[:0])
		add(string(t.partName(kindPage, a.at(c).number)), data)
	}
	for c := a.seek(0); a.at(c) != nil; c.next() {
		p, i := a.at(c), 0
		p.eachLong(func(index uint64) {
			add(string(t.partName(kindLong, index)), p.long[i].value)
			i++
		})
	}
	return dst
}

// DecodeBlob returns the array that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Array, error) {
	l := NewLoader()
	for len(b) > 0 {
		var part [2][]byte
		for i := range part {
			n, w := binary.Uvarint(b)
			if w <= 0 || n > uint64(len(b)-w) {
				return nil, errCut
			}
			part[i], b = b[w:w+int(n)], b[w+int(n):]
		}
		if err := l.Add(part[0], part[1]); err != nil {
			return nil, err
		}
	}
	return l.Finish(nil)
}

// Loader builds an array from its parts.
type Loader struct {
	a       *Array
	last    string // the name of the last part
	missing int    // values outside pages that have not come yet
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{a: New()} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no array, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if l.last != "" && string(name) <= l.last {
		return errOrder
	}
	first := l.last == ""
	l.last = string(name)
	switch {
	case first != (l.last == cursorName):
		return errNoHead
	case first:
		return l.head(data)
	case len(name) != nameLen:
		return errName
	}
	n := binary.BigEndian.Uint64(name[1:])
	switch name[0] {
	case kindPage:
		return l.page(n, data)
	case kindLong:
		return l.long(n, data)
	}
	return errName
}

func (l *Loader) head(data []byte) error {
	if len(data) == 0 || data[0] != format {
		return errFormat
	}
	next, w := binary.Uvarint(data[1:])
	if w <= 0 || 1+w != len(data) {
		return errNoHead
	}
	l.a.Seek(next)
	return nil
}

func (l *Loader) page(number uint64, data []byte) error {
	if number > MaxIndex/pageSize {
		return errIndices
	}
	p, err := decodePage(number, data)
	if err != nil {
		return err
	}
	if uint64(p.last()) > MaxIndex-number*pageSize {
		return errIndices
	}
	l.missing += len(p.long)
	l.a.append(p)
	return nil
}

func (l *Loader) long(index uint64, data []byte) error {
	p, at := l.a.page(index/pageSize), int(index%pageSize)
	if p == nil || !p.isLong(at) || len(data) < longValue {
		return errLong
	}
	value := &p.long[p.longAt(at)].value
	*value = slices.Clone(data)
	p.longs += cap(*value)
	l.a.memory += cap(*value)
	l.missing--
	return nil
}

// Finish returns the array, which notes its changes in log.
func (l *Loader) Finish(log *delta.Log) (*Array, error) {
	switch {
	case l.last == "":
		return nil, errNoHead
	case l.missing > 0:
		return nil, errLong
	}
	if log != nil {
		l.a.track = &tracking{log: log}
	}
	return l.a, nil
}
