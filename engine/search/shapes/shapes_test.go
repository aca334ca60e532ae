package shapes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// named is a document of the transcript and its shape.
type named struct{ name, wkt string }

var flatDocs = []named{
	{"0", "POLYGON((1 1, 1 10, 10 10, 10 1, 1 1))"},
	{"1", "POLYGON((2 2, 2 5, 5 5, 5 2, 2 2))"},
	{"2", "POLYGON((20 20, 20 30, 30 30, 30 20, 20 20))"},
	{"3", "POINT(3 3)"},
	{"4", "POINT(25 25)"},
	{"5", "POINT(100 100)"},
	{"6", "POLYGON((0 0, 0 8, 8 0, 0 0))"},
	{"7", "POLYGON((10 10, 10 12, 12 12, 12 10, 10 10))"},
	{"8", "POLYGON((0 0, 0 10, 10 10, 10 0, 0 0),(4 4, 4 6, 6 6, 6 4, 4 4))"},
	{"9", "POLYGON((0 0, 5 10, 10 0, 5 3, 0 0))"},
	{"10", "POLYGON((10 1, 10 10, 20 10, 20 1, 10 1))"},
	{"b6", "POLYGON((0 0, 0 1, 1 1, 1 0))"},
	{"b9", "POINT (1 2)"},
}

var sphereDocs = []named{
	{"0", "POLYGON((2 48, 2 49, 3 49, 3 48, 2 48))"},
	{"1", "POINT(2.35 48.85)"},
	{"2", "POINT(-74 40.7)"},
	{"3", "POLYGON((-75 40, -75 41, -73 41, -73 40, -75 40))"},
	{"4", "POLYGON((170 -20, 170 -10, 179 -10, 179 -20, 170 -20))"},
	{"5", "POINT(0 0)"},
	{"6", "POLYGON((-10 -10, -10 10, 10 10, 10 -10, -10 -10))"},
}

var relations = map[string]Relation{"WITHIN": Within, "CONTAINS": Contains, "INTERSECTS": Intersects, "DISJOINT": Disjoint}

func parse(t require.TestingT, c Coordinates, wkt string) Shape {
	s, err := Parse(c, wkt)
	require.NoError(t, err, wkt)
	return s
}

// The replies in search_geoshape.txt.
func TestRelationsAreThoseOfTheTranscript(t *testing.T) {
	const (
		eleven  = "POLYGON((0 0, 0 11, 11 11, 11 0, 0 0))"
		small   = "POLYGON((3 3, 3 4, 4 4, 4 3, 3 3))"
		middle  = "POLYGON((4.5 4.5, 4.5 5.5, 5.5 5.5, 5.5 4.5, 4.5 4.5))"
		ten     = "POLYGON((10 10, 10 20, 20 20, 20 10, 10 10))"
		first   = "POLYGON((1 1, 1 10, 10 10, 10 1, 1 1))"
		corner  = "POLYGON((0 0, 0 30, 30 0, 0 0))"
		large   = "POLYGON((-1 -1, -1 200, 200 200, 200 -1, -1 -1))"
		france  = "POLYGON((0 40, 0 50, 10 50, 10 40, 0 40))"
		america = "POLYGON((-80 30, -80 50, -70 50, -70 30, -80 30))"
	)
	for _, docs := range []struct {
		c       Coordinates
		docs    []named
		queries [][3]string // relation, shape, documents
	}{
		{Flat, flatDocs, [][3]string{
			{"WITHIN", eleven, "0 1 3 6 8 9 b6 b9"},
			{"CONTAINS", eleven, ""},
			{"INTERSECTS", eleven, "0 1 3 6 7 8 9 10 b6 b9"},
			{"DISJOINT", eleven, "2 4 5"},
			{"CONTAINS", small, "0 1 6 8 9"},
			{"INTERSECTS", small, "0 1 3 6 8 9"},
			{"WITHIN", small, ""},
			{"WITHIN", "POINT(3 3)", ""},
			{"CONTAINS", "POINT(3 3)", "0 1 6 8 9"},
			{"INTERSECTS", "POINT(3 3)", "0 1 3 6 8 9"},
			{"DISJOINT", "POINT(3 3)", "2 4 5 7 10 b6 b9"},
			{"CONTAINS", middle, "0 9"},
			{"DISJOINT", middle, "2 3 4 5 6 7 8 10 b6 b9"},
			{"WITHIN", middle, ""},
			{"WITHIN", ten, "7"},
			{"CONTAINS", ten, ""},
			{"INTERSECTS", ten, "0 2 7 8 10"},
			{"DISJOINT", ten, "1 3 4 5 6 9 b6 b9"},
			{"INTERSECTS", first, "0 1 3 6 7 8 9 10 b6 b9"},
			{"DISJOINT", first, "2 4 5"},
			{"WITHIN", first, "0 1 3"},
			{"WITHIN", corner, "0 1 3 6 7 8 9 10 b6 b9"},
			{"CONTAINS", corner, ""},
			{"INTERSECTS", corner, "0 1 3 6 7 8 9 10 b6 b9"},
			{"CONTAINS", "POINT(10 10)", ""},
			{"INTERSECTS", "POINT(10 10)", "0 7 8 10"},
			{"DISJOINT", "POINT(10 10)", "1 2 3 4 5 6 9 b6 b9"},
			{"WITHIN", "POINT(10 10)", ""},
			{"WITHIN", large, "0 1 2 3 4 5 6 7 8 9 10 b6 b9"},
			{"CONTAINS", large, ""},
			{"DISJOINT", large, ""},
			{"CONTAINS", "POINT(5 5)", "0 9"},
			{"INTERSECTS", "POINT(5 5)", "0 1 9"},
			{"DISJOINT", "POINT(5 5)", "2 3 4 5 6 7 8 10 b6 b9"},
			{"WITHIN", "POINT(5 5)", ""},
			{"INTERSECTS", "POLYGON((0 0, 0 10, 10 10, 10 0))", "0 1 3 6 7 8 9 10 b6 b9"},
		}},
		{Spherical, sphereDocs, [][3]string{
			{"WITHIN", france, "0 1"},
			{"INTERSECTS", france, "0 1"},
			{"DISJOINT", france, "2 3 4 5 6"},
			{"WITHIN", "POINT(2.5 48.5)", ""},
			{"CONTAINS", "POINT(2.5 48.5)", "0"},
			{"INTERSECTS", "POINT(2.5 48.5)", "0"},
			{"DISJOINT", "POINT(2.5 48.5)", "1 2 3 4 5 6"},
			{"CONTAINS", america, ""},
			{"INTERSECTS", america, "2 3"},
			{"DISJOINT", america, "0 1 4 5 6"},
			{"WITHIN", "POINT(1 1)", ""},
			{"CONTAINS", "POINT(1 1)", "6"},
			{"INTERSECTS", "POINT(1 1)", "6"},
		}},
	} {
		x := New(docs.c)
		for i, d := range docs.docs {
			x.Add(uint64(i), parse(t, docs.c, d.wkt))
		}
		for _, q := range docs.queries {
			var names []string
			for _, doc := range x.Find(relations[q[0]], parse(t, docs.c, q[1])) {
				names = append(names, docs.docs[doc].name)
			}
			require.Equal(t, q[2], strings.Join(names, " "), "%s %s", q[0], q[1])
		}
	}
}

func TestTextsThatAreNoShapesAreRefused(t *testing.T) {
	for wkt, want := range map[string]string{
		"":                                     "unknown geometry type",
		"foo":                                  "unknown geometry type",
		"point(1 2)":                           "unknown geometry type",
		" POINT(1 2)":                          "unknown geometry type",
		"LINESTRING(0 0, 1 1)":                 "unknown geometry type",
		"MULTIPOINT(1 1)":                      "unknown geometry type",
		"CIRCLE(1 1 2)":                        "unknown geometry type",
		"POINTER(1 2)":                         "Should start with 'POINT' in 'POINTER(1 2)'",
		"POINT":                                "Expected '(' in 'POINT'",
		"POINT(a)":                             "bad lexical cast: source type value could not be interpreted as target at 'a' in 'POINT(a)'",
		"POINT(x y)":                           "bad lexical cast: source type value could not be interpreted as target at 'x' in 'POINT(x y)'",
		"POINT()":                              "bad lexical cast: source type value could not be interpreted as target at ')' in 'POINT()'",
		"POINT(1)":                             "bad lexical cast: source type value could not be interpreted as target at ')' in 'POINT(1)'",
		"POINT(0x10 1)":                        "bad lexical cast: source type value could not be interpreted as target at '0x10' in 'POINT(0x10 1)'",
		"POINT(1 2 3)":                         "Expected ')' at '3' in 'POINT(1 2 3)'",
		"POINT(1 2":                            "Expected ')' in 'POINT(1 2'",
		"POINT(1 2) 3":                         "Too many tokens at '3' in 'POINT(1 2) 3'",
		"POINT(nan 2)":                         "invalid geometry: Geometry has point(s) with invalid coordinate(s)",
		"POINT(1e999 2)":                       "bad lexical cast: source type value could not be interpreted as target at '1e999' in 'POINT(1e999 2)'",
		"POLYGON(0 0, 1 1)":                    "Expected '(' at '0' in 'POLYGON(0 0, 1 1)'",
		"POLYGON((0 0, 1 1)":                   "Expected ')' in 'POLYGON((0 0, 1 1)'",
		"POLYGON((0 0, 1 1))":                  "invalid geometry: Geometry has too few points",
		"POLYGON((0 0, 0 0, 1 1, 0 0))":        "invalid geometry: Geometry has too few points",
		"POLYGON((0 0, 1 0, 2 0))":             "invalid geometry: Geometry has spikes",
		"POLYGON((0 0, 4 0, 4 4, 4 -1, 0 -1))": "invalid geometry: Geometry has spikes",
		"POLYGON((0 0, 4 4, 4 0, 0 4))":        "invalid geometry: Geometry has invalid self-intersections",
		"POLYGON((0 0, 0 4, 4 4, 4 0),(3 1, 3 2, 5 2, 5 1))":                 "invalid geometry: Geometry has invalid self-intersections",
		"POLYGON((0 0, 0 4, 4 4, 4 0),(5 1, 5 2, 6 2, 6 1))":                 "invalid geometry: Geometry has interior rings defined outside the outer boundary",
		"POLYGON((0 0, 0 9, 9 9, 9 0),(1 1, 1 8, 8 8, 8 1),(2 2, 2 3, 3 3))": "invalid geometry: Geometry has nested interior rings",
	} {
		for _, c := range []Coordinates{Flat, Spherical} {
			_, err := Parse(c, wkt)
			require.EqualError(t, err, want)
		}
	}
	for _, wkt := range []string{"POINT (1 2)", "POInt(1 2)", "POINT(\t1e1   -.5 )", "POLYGON((0 0,0 1,1 1,1 0))", "POLYGON ( ( 0 0 , 0 1 , 1 1 ) )",
		"POLYGON((0 0, 0 0, 0 1, 0 1, 1 1, 0 0, 0 0))"} {
		parse(t, Flat, wkt)
		parse(t, Spherical, wkt)
	}
}

// star returns a polygon around a point, with vertices in all directions at changing distances.
func star(r *rand.Rand, x, y, size float64, n int) string {
	var points []string
	for i := range n {
		angle := 2 * math.Pi * (float64(i) + 0.8*r.Float64()) / float64(n)
		d := size * (0.3 + 0.7*r.Float64())
		points = append(points, fmt.Sprintf("%v %v", x+d*math.Cos(angle), y+d*math.Sin(angle)))
	}
	if r.IntN(2) == 0 {
		slices.Reverse(points)
	}
	return "POLYGON((" + strings.Join(points, ", ") + "))"
}

// Relations of polygons agree with relations of many of their points.
func TestRelationsAgreeWithThoseOfPoints(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 8))
		c := Coordinates(r.IntN(2))
		sp := spaceOf(c)
		x, y := 360*r.Float64()-180, 100*r.Float64()-50
		a := parse(rt, c, star(r, x, y, 1+10*r.Float64(), 3+r.IntN(12)))
		b := parse(rt, c, star(r, x+8*r.Float64()-4, y+8*r.Float64()-4, 1+10*r.Float64(), 3+r.IntN(12)))
		ba, bb := newBody(sp, &a), newBody(sp, &b)
		meet, aIn, bIn := false, true, true
		for range 500 {
			p := sp.vertex(Point{x + 30*r.Float64() - 15, y + 30*r.Float64() - 15})
			inA, inB := locate(sp, ba, p) == inside, locate(sp, bb, p) == inside
			meet = meet || inA && inB
			aIn = aIn && (!inA || inB)
			bIn = bIn && (!inB || inA)
		}
		for _, ring := range ba.rings {
			for _, v := range ring {
				require.Equal(rt, onBorder, locate(sp, ba, v))
				aIn = aIn && locate(sp, bb, v) != outside
			}
		}
		if meet {
			require.True(rt, intersect(sp, ba, bb))
		}
		require.Equal(rt, intersect(sp, ba, bb), intersect(sp, bb, ba))
		for _, w := range [][2]bool{{within(sp, ba, bb), aIn}, {within(sp, bb, ba), bIn}} {
			if w[0] {
				require.True(rt, w[1])
				require.True(rt, intersect(sp, ba, bb))
			}
		}
		require.True(rt, within(sp, ba, ba))
		// A copy shrunk towards an interior point is within.
		in, ok := interior(sp, ba)
		require.True(rt, ok)
		tiny := newBody(sp, &Shape{points: []Point{{in.x, in.y}, {in.x + 1e-5, in.y}, {in.x, in.y + 1e-5}}, ends: []int32{3}})
		if !slices.ContainsFunc(tiny.rings[0], func(v vertex) bool { return locate(sp, ba, v) != inside }) {
			require.True(rt, within(sp, tiny, ba))
			require.False(rt, within(sp, ba, tiny))
			require.True(rt, intersect(sp, tiny, ba))
		}
		// The index finds the same as testing all shapes.
		index := New(c)
		var all []Shape
		for i := range 50 {
			px, py := x+40*r.Float64()-20, y+40*r.Float64()-20
			s := parse(rt, c, fmt.Sprintf("POINT(%v %v)", px, py))
			if i%2 == 0 {
				s = parse(rt, c, star(r, px, py, 0.5+5*r.Float64(), 3+r.IntN(5)))
			}
			index.Add(uint64(i), s)
			all = append(all, s)
		}
		index.Remove(7)
		index.Remove(8)
		index.Remove(8)
		require.Equal(rt, 48, index.Len())
		for _, relation := range relations {
			var want []uint64
			for i := range all {
				if i != 7 && i != 8 && has(sp, newBody(sp, &all[i]), relation, ba) {
					want = append(want, uint64(i))
				}
			}
			require.Equal(rt, want, index.Find(relation, a))
		}
		for i := range uint64(50) {
			index.Remove(i)
		}
		require.Zero(rt, index.Bytes())
		require.Empty(rt, index.Find(Disjoint, a))
	})
}

func TestHolesAreNotWithin(t *testing.T) {
	for _, c := range []Coordinates{Flat, Spherical} {
		x := New(c)
		x.Add(1, parse(t, c, "POLYGON((0 0, 0 9, 9 9, 9 0),(3 3, 3 6, 6 6, 6 3))"))
		for wkt, want := range map[string][3]bool{ // contains, within, intersects
			"POLYGON((3 3, 3 6, 6 6, 6 3))":                         {false, false, true}, // the hole itself
			"POLYGON((4 4, 4 5, 5 5, 5 4))":                         {false, false, false},
			"POLYGON((1 1, 1 2, 2 2, 2 1))":                         {true, false, true},
			"POLYGON((2 2, 2 7, 7 7, 7 2))":                         {false, false, true}, // around the hole
			"POLYGON((2 2, 2 7, 7 7, 7 2),(3 3, 3 6, 6 6, 6 3))":    {true, false, true},
			"POLYGON((-1 -1, -1 10, 10 10, 10 -1))":                 {false, true, true},
			"POLYGON((-1 -1, -1 10, 10 10, 10 -1),(4 4, 4 5, 5 5))": {false, true, true},
			"POLYGON((-1 -1, -1 10, 10 10, 10 -1),(1 1, 1 2, 2 2))": {false, false, true},
			"POLYGON((9 0, 9 9, 12 9, 12 0))":                       {false, false, true}, // a common side
			"POLYGON((0 0, 0 9, 9 9, 9 0),(3 3, 3 6, 6 6, 6 3))":    {true, true, true},
			"POINT(4 4)": {false, false, false},
			"POINT(3 4)": {false, false, true},
			"POINT(2 4)": {true, false, true},
		} {
			s := parse(t, c, wkt)
			got := [3]bool{len(x.Find(Contains, s)) > 0, len(x.Find(Within, s)) > 0, len(x.Find(Intersects, s)) > 0}
			require.Equal(t, want, got, "%v %s", c, wkt)
			require.Equal(t, !want[2], len(x.Find(Disjoint, s)) > 0, "%v %s", c, wkt)
		}
	}
}

// Shapes across longitude 180 and around a pole behave as elsewhere.
func TestShapesEverywhereOnTheEarth(t *testing.T) {
	x := New(Spherical)
	x.Add(1, parse(t, Spherical, "POLYGON((170 -20, 170 -10, -170 -10, -170 -20))"))
	x.Add(2, parse(t, Spherical, "POLYGON((0 80, 90 80, 180 80, -90 80))"))     // around the north pole
	x.Add(3, parse(t, Spherical, "POLYGON((0 -70, -90 -70, 180 -70, 90 -70))")) // around the south pole
	x.Add(4, parse(t, Spherical, "POINT(-180 -15)"))
	x.Add(5, parse(t, Spherical, "POINT(10 90)"))
	for _, q := range []struct {
		r    Relation
		wkt  string
		want []uint64
	}{
		{Contains, "POINT(180 -15)", []uint64{1}},
		{Contains, "POINT(-175 -15)", []uint64{1}},
		{Contains, "POINT(160 -15)", nil},
		{Intersects, "POINT(180 -15)", []uint64{1, 4}},
		{Contains, "POINT(45 89)", []uint64{2}},
		{Contains, "POINT(0 90)", []uint64{2}},
		{Intersects, "POINT(-100 90)", []uint64{2, 5}},
		{Contains, "POINT(45 79)", nil},
		{Contains, "POINT(45 -89)", []uint64{3}},
		{Contains, "POINT(45 0)", nil},
		{Within, "POLYGON((0 60, 90 60, 180 60, -90 60))", []uint64{2, 5}},
		{Intersects, "POLYGON((-10 85, 10 85, 0 89))", []uint64{2}},
		{Disjoint, "POLYGON((175 -16, 175 -14, -175 -14, -175 -16))", []uint64{2, 3, 5}},
		{Within, "POLYGON((160 -30, 160 0, -160 0, -160 -30))", []uint64{1, 4}},
	} {
		require.Equal(t, q.want, x.Find(q.r, parse(t, Spherical, q.wkt)), "%d %s", q.r, q.wkt)
	}
}

func FuzzShapes(f *testing.F) {
	for _, d := range append(flatDocs, sphereDocs...) {
		f.Add(d.wkt, "POLYGON((0 0, 0 11, 11 11, 11 0, 0 0))", true)
	}
	f.Add("POLYGON((0 90, 180 90, -180 -90, 0 -90, 1e300 1e300))", "POLYGON((0 0, 180 0, 0 1))", false)
	f.Fuzz(func(t *testing.T, a, b string, flat bool) {
		c := Spherical
		if flat {
			c = Flat
		}
		s, err := Parse(c, a)
		if err != nil {
			return
		}
		other, err := Parse(c, b)
		if err != nil {
			return
		}
		x := New(c)
		x.Add(1, s)
		require.NotEqual(t, len(x.Find(Intersects, other)), len(x.Find(Disjoint, other)))
		x.Find(Within, other)
		x.Find(Contains, other)
		x.Remove(1)
		require.Empty(t, x.Find(Disjoint, other))
	})
}

func BenchmarkFind(b *testing.B) {
	for _, c := range []Coordinates{Flat, Spherical} {
		r := rand.New(rand.NewPCG(1, 2))
		x := New(c)
		for i := range uint64(100_000) {
			s := parse(b, c, star(r, 360*r.Float64()-180, 160*r.Float64()-80, 0.2, 8))
			x.Add(i, s)
		}
		b.ReportMetric(float64(x.Bytes())/float64(x.Len()), "B/shape")
		q := parse(b, c, star(r, 10, 20, 5, 20))
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = len(x.Find(Within, q))
			}
			b.ReportMetric(float64(n), "found")
		})
	}
}
