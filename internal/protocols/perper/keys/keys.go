// Package keys has the names of the keys and channels of Perper's caches.
package keys

import (
	"strconv"
)

// Prefix is the prefix of the keys of all caches. The name of the cache follows in braces, so that a cluster has all
// keys of a cache in one slot: "perper:{name}" is the hash from its encoded keys to its encoded values.
const Prefix = "perper:"

// The suffixes of the other keys of a cache. Config exists as long as the cache; the others exist only while they
// are not empty.
const (
	Config   = ":config"   // a string: the configuration as received, empty without one
	Order    = ":order"    // a sorted set of the keys that are longs, encoded by OrderOf, all with score 0
	Inserted = ":inserted" // a sorted set of the same members, by order of insertion
	Expires  = ":expires"  // a sorted set of the encoded keys that expire, by deadline in ms since 1970
)

// Left is the suffix of a key that only the caches of the Fabric have: a sorted set of what nobody refers to by an entry
// of the cache, by the time in ms since 1970 at which it may be collected. For StreamListeners these are streams whose
// last listener has gone, for Executions the encoded keys of finished ones.
const Left = ":left"

// The keys that all caches share.
const (
	Caches    = Prefix + "caches"    // a hash from the ids of caches, in decimal, to their names
	Types     = Prefix + "types"     // a hash from the ids of types, in decimal, to the registered types
	TypeNames = Prefix + "typenames" // a hash from "platform:id" to the names that types have there
)

// State is a string: the state of the caches for thin clients, Inactive or ReadOnly. Without the key they are active.
const State = Prefix + "state"

// The states of the caches for thin clients.
const (
	Active   = "ACTIVE"
	Inactive = "INACTIVE"
	ReadOnly = "READONLY"
)

// The caches of the Fabric.
const (
	Executions      = "executions"
	StreamListeners = "stream-listeners"
)

// Of returns the key of a cache with a suffix; "" is the suffix of the hash of its values.
func Of(cache, suffix string) string { return Prefix + "{" + cache + "}" + suffix }

// Events returns the channel for changes of a cache. Package event reads them.
func Events(cache string) string { return Of(cache, ":events") }

// orderLen is the length of what OrderOf returns.
const orderLen = 16

// OrderOf encodes a key that is a long as a text; texts sort in the order of their keys.
func OrderOf(n int64) []byte {
	const digits = "0123456789abcdef"
	u := uint64(n) ^ 1<<63
	b := make([]byte, orderLen)
	for i := range b {
		b[i] = digits[u>>(60-4*i)&15]
	}
	return b
}

// FromOrder decodes a text of OrderOf; ok is false if it is invalid.
func FromOrder(b []byte) (n int64, ok bool) {
	if len(b) != orderLen {
		return 0, false
	}
	u, err := strconv.ParseUint(string(b), 16, 64)
	return int64(u ^ 1<<63), err == nil
}
