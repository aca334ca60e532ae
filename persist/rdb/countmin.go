package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/countmin"
)

// countMinKind is the kind of count-min sketches. The module of Redis writes width, depth, the sum of all counts and
// the counters, of four bytes each. Sketches with counters of another size are written in our own form.
var countMinKind = redisKind(partsKind("atomCOUNT", func(e *engine.Entry) parts { return e.CountMin() }, countmin.NewLoader),
	moduleForm{name: countMinModule, newest: countMinVersion, read: readCountMin}, ownCounters, writeCountMin)

const (
	countMinModule  = "CMSk-TYPE"
	countMinVersion = 0
)

// ownCounters reports whether a sketch has counters that the module does not have, or too few that were ever used.
func ownCounters(entry *engine.Entry) bool {
	s := entry.CountMin()
	return s.Former() || s.Cell() != countmin.UsualCell || s.Sparse(maxSparse)
}

func writeCountMin(e *Encoder, entry *engine.Entry) {
	s := entry.CountMin()
	w := e.moduleHead(countMinModule, countMinVersion)
	w.Uint(s.Width(), s.Depth(), s.Total())
	w.array(s.Array(0))
	w.End()
}

// readCountMin reads a sketch.
func readCountMin(m *Module, _ *Limits) any {
	width, depth, total, counters := m.Uint(), m.Uint(), m.Uint(), m.bytes()
	size, ok := countmin.Bytes(width, depth, countmin.UsualCell)
	if m.err == nil && (!ok || size != uint64(len(counters))) {
		m.Corrupt("a count-min sketch of %d and %d with %d bytes", width, depth, len(counters))
	}
	if m.err != nil {
		return nil
	}
	s := countmin.New(width, depth, countmin.UsualCell)
	s.Fill(0, 0, counters)
	s.SetTotal(total)
	return s
}
