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
	// Empty asks for rows of buckets without samples, too, if there are samples before and after them, be it outside of
	// the range.
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
	sink := sink{s: s, q: q, rows: rows}
	take := sink.takeRaw
	if len(q.Aggregators) > 0 {
		sink.prepare()
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
	if more && len(q.Aggregators) > 0 {
		sink.finish()
	}
	return sink.err
}

// neighbours appends to dst at most count samples that count and are numbers, from a time on, or before it, nearest first.
func (s *Series) neighbours(dst []Sample, q *Query, time int64, before bool, count int) []Sample {
	from, to := max(time, s.Begin()), int64(math.MaxInt64)
	if before {
		from, to = s.Begin(), time-1
	}
	s.each(from, to, before, nil, func(batch []Sample) bool {
		for _, x := range q.filter(batch) {
			if x.Value == x.Value {
				if dst = append(dst, x); len(dst) == count {
					return false
				}
			}
		}
		return true
	})
	return dst
}

// neighbour returns the nearest of them, nil if there is none.
func (s *Series) neighbour(q *Query, time int64, before bool) *Sample {
	if found := s.neighbours(nil, q, time, before, 1); len(found) > 0 {
		return &found[0]
	}
	return nil
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
// pieces. skip, if it is not nil, reports whether the samples of a time range can be left out.
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
	s    *Series
	q    *Query
	rows *Rows
	// how are the aggregators as the samples come: what comes first is the last of a bucket if they come in reverse.
	how    []Aggregator
	states []state
	beyond bool // samples outside of the range matter
	open   bool
	start  int64 // of the open bucket
	// seen is the last sample that was a number, or the one that the range begins behind; nil if there is none.
	seen  *Sample
	last  Sample // what seen points to
	empty int    // rows of buckets without samples
	err   error
}

// prepare makes the sink ready for buckets.
func (k *sink) prepare() {
	k.states, k.how = make([]state, len(k.q.Aggregators)), k.q.Aggregators
	k.beyond = k.q.Empty || slices.Contains(k.how, TWA)
	if k.q.Reverse && (slices.Contains(k.how, FirstOf) || slices.Contains(k.how, LastOf)) {
		k.how = slices.Clone(k.how)
		for i, a := range k.how {
			switch a {
			case FirstOf:
				k.how[i] = LastOf
			case LastOf:
				k.how[i] = FirstOf
			}
		}
	}
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
		switch {
		case !k.open:
			if k.open = true; k.beyond && !k.enterRange(b, batch[0]) {
				k.open = false
				return false
			}
			k.start = b
		case b != k.start:
			if !k.close(&batch[0]) || !k.fill(k.start+k.step(), b, batch[0]) {
				k.open = false
				return false
			}
			k.start = b
		}
		for i, a := range k.how {
			k.states[i].add(a, k.enter(b), batch[:n])
		}
		if k.beyond {
			k.see(batch[:n])
		}
		batch = batch[n:]
	}
	return true
}

// see keeps the last number among samples.
func (k *sink) see(samples []Sample) {
	for i := len(samples) - 1; i >= 0; i-- {
		if x := samples[i]; x.Value == x.Value {
			k.last = x
			k.seen = &k.last
			return
		}
	}
}

// enterRange looks for the sample before the range, and makes the rows of buckets without samples up to the one that the
// first sample, x, is in. It reports whether more rows are wanted.
func (k *sink) enterRange(b int64, x Sample) bool {
	k.lookBack(x.Time)
	for i, a := range k.how {
		if t := &k.states[i]; a == TWA && k.seen != nil {
			t.prev, t.hasPrev = *k.seen, true
		}
	}
	if k.seen == nil || x.Value != x.Value && k.ahead(x.Time) == nil {
		return true
	}
	return k.fill(k.firstBucket(), b, x)
}

// lookBack makes seen the number before a time, in the order of the rows.
func (k *sink) lookBack(time int64) {
	if k.q.Reverse {
		time = saturated(time, 1)
	}
	if x := k.s.neighbour(k.q, time, !k.q.Reverse); x != nil {
		k.last = *x
		k.seen = &k.last
	}
}

// ahead returns the number at a time or behind it, in the order of the rows; nil if there is none.
func (k *sink) ahead(time int64) *Sample {
	if k.q.Reverse {
		time = saturated(time, 1)
	}
	return k.s.neighbour(k.q, time, k.q.Reverse)
}

// behind returns the number behind a time, in the order of the rows, and not at it; nil if there is none.
func (k *sink) behind(time int64) *Sample {
	if k.q.Reverse {
		return k.s.neighbour(k.q, time, true)
	}
	if time == math.MaxInt64 {
		return nil
	}
	return k.s.neighbour(k.q, time+1, false)
}

// finish makes the row of the open bucket, and those of buckets behind it that have no samples, if there are samples behind
// the range.
func (k *sink) finish() {
	edge := k.q.To
	if k.q.Reverse {
		edge = k.q.From
	}
	var next *Sample
	if k.beyond {
		next = k.behind(edge)
	}
	from := k.firstBucket()
	if k.open {
		if !k.close(next) {
			return
		}
		from = k.start + k.step()
	} else if k.q.Empty {
		first := k.q.From
		if k.q.Reverse {
			first = k.q.To
		}
		k.lookBack(first)
	}
	if k.q.Empty && next != nil && k.seen != nil {
		k.fill(from, BucketStart(edge, k.q.Bucket, k.q.Align)+k.step(), *next)
	}
}

func (k *sink) firstBucket() int64 {
	if k.q.Reverse {
		return BucketStart(k.q.To, k.q.Bucket, k.q.Align)
	}
	return BucketStart(k.q.From, k.q.Bucket, k.q.Align)
}

// step is how far the next bucket is, in the order of the rows.
func (k *sink) step() int64 {
	if k.q.Reverse {
		return -k.q.Bucket
	}
	return k.q.Bucket
}

// enter returns the time at which one comes into what of a bucket is in the range, leave that at which one goes.
func (k *sink) enter(b int64) int64 {
	if k.q.Reverse {
		return min(saturated(b, k.q.Bucket), k.q.To)
	}
	return max(b, k.q.From)
}

func (k *sink) leave(b int64) int64 {
	if k.q.Reverse {
		return max(b, k.q.From)
	}
	return min(saturated(b, k.q.Bucket), k.q.To)
}

// close makes the row of the open bucket, behind which comes next, and reports whether more are wanted.
func (k *sink) close(next *Sample) bool {
	if next != nil && math.IsNaN(next.Value) {
		next = nil
	}
	at, some := len(k.rows.Values), k.q.Empty
	for i, a := range k.how {
		v, ok := k.states[i].result(a, k.leave(k.start), next)
		some = some || ok
		if !ok {
			v = k.nothing(i, k.start)
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

// nothing returns the number that an aggregator gives for a bucket of which no sample counts.
func (k *sink) nothing(i int, b int64) float64 {
	switch a := k.q.Aggregators[i]; {
	case a == TWA:
		low, high := max(b, k.q.From), min(saturated(b, k.q.Bucket), k.q.To)
		return weighNothing(low, high, k.s.neighbours(nil, k.q, low, true, 2), k.s.neighbours(nil, k.q, high, false, 2))
	case a == LastOf && k.q.Reverse && k.q.Empty:
		if x := k.s.neighbour(k.q, b, true); x != nil {
			return x.Value
		}
		return math.NaN()
	default:
		return k.states[i].none(a)
	}
}

// fill makes the rows of the buckets from one on and before another, which have no samples, if they are wanted; next is a
// sample behind them. It reports whether more are wanted.
func (k *sink) fill(b, end int64, next Sample) bool {
	if step := k.step(); !k.q.Empty || (end-b)/step <= 0 {
		return true
	}
	ahead := &next
	if math.IsNaN(next.Value) {
		ahead = k.ahead(next.Time)
	}
	older, lowest := k.seen, b
	if k.q.Reverse {
		older, lowest = ahead, end-k.step()
	}
	if older != nil && older.Time >= lowest { // in the first bucket, but before the range
		older = k.s.neighbour(k.q, lowest, true)
	}
	for ; b != end; b += k.step() {
		if k.empty++; k.empty > MaxEmpty {
			k.err = ErrTooManyEmpty
			return false
		}
		for i, a := range k.q.Aggregators {
			v := k.states[i].none(a)
			switch {
			case a == TWA && k.seen != nil && ahead != nil:
				v = (between(*k.seen, *ahead, k.enter(b)) + between(*k.seen, *ahead, k.leave(b))) / 2
			case a == TWA:
				v = k.nothing(i, b)
			case a == LastOf && older != nil:
				v = older.Value
			case a == LastOf:
				v = math.NaN()
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
	b = max(b, 0)
	switch k.q.Stamp {
	case Mid:
		b = saturated(b, k.q.Bucket/2)
	case End:
		b = saturated(b, k.q.Bucket)
	}
	return b
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
