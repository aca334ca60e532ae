package timeseries

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

// TestValuesReadBack checks that values read back as the same doubles, and that their texts are the shortest, apart
// from the exponent.
func TestValuesReadBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	values := []float64{0, math.Copysign(0, -1), 0.1, 1.5, -2.25, 1e15, 1e16, 1e21, 5e-324, math.MaxFloat64, 999999999999.999, 1e12}
	for range 30_000 {
		values = append(values, math.Float64frombits(rnd.Uint64()), float64(rnd.IntN(1e9))/1000, rnd.NormFloat64()*1000)
	}
	for _, v := range values {
		text := string(appendValue(nil, v))
		back, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		if math.IsNaN(v) {
			require.Equal(t, "NaN", text)
			continue
		}
		if math.Float64bits(v) != math.Float64bits(back) {
			require.Fail(t, "another value", "%v as %s", v, text)
		}
		digits := func(s string) string {
			s, _, _ = strings.Cut(strings.ToUpper(s), "E")
			return strings.Trim(strings.NewReplacer(".", "", "-", "").Replace(s), "0")
		}
		if want := digits(strconv.FormatFloat(v, 'e', -1, 64)); digits(text) != want {
			require.Fail(t, "not the shortest", "%v as %s", v, text)
		}
	}
}

func TestTimesAreWrittenInDecimal(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var x timeText
	time := int64(0)
	for range 30_000 {
		if rnd.IntN(10) == 0 {
			time = rnd.Int64() >> rnd.IntN(63)
		}
		require.Equal(t, strconv.FormatInt(time, 10), string(x.append(nil, time)))
		if time < math.MaxInt64-2_000_000 {
			time += rnd.Int64N(2_000_000)
		}
	}
}

// FuzzParse reads arbitrary values and conditions.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "-1.5e3", "nan", "a=b", "a!=(b,c)", "a=", "x='(y y,z)'", "007", "1e", "="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := parseValue([]byte(s)); ok && !math.IsNaN(v) {
			want, err := strconv.ParseFloat(s, 64)
			if err != nil || math.Float64bits(v) != math.Float64bits(want) {
				t.Fatalf("%q is %v, not %v", s, v, want)
			}
		}
		if m, ok := parseMatcher([]byte(s)); ok {
			m.Matches(nil)
		}
		parseAggregators([]byte(s))
		parseCompactions(s)
	})
}

// BenchmarkRange runs TS.RANGE over 100,000 samples.
func BenchmarkRange(b *testing.B) {
	c := commandtest.New(b)
	c.Line(b, "TS.CREATE k RETENTION 0 CHUNK_SIZE 4096 ENCODING COMPRESSED DUPLICATE_POLICY LAST IGNORE 0 0")
	for i := range 100_000 {
		c.Line(b, fmt.Sprint("TS.ADD k ", 1_000_000_000_000+int64(i)*1000, " ", float64(i%100)/4))
	}
	line := "TS.RANGE k - +"
	for b.Loop() {
		c.Line(b, line)
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds()/1e6, "Msamples/s")
}
