package engine

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/streams"
)

// A value may be stored in parts and not be in memory: a command that needs a few of the parts reads only these.

const (
	// fewParts is the number of parts up to which they are read separately.
	fewParts = 64
	// fewRest is the number of a stream's parts other than blocks up to which they are read without the blocks.
	fewRest = 1024
)

// Some says which parts of a value are needed: one of the following.
type Some struct {
	// the elements with these names, in order, each once
	names [][]byte
	// these entries of a stream, and its data beside entries
	entries   bool
	stretches []streams.Stretch
	lacks     []streams.Lack // needed entries that were absent from memory at the request
	rest      bool           // the data beside entries was absent too
	// or
	count bool // only the number of elements
	small bool // the whole value, unless it is stored in parts
	// the parts of a list with so many elements from the front, or from the back
	front, back int
	gap         held // what was in memory of the list at the request
}

// SomeElements returns the request for one element.
func SomeElements(name []byte) *Some { return &Some{names: [][]byte{slices.Clone(name)}} }

// OnlyCount returns the request for the number of elements.
func OnlyCount() *Some { return &Some{count: true} }

// UnlessLarge returns the request for a whole value, unless it is large.
func UnlessLarge() *Some { return &Some{small: true} }

// partRead is a part that was read, or a list of parts; ok is false if no part has this name.
type partRead struct {
	name           []byte
	data, deadline []byte // stored under parts and fieldParts; deadline is nil if there is none
	ok             bool
	list           []partRead
	more           bool  // not all parts of the list were read
	end            *Some // the request, for a list read from its end
	blocks         *streams.Blocks
}

// count returns the number of parts.
func (p *partRead) count() int {
	if p.blocks != nil {
		return p.blocks.Len()
	}
	return max(len(p.list), 1)
}

// Elements returns an entry for reading and changing only some elements of a hash, a set or a sorted set: those named
// at the beginning of each step of list. It is the entry itself or, if the value is stored in parts and not in memory,
// another one with these elements and few others. Changes are reported for the entry itself, and its Count is correct
// afterwards. Like any read of the value, it can panic.
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
		names = append(names, slices.Clone(list[i])) // a copy, because the argument must not escape
	}
	slices.SortFunc(names, bytes.Compare)
	some := &Some{names: slices.CompactFunc(names, bytes.Equal)}
	e.bring(s, some)
	return &s.some.view
}

// Ends returns an entry for reading and changing a list at its ends: only so many elements from the front and from the
// back are needed. It works as Elements does for other collections. The counts must include the elements that change
// and, at that end, one more that stays.
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

// Entries returns an entry for reading and changing a stream that has the needed entries, the stream's metadata, and
// some other entries. It works as Elements does for other collections.
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

// bounded adds to a request for a list or a stream what is in memory of the value that s replaces.
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

// noEntries lacks every entry.
var noEntries = streams.NewPartial(0, nil)

// isTooFar reports whether n elements from an end of a list are known to span too many parts.
func (p *partial) isTooFar(n int) bool { return p != nil && p.tooFar != 0 && n >= p.tooFar }

// someElements is a request for unspecified elements.
var someElements Some

// Size returns the number of bytes of a string, or of elements of a collection. It loads the value only if the store does not
// know the number.
func (e *Entry) Size() int {
	switch {
	case e.typ != String:
		return e.Count()
	case e.flags&flagUnloaded != 0 && e.unloaded().length != 0:
		return int(e.unloaded().length)
	}
	return len(e.Bytes())
}

// Count returns the number of elements of a collection. It loads the value only if the store does not know the number.
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

// counted is a collection whose number of elements is stored.
type counted interface{ Len() int }

// storedCount returns Head.Count of an entry.
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

// mayHave reports whether reading some parts of a value can suffice.
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

// bring loads missing parts into memory, as load does with a whole value.
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

// bytesRead returns about how many bytes the parts in memory take.
func (s *unloaded) bytesRead() int {
	if s.some != nil {
		return s.some.size()
	}
	return 0
}

// size returns the size of the stand-in in bytes.
func (s *unloaded) size() int {
	n := int(unsafe.Sizeof(*s)) + s.bytesRead()
	if s.particulars != s.ks.inParts {
		n += int(unsafe.Sizeof(*s.particulars))
	}
	return n
}

// hasRead reports whether the requested parts are in memory.
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

// partNumbers are the numbers under which a value's parts are stored, as in Head.
type partNumbers struct{ parts, fieldParts uint64 }

// numbers returns the value's part numbers. The caller holds its shard.
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

// readEntries reads the requested parts of a stream.
func (ks *Keyspace) readEntries(s partNumbers, some *Some) (parts []partRead, err error) {
	if some.rest {
		var p partRead
		from, to := streams.RestParts()
		err = ks.source.PartsBetween(s.parts, from, to, false, func(name, data []byte) bool {
			if bytes.Compare(name, from) < 0 {
				return true // the last part before them
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

// reachEntries adds the parts that readEntries has read. Unless parts of the value are in memory already, they must
// include the stream's metadata. Another reader may have added the same parts.
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

// readEnd reads parts next to the gap of a list: at the front if elements of it are requested, else at the back. The
// first part returned is the list's state.
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

// reach adds the parts that readEnd has read, unless the list's gap has changed meanwhile.
func (p *partial) reach(parts []partRead) error {
	l, some := p.value.(*lists.List), parts[1].end
	if after, before, ok := l.Gap(); !ok || after != some.gap.after || before != some.gap.before {
		return nil
	}
	if some.gap.after == "" && some.gap.before == "" { // nothing of the list was in memory
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

// keepParts keeps parts read of the value that s replaces, for later commands.
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
