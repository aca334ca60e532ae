package cuckoo

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/atomredis/atomredis/engine/paged"
)

// The first byte of a head also identifies the hash function and the places of items.
const (
	formerFormat = 1
	format       = 2
)

// maxCount is the limit of items in a head: later additions cannot overflow what can be stored.
const maxCount = 1 << 62

var errHead = errors.New("cuckoo: the stored head is malformed")

// AppendHead appends the stored form of everything but the pages: the format and, as unsigned varints, the size of
// buckets, iterations, expansion, items, deleted items, the number of sub-filters, and the number of buckets of each.
func (f *Filter) AppendHead(dst []byte) []byte {
	first := byte(format)
	if f.former {
		first = formerFormat
	}
	dst = append(dst, first)
	for _, n := range [...]uint64{uint64(f.bucketSize), uint64(f.iterations), uint64(f.expansion), f.items, f.deleted,
		uint64(len(f.links))} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, buckets := range f.links {
		dst = binary.AppendUvarint(dst, buckets)
	}
	return dst
}

// decodeHead returns the filter described by a head, without any items.
func decodeHead(head []byte) (*Filter, error) {
	if len(head) == 0 || head[0] != format && head[0] != formerFormat {
		return nil, errHead
	}
	r := paged.NewReader(head[1:])
	f, err := restore(r.Uint(1, MaxBucketSize), r.Uint(1, MaxIterations), r.Uint(0, 1<<31), r.Uint(0, maxCount), r.Uint(0, maxCount))
	if err != nil {
		return nil, err
	}
	f.former = head[0] == formerFormat
	for n := r.Uint(1, maxLinks); n > 0 && r.OK(); n-- {
		if buckets := r.Uint(1, maxBuckets); !r.OK() || f.AddLink(buckets) != nil {
			return nil, errHead
		}
	}
	return f, r.Err("cuckoo")
}

// restore returns a filter without sub-filters.
func restore(bucketSize, iterations, expansion, items, deleted uint64) (*Filter, error) {
	if bucketSize < 1 || bucketSize > MaxBucketSize || iterations < 1 || iterations > MaxIterations ||
		expansion > 1<<31 || expansion&(expansion-1) != 0 || items > maxCount || deleted > maxCount {
		return nil, errHead
	}
	f := &Filter{bucketSize: uint32(bucketSize), iterations: uint32(iterations), expansion: uint32(expansion), items: items,
		deleted: deleted}
	f.Init(f)
	return f, nil
}

// Restore returns a filter without sub-filters, from the properties of a stored filter.
func Restore(o Options, items, deleted uint64) (*Filter, error) {
	return restore(uint64(o.BucketSize), uint64(o.Iterations), uint64(o.Expansion), items, deleted)
}

// AddLink adds a stored sub-filter, without its items.
func (f *Filter) AddLink(buckets uint64) error {
	// Compact relies on each sub-filter being at least as large as the previous one.
	if buckets == 0 || buckets > maxBuckets || bits.OnesCount64(buckets) != 1 || len(f.links) == maxLinks || !f.fits(buckets) ||
		len(f.links) > 0 && buckets < f.links[len(f.links)-1] {
		return errHead
	}
	f.push(buckets)
	return nil
}

// NewLoader returns a loader that builds a filter from its parts.
func NewLoader() *paged.Loader[*Filter] { return &paged.Loader[*Filter]{Head: decodeHead} }

// DecodeBlob returns the filter that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Filter, error) { return NewLoader().Decode(b) }
