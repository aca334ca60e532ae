package rdb

import (
	"encoding/binary"
	"iter"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/resp"
)

var zsetKind = kind{
	numbers: []byte{typeZSetText, typeZSet, typeZSetZiplist, typeZSetListpack},
	read:    (*decoder).zset,
	form:    plainForm(typeZSet),
	write:   func(e *Encoder, entry *engine.Entry) { e.zset(entry.ZSet()) },
	saved:   func(e *Encoder, entry *engine.Entry, _ lists.Limit) { e.savedZSet(entry.ZSet()) },
}

func (d *decoder) zset(typ byte, lim *Limits) (any, error) {
	z := zsets.New()
	add := func(member []byte, score float64) error {
		if math.IsNaN(score) {
			return corrupt("a score that is no number")
		}
		if _, twice := z.Set(member, score, lim.ZSet); twice {
			return corrupt("a member of a sorted set that comes twice")
		}
		return nil
	}
	pair := func(p *packed) error {
		member, err := p.next()
		if err != nil {
			return err
		}
		text, err := p.next()
		if err != nil {
			return err
		}
		score, err := parseScore(text)
		if err != nil {
			return err
		}
		return add(member, score)
	}
	var err error
	switch typ {
	case typeZSetText, typeZSet:
		err = d.elements(func() error {
			defer d.recycle()
			member, err := d.string()
			if err != nil {
				return err
			}
			score, err := d.score(typ)
			if err != nil {
				return err
			}
			return add(member, score)
		})
	case typeZSetZiplist:
		err = d.packed(ziplist, pair)
	case typeZSetListpack:
		err = d.packed(listpack, pair)
	}
	if err == nil && z.Len() == 0 {
		err = errEmpty
	}
	return z, err
}

// Lengths of a score's text that represent special numbers.
const (
	scoreNaN      = 253
	scoreInfinity = 254
	scoreMinusInf = 255
)

// score reads a score in the form of a sorted set's type.
func (d *decoder) score(typ byte) (float64, error) {
	if typ == typeZSet {
		b, err := d.fixed(8)
		if err != nil {
			return 0, err
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	}
	n, err := d.byte()
	if err != nil {
		return 0, err
	}
	switch n {
	case scoreNaN:
		return math.NaN(), nil
	case scoreInfinity:
		return math.Inf(1), nil
	case scoreMinusInf:
		return math.Inf(-1), nil
	}
	text, err := d.raw(uint64(n))
	if err != nil {
		return 0, err
	}
	return parseScore(text)
}

func parseScore(text []byte) (float64, error) {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !math.IsInf(f, 0) { // out of range becomes infinite
		return 0, corrupt("%.20q in the place of a score", text)
	}
	return f, nil
}

// zset writes a sorted set, last member first as Redis does: that speeds up building a list from its head.
func (e *Encoder) zset(z *zsets.ZSet) {
	e.length(uint64(z.Len()))
	z.RangeByRank(0, z.Len()-1, true, func(member []byte, score float64) bool {
		e.string(member)
		e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(score))
		e.written()
		return true
	})
}

func (e *Encoder) savedZSet(z *zsets.ZSet) {
	if z.Encoding() == "listpack" {
		e.string(listpackOf(membersAndScores(z)))
		return
	}
	e.zset(z)
}

// membersAndScores iterates over members and scores alternately, from the lowest score on.
func membersAndScores(z *zsets.ZSet) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
			if score == 0 {
				score = 0 // without a sign
			}
			return yield(member) && yield(resp.AppendFloat(nil, score))
		})
	}
}
