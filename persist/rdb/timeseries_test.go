package rdb

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// randomSamples returns samples with distances and values of all sizes.
func randomSamples(r *rand.Rand, n int) (samples []timeseries.Sample) {
	x := timeseries.Sample{Time: r.Int64N(1 << 40)}
	for range n {
		x.Time += 1 + r.Int64N(1<<r.IntN(34))>>r.IntN(20)
		switch r.IntN(8) {
		case 0:
			x.Value = math.Float64frombits(r.Uint64())
		case 1:
			x.Value = math.NaN()
		case 2:
			x.Value = math.Inf(1 - 2*r.IntN(2))
		case 3, 4:
			x.Value += float64(r.IntN(100))
		case 5:
			x.Value = r.Float64()
		}
		samples = append(samples, x)
	}
	return samples
}

func TestCompressedChunksReadBackAsWritten(t *testing.T) {
	r := testseed.Rand(t)
	for range 2000 {
		samples := randomSamples(r, 1+r.IntN(60))
		c := gorillaOf(samples, nil)
		require.Equal(t, int(c.used+7)/8, len(c.bits))
		reader := gorillaReader{data: c.bits, end: c.used}
		var got []timeseries.Sample
		require.NoError(t, reader.samples(uint64(len(samples)), c.first, func(x timeseries.Sample) error {
			got = append(got, x)
			return nil
		}))
		require.True(t, slices.EqualFunc(samples, got, func(a, b timeseries.Sample) bool {
			return a.Time == b.Time && (a.Value == b.Value || a.Value != a.Value && b.Value != b.Value)
		}))
		require.Equal(t, c.used, reader.pos)
		reader = gorillaReader{data: c.bits, end: c.used}
		require.Error(t, reader.samples(uint64(len(samples)+1), c.first, func(timeseries.Sample) error { return nil }))
	}
}

// describeSeries describes a series like the files in testdata: settings, labels, rules, samples, and for a compaction
// the result of the open bucket.
func describeSeries(key string, s *timeseries.Series, version int, source *timeseries.Series) (lines []string) {
	head := []string{key, fmt.Sprintf("retention %d", s.Retention)}
	if version >= seriesSizes { // earlier versions have no chunks
		head = append(head, fmt.Sprintf("chunks %d", s.Chunks()), fmt.Sprintf("of %d", s.ChunkSize))
		if s.Plain {
			head = append(head, "uncompressed")
		} else {
			head = append(head, "compressed")
		}
	}
	if s.Policy != timeseries.Unset {
		head = append(head, s.Policy.String())
	}
	if version >= seriesIgnore {
		head = append(head, fmt.Sprintf("ignores %d %v", s.IgnoreTime, s.IgnoreValue))
	}
	if s.Source() != "" {
		head = append(head, "from "+s.Source())
	}
	lines = append(lines, strings.Join(head, ", "))
	for _, l := range s.Labels() {
		lines = append(lines, "\tlabel "+l.Name+" "+l.Value)
	}
	for _, r := range s.Rules() {
		lines = append(lines, fmt.Sprintf("\trule %s, %s every %d from %d", r.Destination, r.Aggregator, r.Bucket, r.Align))
	}
	s.EachRun(func(samples []timeseries.Sample) {
		for _, x := range samples {
			if x.Time >= s.Begin() {
				lines = append(lines, fmt.Sprintf("\t%d %v", x.Time, x.Value))
			}
		}
	})
	if version >= seriesLastOfEmpty && source != nil {
		if x, ok := source.Rule(key).Open(); ok {
			lines = append(lines, fmt.Sprintf("\tlatest %d %v", x.Time, x.Value))
		}
	}
	return lines
}

// readFile returns the series in a file.
func readFile(t *testing.T, data []byte) map[string]*timeseries.Series {
	found := map[string]*timeseries.Series{}
	r := NewReader(bytes.NewReader(data), limits)
	for {
		item, err := r.Next()
		if err == io.EOF {
			return found
		}
		require.NoError(t, err)
		if k, ok := item.(*Key); ok {
			found[string(k.Key)] = k.Value.(*timeseries.Series)
		}
	}
}

// TestSeriesOfEveryVersionAreRead reads files that each version of RedisTimeSeries has written. Files beside them
// describe the series, as reported by the module.
func TestSeriesOfEveryVersionAreRead(t *testing.T) {
	for version := range seriesCountsNaN + 1 {
		name := filepath.Join("testdata", fmt.Sprintf("timeseries-%d", version))
		data, err := os.ReadFile(name + ".rdb")
		require.NoError(t, err)
		text, err := os.ReadFile(name + ".txt")
		require.NoError(t, err)
		found := readFile(t, data)
		source := found["source"]
		want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[1:]
		at := 0
		for at < len(want) {
			key, _, _ := strings.Cut(want[at], ",")
			s := found[key]
			require.NotNil(t, s, key)
			of := source
			if !strings.HasPrefix(key, "of ") {
				of = nil
			}
			for _, line := range describeSeries(key, s, version, of) {
				require.Less(t, at, len(want))
				requireSameLine(t, want[at], line, fmt.Sprintf("version %d, %s", version, key))
				at++
			}
			delete(found, key)
		}
		require.Empty(t, found)
	}
}

// requireSameLine compares lines. Numbers at the end may differ in their last digits: the module writes some with 15
// digits.
func requireSameLine(t *testing.T, want, got, about string) {
	if want == got {
		return
	}
	about = fmt.Sprintf("%s: want %q, got %q", about, want, got)
	i, j := strings.LastIndexByte(want, ' '), strings.LastIndexByte(got, ' ')
	require.True(t, i >= 0 && j >= 0 && want[:i] == got[:j], about)
	w, err := strconv.ParseFloat(want[i+1:], 64)
	require.NoError(t, err, want)
	g, err := strconv.ParseFloat(got[j+1:], 64)
	require.NoError(t, err, got)
	require.True(t, w != w && g != g || math.Abs(w-g) <= 1e-9*math.Abs(w), about)
}

func TestOldDumpsOfSeriesAreAlone(t *testing.T) {
	payload, err := os.ReadFile(filepath.Join("testdata", "timeseries-4.dump"))
	require.NoError(t, err)
	v, err := Restore(payload, &limits)
	require.NoError(t, err)
	s := v.(*timeseries.Series)
	require.Equal(t, 2, s.Stored())
	require.Empty(t, s.Rules())
}

func TestSeriesAreWrittenInTheVersionThatTheyNeed(t *testing.T) {
	w := newWorld()
	version := func(a timeseries.Aggregator, values ...float64) uint64 {
		s := timeseries.New(timeseries.Settings{ChunkSize: 128})
		s.AddRule("to", a, 100, 0)
		for i, v := range values {
			x := timeseries.Sample{Time: int64(i), Value: v}
			s.Add(x, timeseries.Last)
			s.Advance(x, nil)
		}
		payload := dump(t, w.entry(s))
		d := decoder{buf: payload, pos: 1}
		id, err := d.length()
		require.NoError(t, err)
		_, v := moduleOf(id)
		return v
	}
	require.EqualValues(t, seriesIgnore, version(timeseries.SumOf))
	require.EqualValues(t, seriesIgnore, version(timeseries.SumOf, 1))
	require.EqualValues(t, seriesCountsNaN, version(timeseries.SumOf, math.NaN()), "a bucket with nothing that counts")
	require.EqualValues(t, seriesCountsNaN, version(timeseries.CountAll, 1))
}

// destinations are the compactions of a series, as its rules close them.
type destinations map[string][]timeseries.Sample

func (d destinations) Close(r *timeseries.Rule, x timeseries.Sample) {
	d[r.Destination] = append(d[r.Destination], x)
}
func (destinations) Replace(*timeseries.Rule, int64, int64, []timeseries.Sample) {}
func (destinations) Newest(*timeseries.Rule) (last timeseries.Sample, ok bool)   { return last, false }
func (d destinations) advance(s *timeseries.Series, samples []timeseries.Sample) destinations {
	for _, x := range samples {
		s.Add(x, timeseries.Last)
		s.Advance(x, d)
	}
	return d
}

// TestSeriesGoOnAfterTheyAreRead writes and reads series with a rule of each aggregator, adds the same samples to the
// original and the copy, and compares the results.
func TestSeriesGoOnAfterTheyAreRead(t *testing.T) {
	r, w := testseed.Rand(t), newWorld()
	for range 300 {
		s := timeseries.New(timeseries.Settings{ChunkSize: 48 + 8*r.IntN(10), Plain: r.IntN(2) == 0,
			Policy: timeseries.Policy(r.IntN(int(timeseries.Unset) + 1)), Retention: r.Int64N(2) * 1000})
		for a := timeseries.Avg; a <= timeseries.CountAll; a++ {
			s.AddRule(a.String(), a, 1+r.Int64N(50), r.Int64N(20))
		}
		var samples []timeseries.Sample
		time := r.Int64N(100)
		for range r.IntN(150) {
			x := timeseries.Sample{Time: time, Value: math.Round(r.NormFloat64() * 100)}
			if r.IntN(6) == 0 {
				x.Value = math.NaN()
			}
			samples = append(samples, x)
			time += 1 + r.Int64N(20)
		}
		half := r.IntN(len(samples) + 1)
		destinations{}.advance(s, samples[:half])
		v, err := Restore(dump(t, w.entry(s)), &limits)
		require.NoError(t, err)
		read := v.(*timeseries.Series)
		require.Equal(t, s.Settings, read.Settings)
		require.Equal(t, describeSeries("x", s, seriesCountsNaN, nil), describeSeries("x", read, seriesCountsNaN, nil))
		want, got := destinations{}.advance(s, samples[half:]), destinations{}.advance(read, samples[half:])
		require.Len(t, got, len(want))
		for key, list := range want {
			require.Len(t, got[key], len(list), key)
			for i, x := range list {
				y := got[key][i]
				require.Equal(t, x.Time, y.Time, key)
				require.InDelta(t, x.Value, y.Value, 1e-6*math.Max(1, math.Abs(x.Value)), key)
			}
		}
		blob := read.AppendBlob(nil)
		_, err = timeseries.DecodeBlob(blob)
		require.NoError(t, err, "what was read can be stored")
		alone, err := DumpAlone(w.entry(s))
		require.NoError(t, err)
		v, err = Restore(alone, &limits)
		require.NoError(t, err)
		require.Empty(t, v.(*timeseries.Series).Rules())
	}
}

// FuzzSeries reads arbitrary values of RedisTimeSeries. A series that can be read can be stored and written.
func FuzzSeries(f *testing.F) {
	w := newWorld()
	for version := range seriesCountsNaN + 1 {
		data, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("timeseries-%d.rdb", version)))
		require.NoError(f, err)
		name := append([]byte{typeModule}, appendLength(nil, moduleID(seriesModule, uint64(version)))...)
		id := name[1:]
		for {
			_, rest, found := bytes.Cut(data, id)
			if !found {
				break
			}
			f.Add(append(slices.Clone(name), rest[:min(len(rest), 2000)]...))
			data = rest
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{buf: b}
		number, err := d.byte()
		if err != nil || number != typeModule {
			return
		}
		v, err := d.value(number, &limits)
		s, ok := v.(*timeseries.Series)
		if err != nil || !ok {
			return
		}
		stored, err := timeseries.DecodeBlob(s.AppendBlob(nil))
		require.NoError(t, err)
		again, err := Restore(dump(t, w.entry(stored)), &limits)
		require.NoError(t, err)
		require.Equal(t, describeSeries("x", s, seriesCountsNaN, nil), describeSeries("x", again.(*timeseries.Series), seriesCountsNaN, nil))
	})
}
