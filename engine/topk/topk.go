// Package topk finds the most frequent items: a HeavyKeeper, which is a table of counters for which items compete, and
// a heap of the items with the highest counts.
//
// A competing item decrements a counter with a probability that falls with the count. The random generator is part of
// the value, so that repeating the same calls gives the same result.
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
	"github.com/atomredis/atomredis/engine/paged"
)

const (
	// MaxK is the maximum number of listed items.
	MaxK = 1 << 24
	// MaxDepth is the largest number of rows.
	MaxDepth = 255
	// MaxIncrement is the maximum increment of Add.
	MaxIncrement = 100_000

	cellSize = 8 // an item's fingerprint and the count
	inPage   = paged.PageSize / cellSize
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

	nodes     []node           // the items by slot, in no particular order
	byItem    map[string]int32 // indices in nodes
	itemBytes int

	// former is set while a list that was stored without a heap has not changed.
	former bool

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
func New(k, width, depth uint64, decay float64) *List {
	bytes, ok := Bytes(width, depth)
	if !ok || k == 0 || k > MaxK || !(decay > 0 && decay <= 1) {
		return nil
	}
	l := &List{k: k, width: width, depth: depth, decay: decay, byItem: map[string]int32{}}
	l.Init(l)
	pages := (bytes + paged.PageSize - 1) / paged.PageSize
	l.AddArray(paged.NewBytes(int(min(bytes, paged.PageSize)), int(pages)))
	l.AddArray(paged.NewBytes(int(min(k, inHeapPage))*placeSize, int((k+inHeapPage-1)/inHeapPage)))
	return l
}

// Add counts an item n times, up to MaxIncrement. If it displaces another item from the list, that one is returned.
func (l *List) Add(item []byte, n uint32) (expelled string, ok bool) {
	if n == 0 {
		return "", false
	}
	l.NoteHead() // for the generator's state
	if l.former {
		l.noteHeap()
	}
	h := xxh3.Hash128(item)
	print := uint32(h.Lo >> 32)
	listed, isListed := l.byItem[string(item)]
	least := uint32(0) // lowest count of a listed item
	if slot := l.slotAt(0); slot >= 0 {
		least = l.nodes[slot].count
	}
	limit := least // largest count that may still grow
	if isListed {
		limit = math.MaxUint32
	}
	most := uint32(0) // highest counter of the item now
	row, state := uint64(0), h.Lo
	for range l.depth {
		column, _ := bits.Mul64(state, l.width)
		cell := row + column
		state = state*0xd1342543de82ef95 + (h.Hi | 1)
		row += l.width
		// A higher count than the list's lowest, for an item not in the list, belongs to another item with the same
		// fingerprint.
		if count, own := l.touch(cell, print, n, limit); own {
			most = max(most, count)
		}
	}
	switch {
	case isListed:
		if most > l.nodes[listed].count {
			l.NoteItem(slotName(listed))
			l.nodes[listed].count = most
			l.sink(int(l.nodes[listed].at))
		}
	case uint64(len(l.nodes)) < l.k:
		if most > 0 {
			l.append(node{item: string(item), count: most})
			l.put(0, int32(len(l.nodes)-1))
			l.sink(0)
		}
	case most >= least:
		slot := l.slotAt(0)
		expelled, ok = l.nodes[slot].item, true
		l.NoteItem(slotName(slot))
		delete(l.byItem, expelled)
		l.itemBytes += listpack.Allocated(len(item)) - listpack.Allocated(len(expelled))
		l.nodes[slot] = node{item: string(item), count: most}
		l.byItem[l.nodes[slot].item] = slot
		l.sink(0)
	}
	return expelled, ok
}

// touch counts in a cell: the item's own counter grows if it is at most limit, another item's counter may shrink. It
// returns the item's count in the cell.
func (l *List) touch(cell uint64, print, n, limit uint32) (count uint32, own bool) {
	page, i := int(cell/inPage), int(cell%inPage)*cellSize
	have, b := uint64(0), l.Array(0).Page(page)
	if b != nil {
		have = binary.LittleEndian.Uint64(b[i:])
	}
	whose, count := uint32(have>>32), uint32(have)
	switch {
	case count == 0:
		whose, count = print, n
	case whose == print:
		if count <= limit {
			count = uint32(min(uint64(count)+uint64(n), math.MaxUint32))
		}
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
	if now := uint64(whose)<<32 | uint64(count); now != have {
		if b == nil || l.Log() != nil {
			b = l.Write(0, page)
		}
		binary.LittleEndian.PutUint64(b[i:], now)
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
	l.nodes = append(l.nodes, n)
	l.byItem[n.item] = slot
	l.itemBytes += listpack.Allocated(len(n.item))
}

// Has reports whether an item is in the list.
func (l *List) Has(item []byte) bool {
	_, ok := l.byItem[string(item)]
	return ok
}

// Count returns an estimate of how often an item was counted.
func (l *List) Count(item []byte) (n uint32) {
	if slot, ok := l.byItem[string(item)]; ok {
		return l.nodes[slot].count
	}
	h := xxh3.Hash128(item)
	row, state := uint64(0), h.Lo
	for range l.depth {
		column, _ := bits.Mul64(state, l.width)
		cell := row + column
		state = state*0xd1342543de82ef95 + (h.Hi | 1)
		row += l.width
		b := l.Array(0).Page(int(cell / inPage))
		if b == nil {
			continue
		}
		have := binary.LittleEndian.Uint64(b[cell%inPage*cellSize:])
		if uint32(have>>32) == uint32(h.Lo>>32) {
			n = max(n, uint32(have))
		}
	}
	return n
}

// Each calls fn with the items of the list, highest counts first, and equal counts in the order of the heap.
func (l *List) Each(fn func(item string, count uint32)) {
	order := make([]int32, 0, len(l.nodes))
	for _, slot := range l.places() {
		order = append(order, slot)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(l.nodes[b].count, l.nodes[a].count) })
	for _, slot := range order {
		fn(l.nodes[slot].item, l.nodes[slot].count)
	}
}

// Len returns the number of items in the list.
func (l *List) Len() int { return len(l.nodes) }

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
		byItem: make(map[string]int32, len(l.byItem)), itemBytes: l.itemBytes}
	for i := range c.nodes {
		c.byItem[c.nodes[i].item] = int32(i)
	}
	c.Init(c)
	l.CopyTo(&c.Value)
	return c
}

// inMap is about how many bytes of memory a map takes per node.
const inMap = 40

// MemoryUsage returns how many bytes of memory the list takes.
func (l *List) MemoryUsage() int {
	return int(unsafe.Sizeof(*l)) + cap(l.nodes)*int(unsafe.Sizeof(node{})) + 8*cap(l.powers) + inMap*len(l.nodes) +
		l.itemBytes + l.Value.MemoryUsage()
}
