package timeseries

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/labels"
)

// model is a series in plain code.
type model struct {
	samples map[int64]float64
}

func (m *model) times() []int64 { return slices.Sorted(maps.Keys(m.samples)) }

func (m *model) newest() int64 {
	newest := int64(-1)
	for time := range m.samples {
		newest = max(newest, time)
	}
	return newest
}

// list returns the samples in words.
func list(samples []Sample) string {
	words := ""
	for _, x := range samples {
		words += fmt.Sprintf(" %d=%v", x.Time, x.Value)
	}
	return words
}

func all(s *Series) (samples []Sample) {
	s.each(0, math.MaxInt64, false, nil, func(batch []Sample) bool {
		samples = append(samples, batch...)
		return true
	})
	return samples
}

// stored is a series in its stored parts.
type stored struct {
	epochs delta.Epochs
	parts  map[string][]byte
}

// write does what a checkpoint does, and calls change meanwhile.
func (st *stored) write(s *Series, change func()) {
	st.epochs.Current++
	names := s.Log().Frozen().Sorted()
	change()
	for _, name := range names {
		if data, ok := s.Log().AppendFrozen(nil, name, s); ok {
			st.parts[name] = data
		} else {
			delete(st.parts, name)
		}
	}
	s.Log().Done()
}

func (st *stored) read(t *testing.T) *Series {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(st.parts)) {
		require.NoError(t, l.Add([]byte(name), st.parts[name]))
	}
	s, err := l.Finish(delta.NewLog(1, &st.epochs))
	require.NoError(t, err)
	return s
}

// TestSeriesIsAsItsModel applies random operations to series and to maps.
func TestSeriesIsAsItsModel(t *testing.T) {
	steps := 100_000
	switch {
	case os.Getenv("ATOMREDIS_FULL_TESTS") != "":
		steps = 1_000_000
	case testing.Short():
		steps = 20_000
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := 0; steps > 0; round++ {
		n := min(steps, 300)
		steps -= n
		followModel(t, rnd, n)
	}
}

func followModel(t *testing.T, rnd *rand.Rand, steps int) {
	s := New(Settings{ChunkSize: []int{48, 64, 128, 256}[rnd.IntN(4)], Plain: rnd.IntN(2) == 0, Policy: Last})
	if rnd.IntN(3) == 0 {
		s.Retention = int64(1 + rnd.IntN(20_000))
	}
	st := stored{epochs: delta.Epochs{Current: 1}, parts: map[string][]byte{}}
	s.Track(delta.NewLog(1, &st.epochs))
	m := model{samples: map[int64]float64{}}
	last := int64(0)
	jump := []int64{1, 10, 1000, 100_000, 1 << 40}[rnd.IntN(5)]
	value := func() float64 {
		switch rnd.IntN(6) {
		case 0:
			return rnd.NormFloat64()
		case 1:
			return math.NaN()
		case 2:
			return math.Float64frombits(rnd.Uint64() &^ (1 << 62))
		}
		return float64(rnd.IntN(10))
	}
	for range steps {
		switch k := rnd.IntN(100); {
		case k < 70:
			last += 1 + rnd.Int64N(jump)
			m.add(t, s, Sample{last, value()}, Last)
		case k < 85:
			m.add(t, s, Sample{rnd.Int64N(last + 2), value()}, Policy(rnd.IntN(6)))
		case k < 88:
			from := rnd.Int64N(last + 1)
			m.delete(t, s, from, from+rnd.Int64N(1+last/20))
		case k < 92:
			other := s.Clone()
			require.Equal(t, list(all(s)), list(all(other)))
			b := s.AppendBlob(nil)
			decoded, err := DecodeBlob(b)
			require.NoError(t, err)
			require.Equal(t, list(all(s)), list(all(decoded)))
			require.Equal(t, b, decoded.AppendBlob(nil))
		case k < 94:
			st.write(s, func() {})
			s = st.read(t)
		case k < 95:
			want := list(all(s))
			st.write(s, func() {
				for range rnd.IntN(20) {
					last += 1 + rnd.Int64N(jump)
					m.add(t, s, Sample{last, value()}, Last)
					m.add(t, s, Sample{rnd.Int64N(last + 2), value()}, Last)
				}
				from := rnd.Int64N(last + 1)
				m.delete(t, s, from, from+rnd.Int64N(1+last/20))
			})
			require.Equal(t, want, list(all(st.read(t))), "as it was when the checkpoint began")
		case k < 96:
			c, names := delta.Cursor{}, map[string]bool{}
			for more := true; more; {
				c, more = s.Walk(c, 1+rnd.IntN(5), func(name string) { names[name] = true })
			}
			require.Len(t, names, 2+len(s.chunks))
		default:
			m.compare(t, s, rnd)
		}
	}
	m.compare(t, s, rnd)
}

func (m *model) add(t *testing.T, s *Series, x Sample, p Policy) {
	newest, given := m.newest(), x
	old, has := m.samples[x.Time]
	want := Appended
	switch {
	case newest >= 0 && s.Retention > 0 && x.Time < newest-s.Retention:
		want = TooOld
	case p == Last && x.Time == newest && old == x.Value:
		want = Ignored
	case has:
		want = Inserted
		both := math.IsNaN(old) != math.IsNaN(x.Value)
		switch {
		case p == Block, both && p >= Min:
			want = Refused
		case p == First && !math.IsNaN(old):
			want = Kept
		case math.IsNaN(x.Value):
			want = Kept
		case p == Min:
			x.Value = min(x.Value, old)
		case p == Max:
			x.Value = max(x.Value, old)
		case p == Sum:
			x.Value += old
		}
		if want == Inserted && math.Float64bits(x.Value) == math.Float64bits(old) {
			want = Kept
		}
	case x.Time < newest:
		want = Inserted
	}
	got := s.Add(given, p)
	require.Equal(t, want, got, "%v by %v: there is %v", x, p, old)
	if want.Changed() {
		m.samples[x.Time] = x.Value
	}
}

func (m *model) delete(t *testing.T, s *Series, from, to int64) {
	want := 0
	begin := s.Begin()
	physical := map[int64]bool{}
	for _, x := range all(s) {
		physical[x.Time] = true
	}
	for time := range m.samples {
		if time >= from && time <= to {
			if time >= begin || physical[time] {
				want++
			}
			delete(m.samples, time)
		}
	}
	require.Equal(t, want, s.Delete(from, to))
}

// compare runs a random query.
func (m *model) compare(t *testing.T, s *Series, rnd *rand.Rand) {
	newest := m.newest()
	begin := int64(0)
	if s.Retention > 0 {
		begin = max(newest-s.Retention, 0)
	}
	q := Query{From: rnd.Int64N(newest + 2), To: rnd.Int64N(newest + 2), Reverse: rnd.IntN(2) == 0}
	if rnd.IntN(3) == 0 {
		q.From, q.To = 0, math.MaxInt64
	}
	if rnd.IntN(3) == 0 {
		q.ByValue, q.Least, q.Most = true, 0, 5
	}
	times := m.times()
	if rnd.IntN(4) == 0 && len(times) > 0 {
		q.Times = []int64{}
		for range rnd.IntN(5) {
			q.Times = append(q.Times, times[rnd.IntN(len(times))])
		}
		slices.Sort(q.Times)
	}
	if rnd.IntN(4) == 0 {
		q.Count = 1 + rnd.IntN(20)
	}
	var samples, kept []Sample // in the range, and overall
	for _, time := range times {
		v := m.samples[time]
		if time >= begin && (!q.ByValue || v >= q.Least && v <= q.Most) &&
			(q.Times == nil || slices.Contains(q.Times, time)) {
			kept = append(kept, Sample{time, v})
			if time >= q.From && time <= q.To {
				samples = append(samples, Sample{time, v})
			}
		}
	}
	if rnd.IntN(2) == 0 {
		q.Aggregators = []Aggregator{Aggregator(rnd.IntN(int(aggregators)))}
		q.Bucket, q.Align = 1+rnd.Int64N(newest/20+1), rnd.Int64N(newest+2)
	}
	if q.Reverse {
		slices.Reverse(samples)
		slices.Reverse(kept)
	}
	want := samples
	if len(q.Aggregators) > 0 {
		want = plainly(samples, kept, &q)
	}
	if q.Count > 0 {
		want = want[:min(len(want), q.Count)]
	}
	var rows Rows
	require.NoError(t, s.Run(&q, nil, &rows))
	got := make([]Sample, len(rows.Times))
	for i := range got {
		got[i] = Sample{rows.Times[i], rows.Values[i]}
	}
	require.True(t, slices.EqualFunc(want, got, alike), "%+v\nwant%s\ngot %s", q, list(want), list(got))
}

// alike reports whether samples are equal except for rounding.
func alike(a, b Sample) bool {
	if a.Time != b.Time || math.IsNaN(a.Value) != math.IsNaN(b.Value) {
		return false
	}
	return math.IsNaN(a.Value) || a.Value == b.Value || math.Abs(a.Value-b.Value) <= 1e-6*math.Abs(a.Value)+1e-6 ||
		math.Abs(a.Value) > 1e100 || math.IsInf(a.Value, 0)
}

// plainly aggregates samples, which are in the order of the rows, one aggregator at a time. kept also has those outside
// of the range.
func plainly(samples, kept []Sample, q *Query) (rows []Sample) {
	a := q.Aggregators[0]
	for i := 0; i < len(samples); {
		b := BucketStart(samples[i].Time, q.Bucket, q.Align)
		end := i
		var values []float64
		nans := 0
		for ; end < len(samples) && BucketStart(samples[end].Time, q.Bucket, q.Align) == b; end++ {
			if v := samples[end].Value; math.IsNaN(v) {
				nans++
			} else {
				values = append(values, v)
			}
		}
		in, i0 := samples[i:end], i
		i = end
		row := Sample{Time: max(b, 0)}
		sum, n := 0.0, float64(len(values))
		for _, v := range values {
			sum += v
		}
		mean, squares := sum/n, 0.0
		for _, v := range values {
			squares += (v - mean) * (v - mean)
		}
		if a == CountNaN && nans > 0 {
			row.Value = float64(nans)
		} else if a == CountAll {
			row.Value = float64(len(in))
		} else if len(values) == 0 || a == CountNaN {
			continue
		}
		switch a {
		case Avg:
			row.Value = mean
		case SumOf:
			row.Value = sum
		case MinOf:
			row.Value = slices.Min(values)
		case MaxOf:
			row.Value = slices.Max(values)
		case Range:
			row.Value = slices.Max(values) - slices.Min(values)
		case Count:
			row.Value = n
		case FirstOf, LastOf: // by time
			row.Value = values[0]
			if (a == FirstOf) == q.Reverse {
				row.Value = values[len(values)-1]
			}
		case VarP:
			row.Value = squares / n
		case StdP:
			row.Value = math.Sqrt(squares / n)
		case VarS, StdS:
			if n > 1 {
				row.Value = squares / (n - 1)
			}
			if a == StdS {
				row.Value = math.Sqrt(row.Value)
			}
		case TWA:
			row.Value = timeWeighted(samples, kept, i0, end, b, q)
		}
		rows = append(rows, row)
	}
	return rows
}

// timeWeighted integrates, piece by piece, the line through the samples that are numbers, over the part of the bucket
// that the line covers and that is in the range. The line extends to the last number of the previous bucket and to the
// first sample of the next one if that is a number; at the edges of the range it extends to the next number outside.
func timeWeighted(samples, kept []Sample, i, end int, b int64, q *Query) float64 {
	var line []Sample
	enter, leave := max(b, q.From), min(saturated(b, q.Bucket), q.To)
	if q.Reverse {
		enter, leave = leave, enter
	}
	first := slices.IndexFunc(kept, func(x Sample) bool { return x.Time == samples[i].Time })
	for j := first - 1; j >= 0; j-- {
		if i > 0 && BucketStart(kept[j].Time, q.Bucket, q.Align) != BucketStart(samples[i-1].Time, q.Bucket, q.Align) {
			break
		}
		if !math.IsNaN(kept[j].Value) {
			line = append(line, kept[j])
			break
		}
	}
	before := len(line) > 0
	for _, x := range samples[i:end] {
		if !math.IsNaN(x.Value) {
			if before {
				line[0] = Sample{enter, between(line[0], x, enter)}
				before = false
			}
			line = append(line, x)
		}
	}
	for _, x := range kept[first+end-i:] {
		if !math.IsNaN(x.Value) {
			line = append(line, Sample{leave, between(line[len(line)-1], x, leave)})
		} else if end == len(samples) {
			continue
		}
		break
	}
	sum := 0.0
	for k := 1; k < len(line); k++ {
		sum += area(line[k-1], line[k])
	}
	if d := distance(line[0].Time, line[len(line)-1].Time); d > 0 {
		return sum / d
	}
	return line[0].Value
}

// compaction does what commands do with rules, for one destination.
type compaction struct{ src, dst *Series }

func (c *compaction) add(x Sample) {
	switch c.src.Add(x, Last) {
	case Appended:
		c.src.Advance(x, c)
	case Inserted:
		last, _ := c.src.Newest()
		c.src.Repair(x.Time, x.Time, last.Time, c)
	}
}

func (c *compaction) Close(_ *Rule, x Sample) { c.dst.Add(x, Last) }

func (c *compaction) Replace(_ *Rule, first, last int64, samples []Sample) {
	c.dst.Delete(first, last)
	for _, x := range samples {
		c.dst.Add(x, Last)
	}
}

func (c *compaction) Newest(*Rule) (Sample, bool) { return c.dst.Newest() }

// TestCompactionsAreWhatAQueryGives compares the samples made by rules with an aggregation of the source.
func TestCompactionsAreWhatAQueryGives(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for round := range 75 {
		a := Aggregator(round % int(aggregators))
		if a == TWA {
			continue // a late sample also changes adjacent buckets, which rules do not update
		}
		c := compaction{New(Settings{ChunkSize: 64}), New(Settings{ChunkSize: 64})}
		c.src.AddRule("dst", a, 1+rnd.Int64N(30), rnd.Int64N(40))
		r := c.src.rules[0]
		now := rnd.Int64N(100)
		for range 150 {
			switch rnd.IntN(10) {
			case 0, 1:
				c.add(Sample{rnd.Int64N(now + 1), float64(rnd.IntN(9))})
			case 2:
				from := rnd.Int64N(now + 1)
				to := from + rnd.Int64N(50)
				last, _ := c.src.Newest()
				if c.src.Delete(from, to) > 0 {
					c.src.Repair(from, to, last.Time, &c)
				}
			case 3:
				b := c.src.AppendBlob(nil)
				var err error
				c.src, err = DecodeBlob(b)
				require.NoError(t, err)
				r = c.src.rules[0]
			default:
				now += rnd.Int64N(20)
				v := float64(rnd.IntN(9))
				if rnd.IntN(10) == 0 {
					v = math.NaN()
				}
				c.add(Sample{now, v})
			}
			q := Query{To: math.MaxInt64, Aggregators: []Aggregator{a}, Bucket: r.Bucket, Align: r.Align}
			var want, got Rows
			require.NoError(t, c.src.Run(&q, nil, &want))
			latest, ok := r.Open()
			var p *Sample
			if last, some := c.dst.Newest(); ok && (!some || last.Time < latest.Time) {
				p = &latest
			}
			require.NoError(t, c.dst.Run(&Query{To: math.MaxInt64}, p, &got))
			require.Equal(t, want.Times, got.Times)
			for i := range want.Values {
				require.InDelta(t, want.Values[i], got.Values[i], 1e-9)
			}
		}
	}
}

func TestLabelsAreFoundInStoredForms(t *testing.T) {
	s := New(Settings{ChunkSize: 64})
	s.SetLabels([]labels.Label{{Name: "a", Value: "b"}, {Name: "a", Value: "c"}})
	l, err := LabelsOfBlob(s.AppendBlob(nil))
	require.NoError(t, err)
	require.Equal(t, s.Labels(), l)
	data, _ := s.AppendPart(nil, metaPart)
	l, ok, err := LabelsOf([]byte(metaPart), data)
	require.True(t, ok)
	require.NoError(t, err)
	require.Equal(t, s.Labels(), l)
}

// TestAppendAllocatesNothing, apart from the buffers of chunks.
func TestAppendAllocatesNothing(t *testing.T) {
	s := New(Settings{ChunkSize: 4096})
	now := int64(1e12)
	require.Less(t, testing.AllocsPerRun(10_000, func() {
		now += 1000
		s.Add(Sample{now, float64(now % 100)}, Last)
	}), 0.02)
}

// FuzzDecodeBlob decodes arbitrary bytes, and uses the result.
func FuzzDecodeBlob(f *testing.F) {
	for _, plain := range []bool{true, false} {
		s := New(Settings{ChunkSize: 64, Plain: plain})
		s.SetLabels([]labels.Label{{Name: "a", Value: "b"}})
		s.AddRule("x", TWA, 10, 3)
		for i := range int64(30) {
			x := Sample{i * i * 17, float64(i) * 1.1}
			s.Add(x, Last)
			s.Advance(x, &compaction{dst: New(Settings{ChunkSize: 64})})
		}
		f.Add(s.AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeBlob(b)
		if err != nil {
			return
		}
		again, err := DecodeBlob(s.AppendBlob(nil))
		if err != nil || list(all(again)) != list(all(s)) {
			t.Fatal("decodes to another series", err)
		}
		for _, time := range []int64{0, 1, 1000, math.MaxInt64} {
			x := Sample{time, 1.5}
			if o := s.Add(x, Last); o == Appended {
				s.Advance(x, &compaction{dst: New(Settings{ChunkSize: 64})})
			} else if o == Inserted {
				s.Repair(time, time, math.MaxInt64, &compaction{dst: New(Settings{ChunkSize: 64})})
			}
		}
		var rows Rows
		s.Run(&Query{To: math.MaxInt64, Reverse: true, Aggregators: []Aggregator{TWA, Avg}, Bucket: 7}, nil, &rows)
		s.Delete(5, math.MaxInt64)
		s.Repair(5, math.MaxInt64, math.MaxInt64, &compaction{dst: New(Settings{ChunkSize: 64})})
	})
}

func BenchmarkAdd(b *testing.B) {
	s := New(Settings{ChunkSize: 4096})
	now := int64(1e12)
	b.ReportAllocs()
	for b.Loop() {
		now += 1000
		s.Add(Sample{now, float64(now % 100)}, Last)
	}
}

func BenchmarkRun(b *testing.B) {
	s := New(Settings{ChunkSize: 4096})
	for i := range int64(100_000) {
		s.Add(Sample{1e12 + i*1000 + i%7, float64(i%100) / 4}, Last)
	}
	b.ReportMetric(float64(s.MemoryUsage())/100_000, "bytes/sample")
	var rows Rows
	for _, aggregated := range []bool{false, true} {
		q := Query{To: math.MaxInt64}
		name := "raw"
		if aggregated {
			name, q.Aggregators, q.Bucket = "avg", []Aggregator{Avg}, 60_000
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rows.Reset()
				s.Run(&q, nil, &rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/sample")
			b.ReportMetric(float64(s.MemoryUsage())/100_000, "bytes/sample")
		})
	}
}

// TestEmptyBuckets: empty buckets at the edges of a range have rows if there are samples on both sides.
func TestEmptyBuckets(t *testing.T) {
	s := New(Settings{ChunkSize: 64})
	for _, x := range []Sample{{0, 0}, {40, 1}} {
		s.Add(x, Last)
	}
	nan := math.NaN()
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{From: 0, To: 32, Aggregators: []Aggregator{SumOf}}, list([]Sample{{0, 0}, {11, 0}, {22, 0}})},
		{Query{From: 11, To: 32, Aggregators: []Aggregator{Avg}}, list([]Sample{{11, nan}, {22, nan}})},
		{Query{From: 11, To: 33, Aggregators: []Aggregator{LastOf}, Reverse: true}, list([]Sample{{33, 0}, {22, 0}, {11, 0}})},
		{Query{From: 0, To: 21, Aggregators: []Aggregator{TWA}}, list([]Sample{{0, 0.1375}, {11, 0.4}})},
		{Query{From: 41, To: 99, Aggregators: []Aggregator{SumOf}}, list(nil)},
		{Query{From: 5, To: 20, Aggregators: []Aggregator{SumOf}, ByValue: true, Least: 1, Most: 2}, list(nil)},
	} {
		c.q.Bucket, c.q.Empty = 11, true
		var rows Rows
		require.NoError(t, s.Run(&c.q, nil, &rows))
		var got []Sample
		for i := range rows.Times {
			got = append(got, Sample{rows.Times[i], rows.Values[i]})
		}
		require.Equal(t, c.want, list(got), "%+v", c.q)
	}
}

// TestReopenedBucket: a bucket whose successor is deleted opens again, and the next sample closes it.
func TestReopenedBucket(t *testing.T) {
	c := compaction{New(Settings{ChunkSize: 64}), New(Settings{ChunkSize: 64})}
	c.add(Sample{41, 1}) // before the rule
	c.src.AddRule("dst", SumOf, 10, 0)
	for _, x := range []Sample{{58, 1}, {42, 5}, {61, 2}, {71, 3}} {
		c.add(x)
	}
	require.Equal(t, list([]Sample{{40, 6}, {50, 1}, {60, 2}}), list(all(c.dst)))
	c.src.Delete(70, 80)
	c.src.Repair(70, 80, 71, &c)
	require.Equal(t, list([]Sample{{40, 6}, {50, 1}}), list(all(c.dst)))
	latest, ok := c.src.Rules()[0].Open()
	require.True(t, ok)
	require.Equal(t, Sample{60, 2}, latest)
	c.add(Sample{80, 9})
	require.Equal(t, list([]Sample{{40, 6}, {50, 1}, {60, 2}}), list(all(c.dst)))
}

// TestAveragesOfLargeNumbers: averages of large numbers do not overflow.
func TestAveragesOfLargeNumbers(t *testing.T) {
	require.Equal(t, 1e308, Avg.Reduce([]float64{1e308, 1e308}))
	require.Equal(t, -1.5e308, Avg.Reduce([]float64{-1.5e308, -1.5e308, -1.5e308}))
	require.Equal(t, math.Inf(1), SumOf.Reduce([]float64{1e308, 1e308}))
}
