package bloom

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/atomredis/atomredis/engine/paged"
)

// The first byte of a head also identifies the hash functions and the places of bits.
const (
	format       = 2
	formerFormat = 1
)

var errHead = errors.New("bloom: the stored head is malformed")

// AppendHead appends the stored form of all but the pages: the format and, as unsigned varints, flags, growth, items,
// and the number of sub-filters. For each sub-filter follow the rate and the bits per item in eight bytes each, and
// capacity, items, bytes and power of two.
func (f *Filter) AppendHead(dst []byte) []byte {
	if f.Former() {
		return f.appendFormerHead(dst)
	}
	dst = appendUints(append(dst, format), uint64(f.flags), uint64(f.growth), f.items, uint64(len(f.links)))
	for i := range f.links {
		l := &f.links[i]
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(l.Rate))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(l.BitsPerItem))
		dst = appendUints(dst, l.Capacity, l.Items, l.Bytes, uint64(l.Power))
	}
	return dst
}

func appendUints(dst []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// decodeHead returns the filter described by a head, without any bits.
func decodeHead(head []byte) (*Filter, error) {
	switch {
	case len(head) > 0 && head[0] == formerFormat:
		return decodeFormerHead(head)
	case len(head) == 0 || head[0] != format:
		return nil, errHead
	}
	r := paged.NewReader(head[1:])
	f, err := Restore(uint32(r.Uint(0, allFlags)), uint32(r.Uint(0, math.MaxUint32)), r.Uint(0, math.MaxUint64))
	n := r.Uint(1, MaxLinks)
	for ; n > 0 && r.OK() && err == nil; n-- {
		l := Link{Rate: math.Float64frombits(r.Fixed()), BitsPerItem: math.Float64frombits(r.Fixed()),
			Capacity: r.Uint(0, math.MaxUint64), Items: r.Uint(0, math.MaxUint64), Bytes: r.Uint(1, paged.MaxBytes),
			Power: uint8(r.Uint(0, 63))}
		l.Hashes = hashes(l.BitsPerItem)
		err = f.AddLink(l)
	}
	if err := r.Err("bloom"); err != nil {
		return nil, err
	}
	return f, err
}

// appendFormerHead appends the head of the former layout: the format, the rate and, as unsigned varints, capacity,
// expansion, and the number of sub-filters. For each sub-filter follow rate, capacity, items, hashes, pages and bytes
// of a page.
func (f *Filter) appendFormerHead(dst []byte) []byte {
	rate, expansion := f.links[0].Rate, uint64(0)
	if n, ok := f.Grows(); ok {
		rate, expansion = rate/tightening, uint64(n)
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, formerFormat), math.Float64bits(rate))
	dst = appendUints(dst, f.links[0].Capacity, expansion, uint64(len(f.links)))
	for i := range f.links {
		l, pages := &f.links[i], uint64(f.Array(i).Pages())
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(l.Rate))
		dst = appendUints(dst, l.Capacity, l.Items, uint64(l.Hashes), pages, l.Bytes/pages)
	}
	return dst
}

// decodeFormerHead is decodeHead for the former layout. Rate and capacity of the filter follow from its first sub-filter.
func decodeFormerHead(head []byte) (*Filter, error) {
	r := paged.NewReader(head[1:])
	r.Fixed()
	r.Uint(1, formerMaxCapacity)
	f := &Filter{flags: hash64 | formerLayout, growth: uint32(r.Uint(0, math.MaxUint32))}
	if f.growth == 0 {
		f.flags |= fixedSize
	}
	f.Init(f)
	n := r.Uint(1, MaxLinks)
	for i := uint64(0); i < n && r.OK(); i++ {
		l := Link{Rate: math.Float64frombits(r.Fixed()), Capacity: r.Uint(1, formerMaxCapacity)}
		l.Items = r.Uint(0, l.Capacity)
		l.Hashes = uint32(r.Uint(1, formerMaxHashes))
		pages := r.Uint(1, 2*paged.MaxBytes/paged.PageSize)
		pageBytes := r.Uint(1, paged.PageSize)
		l.Bytes = pages * pageBytes
		// Many small pages would need memory for their lists before they have any content.
		small := pages > 1 && pageBytes < paged.PageSize/2
		if !r.OK() || !isRate(l.Rate) || small || f.Bytes()+l.Bytes > paged.MaxBytes {
			return nil, errHead
		}
		f.pushFormer(l, pages)
		f.items += l.Items
	}
	if err := r.Err("bloom"); err != nil {
		return nil, err
	}
	if len(f.links) > 1 && f.growth == 0 {
		return nil, errHead
	}
	return f, nil
}

// NewLoader returns a loader that builds a filter from its parts.
func NewLoader() *paged.Loader[*Filter] { return &paged.Loader[*Filter]{Head: decodeHead} }

// DecodeBlob returns the filter that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Filter, error) { return NewLoader().Decode(b) }
