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

// This file puts the elements of SORT in order. What an element is sorted by is looked up once and becomes a number
// of eight bytes, so that few comparisons look at anything else, and none allocates.

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
	weight  uint64 // an element with a smaller one comes first
	element int    // its place before
}

// inTurn returns n elements in the order in which they are.
func inTurn(n int) []sortKey {
	keys := make([]sortKey, n)
	for i := range keys {
		keys[i].element = i
	}
	return keys
}

// sortOrder is how elements are put in order.
type sortOrder struct {
	keys     []sortKey
	elements texts
	// texts are what is compared between equal weights: the elements unless BY and ALPHA name others.
	texts     texts
	cut       bool // texts end at a zero byte
	desc      bool
	unordered bool // the order before means nothing
}

// newSortOrder looks up what each element is sorted by; ok is false if something of it is no number and has to be one.
func newSortOrder(c *command.Ctx, s *sorting, elements texts, unordered bool) (o *sortOrder, ok bool) {
	o = &sortOrder{keys: make([]sortKey, elements.len()), elements: elements, texts: elements, desc: s.desc,
		unordered: unordered}
	if !s.alpha {
		return o, weighByNumber(c, s, o)
	}
	// As in Redis, what is to be replied is compared as C does, up to a zero byte.
	o.cut = s.store == nil && s.by == nil && bytes.IndexByte(elements.data, 0) >= 0
	if s.by != nil {
		o.texts = sortTexts(c, s, elements)
	}
	o.weighByText()
	return o, true
}

// weighByNumber weighs elements by the numbers that they are, or that BY finds; it reports false if one is no number.
func weighByNumber(c *command.Ctx, s *sorting, o *sortOrder) bool {
	for i := range o.keys {
		v, found := o.elements.at(i), true
		if s.by != nil {
			v, found = s.by.value(c, v)
		}
		score, ok := 0.0, true
		if found { // what is not found counts as 0
			score, ok = sortScore(v)
		}
		if !ok {
			return false
		}
		o.keys[i] = sortKey{o.direct(orderOf(score)), i}
	}
	return true
}

// sortTexts returns the texts that BY finds. A byte in front of them puts those that are there behind those that are
// not.
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

// direct returns a weight for the direction in which elements are sorted.
func (o *sortOrder) direct(weight uint64) uint64 {
	if o.desc {
		return ^weight
	}
	return weight
}

// orderOf returns a number that is smaller than that of another score exactly if the score is.
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

// compare tells which element comes first. Two elements are never equal, unless they are the same.
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

// fewKeys is how many elements are sorted rather than divided.
const fewKeys = 64

// choose returns the elements from index first to last of the order, in order. What does not belong there is put
// aside by dividing the elements at one drawn by chance, as quicksort does, which takes O(n) on average whatever the
// elements are.
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

// divide puts what comes before element i in front of it and the rest behind it, and returns where it is then.
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

// sortScore reads a number as SORT does: C's strtod up to a zero byte, with spaces in front; nothing at all is 0.
func sortScore(v []byte) (score float64, ok bool) {
	v = command.UntilNUL(v)
	if len(v) == 0 {
		return 0, true
	}
	score, ok = resp.ParseFloat(bytes.TrimLeft(v, " \t\n\v\f\r"))
	return score, ok && !math.IsNaN(score)
}
