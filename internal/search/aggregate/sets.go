package aggregate

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// list has distinct values in the order in which they came.
type list struct {
	values []value.Value
	known  map[string]struct{} // by their keys; nil while there are few
}

// few is the number of values up to which they are compared one by one.
const few = 8

// add adds a value unless the list has it. It returns the memory that this takes.
func (l *list) add(v value.Value, buf *[]byte) int {
	key := v.AppendKey((*buf)[:0])
	*buf = key
	if l.known == nil && len(l.values) < few {
		at := len(key)
		for _, other := range l.values {
			*buf = other.AppendKey((*buf)[:at])
			if string((*buf)[at:]) == string(key) {
				return 0
			}
		}
		l.values = append(l.values, v)
		return 40 + v.Size()
	}
	if l.known == nil {
		l.known = map[string]struct{}{}
		for _, other := range l.values {
			l.known[string(other.AppendKey(nil))] = struct{}{}
		}
	}
	if _, ok := l.known[string(key)]; ok {
		return 0
	}
	l.known[string(key)] = struct{}{}
	l.values = append(l.values, v)
	return 80 + len(key) + v.Size()
}

// toList is TOLIST.
type toList struct {
	of[list]
	buf []byte
}

func (b *reducerBuilder) toList() (reducer, error) {
	o, err := newOf[list](b)
	return &toList{of: o}, err
}

func (t *toList) add(group int, r *Row) {
	v := r.Get(t.slot)
	switch v.Kind() {
	case value.Absent:
	case value.Array:
		for _, item := range v.Items() {
			t.put(group, item)
		}
	default:
		t.put(group, v)
	}
}

func (t *toList) put(group int, v value.Value) { t.budget.take(t.states[group].add(v, &t.buf)) }

func (t *toList) result(group int) value.Value { return value.List(t.states[group].values) }

func (t *toList) encode(dst []byte, group int) []byte {
	return appendValues(dst, t.states[group].values)
}

func (t *toList) merge(group int, b []byte) ([]byte, error) {
	values, b, err := cutValues(b)
	for _, v := range values {
		t.put(group, v)
	}
	return b, err
}

func appendValues(dst []byte, values []value.Value) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	for _, v := range values {
		dst = v.Append(dst)
	}
	return dst
}

func cutValues(b []byte) (values []value.Value, rest []byte, err error) {
	n, b, err := cutCount(b)
	for i := 0; i < n && err == nil; i++ {
		var v value.Value
		v, b, err = value.Decode(b)
		values = append(values, v)
	}
	return values, b, err
}

// first is the value of the first row, by the order of FIRST_VALUE.
type first struct {
	any       bool
	value, by value.Value
}

// firstValue is FIRST_VALUE. Without BY the row that comes first is first.
type firstValue struct {
	of[first]
	by   int // a slot, -1 without BY
	desc bool
}

func (b *reducerBuilder) firstValue() (reducer, error) {
	o, err := newOf[first](b)
	if err != nil {
		return nil, err
	}
	f := &firstValue{of: o, by: -1}
	if b.Match("BY") {
		if f.by, err = b.key(); err != nil {
			return nil, err
		}
		if f.desc = b.Match("DESC"); !f.desc {
			b.Match("ASC")
		}
	}
	return f, b.finished()
}

func (f *firstValue) add(group int, r *Row) {
	row := first{any: true, value: orNull(r.Get(f.slot))}
	if f.by >= 0 {
		row.by = orNull(r.Get(f.by))
	}
	f.put(group, row)
}

func orNull(v value.Value) value.Value {
	if v.IsAbsent() {
		return value.Nil
	}
	return v
}

// put replaces the first row if row comes before it. Rows without a sort value come last.
func (f *firstValue) put(group int, row first) {
	s := &f.states[group]
	switch {
	case !s.any:
	case f.by < 0 || row.by.IsNull():
		return
	case s.by.IsNull():
	default:
		if c := value.Order(row.by, s.by); c == 0 || c > 0 != f.desc {
			return
		}
	}
	f.budget.take(row.value.Size() + row.by.Size() - s.value.Size() - s.by.Size())
	*s = row
}

func (f *firstValue) result(group int) value.Value { return orNull(f.states[group].value) }

func (f *firstValue) encode(dst []byte, group int) []byte {
	s := f.states[group]
	if !s.any {
		return append(dst, 0)
	}
	return s.by.Append(s.value.Append(append(dst, 1)))
}

func (f *firstValue) merge(group int, b []byte) ([]byte, error) {
	any, b, err := cutInt(b)
	if err != nil || any == 0 {
		return b, err
	}
	row := first{any: true}
	if row.value, b, err = value.Decode(b); err != nil {
		return nil, err
	}
	if row.by, b, err = value.Decode(b); err != nil {
		return nil, err
	}
	f.put(group, row)
	return b, nil
}

// reservoir is a random sample of the values seen.
type reservoir struct {
	seen   int
	sample []value.Value
}

// randomSample is RANDOM_SAMPLE.
type randomSample struct {
	of[reservoir]
	most int
	rand *rand.Rand
}

func (b *reducerBuilder) randomSample() (reducer, error) {
	o, err := newOf[reservoir](b)
	if err != nil {
		return nil, err
	}
	s := &randomSample{of: o, rand: b.options.Rand}
	var bad args.Problem
	if s.most, bad = b.Count(); bad != args.None {
		return nil, bad.For("<sample size>")
	}
	if s.most > maxSample {
		return nil, args.Errorf(query.BadArguments, "Sample size too large")
	}
	return s, nil
}

func (s *randomSample) add(group int, r *Row) {
	v := r.Get(s.slot)
	if v.IsAbsent() {
		return
	}
	state := &s.states[group]
	state.seen++
	if len(state.sample) < s.most {
		state.sample = append(state.sample, v)
		s.budget.take(40 + v.Size())
	} else if i := s.rand.IntN(state.seen); i < s.most {
		s.budget.take(v.Size() - state.sample[i].Size())
		state.sample[i] = v
	}
}

func (s *randomSample) result(group int) value.Value { return value.List(s.states[group].sample) }

func (s *randomSample) encode(dst []byte, group int) []byte {
	state := s.states[group]
	return appendValues(binary.AppendUvarint(dst, uint64(state.seen)), state.sample)
}

// merge draws from both samples in proportion to the values that each has seen.
func (s *randomSample) merge(group int, b []byte) ([]byte, error) {
	seen, b, err := cutInt(b)
	if err != nil {
		return nil, err
	}
	theirs, b, err := cutValues(b)
	if err != nil || len(theirs) > s.most || len(theirs) > seen {
		return nil, errPart
	}
	state := &s.states[group]
	ours, left, total := state.sample, seen, state.seen+seen
	if len(ours)+len(theirs) <= s.most {
		state.sample, state.seen = append(ours, theirs...), total
		return b, nil
	}
	var sample []value.Value
	for mine := state.seen; len(sample) < s.most && len(ours)+len(theirs) > 0; {
		from, weight := &ours, &mine
		if len(ours) == 0 || len(theirs) > 0 && s.rand.IntN(mine+left) >= mine {
			from, weight = &theirs, &left
		}
		i := s.rand.IntN(len(*from))
		sample = append(sample, (*from)[i])
		(*from)[i] = (*from)[len(*from)-1]
		*from = (*from)[:len(*from)-1]
		*weight--
	}
	state.sample, state.seen = sample, total
	return b, nil
}

// countDistinct is COUNT_DISTINCT: it remembers a hash of each value.
type countDistinct struct {
	of[map[uint64]struct{}]
	buf []byte
}

func (b *reducerBuilder) countDistinct() (reducer, error) {
	o, err := newOf[map[uint64]struct{}](b)
	return &countDistinct{of: o}, err
}

func (c *countDistinct) add(group int, r *Row) {
	v := r.Get(c.slot)
	if v.IsNull() {
		return
	}
	c.buf = v.AppendKey(c.buf[:0])
	c.put(group, xxh3.Hash(c.buf))
}

func (c *countDistinct) put(group int, hash uint64) {
	if c.states[group] == nil {
		c.states[group] = map[uint64]struct{}{}
	}
	before := len(c.states[group])
	c.states[group][hash] = struct{}{}
	c.budget.take(16 * (len(c.states[group]) - before))
}

func (c *countDistinct) result(group int) value.Value {
	return value.Num(float64(len(c.states[group])))
}

func (c *countDistinct) encode(dst []byte, group int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.states[group])))
	for hash := range c.states[group] {
		dst = binary.LittleEndian.AppendUint64(dst, hash)
	}
	return dst
}

func (c *countDistinct) merge(group int, b []byte) ([]byte, error) {
	n, b, err := cutCount(b)
	if err != nil || n > len(b)/8 {
		return nil, errPart
	}
	for ; n > 0; n-- {
		c.put(group, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	return b, nil
}

// sketch is COUNT_DISTINCTISH, HLL and HLL_SUM.
type sketch struct {
	of[registers]
	raw   bool // the result is the sketch itself
	union bool // the values are sketches
	buf   []byte
}

func (b *reducerBuilder) countDistinctish() (reducer, error) {
	o, err := newOf[registers](b)
	return &sketch{of: o}, err
}

func (b *reducerBuilder) hll() (reducer, error) {
	o, err := newOf[registers](b)
	return &sketch{of: o, raw: true}, err
}

func (b *reducerBuilder) hllSum() (reducer, error) {
	o, err := newOf[registers](b)
	return &sketch{of: o, union: true}, err
}

func (s *sketch) grow() {
	s.of.grow()
	s.budget.take(len(registers{}))
}

func (s *sketch) add(group int, r *Row) {
	switch v := r.Get(s.slot); {
	case v.IsNull():
	case !s.union:
		s.buf = v.AppendKey(s.buf[:0])
		s.states[group].add(hash32(xxh3.Hash(s.buf)))
	case v.Kind() == value.String:
		if text, ok := strings.CutPrefix(v.Text(), sketchHeader); ok && len(text) == len(registers{}) {
			s.states[group].union([]byte(text))
		}
	}
}

func (s *sketch) result(group int) value.Value {
	if s.raw {
		return value.Str(sketchHeader + string(s.states[group][:]))
	}
	return value.Num(float64(s.states[group].count()))
}

func (s *sketch) encode(dst []byte, group int) []byte { return append(dst, s.states[group][:]...) }

func (s *sketch) merge(group int, b []byte) ([]byte, error) {
	n := len(registers{})
	if len(b) < n {
		return nil, errPart
	}
	s.states[group].union(b[:n])
	return b[n:], nil
}
