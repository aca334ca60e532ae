package engine

import (
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/engine/bloom"
	"github.com/atomredis/atomredis/engine/countmin"
	"github.com/atomredis/atomredis/engine/cuckoo"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/listpack"
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

// Entry is one key of a database with its value, deadline and time of last access. It is reached only through a Guard
// that holds its shard, and is valid only while it does.
//
// There may be very many entries, so they are small: 48 bytes, and one piece of memory without pointers that holds the
// key and, after it, a short string.
type Entry struct {
	text     *byte          // the key, followed by the value if that is a string and obj is nil
	obj      unsafe.Pointer // the value: see typ; a *longString; or an *unloaded if flags say so
	deadline int64          // unix time in ms; 0 = never expires
	access   uint32         // unix time in s of the last access, or its frequency: see Keyspace.frequency
	slot     int32          // place in the shard's deadline index
	space    uint32         // index in Keyspace.spaces
	keyLen   uint32
	strLen   uint16 // of a string that follows the key
	units    uint8  // size of the memory at text, in textUnits
	shard    uint8
	typ      Type
	form     StringForm
	flags    flags
}

// StringForm says how a string was made, as far as OBJECT ENCODING shows it.
type StringForm uint8

const (
	// FormPlain is a string that was stored as a whole.
	FormPlain StringForm = iota
	// FormText is a string that counts as text even if it reads as an integer.
	FormText
	// FormRaw is a string that was changed in place.
	FormRaw
)

// StringForm returns how the string was made.
func (e *Entry) StringForm() StringForm { return e.form }

// SetStringForm sets how the string was made. SetBytes sets FormPlain, Resize sets FormRaw.
func (e *Entry) SetStringForm(f StringForm) { e.form = f }

const (
	// maxText is the length in bytes up to which a string follows its key.
	maxText = 1024
	// textUnit divides all the allocator's size classes up to maxText; 255 units are more than that.
	textUnit = 8
)

// newEntry returns an entry with a key and a string, which it copies.
func newEntry(key string, str []byte) *Entry {
	e := &Entry{keyLen: uint32(len(key))}
	if len(key)+len(str) > maxText {
		e.setText(key, nil)
		e.setLong(append([]byte(nil), str...))
	} else {
		e.setText(key, str)
	}
	return e
}

// setText gives the entry new memory for its key and a string after it.
func (e *Entry) setText(key string, str []byte) {
	n := len(key) + len(str)
	b := slices.Grow([]byte(nil), max(n, 1)) // uses the whole size class
	b = append(append(b, key...), str...)
	// Atomic for keyUnlocked: a reader that sees the pointer also sees the bytes of b.
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&e.text)), unsafe.Pointer(unsafe.SliceData(b)))
	e.strLen = uint16(len(str))
	e.units = 0 // the key is too long for a string after it
	if cap(b) <= maxText {
		e.units = uint8(cap(b) / textUnit)
	}
}

// longString is a string stored outside the key's memory.
type longString struct {
	b      []byte
	loan   *Loan     // nil until the first Lend
	stored *unloaded // where its current content is stored in parts, nil if it is not
}

// setLong makes b, which the entry then owns, its value: a string outside the key's memory.
func (e *Entry) setLong(b []byte) { e.obj, e.strLen = unsafe.Pointer(&longString{b: b}), 0 }

// flags hold an entry's state for storage, counting and copying.
type flags uint16

const (
	flagOdd        flags = 1 << iota // changed since the last checkpoint or the one before; the two alternate:
	flagEven                         // see Keyspace.mark and frozenMark
	flagRemoved                      // no longer in its database
	flagStored                       // the key may be in the store
	flagExternal                     // the store may have a value outside of the head
	flagParts                        // the value is stored in parts
	flagUnloaded                     // the value is not in memory
	flagFields                       // fields of the hash or members of the set expire
	flagUncounted                    // its memory will be counted when the guard that changes it ends
	flagGone                         // out of the count of memory for good: it has left its database
	flagCopied                       // equals Keyspace.copied if no snapshot has still to read it
	flagResident                     // in the list of entries whose values may leave memory
	flagStoring                      // read by the present checkpoint or an earlier one; the two alternate:
	flagStoringToo                   // see Keyspace.storingMark
	flagBlessed                      // never evicted: see Guard.Bless
)

// Key returns the key.
func (e *Entry) Key() string { return unsafe.String(e.text, e.keyLen) }

// keyUnlocked is Key for a checkpoint, which need not hold the entry's shard: a key's bytes never change.
func (e *Entry) keyUnlocked() string {
	text := atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&e.text)))
	return unsafe.String((*byte)(text), e.keyLen)
}

// Type returns the type of the value.
func (e *Entry) Type() Type { return e.typ }

// Deadline returns when the entry expires, in ms since 1970; 0 if it does not.
func (e *Entry) Deadline() int64 { return e.deadline }

// Access returns when the entry was last read or written, in s since 1970.
func (e *Entry) Access() int64 { return int64(e.access) }

// SetAccess sets the time of the last access, in s since 1970.
func (e *Entry) SetAccess(at int64) { e.access = uint32(min(max(at, 0), math.MaxUint32)) }

// Load brings the value into memory if it is not there. Reading the value does so too; a command that changes something
// else first must call Load before, because reading may fail.
func (e *Entry) Load() {
	if e.flags&flagUnloaded != 0 {
		e.load()
	}
}

// LoadWhole is Load for a command that only moves the value: a value stored in parts can be moved without loading.
func (e *Entry) LoadWhole() {
	if e.flags&flagUnloaded != 0 && e.unloaded().parts == 0 {
		e.load()
	}
}

// unloaded returns the stand-in for a value that is not in memory.
func (e *Entry) unloaded() *unloaded { return (*unloaded)(e.obj) }

// setUnloaded replaces the value by a stand-in.
func (e *Entry) setUnloaded(s *unloaded) {
	e.long().leave()
	e.obj, e.strLen = unsafe.Pointer(s), 0
	e.flags |= flagUnloaded
}

// inHead reports whether the value is not in memory but in the head of its key.
func (e *Entry) inHead() bool { return e.flags&flagUnloaded != 0 && e.unloaded().head }

// room returns the maximum length of a string in the key's memory.
func (e *Entry) room() int { return int(e.units)*textUnit - int(e.keyLen) }

// inline returns the string in the key's memory, which may grow to its capacity.
func (e *Entry) inline() []byte {
	return unsafe.Slice(e.text, max(int(e.units)*textUnit, int(e.keyLen)))[e.keyLen:][:e.strLen]
}

// Bytes returns the value of a string: a view, valid until the entry changes; it must not be appended to.
func (e *Entry) Bytes() []byte {
	if e.typ != String {
		panic("engine: the value is a " + e.typ.String() + ", not a string")
	}
	e.Load()
	if e.obj == nil {
		return e.inline()
	}
	return (*longString)(e.obj).b
}

// SetBytes stores a copy of v as the value of a string, in place if it fits without much waste.
func (e *Entry) SetBytes(v []byte) {
	e.dropText()
	e.form = FormPlain
	if long := e.long(); long != nil && int(e.keyLen)+len(v) > maxText && !long.lent() {
		if c := cap(long.b); len(v) <= c && c <= 2*len(v)+32 {
			long.b = append(long.b[:0], v...)
			return
		}
	}
	e.discard()
	switch room := e.room(); {
	case len(v) <= room && room <= 2*len(v)+32:
		e.strLen = uint16(copy(e.inline()[:len(v)], v))
	case int(e.keyLen)+len(v) <= maxText:
		e.setText(e.Key(), v)
	default:
		e.trim()
		e.setLong(append([]byte(nil), v...))
	}
}

// exchange makes v, which the entry then owns and which has more than maxText bytes, the value of a string. It returns
// the memory of the old value, nil if that may still be in use.
func (e *Entry) exchange(v []byte) (old []byte) {
	e.dropText()
	e.form = FormPlain
	if long := e.long(); long != nil && !long.lent() {
		old, long.b = long.b, v
		return old
	}
	e.discard()
	e.trim()
	e.setLong(v)
	return nil
}

// Resize makes the value of a string n bytes long, truncated or padded with zeros, and returns it for writing.
func (e *Entry) Resize(n int) []byte {
	old := e.Bytes()
	e.dropText()
	e.form = FormRaw
	if long := e.long(); long != nil {
		if long.lent() {
			long.leave()
			b := make([]byte, n)
			copy(b, old)
			e.setLong(b)
			return b
		}
		long.b = slices.Grow(long.b, max(n-len(old), 0))[:n]
		clear(long.b[min(len(old), n):])
		return long.b
	}
	if n <= e.room() {
		e.strLen = uint16(n)
		b := e.inline()
		clear(b[min(len(old), n):])
		return b
	}
	b := append(old[:len(old):len(old)], make([]byte, n-len(old))...) // with spare capacity to grow
	if int(e.keyLen)+cap(b) <= maxText {
		e.setText(e.Key(), b[:cap(b)])
		e.strLen = uint16(n)
		return e.inline()
	}
	e.trim()
	e.setLong(b)
	return b
}

// ahead returns the elements of a large collection for lookups ahead, nil for other values.
func (e *Entry) ahead() dict.Ahead {
	if look := kinds[e.typ].ahead; look != nil && e.flags&flagUnloaded == 0 {
		return look(e.obj)
	}
	return nil
}

// own makes v, which the entry then owns, the value of a string.
func (e *Entry) own(v []byte) {
	if int(e.keyLen)+len(v) <= maxText {
		e.SetBytes(v)
		return
	}
	e.discard()
	e.trim()
	e.setLong(v)
}

// long returns a string in memory outside the key's memory, nil if there is none.
func (e *Entry) long() *longString {
	if e.typ != String || e.flags&flagUnloaded != 0 {
		return nil
	}
	return (*longString)(e.obj)
}

// trim frees the room after the key, which the value does not need.
func (e *Entry) trim() {
	if e.room() >= textUnit {
		e.setText(e.Key(), nil)
	}
}

// discard drops the value.
func (e *Entry) discard() {
	e.long().leave()
	e.obj, e.strLen = nil, 0
	e.flags &^= flagUnloaded
}

// List returns the value of a list.
func (e *Entry) List() *lists.List { return (*lists.List)(e.collection(List)) }

// Set returns the value of a set.
func (e *Entry) Set() *sets.Set { return (*sets.Set)(e.collection(Set)) }

// ZSet returns the value of a sorted set.
func (e *Entry) ZSet() *zsets.ZSet { return (*zsets.ZSet)(e.collection(ZSet)) }

// Hash returns the value of a hash.
func (e *Entry) Hash() *hashes.Hash { return (*hashes.Hash)(e.collection(Hash)) }

// Stream returns the value of a stream.
func (e *Entry) Stream() *streams.Stream { return (*streams.Stream)(e.collection(Stream)) }

// Bloom returns the value of a Bloom filter.
func (e *Entry) Bloom() *bloom.Filter { return (*bloom.Filter)(e.collection(Bloom)) }

// JSON returns the value of a JSON document.
func (e *Entry) JSON() *documents.Document { return (*documents.Document)(e.collection(JSON)) }

// Cuckoo returns the value of a cuckoo filter.
func (e *Entry) Cuckoo() *cuckoo.Filter { return (*cuckoo.Filter)(e.collection(Cuckoo)) }

// CountMin returns the value of a count-min sketch.
func (e *Entry) CountMin() *countmin.Sketch { return (*countmin.Sketch)(e.collection(CountMin)) }

// TopK returns the value of a top-k list.
func (e *Entry) TopK() *topk.List { return (*topk.List)(e.collection(TopK)) }

// TDigest returns the value of a t-digest.
func (e *Entry) TDigest() *tdigest.Digest { return (*tdigest.Digest)(e.collection(TDigest)) }

// Series returns the value of a time series.
func (e *Entry) Series() *timeseries.Series { return (*timeseries.Series)(e.collection(TimeSeries)) }

// Array returns the value of an array.
func (e *Entry) Array() *arrays.Array { return (*arrays.Array)(e.collection(Array)) }

// Vectors returns the value of a VectorSet.
func (e *Entry) Vectors() *vectors.Set { return (*vectors.Set)(e.collection(VectorSet)) }

// Suggestions returns the value of a dictionary of suggestions.
func (e *Entry) Suggestions() *suggest.Dict { return (*suggest.Dict)(e.collection(Suggestions)) }

// Bitmap returns the value of a compressed bitmap.
func (e *Entry) Bitmap() *roaring.Bitmap { return (*roaring.Bitmap)(e.collection(Bitmap)) }

// PathHash returns the value of a path hash.
func (e *Entry) PathHash() *pathhash.Tree { return (*pathhash.Tree)(e.collection(PathHash)) }

// collection returns the value of an entry of this type, and loads it if it is not in memory.
func (e *Entry) collection(typ Type) unsafe.Pointer {
	if e.typ != typ {
		panic("engine: the value is a " + e.typ.String() + ", not a " + typ.String())
	}
	e.Load()
	return e.obj
}

// setCollection makes a collection the entry's value.
func (e *Entry) setCollection(value any) {
	typ, p := typeOf(value)
	e.discard()
	e.trim()
	e.typ, e.obj = typ, p
}

// value returns a collection for storage, nil if the value is a string or not in memory.
func (e *Entry) value() value {
	if e.typ == String || e.flags&flagUnloaded != 0 {
		return nil
	}
	return kinds[e.typ].value(e.obj)
}

// SetSlot implements expiry.Item.
func (e *Entry) SetSlot(slot int) { e.slot = int32(slot) }

// Slot implements expiry.Item.
func (e *Entry) Slot() int { return int(e.slot) }

// Value is a value that belongs to no key yet.
type Value struct {
	text  []byte
	form  StringForm
	value any // a collection; nil for a string
}

// CopyValue returns a copy of the value, and loads it if it is not in memory.
func (e *Entry) CopyValue() *Value {
	e.Load()
	if e.typ == String {
		return &Value{text: append([]byte(nil), e.Bytes()...), form: e.form}
	}
	return &Value{value: kinds[e.typ].clone(e.obj)}
}

// TakeValue is CopyValue for an entry that will not be used any more.
func (e *Entry) TakeValue() *Value {
	if e.typ == String {
		return e.CopyValue() // it may be lent
	}
	return &Value{value: kinds[e.typ].value(e.obj)}
}

// setValue gives a new entry a value that it then owns.
func (e *Entry) setValue(v *Value) {
	if v.value == nil {
		e.own(v.text)
		e.form = v.form
		return
	}
	e.setCollection(v.value)
}

// MemoryUsage returns how many bytes of memory the key and its value have to themselves, in constant time except for
// the groups of a stream. It loads a value that is not in memory.
func (e *Entry) MemoryUsage() int {
	e.Load()
	return e.size()
}

// size is MemoryUsage of the parts in memory.
func (e *Entry) size() int {
	n := int(unsafe.Sizeof(*e)) + listpack.Allocated(max(int(e.keyLen), int(e.units)*textUnit))
	if e.flags&flagUnloaded != 0 {
		if s := e.unloaded(); s.parts != 0 {
			n += s.size()
		}
		return n
	}
	if e.typ != String {
		return n + kinds[e.typ].value(e.obj).MemoryUsage()
	}
	if long := e.long(); long != nil {
		n += int(unsafe.Sizeof(*long)) + listpack.Allocated(cap(long.b))
	}
	return n
}
