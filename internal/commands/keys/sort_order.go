package keys

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file sorts the elements of SORT. The sort key of an element is looked up once and becomes a number of eight
// bytes, so that few comparisons need more than that, and none allocates.

// texts is a list of byte strings in one piece of memory.
type texts struct {
	data []byte
	ends []int
}

func (t *texts) len() int { return len(t.ends) }

func (t *texts) add(v []byte) {
	t.data = append(t.data, v...)
	t.ends = append(t.ends, len(t.data))
}

func (t *texts) at(i int) []byte {
	start := 0
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.data[start:t.ends[i]:t.ends[i]]
}

// sortKey is an element in the order.
type sortKey struct {
	weight  uint64 // smaller weights come first
	element int    // its original index
}

// inTurn returns n elements in their original order.
func inTurn(n int) []sortKey {
	keys := make([]sortKey, n)
	for i := range keys {
		keys[i].element = i
	}
	return keys
}

// sortOrder is the order of the elements.
type sortOrder struct {
	keys     []sortKey
	elements texts
	// texts are compared if weights are equal: the elements, or what BY finds with ALPHA.
	texts     texts
	cut       bool // texts end at a zero byte
	desc      bool
	unordered bool // the original order does not matter
}

// newSortOrder looks up the sort key of each element; ok is false if one must be a number and is not.
func newSortOrder(c *command.Ctx, s *sorting, elements texts, unordered bool) (o *sortOrder, ok bool) {
	o = &sortOrder{keys: make([]sortKey, elements.len()), elements: elements, texts: elements, desc: s.desc,
		unordered: unordered}
	if !s.alpha {
		return o, weighByNumber(c, s, o)
	}
	// As in Redis, a result that is not stored is compared like C strings, up to a zero byte.
	o.cut = s.store == nil && s.by == nil && bytes.IndexByte(elements.data, 0) >= 0
	if s.by != nil {
		o.texts = sortTexts(c, s, elements)
	}
	o.weighByText()
	return o, true
}

// weighByNumber weighs elements by their numbers, or by those that BY finds; it returns false if one is not a
// number.
func weighByNumber(c *command.Ctx, s *sorting, o *sortOrder) bool {
	for i := range o.keys {
		v, found := o.elements.at(i), true
		if s.by != nil {
			v, found = s.by.value(c, v)
		}
		score, ok := 0.0, true
		if found { // a missing value counts as 0
			score, ok = sortScore(v)
		}
		if !ok {
			return false
		}
		o.keys[i] = sortKey{o.direct(orderOf(score)), i}
	}
	return true
}

// sortTexts returns the texts that BY finds. A byte before each sorts missing texts first.
func sortTexts(c *command.Ctx, s *sorting, elements texts) (found texts) {
	found.ends = make([]int, 0, elements.len())
	for i := range elements.len() {
		v, ok := s.by.value(c, elements.at(i))
		if s.store == nil {
			v = command.UntilNUL(v)
		}
		if ok {
			found.data = append(found.data, 1)
		}
		found.add(v)
	}
	return found
}

// weighByText weighs elements by the first eight bytes in which their texts may differ.
func (o *sortOrder) weighByText() {
	if len(o.keys) == 0 {
		return
	}
	common := o.text(0)
	for i := range o.keys {
		n := 0
		for t := o.text(i); n < len(common) && n < len(t) && common[n] == t[n]; n++ {
		}
		common = common[:n]
	}
	for i := range o.keys {
		var first [8]byte
		copy(first[:], o.text(i)[len(common):])
		o.keys[i] = sortKey{o.direct(binary.BigEndian.Uint64(first[:])), i}
	}
}

// direct adjusts a weight to the direction of the sort.
func (o *sortOrder) direct(weight uint64) uint64 {
	if o.desc {
		return ^weight
	}
	return weight
}

// orderOf maps scores to numbers in the same order.
func orderOf(score float64) uint64 {
	const sign = 1 << 63
	if score == 0 {
		score = 0 // not -0
	}
	bits := math.Float64bits(score)
	if bits&sign != 0 {
		return ^bits
	}
	return bits | sign
}

func (o *sortOrder) text(i int) []byte {
	if o.cut {
		return command.UntilNUL(o.texts.at(i))
	}
	return o.texts.at(i)
}

// compare compares two elements. Different elements are never equal.
func (o *sortOrder) compare(a, b sortKey) int {
	if a.weight != b.weight {
		return cmp.Compare(a.weight, b.weight)
	}
	order := bytes.Compare(o.text(a.element), o.text(b.element))
	switch {
	case order != 0 && o.desc:
		return -order
	case order != 0:
		return order
	case o.unordered:
		return bytes.Compare(o.elements.at(a.element), o.elements.at(b.element))
	}
	return cmp.Compare(a.element, b.element)
}

// fewKeys is the number of elements up to which choose sorts instead of dividing.
const fewKeys = 64

// choose returns the elements from index first to last of the order, sorted. It drops others by dividing the
// elements at a random one, as quicksort does, which takes O(n) on average for any input.
func (o *sortOrder) choose(first, last int) []sortKey {
	if last < first {
		return nil
	}
	keys := o.keys
	n := last - first + 1
	for len(keys) > fewKeys && n < len(keys) {
		middle := o.divide(keys, rand.IntN(len(keys)))
		if first <= middle && middle <= last {
			break
		}
		if last < middle {
			keys = keys[:middle]
		} else {
			keys = keys[middle+1:]
			first -= middle + 1
			last -= middle + 1
		}
	}
	slices.SortFunc(keys, o.compare)
	return keys[first : first+n]
}

// divide moves elements smaller than element i before it and the rest after it, and returns its new index.
func (o *sortOrder) divide(keys []sortKey, i int) int {
	end := len(keys) - 1
	keys[i], keys[end] = keys[end], keys[i]
	pivot, at := keys[end], 0
	for j, k := range keys[:end] {
		if o.compare(k, pivot) < 0 {
			keys[at], keys[j] = k, keys[at]
			at++
		}
	}
	keys[at], keys[end] = keys[end], keys[at]
	return at
}

// sortScore reads a number as SORT does: C's strtod up to a zero byte, with leading spaces; an empty text is 0.
func sortScore(v []byte) (score float64, ok bool) {
	v = command.UntilNUL(v)
	if len(v) == 0 {
		return 0, true
	}
	score, ok = resp.ParseFloat(bytes.TrimLeft(v, " \t\n\v\f\r"))
	return score, ok && !math.IsNaN(score)
}
