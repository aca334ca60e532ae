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
	db       uint16
	shard    uint8
	typ      Type
}

// Key returns the key.
func (e *Entry) Key() string { return e.key }

// DB returns the number of the database the entry is in.
func (e *Entry) DB() int { return int(e.db) }

// Type returns the type of the value.
func (e *Entry) Type() Type { return e.typ }

// Deadline returns when the entry expires, in ms since 1970; 0 if it does not.
func (e *Entry) Deadline() int64 { return e.deadline }

// Access returns when the entry was last read or written, in s since 1970.
func (e *Entry) Access() int64 { return int64(e.access) }

// Bytes returns the value of a string: a view that is valid until the entry changes.
func (e *Entry) Bytes() []byte { return e.str }

// SetBytes stores a copy of v as the value of a string, in place where it fits without waste.
func (e *Entry) SetBytes(v []byte) {
	if c := cap(e.str); len(v) > c || c > 2*len(v)+32 {
		e.str = make([]byte, len(v))
	}
	e.str = e.str[:copy(e.str[:len(v)], v)]
}

// ReplaceBytes makes v, which the entry owns from now on, the value of a string.
func (e *Entry) ReplaceBytes(v []byte) { e.str = v }

// List returns the value of a list.
func (e *Entry) List() *lists.List { return e.obj.(*lists.List) }

// Set returns the value of a set.
func (e *Entry) Set() *sets.Set { return e.obj.(*sets.Set) }

// ZSet returns the value of a sorted set.
func (e *Entry) ZSet() *zsets.ZSet { return e.obj.(*zsets.ZSet) }

// Hash returns the value of a hash.
func (e *Entry) Hash() *hashes.Hash { return e.obj.(*hashes.Hash) }

// Stream returns the value of a stream.
func (e *Entry) Stream() *streams.Stream { return e.obj.(*streams.Stream) }

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
