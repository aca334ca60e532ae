// Package samples has values of every type, changes of them, and descriptions of their content. The tests of how
// values are stored in memory, in the store and in RDB files use them. A new type gets an entry in Types, and all
// those tests then include it. The package depends only on the types, not on the keyspace.
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
	// Name is the reply of TYPE.
	Name string
	// Values makes values in every form that the type has, by their names: small and large ones. A value is a
	// []byte, or a collection. None of their elements expires before Never.
	Values func() map[string]any
	// New makes a collection without elements, nil for strings.
	New func() any
	// Change changes a value a little at random, as commands do, at a time in ms since 1970, and returns it. The
	// result may have no elements. Elements that get an expiry expire by now+1000. A string is never changed in
	// place.
	Change func(v any, rnd *rand.Rand, now int64) any
	// Empty reports whether a key with the value must be removed.
	Empty func(v any) bool
	// describe returns the content of the value; elements without an order are sorted.
	describe func(v any) []string
	// hidden returns the content that the store keeps but RDB files do not; it may be nil.
	hidden func(v any) []string
	// copied returns the value that COPY makes; nil if that is the same.
	copied func(v any) any
}

// Types are all types.
var Types = []Type{text, list, set, zset, hash, stream, bloomFilter, document, cuckooFilter,
	countMin, topKList, tDigest, series, array, vectorSet, suggestions, compressedBitmap, pathHash}

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

// quoted returns bytes as text that a test can compare. Long values are replaced by a checksum, because tests keep
// many.
func quoted(b []byte) string {
	if len(b) <= 256 {
		return strconv.Quote(string(b))
	}
	return fmt.Sprintf("%d bytes with the sum %x", len(b), sha256.Sum256(b))
}

// Describe returns the content of a value that RDB files keep.
func (t *Type) Describe(v any) string { return t.Name + " " + strings.Join(t.describe(v), " ") }

// Exactly returns everything about a value, including its encoding.
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

// many is the number of elements of a large collection: several batches for all code that reads it in batches.
const many = 300
