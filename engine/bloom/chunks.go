package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// The data of BF.SCANDUMP and BF.LOADCHUNK, with the same bytes as in the module: a header, and chunks of the bits. The
// position of a chunk is that of its end in the bytes of all sub-filters, counted from 1.

const (
	chunkSize = 16 << 20
	// The header begins with the numbers of items and sub-filters, the flags and the growth. Each sub-filter follows:
	// bytes, bits, items, rate, bits per item, hash functions, capacity, power of two.
	headerSize = 8 + 4 + 4 + 4
	linkSize   = 8 + 8 + 8 + 8 + 8 + 4 + 8 + 1
)

// Errors of LoadChunk and LoadHeader.
var (
	ErrData  = errors.New("received bad data")
	ErrPlace = errors.New("invalid offset - no link found")
	ErrLarge = errors.New("invalid chunk - Too big for current filter")
)

// Header returns the header. LoadHeader makes a filter without bits from it, and LoadChunk adds the results of Chunk.
func (f *Filter) Header() []byte {
	if f.Former() {
		return f.appendFormerHead([]byte(formerMark))
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, headerSize+linkSize*len(f.links)), f.items)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.links)))
	b = binary.LittleEndian.AppendUint32(b, f.flags)
	b = binary.LittleEndian.AppendUint32(b, f.growth)
	for i := range f.links {
		l := &f.links[i]
		for _, n := range [...]uint64{l.Bytes, 8 * l.Bytes, l.Items, math.Float64bits(l.Rate), math.Float64bits(l.BitsPerItem)} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		b = binary.LittleEndian.AppendUint32(b, l.Hashes)
		b = append(binary.LittleEndian.AppendUint64(b, l.Capacity), l.Power)
	}
	return b
}

// formerMark begins a header of the former layout.
const formerMark = "bloom"

// LoadHeader returns the filter that a header describes, without bits, or ErrData.
func LoadHeader(b []byte) (*Filter, error) {
	if head, ok := bytes.CutPrefix(b, []byte(formerMark)); ok && len(head) > 0 && head[0] == formerFormat {
		return decodeFormerHead(head)
	}
	if len(b) < headerSize || (len(b)-headerSize)%linkSize != 0 || len(b) == headerSize {
		return nil, ErrData
	}
	links := int(binary.LittleEndian.Uint32(b[8:]))
	f, err := Restore(binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint64(b))
	if err != nil || links != (len(b)-headerSize)/linkSize {
		return nil, ErrData
	}
	items := uint64(0)
	for b = b[headerSize:]; len(b) > 0; b = b[linkSize:] {
		number := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
		l := Link{Bytes: number(0), Items: number(16), Rate: math.Float64frombits(number(24)),
			BitsPerItem: math.Float64frombits(number(32)), Hashes: binary.LittleEndian.Uint32(b[40:]), Capacity: number(44), Power: b[52]}
		if items += l.Items; items < l.Items || number(8) != 8*l.Bytes || f.AddLink(l) != nil {
			return nil, ErrData
		}
	}
	if items != f.items {
		return nil, ErrData
	}
	return f, nil
}

// link converts an offset in the bytes of all sub-filters to a sub-filter and an offset there.
func (f *Filter) link(at uint64) (i int, rest uint64, ok bool) {
	for i := range f.links {
		if at < f.links[i].Bytes {
			return i, at, true
		}
		at -= f.links[i].Bytes
	}
	return 0, 0, false
}

// Chunk returns the bytes from a position on, which starts at 1. next is the position after them, 0 without further
// bytes.
func (f *Filter) Chunk(from uint64) (data []byte, next uint64) {
	if f.Former() {
		return f.Value.Chunk(from)
	}
	i, at, ok := f.link(from - 1)
	if !ok {
		return nil, 0
	}
	n := min(f.links[i].Bytes-at, chunkSize)
	return f.Array(i).Append(make([]byte, 0, n), at, at+n), from + n
}

// LoadChunk writes the bytes of a chunk. end is the position after them.
func (f *Filter) LoadChunk(end uint64, data []byte) error {
	switch {
	case f.Former() && f.Value.LoadChunk(data) == nil:
		return nil
	case f.Former() || end < uint64(len(data)):
		return ErrData
	case end == uint64(len(data)):
		return ErrPlace
	}
	i, at, ok := f.link(end - uint64(len(data)) - 1)
	switch {
	case !ok:
		return ErrPlace
	case uint64(len(data)) > f.links[i].Bytes-at:
		return ErrLarge
	}
	f.Fill(i, at, data)
	return nil
}
