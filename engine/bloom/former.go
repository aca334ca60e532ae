package bloom

import (
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/engine/paged"
)

// The layout of filters that older versions have made. A sub-filter consists of pages of equal size, and all bits of an
// item are in one page. The pages get slightly different numbers of items, which raises the rate of false positives; a
// somewhat larger filter compensates for that.

const (
	// formerLowestRate is the rate of the last sub-filters of a large stack.
	formerLowestRate  = 1e-20
	formerMaxCapacity = 1 << 48
	formerMaxHashes   = 128
	formerPageBits    = 8 * paged.PageSize
)

func formerHash(item []byte) hash {
	h := xxh3.Hash128(item)
	return hash{h.Lo, h.Hi}
}

// growFormer adds a sub-filter with a capacity.
func (f *Filter) growFormer(capacity uint64) error {
	l, pages, ok := newFormerLink(capacity, max(f.links[len(f.links)-1].Rate*tightening, formerLowestRate))
	if !ok || f.Bytes()+l.Bytes > paged.MaxBytes {
		return ErrLimit
	}
	f.pushFormer(l, pages)
	return nil
}

// newFormerLink returns a sub-filter without bits, and its number of pages; ok is false if it would be too large.
func newFormerLink(capacity uint64, rate float64) (l Link, pages uint64, ok bool) {
	if capacity > formerMaxCapacity {
		return Link{}, 0, false
	}
	l = Link{Rate: rate, Capacity: capacity, Hashes: uint32(max(math.Ceil(-math.Log2(rate)), 1))}
	k := float64(l.Hashes)
	bitsPerItem := func(rate float64) float64 { return -k / math.Log1p(-math.Pow(rate, 1/k)) }
	perItem := bitsPerItem(rate)
	size := float64(capacity) * perItem
	if size > formerPageBits {
		// The load of a page has about a Poisson distribution. If its variance is v times the squared mean, the rate
		// grows by the factor 1 + v(k ln 2)²/2.
		d := k * math.Ln2
		perItem = bitsPerItem(rate / (1 + d*d/2*perItem/formerPageBits))
		size = float64(capacity) * perItem
	}
	if size > 8*paged.MaxBytes {
		return Link{}, 0, false
	}
	pages = uint64(math.Ceil(size / formerPageBits))
	pageBytes := int(math.Ceil(size / float64(pages) / 8))
	l.Bytes = pages * uint64(min(listpack.Allocated((pageBytes+7)/8*8), paged.PageSize))
	return l, pages, true
}

// pushFormer adds a sub-filter.
func (f *Filter) pushFormer(l Link, pages uint64) {
	f.AddArray(paged.NewBytes(int(l.Bytes/pages), int(pages)))
	f.links = append(f.links, l)
}

// formerProbe iterates over the bits of an item within its page.
type formerProbe struct{ state, step uint64 }

// formerPlace returns the page of an item, and the probe of its bits.
func (f *Filter) formerPlace(i int, h hash) (page int, p formerProbe) {
	hi, _ := bits.Mul64(h.step, uint64(f.Array(i).Pages()))
	return int(hi), formerProbe{h.first, h.step | 1}
}

// next returns the next bit, a number below n.
func (p *formerProbe) next(n uint32) uint32 {
	bit := uint32((p.state >> 32) * uint64(n) >> 32)
	p.state = p.state*0xd1342543de82ef95 + p.step // a multiplier with a good spectrum, of L'Ecuyer's kind
	return bit
}

// hasFormer reports whether a sub-filter has an item.
func (f *Filter) hasFormer(i int, h hash) bool {
	n, p := f.formerPlace(i, h)
	page := f.Array(i).Page(n)
	if page == nil {
		return false
	}
	for range f.links[i].Hashes {
		bit := p.next(uint32(8 * len(page)))
		if page[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// setFormer adds an item to a sub-filter.
func (f *Filter) setFormer(i int, h hash) {
	n, p := f.formerPlace(i, h)
	page := f.Write(i, n)
	for range f.links[i].Hashes {
		bit := p.next(uint32(8 * len(page)))
		page[bit/8] |= 1 << (bit % 8)
	}
}
