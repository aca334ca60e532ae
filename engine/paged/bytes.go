// Package paged keeps large arrays of bytes in pages that take memory only once they are written to, and stores values
// made of such arrays page by page. It serves sketches, whose size is fixed from the start.
package paged

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/prefetch"
)

const (
	// PageSize is the size of the largest pages in bytes.
	PageSize = 4096
	// MaxBytes is the most bytes that the arrays of one value may have together.
	MaxBytes = 64 << 30
	// groupPages is how many pages share a list.
	groupPages = 1024
)

// Bytes is an array of bytes, initially 0.
type Bytes struct {
	size   uint32 // of a page
	last   uint32 // of the last page
	pages  uint32
	noted  uint32  // that of the only page: see group
	only   *byte   // the page of an array that has one page, nil until written to
	groups []group // of other arrays
}

type group struct {
	pages []*byte  // nil until one of them is written to; a page is nil until written to
	noted []uint32 // the last epoch in which a change was noted, 0 before the first; nil until one is noted
}

// NewBytes returns an array of pages of size bytes, from 1 to PageSize. Together they may have up to MaxBytes.
func NewBytes(size, pages int) Bytes {
	b := Bytes{size: uint32(size), last: uint32(size), pages: uint32(pages)}
	if pages > 1 {
		b.groups = make([]group, (pages+groupPages-1)/groupPages)
	}
	return b
}

// NewArray returns an array of size bytes, from 1 to MaxBytes. Its pages have PageSize bytes, but for the last one.
func NewArray(size uint64) Bytes {
	pages := (size + PageSize - 1) / PageSize
	b := NewBytes(int(min(size, PageSize)), int(pages))
	b.last = uint32(size - (pages-1)*PageSize)
	return b
}

// Size returns how many bytes there are.
func (b *Bytes) Size() uint64 { return uint64(b.pages-1)*uint64(b.size) + uint64(b.last) }

// Pages returns the number of pages, written to or not.
func (b *Bytes) Pages() int { return int(b.pages) }

// PageSize returns how many bytes a page has, unless it is the last one.
func (b *Bytes) PageSize() int { return int(b.size) }

// sizeOf returns how many bytes a page has.
func (b *Bytes) sizeOf(page int) int {
	if page == int(b.pages)-1 {
		return int(b.last)
	}
	return int(b.size)
}

// Page returns a page for reading, nil if it was never written to.
func (b *Bytes) Page(i int) []byte {
	if p := b.page(uint64(i)); p != nil {
		return unsafe.Slice(p, b.sizeOf(i))
	}
	return nil
}

// page returns the first byte of a page, nil if nothing was written to the page.
func (b *Bytes) page(i uint64) *byte {
	if b.pages == 1 {
		return b.only
	}
	pages := b.groups[i/groupPages].pages
	if i %= groupPages; i >= uint64(len(pages)) {
		return nil
	}
	return pages[i]
}

// setPage replaces the memory of a page.
func (b *Bytes) setPage(i int, page *byte) {
	if b.pages == 1 {
		b.only = page
		return
	}
	g := &b.groups[i/groupPages]
	if g.pages == nil {
		g.pages = make([]*byte, b.inGroup(i/groupPages))
	}
	g.pages[i%groupPages] = page
}

// bitsInPage is how many bits a page of PageSize bytes has.
const bitsInPage = 8 * PageSize

// Bit reports whether a bit is set in an array that NewArray has made.
func (b *Bytes) Bit(at uint64) bool {
	p := b.page(at / bitsInPage)
	return p != nil && *(*byte)(unsafe.Add(unsafe.Pointer(p), at/8%PageSize))&(1<<(at%8)) != 0
}

// Fetch adds a bit of an array that NewArray has made to what is prefetched.
func (b *Bytes) Fetch(l *prefetch.List, at uint64) {
	if p := b.page(at / bitsInPage); p != nil {
		l.Add(uintptr(unsafe.Pointer(p))+uintptr(at/8%PageSize), 1)
	}
}

// SetBit sets a bit in an array that NewArray has made, if the page is noted as changed in an epoch, or for Unnoted in any case. It
// reports false, and does nothing, if it is not noted or nothing was written to it yet.
func (b *Bytes) SetBit(at uint64, epoch Noted) bool {
	page := at / bitsInPage
	p := b.page(page)
	if p == nil || epoch != Unnoted && Noted(b.notedIn(page)) != epoch {
		return false
	}
	*(*byte)(unsafe.Add(unsafe.Pointer(p), at/8%PageSize)) |= 1 << (at % 8)
	return true
}

// Noted says which pages may be written to without Value.Write: those that are noted as changed in an epoch, all of a value whose
// changes are not noted, or none.
type Noted uint64

// Values of Noted that are no epochs.
const (
	Unnoted Noted = 1<<32 + iota
	never
)

// Append appends the bytes from one place to another to dst.
func (b *Bytes) Append(dst []byte, from, to uint64) []byte {
	for from < to {
		i, at := int(from/uint64(b.size)), int(from%uint64(b.size))
		n := min(uint64(b.sizeOf(i)-at), to-from)
		if page := b.Page(i); page != nil {
			dst = append(dst, page[at:at+int(n)]...)
		} else {
			dst = append(dst, zeros[:n]...)
		}
		from += n
	}
	return dst
}

// zeros is what a page has to which nothing was written.
var zeros [PageSize]byte

// write returns a page for writing, and whether it is new.
func (b *Bytes) write(i int) (page []byte, made bool) {
	if page = b.Page(i); page != nil {
		return page, false
	}
	page = make([]byte, b.sizeOf(i))
	b.setPage(i, unsafe.SliceData(page))
	return page, true
}

// inGroup returns the number of pages of a group.
func (b *Bytes) inGroup(g int) int { return min(groupPages, int(b.pages)-g*groupPages) }

// notedIn returns the last epoch in which a change of a page was noted, 0 if no change was noted.
func (b *Bytes) notedIn(i uint64) uint32 {
	if b.pages == 1 {
		return b.noted
	}
	noted := b.groups[i/groupPages].noted
	if i %= groupPages; i >= uint64(len(noted)) {
		return 0
	}
	return noted[i]
}

// note marks a page as changed in an epoch, and reports whether it was unmarked.
func (b *Bytes) note(i int, epoch uint32) bool {
	was := b.notedIn(uint64(i))
	if b.pages == 1 {
		b.noted = epoch
		return was != epoch
	}
	g := &b.groups[i/groupPages]
	if g.noted == nil {
		g.noted = make([]uint32, b.inGroup(i/groupPages))
	}
	g.noted[i%groupPages] = epoch
	return was != epoch
}

// forget removes the marks of all pages.
func (b *Bytes) forget() {
	b.noted = 0
	for i := range b.groups {
		b.groups[i].noted = nil
	}
}

// All iterates over the pages that were written to, in order.
func (b *Bytes) All() iter.Seq2[int, []byte] { return b.from(0) }

// from is All starting at a page.
func (b *Bytes) from(first int) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for i := first; i < int(b.pages); {
			if b.pages > 1 && b.groups[i/groupPages].pages == nil {
				i = (i/groupPages + 1) * groupPages
				continue
			}
			if page := b.Page(i); page != nil && !yield(i, page) {
				return
			}
			i++
		}
	}
}

// clone returns a copy without marks.
func (b *Bytes) clone() Bytes {
	c := NewBytes(int(b.size), int(b.pages))
	c.last = b.last
	for i, page := range b.All() {
		c.setPage(i, unsafe.SliceData(slices.Clone(page)))
	}
	return c
}
