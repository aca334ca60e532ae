package timeseries

import (
	"errors"
	"math"
	"slices"
	"sort"
)

// Stamp chooses the time within a bucket for its row.
type Stamp uint8

// The times within a bucket.
const (
	Start Stamp = iota
	Mid
	End
)

// Query says what to read of a series.
type Query struct {
	// From and To are the first and the last time.
	From, To int64
	// Reverse makes rows descend by time.
	Reverse bool
	// Times, ascending, restricts the samples to these times; nil means all.
	Times []int64
	// ByValue restricts the samples to values from Least to Most.
	ByValue     bool
	Least, Most float64
	// Count is the maximum number of rows; 0 means all.
	Count int
	// Aggregators make one row for each bucket of Bucket ms, aligned to Align. Without any, each sample is a row.
	Aggregators   []Aggregator
	Bucket, Align int64
	Stamp         Stamp
	// Empty adds rows for buckets without samples, if there are samples before and after them, inside or outside of the
	// range.
	Empty bool
}

// Rows are the result of a query: times, and for each time one value per aggregator, or a single one.
type Rows struct {
	Times  []int64
	Values []float64
}

// Reset removes all rows, and keeps their memory.
func (r *Rows) Reset() { r.Times, r.Values = r.Times[:0], r.Values[:0] }

// MaxEmpty is the maximum number of rows without samples in a query.
const MaxEmpty = 1 << 20

// ErrTooManyEmpty says that there are more buckets without samples than MaxEmpty.
var ErrTooManyEmpty = errors.New("too many empty buckets")

// Run appends the rows of a query to rows. latest, if not nil, counts as a sample after all others.
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

// neighbours appends to dst up to count matching samples that are not NaN, before a time or from it on, nearest first.
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

// neighbour returns the nearest one, nil if there is none.
func (s *Series) neighbour(q *Query, time int64, before bool) *Sample {
	if found := s.neighbours(nil, q, time, before, 1); len(found) > 0 {
		return &found[0]
	}
	return nil
}

func (q *Query) filters() bool { return q.Times != nil || q.ByValue }

// filter returns the matching samples, in place.
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

// roughly returns an upper bound of the number of samples between two times.
func (s *Series) roughly(from, to int64) (n int) {
	if len(s.chunks) == 0 {
		return 0
	}
	for i := s.at(from); i < len(s.chunks) && s.chunks[i].first <= to; i++ {
		n += int(s.chunks[i].n)
	}
	return n
}

// each calls fn with the samples between two times, piece by piece, until it returns false. fn may change the pieces.
// If skip is not nil, it reports whether the samples of a time range can be skipped.
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

// within returns the samples between two times.
func within(samples []Sample, from, to int64) []Sample {
	samples = samples[search(samples, from):]
	if to == math.MaxInt64 {
		return samples
	}
	return samples[:search(samples, to+1)]
}

// sink turns samples, which come in the order of the rows, into rows.
type sink struct {
	s    *Series
	q    *Query
	rows *Rows
	// how has the aggregators for the order of the samples: in reverse, first and last are swapped.
	how    []Aggregator
	states []state
	beyond bool // samples outside of the range matter
	open   bool
	start  int64 // of the open bucket
	// seen is the last sample that was a number, or the one before the range; nil if there is none.
	seen  *Sample
	last  Sample // the target of seen
	empty int    // rows of buckets without samples
	err   error
}

// prepare prepares the sink for buckets.
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

// room returns how many more rows fit.
func (k *sink) room() int {
	if k.q.Count == 0 {
		return math.MaxInt
	}
	return k.q.Count - len(k.rows.Times)
}

// takeRaw adds a row for each sample, and reports whether there is room for more.
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

// takeBuckets adds the rows of completed buckets, and reports whether there is room for more. The last bucket stays
// open.
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

// see records the last number among samples.
func (k *sink) see(samples []Sample) {
	for i := len(samples) - 1; i >= 0; i-- {
		if x := samples[i]; x.Value == x.Value {
			k.last = x
			k.seen = &k.last
			return
		}
	}
}

// enterRange finds the sample before the range, and adds rows for empty buckets up to the bucket of the first sample,
// x. It reports whether there is room for more.
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

// lookBack sets seen to the number before a time, in the order of the rows.
func (k *sink) lookBack(time int64) {
	if k.q.Reverse {
		time = saturated(time, 1)
	}
	if x := k.s.neighbour(k.q, time, !k.q.Reverse); x != nil {
		k.last = *x
		k.seen = &k.last
	}
}

// ahead returns the number at or after a time, in the order of the rows; nil if there is none.
func (k *sink) ahead(time int64) *Sample {
	if k.q.Reverse {
		time = saturated(time, 1)
	}
	return k.s.neighbour(k.q, time, k.q.Reverse)
}

// behind returns the number after a time, in the order of the rows; nil if there is none.
func (k *sink) behind(time int64) *Sample {
	if k.q.Reverse {
		return k.s.neighbour(k.q, time, true)
	}
	if time == math.MaxInt64 {
		return nil
	}
	return k.s.neighbour(k.q, time+1, false)
}

// finish adds the row of the open bucket, and rows for empty buckets after it if there are samples after the range.
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

// step returns the distance to the next bucket, in the order of the rows.
func (k *sink) step() int64 {
	if k.q.Reverse {
		return -k.q.Bucket
	}
	return k.q.Bucket
}

// enter returns the time at which a bucket's part in the range begins, leave the time at which it ends, in the order of
// the rows.
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

// close adds the row of the open bucket, which next follows, and reports whether there is room for more.
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

// nothing returns an aggregator's number for a bucket without matching samples.
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

// fill adds rows for the empty buckets from b to before end, if requested; next is a sample after them. It reports
// whether there is room for more.
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

// Visible returns the number of samples within the retention, and the time of the first, 0 if there is none.
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
