package command

import (
	"fmt"

	"github.com/atomredis/atomredis/engine"
)

// Kind describes a type of values for commands on keys of any type. The package of the type's commands registers it.
type Kind struct {
	// Number is Redis's number of the type.
	Number uint32
	// Encoding returns the reply of OBJECT ENCODING.
	Encoding func(e *engine.Entry) string
	// Rebuild encodes the commands that make the value.
	Rebuild func(r *Rebuilder, key []byte, e *engine.Entry)
	// Digest adds the value to a digest.
	Digest func(d *Digest, e *engine.Entry)
	// Links calls fn with the other keys of the database that refer to this key by its name; nil if the kind has no
	// such links.
	Links func(e *engine.Entry, fn func(key string))
	// Renamed updates the linked keys after an entry has been renamed from was. The guard holds their shards.
	Renamed func(c *Ctx, e *engine.Entry, was string)
}

// kinds are the kinds of all types.
var kinds = map[engine.Type]Kind{}

// RegisterKind registers the kind of a type. It is called while the program starts, and panics if the kind lacks a function that
// commands on keys of any type call.
func RegisterKind(t engine.Type, k Kind) {
	if k.Encoding == nil || k.Rebuild == nil || k.Digest == nil {
		panic(fmt.Sprint("incomplete kind of the type ", t))
	}
	kinds[t] = k
}

// HoldsLinks reports whether the guard holds the shards of the keys that an entry is linked with; see Holds.
func (c *Ctx) HoldsLinks(e *engine.Entry) bool {
	var shards uint64
	if links := kinds[e.Type()].Links; links != nil {
		links(e, func(key string) { shards |= c.G.Keyspace().ShardOf([]byte(key)) })
	}
	return shards == 0 || c.Holds(shards)
}

// Renamed updates the linked keys after an entry has been renamed from was. HoldsLinks has returned true.
func (c *Ctx) Renamed(e *engine.Entry, was string) {
	if renamed := kinds[e.Type()].Renamed; renamed != nil {
		renamed(c, e, was)
	}
}

// EncodingOf returns the reply of OBJECT ENCODING for a value.
func EncodingOf(e *engine.Entry) string { return kinds[e.Type()].Encoding(e) }
