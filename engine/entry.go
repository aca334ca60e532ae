package engine

import (
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
)

// Type is the type of a value.
type Type uint8

// The types of values.
const (
	String Type = iota
	List
	Set
	ZSet
	Hash
	Stream
)

var typeNames = [...]string{"string", "list", "set", "zset", "hash", "stream"}

// String returns the name that TYPE answers.
func (t Type) String() string { return typeNames[t] }

// ParseType returns the type that TYPE names so.
func ParseType(name string) (Type, bool) {
	for i, n := range typeNames {
		if n == name {
			return Type(i), true
		}
	}
	return 0, false
}

// Entry is one key of a database with its value, deadline and time of last access. Entries are reached only through a
// Guard that holds their shard, and are valid only while it does.
type Entry struct {
	key      string
	str      []byte // the value of a string, owned by the entry
	obj      any    // the value of everything else
	deadline int64  // unix time in ms; 0 = never expires
	slot     int32  // place in the shard's deadline index
	access   uint32 // unix time in s of the last access
	space    uint32 // index in Keyspace.spaces
	shard    uint8
	typ      Type
	flags    flags
}

// flags is what storage knows of an entry.
type flags uint8

const (
	flagOdd      flags = 1 << iota // changed since the checkpoint before last or the last one; which one alternates:
	flagEven                       // see Keyspace.mark and frozenMark
	flagRemoved                    // not in its database any more
	flagStored                     // the store may have the key
	flagExternal                   // the store may have a value apart from the head
	flagParts                      // the value is stored in parts
)

// Key returns the key.
func (e *Entry) Key() string { return e.key }

// Type returns the type of the value.
func (e *Entry) Type() Type { return e.typ }

// Deadline returns when the entry expires, in ms since 1970; 0 if it does not.
func (e *Entry) Deadline() int64 { return e.deadline }

// Access returns when the entry was last read or written, in s since 1970.
func (e *Entry) Access() int64 { return int64(e.access) }

// Load brings the value into memory if it is not there. Reading it does so too; a command that changes something else before
// calls Load at first, because reading may fail.
func (e *Entry) Load() {
	if _, ok := e.obj.(*unloaded); ok {
		e.load()
	}
}

// LoadWhole is Load for a command that will only move the value: one that is stored in parts can be moved where it is.
func (e *Entry) LoadWhole() {
	if s, ok := e.obj.(*unloaded); ok && s.parts == 0 {
		e.load()
	}
}

// Bytes returns the value of a string: a view that is valid until the entry changes.
func (e *Entry) Bytes() []byte {
	if e.obj != nil {
		e.load()
	}
	return e.str
}

// SetBytes stores a copy of v as the value of a string, in place where it fits without waste.
func (e *Entry) SetBytes(v []byte) {
	e.obj = nil
	if c := cap(e.str); len(v) > c || c > 2*len(v)+32 {
		e.str = make([]byte, len(v))
	}
	e.str = e.str[:copy(e.str[:len(v)], v)]
}

// ReplaceBytes makes v, which the entry owns from now on, the value of a string.
func (e *Entry) ReplaceBytes(v []byte) { e.str, e.obj = v, nil }

// List returns the value of a list.
func (e *Entry) List() *lists.List { return collection[*lists.List](e) }

// Set returns the value of a set.
func (e *Entry) Set() *sets.Set { return collection[*sets.Set](e) }

// ZSet returns the value of a sorted set.
func (e *Entry) ZSet() *zsets.ZSet { return collection[*zsets.ZSet](e) }

// Hash returns the value of a hash.
func (e *Entry) Hash() *hashes.Hash { return collection[*hashes.Hash](e) }

// Stream returns the value of a stream.
func (e *Entry) Stream() *streams.Stream { return collection[*streams.Stream](e) }

// collection returns the value of an entry, which it brings into memory if it is not there.
func collection[T any](e *Entry) T {
	v, ok := e.obj.(T)
	if !ok {
		e.load()
		v = e.obj.(T)
	}
	return v
}

// SetSlot implements expiry.Item.
func (e *Entry) SetSlot(slot int) { e.slot = int32(slot) }

// Slot implements expiry.Item.
func (e *Entry) Slot() int { return int(e.slot) }

// typeOf returns the type of a collection, as New functions of the data structures give it.
func typeOf(value any) Type {
	switch value.(type) {
	case *lists.List:
		return List
	case *sets.Set:
		return Set
	case *zsets.ZSet:
		return ZSet
	case *hashes.Hash:
		return Hash
	case *streams.Stream:
		return Stream
	}
	panic("engine: not a collection")
}

func (e *Entry) cloneValue() (str []byte, obj any) {
	e.Load()
	switch v := e.obj.(type) {
	case *lists.List:
		return nil, v.Clone()
	case *sets.Set:
		return nil, v.Clone()
	case *zsets.ZSet:
		return nil, v.Clone()
	case *hashes.Hash:
		return nil, v.Clone()
	case *streams.Stream:
		return nil, v.Clone()
	}
	return append([]byte(nil), e.str...), nil
}
