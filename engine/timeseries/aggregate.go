package timeseries

import (
	"math"
	"slices"
	"strings"
)

// Aggregator makes one number of the samples of a bucket. Values that are not numbers count for none but CountNaN and
// CountAll.
type Aggregator uint8

// The aggregators. Their numbers are stored.
const (
	Avg Aggregator = iota
	SumOf
	MinOf
	MaxOf
	Range // the highest minus the lowest
	Count
	FirstOf
	LastOf
	StdP // of the population
	StdS // of a sample
	VarP
	VarS
	TWA // the average weighted by time
	CountNaN
	CountAll
	aggregators
)

var aggregatorNames = [aggregators]string{"avg", "sum", "min", "max", "range", "count", "first", "last", "std.p", "std.s",
	"var.p", "var.s", "twa", "countnan", "countall"}

// String returns the name of the aggregator in lower case.
func (a Aggregator) String() string { return aggregatorNames[a] }

// ParseAggregator returns the aggregator of a name, in whatever case.
func ParseAggregator(name string) (Aggregator, bool) {
	i := slices.IndexFunc(aggregatorNames[:], func(known string) bool { return strings.EqualFold(known, name) })
	return Aggregator(max(i, 0)), i >= 0
}

// BucketStart returns the beginning of the bucket that a time is in, which may be negative.
func BucketStart(time, bucket, align int64) int64 {
	// Both are not negative, so that their difference is a number.
	rest := (time - align) % bucket
	if rest < 0 {
		rest += bucket
	}
	return time - rest
}

// state is what an aggregator knows of the samples of a bucket, in the order in which they come, be it that of their
// times or the opposite one.
type state struct {
	n, nans     int64 // samples that are numbers, and that are none
	sum         float64
	mean, m2    float64 // of variances; the area of TWA is in m2; mean is the factor of sum in Avg, 0 is 1
	low, high   float64
	first, last float64
	// TWA: the last sample that was a number, in this bucket or before; whether there was one; and since when the area
	// counts.
	prev    Sample
	hasPrev bool
	from    int64
}

// add counts samples of a bucket that one enters at a time.
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
	case Count, CountNaN, CountAll:
		for _, x := range samples {
			if x.Value == x.Value {
				t.n++
			} else {
				t.nans++
			}
		}
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

// smaller is the factor of values in sums of Avg that would be too large: so many samples do not come.
const smaller = 1.0 / (1 << 63)

// addSmall adds samples to the sum of Avg, times smaller.
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

// weigh adds to the area what lies between the last sample, or where the bucket is entered, and this one.
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

// area returns the area under the line from one sample to another.
func area(a, b Sample) float64 { return (a.Value + b.Value) / 2 * distance(a.Time, b.Time) }

func distance(a, b int64) float64 { return math.Abs(float64(b) - float64(a)) }

// weighNothing returns the average weighted by time from one time to another, between which there is no sample: of the line
// between the nearest samples before and after, of which there are up to two, nearest first. If one side has none it is the
// value of the nearest, as long as half the distance between the two of the other side does not end before.
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

// between returns the value at a time on the line from one sample to another.
func between(a, b Sample, time int64) float64 {
	return a.Value + (b.Value-a.Value)*(float64(time)-float64(a.Time))/(float64(b.Time)-float64(a.Time))
}

// result returns the number that a bucket gives, which one leaves at a time to come to next, if that is not nil; ok is
// false if there was nothing in it that counts.
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

// counts reports whether there was something in the bucket that counts.
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

// next makes the state that of another bucket, behind what has been seen.
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

// Reduce makes one number of values of one time, of which those that are not numbers stand for nothing.
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

// Reduces reports whether Reduce means something: which value is the first or the last, or what time has passed, has
// no answer.
func (a Aggregator) Reduces() bool { return a != FirstOf && a != LastOf && a != TWA }
