package roaring

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/atomredis/atomredis/engine/delta"
)

// How bitmaps are stored. The parts are named
//
//	a                    the format, and the length in bytes as a varint
//	p and eight bytes    a page; the bytes are its number, big-endian
//
// in this order. A page is a roaring bitmap in the portable format. A small bitmap is stored whole: each part's name and
// data with their lengths.

// format is the first byte of the first part.
const format = 1

const (
	kindPage = 'p'
	headName = "a"
	nameLen  = 1 + 8

	// smallBytes is the most memory, in bytes, that a bitmap stored whole may take.
	smallBytes = 8 << 10
)

// Errors of stored data.
var (
	errFormat = errors.New("roaring: unknown stored format")
	errCut    = errors.New("roaring: stored form ends within a part")
	errOrder  = errors.New("roaring: stored parts are out of order")
	errName   = errors.New("roaring: the name of a stored part is malformed")
	errNoHead = errors.New("roaring: the part that every bitmap has is missing or malformed")
	errPage   = errors.New("roaring: a stored page is malformed")
	errBehind = errors.New("roaring: a bit is set behind the end")
)

// tracking is the state of a bitmap whose changes are tracked.
type tracking struct {
	log  *delta.Log
	head uint32        // the last epoch in which a change of the length was noted
	name [nameLen]byte // buffer for a part's name
}

// partName returns the name of a page's part, valid until the next call.
func (t *tracking) partName(number uint64) []byte {
	t.name[0] = kindPage
	binary.BigEndian.PutUint64(t.name[1:], number)
	return t.name[:]
}

// notePage must be called before a page changes, appears or goes; p is nil for a new one, which gets the epoch.
func (r *Bitmap) notePage(number uint64, p *page) {
	t := r.track
	if t == nil {
		return
	}
	name := t.partName(number)
	t.log.Before(name, r)
	if now := t.log.Epoch(); p == nil || p.noted != now {
		if p != nil {
			p.noted = now
		}
		t.log.After(string(name), len(r.pages))
	}
}

// epoch returns the present epoch, 0 if changes are not tracked.
func (r *Bitmap) epoch() uint32 {
	if r.track == nil {
		return 0
	}
	return r.track.log.Epoch()
}

// noteHead must be called before the length changes.
func (r *Bitmap) noteHead() {
	t := r.track
	if t == nil {
		return
	}
	t.name[0] = headName[0]
	t.log.Before(t.name[:1], r)
	if now := t.log.Epoch(); t.head != now {
		t.head = now
		t.log.After(headName, 0)
	}
}

// Large reports whether the bitmap must be stored in parts.
func (r *Bitmap) Large() bool { return r.memory > smallBytes }

// Track makes the bitmap note changed parts in log from now on. All present parts count as changed.
func (r *Bitmap) Track(log *delta.Log) {
	r.Attach(log)
	for c, more := (delta.Cursor{}), true; more; {
		c, more = r.Walk(c, math.MaxInt, func(name string) { log.After(name, len(r.pages)) })
	}
}

// Attach makes the bitmap note changed parts in log from now on; nil ends that.
func (r *Bitmap) Attach(log *delta.Log) {
	r.track = nil
	if log == nil {
		return
	}
	r.track = &tracking{log: log}
	for _, p := range r.pages {
		p.noted = 0
	}
}

// Log returns the record of changes, nil if the bitmap has none.
func (r *Bitmap) Log() *delta.Log {
	if r.track == nil {
		return nil
	}
	return r.track.log
}

// Walk calls fn with the names of about count parts, or fewer, in their order.
func (r *Bitmap) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	if c.Name == "" {
		fn(headName)
	}
	var t tracking
	for _, p := range r.pages[r.seek(c.Number):] {
		if count <= 0 {
			return delta.Cursor{Name: headName, Number: p.number}, true
		}
		fn(string(t.partName(p.number)))
		count--
	}
	return delta.Cursor{}, false
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (r *Bitmap) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	if name == headName {
		return r.appendHead(dst), true
	}
	if len(name) != nameLen || name[0] != kindPage {
		return dst, false
	}
	p, _ := r.page(binary.BigEndian.Uint64([]byte(name[1:])))
	if p == nil {
		return dst, false
	}
	return appendPortable(dst, p.bits), true
}

func (r *Bitmap) appendHead(dst []byte) []byte {
	return binary.AppendUvarint(append(dst, format), r.length)
}

// appender is an io.Writer that appends.
type appender struct{ b []byte }

func (a *appender) Write(b []byte) (int, error) {
	a.b = append(a.b, b...)
	return len(b), nil
}

// appendPortable appends a roaring bitmap in the portable format.
func appendPortable(dst []byte, b *roaring.Bitmap) []byte {
	a := appender{dst}
	_, _ = b.WriteTo(&a) // an appender has no errors
	return a.b
}

// readPortable reads a roaring bitmap in the portable format from the start of data, which it does not keep, and returns
// the rest.
func readPortable(data []byte) (b *roaring.Bitmap, rest []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // the library does not promise to check everything
			err = fmt.Errorf("roaring: malformed: %v", r)
		}
	}()
	b = roaring.New()
	in := bytes.NewReader(data)
	if _, err = b.ReadFrom(in); err == nil {
		err = b.Validate()
	}
	return b, data[len(data)-in.Len():], err
}

// AppendBlob appends the stored form of the whole bitmap to dst.
func (r *Bitmap) AppendBlob(dst []byte) []byte {
	add := func(name string, data []byte) {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	}
	add(headName, r.appendHead(nil))
	var t tracking
	var data []byte
	for _, p := range r.pages {
		data = appendPortable(data[:0], p.bits)
		add(string(t.partName(p.number)), data)
	}
	return dst
}

// DecodeBlob returns the bitmap that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Bitmap, error) {
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

// Loader builds a bitmap from its parts.
type Loader struct {
	r    *Bitmap
	last string // the name of the last part
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{r: New()} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no bitmap, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if l.last != "" && string(name) <= l.last {
		return errOrder
	}
	first := l.last == ""
	l.last = string(name)
	switch {
	case first != (l.last == headName):
		return errNoHead
	case first:
		return l.head(data)
	case len(name) != nameLen || name[0] != kindPage:
		return errName
	}
	bits, rest, err := readPortable(data)
	if err != nil || len(rest) > 0 || bits.IsEmpty() || bits.Maximum() >= pageBits {
		return errPage
	}
	number := binary.BigEndian.Uint64(name[1:])
	if number > MaxBytes/pageBytes || number*pageBytes+uint64(bits.Maximum())/8 >= l.r.length {
		return errBehind
	}
	l.r.append(number, bits)
	return nil
}

func (l *Loader) head(data []byte) error {
	if len(data) == 0 || data[0] != format {
		return errFormat
	}
	length, w := binary.Uvarint(data[1:])
	if w <= 0 || 1+w != len(data) || length > MaxBytes {
		return errNoHead
	}
	l.r.length = length
	return nil
}

// Finish returns the bitmap, which notes its changes in log.
func (l *Loader) Finish(log *delta.Log) (*Bitmap, error) {
	if l.last == "" {
		return nil, errNoHead
	}
	if log != nil {
		l.r.track = &tracking{log: log}
	}
	return l.r, nil
}
