// Package bloom has Bloom filters that grow: a stack of sub-filters. The newest takes items until its capacity is
// reached.
//
// Bits, hash functions and sizes are those of the module of Redis, so that filters move between both and answer alike.
// The bits of an item are at a, a+b, a+2b and so on, where a and b are hashes of it, each modulo the number of bits.
// Filters that older versions of this package have made keep their own layout: see former.go.
package bloom

import (
	"errors"
	"math"
	"math/bits"
	"unsafe"

	"github.com/atomredis/atomredis/engine/murmur"
	"github.com/atomredis/atomredis/engine/naturallog"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/engine/prefetch"
)

const (
	// tightening multiplies the rate of each sub-filter to give that of the next, so that the sum of all has a limit.
	tightening = 0.5
	// MaxLinks is how many sub-filters a filter may have.
	MaxLinks = paged.MaxArrays
	// maxHashes is the number of hash functions of the lowest rate that there is.
	maxHashes = 1075

	// The module computes with these.
	ln2       = 0.693147180559945
	ln2Square = 0.480453013918201

	seed64 = 0xc6a4a7935bd1e995
	seed32 = 0x9747b28c
)

// The flags of a filter. Filters of the module's early versions lack some of the first and third.
const (
	exactSize  = 1 << iota // sub-filters have as many bits as they need, otherwise a power of two
	sizeIsBits             // a capacity is given as the power of two of the bits
	hash64                 // hashes have 64 bits, otherwise 32
	fixedSize              // the filter does not grow

	allFlags = exactSize | sizeIsBits | hash64 | fixedSize

	// formerLayout says that the layout is that of older versions. It is not stored.
	formerLayout = 1 << 31
)

// fixedGrowth is the stored growth of filters that do not grow: the module's default.
const fixedGrowth = 2

// Errors of Add.
var (
	// ErrFull says that the filter does not scale and has reached its capacity.
	ErrFull = errors.New("the filter is full")
	// ErrLimit says that the filter has the largest possible size.
	ErrLimit = errors.New("the filter cannot grow any more")
)

var errLink = errors.New("bloom: a stored sub-filter is malformed")

// Options are the parameters of a filter.
type Options struct {
	Rate      float64 // of false positives, between 0 and 1
	Capacity  uint64  // how many items the first sub-filter takes, at least 1
	Expansion uint32  // growth factor of each further sub-filter; 0: there is none
}

// Filter is a Bloom filter.
type Filter struct {
	paged.Value
	links  []Link
	items  uint64
	flags  uint32
	growth uint32
}

// Link is a sub-filter.
type Link struct {
	Rate        float64 // of false positives
	BitsPerItem float64
	Capacity    uint64
	Items       uint64
	Bytes       uint64 // of its bits
	Hashes      uint32
	Power       uint8 // the number of bits is 2 to the power of it; 0 for other numbers

	size    uint64 // in bits
	inverse uint64 // 2^64 divided by size: see modulo
}

// Bytes returns how many bytes a filter with many items takes before it grows; ok is false if no such filter is
// possible.
func (o Options) Bytes() (n uint64, ok bool) {
	l, ok := o.first()
	return l.Bytes, ok
}

// flags returns the flags of a filter made by the options.
func (o Options) flags() uint32 {
	if o.Expansion == 0 {
		return exactSize | hash64 | fixedSize
	}
	return exactSize | hash64
}

// first returns the first sub-filter.
func (o Options) first() (l Link, ok bool) {
	if !isRate(o.Rate) {
		return Link{}, false
	}
	if o.Expansion > 0 {
		o.Rate *= tightening
	}
	return newLink(o.flags(), o.Capacity, o.Rate)
}

// New returns an empty filter, nil if Options.Bytes reports that none is possible.
func New(o Options) *Filter {
	l, ok := o.first()
	if !ok {
		return nil
	}
	f := &Filter{flags: o.flags(), growth: o.Expansion}
	if o.Expansion == 0 {
		f.growth = fixedGrowth
	}
	f.Init(f)
	f.push(l)
	return f
}

// newLink returns a sub-filter without bits; ok is false if there can be none.
func newLink(flags uint32, capacity uint64, rate float64) (l Link, ok bool) {
	if !isRate(rate) || capacity == 0 {
		return Link{}, false
	}
	l = Link{Rate: rate, Capacity: capacity, BitsPerItem: math.Abs(naturallog.Of(rate) / ln2Square)}
	l.Hashes = hashes(l.BitsPerItem)
	size := float64(capacity) * l.BitsPerItem
	switch {
	case flags&sizeIsBits != 0:
		size = math.Ldexp(1, int(min(capacity, 64)))
		l.Power, l.Capacity = uint8(min(capacity, 64)), uint64(size/l.BitsPerItem)
	case flags&exactSize == 0:
		_, power := math.Frexp(size)
		rounded := math.Ldexp(1, max(power, 0))
		l.Power, l.Capacity = uint8(max(power, 0)), capacity+uint64(float64(uint64(rounded-size))/l.BitsPerItem)
		size = rounded
	}
	if size > 8*paged.MaxBytes {
		return Link{}, false
	}
	l.Bytes = (max(uint64(size), 1) + 63) / 64 * 8
	return l, true
}

func isRate(r float64) bool { return r > 0 && r < 1 }

// hashes returns the number of hash functions for a number of bits per item.
func hashes(bitsPerItem float64) uint32 { return uint32(math.Ceil(ln2 * bitsPerItem)) }

// push adds a sub-filter.
func (f *Filter) push(l Link) {
	l.size = 8 * l.Bytes
	if l.Power > 0 {
		l.size = 1 << l.Power
	}
	l.inverse = math.MaxUint64 / l.size
	f.AddArray(paged.NewArray(l.Bytes))
	f.links = append(f.links, l)
}

// Restore returns a filter without sub-filters, from the properties of a stored filter.
func Restore(flags, growth uint32, items uint64) (*Filter, error) {
	if flags&^allFlags != 0 {
		return nil, errLink
	}
	f := &Filter{flags: flags, growth: growth, items: items}
	f.Init(f)
	return f, nil
}

// AddLink adds a stored sub-filter, without its bits.
func (f *Filter) AddLink(l Link) error {
	// The number of hash functions must follow from the bits per item.
	wrong := !isRate(l.Rate) || !(l.BitsPerItem > 0 && l.BitsPerItem < maxHashes/ln2) || l.Hashes != hashes(l.BitsPerItem) ||
		l.Bytes == 0 || f.Bytes() > paged.MaxBytes-min(l.Bytes, paged.MaxBytes) || l.Bytes > paged.MaxBytes || l.Power > 63 ||
		l.Power > 0 && 8*l.Bytes < 1<<l.Power
	if wrong || len(f.links) == MaxLinks {
		return errLink
	}
	f.push(l)
	return nil
}

// SetItems sets the number of items of the last sub-filter, for filters stored elsewhere.
func (f *Filter) SetItems(n uint64) { f.links[len(f.links)-1].Items = n }

// grow adds a sub-filter for more items.
func (f *Filter) grow() error {
	if f.flags&fixedSize != 0 {
		return ErrFull
	}
	last := &f.links[len(f.links)-1]
	over, capacity := bits.Mul64(last.Capacity, uint64(f.growth))
	if over > 0 || len(f.links) == MaxLinks {
		return ErrLimit
	}
	if f.Former() {
		return f.growFormer(capacity)
	}
	l, ok := newLink(f.flags, capacity, last.Rate*tightening)
	if !ok || f.AddLink(l) != nil {
		return ErrLimit
	}
	return nil
}

// hash determines the bits of an item: see the package comment.
type hash struct{ first, step uint64 }

func (f *Filter) hash(item []byte) (h hash) {
	switch {
	case f.Former():
		return formerHash(item)
	case f.flags&hash64 != 0:
		h.first, h.step = murmur.Pair64(item, seed64)
	default:
		first := murmur.Sum32(item, seed32)
		h.first, h.step = uint64(first), uint64(murmur.Sum32(item, first))
	}
	return h
}

// modulo returns x modulo the size. The product is the quotient, or one less.
func (l *Link) modulo(x uint64) uint64 {
	quotient, _ := bits.Mul64(x, l.inverse)
	rest := x - quotient*l.size
	if rest >= l.size {
		rest -= l.size
	}
	return rest
}

// has reports whether a sub-filter has an item.
func (f *Filter) has(i int, h hash) bool {
	if f.Former() {
		return f.hasFormer(i, h)
	}
	l, array := &f.links[i], f.Array(i)
	for range l.Hashes {
		if !array.Bit(l.modulo(h.first)) {
			return false
		}
		h.first += h.step
	}
	return true
}

// set adds an item to a sub-filter.
func (f *Filter) set(i int, h hash) {
	if f.Former() {
		f.setFormer(i, h)
		return
	}
	l, array, noted := &f.links[i], f.Array(i), f.Noted()
	for range l.Hashes {
		if at := l.modulo(h.first); !array.SetBit(at, noted) && !array.Bit(at) {
			f.Write(i, int(at/(8*paged.PageSize)))[at/8%paged.PageSize] |= 1 << (at % 8)
		}
		h.first += h.step
	}
}

// fetched is the size in bytes from which the bits of a sub-filter are prefetched: smaller ones stay in the cache.
const fetched = 128 << 10

// fetch prefetches the bits of an item in a sub-filter. Meanwhile the others are searched, of which each look at a bit may
// wait for the memory; then the bits are set.
func (f *Filter) fetch(i int, h hash) {
	l, array := &f.links[i], f.Array(i)
	var lines prefetch.List
	for range l.Hashes {
		array.Fetch(&lines, l.modulo(h.first))
		h.first += h.step
	}
	lines.Fetch()
}

// Has reports whether the filter has an item. It can be wrong about an absent one.
func (f *Filter) Has(item []byte) bool { return f.hasHash(f.hash(item)) }

func (f *Filter) hasHash(h hash) bool {
	for i := len(f.links) - 1; i >= 0; i-- {
		if f.has(i, h) {
			return true
		}
	}
	return false
}

// Add adds an item. It returns false if the filter seems to have it already.
func (f *Filter) Add(item []byte) (added bool, err error) {
	h := f.hash(item)
	if last := len(f.links) - 1; !f.Former() && f.links[last].Bytes >= fetched {
		f.fetch(last, h)
	}
	if f.hasHash(h) {
		return false, nil
	}
	if last := &f.links[len(f.links)-1]; last.Items >= last.Capacity {
		if err := f.grow(); err != nil {
			return false, err
		}
	}
	f.NoteHead()
	f.set(len(f.links)-1, h)
	f.links[len(f.links)-1].Items++
	f.items++
	return true, nil
}

// Grows reports whether the filter grows, and the growth factor of each further sub-filter.
func (f *Filter) Grows() (expansion uint32, ok bool) { return f.growth, f.flags&fixedSize == 0 }

// Flags returns the flags of the filter, for Restore.
func (f *Filter) Flags() uint32 { return f.flags }

// Former reports whether the filter has the layout of older versions, which the module does not know.
func (f *Filter) Former() bool { return f.flags&formerLayout != 0 }

// HashBits returns the number of bits of hashes.
func (f *Filter) HashBits() int {
	if f.flags&hash64 != 0 {
		return 64
	}
	return 32
}

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
func (f *Filter) Bytes() (n uint64) {
	for i := range f.links {
		n += f.links[i].Bytes
	}
	return n
}

// The sizes that the module counts for a filter, and for each sub-filter in addition to its bits.
const (
	moduleFilter = 32
	moduleLink   = 64
)

// Size returns the size of the filter as the module counts it, in bytes.
func (f *Filter) Size() uint64 { return moduleFilter + moduleLink*uint64(len(f.links)) + f.Bytes() }

// Links returns the sub-filters, the oldest first. They must not be changed.
func (f *Filter) Links() []Link { return f.links }

// Clone returns a copy.
func (f *Filter) Clone() *Filter {
	c := &Filter{links: append([]Link(nil), f.links...), items: f.items, flags: f.flags, growth: f.growth}
	c.Init(c)
	f.CopyTo(&c.Value)
	return c
}

// MemoryUsage returns how many bytes of memory the filter takes.
func (f *Filter) MemoryUsage() int {
	return int(unsafe.Sizeof(*f)) + cap(f.links)*int(unsafe.Sizeof(Link{})) + f.Value.MemoryUsage()
}
