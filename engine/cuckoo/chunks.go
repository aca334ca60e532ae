package cuckoo

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// What CF.SCANDUMP gives and CF.LOADCHUNK takes, byte by byte as in the module: a header, and chunks of the buckets. The place of a
// chunk is that of its end among the bytes of all sub-filters, counted from 1.

const (
	chunkSize = 16 << 20
	// The header has items, buckets of the first sub-filter, deleted items and sub-filters in eight bytes each, and size of a
	// bucket, iterations and expansion in two.
	headerSize = 4*8 + 3*2
)

// Errors of LoadChunk and LoadHeader.
var (
	ErrHeader = errors.New("the header is malformed")
	ErrFilter = errors.New("there can be no such filter")
	ErrChunk  = errors.New("the chunk has no place in the filter")
)

// Header returns what LoadHeader makes a filter without any items of, to which LoadChunk then adds what Chunk returns.
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

// LoadHeader returns the filter of a header; ErrHeader or ErrFilter if it is none.
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

// link returns the sub-filter where a byte is among those of all, its number there, and how many bytes the sub-filter has.
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

// Chunk returns the bytes from a place on. next is the place of what follows, 0 if there are none. Places begin with 1.
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

// LoadChunk writes the bytes of a chunk, which end before a place.
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
