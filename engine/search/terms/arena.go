package terms

import (
	"encoding/binary"
	"unsafe"
)

// arena stores texts, each after its length, in pages that are only appended to. A page that has lost half of its texts
// is emptied: the others move to the newest page. So the memory of a returned text does not change.
type arena struct {
	pages []arenaPage
	free  []uint32 // numbers of emptied pages
	last  uint32   // the page being appended to
	bytes int      // of all pages
}

// place is the location of a text.
type place struct {
	page uint32
	at   pageOffset
}

type pageOffset uint16

type arenaPage struct {
	b    []byte
	dead int // bytes of removed texts
}

// maxPage is the size of a page, except for one with a longer text. The first pages are smaller.
const maxPage = 1 << 16

// minPage is the size of the first page.
const minPage = 64

// add adds a text.
func (a *arena) add(text string) place {
	need := uvarintLen(len(text)) + len(text)
	if len(a.pages) == 0 || cap(a.pages[a.last].b)-len(a.pages[a.last].b) < need {
		a.newPage(max(need, min(maxPage, max(minPage, a.bytes/2))))
	}
	p := &a.pages[a.last]
	at := place{a.last, pageOffset(len(p.b))}
	p.b = append(binary.AppendUvarint(p.b, uint64(len(text))), text...)
	return at
}

func (a *arena) newPage(size int) {
	a.bytes += size
	p := arenaPage{b: make([]byte, 0, size)}
	if f := len(a.free); f > 0 {
		a.last, a.free = a.free[f-1], a.free[:f-1]
		a.pages[a.last] = p
		return
	}
	a.last = uint32(len(a.pages))
	a.pages = append(a.pages, p)
}

// text returns the text at a place.
func (a *arena) text(at place) string {
	b := a.pages[at.page].b[at.at:]
	n, size := int(b[0]), 1
	if n >= 0x80 {
		var long uint64
		long, size = binary.Uvarint(b)
		n = int(long)
	}
	return unsafe.String(unsafe.SliceData(b[size:]), n)
}

// remove marks the text at a place as removed. It reports whether its page should be emptied.
func (a *arena) remove(at place) bool {
	p := &a.pages[at.page]
	n := len(a.text(at))
	p.dead += uvarintLen(n) + n
	return p.dead > len(p.b)/2 && (at.page != a.last || p.dead == len(p.b))
}

// empty drops a page. It first calls move with every text ever added to it, and its place.
func (a *arena) empty(page uint32, move func(text string, from place)) {
	p := a.pages[page]
	if page == a.last {
		a.newPage(min(maxPage, max(minPage, a.bytes/2)))
	}
	if p.dead < len(p.b) {
		for at := 0; at < len(p.b); {
			from := place{page, pageOffset(at)}
			text := a.text(from)
			move(text, from)
			at += uvarintLen(len(text)) + len(text)
		}
	}
	a.bytes -= cap(p.b)
	a.pages[page] = arenaPage{}
	a.free = append(a.free, page)
}

func uvarintLen(n int) (size int) {
	for size = 1; n >= 0x80; size++ {
		n >>= 7
	}
	return size
}
