package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/atomredis/atomredis/engine/paged"
)

// format is the first byte of a head. It also identifies the hash function and the placement of bits.
const format = 1

var errHead = errors.New("bloom: the stored head is malformed")

// AppendHead appends the stored form of everything but the pages: the format, the rate and, as unsigned varints, the
// capacity, the expansion and the number of sub-filters; then for each its rate, capacity, items, hashes, pages and
// bytes per page.
func (f *Filter) AppendHead(dst []byte) []byte {
	dst = append(dst, format)
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f.options.Rate))
	dst = appendUints(dst, f.options.Capacity, uint64(f.options.Expansion), uint64(len(f.links)))
	for i := range f.links {
		l := &f.links[i]
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(l.Rate))
		dst = appendUints(dst, l.Capacity, l.Items, uint64(l.Hashes), l.pages, uint64(l.pageBits/8))
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
	if len(head) == 0 || head[0] != format {
		return nil, errHead
	}
	r := paged.NewReader(head[1:])
	f := new(Filter)
	f.Init(f)
	f.options.Rate = math.Float64frombits(r.Fixed())
	f.options.Capacity = r.Uint(1, maxCapacity)
	f.options.Expansion = uint32(r.Uint(0, math.MaxUint32))
	n := r.Uint(1, MaxLinks)
	for i := uint64(0); i < n && r.OK(); i++ {
		l := Link{Rate: math.Float64frombits(r.Fixed()), Capacity: r.Uint(1, maxCapacity)}
		l.Items = r.Uint(0, l.Capacity)
		l.Hashes = int(r.Uint(1, maxHashes))
		pages := r.Uint(1, 2*paged.MaxBytes/paged.PageSize)
		l.setPages(pages, uint32(8*r.Uint(1, paged.PageSize)))
		// Many small pages would need memory for their lists before they have any content.
		small := pages > 1 && l.pageBits < pageBits/2
		if !r.OK() || !isRate(l.Rate) || small || f.bytes+l.Bytes > paged.MaxBytes {
			return nil, errHead
		}
		f.push(l)
	}
	if err := r.Err("bloom"); err != nil {
		return nil, err
	}
	if !isRate(f.options.Rate) || len(f.links) > 1 && f.options.Expansion == 0 {
		return nil, errHead
	}
	return f, nil
}

func isRate(r float64) bool { return r > 0 && r < 1 }

// NewLoader returns a loader that builds a filter from its parts.
func NewLoader() *paged.Loader[*Filter] { return &paged.Loader[*Filter]{Head: decodeHead} }

// DecodeBlob returns the filter that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Filter, error) { return NewLoader().Decode(b) }

// Header returns the input of LoadHeader: the filter without its bits. LoadChunk then adds the output of Chunk.
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
const headerMark = "bloom"
