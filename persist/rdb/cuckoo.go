package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/cuckoo"
)

// cuckooKind is that of cuckoo filters. The module of Redis writes sub-filters, buckets of the first of them, items, deleted items,
// size of a bucket, iterations and expansion, and for each sub-filter its buckets and their bytes. Before version 4 all sub-filters
// have the same size, and its defaults stand for what is not written.
var cuckooKind = kind{
	module:        cuckooModule,
	moduleVersion: cuckooVersion,
	otherVersions: []uint64{0, 1, 2, 3},
	former:        formerCuckoo,
	read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return d.cuckoo() },
	form:          plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) {
		f := entry.Cuckoo()
		if f.Former() {
			formerCuckoo.write(e, entry)
			return
		}
		w := e.moduleHead(cuckooModule, cuckooVersion)
		w.Uint(uint64(len(f.Links())), f.Links()[0], f.Items(), f.Deleted(), uint64(f.BucketSize()), uint64(f.Iterations()),
			uint64(f.Expansion()))
		for i, buckets := range f.Links() {
			w.Uint(buckets)
			w.array(f.Array(i))
		}
		w.End()
	},
}

var formerCuckoo = newPartsForm("atomCUCKO", func(e *engine.Entry) parts { return e.Cuckoo() }, cuckoo.NewLoader)

const (
	cuckooModule  = "MBbloomCF"
	cuckooVersion = 4
)

// cuckoo reads a filter.
func (d *decoder) cuckoo() (any, error) {
	m := d.moduleData(cuckooModule)
	links, buckets, items := m.Uint(), m.Uint(), m.Uint()
	deleted, size, iterations, expansion := uint64(0), uint64(2), uint64(20), uint64(1)
	if m.Version == cuckooVersion {
		deleted, size, iterations, expansion = m.Uint(), m.Uint(), m.Uint(), m.Uint()
	}
	o := cuckoo.Options{BucketSize: uint32(size), Iterations: uint32(iterations), Expansion: uint32(expansion)}
	f, err := cuckoo.Restore(o, items, deleted)
	if err != nil || links == 0 || uint64(o.BucketSize) != size || uint64(o.Iterations) != iterations ||
		uint64(o.Expansion) != expansion {
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
	if err := m.end(); err != nil {
		return nil, err
	}
	return f, nil
}
