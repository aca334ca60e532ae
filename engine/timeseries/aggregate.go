package timeseries

import (
	"math"
	"slices"
	"strings"
)

// Aggregator combines the samples of a bucket into one number. All aggregators except CountNaN and CountAll ignore
// values that are NaN.
type Aggregator uint8

// The aggregators. Their numbers are stored.
const (
	Avg Aggregator = iota
	SumOf
	MinOf
	MaxOf
	Range // highest minus lowest
	Count
	FirstOf
	LastOf
	StdP // of a population
	StdS // of a sample
	VarP
	VarS
	TWA // time-weighted average
	CountNaN
	CountAll
	aggregators
)

var aggregatorNames = [aggregators]string{"avg", "sum", "min", "max", "range", "count", "first", "last", "std.p", "std.s",
	"var.p", "var.s", "twa", "countnan", "countall"}

// String returns the name of the aggregator in lower case.
func (a Aggregator) String() string { return aggregatorNames[a] }

// ParseAggregator returns the aggregator with a name, in any case.
func ParseAggregator(name string) (Aggregator, bool) {
	i := slices.IndexFunc(aggregatorNames[:], func(known string) bool { return strings.EqualFold(known, name) })
	return Aggregator(max(i, 0)), i >= 0
}

// BucketStart returns the start of the bucket that contains a time; it may be negative.
func BucketStart(time, bucket, align int64) int64 {
	// Both are not negative, so their difference cannot overflow.
	rest := (time - align) % bucket
	if rest < 0 {
		rest += bucket
	}
	return time - rest
}

// state is an aggregator's state for the samples of a bucket, which arrive in ascending or descending order of time.
type state struct {
	n, nans     int64 // numbers of samples that are not NaN, and that are NaN
	sum         float64
	mean, m2    float64 // for variances; TWA has its area in m2; mean is the factor of sum in Avg, where 0 means 1
	low, high   float64
	first, last float64
	// For TWA: the last sample that was a number, in this bucket or before; whether there is one; and the time from
	// which the area counts.
	prev    Sample
	hasPrev bool
	from    int64
}

// add adds samples of a bucket, whose part in the range begins at enter.
func (t *state) add(a Aggregator, enter int64, samples []Sample) {
	switch a {
	case Avg, SumOf:
		n, sum := t.n, t.sum
		if t.mean == 0 {
			for _, x := range samples {
				if x.Value == x.Value {
					n++
					sum += x.Value
				}
			}
		}
		if a == Avg && (t.mean != 0 || math.IsInf(sum, 0)) {
			t.addSmall(samples)
			return
		}
		t.n, t.sum = n, sum
	case MinOf, MaxOf, Range:
		for _, x := range samples {
			switch {
			case x.Value != x.Value:
				continue
			case t.n == 0:
				t.low, t.high = x.Value, x.Value
			case x.Value < t.low:
				t.low = x.Value
			case x.Value > t.high:
				t.high = x.Value
			}
			t.n++
		}
	case Count:
		for _, x := range samples {
			if x.Value == x.Value {
				t.n++
			}
		}
	case CountNaN:
		for _, x := range samples {
			if x.Value != x.Value {
				t.nans++
			}
		}
	case CountAll:
		t.n += int64(len(samples))
	case FirstOf, LastOf:
		for _, x := range samples {
			if x.Value == x.Value {
				if t.n == 0 {
					t.first = x.Value
				}
				t.last = x.Value
				t.n++
			}
		}
	case StdP, StdS, VarP, VarS:
		for _, x := range samples {
			if x.Value == x.Value {
				t.n++
				d := x.Value - t.mean
				t.mean += d / float64(t.n)
				t.m2 += d * (x.Value - t.mean)
			}
		}
	case TWA:
		for _, x := range samples {
			if x.Value == x.Value {
				t.weigh(enter, x)
			}
		}
	}
}

// smaller is the factor for values in sums of Avg that would overflow: it suffices for any number of samples.
const smaller = 1.0 / (1 << 63)

// addSmall adds samples, times smaller, to the sum of Avg.
func (t *state) addSmall(samples []Sample) {
	if t.mean == 0 {
		t.mean = smaller
		t.sum *= smaller
	}
	for _, x := range samples {
		if x.Value == x.Value {
			t.n++
			t.sum += x.Value * smaller
		}
	}
}

// weigh adds the area between the last sample, or enter, and this sample.
func (t *state) weigh(enter int64, x Sample) {
	switch {
	case t.n == 0 && !t.hasPrev:
		t.from = x.Time
	case t.n == 0:
		t.from = enter
		t.m2 += area(Sample{enter, between(t.prev, x, enter)}, x)
	default:
		t.m2 += area(t.prev, x)
	}
	t.prev, t.hasPrev = x, true
	t.n++
}

// area returns the area under the line between two samples.
func area(a, b Sample) float64 { return (a.Value + b.Value) / 2 * distance(a.Time, b.Time) }

func distance(a, b int64) float64 { return math.Abs(float64(b) - float64(a)) }

// weighNothing returns the time-weighted average over a range without samples. before and after have up to two of the
// nearest samples on each side, nearest first. The average is that of the line between both sides. If one side has
// none, it is the nearest value of the other side, provided that is closer than half the distance between that side's
// two samples.
func weighNothing(from, to int64, before, after []Sample) float64 {
	half := func(pair []Sample) float64 { return math.Floor(distance(pair[0].Time, pair[1].Time) / 2) }
	switch {
	case len(before) > 0 && len(after) > 0:
		return (between(before[0], after[0], from) + between(before[0], after[0], to)) / 2
	case len(after) > 1 && distance(to, after[0].Time) < half(after):
		return after[0].Value
	case len(before) > 1 && distance(before[0].Time, from) < half(before):
		return before[0].Value
	}
	return math.NaN()
}

// between returns the value at a time on the line between two samples.
func between(a, b Sample, time int64) float64 {
	return a.Value + (b.Value-a.Value)*(float64(time)-float64(a.Time))/(float64(b.Time)-float64(a.Time))
}

// result returns the number of a bucket, whose part in the range ends at leave; next is the following sample or nil. ok
// is false if no sample counts.
func (t *state) result(a Aggregator, leave int64, next *Sample) (value float64, ok bool) {
	switch a {
	case CountNaN:
		return float64(t.nans), t.nans > 0
	case CountAll:
		return float64(t.n + t.nans), t.n+t.nans > 0
	}
	if t.n == 0 {
		return t.none(a), false
	}
	n := float64(t.n)
	switch a {
	case Avg:
		if t.mean != 0 {
			return t.sum / n / t.mean, true
		}
		return t.sum / n, true
	case SumOf:
		return t.sum, true
	case MinOf:
		return t.low, true
	case MaxOf:
		return t.high, true
	case Range:
		return t.high - t.low, true
	case Count:
		return n, true
	case FirstOf:
		return t.first, true
	case LastOf:
		return t.last, true
	case VarP:
		return t.m2 / n, true
	case StdP:
		return math.Sqrt(t.m2 / n), true
	case VarS, StdS:
		v := 0.0
		if t.n > 1 {
			v = t.m2 / (n - 1)
		}
		if a == StdS {
			v = math.Sqrt(v)
		}
		return v, true
	}
	sum, to := t.m2, t.prev.Time
	if next != nil {
		to = leave
		sum += area(t.prev, Sample{leave, between(t.prev, *next, leave)})
	}
	if to == t.from {
		return t.prev.Value, true
	}
	return sum / distance(t.from, to), true
}

// counts reports whether any sample of the bucket counts.
func (t *state) counts(a Aggregator) bool {
	_, ok := t.result(a, 0, nil)
	return ok
}

// none returns the number of a bucket without samples.
func (t *state) none(a Aggregator) float64 {
	switch a {
	case SumOf, Count, CountNaN, CountAll:
		return 0
	case LastOf:
		if t.hasPrev {
			return t.prev.Value
		}
	}
	return math.NaN()
}

// next prepares the state for the following bucket.
func (t *state) next(a Aggregator) {
	was := *t
	*t = state{}
	switch {
	case a == TWA:
		t.prev, t.hasPrev = was.prev, was.n > 0
	case a == LastOf && was.n > 0:
		t.prev.Value, t.hasPrev = was.last, true
	case a == LastOf:
		t.prev, t.hasPrev = was.prev, was.hasPrev
	}
}

// Reduce combines values of the same time into one number, ignoring NaN.
func (a Aggregator) Reduce(values []float64) float64 {
	var t state
	var some [16]Sample
	for len(values) > 0 {
		n := min(len(values), len(some))
		for i, v := range values[:n] {
			some[i].Value = v
		}
		t.add(a, 0, some[:n])
		values = values[n:]
	}
	v, ok := t.result(a, 0, nil)
	if !ok && a == SumOf {
		return math.NaN()
	}
	return v
}

// Reduces reports whether Reduce is meaningful: values of one time have no first or last, and no time passes between
// them.
func (a Aggregator) Reduces() bool { return a != FirstOf && a != LastOf && a != TWA }
