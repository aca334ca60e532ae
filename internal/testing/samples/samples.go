// Package samples has values of every type, changes of them, and words for what they have: for the tests of how values
// are stored, in memory, in the store, in RDB files. A type that is added gets an entry of Types, and all those tests
// run with it. It knows the types alone, not the keyspace.
package samples

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
)

// Type is a type of values.
type Type struct {
	// Name is what TYPE answers.
	Name string
	// Values makes values in every form that the type has, by their names: small and large ones. A value is a []byte, or
	// a collection. Nothing in them expires before Never.
	Values func() map[string]any
	// New makes a collection without elements, nil for strings.
	New func() any
	// Change changes a value a little at random, as commands do, at a time in ms since 1970, and returns it. It may leave
	// it without elements. What it makes expire does so by now+1000. A string is never changed in place.
	Change func(v any, rnd *rand.Rand, now int64) any
	// Empty reports whether a key with the value must go.
	Empty func(v any) bool
	// describe returns what the value has, what has no order sorted.
	describe func(v any) []string
	// hidden returns what the store keeps of a value beside that, and RDB files do not; it may be nil.
	hidden func(v any) []string
	// copied makes what COPY makes of a value; nil if that is the same.
	copied func(v any) any
}

// Types are all types.
var Types = []Type{text, list, set, zset, hash, stream, bloomFilter, document, cuckooFilter,
	countMin, topKList, tDigest, series, array, vectorSet, suggestions}

// Never is a time in ms since 1970 that no test reaches.
const Never = 1 << 47

// For returns the type of a value.
func For(v any) *Type {
	for i := range Types {
		if t := &Types[i]; reflect.TypeOf(t.zero()) == reflect.TypeOf(v) {
			return t
		}
	}
	panic(fmt.Sprintf("samples: no type has a %T", v))
}

func (t *Type) zero() any {
	if t.New == nil {
		return []byte{}
	}
	return t.New()
}

// quoted returns bytes as text that a test can compare: what is long as its sum, because tests keep many.
func quoted(b []byte) string {
	if len(b) <= 256 {
		return strconv.Quote(string(b))
	}
	return fmt.Sprintf("%d bytes with the sum %x", len(b), sha256.Sum256(b))
}

// Describe returns what a value has, as far as RDB files keep it.
func (t *Type) Describe(v any) string { return t.Name + " " + strings.Join(t.describe(v), " ") }

// Exactly returns all that there is to know of a value, also how it is encoded.
func (t *Type) Exactly(v any) string {
	words := []string{t.Describe(v)}
	if e, ok := v.(interface{ Encoding() string }); ok {
		words = append(words, e.Encoding())
	}
	if t.hidden != nil {
		words = append(words, t.hidden(v)...)
	}
	return strings.Join(words, " ")
}

// Copied is Exactly for the copy that COPY makes of a value.
func (t *Type) Copied(v any) string {
	if t.copied != nil {
		v = t.copied(v)
	}
	return t.Exactly(v)
}

// word returns one of n words.
func word(rnd *rand.Rand, n int) []byte { return []byte("w" + strconv.Itoa(rnd.IntN(n))) }

// number returns a word that names a number.
func number(i int) []byte { return fmt.Appendf(nil, "n%04d", i) }

// many is how many elements a large collection has: several batches of whatever reads it.
const many = 300
