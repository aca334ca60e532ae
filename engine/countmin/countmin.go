// Package countmin has count-min sketches: rows of counters, of which an item has one in each row. The least of them is
// at least what was counted of the item.
//
// Places of counters and hash functions are those of the module of Redis, so that sketches move between both and answer
// alike. Sketches that older versions of this package have made keep their own places.
package countmin

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine/murmur"
	"github.com/atomredis/atomredis/engine/paged"
)

const (
	// MaxDepth is the largest number of rows.
	MaxDepth = 1 << 16
	// UsualCell is the default size of a counter in bytes.
	UsualCell = 4
)

// CellSize reports whether n bytes is a possible size of a counter.
func CellSize(n uint64) bool { return n == 1 || n == 2 || n == 4 || n == 8 }

// Errors.
var (
	// ErrSize says that two sketches have different widths or depths.
	ErrSize = errors.New("the sketches are of different sizes")
	// ErrCells says that the counters of two sketches are of different sizes.
	ErrCells = errors.New("the counters are of different sizes")
	// ErrLayout says that the counters of two sketches are in different places, as one of them is of an older version.
	ErrLayout = errors.New("one of the sketches has the layout of an older version")
	// ErrOverflow says that a sum is too high for a counter, or in SetSum too low.
	ErrOverflow = errors.New("a counter does not hold the sum")
	// ErrUnderflow says that a counter is lower than the number to be subtracted from it.
	ErrUnderflow = errors.New("a counter would be below 0")

	errHead = errors.New("count-min: the stored head is malformed")
)

// Sketch is a count-min sketch.
type Sketch struct {
	paged.Value
	width, depth uint64
	cell         uint64 // bytes of a counter
	count        uint64 // of all, up to MaxInt64
	inverse      uint64 // 2^64 divided by width, rounded up: see column
	former       bool   // the layout is that of older versions
}

// Bytes returns how many bytes a sketch takes once many items are counted; ok is false if no such sketch is possible.
func Bytes(width, depth, cell uint64) (n uint64, ok bool) {
	hi, n := bits.Mul64(width, depth)
	if !CellSize(cell) || hi > 0 || n == 0 || depth > MaxDepth || n > paged.MaxBytes/cell {
		return 0, false
	}
	return cell * n, true
}

// SizeFor returns the width and depth of a sketch whose estimates exceed the true count by more than the fraction
// overestimation of the total with the given probability. Both are above 0 and below 1. The result may be too large for
// a sketch.
func SizeFor(overestimation, probability float64) (width, depth uint64) {
	width = uint64(min(math.Ceil(2/overestimation), 1<<62))
	return width, uint64(math.Ceil(math.Log2(1 / probability)))
}

// New returns an empty sketch, nil if Bytes reports that none is possible.
func New(width, depth, cell uint64) *Sketch { return newSketch(width, depth, cell, false) }

func newSketch(width, depth, cell uint64, former bool) *Sketch {
	bytes, ok := Bytes(width, depth, cell)
	if !ok {
		return nil
	}
	s := &Sketch{width: width, depth: depth, cell: cell, inverse: math.MaxUint64/width + 1, former: former}
	s.Init(s)
	s.addArray(bytes)
	return s
}

// addArray adds the array of counters.
func (s *Sketch) addArray(bytes uint64) {
	if s.former { // all pages have the same size
		pages := (bytes + paged.PageSize - 1) / paged.PageSize
		s.AddArray(paged.NewBytes(int(min(bytes, paged.PageSize)), int(pages)))
		return
	}
	s.AddArray(paged.NewArray(bytes))
}

// max returns the highest value of a counter: replies have no numbers beyond int64.
func (s *Sketch) max() uint64 {
	if s.cell == 8 {
		return math.MaxInt64
	}
	return 1<<(8*s.cell) - 1
}

// get returns the counter at the start of b.
func (s *Sketch) get(b []byte) uint64 {
	switch s.cell {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return min(binary.LittleEndian.Uint64(b), math.MaxInt64) // only a file of another server has a higher one
}

// put stores a counter at the start of b.
func (s *Sketch) put(b []byte, n uint64) {
	switch s.cell {
	case 1:
		b[0] = byte(n)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(n))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(n))
	default:
		binary.LittleEndian.PutUint64(b, n)
	}
}

// usualDepth is the number of rows up to which looking up counters allocates nothing.
const usualDepth = 16

// places appends the offsets of an item's counters in the array, one in each row.
func (s *Sketch) places(dst []uint64, item []byte) []uint64 {
	if s.former {
		return s.formerPlaces(dst, item)
	}
	var sums [usualDepth]uint32
	for row := uint64(0); row < s.depth; row += usualDepth {
		n := min(usualDepth, s.depth-row)
		murmur.Sums32(sums[:n], item, uint32(row))
		for i, sum := range sums[:n] {
			dst = append(dst, ((row+uint64(i))*s.width+s.column(sum))*s.cell)
		}
	}
	return dst
}

// column returns a hash modulo the width.
func (s *Sketch) column(sum uint32) uint64 {
	if s.width > math.MaxUint32 {
		return uint64(sum)
	}
	column, _ := bits.Mul64(s.inverse*uint64(sum), s.width)
	return column
}

// formerPlaces is places for the layout of older versions.
func (s *Sketch) formerPlaces(dst []uint64, item []byte) []uint64 {
	h := xxh3.Hash128(item)
	state := h.Lo
	for row := range s.depth {
		column, _ := bits.Mul64(state, s.width)
		dst = append(dst, (row*s.width+column)*s.cell)
		state = state*0xd1342543de82ef95 + (h.Hi | 1)
	}
	return dst
}

// Add counts an item n times, or subtracts if n is negative, and returns the estimate. If a counter would leave its
// range, Add returns an error and the sketch stays as it was.
func (s *Sketch) Add(item []byte, n int64) (estimate uint64, err error) {
	var room [usualDepth]uint64
	places := s.places(room[:0], item)
	least, most := s.bounds(places)
	by := uint64(max(n, -n)) // as an unsigned number the lowest int64 is right too
	switch {
	case n == 0:
		return least, nil
	case n > 0 && (by > s.max()-most || by > math.MaxInt64-s.count):
		return 0, ErrOverflow
	case n < 0 && (by > least || by > s.count):
		return 0, ErrUnderflow
	}
	s.NoteHead()
	s.count += uint64(n)
	for _, at := range places {
		counter := s.Write(0, int(at/paged.PageSize))[at%paged.PageSize:]
		s.put(counter, s.get(counter)+uint64(n))
	}
	return least + uint64(n), nil
}

// Count returns the estimate of how often an item was counted.
func (s *Sketch) Count(item []byte) (estimate uint64) {
	var room [usualDepth]uint64
	estimate, _ = s.bounds(s.places(room[:0], item))
	return estimate
}

// bounds returns the least and the highest of the counters at some places.
func (s *Sketch) bounds(places []uint64) (least, most uint64) {
	least = math.MaxUint64
	for _, at := range places {
		counter := uint64(0)
		if b := s.Array(0).Page(int(at / paged.PageSize)); b != nil {
			counter = s.get(b[at%paged.PageSize:])
		}
		least, most = min(least, counter), max(most, counter)
	}
	return least, most
}

// Weighted is a sketch and the factor by which its counts are multiplied.
type Weighted struct {
	Sketch *Sketch
	Weight int64
}

// SetSum makes the sketch the weighted sum of others, which may include itself. After an error it stays as it was.
func (s *Sketch) SetSum(of []Weighted) error {
	count, ok := int64(0), true
	for _, w := range of {
		if w.Sketch.width != s.width || w.Sketch.depth != s.depth {
			return ErrSize
		}
		if w.Sketch.cell != s.cell {
			return ErrCells
		}
		if w.Sketch.former != of[0].Sketch.former {
			return ErrLayout
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
		if _, err := s.sumPage(sum, of, page); err != nil {
			return err
		}
	}
	s.NoteHead()
	s.count = uint64(count)
	if len(of) > 0 && s.former != of[0].Sketch.former { // the counters are new ones
		s.DropArray()
		s.former = !s.former
		s.addArray(s.width * s.depth * s.cell)
	}
	for page := range s.Array(0).Pages() {
		if any, _ := s.sumPage(sum, of, page); any || s.Array(0).Page(page) != nil {
			copy(s.Write(0, page), sum)
		}
	}
	return nil
}

// sumPage writes the sum of a page to to, and reports whether it has other numbers than zeros.
func (s *Sketch) sumPage(to []byte, of []Weighted, page int) (any bool, err error) {
	for i := range of {
		any = any || of[i].Sketch.Array(0).Page(page) != nil
	}
	if !any {
		clear(to)
		return false, nil
	}
	for i := 0; i < len(to); i += int(s.cell) {
		sum, ok := int64(0), true
		for _, w := range of {
			if b := w.Sketch.Array(0).Page(page); i < len(b) {
				if sum, ok = addProduct(sum, int64(s.get(b[i:])), w.Weight); !ok {
					return true, ErrOverflow
				}
			}
		}
		if sum < 0 || uint64(sum) > s.max() {
			return true, ErrOverflow
		}
		s.put(to[i:], uint64(sum))
	}
	return true, nil
}

// addProduct returns sum+a*b, where a is not negative; ok is false on overflow.
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

// Cell returns how many bytes a counter has.
func (s *Sketch) Cell() uint64 { return s.cell }

// Total returns the sum of the counts of all items.
func (s *Sketch) Total() uint64 { return s.count }

// Former reports whether the sketch has the layout of older versions, which the module does not know.
func (s *Sketch) Former() bool { return s.former }

// SetTotal sets the sum of all counts, for a sketch stored elsewhere.
func (s *Sketch) SetTotal(n uint64) { s.count = min(n, math.MaxInt64) }

// Clone returns a copy.
func (s *Sketch) Clone() *Sketch {
	c := &Sketch{width: s.width, depth: s.depth, cell: s.cell, count: s.count, inverse: s.inverse, former: s.former}
	c.Init(c)
	s.CopyTo(&c.Value)
	return c
}

// MemoryUsage returns how many bytes of memory the sketch takes.
func (s *Sketch) MemoryUsage() int { return int(unsafe.Sizeof(*s)) + s.Value.MemoryUsage() }

// The first byte of a head also identifies the hash function and the placement of counters.
const (
	formerUsual = 1 // counters have UsualCell bytes
	formerCells = 2 // how many they have follows
	usualFormat = 3
	cellsFormat = 4
)

// AppendHead appends the stored form of everything but the pages: the format and, as unsigned varints, the size of a
// counter if it is not UsualCell, the width, the depth and the count.
func (s *Sketch) AppendHead(dst []byte) []byte {
	usual, cells := byte(usualFormat), byte(cellsFormat)
	if s.former {
		usual, cells = formerUsual, formerCells
	}
	if s.cell == UsualCell {
		dst = append(dst, usual)
	} else {
		dst = binary.AppendUvarint(append(dst, cells), s.cell)
	}
	dst = binary.AppendUvarint(dst, s.width)
	return binary.AppendUvarint(binary.AppendUvarint(dst, s.depth), s.count)
}

// decodeHead returns the sketch described by a head, without any counts.
func decodeHead(head []byte) (*Sketch, error) {
	if len(head) == 0 || head[0] < formerUsual || head[0] > cellsFormat {
		return nil, errHead
	}
	r, cell := paged.NewReader(head[1:]), uint64(UsualCell)
	if head[0] == formerCells || head[0] == cellsFormat {
		cell = r.Uint(1, 8)
	}
	s := newSketch(r.Uint(1, math.MaxUint64), r.Uint(1, MaxDepth), cell, head[0] <= formerCells)
	count := r.Uint(0, math.MaxInt64)
	if err := r.Err("count-min"); err != nil || s == nil {
		return nil, errHead
	}
	s.count = count
	return s, nil
}

// NewLoader returns a loader that builds a sketch from its parts.
func NewLoader() *paged.Loader[*Sketch] { return &paged.Loader[*Sketch]{Head: decodeHead} }

// DecodeBlob returns the sketch that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Sketch, error) { return NewLoader().Decode(b) }
