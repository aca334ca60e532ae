package engine

import (
	"bytes"
	"slices"

	"github.com/atomredis/atomredis/engine/delta"
)

// Elements of a value that is stored in parts and not in memory: who needs a few of them reads these and not all.

const (
	// fewElements is of how many elements at most no more than these are read.
	fewElements = 64
	// keptElements is how many bytes of elements are kept with a value that is not in memory; those that were read last
	// are kept in any case.
	keptElements = 64 << 10
)

// partRead is an element that was read; there is none of that name if it is not ok.
type partRead struct {
	name           []byte
	data, deadline []byte // what is stored under parts and fieldParts; no deadline if that is nil
	ok             bool
}

// Elements returns an entry for reading the elements of a hash, a set or a sorted set that have the given names, and
// no others: the entry itself or, if its value is stored in parts and not in memory, another one in which is no more
// than that. It panics as reading the value does.
func (e *Entry) Elements(names ...[]byte) *Entry {
	if e.flags&(flagUnloaded|flagParts) != flagUnloaded|flagParts {
		return e
	}
	wanted := e.someElements(names) // names must not escape: they are an argument of every reading command
	s := e.unloaded()
	if wanted == nil || s.coming != nil {
		return e
	}
	if !s.hasRead(wanted) {
		if g := s.ks.shards[e.shard].waits; g != nil && g.canWait() {
			panic(&Away{s.ks.spaces[e.space].db, e.Key(), wanted})
		}
		parts, err := s.ks.readElements(s, wanted)
		if err != nil {
			panic(&LoadError{e.Key(), err})
		}
		e.keepElements(s, parts, nil)
	}
	v, err := s.ks.load(e.typ, s.parts, s.fieldParts, func(id uint64, fn func(name, data []byte) error) error {
		for _, name := range wanted {
			var err error
			switch p := s.read[string(name)]; {
			case p.ok && id == s.parts:
				err = fn(name, p.data)
			case p.ok && p.deadline != nil:
				err = fn(name, p.deadline)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(uint64) *delta.Log { return nil })
	if err != nil {
		panic(&LoadError{e.Key(), err})
	}
	some := &Entry{}
	some.setText(e.Key(), nil)
	some.setCollection(v)
	return some
}

// someElements returns the names of elements in order, each once, as copies; nil if all of the value is to be read.
func (e *Entry) someElements(names [][]byte) [][]byte {
	if len(names) == 0 || len(names) > fewElements || e.flags&flagParts == 0 || kinds[e.typ].ahead == nil ||
		e.unloaded().overdue {
		return nil
	}
	list := make([][]byte, 0, len(names))
	for _, name := range names {
		list = append(list, slices.Clone(name))
	}
	slices.SortFunc(list, bytes.Compare)
	return slices.CompactFunc(list, bytes.Equal)
}

// keepElements keeps elements that were read of the value that s stands for, for those who will use them.
func (e *Entry) keepElements(s *unloaded, parts []partRead, err error) {
	if err != nil {
		return // whoever uses them tries again, and gets the error
	}
	was, n := e.size(), 0
	for i := range parts {
		n += parts[i].size()
	}
	if s.read == nil || s.readBytes+n > keptElements {
		s.read, s.readBytes = map[string]partRead{}, 0
	}
	for _, p := range parts {
		s.read[string(p.name)] = p
	}
	s.readBytes += n
	s.ks.resized(e, was)
	if s.ks.tiering {
		s.ks.enlist(e)
	}
}

// size returns about how many bytes an element takes that is kept.
func (p *partRead) size() int { return 128 + len(p.name) + len(p.data) + len(p.deadline) }

// hasRead reports whether all of some elements were read.
func (s *unloaded) hasRead(names [][]byte) bool {
	for _, name := range names {
		if _, ok := s.read[string(name)]; !ok {
			return false
		}
	}
	return true
}

// readElements reads elements from the store. It needs no lock.
func (ks *Keyspace) readElements(s *unloaded, names [][]byte) ([]partRead, error) {
	parts := make([]partRead, len(names))
	for i, name := range names {
		p := &parts[i]
		p.name = name
		var err error
		if p.data, p.ok, err = ks.source.Part(s.parts, name); err != nil {
			return nil, err
		}
		if p.ok && s.fieldParts != 0 {
			if p.deadline, _, err = ks.source.Part(s.fieldParts, name); err != nil {
				return nil, err
			}
		}
	}
	return parts, nil
}
