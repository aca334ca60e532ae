package engine

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/engine/bloom"
	"github.com/atomredis/atomredis/engine/countmin"
	"github.com/atomredis/atomredis/engine/cuckoo"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/pathhash"
	"github.com/atomredis/atomredis/engine/roaring"
	"github.com/atomredis/atomredis/engine/search/suggest"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/tdigest"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/engine/topk"
	"github.com/atomredis/atomredis/engine/vectors"
	"github.com/atomredis/atomredis/engine/zsets"
)

// The keyspace knows the types of values only through this file. A new type is a package of its own, and here a number,
// an entry of kinds and a case of typeOf, and in Entry a method that returns its value.

// Type is the type of a value.
type Type uint8

// The types of values. Their numbers are stored.
const (
	String Type = iota
	List
	Set
	ZSet
	Hash
	Stream
	Bloom
	JSON
	Cuckoo
	CountMin
	TopK
	TDigest
	TimeSeries
	Array
	VectorSet
	Suggestions
	Bitmap
	PathHash
)

// kinds describes the types. Strings are stored in the entries themselves.
var kinds = [...]kind{
	String: {name: "string"},
	List: newKind("list", (*lists.List).Clone, lists.DecodeBlob,
		func(s storedParts) (*lists.List, error) { return loadWith(s, lists.NewLoader(s.limit)) }),
	Set: expiringElements(setExpiry, lookingAhead((*sets.Set).Ahead, newKind("set", (*sets.Set).Clone,
		unlimited(sets.DecodeBlob),
		func(s storedParts) (*sets.Set, error) { return loadExpiring(s, sets.NewLoader()) }))),
	ZSet: lookingAhead((*zsets.ZSet).Ahead, newKind("zset", (*zsets.ZSet).Clone, unlimited(zsets.DecodeBlob),
		func(s storedParts) (*zsets.ZSet, error) { return loadWith(s, zsets.NewLoader()) })),
	Hash: expiringElements(hashExpiry, lookingAhead((*hashes.Hash).Ahead, newKind("hash", (*hashes.Hash).Clone,
		unlimited(hashes.DecodeBlob),
		func(s storedParts) (*hashes.Hash, error) { return loadExpiring(s, hashes.NewLoader()) }))),
	Stream: newKind("stream", (*streams.Stream).Clone, unlimited(streams.DecodeBlob),
		func(s storedParts) (*streams.Stream, error) { return loadWith(s, streams.NewLoader()) }),
	Bloom: newKind("MBbloom--", (*bloom.Filter).Clone, unlimited(bloom.DecodeBlob),
		func(s storedParts) (*bloom.Filter, error) { return loadWith(s, bloom.NewLoader()) }),
	JSON: newKind("ReJSON-RL", (*documents.Document).Clone, unlimited(documents.DecodeBlob),
		func(s storedParts) (*documents.Document, error) { return loadWith(s, documents.NewLoader()) }),
	Cuckoo: newKind("MBbloomCF", (*cuckoo.Filter).Clone, unlimited(cuckoo.DecodeBlob),
		func(s storedParts) (*cuckoo.Filter, error) { return loadWith(s, cuckoo.NewLoader()) }),
	CountMin: newKind("CMSk-TYPE", (*countmin.Sketch).Clone, unlimited(countmin.DecodeBlob),
		func(s storedParts) (*countmin.Sketch, error) { return loadWith(s, countmin.NewLoader()) }),
	TopK: newKind("TopK-TYPE", (*topk.List).Clone, unlimited(topk.DecodeBlob),
		func(s storedParts) (*topk.List, error) { return loadWith(s, topk.NewLoader()) }),
	TDigest: newKind("TDIS-TYPE", (*tdigest.Digest).Clone, unlimited(tdigest.DecodeBlob),
		func(s storedParts) (*tdigest.Digest, error) { return loadWith(s, tdigest.NewLoader()) }),
	TimeSeries: carryingLabels(seriesLabels, newKind("TSDB-TYPE", (*timeseries.Series).Clone,
		unlimited(timeseries.DecodeBlob),
		func(s storedParts) (*timeseries.Series, error) { return loadWith(s, timeseries.NewLoader()) })),
	Array: newKind("array", (*arrays.Array).Clone, unlimited(arrays.DecodeBlob),
		func(s storedParts) (*arrays.Array, error) { return loadWith(s, arrays.NewLoader()) }),
	VectorSet: newKind("vectorset", (*vectors.Set).Clone, unlimited(vectors.DecodeBlob),
		func(s storedParts) (*vectors.Set, error) { return loadWith(s, vectors.NewLoader()) }),
	Suggestions: newKind("trietype0", (*suggest.Dict).Clone, unlimited(suggest.DecodeBlob),
		func(s storedParts) (*suggest.Dict, error) { return loadWith(s, suggest.NewLoader()) }),
	Bitmap: newKind("bitmap", (*roaring.Bitmap).Clone, unlimited(roaring.DecodeBlob),
		func(s storedParts) (*roaring.Bitmap, error) { return loadWith(s, roaring.NewLoader()) }),
	PathHash: newKind("pathhash", (*pathhash.Tree).Clone, unlimited(pathhash.DecodeBlob),
		func(s storedParts) (*pathhash.Tree, error) { return loadWith(s, pathhash.NewLoader()) }),
}

// typeOf returns the type of a value, and a pointer to it.
func typeOf(v any) (Type, unsafe.Pointer) {
	switch v := v.(type) {
	case *lists.List:
		return List, unsafe.Pointer(v)
	case *sets.Set:
		return Set, unsafe.Pointer(v)
	case *zsets.ZSet:
		return ZSet, unsafe.Pointer(v)
	case *hashes.Hash:
		return Hash, unsafe.Pointer(v)
	case *streams.Stream:
		return Stream, unsafe.Pointer(v)
	case *bloom.Filter:
		return Bloom, unsafe.Pointer(v)
	case *documents.Document:
		return JSON, unsafe.Pointer(v)
	case *cuckoo.Filter:
		return Cuckoo, unsafe.Pointer(v)
	case *countmin.Sketch:
		return CountMin, unsafe.Pointer(v)
	case *topk.List:
		return TopK, unsafe.Pointer(v)
	case *tdigest.Digest:
		return TDigest, unsafe.Pointer(v)
	case *timeseries.Series:
		return TimeSeries, unsafe.Pointer(v)
	case *arrays.Array:
		return Array, unsafe.Pointer(v)
	case *vectors.Set:
		return VectorSet, unsafe.Pointer(v)
	case *suggest.Dict:
		return Suggestions, unsafe.Pointer(v)
	case *roaring.Bitmap:
		return Bitmap, unsafe.Pointer(v)
	case *pathhash.Tree:
		return PathHash, unsafe.Pointer(v)
	}
	panic(fmt.Sprintf("engine: a %T is no value", v))
}

// kind describes a type.
type kind struct {
	name string // the reply of TYPE

	// value returns the value at p for storage.
	value func(p unsafe.Pointer) value
	clone func(p unsafe.Pointer) value
	// decode builds a value from its stored form.
	decode func(blob []byte, limit lists.Limit) (value, error)
	// load builds a value from its parts.
	load func(s storedParts) (value, error)
	// ahead returns the elements of a value for lookups ahead; nil if the type has none.
	ahead func(p unsafe.Pointer) dict.Ahead
	// labels finds the labels of a value; nil if the type has none.
	labels *labelled
	// fields says how the elements of a value expire; nil if they have no deadlines.
	fields *elementExpiry
}

// collection is a pointer to a value of a type.
type collection[V any] interface {
	*V
	value
}

// newKind describes a type whose values are V.
func newKind[V any, P collection[V]](name string, clone func(P) P, decode func([]byte, lists.Limit) (P, error),
	load func(storedParts) (P, error)) kind {
	return kind{
		name:  name,
		value: func(p unsafe.Pointer) value { return P((*V)(p)) },
		clone: func(p unsafe.Pointer) value { return clone((*V)(p)) },
		decode: func(blob []byte, limit lists.Limit) (value, error) {
			v, err := decode(blob, limit)
			return v, err
		},
		load: func(s storedParts) (value, error) {
			v, err := load(s)
			return v, err
		},
	}
}

// lookingAhead makes a kind whose elements can be looked up ahead.
func lookingAhead[V any](ahead func(*V) dict.Ahead, k kind) kind {
	k.ahead = func(p unsafe.Pointer) dict.Ahead { return ahead((*V)(p)) }
	return k
}

// expiringElements makes a kind whose elements have deadlines.
func expiringElements(x *elementExpiry, k kind) kind {
	k.fields = x
	return k
}

// carryingLabels makes a kind whose values carry labels.
func carryingLabels(l *labelled, k kind) kind {
	k.labels = l
	return k
}

// unlimited adapts a decoder that ignores the limit of lists.
func unlimited[P any](decode func([]byte) (P, error)) func([]byte, lists.Limit) (P, error) {
	return func(b []byte, _ lists.Limit) (P, error) { return decode(b) }
}

// storedParts says how to read a value that is stored in parts.
type storedParts struct {
	parts, fieldParts uint64 // as in Head
	read              partsReader
	log               func(id uint64) *delta.Log // returns the log for the data stored under a number; may return nil
	limit             lists.Limit
}

// partsReader reads like Source.Parts.
type partsReader func(id uint64, fn func(name, data []byte) error) error

// loader builds a value from its parts.
type loader[T any] interface {
	Add(name, data []byte) error
	Finish(log *delta.Log) (T, error)
}

func loadWith[T any](s storedParts, l loader[T]) (v T, err error) {
	if err := s.read(s.parts, l.Add); err != nil {
		return v, err
	}
	return l.Finish(s.log(s.parts))
}

// deadlineLoader is the loader of a type whose elements can have deadlines.
type deadlineLoader[T any] interface {
	loader[T]
	AddDeadline(name, data []byte) error
	FinishDeadlines(log, deadlines *delta.Log) (T, error)
}

func loadExpiring[T any](s storedParts, l deadlineLoader[T]) (v T, err error) {
	if s.fieldParts == 0 {
		return loadWith(s, l)
	}
	if err := s.read(s.parts, l.Add); err != nil {
		return v, err
	}
	if err := s.read(s.fieldParts, l.AddDeadline); err != nil {
		return v, err
	}
	return l.FinishDeadlines(s.log(s.parts), s.log(s.fieldParts))
}

// String returns the reply of TYPE.
func (t Type) String() string { return kinds[t].name }

// ParseType returns the type with a name as TYPE replies it, in any case.
func ParseType(name string) (Type, bool) {
	for t := range kinds {
		if strings.EqualFold(kinds[t].name, name) {
			return Type(t), true
		}
	}
	return 0, false
}

// HasFields reports whether elements of the type's values, fields or members, can have deadlines.
func (t Type) HasFields() bool { return kinds[t].fields != nil }

// Known reports whether the type exists.
func (t Type) Known() bool { return int(t) < len(kinds) }
