package rdb

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/cuckoo"
)

// cuckooKind is the kind of cuckoo filters. The module of Redis writes the number of sub-filters, the buckets of the
// first one, items, deleted items, bucket size, iterations and expansion, and for each sub-filter its number of buckets
// and their bytes. Before version 4 all sub-filters have the same size, and missing settings are the module's defaults.
var cuckooKind = redisKind(partsKind("atomCUCKO", func(e *engine.Entry) parts { return e.Cuckoo() }, cuckoo.NewLoader),
	moduleForm{name: cuckooModule, newest: cuckooVersion, read: readCuckoo}, func(e *engine.Entry) bool { return e.Cuckoo().Former() || e.Cuckoo().Sparse(maxSparse) }, writeCuckoo)

const (
	cuckooModule  = "MBbloomCF"
	cuckooVersion = 4
)

func writeCuckoo(e *Encoder, entry *engine.Entry) {
	f := entry.Cuckoo()
	w := e.moduleHead(cuckooModule, cuckooVersion)
	w.Uint(uint64(len(f.Links())), f.Links()[0], f.Items(), f.Deleted(), uint64(f.BucketSize()), uint64(f.Iterations()),
		uint64(f.Expansion()))
	for i, buckets := range f.Links() {
		w.Uint(buckets)
		w.array(f.Array(i))
	}
	w.End()
}

// readCuckoo reads a filter.
func readCuckoo(m *Module, _ *Limits) any {
	links, buckets, items := m.Uint(), m.Uint(), m.Uint()
	deleted, size, iterations, expansion := uint64(0), uint64(2), uint64(20), uint64(1)
	if m.Version == cuckooVersion {
		deleted, size, iterations, expansion = m.Uint(), m.Uint(), m.Uint(), m.Uint()
	}
	o := cuckoo.Options{BucketSize: uint32(size), Iterations: uint32(iterations), Expansion: uint32(expansion)}
	f, err := cuckoo.Restore(o, items, deleted)
	if err != nil || links == 0 || uint64(o.BucketSize) != size || uint64(o.Iterations) != iterations ||
		expansion > math.MaxUint16 {
		m.Corrupt("a cuckoo filter with %d sub-filters, buckets of %d, %d iterations, expansion %d", links, size, iterations, expansion)
	}
	for i := 0; uint64(i) < links && m.err == nil; i++ {
		if m.Version == cuckooVersion {
			buckets = m.Uint()
		}
		data := m.bytes()
		if m.err != nil {
			break
		}
		if err := f.AddLink(buckets); err != nil || buckets*size != uint64(len(data)) {
			m.Corrupt("a sub-filter of %d buckets with %d bytes", buckets, len(data))
		} else {
			f.Fill(i, 0, data)
		}
	}
	return f
}
