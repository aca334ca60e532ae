package rdb

import (
	"encoding/binary"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/topk"
)

// topKKind is the kind of top-k lists. The module of Redis writes k, width, depth, decay, the table of counters and the
// heap, and then for each place of the heap its item with a trailing zero. A place in the heap has the item's print and
// length, an address without meaning, the count, and four unused bytes.
var topKKind = redisKind(partsKind("atomTOPKL", func(e *engine.Entry) parts { return e.TopK() }, topk.NewLoader),
	moduleForm{name: topKModule, newest: topKVersion, read: readTopK}, func(e *engine.Entry) bool { return e.TopK().Former() || e.TopK().Sparse(maxSparse) }, writeTopK)

const (
	topKModule  = "TopK-TYPE"
	topKVersion = 0

	topKPlace = 24 // size of a place in the heap
	topKCount = 16 // offset of the count in a place
	topKLen   = 4  // offset of the length
	// topKRandom is the offset of the address. The first place has the state of our generator there.
	topKRandom = 8
)

func writeTopK(e *Encoder, entry *engine.Entry) {
	l := entry.TopK()
	w := e.moduleHead(topKModule, topKVersion)
	w.Uint(l.K(), l.Width(), l.Depth())
	w.Double(l.Decay())
	w.array(l.Table())
	e.length(moduleString)
	e.length(l.K() * topKPlace)
	for i := range int(l.K()) {
		var place [topKPlace]byte
		if item, count, ok := l.Place(i); ok {
			binary.LittleEndian.PutUint32(place[:], topk.Print([]byte(item)))
			binary.LittleEndian.PutUint32(place[topKLen:], uint32(len(item)))
			binary.LittleEndian.PutUint32(place[topKCount:], count)
		}
		if i == 0 {
			binary.LittleEndian.PutUint64(place[topKRandom:], l.Random())
		}
		e.buf = append(e.buf, place[:]...)
		e.written()
	}
	for i := range int(l.K()) {
		item, _, _ := l.Place(i)
		e.moduleString(append([]byte(item), 0))
		e.written()
	}
	w.End()
}

// readTopK reads a list.
func readTopK(m *Module, _ *Limits) any {
	k, width, depth, decay, table := m.Uint(), m.Uint(), m.Uint(), m.Double(), m.bytes()
	size, ok := topk.Bytes(width, depth)
	if m.err == nil && (!ok || size != uint64(len(table)) || k == 0 || k > topk.MaxK || !(decay > 0 && decay <= 1)) {
		m.Corrupt("a top-k list of %d with a table of %d and %d, decay %v, %d bytes", k, width, depth, decay, len(table))
	}
	if m.err != nil {
		return nil
	}
	l := topk.New(k, width, depth, decay)
	l.Fill(0, 0, table)
	heap := append([]byte(nil), m.bytes()...) // a copy: reading the items reuses the memory
	if m.err == nil && uint64(len(heap)) != k*topKPlace {
		m.Corrupt("a heap of %d bytes for %d items", len(heap), k)
	}
	if m.err == nil {
		l.SetRandom(binary.LittleEndian.Uint64(heap[topKRandom:]))
	}
	for i := 0; i < int(k) && m.err == nil; i++ {
		item, place := m.bytes(), heap[i*topKPlace:]
		count := binary.LittleEndian.Uint32(place[topKCount:])
		switch {
		case m.err != nil:
		case len(item) == 0:
			m.Corrupt("an item without its last byte")
		case len(item) == 1 && count == 0: // the place is free
		default:
			if err := l.SetPlace(i, item[:len(item)-1], count); err != nil {
				m.Corrupt("%v", err)
			}
		}
	}
	return l
}
