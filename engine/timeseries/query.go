package timeseries

import (
	"errors"
	"math"
	"slices"
	"sort"
)

// Stamp says which time of a bucket is that of its row.
type Stamp uint8

// The times of a bucket.
const (
	Start Stamp = iota
	Mid
	End
)

// Query says what to read of a series.
type Query struct {
	// From and To are the first and the last time.
	From, To int64
	// Reverse is for rows in descending order of their times.
	Reverse bool
	// Times, in ascending order, are the only ones of samples that count; nil if all do.
	Times []int64
	// ByValue says that only samples count whose value is from Least to Most.
	ByValue     bool
	Least, Most float64
	// Count is the most rows that are wanted; 0 is all.
	Count int
	// Aggregators make a row of the samples in each bucket, of Bucket ms from Align on or before; without any there is a
	// row for each sample.
	Aggregators   []Aggregator
	Bucket, Align int64
	Stamp         Stamp
	// Empty asks for rows of buckets without samples between others, too.
	Empty bool
}

// Rows are what a query gives: times, and as many values for each as there are aggregators, one behind the other, or
// one.
type Rows struct {
	Times  []int64
	Values []float64
}

// Reset makes the rows none, and keeps their memory.
func (r *Rows) Reset() { r.Times, r.Values = r.Times[:0], r.Values[:0] }

// MaxEmpty is the most rows without samples that a query gives.
const MaxEmpty = 1 << 20

// ErrTooManyEmpty says that there are more buckets without samples than MaxEmpty.
var ErrTooManyEmpty = errors.New("too many empty buckets")

// Run appends the rows that a query gives to rows. latest, if it is not nil, counts as a sample behind all others.
func (s *Series) Run(q *Query, latest *Sample, rows *Rows) error {
	from, to := max(q.From, s.Begin()), q.To
	if from > to {
		return nil
	}
	var skip func(first, last int64) bool
	if q.Times != nil {
		if len(q.Times) == 0 {
			return nil
		}
		from, to = max(from, q.Times[0]), min(to, q.Times[len(q.Times)-1])
		skip = func(first, last int64) bool {
			i := sort.Search(len(q.Times), func(i int) bool { return q.Times[i] >= first })
			return i == len(q.Times) || q.Times[i] > last
		}
	}
	var tail []Sample
	if latest != nil && latest.Time >= from && latest.Time <= to {
		tail = []Sample{*latest}
	}
	sink := sink{q: q, rows: rows}
	take := sink.takeRaw
	if len(q.Aggregators) > 0 {
		sink.states = make([]state, len(q.Aggregators))
		take = sink.takeBuckets
	} else if !q.Reverse && !q.filters() && q.Count == 0 {
		n := s.roughly(from, to)
		rows.Times, rows.Values = slices.Grow(rows.Times, n), slices.Grow(rows.Values, n)
	}
	more := true
	if q.Reverse && tail != nil {
		more = take(q.filter(tail))
		tail = nil
	}
	if more {
		s.each(from, to, q.Reverse, skip, func(batch []Sample) bool {
			more = take(q.filter(batch))
			return more
		})
	}
	if more && tail != nil {
		more = take(q.filter(tail))
	}
	if more && len(q.Aggregators) > 0 && sink.open {
		sink.close(nil)
	}
	return sink.err
}

func (q *Query) filters() bool { return q.Times != nil || q.ByValue }

// filter returns the samples that count, in place.
func (q *Query) filter(batch []Sample) []Sample {
	if !q.filters() {
		return batch
	}
	kept := batch[:0]
	for _, x := range batch {
		if q.ByValue && !(x.Value >= q.Least && x.Value <= q.Most) {
			continue
		}
		if q.Times != nil {
			if _, ok := slices.BinarySearch(q.Times, x.Time); !ok {
				continue
			}
		}
		kept = append(kept, x)
	}
	return kept
}

// roughly returns at least the number of samples from one time to another.
func (s *Series) roughly(from, to int64) (n int) {
	if len(s.chunks) == 0 {
		return 0
	}
	for i := s.at(from); i < len(s.chunks) && s.chunks[i].first <= to; i++ {
		n += int(s.chunks[i].n)
	}
	return n
}

// each calls fn with the samples from one time to another, piece by piece, until it returns false. It may change the
// pieces. skip, if it is not nil, says of what times nothing is needed.
func (s *Series) each(from, to int64, reverse bool, skip func(first, last int64) bool, fn func(batch []Sample) bool) {
	if len(s.chunks) == 0 || from > to {
		return
	}
	room := borrow()
	defer room.giveBack()
	i, end := s.at(from), s.at(to)
	if reverse {
		for ; end >= i; end-- {
			c := s.chunks[end]
			if c.last < from || c.first > to || skip != nil && skip(c.first, c.last) {
				continue
			}
			room.samples = c.samples(room.samples[:0])
			batch := within(room.samples, from, to)
			slices.Reverse(batch)
			if !fn(batch) {
				return
			}
		}
		return
	}
	for ; i <= end; i++ {
		c := s.chunks[i]
		if c.last < from || c.first > to || skip != nil && skip(c.first, c.last) {
			continue
		}
		r := reader{c: c}
		if c.plain && c.first < from {
			r.i = uint32(c.plainFrom(from))
		}
		for r.i < c.n {
			batch := room.samples[:min(roomSize, cap(room.samples))]
			batch = batch[:r.read(batch)]
			if last := batch[len(batch)-1].Time; last < from {
				continue
			} else if batch[0].Time < from || last > to {
				batch = within(batch, from, to)
				if last > to {
					r.i = c.n
				}
			}
			if len(batch) > 0 && !fn(batch) {
				return
			}
		}
	}
}

// within returns the samples from one time to another.
func within(samples []Sample, from, to int64) []Sample {
	samples = samples[search(samples, from):]
	if to == math.MaxInt64 {
		return samples
	}
	return samples[:search(samples, to+1)]
}

// sink makes rows of samples, which come in the order of the rows.
type sink struct {
	q      *Query
	rows   *Rows
	states []state
	open   bool
	start  int64 // of the open bucket
	empty  int   // rows of buckets without samples
	err    error
}

// room returns how many more rows are wanted.
func (k *sink) room() int {
	if k.q.Count == 0 {
		return math.MaxInt
	}
	return k.q.Count - len(k.rows.Times)
}

// takeRaw makes a row of each sample, and reports whether more are wanted.
func (k *sink) takeRaw(batch []Sample) bool {
	batch = batch[:min(len(batch), k.room())]
	at := len(k.rows.Times)
	k.rows.Times = slices.Grow(k.rows.Times, len(batch))[:at+len(batch)]
	k.rows.Values = slices.Grow(k.rows.Values, len(batch))[:at+len(batch)]
	times, values := k.rows.Times[at:], k.rows.Values[at:]
	for i, x := range batch {
		times[i], values[i] = x.Time, x.Value
	}
	return k.room() > 0
}

// takeBuckets makes rows of buckets, but for the one that is open at the end, and reports whether more are wanted.
func (k *sink) takeBuckets(batch []Sample) bool {
	q := k.q
	for len(batch) > 0 {
		b := BucketStart(batch[0].Time, q.Bucket, q.Align)
		end := saturated(b, q.Bucket)
		n := 1
		if last := batch[len(batch)-1].Time; last >= b && last < end {
			n = len(batch)
		} else {
			for n < len(batch) && batch[n].Time >= b && batch[n].Time < end {
				n++
			}
		}
		if !k.open {
			k.open, k.start = true, b
		} else if b != k.start {
			if !k.close(&batch[0]) || !k.fill(b, batch[0]) {
				k.open = false
				return false
			}
			k.start = b
		}
		for i, a := range q.Aggregators {
			k.states[i].add(a, k.enter(b), batch[:n])
		}
		batch = batch[n:]
	}
	return true
}

// enter returns the time at which one comes into a bucket, leave that at which one goes.
func (k *sink) enter(b int64) int64 {
	if k.q.Reverse {
		return saturated(b, k.q.Bucket)
	}
	return b
}

func (k *sink) leave(b int64) int64 {
	if k.q.Reverse {
		return b
	}
	return saturated(b, k.q.Bucket)
}

// close makes the row of the open bucket, behind which comes next, and reports whether more are wanted.
func (k *sink) close(next *Sample) bool {
	if next != nil && math.IsNaN(next.Value) {
		next = nil
	}
	at, some := len(k.rows.Values), k.q.Empty
	for i, a := range k.q.Aggregators {
		v, ok := k.states[i].result(a, k.leave(k.start), next)
		some = some || ok
		if !ok {
			v = k.states[i].none(a)
		}
		k.rows.Values = append(k.rows.Values, v)
		k.states[i].next(a)
	}
	if !some {
		k.rows.Values = k.rows.Values[:at]
		return true
	}
	k.rows.Times = append(k.rows.Times, k.stamp(k.start))
	return k.room() > 0
}

// fill makes the rows of the buckets between the open one and another, if they are wanted; next is the first sample
// there. It reports whether more are wanted.
func (k *sink) fill(to int64, next Sample) bool {
	if !k.q.Empty {
		return true
	}
	step := k.q.Bucket
	if k.q.Reverse {
		step = -step
	}
	for b := k.start + step; b != to; b += step {
		if k.empty++; k.empty > MaxEmpty {
			k.err = ErrTooManyEmpty
			return false
		}
		for i, a := range k.q.Aggregators {
			v := k.states[i].none(a)
			if t := &k.states[i]; a == TWA && t.hasPrev && !math.IsNaN(next.Value) {
				v = (between(t.prev, next, k.enter(b)) + between(t.prev, next, k.leave(b))) / 2
			}
			k.rows.Values = append(k.rows.Values, v)
		}
		if k.rows.Times = append(k.rows.Times, k.stamp(b)); k.room() <= 0 {
			return false
		}
	}
	return true
}

// stamp returns the time of the row of a bucket.
func (k *sink) stamp(b int64) int64 {
	switch k.q.Stamp {
	case Mid:
		b = saturated(b, k.q.Bucket/2)
	case End:
		b = saturated(b, k.q.Bucket)
	}
	return max(b, 0)
}

// Visible returns how many samples are within the retention, and the time of the first of them; 0 if there is none.
func (s *Series) Visible() (n int, first int64) {
	begin := s.Begin()
	for _, c := range s.chunks {
		switch {
		case c.last < begin:
			continue
		case c.first >= begin:
			if n == 0 {
				first = c.first
			}
			n += int(c.n)
		default:
			s.each(begin, c.last, false, nil, func(batch []Sample) bool {
				if n == 0 {
					first = batch[0].Time
				}
				n += len(batch)
				return true
			})
		}
	}
	return n, first
}
