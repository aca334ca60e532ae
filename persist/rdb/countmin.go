package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/countmin"
)

// countMinKind is that of count-min sketches. The module of Redis writes width, depth, the sum of all counts and the counters, of
// four bytes each. Sketches with others keep the form of our own.
var countMinKind = kind{
	module:        countMinModule,
	moduleVersion: countMinVersion,
	former:        formerCountMin,
	read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return d.countMin() },
	form:          plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) {
		s := entry.CountMin()
		if s.Former() || s.Cell() != countmin.UsualCell {
			formerCountMin.write(e, entry)
			return
		}
		w := e.moduleHead(countMinModule, countMinVersion)
		w.Uint(s.Width(), s.Depth(), s.Total())
		w.array(s.Array(0))
		w.End()
	},
}

var formerCountMin = newPartsForm("atomCOUNT", func(e *engine.Entry) parts { return e.CountMin() }, countmin.NewLoader)

const (
	countMinModule  = "CMSk-TYPE"
	countMinVersion = 0
)

// countMin reads a sketch.
func (d *decoder) countMin() (any, error) {
	m := d.moduleData(countMinModule)
	width, depth, total, counters := m.Uint(), m.Uint(), m.Uint(), m.bytes()
	size, ok := countmin.Bytes(width, depth, countmin.UsualCell)
	if m.err == nil && (!ok || size != uint64(len(counters))) {
		m.Corrupt("a count-min sketch of %d and %d with %d bytes", width, depth, len(counters))
	}
	if m.err != nil {
		return nil, m.err
	}
	s := countmin.New(width, depth, countmin.UsualCell)
	s.Fill(0, 0, counters)
	s.SetTotal(total)
	return s, m.end()
}
