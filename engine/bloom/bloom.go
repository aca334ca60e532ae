// Package bloom has Bloom filters that grow: a stack of sub-filters. The newest takes items until its capacity is
// reached.
//
// A sub-filter consists of pages of equal size, and all bits of an item are in one page. So an item costs one access to
// memory instead of one per hash function, and a checkpoint writes one page for it. Pages do not get exactly equally
// many items, which raises the rate of false positives slightly; the filter is made larger to compensate.
package bloom

import (
	"errors"
	"math"
	"math/bits"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/engine/paged"
)

const (
	// MinRate is the lowest rate of false positives that a filter can be made for.
	MinRate = 1e-18
	// lowestRate is the lowest rate of any sub-filter.
	lowestRate = 1e-20
	// tightening multiplies the rate of each sub-filter to give that of the next, so that the sum of all has a limit.
	tightening = 0.5
	// MaxLinks is how many sub-filters a filter may have.
	MaxLinks = paged.MaxArrays
	// maxCapacity is the largest capacity of a sub-filter.
	maxCapacity = 1 << 48

	maxHashes = 128
	pageBits  = 8 * paged.PageSize
)

// Errors of Add.
var (
	// ErrFull says that the filter does not scale and has reached its capacity.
	ErrFull = errors.New("the filter is full")
	// ErrLimit says that the filter has the largest possible size.
	ErrLimit = errors.New("the filter cannot grow any more")
)

// Options are the parameters of a filter.
type Options struct {
	Rate      float64 // of false positives, from MinRate to below 1
	Capacity  uint64  // how many items the first sub-filter takes, at least 1
	Expansion uint32  // growth factor of each further sub-filter; 0: there is none
}

// Filter is a Bloom filter.
type Filter struct {
	paged.Value
	options Options
	links   []Link
	items   uint64
	bytes   uint64 // of all sub-filters, written to or not
}

// Link is a sub-filter.
type Link struct {
	Rate     float64 // of false positives
	Capacity uint64
	Items    uint64
	Hashes   int
	Bytes    uint64 // of its bits

	pages    uint64
	pageBits uint32
}

// Bytes returns how many bytes a filter with many items takes before it grows; ok is false if no such filter is
// possible.
func (o Options) Bytes() (n uint64, ok bool) {
	l, ok := o.first()
	return l.Bytes, ok
}

// first returns the first sub-filter.
func (o Options) first() (l Link, ok bool) {
	if !(o.Rate >= MinRate && o.Rate < 1) || o.Capacity == 0 {
		return Link{}, false
	}
	if o.Expansion > 0 {
		o.Rate *= tightening
	}
	return newLink(o.Capacity, o.Rate)
}

// New returns an empty filter, nil if Options.Bytes reports that none is possible.
func New(o Options) *Filter {
	l, ok := o.first()
	if !ok {
		return nil
	}
	f := &Filter{options: o}
	f.Init(f)
	f.push(l)
	return f
}

// newLink returns a sub-filter without bits; ok is false if it would be too large.
func newLink(capacity uint64, rate float64) (l Link, ok bool) {
	if capacity > maxCapacity {
		return Link{}, false
	}
	l = Link{Rate: rate, Capacity: capacity, Hashes: max(int(math.Ceil(-math.Log2(rate))), 1)}
	k := float64(l.Hashes)
	perItem := bitsPerItem(rate, k)
	size := float64(capacity) * perItem
	if size > pageBits {
		// A page's number of items varies about as Poisson's distribution. If v is the variance relative to the mean,
		// the rate rises by about (k ln 2)²/2 times v.
		d := k * math.Ln2
		perItem = bitsPerItem(rate/(1+d*d/2*perItem/pageBits), k)
		size = float64(capacity) * perItem
	}
	if size > 8*paged.MaxBytes {
		return Link{}, false
	}
	l.pages = uint64(math.Ceil(size / pageBits))
	pageBytes := int(math.Ceil(size / float64(l.pages) / 8))
	pageBytes = min(listpack.Allocated((pageBytes+7)/8*8), paged.PageSize)
	l.setPages(l.pages, uint32(8*pageBytes))
	return l, true
}

func (l *Link) setPages(pages uint64, bits uint32) {
	l.pages, l.pageBits, l.Bytes = pages, bits, pages*uint64(bits/8)
}

// bitsPerItem returns how many bits a filter with k hash functions needs for an item.
func bitsPerItem(rate, k float64) float64 { return -k / math.Log1p(-math.Pow(rate, 1/k)) }

// push adds a sub-filter.
func (f *Filter) push(l Link) {
	f.AddArray(paged.NewBytes(int(l.pageBits/8), int(l.pages)))
	f.links = append(f.links, l)
	f.items += l.Items
	f.bytes += l.Bytes
}

// grow adds a sub-filter for more items.
func (f *Filter) grow() error {
	if f.options.Expansion == 0 {
		return ErrFull
	}
	last := &f.links[len(f.links)-1]
	if len(f.links) == MaxLinks || last.Capacity > maxCapacity/uint64(f.options.Expansion) {
		return ErrLimit
	}
	l, ok := newLink(last.Capacity*uint64(f.options.Expansion), max(last.Rate*tightening, lowestRate))
	if !ok || f.bytes+l.Bytes > paged.MaxBytes {
		return ErrLimit
	}
	f.push(l)
	return nil
}

// probe yields the bits of an item within its page.
type probe struct{ state, step uint64 }

func (l *Link) place(h xxh3.Uint128) (page int, p probe) {
	hi, _ := bits.Mul64(h.Hi, l.pages)
	return int(hi), probe{h.Lo, h.Hi | 1}
}

// next returns the number of the next bit, below n.
func (p *probe) next(n uint32) uint32 {
	bit := uint32((p.state >> 32) * uint64(n) >> 32)
	p.state = p.state*0xd1342543de82ef95 + p.step // a multiplier of the kind that L'Ecuyer recommends
	return bit
}

// has reports whether a sub-filter has an item.
func (f *Filter) has(i int, h xxh3.Uint128) bool {
	l := &f.links[i]
	n, p := l.place(h)
	page := f.Array(i).Page(n)
	if page == nil {
		return false
	}
	for range l.Hashes {
		bit := p.next(l.pageBits)
		if page[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// Has reports whether the filter has an item. It can be wrong about an absent one.
func (f *Filter) Has(item []byte) bool { return f.hasHash(xxh3.Hash128(item)) }

func (f *Filter) hasHash(h xxh3.Uint128) bool {
	for i := len(f.links) - 1; i >= 0; i-- {
		if f.has(i, h) {
			return true
		}
	}
	return false
}

// Add adds an item. It returns false if the filter seems to have it already.
func (f *Filter) Add(item []byte) (added bool, err error) {
	h := xxh3.Hash128(item)
	if f.hasHash(h) {
		return false, nil
	}
	if last := &f.links[len(f.links)-1]; last.Items >= last.Capacity {
		if err := f.grow(); err != nil {
			return false, err
		}
	}
	f.NoteHead()
	i := len(f.links) - 1
	l := &f.links[i]
	n, p := l.place(h)
	page := f.Write(i, n)
	for range l.Hashes {
		bit := p.next(l.pageBits)
		page[bit/8] |= 1 << (bit % 8)
	}
	l.Items++
	f.items++
	return true, nil
}

// Options returns the parameters of the filter.
func (f *Filter) Options() Options { return f.options }

// Items returns how many items were added.
func (f *Filter) Items() uint64 { return f.items }

// Capacity returns how many items the filter takes before it grows.
func (f *Filter) Capacity() (n uint64) {
	for i := range f.links {
		n += f.links[i].Capacity
	}
	return n
}

// Bytes returns how many bytes the sub-filters take once they have many items.
func (f *Filter) Bytes() uint64 { return f.bytes }

// Links returns the sub-filters, the oldest first. They must not be changed.
func (f *Filter) Links() []Link { return f.links }

// Clone returns a copy.
func (f *Filter) Clone() *Filter {
	c := &Filter{options: f.options, links: append([]Link(nil), f.links...), items: f.items, bytes: f.bytes}
	c.Init(c)
	f.CopyTo(&c.Value)
	return c
}

// MemoryUsage returns how many bytes of memory the filter takes.
func (f *Filter) MemoryUsage() int {
	return int(unsafe.Sizeof(*f)) + cap(f.links)*int(unsafe.Sizeof(Link{})) + f.Value.MemoryUsage()
}
