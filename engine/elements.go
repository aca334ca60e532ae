package engine

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/streams"
)

// Parts of a value that is stored in parts and not in memory: a command that needs a few of them reads only these.

const (
	// fewParts is of how many parts at most no more than these are read.
	fewParts = 64
	// fewRest is how many parts a stream may have at most that are not blocks for them to be read without the others.
	fewRest = 1024
)

// Some says which parts of a value are needed.
type Some struct {
	// names of elements, in order and each once
	names [][]byte
	// or of a stream these entries, and what it has beside entries
	entries   bool
	stretches []streams.Stretch
	lacks     []streams.Lack // what of them was not there when they were asked for
	rest      bool           // what it has beside entries was not there either
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

// partRead is a part that was read, or a list of parts; there is none of that name if it is not ok.
type partRead struct {
	name           []byte
	data, deadline []byte // what is stored under parts and fieldParts; no deadline if that is nil
	ok             bool
	list           []partRead
	more           bool  // there are more in the list than were read
	end            *Some // with which the list was read, if it is of the end of a list
	blocks         *streams.Blocks
}

// count returns how many parts that are.
func (p *partRead) count() int {
	if p.blocks != nil {
		return p.blocks.Len()
	}
	return max(len(p.list), 1)
}

// Elements returns an entry for reading and changing the elements of a hash, a set or a sorted set that are named at the
// beginning of each step of list, and no others: the entry itself or, if its value is stored in parts and not in memory,
// another one that has these elements and few others. Changes are reported for the entry itself, and its Count is the
// number of elements afterwards. It panics as reading the value does.
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

// Entries returns an entry for reading and changing a stream that has these entries, the stream's metadata, and some other
// entries, as Elements does for other collections.
func (e *Entry) Entries(need ...streams.Stretch) *Entry {
	if !e.InParts() {
		return e
	}
	some := &Some{entries: true, stretches: slices.Clone(need)}
	for s := e.unloaded(); e.mayHave(some); {
		if s.hasRead(some) {
			return &s.some.view
		}
		own := some.bounded(s)
		if slices.ContainsFunc(own.lacks, func(l streams.Lack) bool { return l.Blocks >= fewParts }) {
			return e
		}
		e.bring(s, own)
	}
	return e
}

// bounded adds the parts in memory of the value that s stands for, if that is a list.
func (some *Some) bounded(s *unloaded) *Some {
	own := *some
	switch {
	case some.entries:
		of := noEntries
		if own.rest = s.some == nil; !own.rest {
			of = s.some.value.(*streams.Stream)
		}
		own.lacks = nil
		for _, need := range some.stretches {
			if l, lacks := of.Lack(need); lacks {
				own.lacks = append(own.lacks, l)
			}
		}
		return &own
	case some.front == 0 && some.back == 0:
		return some
	}
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

// noEntries lacks everything.
var noEntries = streams.NewPartial(0, nil)

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
	case some.entries:
		return e.typ == Stream && s.length != 0 && !s.whole
	case some.front > 0 || some.back > 0:
		return e.typ == List && s.length != 0 && !s.some.isTooFar(max(some.front, some.back))
	}
	return s.length != 0 && (some.count || kinds[e.typ].ahead != nil)
}

// bring brings parts into memory that are not there, as load does with a whole value.
func (e *Entry) bring(s *unloaded, some *Some) {
	if g := s.ks.shards[e.shard].waits; g != nil && g.canWait() {
		g.onAway(&Away{s.ks.spaces[e.space].db, e.Key(), some})
	}
	parts, err := s.ks.readParts(s.numbers(), some)
	if err == nil {
		err = e.keepParts(s, parts)
	}
	if err != nil {
		panic(&LoadError{e.Key(), err})
	}
}

// bytesRead returns about how many bytes the parts take that were read of the value.
func (s *unloaded) bytesRead() int {
	if s.some != nil {
		return s.some.size()
	}
	return 0
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
	if some.entries {
		return s.some != nil && !slices.ContainsFunc(some.stretches, func(need streams.Stretch) bool {
			_, lacks := s.some.value.(*streams.Stream).Lack(need)
			return lacks
		})
	}
	return some.count || some.small || s.some != nil && s.some.knowsAll(some.names, 1)
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
	if some.entries {
		return ks.readEntries(s, some)
	}
	return parts, nil
}

// readEntries reads parts of a stream.
func (ks *Keyspace) readEntries(s partNumbers, some *Some) (parts []partRead, err error) {
	if some.rest {
		var p partRead
		from, to := streams.RestParts()
		err = ks.source.PartsBetween(s.parts, from, to, false, func(name, data []byte) bool {
			if bytes.Compare(name, from) < 0 {
				return true // the last one before them
			}
			if p.more = len(p.list) == fewRest; !p.more {
				p.list = append(p.list, partRead{name: slices.Clone(name), data: slices.Clone(data), ok: true})
			}
			return !p.more
		})
		if parts = append(parts, p); p.more || err != nil {
			return parts, err
		}
	}
	for _, l := range some.lacks {
		r := streams.NewBlocks(l)
		from, to, reverse := l.Between()
		var failed error
		err = ks.source.PartsBetween(s.parts, from, to, reverse, func(name, data []byte) (more bool) {
			more, failed = r.Add(name, data, fewParts)
			return more
		})
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		parts = append(parts, partRead{blocks: r})
	}
	return parts, nil
}

// reachEntries takes the parts that readEntries has read. Unless parts of the value are in memory already, the stream's
// metadata must be among them. Two readers may have read the same parts.
func (p *partial) reachEntries(parts []partRead, first bool) error {
	of := p.value.(*streams.Stream)
	for i := range parts {
		switch {
		case parts[i].blocks != nil:
			if err := of.Reach(parts[i].blocks); err != nil {
				return err
			}
		case first:
			err := of.SetRest(func(yield func(name, data []byte) bool) {
				for _, part := range parts[i].list {
					if !yield(part.name, part.data) {
						return
					}
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
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

// keepParts keeps parts that were read of the value that s stands for, for later commands.
func (e *Entry) keepParts(s *unloaded, parts []partRead) error {
	was := e.size()
	own := s.own()
	for i := range parts {
		s.ks.shards[e.shard].stats.LoadedParts += int64(parts[i].count())
		if e.typ == Stream && parts[i].more {
			own.whole = true
			s.ks.resized(e, was)
			return nil
		}
	}
	first := own.some == nil
	if first {
		var err error
		if own.some, err = e.newPartial(s); err != nil {
			return err
		}
	}
	switch e.typ {
	case List:
		if err := own.some.reach(parts); err != nil {
			return err
		}
	case Stream:
		if err := own.some.reachEntries(parts, first); err != nil {
			if first {
				own.some = nil
			}
			return err
		}
	default:
		for i := range parts {
			if err := own.some.learn(&parts[i]); err != nil {
				return err
			}
		}
	}
	s.ks.resized(e, was)
	if s.ks.tiering {
		s.ks.enlist(e)
	}
	return nil
}
