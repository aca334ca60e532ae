package geo

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// anywhere draws a valid position, often one at a limit.
func anywhere() *rapid.Generator[Position] {
	return rapid.Custom(func(t *rapid.T) Position {
		return Position{
			Lon: rapid.OneOf(rapid.Float64Range(-MaxLon, MaxLon),
				rapid.SampledFrom([]float64{-MaxLon, MaxLon, 0, 90, -179.999999, 179.999999})).Draw(t, "longitude"),
			Lat: rapid.OneOf(rapid.Float64Range(-MaxLat, MaxLat), rapid.SampledFrom([]float64{-MaxLat, MaxLat, 0, 45})).Draw(t,
				"latitude"),
		}
	})
}

func TestScoresAreThoseOfRedis(t *testing.T) {
	for _, tc := range []struct {
		at    Position
		score uint64
		hash  string
		lon   float64
		lat   float64
	}{
		{Position{13.361389, 38.115556}, 3479099956230698, "sqc8b49rny0", 13.36138933897018433, 38.11555639549629859},
		{Position{15.087269, 37.502669}, 3479447370796909, "sqdtr74hyu0", 15.08726745843887329, 37.50266842333162032},
	} {
		require.Equal(t, tc.score, tc.at.Score())
		p := FromScore(float64(tc.score))
		require.Equal(t, Position{tc.lon, tc.lat}, p)
		require.Equal(t, tc.hash, string(p.AppendHash(nil)))
	}
}

func TestPositionsSurviveScoresButForHalfACell(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		p := anywhere().Draw(t, "position")
		q := FromScore(float64(p.Score()))
		require.InDelta(t, p.Lon, q.Lon, 360.0/(1<<26))
		// at the eastern limit scores have 54 bits, of which a double drops one
		require.InDelta(t, p.Lat, q.Lat, 360.0/(1<<26))
		require.True(t, q.Valid())
		require.Len(t, q.AppendHash(nil), 11)
	})
}

func TestAnyDoubleIsAScore(t *testing.T) {
	for _, score := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), -1, -1e300, 1e300, 1 << 63, 1 << 64, 0.5,
		1 << 52, -(1 << 63)} {
		require.True(t, FromScore(score).Valid(), score)
	}
	testseed.Check(t, func(t *rapid.T) { require.True(t, FromScore(rapid.Float64().Draw(t, "score")).Valid()) })
}

func TestSpreadAndGatherAreOpposites(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		n, m := rapid.Uint32().Draw(t, "n"), rapid.Uint32().Draw(t, "m")
		require.Equal(t, n, gather(spread(n)|spread(m)<<1))
	})
}

// TestRangesHaveEverythingInTheShape checks that no position in a shape is missed. As in Redis, this does not hold for
// a shape that exceeds the limits of the map or covers more than about a quarter of it.
func TestRangesHaveEverythingInTheShape(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		center := Position{rapid.Float64Range(-150, 150).Draw(t, "longitude"),
			rapid.Float64Range(-60, 60).Draw(t, "latitude")}
		size := math.Pow(10, rapid.Float64Range(0, 6).Draw(t, "size"))
		s := Shape{Center: center, Radius: size}
		if rapid.Bool().Draw(t, "box") {
			s = Shape{Center: center, Box: true, Width: size, Height: size * rapid.Float64Range(0.2, 2).Draw(t, "ratio")}
		}
		ranges, area := s.Ranges(), s.Area()
		require.LessOrEqual(t, len(ranges), 9)
		for range 50 {
			reach := size / earthRadius / degree * 1.2
			p := Position{center.Lon + reach*2*rapid.Float64Range(-1, 1).Draw(t, "dx"),
				center.Lat + reach*rapid.Float64Range(-1, 1).Draw(t, "dy")}
			if !p.Valid() {
				continue
			}
			score := float64(p.Score())
			found := 0
			for _, r := range ranges {
				if score >= r.Min && score < r.Max {
					found++
				}
			}
			require.LessOrEqual(t, found, 1)
			if area.Contains(p) {
				require.Equal(t, 1, found, p)
			}
		}
	})
}

// contains computes the expected result of Contains from exact distances.
func contains(s *Shape, p Position) bool {
	if !s.Box {
		return Distance(s.Center, p) <= s.Radius
	}
	return Distance(p, Position{s.Center.Lon, p.Lat}) <= s.Width/2 &&
		Distance(p, Position{p.Lon, s.Center.Lat}) <= s.Height/2
}

// The answers agree however near a position is to the edge, to another position, or to the antipodes.
func TestTheQuickAnswerOfContainsIsTheSlowOne(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		center, p := anywhere().Draw(t, "center"), anywhere().Draw(t, "p")
		switch rapid.SampledFrom([]string{"anywhere", "here", "near", "opposite", "same latitude",
			"same longitude"}).Draw(t, "where") {
		case "here":
			p = center
		case "near":
			p.Lon, p.Lat = center.Lon+p.Lon*1e-6, min(max(center.Lat+p.Lat*1e-6, -MaxLat), MaxLat)
		case "opposite":
			p.Lon, p.Lat = -math.Copysign(MaxLon-math.Abs(center.Lon), center.Lon)+p.Lon*1e-6, -center.Lat
		case "same latitude":
			p.Lat = center.Lat
		case "same longitude":
			p.Lon = center.Lon
		}
		p = FromScore(float64(p.Score()))
		edge := rapid.SampledFrom([]float64{0.5, 1 - 1e-8, 1 - 1e-9, 1 - 1e-10, 1 - 1e-15, 1, 1 + 1e-15, 1 + 1e-10,
			1 + 1e-9, 1 + 1e-8, 2})
		d := Distance(center, p)
		require.LessOrEqual(t, d, math.Pi*earthRadius*(1+1e-12))
		width, height := 2*Distance(p, Position{center.Lon, p.Lat}), 2*Distance(p, Position{p.Lon, center.Lat})
		for _, s := range []Shape{
			{Center: center, Radius: d}, {Center: center, Radius: math.Nextafter(d, -1)},
			{Center: center, Radius: d * edge.Draw(t, "radius")},
			{Center: center, Radius: math.Inf(1)}, {Center: center},
			{Center: center, Box: true, Width: width, Height: height},
			{Center: center, Box: true, Width: math.Nextafter(width, -1), Height: height},
			{Center: center, Box: true, Width: width, Height: math.Nextafter(height, -1)},
			{Center: center, Box: true, Width: width * edge.Draw(t, "width"), Height: height * edge.Draw(t, "height")},
		} {
			area := s.Area()
			require.Equal(t, contains(&s, p), area.Contains(p), "%+v", s)
		}
	})
}

func BenchmarkContains(b *testing.B) {
	for name, s := range map[string]Shape{"circle": {Radius: 1e6}, "box": {Box: true, Width: 2e6, Height: 2e6}} {
		b.Run(name, func(b *testing.B) {
			s.Center = Position{10, 50}
			area := s.Area()
			for i := 0; b.Loop(); i++ {
				area.Contains(Position{float64(i % 20), 45 + float64(i%10)})
			}
		})
	}
}

// precise returns sine and cosine with 200 bits.
func precise(x float64) (sin, cos *big.Float) {
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(v) }
	sin, cos = number(0), number(0)
	term := number(1)
	for n := 1; n < 60; n++ {
		sum := cos
		if n%2 == 0 {
			sum = sin
		}
		if (n-1)/2%2 == 0 {
			sum.Add(sum, term)
		} else {
			sum.Sub(sum, term)
		}
		term.Mul(term, number(x))
		term.Quo(term, number(float64(n)))
	}
	return sin, cos
}

func TestSineAndCosineAreRoundedCorrectly(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		x := (2*rnd.Float64() - 1) * math.Pi * math.Pow(10, -4*rnd.Float64())
		s, c := precise(x)
		want, _ := s.Float64()
		require.Equal(t, want, sin(x), x)
		want, _ = c.Float64()
		require.Equal(t, want, cos(x), x)
	}
	for _, x := range []float64{0, math.Pi, math.Pi / 2, -math.Pi / 2, math.Pi / 4, 1e-300} {
		s, c := precise(x)
		want, _ := s.Float64()
		require.Equal(t, want, sin(x), x)
		want, _ = c.Float64()
		require.Equal(t, want, cos(x), x)
	}
}

func TestArcSineIsTheReverseOfSine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3_000 {
		x := rnd.Float64() * math.Pow(10, -4*rnd.Float64())
		y := asin(x)
		// sin(y ± half a unit) encloses x.
		half := (math.Nextafter(y, 10) - y) / 2
		below, _ := precise(y)
		slope := math.Sqrt(1 - x*x)
		diff, _ := below.Sub(below, big.NewFloat(x)).Float64()
		require.LessOrEqual(t, math.Abs(diff), slope*half*1.0001, x)
	}
	require.Equal(t, math.Pi/2, asin(1))
	require.Equal(t, 0.0, asin(0))
}

func BenchmarkDistance(b *testing.B) {
	p, q := Position{13.361389, 38.115556}, Position{15.087269, 37.502669}
	for b.Loop() {
		Distance(p, q)
	}
}

func BenchmarkSine(b *testing.B) {
	for b.Loop() {
		sin(1.3)
	}
}
