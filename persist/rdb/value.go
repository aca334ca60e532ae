package rdb

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/zsets"
)

// value reads a value of a type: a []byte, which is valid until recycle, or a collection of package engine's. An
// element that comes twice, and a collection without any, is an error.
func (d *decoder) value(typ byte, lim *Limits) (any, error) {
	switch typ {
	case typeString:
		return d.string()
	case typeList, typeListZiplist, typeListZiplists, typeListListpacks:
		return d.list(typ, lim)
	case typeSet, typeSetIntset, typeSetListpack:
		return d.set(typ, lim)
	case typeZSetText, typeZSet, typeZSetZiplist, typeZSetListpack:
		return d.zset(typ, lim)
	case typeHash, typeHashZipmap, typeHashZiplist, typeHashListpack:
		return d.hash(typ, lim)
	case typeHashExpire, typeHashExpireEarly:
		return d.expiringHash(typ, lim)
	case typeHashPack, typeHashPackEarly:
		return d.expiringPack(typ, lim)
	case typeStream, typeStream2, typeStream3:
		return d.stream(typ, lim)
	case typeModule, typeModuleOld:
		return nil, d.moduleValue()
	}
	return nil, corrupt("the unknown type %d", typ)
}

// elements calls fn as often as the length says that comes next. It fails if that is 0.
func (d *decoder) elements(fn func() error) error {
	n, err := d.length()
	if err == nil && n == 0 {
		err = errEmpty
	}
	for ; n > 0 && err == nil; n-- {
		err = fn()
	}
	return err
}

// packed reads a string that is a listpack or a ziplist, and calls fn as long as elements are left.
func (d *decoder) packed(open func(b []byte) (*packed, error), fn func(p *packed) error) error {
	b, err := d.string()
	if err != nil {
		return err
	}
	p, err := open(b)
	if err != nil {
		return err
	}
	for {
		more, err := p.more()
		if err != nil || !more {
			return err
		}
		if err := fn(p); err != nil {
			return err
		}
	}
}

const (
	containerPlain  = 1 // a node of a list that is one element
	containerPacked = 2 // and one that is a listpack
)

func (d *decoder) list(typ byte, lim *Limits) (any, error) {
	l := lists.New(lim.List)
	add := func(p *packed) error {
		v, err := p.next()
		if err == nil {
			l.PushBack(v)
		}
		return err
	}
	var err error
	switch typ {
	case typeList:
		err = d.elements(func() error {
			v, err := d.string()
			if err == nil {
				l.PushBack(v)
			}
			d.recycle()
			return err
		})
	case typeListZiplist:
		err = d.packed(ziplist, add)
	case typeListZiplists:
		err = d.elements(func() error {
			defer d.recycle()
			return d.packed(ziplist, add)
		})
	case typeListListpacks:
		err = d.elements(func() error {
			defer d.recycle()
			container, err := d.length()
			switch {
			case err != nil:
				return err
			case container == containerPacked:
				return d.packed(listpack, add)
			case container != containerPlain:
				return corrupt("a list's node of the unknown kind %d", container)
			}
			v, err := d.string()
			if err == nil {
				l.PushBack(v)
			}
			return err
		})
	}
	if err == nil && l.Len() == 0 {
		err = errEmpty
	}
	return l, err
}

func (d *decoder) set(typ byte, lim *Limits) (any, error) {
	s := &sets.Set{}
	add := func(member []byte) error {
		if !s.Add(member, lim.Set) {
			return corrupt("a member of a set that comes twice")
		}
		return nil
	}
	var err error
	switch typ {
	case typeSet:
		err = d.elements(func() error {
			defer d.recycle()
			member, err := d.string()
			if err != nil {
				return err
			}
			return add(member)
		})
	case typeSetIntset:
		var b []byte
		if b, err = d.string(); err == nil {
			err = intset(b, add)
		}
	case typeSetListpack:
		err = d.packed(listpack, func(p *packed) error {
			member, err := p.next()
			if err != nil {
				return err
			}
			return add(member)
		})
	}
	if err == nil && s.Len() == 0 {
		err = errEmpty
	}
	return s, err
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

// Lengths of a score's text that stand for what is no decimal number.
const (
	scoreNaN      = 253
	scoreInfinity = 254
	scoreMinusInf = 255
)

// score reads a score in the form that the type of a sorted set has.
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
	if err != nil && !math.IsInf(f, 0) { // what is out of range is infinite
		return 0, corrupt("%.20q in the place of a score", text)
	}
	return f, nil
}

func (d *decoder) hash(typ byte, lim *Limits) (any, error) {
	h := &hashes.Hash{}
	add := func(field, value []byte) error {
		if !h.Set(field, value, lim.Hash) {
			return corrupt("a field of a hash that comes twice")
		}
		return nil
	}
	pair := func(p *packed) error {
		field, err := p.next()
		if err != nil {
			return err
		}
		value, err := p.next()
		if err != nil {
			return err
		}
		return add(field, value)
	}
	var err error
	switch typ {
	case typeHash:
		err = d.elements(func() error {
			defer d.recycle()
			field, err := d.string()
			if err != nil {
				return err
			}
			value, err := d.string()
			if err != nil {
				return err
			}
			return add(field, value)
		})
	case typeHashZipmap:
		var b []byte
		if b, err = d.string(); err == nil {
			err = zipmap(b, add)
		}
	case typeHashZiplist:
		err = d.packed(ziplist, pair)
	case typeHashListpack:
		err = d.packed(listpack, pair)
	}
	if err == nil && h.Len() == 0 {
		err = errEmpty
	}
	return h, err
}

// maxFieldDeadline is the latest time at which a field can expire, in ms since 1970.
const maxFieldDeadline = 1<<48 - 1

// setExpiring adds a field that expires, unless at is 0.
func setExpiring(h *hashes.Hash, field, value []byte, at int64, lim *Limits) error {
	if !h.Set(field, value, lim.Hash) {
		return corrupt("a field of a hash that comes twice")
	}
	if at < 0 || at > maxFieldDeadline {
		return corrupt("a field that expires at %d", at)
	}
	if at != 0 {
		h.SetDeadline(field, at)
	}
	return nil
}

// expiringHash reads a hash of which some fields expire: in front of each stands when, as a time, or since Redis 7.4
// counted from one millisecond before the earliest, which stands in front of all.
func (d *decoder) expiringHash(typ byte, lim *Limits) (any, error) {
	base := int64(0)
	if typ == typeHashExpire {
		first, err := d.millis()
		if err != nil {
			return nil, err
		}
		if first < 0 || first > maxFieldDeadline+1 { // with one more, no field expires
			return nil, corrupt("a field that expires at %d", first)
		}
		base = first - 1
	}
	h := &hashes.Hash{}
	err := d.elements(func() error {
		defer d.recycle()
		at, err := d.length()
		if err != nil {
			return err
		}
		if at > maxFieldDeadline {
			return corrupt("a field that expires at %d", at)
		}
		field, err := d.string()
		if err != nil {
			return err
		}
		value, err := d.string()
		if err != nil {
			return err
		}
		if at != 0 {
			at += uint64(base)
		}
		return setExpiring(h, field, value, int64(at), lim)
	})
	return h, err
}

// expiringPack reads a small hash of which some fields expire: a listpack of fields, values and deadlines.
func (d *decoder) expiringPack(typ byte, lim *Limits) (any, error) {
	if typ == typeHashPack {
		if _, err := d.millis(); err != nil { // the earliest of them
			return nil, err
		}
	}
	h := &hashes.Hash{}
	err := d.packed(listpack, func(p *packed) error {
		field, err := p.next()
		if err != nil {
			return err
		}
		value, err := p.next()
		if err != nil {
			return err
		}
		at, err := p.number()
		if err != nil {
			return err
		}
		return setExpiring(h, field, value, at, lim)
	})
	if err == nil && h.Len() == 0 {
		err = errEmpty
	}
	return h, err
}
