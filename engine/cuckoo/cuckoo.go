// Package cuckoo has cuckoo filters that grow: a stack of sub-filters made of buckets, which have one byte for each
// item.
//
// An item belongs to one of two buckets of a sub-filter, and the number of one follows from that of the other and the
// byte. If both are full, one of the bytes there moves to its other bucket, and so on.
//
// Hashes, places and the order in which items move are those of the module of Redis, so that filters move between both
// and answer alike. Filters that older versions of this package have made keep their own places: both buckets of an item
// are in one page there.
package cuckoo

import (
	"errors"
	"math/bits"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine/murmur"
	"github.com/atomredis/atomredis/engine/paged"
)

const (
	// MaxBucketSize is the largest size of a bucket.
	MaxBucketSize = 255
	// MaxIterations is the limit of Options.Iterations.
	MaxIterations = 1<<16 - 1
	// maxBuckets is the limit of buckets in a sub-filter.
	maxBuckets = 1 << 36
	// maxLinkBytes is the size of the largest sub-filter: the module counts its bytes in 32 bits.
	maxLinkBytes = 1 << 32
	// maxLinks is the limit of sub-filters.
	maxLinks = paged.MaxArrays
)

// Errors of Add.
var (
	// ErrFull says that a filter that does not grow has no room for an item.
	ErrFull = errors.New("the filter is full")
	// ErrLimit says that there is no room and the filter cannot grow any further.
	ErrLimit = errors.New("the filter cannot grow any more")
)

// Options are the parameters of a filter.
type Options struct {
	Capacity   uint64 // items that the first sub-filter is made for, at least twice BucketSize
	BucketSize uint32 // items in a bucket, from 1 to MaxBucketSize
	Iterations uint32 // number of moves after which the filter counts as full, from 1 to MaxIterations
	Expansion  uint32 // growth factor of each further sub-filter, rounded up to a power of two; 0: there is none
}

// Filter is a cuckoo filter.
type Filter struct {
	paged.Value
	bucketSize, iterations, expansion uint32
	links                             []uint64 // number of buckets of each sub-filter, a power of two
	items, deleted                    uint64
	former                            bool // the layout is that of older versions
}

// buckets returns how many buckets the first sub-filter has.
func (o Options) buckets() uint64 { return powerOfTwo(o.Capacity / uint64(max(o.BucketSize, 1))) }

// powerOfTwo rounds up.
func powerOfTwo(n uint64) uint64 {
	if n <= 1 {
		return n
	}
	return 1 << bits.Len64(n-1)
}

// Bytes returns how many bytes the first sub-filter takes once it has many items; ok is false if no such filter is
// possible.
func (o Options) Bytes() (n uint64, ok bool) {
	if o.BucketSize < 1 || o.BucketSize > MaxBucketSize || o.Iterations < 1 || o.Iterations > MaxIterations ||
		o.Capacity > maxBuckets || o.buckets() < 2 || o.Expansion > 1<<31 {
		return 0, false
	}
	n = o.buckets() * uint64(o.BucketSize)
	return n, n <= maxLinkBytes
}

// New returns an empty filter, nil if Options.Bytes reports that none is possible.
func New(o Options) *Filter {
	if _, ok := o.Bytes(); !ok {
		return nil
	}
	f := &Filter{bucketSize: o.BucketSize, iterations: o.Iterations, expansion: uint32(powerOfTwo(uint64(o.Expansion)))}
	f.Init(f)
	f.push(o.buckets())
	return f
}

// fits reports whether another sub-filter with this number of buckets is permitted.
func (f *Filter) fits(buckets uint64) bool {
	n, most := buckets*uint64(f.bucketSize), uint64(maxLinkBytes)
	if f.former {
		most = paged.MaxBytes
	}
	return buckets <= maxBuckets && n <= most && f.Bytes()+n <= paged.MaxBytes
}

// push adds a sub-filter.
func (f *Filter) push(buckets uint64) {
	inPage := f.bucketsInPage(buckets)
	f.AddArray(paged.NewBytes(int(inPage*uint64(f.bucketSize)), int(buckets/inPage)))
	f.links = append(f.links, buckets)
}

// bucketsInPage returns how many buckets are in a page: a power of two.
func (f *Filter) bucketsInPage(buckets uint64) uint64 {
	return min(buckets, f.pageMask()+1)
}

// pageMask has the bits of a bucket's number that vary within a page, unless the sub-filter is smaller.
func (f *Filter) pageMask() uint64 { return 1<<(bits.Len32(paged.PageSize/f.bucketSize)-1) - 1 }

// Bytes returns how many bytes all sub-filters take once they have many items.
func (f *Filter) Bytes() (n uint64) {
	for _, buckets := range f.links {
		n += buckets * uint64(f.bucketSize)
	}
	return n
}

// place is where an item belongs: the lower bits of the number choose a bucket in each sub-filter, and print is the
// item's byte, never 0.
type place struct {
	bucket uint64
	print  byte
}

func (f *Filter) placeOf(item []byte) place {
	if f.former {
		h := xxh3.Hash128(item)
		return place{h.Hi, byte(h.Lo%255) + 1}
	}
	h := murmur.Sum64(item, 0)
	return place{h, byte(h%255) + 1}
}

// other returns the other place of an item, for all sub-filters. In the former layout it is a bucket of the same page.
func (f *Filter) other(p place) place {
	if !f.former {
		p.bucket ^= uint64(p.print) * 0x5bd1e995
		return p
	}
	p.bucket ^= (uint64(p.print)*0x9e3779b97f4a7c15>>20 | 1) & f.pageMask()
	return p
}

// bucket returns the bytes of a bucket for reading, nil if its page was never written.
func (f *Filter) bucket(link int, p place) []byte {
	page, i := f.at(link, p)
	b := f.Array(link).Page(page)
	if b == nil {
		return nil
	}
	return b[i : i+int(f.bucketSize)]
}

// at returns the page of a bucket and its offset there.
func (f *Filter) at(link int, p place) (page, i int) {
	bucket, inPage := p.bucket&(f.links[link]-1), f.bucketsInPage(f.links[link])
	return int(bucket / inPage), int(bucket%inPage) * int(f.bucketSize)
}

// set changes a byte of a bucket.
func (f *Filter) set(link int, p place, slot int, print byte) {
	page, i := f.at(link, p)
	f.Write(link, page)[i+slot] = print
}

// find returns the slot of a byte in a bucket, -1 if it is not there.
func (f *Filter) find(link int, p place, print byte) int {
	b := f.bucket(link, p)
	if b == nil && print == 0 {
		return 0
	}
	for slot, have := range b {
		if have == print {
			return slot
		}
	}
	return -1
}

// Count returns an upper bound of how often an item was added.
func (f *Filter) Count(item []byte) (n int) {
	p := f.placeOf(item)
	for link := range f.links {
		for _, p := range [...]place{p, f.other(p)} {
			for _, print := range f.bucket(link, p) {
				if print == p.print {
					n++
				}
			}
		}
	}
	return n
}

// Has reports whether the filter has an item. It can be wrong about an absent one.
func (f *Filter) Has(item []byte) bool {
	_, _, _, ok := f.locate(f.placeOf(item))
	return ok
}

// locate returns where an item is.
func (f *Filter) locate(p place) (link int, at place, slot int, ok bool) {
	for link = len(f.links) - 1; link >= 0; link-- {
		for _, at := range [...]place{p, f.other(p)} {
			if slot := f.find(link, at, p.print); slot >= 0 {
				return link, at, slot, true
			}
		}
	}
	return 0, at, 0, false
}

// Delete removes an item once. It returns false if the item is missing. Deleting an item that was never added may
// remove another item. Many deletions compact the filter.
func (f *Filter) Delete(item []byte) bool {
	link, at, slot, ok := f.locate(f.placeOf(item))
	if !ok {
		return false
	}
	f.NoteHead()
	f.set(link, at, slot, 0)
	f.items -= min(f.items, 1) // a filter that was loaded in pieces may have a wrong number
	f.deleted++
	if len(f.links) > 1 && float64(f.deleted) > float64(f.items)*manyDeleted {
		f.compact(false)
	}
	return true
}

// manyDeleted is the fraction of deleted items from which a filter is compacted.
const manyDeleted = 0.1

// Add adds an item, even if the filter has it already. links is the maximum number of sub-filters.
func (f *Filter) Add(item []byte, links int) error {
	p := f.placeOf(item)
	f.NoteHead()
	if f.put(p) || f.move(p) {
		f.items++
		return nil
	}
	last := f.links[len(f.links)-1]
	switch {
	case f.expansion == 0:
		return ErrFull
	case len(f.links) >= min(links, maxLinks) || !f.fits(last*min(uint64(f.expansion), maxBuckets/last+1)):
		return ErrLimit
	}
	f.push(last * uint64(f.expansion))
	f.put(p)
	f.items++
	return nil
}

// put puts an item into the newest sub-filter with room for it.
func (f *Filter) put(p place) bool {
	for link := len(f.links) - 1; link >= 0; link-- {
		if f.putInto(link, p) {
			return true
		}
	}
	return false
}

// putOldest puts an item into the oldest of the first links sub-filters with room for it.
func (f *Filter) putOldest(p place, links int) bool {
	for link := range links {
		if f.putInto(link, p) {
			return true
		}
	}
	return false
}

// putInto puts an item into a sub-filter if there is room.
func (f *Filter) putInto(link int, p place) bool {
	for _, at := range [...]place{p, f.other(p)} {
		if slot := f.find(link, at, 0); slot >= 0 {
			f.set(link, at, slot, p.print)
			return true
		}
	}
	return false
}

// move makes room for an item in the last sub-filter. If that fails, everything stays as it was.
func (f *Filter) move(p place) bool {
	link, slot, size := len(f.links)-1, 0, int(f.bucketSize)
	for range f.iterations {
		p = f.other(f.swap(link, p, slot))
		if free := f.find(link, p, 0); free >= 0 {
			f.set(link, p, free, p.print)
			return true
		}
		slot = (slot + 1) % size
	}
	for range f.iterations {
		slot = (slot + size - 1) % size
		p = f.swap(link, f.other(p), slot)
	}
	return false
}

// swap puts an item into a slot, and returns the previous item of the slot.
func (f *Filter) swap(link int, p place, slot int) place {
	print := f.bucket(link, p)[slot]
	f.set(link, p, slot, p.print)
	return place{p.bucket, print}
}

// Compact moves items to older sub-filters that have room, and removes sub-filters that become empty. It reports
// whether anything has changed.
func (f *Filter) Compact() (changed bool) {
	changed = f.deleted > 0
	f.NoteHead()
	return f.compact(true) || changed
}

// compact is Compact. Without all it stops at the first sub-filter that it cannot empty.
func (f *Filter) compact(all bool) (changed bool) {
	for last := len(f.links) - 1; last > 0; last-- {
		left := false
		inPage := f.bucketsInPage(f.links[last])
		for page, b := range f.Array(last).All() {
			for i, print := range b {
				if print == 0 {
					continue
				}
				p := place{uint64(page)*inPage + uint64(i/int(f.bucketSize)), print}
				if f.putOldest(p, last) {
					f.set(last, p, i%int(f.bucketSize), 0)
					changed = true
				} else {
					left = true
				}
			}
		}
		if left && !all {
			break
		}
		if !left && last == len(f.links)-1 {
			f.links = f.links[:last]
			f.DropArray()
			changed = true
		}
	}
	f.deleted = 0
	return changed
}

// Items returns the number of items, counting repetitions.
func (f *Filter) Items() uint64 { return f.items }

// Deleted returns how many items were deleted.
func (f *Filter) Deleted() uint64 { return f.deleted }

// BucketSize returns how many items a bucket has.
func (f *Filter) BucketSize() int { return int(f.bucketSize) }

// Iterations returns the number of moves after which the filter counts as full.
func (f *Filter) Iterations() int { return int(f.iterations) }

// Expansion returns the growth factor of each further sub-filter.
func (f *Filter) Expansion() int { return int(f.expansion) }

// Links returns how many buckets the sub-filters have. They must not be changed.
func (f *Filter) Links() []uint64 { return f.links }

// Former reports whether the filter has the layout of older versions, which the module does not know.
func (f *Filter) Former() bool { return f.former }

// The sizes that the module counts for a filter, and for each sub-filter in addition to its items.
const (
	moduleFilter = 40
	moduleLink   = 16
)

// Size returns the size of the filter as the module counts it, in bytes.
func (f *Filter) Size() uint64 { return moduleFilter + moduleLink*uint64(len(f.links)) + f.Bytes() }

// Clone returns a copy.
func (f *Filter) Clone() *Filter {
	c := &Filter{bucketSize: f.bucketSize, iterations: f.iterations, expansion: f.expansion,
		links: append([]uint64(nil), f.links...), items: f.items, deleted: f.deleted, former: f.former}
	c.Init(c)
	f.CopyTo(&c.Value)
	return c
}

// MemoryUsage returns how many bytes of memory the filter takes.
func (f *Filter) MemoryUsage() int {
	return int(unsafe.Sizeof(*f)) + 8*cap(f.links) + f.Value.MemoryUsage()
}
