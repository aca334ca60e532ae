package timeseries

import (
	"encoding/binary"
	"math"
	"slices"
)

// Rule creates a compaction of a series: one sample per bucket of time, in another series. A bucket is closed, and its
// sample created, when a later bucket begins.
type Rule struct {
	// Destination is the key of the compaction.
	Destination string
	Aggregator  Aggregator
	// Bucket is the length of a bucket in ms, at least 1; one begins at Align.
	Bucket, Align int64

	open  bool  // a bucket is open
	start int64 // start of the open bucket, to which state belongs
	state state
}

// Rules returns the rules, which must not be changed.
func (s *Series) Rules() []*Rule { return s.rules }

// Rule returns the rule with a destination, nil if there is none.
func (s *Series) Rule(destination string) *Rule {
	i := slices.IndexFunc(s.rules, func(r *Rule) bool { return r.Destination == destination })
	if i < 0 {
		return nil
	}
	return s.rules[i]
}

// changeRules calls change and notes that it changes the rules.
func (s *Series) changeRules(change func()) {
	s.before(metaPart)
	s.before(statePart)
	change()
	s.after(metaPart)
	s.after(statePart)
}

// AddRule adds a rule. Existing samples open no bucket; they count in buckets that are recomputed for a late sample.
func (s *Series) AddRule(destination string, a Aggregator, bucket, align int64) {
	r := &Rule{Destination: destination, Aggregator: a, Bucket: bucket, Align: align}
	s.changeRules(func() { s.rules = append(s.rules, r) })
}

// RemoveRule removes the rule with a destination, if there is one.
func (s *Series) RemoveRule(destination string) {
	s.changeRules(func() {
		s.rules = slices.DeleteFunc(s.rules, func(r *Rule) bool { return r.Destination == destination })
	})
}

// RenameDestination updates the key of a destination.
func (s *Series) RenameDestination(from, to string) {
	s.changeRules(func() {
		if r := s.Rule(from); r != nil {
			r.Destination = to
		}
	})
}

// saturated returns a + b, where b is not negative, but at most the latest time.
func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (r *Rule) bucketOf(time int64) int64 { return BucketStart(time, r.Bucket, r.Align) }

func (r *Rule) end(start int64) int64 { return saturated(start, r.Bucket) }

// Compactions are the destinations of rules, for changes by their series.
type Compactions interface {
	// Close adds the sample of a bucket that a later one has closed.
	Close(r *Rule, sample Sample)
	// Replace deletes the samples from first to last, if first is not after last, and adds others.
	Replace(r *Rule, first, last int64, samples []Sample)
	// Newest returns the last sample; ok is false if there is none.
	Newest(r *Rule) (last Sample, ok bool)
}

// Advance passes an Appended sample to the rules. It closes the buckets that end before the sample.
func (s *Series) Advance(sample Sample, to Compactions) {
	if len(s.rules) == 0 {
		return
	}
	s.before(statePart)
	for _, r := range s.rules {
		b := r.bucketOf(sample.Time)
		switch {
		case !r.open:
			if r.open = true; b != r.start {
				r.start, r.state = b, state{}
			}
		case b > r.start:
			var next *Sample
			if !math.IsNaN(sample.Value) {
				next = &Sample{sample.Time, sample.Value}
			}
			s.closeOpen(r, next, to)
			r.state.next(r.Aggregator)
			r.start = b
		}
		r.state.add(r.Aggregator, b, []Sample{sample})
	}
	s.after(statePart)
}

// closeOpen closes the open bucket of a rule. next is the following sample, or nil.
func (s *Series) closeOpen(r *Rule, next *Sample, to Compactions) {
	if value, ok := r.state.result(r.Aggregator, r.end(r.start), next); ok {
		to.Close(r, Sample{max(r.start, 0), value})
	}
}

// Open returns the present result of a rule's open bucket; ok is false if there is none.
func (r *Rule) Open() (latest Sample, ok bool) {
	if !r.open {
		return Sample{}, false
	}
	value, ok := r.state.result(r.Aggregator, r.end(r.start), nil)
	return Sample{max(r.start, 0), value}, ok
}

// Repair updates the rules after samples between two times were inserted, changed or deleted, none of them Appended.
// newest is the time of the last sample before that.
func (s *Series) Repair(from, to, newest int64, dest Compactions) {
	if len(s.rules) == 0 {
		return
	}
	s.before(statePart)
	for _, r := range s.rules {
		a, last := r.bucketOf(from), r.bucketOf(newest)
		if r.open {
			last = r.start
		}
		if a > last { // after all buckets so far
			if t, _ := s.stateOf(r, a); t.counts(r.Aggregator) {
				s.closeOpen(r, s.following(r, r.end(r.start)), dest)
				r.start, r.state = a, t
			}
			continue
		}
		if a < last {
			s.replaceClosed(r, a, min(r.bucketOf(to), last-1), dest)
		}
		if to < last {
			continue
		}
		if !s.rebuild(r, last) {
			s.reopen(r, dest)
		}
	}
	s.after(statePart)
}

// rebuild recomputes the state of a rule for a bucket, and reports whether the bucket has samples.
func (s *Series) rebuild(r *Rule, start int64) (some bool) {
	r.start = start
	r.state, some = s.stateOf(r, start)
	return some
}

// reopen opens the bucket of the compaction's last sample again, because no later bucket has samples any more.
func (s *Series) reopen(r *Rule, dest Compactions) {
	last, ok := dest.Newest(r)
	if ok {
		dest.Replace(r, last.Time, last.Time, nil)
	}
	r.open = s.rebuild(r, r.bucketOf(last.Time))
}

// replaceClosed updates a compaction from the bucket that starts at a to the one that contains to. Buckets between
// these two have no samples any more.
func (s *Series) replaceClosed(r *Rule, a, to int64, dest Compactions) {
	var samples []Sample
	add := func(start int64) {
		t, _ := s.stateOf(r, start)
		if v, ok := t.result(r.Aggregator, r.end(start), s.following(r, r.end(start))); ok {
			samples = append(samples, Sample{max(start, 0), v})
		}
	}
	add(a)
	if b := r.bucketOf(max(to, 0)); b > a {
		add(b)
	}
	dest.Replace(r, max(a, 0), max(to, 0), samples)
}

// stateOf computes a rule's state for the bucket that starts at a time; some is false if the bucket has no samples.
func (s *Series) stateOf(r *Rule, start int64) (t state, some bool) {
	begin := s.Begin()
	if r.Aggregator == TWA {
		s.each(begin, start-1, true, nil, func(batch []Sample) bool {
			i := slices.IndexFunc(batch, func(x Sample) bool { return !math.IsNaN(x.Value) })
			if i >= 0 {
				t.prev, t.hasPrev = batch[i], true
			}
			return i < 0
		})
	}
	s.each(max(start, begin), r.end(start)-1, false, nil, func(batch []Sample) bool {
		t.add(r.Aggregator, start, batch)
		some = true
		return true
	})
	return t, some
}

// following returns the first number at or after a time, if the rule needs it; nil if there is none.
func (s *Series) following(r *Rule, time int64) (next *Sample) {
	if r.Aggregator != TWA {
		return nil
	}
	s.each(time, math.MaxInt64, false, nil, func(batch []Sample) bool {
		if i := slices.IndexFunc(batch, func(x Sample) bool { return !math.IsNaN(x.Value) }); i >= 0 {
			next = &Sample{batch[i].Time, batch[i].Value}
		}
		return next == nil
	})
	return next
}

// MayDelete reports whether samples from a time on may be deleted: the rules' buckets that contain them must not extend
// beyond the retention.
func (s *Series) MayDelete(from int64) bool {
	begin := s.Begin()
	for _, r := range s.rules {
		if r.bucketOf(from) < begin && begin > 0 {
			return false
		}
	}
	return true
}

// appendStates appends the stored states of the rules.
func (s *Series) appendStates(dst []byte) []byte {
	dst = append(dst, format)
	for _, r := range s.rules {
		t := &r.state
		dst = append(dst, byte(number(r.open)), byte(number(t.hasPrev)))
		for _, v := range [...]int64{r.start, t.n, t.nans, t.prev.Time, t.from} {
			dst = binary.AppendVarint(dst, v)
		}
		for _, v := range [...]float64{t.sum, t.mean, t.m2, t.low, t.high, t.first, t.last, t.prev.Value} {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return dst
}

// readStates reads the output of appendStates.
func (s *Series) readStates(b []byte) error {
	if len(b) == 0 || b[0] != format {
		return errFormat
	}
	f := fields{b: b[1:]}
	for _, r := range s.rules {
		t := &r.state
		open, has := f.byte(), f.byte()
		r.open, t.hasPrev = open == 1, has == 1
		for _, v := range [...]*int64{&r.start, &t.n, &t.nans, &t.prev.Time, &t.from} {
			*v = f.varint()
		}
		for _, v := range [...]*float64{&t.sum, &t.mean, &t.m2, &t.low, &t.high, &t.first, &t.last, &t.prev.Value} {
			*v = f.double()
		}
		if open > 1 || has > 1 || t.n < 0 || t.nans < 0 || t.prev.Time < 0 {
			return errState
		}
		if r.open && (r.start < -r.Bucket || r.bucketOf(max(r.start, 0)) != r.start) {
			return errState
		}
	}
	if f.bad || len(f.b) > 0 {
		return errState
	}
	return nil
}
