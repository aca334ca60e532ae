package index

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/numbers"
	"github.com/atomredis/atomredis/engine/search/postings"
)

// Put replaces the document of a key. If the new document does not fit the schema, the key has no document
// afterwards. Finding the links of vectors takes long, so it is done while queries may read.
func (x *Index) Put(b *Builder) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.put(b, &x.mu)
}

// Remove removes the document of a key, if there is one.
func (x *Index) Remove(key string) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	id := x.remove(key)
	x.mu.Unlock()
	x.leaveVectors(id)
}

// Change calls do with functions that put a document and remove that of a key. Queries see all of these changes or
// none.
func (x *Index) Change(do func(put func(key string, d Document, filter Filter), remove func(key string)), b *Builder) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	do(func(key string, d Document, filter Filter) {
		b.build(x, key, d, filter)
		x.put(b, noLock{})
	}, func(key string) { x.leaveVectors(x.remove(key)) })
}

// noLock is a lock for callers that already hold the index's lock.
type noLock struct{}

// Lock implements sync.Locker.
func (noLock) Lock() {}

// Unlock implements sync.Locker.
func (noLock) Unlock() {}

// put is Put with writing held; it takes lock where it needs it.
func (x *Index) put(b *Builder, lock sync.Locker) {
	began := time.Now()
	if b.def != x.def { // FT.ALTER came in between
		b.rebuild(x.def)
	}
	fits := b.failed == nil && b.wanted
	if fits {
		x.enterVectors(b)
	}
	x.leaveVectors(x.replace(b, fits, lock))
	x.spent.Add(int64(time.Since(began)))
}

// replace replaces the document of a key by the new one, if that fits, and returns the number of the old one.
func (x *Index) replace(b *Builder, fits bool, lock sync.Locker) (old uint64) {
	lock.Lock()
	defer lock.Unlock()
	old = x.remove(b.key)
	for _, failure := range b.failures() {
		x.failures.add(b.key, failure)
		x.fields[failure.Field].failures.add(b.key, failure)
	}
	if fits {
		x.add(b)
		for _, v := range b.vectors {
			if v.same {
				x.fields[v.field].vectors.move(old, x.docs.Last())
			}
		}
	}
	return old
}

// enterVectors enters the vectors of a document under the number that it will get. Queries skip unknown numbers.
// Unchanged vectors are kept, and get the new number together with the document.
func (x *Index) enterVectors(b *Builder) {
	if len(b.vectors) == 0 {
		return
	}
	id, old := x.docs.Last()+1, x.docs.Lookup(b.key)
	for i := range b.vectors {
		v := &b.vectors[i]
		f := x.fields[v.field].vectors
		if v.same = old != 0 && f.holds(old, v.vectors); !v.same {
			f.add(id, v.vectors)
		}
	}
}

// leaveVectors removes the vectors of a document that has died; 0 is none.
func (x *Index) leaveVectors(id uint64) {
	if id == 0 {
		return
	}
	for _, f := range x.vectorFields {
		f.vectors.remove(id)
	}
}

// add enters a document whose key has none. With the document it stores what remove and Forward read: the tags by field,
// the numeric values, and the numbers of the words.
func (x *Index) add(b *Builder) {
	id := x.docs.Last() + 1
	own := binary.AppendUvarint(b.own[:0], uint64(b.tagged))
	for from := 0; from < len(b.tags); {
		field, exact := b.tags[from].field, b.tags[from].exact
		tags := x.fields[x.def.Fields[field].Name].tags
		b.terms = b.terms[:0]
		for ; from < len(b.tags) && b.tags[from].field == field; from++ {
			number, list := enter(tags, b.tags[from].text, 0)
			list.Add(postings.Entry{Doc: id})
			b.terms = append(b.terms, number)
		}
		own = appendNumbers(appendPlace(own, field, exact), b.terms)
	}
	own = binary.AppendUvarint(own, uint64(len(b.values)))
	for i, v := range b.values {
		f := x.fields[v.field.Name]
		f.several = f.several || i > 0 && b.values[i-1].field == v.field
		f.numbers.Add(numbers.Item{Value: v.value, Doc: id})
		own = appendPlace(own, slices.Index(x.def.Fields, v.field), v.exact)
		own = binary.LittleEndian.AppendUint64(own, math.Float64bits(v.value))
	}
	b.terms = b.terms[:0]
	for i := range b.words {
		w := &b.words[i]
		number, list := enter(x.text, w.text, x.keep)
		list.Add(postings.Entry{Doc: id, Freq: w.freq, Mask: w.mask, Offsets: w.offsets})
		b.terms = append(b.terms, number)
	}
	own = appendNumbers(own, b.terms)
	x.records += int64(len(b.words) + len(b.tags) + len(b.values))
	for _, f := range b.missing {
		x.fields[f].missing.Add(postings.Entry{Doc: id})
	}
	for _, s := range b.shapes {
		x.fields[s.field].shapes.Add(id, s.shape)
	}
	b.own = own
	x.docs.Add(docs.Fields{Key: b.key, Score: b.score, Len: b.length, MaxFreq: b.maxFreq, Payload: b.payload, Sort: b.sort, Terms: own})
}

// enter returns the number and the list of a term, and adds the term if it is new.
func enter(d *dictionary, text string, keep postings.Keep) (uint32, *postings.List) {
	if number, ok := d.Number(text); ok {
		return number, d.At(number)
	}
	list := postings.New(keep)
	return d.Set(text, list), list
}

// appendPlace appends the place of a field in the definition, and whether its stored value is the field's value.
func appendPlace(b []byte, place int, exact bool) []byte {
	v := uint64(place) << 1
	if exact {
		v |= 1
	}
	return binary.AppendUvarint(b, v)
}

// takePlace removes and returns what appendPlace has appended.
func takePlace(b *[]byte) (place int, exact bool) {
	v := takeUvarint(b)
	return int(v >> 1), v&1 != 0
}

// appendNumbers appends how many numbers there are, and the numbers in ascending order.
func appendNumbers(b []byte, numbers []uint32) []byte {
	slices.Sort(numbers)
	b = binary.AppendUvarint(b, uint64(len(numbers)))
	last := uint32(0)
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n-last))
		last = n
	}
	return b
}

// leave removes a dead document from the lists whose numbers are at the beginning of own. It removes terms without
// documents.
func (x *Index) leave(d *dictionary, own *[]byte) {
	count := takeUvarint(own)
	x.records -= int64(count)
	number := uint32(0)
	for range count {
		number += uint32(takeUvarint(own))
		list := d.At(number)
		list.Remove(x.docs.Alive)
		if list.Len() == 0 {
			d.Delete(d.Text(number))
		}
	}
}

// remove removes the document of a key from all structures except those of vectors. It returns its number, or 0.
func (x *Index) remove(key string) uint64 {
	id, d := x.docs.Remove(key)
	if d == nil {
		return 0
	}
	x.removals.Add(1)
	own := ownOf(d)
	for range takeUvarint(&own) {
		place, _ := takePlace(&own)
		x.leave(x.fields[x.def.Fields[place].Name].tags, &own)
	}
	for range takeUvarint(&own) {
		place, _ := takePlace(&own)
		v := math.Float64frombits(binary.LittleEndian.Uint64(own))
		own = own[8:]
		x.fields[x.def.Fields[place].Name].numbers.Remove(numbers.Item{Value: v, Doc: id})
		x.records--
	}
	x.leave(x.text, &own)
	for _, f := range x.fields {
		if f.missing != nil {
			x.removeMissing(f, id)
		}
		if f.shapes != nil {
			f.shapes.Remove(id)
		}
	}
	return id
}

// ownOf returns what add has stored with a document; it must not be changed.
func ownOf(d *docs.Doc) []byte {
	own := d.Terms()
	return unsafe.Slice(unsafe.StringData(own), len(own))
}

// removeMissing removes a document from the list of those that lack a field.
func (x *Index) removeMissing(f *field, id uint64) {
	if r := f.missing.View().Reader(); r.Seek(id) && r.Doc() == id {
		f.missing.Remove(x.docs.Alive)
	}
}

// takeUvarint removes and returns the number at the beginning of b. The index itself has written b, so it is never
// too short.
func takeUvarint(b *[]byte) uint64 {
	n, size := binary.Uvarint(*b)
	*b = (*b)[size:]
	return n
}
