package roaring

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/atomredis/atomredis/engine/bitmap"
)

// Source is an operand of Combine: a bitmap, or if that is nil a string.
type Source struct {
	Bitmap *Bitmap
	Bytes  []byte
}

// Len returns the length in bytes.
func (s Source) Len() uint64 {
	if s.Bitmap != nil {
		return s.Bitmap.length
	}
	return uint64(len(s.Bytes))
}

// page returns the bits of a page, nil if none is set. They must not be changed.
func (s Source) page(number uint64) *roaring.Bitmap {
	if s.Bitmap != nil {
		if p, _ := s.Bitmap.page(number); p != nil {
			return p.bits
		}
		return nil
	}
	if at := number * pageBytes; at < uint64(len(s.Bytes)) {
		return pageOf(s.Bytes[at:min(at+pageBytes, uint64(len(s.Bytes)))])
	}
	return nil
}

// Combine returns the combination of bitmaps and strings, at least one, bit by bit. It is as long as the longest of
// them; zeros follow the others.
func Combine(op bitmap.Op, of []Source) *Bitmap {
	r := New()
	for _, s := range of {
		r.length = max(r.length, s.Len())
	}
	operands := make([]*roaring.Bitmap, len(of))
	for number := range pagesOf(op, of, r.length) {
		for i, s := range of {
			operands[i] = s.page(number)
		}
		p := combinePage(op, operands, min(r.length-number*pageBytes, pageBytes)*8)
		if p != nil && !p.IsEmpty() {
			p.RunOptimize()
			r.append(number, p)
		}
	}
	return r
}

// pagesOf iterates over the numbers of the pages that can have set bits, in order.
func pagesOf(op bitmap.Op, of []Source, length uint64) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if op == bitmap.Not {
			for number := uint64(0); number*pageBytes < length && yield(number); number++ {
			}
			return
		}
		var numbers []uint64
		for _, s := range of {
			if s.Bitmap == nil {
				for number := uint64(0); number*pageBytes < uint64(len(s.Bytes)); number++ {
					numbers = append(numbers, number)
				}
				continue
			}
			for _, p := range s.Bitmap.pages {
				numbers = append(numbers, p.number)
			}
		}
		slices.Sort(numbers)
		for _, number := range slices.Compact(numbers) {
			if !yield(number) {
				return
			}
		}
	}
}

// combinePage combines pages, of which those without set bits are nil. The result may be nil if it has none.
func combinePage(op bitmap.Op, of []*roaring.Bitmap, size uint64) *roaring.Bitmap {
	switch first, others := of[0], of[1:]; op {
	case bitmap.Not:
		r := roaring.New()
		r.AddRange(0, size)
		if first != nil {
			r.AndNot(first)
		}
		return r
	case bitmap.And:
		if slices.Contains(of, nil) {
			return nil
		}
		r := first.Clone()
		for _, b := range others {
			r.And(b)
		}
		return r
	case bitmap.Or:
		return union(of)
	case bitmap.Xor:
		r := roaring.New()
		for _, b := range of {
			if b != nil {
				r = roaring.Xor(r, b) // the method Xor changes b where it has a dense container and r one of runs
			}
		}
		return r
	case bitmap.One:
		once, again := roaring.New(), roaring.New()
		for _, b := range of {
			if b != nil {
				again.Or(roaring.And(once, b))
				once.Or(b)
			}
		}
		once.AndNot(again)
		return once
	case bitmap.Diff:
		if first == nil {
			return nil
		}
		return roaring.AndNot(first, union(others))
	case bitmap.Diff1:
		r := union(others)
		if first != nil {
			r.AndNot(first)
		}
		return r
	default: // AndOr
		if first == nil {
			return nil
		}
		return roaring.And(first, union(others))
	}
}

// union returns a new page with the bits of all.
func union(of []*roaring.Bitmap) *roaring.Bitmap {
	r := roaring.New()
	for _, b := range of {
		if b != nil {
			r.Or(b)
		}
	}
	return r
}
