package timeseries

import (
	"math"

	"github.com/atomredis/atomredis/engine/labels"
)

// How series come from other servers, and go to them: as settings, rules with their open buckets, and samples chunk by
// chunk. What another server takes for a chunk stays one.

// OpenBucket is what a rule knows of its open bucket. Numbers that the aggregator of the rule does not need are zero.
type OpenBucket struct {
	// Open says that the rule has seen a sample. Without it the rest counts once a sample comes for the same bucket.
	Open bool
	// Start is a time in the bucket, or the begin of it, which may be negative, or Newest.
	Start int64
	// Counts says that there is something in it that counts for the aggregator. It follows from the rest.
	Counts bool

	Count, NaNs  int64   // samples that are numbers, and that are none
	Sum, Squares float64 // of values, and of their squares
	// TooLarge says that the sum is larger than any number. Average is what Avg gives then.
	TooLarge    bool
	Average     float64
	Low, High   float64
	First, Last float64 // Last is that of an earlier bucket while Count is 0, NaN if there is none
	// Area is that of TWA below the line from From to Previous, the last sample that was a number. HasPrevious says that
	// there was one, in this bucket or in the one before.
	Area        float64
	From        int64
	Previous    Sample
	HasPrevious bool
}

// Newest stands for the time of the newest sample of the series.
const Newest = math.MinInt64

// State returns what the rule knows of its open bucket.
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

// setState makes a bucket the open one. Its numbers may be anything.
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

// EachRun calls fn with the samples of each chunk, which are valid until it returns.
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
	open  *chunk // the one that Chunk has begun, nil if it has no sample yet
	fixed bool   // Chunk begins chunks
}

// NewBuilder returns a Builder of a series with these settings, labels, which it keeps, and source, which may be "".
func NewBuilder(settings Settings, l []labels.Label, source string) *Builder {
	s := New(settings)
	s.SetLabels(l)
	s.source = source
	return &Builder{s: s}
}

// Rule adds a rule, once all samples are there. Neither the length of its buckets nor its alignment are negative, and the first is not 0.
func (b *Builder) Rule(destination string, a Aggregator, bucket, align int64, open *OpenBucket) {
	r := &Rule{Destination: destination, Aggregator: a, Bucket: bucket, Align: align}
	r.setState(open)
	if last, some := b.s.Newest(); open.Start == Newest {
		r.open, r.start = r.open && some, r.bucketOf(last.Time)
	}
	b.s.rules = append(b.s.rules, r)
}

// Chunk says that the samples to come are a chunk. Without it chunks are as large as the settings say.
func (b *Builder) Chunk() { b.open, b.fixed = nil, true }

// Add adds a sample. It reports false, and does not, if the time is negative or not after that of all others.
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

// Put adds a sample of any time, for a series without chunks of its own. It replaces the one at its time.
func (b *Builder) Put(x Sample) { b.s.Add(x, Last) }

// Series returns the series. The Builder is of no more use.
func (b *Builder) Series() *Series {
	s := b.s
	for _, c := range s.chunks[:max(len(s.chunks)-1, 0)] {
		s.buffers -= cap(c.buf)
		c.trim()
		s.buffers += cap(c.buf)
	}
	return s
}
