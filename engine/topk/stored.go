package topk

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/paged"
)

// The first byte of a head also identifies the hash function, the places of counters and the generator.
const (
	heaplessFormat = 1 // of the former layout, without a heap
	formerFormat   = 2
	format         = 3
)

var errHeap = errors.New("top-k: the stored heap is malformed")

// maxSmallItems is the maximum number of items of a list that is stored whole.
const maxSmallItems = 64

// Large reports whether the list must be stored in parts.
func (l *List) Large() bool { return len(l.nodes) > maxSmallItems || l.Value.Large() }

// AppendHead appends the stored form of everything except the pages and the items: the format, the decay and the state
// of the generator in eight bytes each, and as unsigned varints k, width and depth.
func (l *List) AppendHead(dst []byte) []byte {
	first := byte(format)
	if l.former {
		first = formerFormat
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, first), math.Float64bits(l.decay))
	dst = binary.LittleEndian.AppendUint64(dst, l.random)
	return binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(dst, l.k), l.width), l.depth)
}

// slotName returns the part name of a slot's item: the number in four bytes.
func slotName(slot int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(slot)) }

// slotOf parses the name of an item.
func slotOf(name string) (slot int, ok bool) {
	if len(name) != 4 {
		return 0, false
	}
	return int(binary.BigEndian.Uint32([]byte(name))), true
}

// AppendItem implements paged.Items: the count as an unsigned varint, and the item.
func (l *List) AppendItem(dst []byte, name string) (out []byte, ok bool) {
	slot, ok := slotOf(name)
	if !ok || slot >= len(l.nodes) {
		return dst, false
	}
	return append(binary.AppendUvarint(dst, uint64(l.nodes[slot].count)), l.nodes[slot].item...), true
}

// ItemsFrom implements paged.Items.
func (l *List) ItemsFrom(name string, fn func(name string) bool) {
	slot, _ := slotOf(name)
	for ; slot < len(l.nodes); slot++ {
		name := slotName(int32(slot))
		if !fn(unsafe.String(unsafe.SliceData(name), len(name))) {
			return
		}
	}
}

// decodeHead returns the list described by a head, without counts and items.
func decodeHead(head []byte) (*List, error) {
	if len(head) == 0 || head[0] < heaplessFormat || head[0] > format {
		return nil, errHead
	}
	r := paged.NewReader(head[1:])
	decay, random := math.Float64frombits(r.Fixed()), r.Fixed()
	l := newList(r.Uint(1, MaxK), r.Uint(1, math.MaxUint64), r.Uint(1, MaxDepth), decay, head[0] != format)
	if err := r.Err("top-k"); err != nil || l == nil {
		return nil, errHead
	}
	l.random, l.heapless = random, head[0] == heaplessFormat
	return l, nil
}

// addStored adds a stored item.
func addStored(l *List, name, data []byte) error {
	slot, ok := slotOf(string(name))
	count, n := binary.Uvarint(data)
	if !ok || n <= 0 || count > math.MaxUint32 || slot != len(l.nodes) || uint64(slot) >= l.k || l.Has(data[n:]) {
		return errItem
	}
	l.append(node{item: string(data[n:]), count: uint32(count), at: -1}) // set by endStored
	return nil
}

// endStored builds the heap of a list in the first form, and checks a stored one.
func endStored(l *List) error {
	switch {
	case l.heapless && l.heapIsEmpty():
		for slot := range l.nodes {
			l.put(0, int32(slot))
			l.sink(0)
		}
		return nil
	case l.heapless || !l.hasPlaces():
		return errHeap
	}
	return nil
}

// NewLoader returns a loader that builds a list from its parts.
func NewLoader() *paged.Loader[*List] {
	return &paged.Loader[*List]{Head: decodeHead, Item: addStored, End: endStored}
}

// DecodeBlob returns the list that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*List, error) { return NewLoader().Decode(b) }
