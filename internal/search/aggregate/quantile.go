package aggregate

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// stream keeps a summary of numbers from which quantiles are estimated: biased quantiles of Cormode, Korn, Muthukrishnan and
// Srivastava, with an error of 1 percent of the rank. New numbers wait in a buffer until it is full.
type stream struct {
	buffer  []float64
	samples []sample // by number
	n       float64  // how many numbers the samples stand for
}

// sample represents width numbers up to its own. Its rank is uncertain by delta.
type sample struct {
	number       float64
	width, delta float32
}

// slack is how many numbers a sample at a rank may represent.
func slack(rank float64) float64 { return 0.01 * 2 * rank }

// insert adds a number. The buffer holds resolution numbers.
func (s *stream) insert(f float64, resolution int) {
	s.buffer = append(s.buffer, f)
	if len(s.buffer) >= resolution {
		s.flush()
		s.compress()
	}
}

// flush moves the numbers of the buffer into the samples.
func (s *stream) flush() {
	if len(s.buffer) == 0 {
		return
	}
	slices.Sort(s.buffer)
	merged := make([]sample, 0, len(s.samples)+len(s.buffer))
	rank, at := 0.0, 0
	for _, f := range s.buffer {
		for at < len(s.samples) && s.samples[at].number <= f {
			rank += float64(s.samples[at].width)
			merged = append(merged, s.samples[at])
			at++
		}
		delta := 0.0 // after all samples the rank is exact
		if at < len(s.samples) {
			delta = math.Floor(slack(rank)) - 1
		}
		merged = append(merged, sample{f, 1, float32(delta)})
	}
	s.samples = append(merged, s.samples[at:]...)
	s.n += float64(len(s.buffer))
	s.buffer = s.buffer[:0]
}

// compress merges samples into later ones where the error bound allows it.
func (s *stream) compress() {
	if len(s.samples) < 2 {
		return
	}
	last := len(s.samples) - 1
	rank := s.n - 1 - float64(s.samples[last].width)
	kept := last // the samples from here on are those that stay
	for i := last - 1; i >= 0; i-- {
		this, next := s.samples[i], &s.samples[kept]
		if float64(this.width+next.width+next.delta) <= slack(rank) {
			next.width += this.width
		} else {
			kept--
			s.samples[kept] = this
		}
		rank -= float64(this.width)
	}
	s.samples = append(s.samples[:0], s.samples[kept:]...)
}

// quantile returns the estimate for a fraction, NaN without numbers.
func (s *stream) quantile(part float64) float64 {
	s.flush()
	if len(s.samples) == 0 {
		return math.NaN()
	}
	wanted := math.Ceil(part * s.n)
	wanted += math.Floor(slack(wanted) / 2)
	rank := 0.0
	for i := 1; i < len(s.samples); i++ {
		next := s.samples[i]
		if rank+float64(next.width)+float64(next.delta) >= wanted {
			return s.samples[i-1].number
		}
		rank += float64(next.width)
	}
	return s.samples[len(s.samples)-1].number
}

// merge adds the numbers of another stream's samples. The errors of both add up.
func (s *stream) merge(o *stream) {
	s.flush()
	s.samples = append(s.samples, o.samples...)
	slices.SortStableFunc(s.samples, func(a, b sample) int {
		switch {
		case a.number < b.number:
			return -1
		case a.number > b.number:
			return 1
		}
		return 0
	})
	s.n += o.n
	s.compress()
}

// quantile is QUANTILE.
type quantile struct {
	of[stream]
	part       float64
	resolution int
}

func (b *reducerBuilder) quantile() (reducer, error) {
	o, err := newOf[stream](b)
	if err != nil {
		return nil, err
	}
	q := &quantile{of: o, resolution: 500}
	var bad args.Problem
	if q.part, bad = b.Double(); bad != args.None {
		return nil, bad.For(b.name)
	}
	if q.part < 0 || q.part > 1 {
		return nil, args.Errorf(query.BadArguments, "Percentage must be between 0.0 and 1.0")
	}
	if !b.Done() {
		if q.resolution, bad = b.Count(); bad != args.None {
			return nil, bad.For("<resolution>")
		}
		if q.resolution < 1 || q.resolution > maxSample {
			return nil, args.Errorf(query.BadArguments, "Invalid resolution")
		}
	}
	return q, b.finished()
}

func (q *quantile) add(group int, r *Row) {
	s := &q.states[group]
	numbers(r.Get(q.slot), func(f float64) {
		if math.IsNaN(f) {
			return
		}
		before := cap(s.buffer)*8 + cap(s.samples)*16
		s.insert(f, q.resolution)
		q.budget.take(cap(s.buffer)*8 + cap(s.samples)*16 - before)
	})
}

func (q *quantile) result(group int) value.Value { return value.Num(q.states[group].quantile(q.part)) }

func (q *quantile) encode(dst []byte, group int) []byte {
	s := &q.states[group]
	s.flush()
	dst = binary.AppendUvarint(dst, uint64(len(s.samples)))
	for _, x := range s.samples {
		dst = appendFloat(dst, x.number)
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x.width))
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x.delta))
	}
	return dst
}

func (q *quantile) merge(group int, b []byte) ([]byte, error) {
	n, b, err := cutCount(b)
	if err != nil || n > len(b)/16 {
		return nil, errPart
	}
	o := stream{samples: make([]sample, n)}
	for i := range o.samples {
		x := &o.samples[i]
		x.number = math.Float64frombits(binary.LittleEndian.Uint64(b))
		x.width = math.Float32frombits(binary.LittleEndian.Uint32(b[8:]))
		x.delta = math.Float32frombits(binary.LittleEndian.Uint32(b[12:]))
		o.n += float64(x.width)
		b = b[16:]
	}
	q.states[group].merge(&o)
	return b, nil
}
