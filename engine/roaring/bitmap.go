// Package roaring has compressed bitmaps: sequences of bits in which long stretches of equal bits take little memory.
//
// Bits are numbered from 0. As in strings, bit 0 is the highest bit of the first byte. A bitmap has a length in bytes;
// the bits behind it are zero. The bits are divided into pages of pageBits, each of which is a roaring bitmap; only
// pages with set bits exist. Pages are the parts that are stored separately.
package roaring

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"
)

// MaxBytes is the largest length in bytes: the number of a bit is an int64.
const MaxBytes = 1<<60 - 1

const (
	// pageBits is the number of bits of a page, and pageBytes that of bytes: eight containers of a roaring bitmap.
	pageBits  = 1 << 19
	pageBytes = pageBits / 8
	// pageHead is about how many bytes a page takes beside its containers.
	pageHead = int(unsafe.Sizeof(page{})) + 160
)

// Bitmap is a compressed bitmap. It has no lock. The zero value is an empty bitmap.
type Bitmap struct {
	pages  []*page // with set bits, in the order of their numbers
	length uint64  // in bytes
	memory int     // bytes that the pages take
	track  *tracking
}

// page has the bits from pageBits*number on.
type page struct {
	number uint64
	bits   *roaring.Bitmap
	memory int    // bytes that the page was last counted with
	noted  uint32 // the last epoch in which a change was noted
}

// New returns an empty bitmap.
func New() *Bitmap { return new(Bitmap) }

// FromBytes returns the bitmap that has the bits of a string, which it does not keep.
func FromBytes(b []byte) *Bitmap {
	r := &Bitmap{length: uint64(len(b))}
	for number := uint64(0); len(b) > 0; number++ {
		n := min(len(b), pageBytes)
		if p := pageOf(b[:n]); p != nil {
			r.append(number, p)
		}
		b = b[n:]
	}
	return r
}

// pageOf returns a page with the bits of up to pageBytes bytes, nil if none is set.
func pageOf(b []byte) *roaring.Bitmap {
	if !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) {
		return nil
	}
	words := make([]uint64, (len(b)+7)/8)
	for i := range words {
		var word [8]byte
		copy(word[:], b[8*i:])
		words[i] = bits.Reverse64(binary.BigEndian.Uint64(word[:]))
	}
	p := roaring.FromDense(words, false)
	p.RunOptimize()
	return p
}

// append adds a page behind the others.
func (r *Bitmap) append(number uint64, bits *roaring.Bitmap) {
	p := &page{number: number, bits: bits}
	r.pages = append(r.pages, p)
	r.recount(p)
}

// recount corrects the memory after a page has changed.
func (r *Bitmap) recount(p *page) {
	r.memory -= p.memory
	p.memory = pageHead + int(p.bits.GetSizeInBytes())
	r.memory += p.memory
}

// Len returns the length in bytes.
func (r *Bitmap) Len() uint64 { return r.length }

// MemoryUsage returns about how many bytes of memory the bitmap takes, in constant time.
func (r *Bitmap) MemoryUsage() int {
	return int(unsafe.Sizeof(*r)) + r.memory + cap(r.pages)*int(unsafe.Sizeof((*page)(nil)))
}

// Pages returns the number of pages, which says how long a walk through the bitmap takes.
func (r *Bitmap) Pages() int { return len(r.pages) }

// seek returns the index of the first page with this number or a greater one.
func (r *Bitmap) seek(number uint64) int {
	if n := len(r.pages); n > 0 && r.pages[n-1].number < number { // bitmaps often grow at their end
		return n
	}
	return sort.Search(len(r.pages), func(i int) bool { return r.pages[i].number >= number })
}

// page returns a page and its index; nil and the index that it would have if there is none.
func (r *Bitmap) page(number uint64) (*page, int) {
	i := r.seek(number)
	if i < len(r.pages) && r.pages[i].number == number {
		return r.pages[i], i
	}
	return nil, i
}

// Get returns a bit, which is 0 behind the end.
func (r *Bitmap) Get(at int64) int {
	if p, _ := r.page(uint64(at) / pageBits); p != nil && p.bits.Contains(uint32(at%pageBits)) {
		return 1
	}
	return 0
}

// Set changes a bit and returns what it was. The bitmap grows if it ends before the bit.
func (r *Bitmap) Set(at int64, bit int) (old int) {
	r.Extend(uint64(at)/8 + 1)
	number, in := uint64(at)/pageBits, uint32(at%pageBits)
	p, i := r.page(number)
	if p != nil && p.bits.Contains(in) {
		old = 1
	}
	if old == bit {
		return old
	}
	r.notePage(number, p)
	if p == nil {
		p = &page{number: number, bits: roaring.New()}
		r.pages = slices.Insert(r.pages, i, p)
		p.noted = r.epoch()
	}
	if bit == 1 {
		p.bits.Add(in)
	} else {
		p.bits.Remove(in)
	}
	if r.recount(p); p.bits.IsEmpty() {
		r.memory -= p.memory
		r.pages = slices.Delete(r.pages, i, i+1)
	}
	return old
}

// Extend makes the bitmap at least n bytes long and reports whether it was shorter.
func (r *Bitmap) Extend(n uint64) (grown bool) {
	if n <= r.length {
		return false
	}
	r.noteHead()
	r.length = n
	return true
}

// Field returns an unsigned number of up to 64 bits; the bit at an offset is its highest.
func (r *Bitmap) Field(at int64, size int) (v uint64) {
	for i := range int64(size) {
		v = v<<1 | uint64(r.Get(at+i))
	}
	return v
}

// SetField stores the low bits of v as a number of size bits, and extends the bitmap if it ends before that.
func (r *Bitmap) SetField(at int64, size int, v uint64) {
	r.Extend(uint64(at+int64(size)-1)/8 + 1)
	for i := range int64(size) {
		r.Set(at+i, int(v>>(int64(size)-1-i)&1))
	}
}

// within returns the range of a page's bits that lie between two bits; to is excluded.
func (p *page) within(from, to int64) (lo, hi uint64) {
	base := int64(p.number * pageBits)
	return uint64(max(from-base, 0)), uint64(min(to-base, pageBits))
}

// Count returns the number of bits that are set between two bits; to is excluded.
func (r *Bitmap) Count(from, to int64) (n int64) {
	if from >= to {
		return 0
	}
	for _, p := range r.pages[r.seek(uint64(from)/pageBits):] {
		if int64(p.number*pageBits) >= to {
			break
		}
		if lo, hi := p.within(from, to); lo == 0 && hi == pageBits {
			n += int64(p.bits.GetCardinality())
		} else {
			n += int64(p.bits.CardinalityInRange(lo, hi))
		}
	}
	return n
}

// Find returns the first bit with a value between two bits, to excluded; -1 if there is none.
func (r *Bitmap) Find(bit int, from, to int64) int64 {
	i := r.seek(uint64(from) / pageBits)
	for from < to {
		number := uint64(from) / pageBits
		if i == len(r.pages) || r.pages[i].number != number { // zeros, up to the next page
			switch {
			case bit == 0:
				return from
			case i == len(r.pages):
				return -1
			}
			from = int64(r.pages[i].number * pageBits)
			continue
		}
		p, base := r.pages[i], int64(number*pageBits)
		next := nextAbsent
		if bit == 1 {
			next = (*roaring.Bitmap).NextValue
		}
		if at := next(p.bits, uint32(from-base)); at >= 0 && at < pageBits {
			if at += base; at < to {
				return at
			}
			return -1
		}
		i, from = i+1, base+pageBits
	}
	return -1
}

// nextAbsent returns the first bit of a page from a place on that is not set, pageBits if there is none. The function of
// the library with this name is wrong where a container ends with a set bit.
func nextAbsent(b *roaring.Bitmap, from uint32) int64 {
	first := uint64(from)
	return int64(from) + int64(sort.Search(pageBits-int(from), func(n int) bool {
		return b.CardinalityInRange(first, first+uint64(n)+1) <= uint64(n)
	}))
}

// AppendBytes appends the bitmap as a string of n bytes.
func (r *Bitmap) AppendBytes(dst []byte, n uint64) []byte {
	start := len(dst)
	dst = slices.Grow(dst, int(n))[:start+int(n)]
	out := dst[start:]
	clear(out)
	var words [pageBits / 64]uint64
	for _, p := range r.pages {
		at := p.number * pageBytes
		if at >= n {
			break
		}
		clear(words[:])
		p.bits.WriteDenseTo(words[:])
		part := out[at:min(at+pageBytes, n)]
		for i := 0; 8*i < len(part); i++ {
			var word [8]byte
			binary.BigEndian.PutUint64(word[:], bits.Reverse64(words[i]))
			copy(part[8*i:], word[:])
		}
	}
	return dst
}

// Clone returns a copy that does not track its changes.
func (r *Bitmap) Clone() *Bitmap {
	c := &Bitmap{length: r.length, pages: make([]*page, 0, len(r.pages))}
	for _, p := range r.pages {
		c.append(p.number, p.bits.Clone())
	}
	return c
}
