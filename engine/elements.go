package engine

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
)

// Parts of a value that is stored in parts and not in memory: who needs a few of them reads these and not all.

const (
	// fewParts is of how many parts at most no more than these are read.
	fewParts = 64
	// keptParts is how many bytes of parts are kept with a value that is not in memory; those that were read last are
	// kept in any case.
	keptParts = 64 << 10
)

// Some says which parts of a value are needed.
type Some struct {
	// names of elements, in order and each once
	names [][]byte
	// or the parts from the last one that is not behind from, up to to; begun from the end if reverse
	between  bool
	from, to []byte
	reverse  bool
	most     int  // no more than so many,
	enough   bool // which are enough; otherwise all is needed if there are more
	// or
	count bool // no part but how many elements there are
}

// SomeElements returns what says that an element is needed.
func SomeElements(name []byte) *Some { return &Some{names: [][]byte{slices.Clone(name)}} }

// OnlyCount returns what says that no more is needed than how many elements there are.
func OnlyCount() *Some { return &Some{count: true} }

// key returns what the parts between others are kept by. No part has such a name.
func (some *Some) key() string {
	return fmt.Sprintf("%x %x %t %d", some.from, some.to, some.reverse, some.most)
}

// partRead is a part that was read, or the parts between others; there is none of that name if it is not ok.
type partRead struct {
	name           []byte
	data, deadline []byte // what is stored under parts and fieldParts; no deadline if that is nil
	ok             bool
	list           []partRead
	more           bool // there are more in the list than were read
}

// Elements returns an entry for reading and changing the elements of a hash, a set or a sorted set that are named at the
// beginning of each step of list, and no others: the entry itself or, if its value is stored in parts and not in memory,
// another one, in which is no more than these and some others. Changes are told of the entry itself; how many elements
// it has then its Count says. It panics as reading the value does.
func (e *Entry) Elements(list [][]byte, step int) *Entry {
	if !e.InParts() || len(list) > fewParts*step || !e.mayHave(&someElements) {
		return e
	}
	s := e.unloaded()
	if p := s.some; p != nil && p.knowsAll(list, step) {
		return &p.view
	}
	names := make([][]byte, 0, len(list)/step+1)
	for i := 0; i < len(list); i += step {
		names = append(names, slices.Clone(list[i])) // which must not escape: it is an argument
	}
	slices.SortFunc(names, bytes.Compare)
	some := &Some{names: slices.CompactFunc(names, bytes.Equal)}
	e.bring(s, some)
	return &s.some.view
}

// someElements stands for any elements.
var someElements Some

// Count returns how many elements a collection has. It brings the value into memory only if the store does not know.
func (e *Entry) Count() int {
	if p := e.partial(); p != nil {
		return p.count()
	}
	if e.flags&flagUnloaded != 0 {
		if n := e.storedCount(); n != 0 {
			return int(n)
		}
	}
	e.Load()
	return e.value().(counted).Len()
}

// counted is a collection of which is stored how many elements it has.
type counted interface{ Len() int }

// storedCount returns what Head.Count is for an entry.
func (e *Entry) storedCount() uint64 {
	switch p := e.partial(); {
	case e.typ == String || e.flags&flagParts == 0:
		return 0
	case p != nil:
		return uint64(p.count())
	case e.flags&flagUnloaded != 0:
		return e.unloaded().length
	}
	if v, ok := e.value().(counted); ok {
		return uint64(v.Len())
	}
	return 0
}

// Between is Elements for the parts of a value from the last one that is not behind from, up to to, beginning at the
// end if reverse is set, of which the first count are enough, if that is not 0, and one that has the name with. It is
// for values that are InParts.
func (e *Entry) Between(from, to []byte, reverse bool, count int, with []byte) *Entry {
	some := &Some{between: true, from: from, to: to, reverse: reverse, most: fewParts}
	if count > 0 && count <= fewParts {
		some.most, some.enough = count, true
	}
	return e.some(some, with)
}

// InParts reports whether the value is stored in parts and not in memory.
func (e *Entry) InParts() bool {
	return e.flags&(flagUnloaded|flagParts) == flagUnloaded|flagParts && e.unloaded().coming == nil
}

// mayHave reports whether no more need be read of a value than some parts.
func (e *Entry) mayHave(some *Some) bool {
	s := e.unloaded()
	switch {
	case e.flags&flagParts == 0 || e.typ == String || s.overdue:
		return false
	case some.between:
		return e.typ == Stream
	}
	return s.length != 0 && (some.count || kinds[e.typ].ahead != nil)
}

// bring brings parts into memory that are not there. It panics as reading the value does.
func (e *Entry) bring(s *unloaded, some *Some) {
	if g := s.ks.shards[e.shard].waits; g != nil && g.canWait() {
		panic(&Away{s.ks.spaces[e.space].db, e.Key(), some})
	}
	parts, err := s.ks.readParts(s, some)
	if err == nil {
		err = e.keepParts(s, parts)
	}
	if err != nil {
		panic(&LoadError{e.Key(), err})
	}
}

// some returns an entry with some parts, and one of a name if that is not nil, or the entry itself if all is needed.
func (e *Entry) some(some *Some, with []byte) *Entry {
	s := e.unloaded()
	if !e.mayHave(some) {
		return e
	}
	if with != nil {
		some.names = [][]byte{with}
	}
	if !s.hasRead(some) {
		e.bring(s, some)
	}
	parts, all := s.partsRead(some)
	if !all {
		return e
	}
	v, err := s.ks.load(e.typ, s.parts, s.fieldParts, func(_ uint64, fn func(name, data []byte) error) error {
		for _, p := range parts {
			if p.ok {
				if err := fn(p.name, p.data); err != nil {
					return err
				}
			}
		}
		return nil
	}, func(uint64) *delta.Log { return nil })
	if err != nil {
		panic(&LoadError{e.Key(), err})
	}
	of := &Entry{}
	of.setText(e.Key(), nil)
	of.setCollection(v)
	return of
}

// bytesRead returns about how many bytes the parts take that were read of the value.
func (s *unloaded) bytesRead() int {
	if s.some != nil {
		return s.readBytes + s.some.size()
	}
	return s.readBytes
}

// size returns how many bytes the stand-in takes.
func (s *unloaded) size() int {
	n := int(unsafe.Sizeof(*s)) + s.bytesRead()
	if s.particulars != s.ks.inParts {
		n += int(unsafe.Sizeof(*s.particulars))
	}
	return n
}

// hasRead reports whether some parts were read.
func (s *unloaded) hasRead(some *Some) bool {
	if !some.between {
		return some.count || s.some != nil && s.some.knowsAll(some.names, 1)
	}
	for _, name := range some.names {
		if _, ok := s.read[string(name)]; !ok {
			return false
		}
	}
	_, ok := s.read[some.key()]
	return ok
}

// partsRead returns parts that were read, in the order of their names; all is false if these are not all that is
// needed.
func (s *unloaded) partsRead(some *Some) (parts []partRead, all bool) {
	if some.between {
		list := s.read[some.key()]
		if list.more && !some.enough {
			return nil, false
		}
		parts = append(parts, list.list...)
	}
	for _, name := range some.names {
		parts = append(parts, s.read[string(name)])
	}
	slices.SortFunc(parts, func(a, b partRead) int { return bytes.Compare(a.name, b.name) })
	return parts, true
}

// readParts reads parts from the store. It needs no lock.
func (ks *Keyspace) readParts(s *unloaded, some *Some) (parts []partRead, err error) {
	for _, name := range some.names {
		p := partRead{name: name}
		if p.data, p.ok, err = ks.source.Part(s.parts, name); err != nil {
			return nil, err
		}
		if p.ok && s.fieldParts != 0 {
			if p.deadline, _, err = ks.source.Part(s.fieldParts, name); err != nil {
				return nil, err
			}
		}
		parts = append(parts, p)
	}
	if !some.between {
		return parts, nil
	}
	p := partRead{name: []byte(some.key())}
	err = ks.source.PartsBetween(s.parts, some.from, some.to, some.reverse, func(name, data []byte) bool {
		if p.more = len(p.list) == some.most; p.more {
			return false
		}
		p.list = append(p.list, partRead{name: slices.Clone(name), data: slices.Clone(data), ok: true})
		return true
	})
	return append(parts, p), err
}

// keepParts keeps parts that were read of the value that s stands for, for those who will use them.
func (e *Entry) keepParts(s *unloaded, parts []partRead) error {
	was := e.size()
	own := s.own()
	if kinds[e.typ].ahead != nil {
		if own.some == nil {
			var err error
			if own.some, err = e.newPartial(s); err != nil {
				return err
			}
		}
		for i := range parts {
			if err := own.some.learn(&parts[i]); err != nil {
				return err
			}
		}
	} else {
		n := 0
		for i := range parts {
			n += parts[i].size()
		}
		if own.read == nil || own.readBytes+n > keptParts {
			own.read, own.readBytes = map[string]partRead{}, 0
		}
		for _, p := range parts {
			own.read[string(p.name)] = p
		}
		own.readBytes += n
	}
	s.ks.resized(e, was)
	if s.ks.tiering {
		s.ks.enlist(e)
	}
	return nil
}

// size returns about how many bytes a part takes that is kept.
func (p *partRead) size() int {
	n := 160 + len(p.name) + len(p.data) + len(p.deadline)
	for i := range p.list {
		n += p.list[i].size()
	}
	return n
}
