package aggregate

import (
	"encoding/binary"
	"math"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// count is COUNT.
type count struct{ of[int] }

func (b *reducerBuilder) count() (reducer, error) {
	if !b.Done() {
		return nil, args.Errorf(query.BadAttribute, "Count accepts 0 values only")
	}
	return &count{of[int]{budget: b.budget}}, nil
}

func (c *count) add(group int, _ *Row)        { c.states[group]++ }
func (c *count) result(group int) value.Value { return value.Num(float64(c.states[group])) }

func (c *count) encode(dst []byte, group int) []byte {
	return binary.AppendUvarint(dst, uint64(c.states[group]))
}

func (c *count) merge(group int, b []byte) ([]byte, error) {
	n, b, err := cutInt(b)
	c.states[group] += n
	return b, err
}

// total is the sum of numbers and how many there are.
type total struct {
	n   int
	sum float64
}

// sum is SUM and AVG. Without numbers it is NaN.
type sum struct {
	of[total]
	mean bool
}

func (b *reducerBuilder) sum() (reducer, error) {
	o, err := newOf[total](b)
	return &sum{of: o}, err
}

func (b *reducerBuilder) avg() (reducer, error) {
	o, err := newOf[total](b)
	return &sum{of: o, mean: true}, err
}

func (s *sum) add(group int, r *Row) {
	if f, ok := r.Get(s.slot).ToNumber(); ok {
		t := &s.states[group]
		t.n++
		t.sum += f
	}
}

func (s *sum) result(group int) value.Value {
	t := s.states[group]
	switch {
	case t.n == 0:
		return value.Num(math.NaN())
	case s.mean:
		return value.Num(t.sum / float64(t.n))
	}
	return value.Num(t.sum)
}

func (s *sum) encode(dst []byte, group int) []byte {
	t := s.states[group]
	return appendFloat(binary.AppendUvarint(dst, uint64(t.n)), t.sum)
}

func (s *sum) merge(group int, b []byte) ([]byte, error) {
	n, b, err := cutInt(b)
	if err != nil {
		return nil, err
	}
	f, b, err := cutFloat(b)
	t := &s.states[group]
	t.n += n
	t.sum += f
	return b, err
}

// extreme is MIN and MAX.
type extreme struct {
	of[float64]
	none   float64 // the result without numbers
	better func(a, b float64) float64
}

func (b *reducerBuilder) min() (reducer, error) {
	o, err := newOf[float64](b)
	return &extreme{o, math.Inf(1), func(a, b float64) float64 { return min(a, b) }}, err
}

func (b *reducerBuilder) max() (reducer, error) {
	o, err := newOf[float64](b)
	return &extreme{o, math.Inf(-1), func(a, b float64) float64 { return max(a, b) }}, err
}

func (e *extreme) grow() {
	e.of.grow()
	e.states[len(e.states)-1] = e.none
}

func (e *extreme) add(group int, r *Row) {
	if f, ok := r.Get(e.slot).ToNumber(); ok && !math.IsNaN(f) {
		e.states[group] = e.better(e.states[group], f)
	}
}

func (e *extreme) result(group int) value.Value        { return value.Num(e.states[group]) }
func (e *extreme) encode(dst []byte, group int) []byte { return appendFloat(dst, e.states[group]) }

func (e *extreme) merge(group int, b []byte) ([]byte, error) {
	f, b, err := cutFloat(b)
	if err == nil {
		e.states[group] = e.better(e.states[group], f)
	}
	return b, err
}

// spread is the variance of numbers: square is the sum of the squared distances from the mean.
type spread struct {
	n            float64
	mean, square float64
}

func (s *spread) add(f float64) {
	s.n++
	distance := f - s.mean
	s.mean += distance / s.n
	s.square += distance * (f - s.mean)
}

// merge adds the numbers of another spread.
func (s *spread) merge(o spread) {
	n := s.n + o.n
	if n == 0 {
		return
	}
	distance := o.mean - s.mean
	s.square += o.square + distance*distance*s.n*o.n/n
	s.mean += distance * o.n / n
	s.n = n
}

// stddev is STDDEV, of a sample.
type stddev struct{ of[spread] }

func (b *reducerBuilder) stddev() (reducer, error) {
	o, err := newOf[spread](b)
	return &stddev{o}, err
}

func (s *stddev) add(group int, r *Row) { numbers(r.Get(s.slot), s.states[group].add) }

func (s *stddev) result(group int) value.Value {
	state := s.states[group]
	if state.n <= 1 {
		return value.Num(0)
	}
	return value.Num(math.Sqrt(state.square / (state.n - 1)))
}

func (s *stddev) encode(dst []byte, group int) []byte {
	state := s.states[group]
	return appendFloat(appendFloat(appendFloat(dst, state.n), state.mean), state.square)
}

func (s *stddev) merge(group int, b []byte) ([]byte, error) {
	var o spread
	var err error
	for _, f := range []*float64{&o.n, &o.mean, &o.square} {
		if *f, b, err = cutFloat(b); err != nil {
			return nil, err
		}
	}
	s.states[group].merge(o)
	return b, nil
}
