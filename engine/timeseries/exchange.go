package timeseries

import (
	"math"

	"github.com/atomredis/atomredis/engine/labels"
)

// This file exchanges series with other servers: settings, rules with their open buckets, and samples by chunk. It
// keeps the boundaries of chunks.

// OpenBucket is the state of a rule's open bucket. Fields that the aggregator does not need are zero.
type OpenBucket struct {
	// Open says that the rule has seen a sample. Otherwise the other fields count once a sample in the same bucket
	// arrives.
	Open bool
	// Start is the start of the bucket, which may be negative. A Builder takes any time in the bucket, or Newest.
	Start int64
	// Counts says that the bucket has a result. It follows from the other fields, and a Builder ignores it.
	Counts bool

	Count, NaNs  int64   // numbers of samples with a value, and with NaN
	Sum, Squares float64 // of values, and of their squares
	// TooLarge says that the sum overflows; Average replaces it then.
	TooLarge    bool
	Average     float64
	Low, High   float64
	First, Last float64 // while Count is 0, Last is from an earlier bucket, or NaN
	// Area is the area of TWA from From to Previous, the last sample with a value. HasPrevious says that there is one, in
	// this bucket or the one before.
	Area        float64
	From        int64
	Previous    Sample
	HasPrevious bool
}

// Newest stands for the time of the newest sample of the series.
const Newest = math.MinInt64

// State returns the state of the open bucket.
func (r *Rule) State() OpenBucket {
	t := &r.state
	b := OpenBucket{Open: r.open, Start: r.start, Counts: t.counts(r.Aggregator), Count: t.n, NaNs: t.nans}
	n := float64(t.n)
	switch r.Aggregator {
	case Avg:
		b.TooLarge = t.mean != 0
		if b.Sum = t.sum; b.TooLarge {
			b.Sum, b.Average = 0, t.sum/n/t.mean
		}
	case SumOf:
		b.Sum = t.sum
	case MinOf, MaxOf, Range:
		b.Low, b.High = t.low, t.high
	case FirstOf, LastOf:
		b.First, b.Last = t.first, t.last
		if t.n == 0 {
			b.Last = t.none(LastOf)
		}
	case StdP, StdS, VarP, VarS:
		b.Sum, b.Squares = t.mean*n, t.m2+t.mean*t.mean*n
	case TWA:
		b.Area, b.From, b.Previous, b.HasPrevious = t.m2, t.from, t.prev, t.hasPrev
	}
	return b
}

// setState sets the state of the open bucket. It accepts any numbers.
func (r *Rule) setState(b *OpenBucket) {
	r.open, r.start = b.Open, r.bucketOf(max(b.Start, 0))
	t := state{n: max(b.Count, 0), nans: max(b.NaNs, 0)}
	n := float64(t.n)
	switch r.Aggregator {
	case Avg:
		if t.sum = b.Sum; b.TooLarge && t.n > 0 {
			t.mean = smaller
			t.sum = b.Average * smaller * n
		}
	case SumOf:
		t.sum = b.Sum
	case MinOf, MaxOf, Range:
		t.low, t.high = b.Low, b.High
	case FirstOf, LastOf:
		t.first, t.last = b.First, b.Last
		if r.Aggregator == LastOf && t.n == 0 && !math.IsNaN(b.Last) {
			t.prev.Value, t.hasPrev = b.Last, true
		}
	case StdP, StdS, VarP, VarS:
		if t.n > 0 {
			t.mean = b.Sum / n
			t.m2 = max(b.Squares-b.Sum*t.mean, 0)
		}
	case TWA:
		t.m2, t.from, t.prev, t.hasPrev = b.Area, b.From, b.Previous, b.HasPrevious
	}
	r.state = t
}

// EachRun calls fn with the samples of each chunk. They are valid until fn returns.
func (s *Series) EachRun(fn func(samples []Sample)) {
	room := borrow()
	defer room.giveBack()
	for _, c := range s.chunks {
		room.samples = c.samples(room.samples[:0])
		fn(room.samples)
	}
}

// Builder builds a series.
type Builder struct {
	s     *Series
	open  *chunk // the chunk begun by Chunk; nil while it has no sample
	fixed bool   // Chunk has been called
}

// NewBuilder returns a Builder for a series with these settings, labels and source, which may be "". It keeps l.
func NewBuilder(settings Settings, l []labels.Label, source string) *Builder {
	s := New(settings)
	s.SetLabels(l)
	s.source = source
	return &Builder{s: s}
}

// Rule adds a rule. It must follow all samples. bucket must be above 0, align must not be negative.
func (b *Builder) Rule(destination string, a Aggregator, bucket, align int64, open *OpenBucket) {
	r := &Rule{Destination: destination, Aggregator: a, Bucket: bucket, Align: align}
	r.setState(open)
	if last, some := b.s.Newest(); open.Start == Newest {
		r.open, r.start = r.open && some, r.bucketOf(last.Time)
	}
	b.s.rules = append(b.s.rules, r)
}

// Chunk begins a chunk with the samples that follow. Without it the settings determine the chunks.
func (b *Builder) Chunk() { b.open, b.fixed = nil, true }

// Add adds a sample. If its time is negative or not after all others, Add returns false.
func (b *Builder) Add(x Sample) bool {
	s := b.s
	last, some := s.Newest()
	switch {
	case x.Time < 0 || some && x.Time <= last.Time:
		return false
	case !some || b.fixed && (b.open == nil || b.open.n == maxSamples):
		s.appendChunk(x)
		b.open = s.chunks[len(s.chunks)-1]
	case !b.fixed:
		s.append(s.chunks[len(s.chunks)-1], x)
	default:
		was := cap(b.open.buf)
		b.open.append(x)
		s.buffers += cap(b.open.buf) - was
		s.length++
	}
	return true
}

// Put adds a sample at any time, and replaces an existing one. Chunk must not have been called.
func (b *Builder) Put(x Sample) { b.s.Add(x, Last) }

// Series returns the series. The Builder must not be used afterwards.
func (b *Builder) Series() *Series {
	s := b.s
	for _, c := range s.chunks[:max(len(s.chunks)-1, 0)] {
		s.buffers -= cap(c.buf)
		c.trim()
		s.buffers += cap(c.buf)
	}
	return s
}
