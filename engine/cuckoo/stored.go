package cuckoo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/atomredis/atomredis/engine/paged"
)

// format is the first byte of a head. It also identifies the hash function and the placement of items.
const format = 1

// maxCount is the limit of items in a head: later additions cannot overflow what can be stored.
const maxCount = 1 << 62

var errHead = errors.New("cuckoo: the stored head is malformed")

// AppendHead appends the stored form of everything but the pages: the format and, as unsigned varints, the size of
// buckets, iterations, expansion, items, deleted items, the number of sub-filters, and the number of buckets of each.
func (f *Filter) AppendHead(dst []byte) []byte {
	dst = append(dst, format)
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
	if len(head) == 0 || head[0] != format {
		return nil, errHead
	}
	r := paged.NewReader(head[1:])
	f := &Filter{bucketSize: uint32(r.Uint(1, MaxBucketSize)), iterations: uint32(r.Uint(1, MaxIterations)),
		expansion: uint32(r.Uint(0, 1<<31)), items: r.Uint(0, maxCount), deleted: r.Uint(0, maxCount)}
	f.Init(f)
	if f.expansion != 0 && bits.OnesCount32(f.expansion) != 1 { // push relies on it
		return nil, errHead
	}
	n, last := r.Uint(1, maxLinks), uint64(2)
	for i := uint64(0); i < n && r.OK(); i++ {
		buckets := r.Uint(last, maxBuckets)
		if !r.OK() || bits.OnesCount64(buckets) != 1 || f.Bytes()+buckets*uint64(f.bucketSize) > paged.MaxBytes {
			return nil, errHead
		}
		f.push(buckets)
		last = buckets // Compact relies on it
	}
	return f, r.Err("cuckoo")
}

// NewLoader returns a loader that builds a filter from its parts.
func NewLoader() *paged.Loader[*Filter] { return &paged.Loader[*Filter]{Head: decodeHead} }

// DecodeBlob returns the filter that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Filter, error) { return NewLoader().Decode(b) }

// Header returns the input of LoadHeader: the filter without its items. LoadChunk then adds the output of Chunk.
func (f *Filter) Header() []byte { return append([]byte(headerMark), f.AppendHead(nil)...) }

// LoadHeader returns the filter described by a header.
func LoadHeader(b []byte) (*Filter, error) {
	head, ok := bytes.CutPrefix(b, []byte(headerMark))
	if !ok {
		return nil, errHead
	}
	return decodeHead(head)
}

// headerMark is the start of a header.
const headerMark = "cuckoo"
