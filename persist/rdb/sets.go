package rdb

import (
	"encoding/binary"
	"iter"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
)

var setKind = kind{
	numbers: []byte{typeSet, typeSetIntset, typeSetListpack},
	read:    (*decoder).set,
	form:    plainForm(typeSet),
	write:   func(e *Encoder, entry *engine.Entry) { e.set(entry.Set()) },
	saved:   func(e *Encoder, entry *engine.Entry, _ lists.Limit) { e.savedSet(entry.Set()) },
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

func (e *Encoder) set(s *sets.Set) {
	e.length(uint64(s.Len()))
	for member := range s.All() {
		e.string(member)
		e.written()
	}
}

func (e *Encoder) savedSet(s *sets.Set) {
	switch s.Encoding() {
	case "intset":
		e.string(intsetOf(s.All()))
	case "listpack":
		e.string(listpackOf(s.All()))
	default:
		e.set(s)
	}
}

// intsetOf returns integers in Redis's form: all as wide as the widest.
func intsetOf(members iter.Seq[[]byte]) []byte {
	width := 2
	var numbers []int64
	for member := range members {
		n, _ := strconv.ParseInt(string(member), 10, 64)
		switch {
		case n != int64(int32(n)):
			width = 8
		case n != int64(int16(n)):
			width = max(width, 4)
		}
		numbers = append(numbers, n)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(width))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(numbers)))
	for _, n := range numbers {
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(n))[:width]...)
	}
	return b
}
