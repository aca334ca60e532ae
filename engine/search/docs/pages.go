package docs

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/atomredis/atomredis/engine/listpack"
)

// Documents are in pages of pageSize numbers. A page that has lost a quarter of its documents is replaced by one with
// the rest, and one that has lost all by nil. The pages belong to nodes. Views share nodes and pages, so a page is
// replaced in a copy of its node; the copy can be changed further until the next view is taken.

const (
	pageSize = 256
	nodeSize = 512 // pages
	fewDead  = 16  // dead documents for which no page is replaced
)

// pages is a table's bookkeeping, invisible to views.
type pages struct {
	epoch  uint64      // of nodes that no view sees
	seenIn atomic.Bool // a view was taken in this epoch
	root   uint64      // the epoch of state.nodes
	bytes  int
}

// node has the pages of nodeSize * pageSize numbers; pages without documents are nil.
type node struct {
	epoch uint64
	pages [nodeSize]*page
}

// page has the documents of pageSize numbers.
type page struct {
	has  *[pageSize / 64]uint64 // a bitmap of the numbers present; nil means all
	docs []Doc
	died []atomic.Uint64 // state.time of their death; 0 while alive
	live int             // only the table reads it
}

// place returns the page of a document and its index there; nil if the document was dropped.
func (v *state) place(id uint64) (*page, int) {
	i := id - 1 // numbers start at 1
	if i >= v.last {
		return nil, 0
	}
	full := v.last - uint64(len(v.tail.docs))
	if i >= full {
		return &v.tail, int(i - full)
	}
	p := v.nodes[i/(nodeSize*pageSize)].pages[i/pageSize%nodeSize]
	if p == nil {
		return nil, 0
	}
	at := int(i % pageSize)
	if p.has == nil {
		return p, at
	}
	word, bit := p.has[at/64], uint64(1)<<(at%64)
	if word&bit == 0 {
		return nil, 0
	}
	rank := bits.OnesCount64(word & (bit - 1))
	for _, w := range p.has[:at/64] {
		rank += bits.OnesCount64(w)
	}
	return p, rank
}

// dead reports whether document i of a page was dead.
func (v *state) dead(p *page, i int) bool {
	at := p.died[i].Load()
	return at != 0 && at <= v.time
}

// seen records that a view is taken.
func (t *pages) seen() {
	if !t.seenIn.Load() {
		t.seenIn.Store(true)
	}
}

// add adds a document to the tail, which a view sees only up to its own length.
func (t *pages) add(v *state, d Doc) {
	if n := len(v.tail.docs); n == cap(v.tail.docs) {
		t.bytes -= v.tail.bytes()
		docs := make([]Doc, n, min(max(4, 2*n), pageSize))
		copy(docs, v.tail.docs)
		died := make([]atomic.Uint64, cap(docs))
		for i := range v.tail.died {
			died[i].Store(v.tail.died[i].Load())
		}
		v.tail.docs, v.tail.died = docs, died
		t.bytes += v.tail.bytes()
	}
	t.bytes += listpack.Allocated(len(d.data))
	v.tail.docs = append(v.tail.docs, d)
	v.tail.live++
	v.last++
	if len(v.tail.docs) < pageSize {
		return
	}
	full := v.tail
	v.tail = page{}
	i := v.last - 1
	if i/(nodeSize*pageSize) == uint64(len(v.nodes)) {
		v.nodes = append(v.nodes, &node{epoch: t.epoch})
		t.bytes += int(unsafe.Sizeof(node{}))
	}
	// No view sees a page of numbers after its last one, so the node need not be copied.
	v.nodes[i/(nodeSize*pageSize)].pages[i/pageSize%nodeSize] = &full
	t.bytes += int(unsafe.Sizeof(full))
	t.shrink(v, i, &full)
}

// kill marks a live document as dead.
func (t *pages) kill(v *state, id uint64) {
	p, i := v.place(id)
	p.died[i].Store(v.time)
	p.live--
	if p != &v.tail {
		t.shrink(v, id-1, p)
	}
}

// shrink replaces the page of number i+1 if enough of its documents are dead.
func (t *pages) shrink(v *state, i uint64, p *page) {
	dead := len(p.docs) - p.live
	if p.live > 0 && (dead < fewDead || dead < len(p.docs)/4) {
		return
	}
	t.bytes -= p.bytes() + int(unsafe.Sizeof(*p))
	var rest *page
	if p.live > 0 {
		rest = &page{has: new([pageSize / 64]uint64), docs: make([]Doc, 0, p.live), died: make([]atomic.Uint64, p.live), live: p.live}
		for at := range uint64(pageSize) {
			if d := v.Get(i - i%pageSize + at + 1); d != nil {
				rest.has[at/64] |= 1 << (at % 64)
				rest.docs = append(rest.docs, *d)
			}
		}
		t.bytes += rest.bytes() + int(unsafe.Sizeof(*rest))
	}
	for at := range p.docs {
		if v.dead(p, at) {
			t.bytes -= listpack.Allocated(len(p.docs[at].data))
		}
	}
	t.replace(v, i, rest)
}

// replace stores a page where existing views do not see it.
func (t *pages) replace(v *state, i uint64, p *page) {
	if t.seenIn.Load() {
		t.seenIn.Store(false)
		t.epoch++
	}
	if t.root != t.epoch {
		t.root = t.epoch
		v.nodes = slices.Clone(v.nodes)
	}
	n := &v.nodes[i/(nodeSize*pageSize)]
	if (*n).epoch != t.epoch {
		c := **n
		c.epoch = t.epoch
		*n = &c
	}
	(*n).pages[i/pageSize%nodeSize] = p
}

// bytes returns the memory of a page without the documents' strings.
func (p *page) bytes() int {
	n := cap(p.docs)*int(unsafe.Sizeof(Doc{})) + len(p.died)*int(unsafe.Sizeof(atomic.Uint64{}))
	if p.has != nil {
		n += int(unsafe.Sizeof(*p.has))
	}
	return n
}
