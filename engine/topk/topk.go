// Package topk finds the most frequent items: a HeavyKeeper, which is a table of counters for which items compete, and
// a heap of the items with the highest counts.
//
// A competing item decrements a counter with a probability that falls with the count. The random generator is part of
// the value, so that repeating the same calls gives the same result.
//
// Places of counters, hash functions and the heap are those of the module of Redis, so that lists move between both and
// answer alike. Lists that older versions of this package have made keep their own places.
package topk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/engine/murmur"
	"github.com/atomredis/atomredis/engine/paged"
)

const (
	// MaxK is the maximum number of listed items.
	MaxK = 1 << 24
	// MaxDepth is the largest number of rows.
	MaxDepth = 255
	// MaxIncrement is the maximum increment of Add.
	MaxIncrement = 100_000

	cellSize = 8 // what an item is known by, and the count

	// printSeed is the seed of Print.
	printSeed = 1919
)

var (
	errHead = errors.New("top-k: the stored head is malformed")
	errItem = errors.New("top-k: a stored item is malformed")
)

// List is a list of the most frequent items.
type List struct {
	paged.Value
	k, width, depth uint64
	decay           float64
	random          uint64 // the generator's state

	nodes     []node // the items, in no order, where they are stored
	index     index  // of the nodes
	itemBytes int

	former   bool // the layout is that of older versions
	heapless bool // the list was stored without a heap, and has not changed since then

	powers []float64 // powers of decay, from the 0th on, as power returns them; nil until needed
}

// node is an item of the list.
type node struct {
	item  string
	count uint32
	at    int32 // place in the heap, see heap.go
}

// Bytes returns how many bytes the table takes once it has many items; ok is false if no such table is possible.
func Bytes(width, depth uint64) (n uint64, ok bool) {
	hi, n := bits.Mul64(width, depth)
	if hi > 0 || n == 0 || depth > MaxDepth || n > paged.MaxBytes/cellSize {
		return 0, false
	}
	return cellSize * n, true
}

// New returns an empty list of k items, with a table of width counters in depth rows; nil if Bytes reports that none is
// possible. decay, above 0 and up to 1, is the probability with which another item decrements a counter of 1; for a
// counter of n it is the n-th power.
func New(k, width, depth uint64, decay float64) *List { return newList(k, width, depth, decay, false) }

func newList(k, width, depth uint64, decay float64, former bool) *List {
	bytes, ok := Bytes(width, depth)
	if !ok || k == 0 || k > MaxK || !(decay > 0 && decay <= 1) {
		return nil
	}
	l := &List{k: k, width: width, depth: depth, decay: decay, former: former}
	l.Init(l)
	for _, size := range [...]uint64{bytes, k * placeSize} {
		if former { // all pages have the same size
			pages := (size + paged.PageSize - 1) / paged.PageSize
			l.AddArray(paged.NewBytes(int(min(size, paged.PageSize)), int(pages)))
		} else {
			l.AddArray(paged.NewArray(size))
		}
	}
	return l
}

// usualDepth is the number of rows up to which looking up counters allocates nothing.
const usualDepth = 16

// cells appends the numbers of an item's counters, one in each row. print identifies the item in the counters.
func (l *List) cells(dst []uint64, item []byte) (cells []uint64, print uint32) {
	if l.former {
		h := xxh3.Hash128(item)
		state := h.Lo
		for row := range l.depth {
			column, _ := bits.Mul64(state, l.width)
			dst = append(dst, row*l.width+column)
			state = state*0xd1342543de82ef95 + (h.Hi | 1)
		}
		return dst, uint32(h.Lo >> 32)
	}
	var sums [usualDepth]uint32
	for row := uint64(0); row < l.depth; row += usualDepth {
		n := min(usualDepth, l.depth-row)
		murmur.Sums32(sums[:n], item, uint32(row))
		for i, sum := range sums[:n] {
			dst = append(dst, (row+uint64(i))*l.width+uint64(sum)%l.width)
		}
	}
	return dst, murmur.Sum32(item, printSeed)
}

// cell returns the print and the count of a counter. The former layout has them in the opposite order.
func (l *List) cell(cell uint64) (whose, count uint32) {
	b := l.Array(0).Page(int(cell * cellSize / paged.PageSize))
	if b == nil {
		return 0, 0
	}
	b = b[cell*cellSize%paged.PageSize:]
	whose, count = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if l.former {
		return count, whose
	}
	return whose, count
}

func (l *List) setCell(cell uint64, whose, count uint32) {
	b := l.Write(0, int(cell*cellSize/paged.PageSize))[cell*cellSize%paged.PageSize:]
	if l.former {
		whose, count = count, whose
	}
	binary.LittleEndian.PutUint32(b, whose)
	binary.LittleEndian.PutUint32(b[4:], count)
}

// least returns the count of the item that is expelled next, 0 if there is room for another one.
func (l *List) least() uint32 { return l.countAt(0) }

// Add counts an item n times, up to MaxIncrement. If it displaces another item from the list, that one is returned.
func (l *List) Add(item []byte, n uint32) (expelled string, ok bool) {
	l.NoteHead() // the generator
	if l.heapless {
		l.noteHeap()
	}
	least, most := l.least(), uint32(0) // the highest count of the item
	var room [usualDepth]uint64
	cells, print := l.cells(room[:0], item)
	for _, cell := range cells {
		if count, own := l.touch(cell, print, n); own {
			most = max(most, count)
		}
	}
	if most < least {
		return "", false
	}
	if slot := l.find(item); slot >= 0 {
		if l.nodes[slot].count != most { // other items may have decremented it
			l.NoteItem(slotName(slot))
			l.nodes[slot].count = most
		}
		l.sink(int(l.nodes[slot].at))
		return "", false
	}
	slot := l.slotAt(0)
	if slot < 0 {
		l.append(node{item: string(item), count: most})
		l.put(0, int32(len(l.nodes)-1))
	} else {
		expelled, ok = l.nodes[slot].item, true
		l.NoteItem(slotName(slot))
		l.index.remove(l, slot)
		l.itemBytes += listpack.Allocated(len(item)) - listpack.Allocated(len(expelled))
		l.nodes[slot] = node{item: string(item), count: most}
		l.index.add(l, slot)
	}
	l.sink(0)
	return expelled, ok
}

// touch counts an item in a counter: it increments the item's own counter, and may decrement another item's. It returns
// the count of the item there.
func (l *List) touch(cell uint64, print, n uint32) (count uint32, own bool) {
	was, had := l.cell(cell)
	whose, count := was, had
	switch {
	case count == 0:
		whose, count = print, n
	case whose == print:
		count = uint32(min(uint64(count)+uint64(n), math.MaxUint32))
	default:
		for p := l.loses(count); n > 0 && p > negligible; n-- {
			if l.chance() >= p {
				continue
			}
			if count--; count == 0 {
				whose, count = print, n
				break
			}
			p = l.loses(count)
		}
	}
	if whose != was || count != had {
		l.setCell(cell, whose, count)
	}
	return count, whose == print
}

// loses returns the probability with which a counter is decremented.
func (l *List) loses(count uint32) float64 {
	if l.powers == nil {
		l.powers = make([]float64, 0, keptPowers)
		for n := range uint32(keptPowers) {
			l.powers = append(l.powers, power(l.decay, n))
		}
	}
	if int64(count) < int64(len(l.powers)) {
		return l.powers[count]
	}
	return power(l.decay, count)
}

// keptPowers is how many powers are cached. For higher counts most decays are negligible.
const keptPowers = 256

// negligible is a probability treated as 0.
const negligible = 1e-12

// power returns x to the n-th power. It avoids operations that some processors round differently.
func power(x float64, n uint32) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p *= x
		}
		x *= x
	}
	return p
}

// chance returns a random number from 0 to below 1: splitmix64.
func (l *List) chance() float64 {
	l.random += 0x9e3779b97f4a7c15
	z := l.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// append adds a node without a place in the heap.
func (l *List) append(n node) {
	slot := int32(len(l.nodes))
	l.NoteItem(slotName(slot))
	if len(l.nodes) == cap(l.nodes) {
		l.nodes = append(make([]node, 0, min(int(l.k), 8+len(l.nodes)*5/4)), l.nodes...)
	}
	l.nodes = append(l.nodes, n)
	l.index.add(l, slot)
	l.itemBytes += listpack.Allocated(len(n.item))
}

// Has reports whether an item is in the list.
func (l *List) Has(item []byte) bool { return l.find(item) >= 0 }

// Count returns an estimate of how often an item was counted.
func (l *List) Count(item []byte) (n uint32) {
	least, listed := l.least(), l.Has(item)
	var room [usualDepth]uint64
	cells, print := l.cells(room[:0], item)
	for _, cell := range cells {
		if whose, count := l.cell(cell); whose == print && (!listed || count >= least) {
			n = max(n, count)
		}
	}
	return n
}

// Each calls fn with the items, highest counts first; items with equal counts come in the order of the heap. It leaves
// out items with a count of 0.
func (l *List) Each(fn func(item string, count uint32)) {
	order := make([]int32, 0, len(l.nodes))
	for _, slot := range l.places() {
		if l.nodes[slot].count > 0 {
			order = append(order, slot)
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(l.nodes[b].count, l.nodes[a].count) })
	for _, slot := range order {
		fn(l.nodes[slot].item, l.nodes[slot].count)
	}
}

// Len returns the number of items that Each passes on.
func (l *List) Len() (n int) {
	for i := range l.nodes {
		if l.nodes[i].count > 0 {
			n++
		}
	}
	return n
}

// Former reports whether the list has the layout of older versions, which the module does not know.
func (l *List) Former() bool { return l.former }

// Table returns the array of counters: a print and a count, in four bytes each.
func (l *List) Table() *paged.Bytes { return l.Array(0) }

// Place returns the item in a place of the heap, and its count; ok is false for a free place.
func (l *List) Place(i int) (item string, count uint32, ok bool) {
	slot := l.slotAt(i)
	if slot < 0 {
		return "", 0, false
	}
	return l.nodes[slot].item, l.nodes[slot].count, true
}

// SetPlace puts an item into a free place of the heap, for a list stored elsewhere. It fails if the list has the item
// already.
func (l *List) SetPlace(i int, item []byte, count uint32) error {
	if l.Has(item) {
		return errItem
	}
	l.append(node{item: string(item), count: count})
	l.put(i, int32(len(l.nodes)-1))
	return nil
}

// Random returns the state of the generator.
func (l *List) Random() uint64 { return l.random }

// SetRandom sets the state of the generator, for a list stored elsewhere.
func (l *List) SetRandom(state uint64) { l.random = state }

// Print returns the hash that identifies an item in counters and in the index.
func Print(item []byte) uint32 { return murmur.Sum32(item, printSeed) }

// K returns the maximum number of items.
func (l *List) K() uint64 { return l.k }

// Width returns the number of counters in a row.
func (l *List) Width() uint64 { return l.width }

// Depth returns the number of rows.
func (l *List) Depth() uint64 { return l.depth }

// Decay returns the decay given to New.
func (l *List) Decay() float64 { return l.decay }

// Clone returns a copy.
func (l *List) Clone() *List {
	c := &List{k: l.k, width: l.width, depth: l.depth, decay: l.decay, random: l.random, nodes: slices.Clone(l.nodes),
		index: slices.Clone(l.index), itemBytes: l.itemBytes, former: l.former, heapless: l.heapless}
	c.Init(c)
	l.CopyTo(&c.Value)
	return c
}

// MemoryUsage returns how many bytes of memory the list takes.
func (l *List) MemoryUsage() int {
	return int(unsafe.Sizeof(*l)) + cap(l.nodes)*int(unsafe.Sizeof(node{})) + 8*cap(l.powers) + 4*cap(l.index) +
		l.itemBytes + l.Value.MemoryUsage()
}
