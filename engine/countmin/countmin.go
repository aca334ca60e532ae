// Package countmin has count-min sketches: rows of counters, of which an item has one in each row. The least of them is
// at least what was counted of the item.
package countmin

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine/paged"
)

const (
	// MaxDepth is the largest number of rows.
	MaxDepth = 1 << 16
	// MaxCount is where a counter stops.
	MaxCount = math.MaxUint32

	counterSize = 4
	inPage      = paged.PageSize / counterSize
)

// Errors.
var (
	// ErrSize says that two sketches have different widths or depths.
	ErrSize = errors.New("the sketches are of different sizes")
	// ErrOverflow says that a counter of a sum would be below 0 or above MaxCount.
	ErrOverflow = errors.New("a counter does not hold the sum")

	errHead = errors.New("count-min: the stored head is malformed")
)

// Sketch is a count-min sketch.
type Sketch struct {
	paged.Value
	width, depth uint64
	count        uint64 // of all, up to MaxInt64
}

// Bytes returns how many bytes a sketch takes once many items are counted; ok is false if there can be no such sketch.
func Bytes(width, depth uint64) (n uint64, ok bool) {
	hi, n := bits.Mul64(width, depth)
	if hi > 0 || n == 0 || depth > MaxDepth || n > paged.MaxBytes/counterSize {
		return 0, false
	}
	return counterSize * n, true
}

// SizeFor returns the width and the depth with which an estimate is too high by more than a part of all that was
// counted, overestimation, with a probability. Both are above 0 and below 1. They may be too large for a sketch.
func SizeFor(overestimation, probability float64) (width, depth uint64) {
	width = uint64(min(math.Ceil(2/overestimation), 1<<62))
	return width, uint64(math.Ceil(math.Log2(1 / probability)))
}

// New returns a sketch that has counted nothing; nil if Bytes says that there can be none.
func New(width, depth uint64) *Sketch {
	bytes, ok := Bytes(width, depth)
	if !ok {
		return nil
	}
	s := &Sketch{width: width, depth: depth}
	s.Init(s)
	pages := (bytes + paged.PageSize - 1) / paged.PageSize
	s.AddArray(paged.NewBytes(int(min(bytes, paged.PageSize)), int(pages)))
	return s
}

// cells goes through the counters of an item, one in each row.
type cells struct {
	state, step uint64
	row         uint64 // number of the first counter of the next row
	width       uint64
}

func (s *Sketch) cells(item []byte) cells {
	h := xxh3.Hash128(item)
	return cells{h.Lo, h.Hi | 1, 0, s.width}
}

// next returns the number of the counter in the next row.
func (c *cells) next() (page, i int) {
	column, _ := bits.Mul64(c.state, c.width)
	n := c.row + column
	c.state = c.state*0xd1342543de82ef95 + c.step
	c.row += c.width
	return int(n / inPage), int(n%inPage) * counterSize
}

// Add counts an item n times more, and returns the estimate; MaxCount says that it may be too low.
func (s *Sketch) Add(item []byte, n uint64) (estimate uint64) {
	if n == 0 {
		return s.Count(item)
	}
	s.NoteHead()
	s.count = min(s.count+min(n, math.MaxInt64), math.MaxInt64)
	estimate = MaxCount
	c := s.cells(item)
	for range s.depth {
		page, i := c.next()
		counter := s.Write(0, page)[i:]
		sum := min(uint64(binary.LittleEndian.Uint32(counter))+min(n, MaxCount), MaxCount)
		binary.LittleEndian.PutUint32(counter, uint32(sum))
		estimate = min(estimate, sum)
	}
	return estimate
}

// Count returns the estimate of how often an item was counted.
func (s *Sketch) Count(item []byte) (estimate uint64) {
	estimate = MaxCount
	c := s.cells(item)
	for range s.depth {
		page, i := c.next()
		b := s.Array(0).Page(page)
		if b == nil {
			return 0
		}
		estimate = min(estimate, uint64(binary.LittleEndian.Uint32(b[i:])))
	}
	return estimate
}

// Weighted is a sketch, and how many times it counts.
type Weighted struct {
	Sketch *Sketch
	Weight int64
}

// SetSum makes the sketch the sum of others, of which it may be one. After an error it is as before.
func (s *Sketch) SetSum(of []Weighted) error {
	count, ok := int64(0), true
	for _, w := range of {
		if w.Sketch.width != s.width || w.Sketch.depth != s.depth {
			return ErrSize
		}
		if count, ok = addProduct(count, int64(w.Sketch.count), w.Weight); !ok {
			return ErrOverflow
		}
	}
	if count < 0 {
		return ErrOverflow
	}
	sum := make([]byte, s.Array(0).PageSize())
	for page := range s.Array(0).Pages() {
		if _, err := sumPage(sum, of, page); err != nil {
			return err
		}
	}
	s.NoteHead()
	s.count = uint64(count)
	for page := range s.Array(0).Pages() {
		if any, _ := sumPage(sum, of, page); any || s.Array(0).Page(page) != nil {
			copy(s.Write(0, page), sum)
		}
	}
	return nil
}

// sumPage sets to to the sum of a page, and reports whether there is anything in it.
func sumPage(to []byte, of []Weighted, page int) (any bool, err error) {
	for i := range of {
		any = any || of[i].Sketch.Array(0).Page(page) != nil
	}
	if !any {
		clear(to)
		return false, nil
	}
	for i := 0; i < len(to); i += counterSize {
		sum, ok := int64(0), true
		for _, w := range of {
			if b := w.Sketch.Array(0).Page(page); b != nil {
				if sum, ok = addProduct(sum, int64(binary.LittleEndian.Uint32(b[i:])), w.Weight); !ok {
					return true, ErrOverflow
				}
			}
		}
		if sum < 0 || sum > MaxCount {
			return true, ErrOverflow
		}
		binary.LittleEndian.PutUint32(to[i:], uint32(sum))
	}
	return true, nil
}

// addProduct returns sum+a*b, where a is not negative; ok is false if that is no int64.
func addProduct(sum, a, b int64) (_ int64, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(max(b, -b)))
	if hi > 0 || lo > math.MaxInt64 {
		return 0, false
	}
	product := int64(lo)
	if b < 0 {
		product = -product
	}
	total := sum + product
	return total, (total > sum) == (product > 0)
}

// Width returns the number of counters in a row.
func (s *Sketch) Width() uint64 { return s.width }

// Depth returns the number of rows.
func (s *Sketch) Depth() uint64 { return s.depth }

// Total returns how much was counted of all items.
func (s *Sketch) Total() uint64 { return s.count }

// Clone returns a copy.
func (s *Sketch) Clone() *Sketch {
	c := &Sketch{width: s.width, depth: s.depth, count: s.count}
	c.Init(c)
	s.CopyTo(&c.Value)
	return c
}

// MemoryUsage returns how many bytes of memory the sketch takes.
func (s *Sketch) MemoryUsage() int { return int(unsafe.Sizeof(*s)) + s.Value.MemoryUsage() }

// format is the first byte of a head. It stands for the hash function and the places of counters too.
const format = 1

// AppendHead appends the stored form of all but the pages: the format and, as unsigned varints, width, depth and count.
func (s *Sketch) AppendHead(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, format), s.width)
	return binary.AppendUvarint(binary.AppendUvarint(dst, s.depth), s.count)
}

// decodeHead returns the sketch of a head, without any counts.
func decodeHead(head []byte) (*Sketch, error) {
	if len(head) == 0 || head[0] != format {
		return nil, errHead
	}
	r := paged.NewReader(head[1:])
	s := New(r.Uint(1, math.MaxUint64), r.Uint(1, MaxDepth))
	count := r.Uint(0, math.MaxInt64)
	if err := r.Err("count-min"); err != nil || s == nil {
		return nil, errHead
	}
	s.count = count
	return s, nil
}

// NewLoader returns what builds a sketch from its parts.
func NewLoader() *paged.Loader[*Sketch] { return &paged.Loader[*Sketch]{Head: decodeHead} }

// DecodeBlob returns the sketch that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Sketch, error) { return NewLoader().Decode(b) }
