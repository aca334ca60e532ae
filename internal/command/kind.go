package command

import "github.com/atomredis/atomredis/engine"

// Kind is what commands on keys of any type must know of a type of values. The package of the type's commands
// registers it.
type Kind struct {
	// Number is that of the type as Redis counts them.
	Number uint32
	// Encoding returns the name that OBJECT ENCODING has for the representation.
	Encoding func(e *engine.Entry) string
	// Rebuild encodes the commands that make the value.
	Rebuild func(r *Rebuilder, key []byte, e *engine.Entry)
	// Digest adds the value to a digest.
	Digest func(d *Digest, e *engine.Entry)
	// Links calls fn with the other keys of the database that know the key by its name; nil if there are none.
	Links func(e *engine.Entry, fn func(key string))
	// Renamed tells those keys that an entry of the kind has another key than it had. The guard holds their shards.
	Renamed func(c *Ctx, e *engine.Entry, was string)
}

// kinds are those of all types, by their numbers.
var kinds = map[engine.Type]Kind{}

// RegisterKind says what a type is. It is called while the program starts.
func RegisterKind(t engine.Type, k Kind) { kinds[t] = k }

// HoldsLinks reports whether the guard holds the shards of the keys that know an entry by its name; see Holds.
func (c *Ctx) HoldsLinks(e *engine.Entry) bool {
	var shards uint64
	if links := kinds[e.Type()].Links; links != nil {
		links(e, func(key string) { shards |= c.G.Keyspace().ShardOf([]byte(key)) })
	}
	return shards == 0 || c.Holds(shards)
}

// Renamed tells the keys that knew an entry by the key that it had before. HoldsLinks has been true.
func (c *Ctx) Renamed(e *engine.Entry, was string) {
	if renamed := kinds[e.Type()].Renamed; renamed != nil {
		renamed(c, e, was)
	}
}

// EncodingOf returns the name that OBJECT ENCODING has for the representation of a value.
func EncodingOf(e *engine.Entry) string { return kinds[e.Type()].Encoding(e) }
