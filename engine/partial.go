package engine

import (
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/streams"
)

// Collections of which only some elements are in memory, and all others in the store. They change like any other: changed
// elements are in memory, are recorded there, and are written by the next checkpoint. A command that needs more than some
// elements completes the value.

// partial is the part of a collection that is in memory. Its entry counts as one whose value is not. Of a list there are
// the ends, and of a stream some blocks and what it has beside: how much, and how many elements there are beside, these
// know themselves.
type partial struct {
	value countedValue
	view  Entry // through which value is used

	tooFar int // so many elements from an end of a list are too many to be read without all others; 0 if not known

	known map[string]struct{}
	names []string // those in known: the elements that were asked for, whether they exist or not. It only grows.
	rest  int      // how many elements there are beside those in value
	bytes int      // about how many bytes known and names take
}

type countedValue interface {
	value
	counted
}

// elements is a value whose parts are its elements.
type elements interface {
	countedValue
	// PutPart gives the value an element as it is stored, with a deadline if that is not nil; DropPart takes one away.
	// Neither counts as a change.
	PutPart(name, data, deadline []byte) error
	DropPart(name []byte)
}

// partial returns the part in memory of a value that is away, nil if no part is.
func (e *Entry) partial() *partial {
	if e.flags&flagUnloaded == 0 {
		return nil
	}
	return e.unloaded().some
}

// newPartial returns one of which nothing is known.
func (e *Entry) newPartial(s *unloaded) (*partial, error) {
	at := s.ks.whereStored(e, s)
	switch e.typ {
	case List:
		p := &partial{value: lists.NewPartial(int(s.length), s.ks.storedListLimit(), at.logs[0])}
		p.view.typ, p.view.obj = typeOf(p.value)
		return p, nil
	case Stream:
		p := &partial{value: streams.NewPartial(int(s.length), at.logs[0])}
		p.view.typ, p.view.obj = typeOf(p.value)
		return p, nil
	}
	nothing := func(uint64, func(name, data []byte) error) error { return nil }
	v, err := s.ks.load(e.typ, s.parts, s.fieldParts, nothing, at.log)
	if err != nil {
		return nil, err
	}
	p := &partial{value: v.(countedValue), known: map[string]struct{}{}, rest: int(s.length)}
	p.view.typ, p.view.obj = typeOf(v)
	return p, nil
}

func (p *partial) count() int { return p.value.Len() + p.rest }

// knowsAll reports whether the elements named at the beginning of each step of list are known.
func (p *partial) knowsAll(list [][]byte, step int) bool {
	for i := 0; i < len(list); i += step {
		if _, ok := p.known[string(list[i])]; !ok {
			return false
		}
	}
	return true
}

// learn takes an element that was read, unless it is in memory already: then it may have changed since.
func (p *partial) learn(read *partRead) error {
	if _, ok := p.known[string(read.name)]; ok {
		return nil
	}
	if read.ok {
		if err := p.value.(elements).PutPart(read.name, read.data, read.deadline); err != nil {
			return err
		}
		p.rest--
	}
	name := string(read.name)
	p.known[name] = struct{}{}
	p.names = append(p.names, name)
	p.bytes += len(name) + knownBytes
	return nil
}

// knownBytes is about how many bytes a known element takes beside its name and itself.
const knownBytes = 64

// size returns how many bytes there are in memory.
func (p *partial) size() int { return int(unsafe.Sizeof(*p)) + p.bytes + p.value.MemoryUsage() }

// complete returns the whole value: v, which was read from the store, with the elements in memory in place of the stored
// ones. It records changes from now on. Snapshots and checkpoints may still read the partial value, which stays as it is.
func (p *partial) complete(v value) (value, error) {
	switch of := p.value.(type) {
	case *lists.List:
		return of, of.Fill(v.(*lists.List))
	case *streams.Stream:
		return of, of.Fill(v.(*streams.Stream))
	}
	whole := v.(elements)
	var data, deadline []byte
	hash, _ := p.value.(*hashes.Hash)
	for _, name := range p.names {
		var ok bool
		if data, ok = p.value.AppendPart(data[:0], name); !ok {
			whole.DropPart(bytesOf(name))
			continue
		}
		at := deadline[:0]
		if hash == nil || hash.DeadlineIndex() == nil {
			at = nil
		} else if deadline, ok = hash.DeadlineIndex().AppendPart(at, name); ok {
			at = deadline
		} else {
			at = nil
		}
		if err := whole.PutPart(bytesOf(name), data, at); err != nil {
			return nil, err
		}
	}
	whole.Attach(p.value.Log())
	if hash != nil && hash.DeadlineIndex() != nil {
		whole.(*hashes.Hash).DeadlineIndex().Attach(hash.DeadlineIndex().Log())
	}
	return whole, nil
}

// held says which parts of a value memory has: those with these names or, if there is a gap, those that are not between
// two, or those that known says. nil if it has all.
type held struct {
	names         []string
	known         func(name string) bool
	gap           bool
	after, before string // no bound if before is empty
}

// held returns the elements in memory.
func (p *partial) held() *held {
	if l, ok := p.value.(*lists.List); ok {
		h := &held{gap: true}
		var away bool
		if h.after, h.before, away = l.Gap(); away {
			return h
		}
		return nil
	}
	if of, ok := p.value.(*streams.Stream); ok {
		if known := of.Known(); known != nil {
			return &held{known: known}
		}
		return nil
	}
	return &held{names: p.names}
}

// has returns a function that reports whether memory has a part.
func (h *held) has() func(name string) bool {
	if h.known != nil {
		return h.known
	}
	if h.gap {
		state := string(lists.StatePart())
		return func(name string) bool {
			return name == state || name <= h.after || h.before != "" && name >= h.before
		}
	}
	known := make(map[string]struct{}, len(h.names))
	for _, name := range h.names {
		known[name] = struct{}{}
	}
	return func(name string) bool {
		_, ok := known[name]
		return ok
	}
}

// merge calls fn with the parts that memory has, which are sorted, and those of the store that it has not, in the order
// of their names.
func (h *held) merge(parts []part, store func(fn func(name, data []byte) error) error,
	fn func(name, data []byte) error) error {
	has := h.has()
	emit := func(until []byte, all bool) error {
		for ; len(parts) > 0 && (all || parts[0].name < stringOf(until)); parts = parts[1:] {
			if !has(parts[0].name) {
				continue // it was asked for later, and is as it was
			}
			if err := fn(bytesOf(parts[0].name), bytesOf(parts[0].data)); err != nil {
				return err
			}
		}
		return nil
	}
	err := store(func(name, data []byte) error {
		if has(stringOf(name)) {
			return nil
		}
		if err := emit(name, false); err != nil {
			return err
		}
		return fn(name, data)
	})
	if err != nil {
		return err
	}
	return emit(nil, true)
}

// log returns the record of changes of the value that is stored under a number.
func (at *stored) log(id uint64) *delta.Log {
	if id == at.parts {
		return at.logs[0]
	}
	return at.logs[1]
}
