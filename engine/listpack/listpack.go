// Package listpack keeps a short sequence of byte strings in one flat buffer that can be walked in
// both directions. It is the small form of lists, hashes, sets and sorted sets: one allocation, no
// pointers for the garbage collector to follow, and two bytes of overhead for a short element.
//
// An element is encoded as
//
//	length   varint, least significant seven bits first; the high bit says that more follow
//	bytes    the element itself
//	back     size of the two parts above, written so that it is read from its last byte towards its
//	         first: least significant seven bits in the last byte, the high bit as above
//
// Every change moves the bytes behind it, so that a change costs time in proportion to the buffer.
package listpack

import (
	"bytes"
	"math/bits"
)

// Listpack is a sequence of byte strings in one buffer. The zero value is empty and ready to use. A
// plain copy of a Listpack shares its buffer; use Clone for an independent one.
//
// Methods that take an element copy it. An element passed in must not alias the listpack's own
// buffer (what At returns), because the buffer moves while the element is stored.
type Listpack struct {
	buf []byte // the encoded elements and nothing else
	n   int    // number of elements in buf
}

// Pos is the offset of an element. It stays valid until the listpack changes at or before it. -1 is
// no element.
type Pos int

// none is the position of no element.
const none Pos = -1

// Len returns the number of elements.
func (l *Listpack) Len() int { return l.n }

// Size returns the number of bytes that the encoded elements take.
func (l *Listpack) Size() int { return len(l.buf) }

// EncodedLen returns how many bytes an element takes once it is encoded.
func EncodedLen(v []byte) int {
	body := varintLen(len(v)) + len(v)
	return body + varintLen(body)
}

// First returns the position of the first element, or -1.
func (l *Listpack) First() Pos {
	if l.n == 0 {
		return none
	}
	return 0
}

// Last returns the position of the last element, or -1.
func (l *Listpack) Last() Pos {
	if l.n == 0 {
		return none
	}
	return l.before(Pos(len(l.buf)))
}

// Next returns the position of the element after the one at p, or -1.
func (l *Listpack) Next(p Pos) Pos {
	if p = l.after(p); int(p) == len(l.buf) {
		return none
	}
	return p
}

// Prev returns the position of the element before the one at p, or -1.
func (l *Listpack) Prev(p Pos) Pos {
	if p == 0 {
		return none
	}
	return l.before(p)
}

// At returns the element at p: a view into the buffer, valid until the next change.
func (l *Listpack) At(p Pos) []byte {
	n, w := l.header(p)
	start := int(p) + w
	return l.buf[start : start+n : start+n]
}

// Seek returns the position of element number i, or -1 if there is none. A negative i counts from the
// end: -1 is the last element. It walks from the nearer end.
func (l *Listpack) Seek(i int) Pos {
	if i < 0 {
		i += l.n
	}
	if i < 0 || i >= l.n {
		return none
	}
	if i <= l.n/2 {
		p := Pos(0)
		for ; i > 0; i-- {
			p = l.after(p)
		}
		return p
	}
	p := Pos(len(l.buf))
	for ; i < l.n; i++ {
		p = l.before(p)
	}
	return p
}

// Find returns the position of the first element equal to v, or -1. It tests one element, then skips
// `skip` of them, and so on: a skip of 1 tests the fields of field and value pairs only.
func (l *Listpack) Find(v []byte, skip int) Pos {
	for p := Pos(0); int(p) < len(l.buf); {
		n, w := l.header(p)
		start := int(p) + w
		if n == len(v) && bytes.Equal(l.buf[start:start+n], v) {
			return p
		}
		p = Pos(start + n + varintLen(w+n))
		for i := 0; i < skip && int(p) < len(l.buf); i++ {
			p = l.after(p)
		}
	}
	return none
}

// Append adds v at the end.
func (l *Listpack) Append(v []byte) { l.insert(Pos(len(l.buf)), v) }

// Prepend adds v at the front.
func (l *Listpack) Prepend(v []byte) { l.insert(0, v) }

// InsertBefore adds v before the element at p, so that p names the new element. A p of -1 appends.
func (l *Listpack) InsertBefore(p Pos, v []byte) {
	if p == none {
		p = Pos(len(l.buf))
	}
	l.insert(p, v)
}

// Replace puts v in the place of the element at p. Position p stays valid and names the new element.
func (l *Listpack) Replace(p Pos, v []byte) {
	l.splice(int(p), int(l.after(p)-p), EncodedLen(v))
	l.write(int(p), v)
}

// Delete removes n elements from the one at p on, or as many as there are. It returns the position of
// the element that followed them, or -1.
func (l *Listpack) Delete(p Pos, n int) Pos {
	if p == none {
		return none
	}
	end, deleted := p, 0
	for deleted < n && int(end) < len(l.buf) {
		end = l.after(end)
		deleted++
	}
	l.n -= deleted
	l.splice(int(p), int(end-p), 0)
	if int(p) == len(l.buf) {
		return none
	}
	return p
}

// Clone returns an independent copy, without spare room.
func (l *Listpack) Clone() Listpack {
	return Listpack{buf: bytes.Clone(l.buf), n: l.n}
}

// Reset removes all elements and frees the buffer.
func (l *Listpack) Reset() { *l = Listpack{} }

func (l *Listpack) insert(p Pos, v []byte) {
	l.splice(int(p), 0, EncodedLen(v))
	l.write(int(p), v)
	l.n++
}

// header decodes the length of the element at p, and how many bytes that length takes itself.
func (l *Listpack) header(p Pos) (n, width int) {
	b := l.buf[p]
	if b < 0x80 {
		return int(b), 1
	}
	n = int(b & 0x7f)
	for shift := 7; ; shift += 7 {
		width++
		b = l.buf[int(p)+width]
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			return n, width + 1
		}
	}
}

// after returns the offset behind the element at p, which is the end of the buffer for the last one.
func (l *Listpack) after(p Pos) Pos {
	n, w := l.header(p)
	return p + Pos(w+n+varintLen(w+n))
}

// before returns the offset of the element that ends at p, which must not be 0.
func (l *Listpack) before(p Pos) Pos {
	i := int(p) - 1
	b := l.buf[i]
	body := int(b & 0x7f)
	for shift := 7; b >= 0x80; shift += 7 {
		i--
		b = l.buf[i]
		body |= int(b&0x7f) << shift
	}
	return Pos(i - body)
}

// write encodes v at offset i, where EncodedLen(v) bytes are free for it.
func (l *Listpack) write(i int, v []byte) {
	start := i
	n := len(v)
	for ; n >= 0x80; n >>= 7 {
		l.buf[i] = byte(n) | 0x80
		i++
	}
	l.buf[i] = byte(n)
	i++
	i += copy(l.buf[i:], v)

	body := i - start
	i += varintLen(body) - 1
	for ; body >= 0x80; body >>= 7 {
		l.buf[i] = byte(body) | 0x80
		i--
	}
	l.buf[i] = byte(body)
}

// varintLen returns how many bytes n takes at seven bits a byte.
func varintLen(n int) int {
	if n < 0x80 {
		return 1
	}
	return (bits.Len(uint(n)) + 6) / 7
}

// roomy is the spare room that is never worth giving back.
const roomy = 64

// splice turns the `old` bytes at offset i into `size` bytes of unspecified content.
func (l *Listpack) splice(i, old, size int) {
	end := len(l.buf) + size - old
	switch spare := cap(l.buf) - end; {
	case end == 0:
		l.buf = nil
	case spare < 0, spare > roomy && spare > end:
		buf := allocate(end)
		copy(buf, l.buf[:i])
		copy(buf[i+size:], l.buf[i+old:])
		l.buf = buf
	default:
		tail := l.buf[i+old:]
		l.buf = l.buf[:end]
		copy(l.buf[i+size:], tail)
	}
}

// allocate returns a buffer of n bytes with room for about a quarter more. Appending to nil rounds
// the capacity up to what the allocator would hand out anyway.
func allocate(n int) []byte {
	return append([]byte(nil), make([]byte, n+n/4)...)[:n]
}
