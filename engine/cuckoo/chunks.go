package cuckoo

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// The data of CF.SCANDUMP and CF.LOADCHUNK, with the same bytes as in the module: a header, and chunks of the buckets.
// The position of a chunk is that of its end in the bytes of all sub-filters, counted from 1.

const (
	chunkSize = 16 << 20
	// The header has four numbers of eight bytes (items, buckets of the first sub-filter, deleted items, sub-filters)
	// and three of two (bucket size, iterations, expansion).
	headerSize = 4*8 + 3*2
)

// Errors of LoadChunk and LoadHeader.
var (
	ErrHeader = errors.New("the header is malformed")
	ErrFilter = errors.New("there can be no such filter")
	ErrChunk  = errors.New("the chunk has no place in the filter")
)

// Header returns the header. LoadHeader makes a filter without items from it, and LoadChunk adds the results of Chunk.
func (f *Filter) Header() []byte {
	if f.former {
		return f.AppendHead([]byte(formerMark))
	}
	b := make([]byte, 0, headerSize)
	for _, n := range [...]uint64{f.items, f.links[0], f.deleted, uint64(len(f.links))} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	for _, n := range [...]uint32{f.bucketSize, f.iterations, f.expansion} {
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
	}
	return b
}

// formerMark begins a header of the former layout.
const formerMark = "cuckoo"

// LoadHeader returns the filter that a header describes, without items, or ErrHeader or ErrFilter.
func LoadHeader(b []byte) (*Filter, error) {
	if head, ok := bytes.CutPrefix(b, []byte(formerMark)); ok && len(head) > 0 && head[0] == formerFormat {
		if f, err := decodeHead(head); err == nil {
			return f, nil
		}
		return nil, ErrHeader
	}
	if len(b) != headerSize {
		return nil, ErrHeader
	}
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	short := func(i int) uint64 { return uint64(binary.LittleEndian.Uint16(b[4*8+2*i:])) }
	buckets, links, expansion := number(1), number(3), short(2)
	f, err := restore(short(0), short(1), expansion, number(0), number(2))
	if err != nil || links < 1 || links > maxLinks || links > 1 && expansion == 0 {
		return nil, ErrFilter
	}
	for ; links > 0; links-- {
		if f.AddLink(buckets) != nil {
			return nil, ErrFilter
		}
		buckets *= expansion
	}
	return f, nil
}

// link converts an offset in the bytes of all sub-filters to a sub-filter, an offset there, and the sub-filter's size.
func (f *Filter) link(at uint64) (i int, rest, size uint64, ok bool) {
	for i, buckets := range f.links {
		size = buckets * uint64(f.bucketSize)
		if at < size {
			return i, at, size, true
		}
		at -= size
	}
	return 0, 0, 0, false
}

// Chunk returns the bytes from a position on, which starts at 1. next is the position after them, 0 without further
// bytes.
func (f *Filter) Chunk(from uint64) (data []byte, next uint64) {
	if f.former {
		return f.Value.Chunk(from)
	}
	i, at, size, ok := f.link(from - 1)
	if !ok {
		return nil, 0
	}
	n := min(size-at, chunkSize)
	return f.Array(i).Append(make([]byte, 0, n), at, at+n), from + n
}

// LoadChunk writes the bytes of a chunk. end is the position after them.
func (f *Filter) LoadChunk(end uint64, data []byte) error {
	if f.former {
		return f.Value.LoadChunk(data)
	}
	if len(data) == 0 || end <= uint64(len(data)) {
		return ErrChunk
	}
	i, at, size, ok := f.link(end - uint64(len(data)) - 1)
	if !ok || uint64(len(data)) > size-at {
		return ErrChunk
	}
	f.Fill(i, at, data)
	return nil
}
