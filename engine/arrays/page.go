package arrays

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"
	"unsafe"
)

const (
	// pageSize is the number of indices of a page.
	pageSize = 256
	// longValue is the length in bytes from which a value is kept and stored outside its page.
	longValue = 512
	// apart replaces the offset of a value that is kept outside.
	apart = math.MaxUint32
	// fewWasted is how many bytes of a page's buffer may always be wasted, whatever its length.
	fewWasted = 64

	pointerSize = int(unsafe.Sizeof(uintptr(0)))
	pageHead    = int(unsafe.Sizeof(page{}))
	longHead    = int(unsafe.Sizeof(long{}))
)

// page has the elements of pageSize indices. Positions count within the page.
type page struct {
	number uint64                // its first index, divided by pageSize
	has    [pageSize / 64]uint64 // a bit for each position with an element
	// offsets say where in buf the elements begin, or are apart; in the order of their positions.
	offsets []uint32
	buf     []byte // elements: the length as a varint, and the bytes
	long    []long // in the order of positions
	wasted  int32  // bytes of buf that belong to no element
	noted   uint32 // the last epoch in which a change was noted
	longs   int    // bytes that the values of long take
}

// long is a value that is kept outside its page.
type long struct {
	at    uint8
	value []byte
}

// memory returns how many bytes the page takes.
func (p *page) memory() int {
	return pageHead + 4*cap(p.offsets) + cap(p.buf) + longHead*cap(p.long) + p.longs
}

// count returns the number of elements.
func (p *page) count() int { return len(p.offsets) }

func (p *page) empty() bool { return len(p.offsets) == 0 }

// rank returns the number of elements before a position, and whether there is one at it.
func (p *page) rank(at int) (n int, ok bool) {
	word, bit := at/64, uint64(1)<<(at%64)
	for _, w := range p.has[:word] {
		n += bits.OnesCount64(w)
	}
	return n + bits.OnesCount64(p.has[word]&(bit-1)), p.has[word]&bit != 0
}

// from returns the first position at or after at that has an element, -1 if there is none.
func (p *page) from(at int) int {
	if at >= pageSize {
		return -1
	}
	word := at / 64
	w := p.has[word] &^ (1<<(at%64) - 1)
	for w == 0 {
		if word++; word == len(p.has) {
			return -1
		}
		w = p.has[word]
	}
	return word*64 + bits.TrailingZeros64(w)
}

// upTo returns the last position at or before at that has an element, -1 if there is none.
func (p *page) upTo(at int) int {
	if at < 0 {
		return -1
	}
	word := at / 64
	w := p.has[word] & (math.MaxUint64 >> (63 - at%64))
	for w == 0 {
		if word--; word < 0 {
			return -1
		}
		w = p.has[word]
	}
	return word*64 + 63 - bits.LeadingZeros64(w)
}

// last returns the last position that has an element.
func (p *page) last() int { return p.upTo(pageSize - 1) }

// countIn returns the number of elements from a position to another.
func (p *page) countIn(from, to int) int {
	before, _ := p.rank(from)
	through, ok := p.rank(to)
	if ok {
		through++
	}
	return through - before
}

// get returns the element at a position.
func (p *page) get(at int) (v []byte, ok bool) {
	n, ok := p.rank(at)
	if !ok {
		return nil, false
	}
	if p.offsets[n] == apart {
		return p.long[p.longAt(at)].value, true
	}
	v, _ = p.element(p.offsets[n])
	return v, true
}

// element returns the element at an offset of buf, and how many bytes it takes.
func (p *page) element(offset uint32) (v []byte, size int) {
	b := p.buf[offset:]
	n, w := uint64(b[0]), 1
	if n >= 0x80 {
		n, w = binary.Uvarint(b)
	}
	end := w + int(n)
	return b[w:end:end], end
}

// elementSize returns how many bytes of buf a value takes.
func elementSize(v []byte) int {
	if len(v) < 0x80 {
		return 1 + len(v)
	}
	return 2 + len(v) // less than longValue
}

// longAt returns the index in long that a position has or would have.
func (p *page) longAt(at int) int {
	return sort.Search(len(p.long), func(i int) bool { return int(p.long[i].at) >= at })
}

// isLong reports whether the value at a position is kept outside.
func (p *page) isLong(at int) bool {
	i := p.longAt(at)
	return i < len(p.long) && int(p.long[i].at) == at
}

// set stores an element at a position, and reports whether there was none.
func (p *page) set(at int, v []byte) (added bool) {
	n, ok := p.rank(at)
	if ok && p.overwrite(n, at, v) {
		return false
	}
	if ok {
		p.release(n, at)
	} else {
		p.offsets = slices.Insert(p.offsets, n, 0)
		p.has[at/64] |= 1 << (at % 64)
	}
	if len(v) >= longValue {
		p.offsets[n] = apart
		p.setLong(at, v)
	} else {
		p.offsets[n] = uint32(len(p.buf))
		p.buf = binary.AppendUvarint(p.buf, uint64(len(v)))
		p.buf = append(p.buf, v...)
	}
	p.compact()
	return !ok
}

// overwrite stores an element in place of element n, if it fits there.
func (p *page) overwrite(n, at int, v []byte) bool {
	if p.offsets[n] == apart || len(v) >= longValue {
		return false
	}
	offset := p.offsets[n]
	_, was := p.element(offset)
	size := elementSize(v)
	if size > was {
		return false
	}
	w := binary.PutUvarint(p.buf[offset:], uint64(len(v)))
	copy(p.buf[int(offset)+w:], v)
	p.wasted += int32(was - size)
	p.compact()
	return true
}

func (p *page) setLong(at int, v []byte) {
	i := p.longAt(at)
	p.long = slices.Insert(p.long, i, long{at: uint8(at), value: bytes.Clone(v)})
	p.longs += cap(p.long[i].value)
}

// release frees the bytes of element n, which is at a position.
func (p *page) release(n, at int) {
	if p.offsets[n] == apart {
		i := p.longAt(at)
		p.longs -= cap(p.long[i].value)
		p.long = slices.Delete(p.long, i, i+1)
		return
	}
	_, size := p.element(p.offsets[n])
	p.wasted += int32(size)
}

// clear removes the elements from a position to another.
func (p *page) clear(from, to int) {
	first, _ := p.rank(from)
	n := first
	for at := p.from(from); at >= 0 && at <= to; at = p.from(at + 1) {
		p.release(n, at)
		p.has[at/64] &^= 1 << (at % 64)
		n++
	}
	p.offsets = slices.Delete(p.offsets, first, n)
	p.compact()
}

// compact rebuilds the buffer if much of it is wasted.
func (p *page) compact() {
	if p.wasted <= fewWasted || int(p.wasted) <= len(p.buf)/2 {
		return
	}
	buf := make([]byte, 0, len(p.buf)-int(p.wasted))
	for i, offset := range p.offsets {
		if offset != apart {
			_, size := p.element(offset)
			p.offsets[i] = uint32(len(buf))
			buf = append(buf, p.buf[offset:int(offset)+size]...)
		}
	}
	p.buf, p.wasted = buf, 0
	if len(p.offsets) < cap(p.offsets)/4 {
		p.offsets = slices.Clone(p.offsets)
	}
}

// clone returns a copy.
func (p *page) clone() *page {
	q := &page{number: p.number, has: p.has, offsets: slices.Clone(p.offsets), buf: bytes.Clone(p.buf), wasted: p.wasted}
	for _, l := range p.long {
		q.setLong(int(l.at), l.value)
	}
	return q
}
