package engine

import (
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/runs"
	"github.com/atomredis/atomredis/engine/streams"
)

// Collections with only some elements in memory, and all others in the store. They change like any other: changed
// elements are in memory, are recorded there, and are written by the next checkpoint. A command that needs more than
// some elements loads the rest.

// partial is the part of a collection in memory. Its entry counts as unloaded. A list has its ends there, and a stream
// some blocks and its other data; both know by themselves how much that is and how many elements are missing.
type partial struct {
	value countedValue
	view  Entry // the entry through which value is used

	tooFar int // this many elements from an end of a list span too many parts to be read separately; 0 if unknown

	known map[string]struct{}
	names []string // the names in known: requested elements, whether they exist or not; only grows
	rest  int      // number of elements that are not in value
	bytes int      // about how many bytes known and names take
}

type countedValue interface {
	value
	counted
}

// elements is a value whose parts are its elements.
type elements interface {
	countedValue
	// PutPart sets an element to its stored value and deadline (nil for none); DropPart removes an element. Neither
	// counts as a change.
	PutPart(name, data, deadline []byte) error
	DropPart(name []byte)
}

// partial returns the part in memory of an unloaded value, nil if there is none.
func (e *Entry) partial() *partial {
	if e.flags&flagUnloaded == 0 {
		return nil
	}
	return e.unloaded().some
}

// newPartial returns a partial without elements.
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

// learn adds an element that was read, unless it is already in memory: there it may have changed.
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

// knownBytes is about how many bytes a known element takes beside its name and value.
const knownBytes = 64

// size returns how many bytes are in memory.
func (p *partial) size() int { return int(unsafe.Sizeof(*p)) + p.bytes + p.value.MemoryUsage() }

// complete returns the whole value: v, which was read from the store, with the elements in memory replacing the stored
// ones. It records changes from now on. Snapshots and checkpoints may still read the partial value, which does not
// change.
func (p *partial) complete(v value) (value, error) {
	switch of := p.value.(type) {
	case *lists.List:
		return of, of.Fill(v.(*lists.List))
	case *streams.Stream:
		return of, of.Fill(v.(*streams.Stream))
	}
	whole := v.(elements)
	var data, deadline []byte
	index := deadlineIndex(p.value)
	for _, name := range p.names {
		var ok bool
		if data, ok = p.value.AppendPart(data[:0], name); !ok {
			whole.DropPart(bytesOf(name))
			continue
		}
		var at []byte
		if deadline, ok = index.AppendPart(deadline[:0], name); ok {
			at = deadline
		}
		if err := whole.PutPart(bytesOf(name), data, at); err != nil {
			return nil, err
		}
	}
	whole.Attach(p.value.Log())
	if index != nil {
		deadlineIndex(whole).Attach(index.Log())
	}
	return whole, nil
}

// held describes which parts of a value are in memory: those with these names; or, with gap, those outside of (after,
// before); or those for which known returns true. A nil *held means all.
type held struct {
	names         []string
	known         func(name string) bool
	gap           bool
	after, before string // no upper bound if before is empty
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

// has returns a function that reports whether a part is in memory.
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

// merge calls fn with the parts in memory, which are sorted, and the store's other parts, in the order of their names.
func (h *held) merge(parts []runs.Part, store func(fn func(name, data []byte) error) error,
	fn func(name, data []byte) error) error {
	has := h.has()
	emit := func(until []byte, all bool) error {
		for ; len(parts) > 0 && (all || parts[0].Name < stringOf(until)); parts = parts[1:] {
			if !has(parts[0].Name) {
				continue // requested later, so the store's version is current
			}
			if err := fn(bytesOf(parts[0].Name), bytesOf(parts[0].Data)); err != nil {
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

// log returns the log of the data stored under a number.
func (at *stored) log(id uint64) *delta.Log {
	if id == at.parts {
		return at.logs[0]
	}
	return at.logs[1]
}
