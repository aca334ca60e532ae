package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/bloom"
)

// bloomKind is the kind of Bloom filters. The module of Redis writes the numbers of items and sub-filters, flags and
// growth. For each sub-filter follow capacity, rate, number of hash functions, bits per item, number of bits, power of
// two, the bits, and the number of items. Version 0 has no flags, numbers of bits and powers; versions below 4 have no
// growth.
var bloomKind = redisKind(partsKind("atomBLOOM", func(e *engine.Entry) parts { return e.Bloom() }, bloom.NewLoader),
	moduleForm{name: bloomModule, newest: bloomVersion, read: readBloom}, func(e *engine.Entry) bool { return e.Bloom().Former() || e.Bloom().Sparse(maxSparse) }, writeBloom)

const (
	bloomModule  = "MBbloom--"
	bloomVersion = 4
	// The first versions with flags and with a growth, and the growth in earlier ones.
	bloomFlagged = 2
	bloomGrowing = 4
	bloomGrowth  = 2
)

func writeBloom(e *Encoder, entry *engine.Entry) {
	f := entry.Bloom()
	w := e.moduleHead(bloomModule, bloomVersion)
	growth, _ := f.Grows()
	w.Uint(f.Items(), uint64(len(f.Links())), uint64(f.Flags()), uint64(growth))
	for i, l := range f.Links() {
		w.Uint(l.Capacity)
		w.Double(l.Rate)
		w.Uint(uint64(l.Hashes))
		w.Double(l.BitsPerItem)
		w.Uint(8*l.Bytes, uint64(l.Power))
		w.array(f.Array(i))
		w.Uint(l.Items)
	}
	w.End()
}

// readBloom reads a filter.
func readBloom(m *Module, _ *Limits) any {
	items, links, flags, growth := m.Uint(), m.Uint(), uint64(0), uint64(bloomGrowth)
	if m.Version >= bloomFlagged {
		flags = m.Uint()
	}
	if m.Version >= bloomGrowing {
		growth = m.Uint()
	}
	if m.err == nil && (links == 0 || links > bloom.MaxLinks || flags != uint64(uint32(flags)) || growth != uint64(uint32(growth))) {
		m.Corrupt("a Bloom filter with %d sub-filters, flags %#x, growth %d", links, flags, growth)
	}
	f, err := bloom.Restore(uint32(flags), uint32(growth), items)
	if err != nil {
		m.Corrupt("%v", err)
	}
	for i := 0; i < int(links) && m.err == nil; i++ {
		l := bloom.Link{Capacity: m.Uint(), Rate: m.Double()}
		hashes := m.Uint()
		l.BitsPerItem = m.Double()
		bits, power := uint64(float64(l.Capacity)*l.BitsPerItem), uint64(0)
		if m.Version > 0 {
			bits, power = m.Uint(), m.Uint()
		}
		data := m.bytes()
		l.Bytes, l.Hashes, l.Power = uint64(len(data)), uint32(hashes), uint8(power)
		if m.err != nil {
			break
		}
		if hashes != uint64(l.Hashes) || power != uint64(l.Power) || bits != 8*l.Bytes {
			m.Corrupt("a sub-filter of %d bytes with %d hash functions, %d bits, power %d", len(data), hashes, bits, power)
		} else if err := f.AddLink(l); err != nil {
			m.Corrupt("%v", err)
		} else {
			f.Fill(i, 0, data)
			f.SetItems(m.Uint())
		}
	}
	return f
}
