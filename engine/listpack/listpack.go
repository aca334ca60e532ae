// Package listpack keeps a short sequence of byte strings in one flat buffer. It is the small form of hashes, sets
// and sorted sets: one allocation, no pointers for the garbage collector to follow, and one byte of overhead for a
// short element.
//
// An element is its length (varint, least significant seven bits first; the high bit says that more follow) and its
// bytes. Every change moves the bytes after it, so its cost is proportional to the buffer.
package listpack

import "math/bits"

// Listpack is a sequence of byte strings in one Buffer. The zero value is empty and ready to use.
//
// Methods copy their elements. An argument must not alias the listpack's own memory (the result of At), because that
// moves while the element is stored.
type Listpack struct{ Buffer }

// Pos is the offset of an element. It stays valid until the listpack changes at or before it. -1 is no element.
type Pos int

// none means no element.
const none Pos = -1

// maxCount is the largest number of elements.
const maxCount = 1<<16 - 1

// Len returns the number of elements.
func (l *Listpack) Len() int { return int(l.Count) }

// Fits reports whether `count` more elements, of `size` bytes in total, can be added.
func (l *Listpack) Fits(count, size int) bool {
	const header = 5 // at most, for an element that fits
	return l.Len()+count <= maxCount && size <= MaxSize && int(l.size)+size+count*header <= MaxSize
}

// First returns the position of the first element, or -1.
func (l *Listpack) First() Pos {
	if l.Count == 0 {
		return none
	}
	return 0
}

// Next returns the position of the element after the one at p, or -1.
func (l *Listpack) Next(p Pos) Pos {
	b := l.Bytes()
	if p = after(b, p); p == Pos(len(b)) {
		return none
	}
	return p
}

// At returns the element at p: a view of the buffer, valid until the next change.
func (l *Listpack) At(p Pos) []byte {
	b := l.Bytes()
	start, end := bounds(b, p)
	return b[start:end:end]
}

// Pair returns the element at p and the one after it, as At does, and the position after both, or -1.
func (l *Listpack) Pair(p Pos) (first, second []byte, next Pos) {
	b := l.Bytes()
	start, end := p+1, p+1+Pos(b[p])
	if b[p] >= manyBytes {
		start, end = longBounds(b, p)
	}
	first, p = b[start:end:end], end
	start, end = p+1, p+1+Pos(b[p])
	if b[p] >= manyBytes {
		start, end = longBounds(b, p)
	}
	second, next = b[start:end:end], end
	if int(next) == len(b) {
		next = none
	}
	return first, second, next
}

// Seek returns the position of element i, which must exist. It walks from the front.
func (l *Listpack) Seek(i int) Pos {
	b, p := l.Bytes(), Pos(0)
	for ; i > 0; i-- {
		p = after(b, p)
	}
	return p
}

// Find returns the position of the first element equal to v, or -1, and how many elements it tested before. After each
// tested element it skips `skip` others: a skip of 1 tests only the fields of field and value pairs.
func (l *Listpack) Find(v []byte, skip int) (p Pos, before int) {
	b, last := l.Bytes(), byte(0)
	if len(v) > 0 {
		last = v[len(v)-1]
	}
	for int(p) < len(b) {
		start, end := p+1, p+1+Pos(b[p])
		if b[p] >= manyBytes {
			start, end = longBounds(b, p)
		}
		// Elements of the same length mostly differ in their last byte.
		if int(end-start) == len(v) && (len(v) == 0 || b[end-1] == last) && string(b[start:end]) == string(v) {
			return p, before
		}
		p = end
		before++
		for i := 0; i < skip && int(p) < len(b); i++ {
			p = after(b, p)
		}
	}
	return none, before
}

// Append adds elements at the end.
func (l *Listpack) Append(elements ...[]byte) { l.Insert(none, elements...) }

// Insert adds elements before the one at p; then p is the position of the first of them. A p of -1 appends.
func (l *Listpack) Insert(p Pos, elements ...[]byte) {
	size := 0
	for _, v := range elements {
		size += EncodedLen(v)
	}
	if p == none {
		p = Pos(l.size)
	}
	l.Splice(int(p), 0, size)
	for _, v := range elements {
		write(l.Bytes(), p, v)
		p += Pos(EncodedLen(v))
	}
	l.Count += uint16(len(elements))
}

// Replace replaces the element at p by v. Position p stays valid and refers to the new element.
func (l *Listpack) Replace(p Pos, v []byte) {
	l.Splice(int(p), int(after(l.Bytes(), p)-p), EncodedLen(v))
	write(l.Bytes(), p, v)
}

// Delete removes n elements starting at p, which must exist.
func (l *Listpack) Delete(p Pos, n int) {
	b, end := l.Bytes(), p
	for range n {
		end = after(b, end)
	}
	l.Count -= uint16(n)
	l.Splice(int(p), int(end-p), 0)
}

// Clone returns an independent copy.
func (l *Listpack) Clone() Listpack { return Listpack{l.Buffer.Clone()} }

// EncodedLen returns how many bytes an element takes when encoded.
func EncodedLen(v []byte) int { return (bits.Len(uint(len(v))|1)+6)/7 + len(v) }

// manyBytes is set in the first byte of a length of several bytes.
const manyBytes = 0x80

// bounds returns where in b the bytes of the element at p begin and end.
func bounds(b []byte, p Pos) (start, end Pos) {
	start, end = p+1, p+1+Pos(b[p])
	if b[p] >= manyBytes {
		start, end = longBounds(b, p)
	}
	return start, end
}

// longBounds is bounds for a length of several bytes. It is separate so that bounds can be inlined.
//
//go:noinline
func longBounds(b []byte, p Pos) (start, end Pos) {
	n := Pos(0)
	for shift := 0; ; shift += 7 {
		c := b[p]
		p++
		n |= Pos(c&^manyBytes) << shift
		if c < manyBytes {
			return p, p + n
		}
	}
}

// after returns the offset after the element at p, which is the end of b for the last one.
func after(b []byte, p Pos) Pos {
	if n := b[p]; n < manyBytes {
		return p + 1 + Pos(n)
	}
	return longAfter(b, p)
}

// longAfter is after for a length of several bytes.
//
//go:noinline
func longAfter(b []byte, p Pos) Pos {
	_, end := longBounds(b, p)
	return end
}

// write encodes v at p, where b has EncodedLen(v) bytes for it.
func write(b []byte, p Pos, v []byte) {
	n := len(v)
	for ; n >= manyBytes; n >>= 7 {
		b[p] = byte(n) | manyBytes
		p++
	}
	b[p] = byte(n)
	copy(b[p+1:], v)
}
