// Package terms has dictionaries: the sorted terms of an index. It finds them by their text, a prefix, a suffix, a
// part, a pattern, or by similarity.
//
// A dictionary belongs to its index, whose lock protects it: it is only read while the index is locked.
//
// The text of all terms is in an arena (arena.go). A term has a number, which a table of hashes and the sorted sequence
// of all terms refer to. Beside its text and its value it takes about 31 bytes, and with suffixes 10 more for each
// character.
package terms

import (
	"cmp"
	"iter"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/search/sorted"
	"github.com/atomredis/atomredis/engine/search/spelling"
)

// Dict has a value for each term.
type Dict[V any] struct {
	byHash dict.Numbers
	order  *sorted.Tree[uint32] // the terms' numbers, in the byte order of their texts
	ends   *ends                // nil without suffixes
	arena  arena
	chunks []chunk[V] // by term number, chunkSize in each except the last
	free   []uint32   // unused numbers

	stop func() bool // see Until; nil never stops
}

// chunk has a dictionary's data about some terms.
type chunk[V any] struct {
	values []V
	places []place
}

const chunkSize = 256

// New returns an empty dictionary. With suffixes it finds suffixes and parts of terms without visiting all terms, which
// takes memory for each character.
func New[V any](suffixes bool) *Dict[V] {
	d := &Dict[V]{}
	d.order = sorted.New(func(a, b uint32) int { return strings.Compare(d.Text(a), d.Text(b)) })
	if suffixes {
		d.ends = newEnds(d.Text)
	}
	return d
}

// Until returns the dictionary for reading. Its searches by pattern call stop for each visited term; once it returns
// true, they end as if there were no more terms.
func (d *Dict[V]) Until(stop func() bool) *Dict[V] {
	until := *d
	until.stop = stop
	return &until
}

// stops reports whether a search must stop.
func (d *Dict[V]) stops() bool { return d.stop != nil && d.stop() }

// Get returns the value of a term.
func (d *Dict[V]) Get(term string) (v V, ok bool) {
	n, ok := d.find(dict.HashOf(term), term)
	if ok {
		v = d.At(n)
	}
	return v, ok
}

// GetBytes is Get for a term in bytes, without a conversion to a string.
func (d *Dict[V]) GetBytes(term []byte) (V, bool) {
	return d.Get(unsafe.String(unsafe.SliceData(term), len(term)))
}

// Number returns the number of a term, which stays the same until the term is deleted. Numbers are small and are
// reused.
func (d *Dict[V]) Number(term string) (uint32, bool) { return d.find(dict.HashOf(term), term) }

func (d *Dict[V]) find(hash dict.Hash, term string) (uint32, bool) {
	return d.byHash.Find(hash, func(n uint32) bool { return d.Text(n) == term })
}

// At returns the value of the term with a number.
func (d *Dict[V]) At(number uint32) V { return d.chunks[number/chunkSize].values[number%chunkSize] }

// Text returns the term with a number.
func (d *Dict[V]) Text(number uint32) string {
	return d.arena.text(d.chunks[number/chunkSize].places[number%chunkSize])
}

// Set adds a term or sets its value. It returns the term's number, and copies the term.
func (d *Dict[V]) Set(term string, v V) uint32 {
	hash := dict.HashOf(term)
	if n, ok := d.find(hash, term); ok {
		d.chunks[n/chunkSize].values[n%chunkSize] = v
		return n
	}
	at := d.arena.add(term)
	n := uint32(d.order.Len())
	if f := len(d.free); f > 0 {
		n = d.free[f-1]
		d.free = d.free[:f-1]
		c := &d.chunks[n/chunkSize]
		c.values[n%chunkSize], c.places[n%chunkSize] = v, at
	} else {
		if n%chunkSize == 0 {
			d.chunks = append(d.chunks, chunk[V]{})
		}
		c := &d.chunks[n/chunkSize]
		c.values, c.places = append(c.values, v), append(c.places, at)
	}
	d.byHash.Add(hash, n)
	d.order.Set(n)
	if d.ends != nil {
		d.ends.add(n)
	}
	return n
}

// Delete removes a term.
func (d *Dict[V]) Delete(term string) {
	hash := dict.HashOf(term)
	n, ok := d.find(hash, term)
	if !ok {
		return
	}
	d.byHash.Remove(hash, n)
	d.order.Delete(n)
	if d.ends != nil {
		d.ends.remove(n)
	}
	c := &d.chunks[n/chunkSize]
	at := c.places[n%chunkSize]
	var none V
	c.values[n%chunkSize], c.places[n%chunkSize] = none, place{}
	d.free = append(d.free, n)
	if d.arena.remove(at) {
		d.arena.empty(at.page, d.move)
	}
	if d.order.Len() == 0 {
		d.chunks, d.free = nil, nil
	}
}

// move updates the place of a term, if the term was at the old one.
func (d *Dict[V]) move(term string, from place) {
	n, ok := d.byHash.Find(dict.HashOf(term), func(n uint32) bool {
		return d.chunks[n/chunkSize].places[n%chunkSize] == from
	})
	if ok {
		d.chunks[n/chunkSize].places[n%chunkSize] = d.arena.add(term)
	}
}

// Len returns the number of terms.
func (d *Dict[V]) Len() int { return d.order.Len() }

// Suffixes reports whether suffixes and parts of terms are found without visiting all terms.
func (d *Dict[V]) Suffixes() bool { return d.ends != nil }

// Bytes returns the memory that the dictionary takes without its values.
func (d *Dict[V]) Bytes() int {
	n := int(unsafe.Sizeof(*d)) + d.byHash.MemoryUsage() + d.order.Bytes() + d.arena.bytes + 4*cap(d.free)
	n += cap(d.chunks) * int(unsafe.Sizeof(chunk[V]{}))
	if c := len(d.chunks); c > 0 {
		n += ((c-1)*chunkSize + cap(d.chunks[c-1].places)) * int(unsafe.Sizeof(place{}))
	}
	if d.ends != nil {
		n += d.ends.bytes()
	}
	return n
}

// All yields the terms in the order of their bytes.
func (d *Dict[V]) All() iter.Seq2[string, V] { return d.from("", func(string) bool { return true }) }

// Prefix yields the terms with a prefix, in byte order.
func (d *Dict[V]) Prefix(text string) iter.Seq2[string, V] {
	return d.from(text, func(term string) bool { return strings.HasPrefix(term, text) })
}

// from yields the terms from a text on, in byte order, while wanted returns true.
func (d *Dict[V]) from(text string, wanted func(term string) bool) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		before := func(n uint32) bool { return d.Text(n) < text }
		d.order.Ascend(before, func(n uint32) bool {
			term := d.Text(n)
			return wanted(term) && yield(term, d.At(n))
		})
	}
}

// filter yields those terms for which wanted returns true.
func (d *Dict[V]) filter(terms iter.Seq2[string, V], wanted func(term string) bool) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for term, v := range terms {
			if d.stops() || wanted(term) && !yield(term, v) {
				return
			}
		}
	}
}

// numbered yields the terms with the given numbers.
func (d *Dict[V]) numbered(numbers iter.Seq[uint32]) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for n := range numbers {
			if !yield(d.Text(n), d.At(n)) {
				return
			}
		}
	}
}

// Suffix yields the terms with a suffix.
func (d *Dict[V]) Suffix(text string) iter.Seq2[string, V] {
	if d.ends != nil && isStart(text) {
		return d.numbered(d.ends.suffix(text, d.stops))
	}
	return d.filter(d.All(), func(term string) bool { return strings.HasSuffix(term, text) })
}

// Contains yields the terms that contain a text, each once.
func (d *Dict[V]) Contains(text string) iter.Seq2[string, V] {
	if d.ends != nil && isStart(text) {
		return d.numbered(d.ends.contains(text, d.stops))
	}
	return d.filter(d.All(), func(term string) bool { return strings.Contains(term, text) })
}

// Fuzzy yields the terms within at most distance insertions, deletions and replacements of runes of a text, in byte
// order.
func (d *Dict[V]) Fuzzy(text string, distance int) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		p := spelling.Pattern{Text: text, Distance: distance, Stop: d.stop}
		spelling.Each(d.order.View, d.Text, p, func(n uint32, _ int) bool { return yield(d.Text(n), d.At(n)) })
	}
}

// isStart reports whether a text starts at a character boundary, so that ends can find it.
func isStart(text string) bool { return len(text) > 0 && text[0]&0xc0 != 0x80 }

// ends finds terms by their suffixes: it has all suffixes, one from each character, in byte order.
type ends struct {
	text  func(number uint32) string
	order *sorted.Tree[end]
	long  *sorted.Tree[uint32] // the terms without sorted suffixes
}

// end is a suffix: the number of a term, and the offset in it.
type end uint64

// longTerm is the length in bytes from which a term's suffixes are not sorted: similar ones would be slow to compare.
const longTerm = 256

func newEnds(text func(uint32) string) *ends {
	e := &ends{text: text, long: sorted.New(cmp.Compare[uint32])}
	e.order = sorted.New(func(a, b end) int {
		return cmp.Or(strings.Compare(e.textOf(a), e.textOf(b)), cmp.Compare(a, b))
	})
	return e
}

func (e *ends) textOf(a end) string { return e.text(uint32(a >> 32))[uint32(a):] }

// of calls do with the sorted suffixes of a term.
func (e *ends) of(number uint32, do func(end) bool) {
	term := e.text(number)
	for i := range len(term) {
		if isStart(term[i:]) {
			do(end(number)<<32 | end(i))
		}
	}
}

func (e *ends) add(number uint32) {
	if len(e.text(number)) >= longTerm {
		e.long.Set(number)
		return
	}
	e.of(number, e.order.Set)
}

func (e *ends) remove(number uint32) {
	if !e.long.Delete(number) {
		e.of(number, e.order.Delete)
	}
}

func (e *ends) bytes() int { return int(unsafe.Sizeof(*e)) + e.order.Bytes() + e.long.Bytes() }

// suffix yields the terms with a suffix, until stop returns true.
func (e *ends) suffix(text string, stop func() bool) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		more := true
		e.order.Ascend(e.before(text), func(a end) bool {
			more = !stop() && (e.textOf(a) != text || yield(uint32(a>>32)))
			return more && e.textOf(a) == text
		})
		if more {
			e.long.Ascend(nil, func(n uint32) bool { return !stop() && (!strings.HasSuffix(e.text(n), text) || yield(n)) })
		}
	}
}

// contains yields the terms that contain a text, each for its first occurrence, until stop returns true.
func (e *ends) contains(text string, stop func() bool) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		more := true
		e.order.Ascend(e.before(text), func(a end) bool {
			if !strings.HasPrefix(e.textOf(a), text) {
				return false
			}
			n := uint32(a >> 32)
			more = !stop() && (strings.Index(e.text(n), text) != int(uint32(a)) || yield(n))
			return more
		})
		if more {
			e.long.Ascend(nil, func(n uint32) bool { return !stop() && (!strings.Contains(e.text(n), text) || yield(n)) })
		}
	}
}

func (e *ends) before(text string) func(end) bool {
	return func(a end) bool { return e.textOf(a) < text }
}
