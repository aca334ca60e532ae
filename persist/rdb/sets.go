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
	numbers: []byte{typeSet, typeSetIntset, typeSetListpack, typeSetPack, typeSetExpire},
	read:    (*decoder).set,
	form: func(entry *engine.Entry) form {
		if entry.Set().NextDeadline() != 0 {
			return form{typeSetExpire, VersionExpiringMembers}
		}
		return form{typeSet, Version}
	},
	write: func(e *Encoder, entry *engine.Entry) { e.set(entry.Set()) },
	saved: func(e *Encoder, entry *engine.Entry, _ lists.Limit) { e.savedSet(entry.Set()) },
}

func (d *decoder) set(typ byte, lim *Limits) (any, error) {
	s := &sets.Set{}
	add := func(member []byte) error {
		if !s.Add(member, lim.Set) {
			return corrupt("a member of a set that comes twice")
		}
		return nil
	}
	addExpiring := func(member []byte, at int64) error {
		if err := add(member); err != nil {
			return err
		}
		if err := checkElementDeadline(at); err != nil {
			return err
		}
		if at != 0 {
			s.SetDeadline(member, at, lim.Set)
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
	case typeSetExpire:
		err = d.expiring(true, func(at int64) error {
			member, err := d.string()
			if err != nil {
				return err
			}
			return addExpiring(member, at)
		})
	case typeSetPack:
		err = d.expiringPack(true, func(p *packed) error {
			member, err := p.next()
			if err != nil {
				return err
			}
			at, err := p.number()
			if err != nil {
				return err
			}
			return addExpiring(member, at)
		})
	}
	if err == nil && s.Len() == 0 {
		err = errEmpty
	}
	return s, err
}

// set writes a set, with the deadlines of its members if there are any.
func (e *Encoder) set(s *sets.Set) {
	first := s.NextDeadline()
	if first != 0 {
		e.millis(first)
	}
	e.length(uint64(s.Len()))
	for member := range s.All() {
		if first != 0 {
			at, _ := s.Deadline(member)
			e.elementDeadline(first, at)
		}
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
	case "listpackex":
		e.millis(s.NextDeadline())
		e.string(listpackOf(membersAndDeadlines(s)))
	default:
		e.set(s)
	}
}

func membersAndDeadlines(s *sets.Set) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for member := range s.All() {
			at, _ := s.Deadline(member)
			if !yield(member) || !yield(strconv.AppendInt(nil, at, 10)) {
				return
			}
		}
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
