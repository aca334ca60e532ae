package vectors

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	types   = []Type{Float32, Float64, Float16, BFloat16, Int8, Uint8}
	metrics = []Metric{L2, IP, Cosine}
)

// encode returns numbers as a vector, and their values after rounding.
func encode(t Type, v []float64) (b []byte, kept []float64) {
	for _, f := range v {
		switch t {
		case Float32:
			b = order.AppendUint32(b, math.Float32bits(float32(f)))
			f = float64(float32(f))
		case Float64:
			b = order.AppendUint64(b, math.Float64bits(f))
		case Float16:
			h := toHalf(float32(f))
			b = order.AppendUint16(b, h)
			f = float64(fromHalf(h))
		case BFloat16:
			h := toBrain(float32(f))
			b = order.AppendUint16(b, h)
			f = float64(fromBrain(h))
		case Int8:
			n := int8(f)
			b = append(b, byte(n))
			f = float64(n)
		case Uint8:
			n := uint8(math.Abs(f))
			b = append(b, n)
			f = float64(n)
		}
		kept = append(kept, f)
	}
	return b, kept
}

// random returns a vector with components suitable for a type.
func random(rnd *rand.Rand, t Type, dim int) []float64 {
	v := make([]float64, dim)
	for i := range v {
		if v[i] = rnd.NormFloat64(); t >= Int8 {
			v[i] = float64(rnd.IntN(256) - 128)
		}
	}
	return v
}

// plainDistance computes the distance of two vectors in plain code.
func plainDistance(m Metric, a, b []float64) float64 {
	var product, square, lengthA, lengthB float64
	for i, x := range a {
		product += x * b[i]
		square += (x - b[i]) * (x - b[i])
		lengthA += x * x
		lengthB += b[i] * b[i]
	}
	switch {
	case m == L2:
		return square
	case m == IP:
		return 1 - product
	case lengthA == 0 || lengthB == 0:
		return 1
	}
	return 1 - product/math.Sqrt(lengthA)/math.Sqrt(lengthB)
}

// tolerance is the permitted difference from the plain distance.
func tolerance(t Type, m Metric, size float64) float64 {
	switch {
	case t == Float64:
		return 1e-12 * size
	case m == Cosine && t == Float16:
		return 2e-3
	case m == Cosine && t == BFloat16:
		return 2e-2
	}
	return 4e-6 * size
}

func TestFlatIsExact(t *testing.T) {
	for _, typ := range types {
		for _, metric := range metrics {
			for _, dim := range []int{1, 3, 4, 7, 8, 33, 128} {
				rnd := rand.New(rand.NewPCG(uint64(typ), uint64(dim)))
				x := New(Options{Type: typ, Metric: metric, Dim: dim})
				kept := map[uint64][]float64{}
				for doc := range uint64(60) {
					v := random(rnd, typ, dim)
					if doc == 7 {
						clear(v)
					}
					b, k := encode(typ, v)
					x.Add(doc+1, b)
					kept[doc+1] = k
				}
				b, query := encode(typ, random(rnd, typ, dim))
				q := x.Query(b)
				found := q.Nearest(1000, Search{})
				require.Len(t, found, len(kept))
				require.True(t, slices.IsSortedFunc(found, Near.compare))
				for _, n := range found {
					size := 1.0
					for i, f := range kept[n.Doc] {
						size += f*f + query[i]*query[i]
					}
					want := plainDistance(metric, kept[n.Doc], query)
					require.InDelta(t, want, n.Distance, tolerance(typ, metric, size), "%v %v %v", typ, metric, dim)
					d, ok := q.Distance(n.Doc)
					require.True(t, ok)
					require.Equal(t, n.Distance, d)
					if typ != Float64 {
						require.Equal(t, float64(float32(d)), d)
					}
				}
				require.Equal(t, found[:5], q.Nearest(5, Search{}))
				radius := found[20].Distance
				within := q.Within(radius, Search{})
				require.True(t, slices.IsSortedFunc(within, func(a, b Near) int { return int(a.Doc) - int(b.Doc) }))
				slices.SortFunc(within, Near.compare)
				require.Equal(t, found[:len(within)], within)
				require.GreaterOrEqual(t, len(within), 21)
				if len(within) < len(found) {
					require.Greater(t, found[len(within)].Distance, radius)
				}
			}
		}
	}
}

// Results of a Redis, which prints 12 digits of 32-bit floats.
func TestDistancesHaveThePrecisionOfTheirType(t *testing.T) {
	for _, c := range []struct {
		t    Type
		m    Metric
		a, b []float64
		want string
	}{
		{Float32, Cosine, []float64{3, 4}, []float64{1, 0}, "0.399999976158"},
		{Float64, Cosine, []float64{3, 4}, []float64{1, 0}, "0.4"},
		{Float32, L2, []float64{1, 0}, []float64{0, 1}, "2"},
		{Float32, IP, []float64{1, 2, 3}, []float64{1, 1, 5}, "-17"},
		{Float16, L2, []float64{1, 2, 3}, []float64{3, 3, 1}, "9"},
		{BFloat16, IP, []float64{1, 2, 3}, []float64{4, 0, 2}, "-9"},
		{Int8, L2, []float64{-128, 127}, []float64{127, -128}, "130050"},
		{Uint8, IP, []float64{255, 255}, []float64{255, 255}, "-130049"},
		{Int8, Cosine, []float64{0, 0}, []float64{1, 1}, "1"},
		{Float32, Cosine, []float64{0, 0}, []float64{1, 1}, "1"},
		{Float32, L2, []float64{3e38, 0}, []float64{-3e38, 1}, "+Inf"},
		{Float32, L2, []float64{math.NaN(), 0}, []float64{1, 1}, "+Inf"},
	} {
		x := New(Options{Type: c.t, Metric: c.m, Dim: len(c.a), Graph: true, M: 4})
		a, _ := encode(c.t, c.a)
		b, _ := encode(c.t, c.b)
		x.Add(1, a)
		require.Equal(t, c.want, fmt.Sprintf("%.12g", x.Query(b).Nearest(1, Search{})[0].Distance))
	}
}

func TestFloatsOf16Bits(t *testing.T) {
	for h := range 1 << 16 {
		h := uint16(h)
		if f := fromHalf(h); f == f {
			require.Equal(t, h, toHalf(f))
			if h&0x7c00 != 0x7c00 && h&0x8000 == 0 { // a tie rounds to even
				next := float64(fromHalf(h + 1))
				if h+1 == 0x7c00 {
					next = 65536
				}
				middle := (float64(f) + next) / 2
				require.Equal(t, h+h&1, toHalf(float32(middle)))
				require.Equal(t, h, toHalf(math.Nextafter32(float32(middle), 0)))
				require.Equal(t, h+1, toHalf(math.Nextafter32(float32(middle), math.MaxFloat32)))
			}
		} else {
			require.True(t, fromHalf(toHalf(f)) != fromHalf(toHalf(f)))
		}
		if f := fromBrain(h); f == f {
			require.Equal(t, h, toBrain(f))
		}
	}
	require.Equal(t, float32(-1.5), fromHalf(0xbe00))
	require.Equal(t, float32(0x1p-24), fromHalf(1))
	require.Equal(t, uint16(0x3f80), toBrain(1.001))
	require.NotEqual(t, toBrain(float32(math.NaN())), toBrain(float32(math.Inf(1))))
}

// modelled is an index and its expected content.
type modelled struct {
	t     *testing.T
	x     *Index
	model map[uint64][][]byte
	rnd   *rand.Rand
	last  uint64
}

func (m *modelled) vectors() (out [][]byte) {
	n := 1
	if m.rnd.IntN(4) == 0 {
		n = 1 + m.rnd.IntN(5)
	}
	for range n {
		b, _ := encode(m.x.options.Type, random(m.rnd, m.x.options.Type, m.x.options.Dim))
		out = append(out, b)
	}
	return out
}

func (m *modelled) some() uint64 {
	for doc := range m.model { // any
		return doc
	}
	return m.last + 7
}

// check compares everything that the index reports with the model.
func (m *modelled) check() {
	t, x := m.t, m.x
	vectors := 0
	plain := New(Options{Type: x.options.Type, Metric: x.options.Metric, Dim: x.options.Dim})
	for doc, v := range m.model {
		vectors += len(v)
		plain.Add(doc, v...)
		require.True(t, x.Holds(doc, v...))
		require.False(t, x.Holds(doc, append(slices.Clone(v), v[0])...))
	}
	require.Equal(t, len(m.model), x.Len())
	require.Equal(t, vectors, x.Vectors())
	query := m.vectors()[0]
	want := plain.Query(query).Nearest(1<<30, Search{})
	q := x.Query(query)
	require.Equal(t, want, q.Nearest(1<<30, Search{Exact: true}))
	require.Equal(t, want, q.Nearest(1<<30, Search{}))
	for _, n := range want {
		d, ok := q.Distance(n.Doc)
		require.True(t, ok)
		require.Equal(t, n.Distance, d)
	}
	_, ok := q.Distance(m.last + 1)
	require.False(t, ok)
	if len(want) == 0 {
		require.Empty(t, q.Within(math.MaxFloat64, Search{}))
		return
	}
	k := 1 + m.rnd.IntN(10)
	m.mostly(want[:min(k, len(want))], q.Nearest(k, Search{EF: 30}))
	allowed := func(doc uint64) bool { return doc%3 == 0 }
	var some []Near
	for _, n := range want {
		if allowed(n.Doc) {
			some = append(some, n)
		}
	}
	m.mostly(some[:min(k, len(some))], q.Nearest(k, Search{EF: 30, Allowed: allowed}))
	radius := want[min(len(want)-1, 5)].Distance
	within := q.Within(radius, Search{EF: 20})
	slices.SortFunc(within, Near.compare)
	for i := range within {
		require.LessOrEqual(t, within[i].Distance, radius)
	}
	m.mostly(want[:min(6, len(want))], within)
	batches, seen := q.Batches(Search{EF: 20}), map[uint64]bool{}
	for n := 1 + m.rnd.IntN(20); ; {
		batch := batches.Next(n)
		for _, near := range batch {
			require.False(t, seen[near.Doc])
			seen[near.Doc] = true
		}
		if len(batch) < n {
			break
		}
	}
	require.Len(t, seen, len(want))
}

// mostly fails unless most of the expected documents were found, and all found ones are right.
func (m *modelled) mostly(want, found []Near) {
	m.t.Helper()
	hits := 0
	for _, n := range found {
		require.Contains(m.t, m.model, n.Doc)
		if slices.Contains(want, n) {
			hits++
		}
	}
	require.GreaterOrEqual(m.t, hits, len(want)*6/10)
}

func TestAnIndexIsLikeAModel(t *testing.T) {
	rounds, ops := 18, 1500
	if testing.Short() {
		rounds, ops = 6, 500
	}
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(round), 2))
		o := Options{Type: types[round%len(types)], Metric: metrics[round/6%len(metrics)], Dim: 1 + rnd.IntN(20), Graph: round%4 > 0,
			M: 4 + rnd.IntN(8), BuildEF: 10 + rnd.IntN(50), EF: 10, Epsilon: 0.01}
		m := &modelled{t, New(o), map[uint64][][]byte{}, rnd, 0}
		most := 5 + rnd.IntN(400)
		for op := range ops {
			doc := m.some()
			switch was, there := m.model[doc], len(m.model) >= most; {
			case rnd.IntN(10) < 4 && !there:
				m.last++
				v := m.vectors()
				m.x.Add(m.last, v...)
				m.model[m.last] = v
			case rnd.IntN(2) == 0:
				require.Equal(t, was != nil, m.x.Remove(doc))
				delete(m.model, doc)
			default: // change the document
				m.last++
				require.Equal(t, was != nil, m.x.Move(doc, m.last))
				if delete(m.model, doc); was != nil {
					m.model[m.last] = was
				}
			}
			if op%100 == 0 {
				m.check()
			}
			if op%300 == 299 {
				blob := m.x.AppendBlob([]byte("before"))[6:]
				again, err := Decode(blob, o)
				require.NoError(t, err)
				m.x = again
				m.check()
				blob = again.AppendBlob(nil) // perhaps without vectors that had no incoming links
				if again, err = Decode(blob, o); again.Going() == 0 {
					require.NoError(t, err)
					require.Equal(t, blob, again.AppendBlob(nil))
				}
			}
		}
		m.check()
		room := m.x.docs.Len()
		require.LessOrEqual(t, room, 5*most+20, "slots are used again")
		for doc := range m.model {
			m.x.Remove(doc)
		}
		clear(m.model)
		m.check()
	}
}

// TestRecall compares the graph with the usual one at the same parameters (usual_test.go).
func TestRecall(t *testing.T) {
	const dim, queries, k = 32, 200, 10
	n := 3000
	if testing.Short() {
		n = 600
	}
	for name, source := range sources(dim) {
		next := source(rand.New(rand.NewPCG(1, 2)))
		x := New(Options{Dim: dim, Graph: true, M: 16, BuildEF: 100, EF: 10})
		u := &usual{m: 16, buildEF: 100, rnd: rand.New(rand.NewPCG(3, 4))}
		for doc := range uint64(n) {
			b, v := encode(Float32, next())
			x.Add(doc+1, b)
			u.add(v)
		}
		for _, ef := range []int{10, 20, 50} {
			ours, theirs := 0, 0
			for range queries {
				b, v := encode(Float32, next())
				truth := map[uint64]bool{}
				for _, n := range x.Query(b).Nearest(k, Search{Exact: true}) {
					truth[n.Doc] = true
				}
				for _, n := range x.Query(b).Nearest(k, Search{EF: ef}) {
					if truth[n.Doc] {
						ours++
					}
				}
				for _, id := range u.nearest(v, ef, k) {
					if truth[uint64(id)+1] {
						theirs++
					}
				}
			}
			t.Logf("%s, EF %d: recall %.3f, of the usual graph %.3f", name, ef, float64(ours)/queries/k, float64(theirs)/queries/k)
			require.GreaterOrEqual(t, ours, theirs*99/100)
		}
	}
}

// TestRecallAfterChanges compares a graph whose documents were all replaced, some at a time, with a new one.
func TestRecallAfterChanges(t *testing.T) {
	const n, dim, queries, k = 1000, 16, 200, 10
	for name, source := range sources(dim) {
		next := source(rand.New(rand.NewPCG(1, 2)))
		rnd := rand.New(rand.NewPCG(5, 6))
		o := Options{Dim: dim, Graph: true, M: 8, BuildEF: 60, EF: 10}
		x, fresh := New(o), New(o)
		docs := map[uint64][]byte{}
		last := uint64(0)
		for op := range 5 * n {
			if len(docs) < n && op < 4*n || len(docs) < n/2 {
				last++
				docs[last], _ = encode(Float32, next())
				x.Add(last, docs[last])
			} else {
				for doc := 1 + rnd.Uint64N(last); ; doc = 1 + doc%last { // the next existing one
					if docs[doc] != nil {
						x.Remove(doc)
						delete(docs, doc)
						break
					}
				}
			}
		}
		require.Equal(t, len(docs), x.Len())
		require.Less(t, x.Going(), n/4)
		for _, doc := range slices.Sorted(maps.Keys(docs)) { // the graph depends on the order
			fresh.Add(doc, docs[doc])
		}
		changed, anew := 0, 0
		for range queries {
			q, _ := encode(Float32, next())
			truth := fresh.Query(q).Nearest(k, Search{Exact: true})
			for _, n := range x.Query(q).Nearest(k, Search{}) {
				if slices.Contains(truth, n) {
					changed++
				}
			}
			for _, n := range fresh.Query(q).Nearest(k, Search{}) {
				if slices.Contains(truth, n) {
					anew++
				}
			}
		}
		t.Logf("%s: recall %.3f, of a new graph %.3f", name, float64(changed)/queries/k, float64(anew)/queries/k)
		require.GreaterOrEqual(t, changed, anew*95/100)
	}
}

// sources returns generators of vectors.
func sources(dim int) map[string]func(rnd *rand.Rand) func() []float64 {
	return map[string]func(rnd *rand.Rand) func() []float64{
		"uniform": func(rnd *rand.Rand) func() []float64 {
			return func() []float64 {
				v := make([]float64, dim)
				for i := range v {
					v[i] = rnd.Float64()*2 - 1
				}
				return v
			}
		},
		// hubs has vectors near the centre, which are near very many others.
		"hubs": func(rnd *rand.Rand) func() []float64 { return func() []float64 { return random(rnd, Float32, dim) } },
		"clusters": func(rnd *rand.Rand) func() []float64 {
			centres := make([][]float64, 100)
			for i := range centres {
				centres[i] = random(rnd, Float32, dim)
			}
			return func() []float64 {
				v := random(rnd, Float32, dim)
				centre := centres[rnd.IntN(len(centres))]
				for i := range v {
					v[i] = centre[i] + 0.4*v[i]
				}
				return v
			}
		},
	}
}

// Searches run beside a writer. Documents that do not change are always found.
func TestSearchesBesideAWriter(t *testing.T) {
	for _, o := range []Options{
		{Dim: 8, Metric: L2, Graph: true, M: 6, BuildEF: 20, EF: 10},
		{Dim: 8, Metric: Cosine},
		{Dim: 8, Type: Float16, Metric: Cosine, Graph: true, M: 5, BuildEF: 20, EF: 10, Epsilon: 0.01},
	} {
		x := New(o)
		rnd := rand.New(rand.NewPCG(1, 1))
		vector := func(rnd *rand.Rand) []byte {
			b, _ := encode(o.Type, random(rnd, o.Type, o.Dim))
			return b
		}
		const steady = 100
		for doc := range uint64(steady) {
			x.Add(doc+1, vector(rnd))
		}
		var wg sync.WaitGroup
		var done atomic.Bool
		searches := atomic.Int64{}
		for reader := range uint64(3) {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(2, reader))
				for !done.Load() {
					q := x.Query(vector(rnd))
					for _, n := range q.Nearest(5, Search{}) {
						if n.Doc == 0 {
							t.Error("no document")
						}
					}
					if found := q.Nearest(5, Search{Allowed: func(doc uint64) bool { return doc <= steady }}); len(found) != 5 {
						t.Errorf("%d found", len(found))
					}
					if _, ok := q.Distance(1 + rnd.Uint64N(steady)); !ok {
						t.Error("not found")
					}
					q.Within(2, Search{})
					q.Batches(Search{}).Next(20)
					searches.Add(1)
				}
			})
		}
		last := uint64(steady)
		var docs []uint64
		for op := 0; op < 3000 || searches.Load() < 100; op++ {
			switch n := len(docs); {
			case n < 50 || n < 500 && rnd.IntN(2) == 0:
				last++
				docs = append(docs, last)
				if rnd.IntN(5) == 0 {
					x.Add(last, vector(rnd), vector(rnd))
				} else {
					x.Add(last, vector(rnd))
				}
			case rnd.IntN(4) == 0:
				last++
				i := rnd.IntN(n)
				x.Move(docs[i], last)
				docs[i] = last
			default:
				i := rnd.IntN(n)
				x.Remove(docs[i])
				docs[i] = docs[n-1]
				docs = docs[:n-1]
			}
		}
		done.Store(true)
		wg.Wait()
		require.Equal(t, steady+len(docs), x.Len())
		_, err := Decode(x.AppendBlob(nil), o)
		require.NoError(t, err)
	}
}

func TestMemory(t *testing.T) {
	const n = 5000
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, graph := range []bool{false, true} {
		x := New(Options{Dim: 128, Graph: graph, M: 16, BuildEF: 5})
		for doc := range uint64(n) {
			b, _ := encode(Float32, random(rnd, Float32, 128))
			x.Add(doc+1, b)
		}
		most := 512.0 + 40
		if graph {
			most += 8*16 + 20
		}
		require.Less(t, float64(x.Bytes())/n, most*1.1) // the last chunk is not full
	}
}

// decodable returns a blob with the right checksum.
func decodable(b []byte) []byte {
	return order.AppendUint32(slices.Clone(b), crc32.Checksum(b, castagnoli))
}

func FuzzDecode(f *testing.F) {
	options := []Options{
		{Dim: 2, Graph: true, M: 4, BuildEF: 10}, {Dim: 2, Type: Int8, Metric: Cosine}, {Dim: 1, Type: Float16, Metric: IP, Graph: true, M: 4},
	}
	for i, o := range options {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		x := New(o)
		for doc := range uint64(9) {
			var vectors [][]byte
			for range 1 + doc%3*uint64(i) {
				b, _ := encode(o.Type, random(rnd, o.Type, o.Dim))
				vectors = append(vectors, b)
			}
			x.Add(1+doc, vectors...)
			b := x.AppendBlob(nil)
			f.Add(uint8(i), b[:len(b)-4])
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		o := options[int(which)%len(options)]
		if x, err := Decode(b, o); err == nil {
			_ = x.Len()
		}
		x, err := Decode(decodable(b), o)
		if err != nil || x.Vectors() > 100 {
			return
		}
		q := x.Query(make([]byte, x.VectorBytes()))
		docs := q.Nearest(1000, Search{Exact: true})
		require.Len(t, docs, x.Len())
		q.Nearest(3, Search{})
		q.Within(10, Search{})
		again, err := Decode(x.AppendBlob(nil), o)
		require.NoError(t, err)
		require.Equal(t, x.Len(), again.Len())
		x.Add(math.MaxUint64, make([]byte, x.VectorBytes()))
		for _, n := range docs {
			require.True(t, x.Remove(n.Doc) || n.Doc == math.MaxUint64)
		}
	})
}

func benchmarked(b *testing.B, o Options, n int) (*Index, func() []float64) {
	next := sources(o.Dim)["clusters"](rand.New(rand.NewPCG(1, 2)))
	x := New(o)
	for doc := range uint64(n) {
		v, _ := encode(o.Type, next())
		x.Add(doc+1, v)
	}
	return x, next
}

func BenchmarkAdd(b *testing.B) {
	x, next := benchmarked(b, Options{Dim: 128, Graph: true, M: 16, BuildEF: 200}, 10_000)
	var vectors [][]byte
	for range 1000 {
		v, _ := encode(Float32, next())
		vectors = append(vectors, v)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.Add(1<<32+uint64(i), vectors[i%len(vectors)])
	}
}

func BenchmarkNearest(b *testing.B) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"hnsw", Options{Dim: 128, Graph: true, M: 16, BuildEF: 200, EF: 10}},
		{"flat", Options{Dim: 128}},
		{"flat/float16", Options{Dim: 128, Type: Float16}},
		{"flat/int8", Options{Dim: 128, Type: Int8}},
	} {
		b.Run(c.name, func(b *testing.B) {
			x, next := benchmarked(b, c.o, 20_000)
			var vectors [][]byte
			for range 1000 {
				v, _ := encode(c.o.Type, next())
				vectors = append(vectors, v)
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					x.Query(vectors[i%len(vectors)]).Nearest(10, Search{})
				}
			})
		})
	}
}
