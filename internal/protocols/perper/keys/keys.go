// Package keys has the names of the keys and channels of Perper's caches.
package keys

import (
	"strconv"
)

// Prefix is what the keys of all caches begin with. The name of the cache follows in braces, so that a cluster has all
// keys of a cache in one slot: "perper:{name}" is the hash from its encoded keys to its encoded values.
const Prefix = "perper:"

// The suffixes of the other keys of a cache. Config is there as long as the cache is; the others only while they have
// something.
const (
	Config   = ":config"   // a string: the configuration as it came, empty if there came none
	Order    = ":order"    // a sorted set of the keys that are longs, as OrderOf has them, all with score 0
	Inserted = ":inserted" // a sorted set of the same, by the order in which they came
	Expires  = ":expires"  // a sorted set of the encoded keys that expire, by when that is, in ms since 1970
)

// The keys that all caches have together.
const (
	Caches    = Prefix + "caches"    // a hash from the ids of caches, in decimal, to their names
	Types     = Prefix + "types"     // a hash from the ids of types, in decimal, to what is registered of them
	TypeNames = Prefix + "typenames" // a hash from "platform:id" to the names that types have there
)

// The caches of the Fabric.
const (
	Executions      = "executions"
	StreamListeners = "stream-listeners"
)

// Of returns the key of a cache with a suffix, or "" for the hash of its values.
func Of(cache, suffix string) string { return Prefix + "{" + cache + "}" + suffix }

// Events returns the channel for changes of a cache. Package event reads them.
func Events(cache string) string { return Of(cache, ":events") }

// orderLen is the length of what OrderOf returns.
const orderLen = 16

// OrderOf returns a text of a key that is a long; texts have the order of their keys.
func OrderOf(n int64) []byte {
	const digits = "0123456789abcdef"
	u := uint64(n) ^ 1<<63
	b := make([]byte, orderLen)
	for i := range b {
		b[i] = digits[u>>(60-4*i)&15]
	}
	return b
}

// FromOrder returns the key that has a text; ok is false if none has.
func FromOrder(b []byte) (n int64, ok bool) {
	if len(b) != orderLen {
		return 0, false
	}
	u, err := strconv.ParseUint(string(b), 16, 64)
	return int64(u ^ 1<<63), err == nil
}
