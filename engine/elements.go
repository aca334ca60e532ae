package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/lists"
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
	small bool // all of it, unless it is stored in parts
	// or the parts of a list that have so many elements from the front on, or from the back
	front, back int
	gap         held // what was there of the list when they were asked for
}

// SomeElements returns what says that an element is needed.
func SomeElements(name []byte) *Some { return &Some{names: [][]byte{slices.Clone(name)}} }

// OnlyCount returns what says that no more is needed than how many elements there are.
func OnlyCount() *Some { return &Some{count: true} }

// UnlessLarge returns what says that all of a value is needed, unless it is large: then it is not known.
func UnlessLarge() *Some { return &Some{small: true} }

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
	more           bool  // there are more in the list than were read
	end            *Some // with which the list was read, if it is of the end of a list
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

// Ends returns an entry for reading and changing a list at its ends, of which so many elements from the front on are
// needed, and from the back, and no others, as Elements does for other collections. An element of an end that changes
// must be among them, and one behind it that stays.
func (e *Entry) Ends(front, back int) *Entry {
	if !e.InParts() || !e.mayHave(&Some{front: 1}) || front+back >= int(e.storedCount()) {
		return e
	}
	s := e.unloaded()
	for {
		some := &Some{front: front, back: back}
		if s.hasRead(some) {
			return &s.some.view
		}
		if s.some.isTooFar(max(front, back)) {
			return e
		}
		e.bring(s, some.bounded(s))
	}
}

// bounded adds what is there of the value that s stands for, if that is a list.
func (some *Some) bounded(s *unloaded) *Some {
	if some.front == 0 && some.back == 0 {
		return some
	}
	own := *some
	own.gap = held{gap: true}
	if s.some != nil {
		if front, _ := s.some.value.(*lists.List).Reached(); front >= own.front {
			own.front = 0
		}
		if h := s.some.held(); h != nil {
			own.gap = *h
		}
	}
	return &own
}

// isTooFar reports whether so many elements from an end of a list are known to be in too many parts.
func (p *partial) isTooFar(n int) bool { return p != nil && p.tooFar != 0 && n >= p.tooFar }

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
	case some.small:
		return true
	case some.between:
		return e.typ == Stream
	case some.front > 0 || some.back > 0:
		return e.typ == List && s.length != 0 && !s.some.isTooFar(max(some.front, some.back))
	}
	return s.length != 0 && (some.count || kinds[e.typ].ahead != nil)
}

// bring brings parts into memory that are not there. It panics as reading the value does.
func (e *Entry) bring(s *unloaded, some *Some) {
	if g := s.ks.shards[e.shard].waits; g != nil && g.canWait() {
		panic(&Away{s.ks.spaces[e.space].db, e.Key(), some})
	}
	parts, err := s.ks.readParts(s.numbers(), some)
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
	if some.front > 0 || some.back > 0 {
		if s.some == nil {
			return false
		}
		front, back := s.some.value.(*lists.List).Reached()
		return front >= some.front && back >= some.back
	}
	if !some.between {
		return some.count || some.small || s.some != nil && s.some.knowsAll(some.names, 1)
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

// partNumbers are the numbers under which a value is stored in parts, as in Head.
type partNumbers struct{ parts, fieldParts uint64 }

// numbers returns those of a value. The caller holds its shard.
func (s *unloaded) numbers() partNumbers { return partNumbers{s.parts, s.fieldParts} }

// readParts reads parts from the store. It needs no lock.
func (ks *Keyspace) readParts(s partNumbers, some *Some) (parts []partRead, err error) {
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
	if some.front > 0 || some.back > 0 {
		return ks.readEnd(s, some)
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

// readEnd reads parts next to the gap of a list: those of the front, if some of them are needed, or else of the back.
// The first part that is returned is the state of the list.
func (ks *Keyspace) readEnd(s partNumbers, some *Some) (parts []partRead, err error) {
	state := partRead{name: lists.StatePart()}
	if state.data, state.ok, err = ks.source.Part(s.parts, state.name); err != nil {
		return nil, err
	}
	end := partRead{end: some, more: true}
	back, need := some.front == 0, max(some.front, some.back)
	if some.front != 0 {
		need = some.front
	}
	to := []byte(some.gap.before)
	if len(to) == 0 {
		to = lists.LastPart()
	}
	has := some.gap.has()
	var failed error
	err = ks.source.PartsBetween(s.parts, []byte(some.gap.after), to, back, func(name, data []byte) bool {
		if has(string(name)) {
			return true
		}
		if end.more = need > 0 && len(end.list) < fewParts; !end.more {
			return false
		}
		var n int
		if n, failed = lists.CountPart(name, data); failed != nil {
			return false
		}
		need -= n
		end.list = append(end.list, partRead{name: slices.Clone(name), data: slices.Clone(data), ok: true})
		return true
	})
	end.more = need > 0 && len(end.list) == fewParts
	return []partRead{state, end}, errors.Join(err, failed)
}

// reach takes what readEnd has read, unless the list has another gap by now.
func (p *partial) reach(parts []partRead) error {
	l, some := p.value.(*lists.List), parts[1].end
	if after, before, ok := l.Gap(); !ok || after != some.gap.after || before != some.gap.before {
		return nil
	}
	if some.gap.after == "" && some.gap.before == "" { // nothing of the list was there
		if err := l.SetState(parts[0].data); err != nil {
			return err
		}
	}
	back, need := some.front == 0, some.front
	if back {
		need = some.back
		slices.Reverse(parts[1].list)
	}
	var nodes lists.Nodes
	for i := range parts[1].list {
		if _, err := nodes.Add(parts[1].list[i].name, parts[1].list[i].data); err != nil {
			return err
		}
	}
	if nodes.Len() == 0 {
		return errNoValue
	}
	if err := l.Reach(&nodes, back); err != nil {
		return err
	}
	if parts[1].more && (p.tooFar == 0 || need < p.tooFar) {
		p.tooFar = need
	}
	return nil
}

// keepParts keeps parts that were read of the value that s stands for, for those who will use them.
func (e *Entry) keepParts(s *unloaded, parts []partRead) error {
	was := e.size()
	own := s.own()
	for i := range parts {
		s.ks.shards[e.shard].stats.LoadedParts += int64(max(len(parts[i].list), 1))
	}
	if kinds[e.typ].ahead != nil || e.typ == List {
		if own.some == nil {
			var err error
			if own.some, err = e.newPartial(s); err != nil {
				return err
			}
		}
		if e.typ == List {
			if err := own.some.reach(parts); err != nil {
				return err
			}
			parts = nil
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
