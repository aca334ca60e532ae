// Package delta records which parts of a large value differ from their stored form, so that a checkpoint writes only
// those. While the checkpoint is written, it keeps the parts as they were when it began.
//
// A part is stored under a name of its own: a field of a hash, a member of a set, a node of a list, a block of a
// stream. Only values too large to be written whole have parts.
//
// Recording must never make a client wait. Names are listed in chunks. Where parts come and go so often that the list
// would not end, it moves into a set, a few names at a time. In hashes and sorted sets a bit per element
// (dict.Table.Mark) says that its name is already recorded.
package delta

import (
	"slices"
	"strings"
	"unsafe"
)

// Epochs counts the checkpoints that have begun. All values of a keyspace share one; it changes only while no value can
// change. Current starts at 1.
type Epochs struct{ Current uint32 }

// Parts is a value that is stored in parts.
type Parts interface {
	// AppendPart appends the stored form of a part to dst; ok is false if the value has no such part.
	AppendPart(dst []byte, name string) (out []byte, ok bool)
}

// Log is the record of one value's changes. It is protected by the value's lock. The methods Before and After may be
// called on a nil *Log, which records nothing.
type Log struct {
	// ID is the number under which the parts are stored; no other value ever had it. It is 0 if the value is not
	// stored: then only changes that a copy needs are recorded.
	ID uint64

	epochs *Epochs
	epoch  uint32    // the epoch of names
	names  *Names    // changed in this epoch; nil if there are none
	last   [2]string // the last two of names

	// Until the checkpoint that began this epoch has read the value:
	frozen *Names           // parts that had changed when it began; nil if there were none
	saved  map[string]saved // the old state of parts that have changed since then

	copies []*Copy // those under way
}

// Copy has the old state of the parts that have changed since it began.
type Copy struct{ parts map[string]saved }

// Cursor is a place in a walk through the parts of a value. The zero value is the beginning.
type Cursor struct {
	Number uint64
	Name   string
}

type saved struct {
	data   []byte
	exists bool
}

// NewLog returns the log of a value that is stored under id and has no changes.
func NewLog(id uint64, epochs *Epochs) *Log {
	return &Log{ID: id, epochs: epochs, epoch: epochs.Current}
}

// Before must be called before a part of p changes, appears or goes. name is not kept.
func (l *Log) Before(name []byte, p Parts) {
	if l == nil {
		return
	}
	if l.epoch != l.epochs.Current {
		l.roll()
	}
	if l.saved == nil && len(l.copies) == 0 {
		return
	}
	view := unsafe.String(unsafe.SliceData(name), len(name))
	var kept string
	var was saved
	keep := func(in map[string]saved) {
		if _, isKept := in[view]; isKept || in == nil {
			return
		}
		if kept == "" {
			kept = strings.Clone(view)
			was.data, was.exists = p.AppendPart(nil, view)
		}
		in[kept] = was
	}
	keep(l.saved)
	for _, c := range l.copies {
		keep(c.parts)
	}
}

// Adopt assigns the changes recorded so far, while the value belonged to no key, to the present epoch.
func (l *Log) Adopt() { l.epoch = l.epochs.Current }

// Epoch returns the number of the present epoch, which lasts at least until the next call of Before.
func (l *Log) Epoch() uint32 { return l.epoch }

// Quiet reports whether Before has nothing to do in the present epoch, and Epoch is its number.
func (l *Log) Quiet() bool {
	return l.epoch == l.epochs.Current && l.saved == nil && len(l.copies) == 0
}

// After must be called, after Before, with the name of a part that has changed, appeared or gone. A caller may skip it
// if it has called it with this name in this epoch. The string is kept and must never change. parts is the number of
// parts of the value, or 0 if they are few or always the same.
func (l *Log) After(name string, parts int) {
	if l == nil || l.ID == 0 {
		return
	}
	if l.names == nil {
		l.names, l.last = new(Names), [2]string{name, name}
	} else if name == l.last[0] || name == l.last[1] {
		return // the ends of lists and streams change again and again
	}
	l.names.add(name, parts)
	l.last[0], l.last[1] = name, l.last[0]
}

// roll begins a new epoch: the changes recorded so far belong to the checkpoint.
func (l *Log) roll() {
	l.epoch = l.epochs.Current
	if l.names != nil {
		l.frozen, l.names = l.names, nil
		l.saved = map[string]saved{}
	}
}

// Frozen returns the names of the parts that had changed when the present epoch began, nil if there are none. They
// are immutable, so that they can be read without the value's lock.
func (l *Log) Frozen() *Names {
	if l.epoch != l.epochs.Current {
		l.roll()
	}
	return l.frozen
}

// AppendFrozen appends the stored form of a part of p, as it was when the present epoch began; ok is false if p had
// no such part then.
func (l *Log) AppendFrozen(dst []byte, name string, p Parts) (out []byte, ok bool) {
	if s, found := l.saved[name]; found {
		return append(dst, s.data...), s.exists
	}
	return p.AppendPart(dst, name)
}

// Done ends the reading for a checkpoint and drops the frozen state.
func (l *Log) Done() { l.frozen, l.saved = nil, nil }

// Abort ends a checkpoint that has failed: the names in frozen, which Frozen returned, count as changed again.
func (l *Log) Abort(frozen *Names) {
	for name := range frozen.all() {
		l.After(name, frozen.len())
	}
	l.Done()
}

// Clean reports whether the value equals its stored form.
func (l *Log) Clean() bool { return l.names == nil && l.frozen == nil }

// NewCopyLog returns a log for the duration of a copy of a value that is not stored.
func NewCopyLog() *Log { return &Log{epochs: new(Epochs)} }

// BeginCopy makes the log preserve the present state of all parts, until EndCopy.
func (l *Log) BeginCopy() *Copy {
	c := &Copy{map[string]saved{}}
	l.copies = append(l.copies, c)
	return c
}

// Copying reports whether there are copies under way.
func (l *Log) Copying() bool { return l != nil && len(l.copies) > 0 }

// Touched reports whether a part has changed, appeared or gone since BeginCopy.
func (c *Copy) Touched(name string) bool {
	_, ok := c.parts[name]
	return ok
}

// Ended reports whether EndCopy has been called.
func (c *Copy) Ended() bool { return c.parts == nil }

// EndCopy ends a copy and calls fn with the old state of the parts that have changed or gone since BeginCopy. fn may
// keep both arguments.
func (l *Log) EndCopy(c *Copy, fn func(name string, data []byte)) {
	i := slices.Index(l.copies, c)
	l.copies = slices.Delete(l.copies, i, i+1)
	for name, s := range c.parts {
		if s.exists {
			fn(name, s.data)
		}
	}
	c.parts = nil
}
