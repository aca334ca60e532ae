package vectors

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/listpack"
)

// full reports whether to run the long tests.
func full() bool { return os.Getenv("ATOMREDIS_FULL_TESTS") != "" }

// plain is an element of the model: its vector as given, and its attributes.
type plain struct {
	v          []float32
	attributes []byte // nil if there are none
}

// kept returns a normalised vector after quantisation, in plain code.
func kept(q Quantisation, v []float32) []float64 {
	out := make([]float64, len(v))
	norm, largest := 0.0, 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	norm = math.Sqrt(norm)
	if norm == 0 {
		norm = 1
	}
	for i, x := range v {
		out[i] = float64(x) / norm
		largest = max(largest, math.Abs(out[i]))
	}
	for i, x := range out {
		switch {
		case q == Q8 && largest > 0:
			out[i] = math.Round(x/largest*127) / 127 * largest
		case q == Bin && x > 0:
			out[i] = 1 / math.Sqrt(float64(len(v)))
		case q == Bin:
			out[i] = -1 / math.Sqrt(float64(len(v)))
		}
	}
	return out
}

func cosine(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// check checks the invariants of a set.
func check(t *testing.T, s *Set) {
	t.Helper()
	n := s.Len()
	require.Equal(t, n, s.texts.Len())
	require.Equal(t, n, s.graph.Live())
	if s.quant == None {
		require.Equal(t, n, s.floats.Len())
	} else {
		require.Equal(t, n, s.words.Len())
	}
	texts, with, top, seen := 0, 0, 0, 0
	var last string
	s.Range(nil, func(id uint32) bool {
		name := s.Name(id)
		require.True(t, seen == 0 || name > last)
		found, ok := s.Find([]byte(name))
		require.True(t, ok && found == id)
		last = name
		seen++
		return true
	})
	require.Equal(t, n, seen)
	for id := range uint32(n) {
		texts += listpack.Allocated(len(s.texts.At(id)[0]))
		if _, ok := s.Attributes(id); ok {
			with++
		}
		top = max(top, s.Level(id))
		for l := range s.Level(id) + 1 {
			links := s.Links(id, l)
			require.True(t, slices.IsSorted(links) && len(slices.Compact(slices.Clone(links))) == len(links))
			require.LessOrEqual(t, len(links), s.m*(1+btoi(l == 0)))
			for _, other := range links {
				require.True(t, other != id && int(other) < n && s.Level(other) >= l)
				require.Contains(t, s.Links(other, l), id)
			}
		}
		if s.quant == Q8 {
			require.True(t, valid8(s.words.At(id), s.dim))
		}
	}
	require.Equal(t, texts, s.textBytes)
	require.Equal(t, with, s.WithAttributes())
	require.Equal(t, top, s.TopLevel())
	if n > 0 {
		entry, _, _ := s.graph.Entry()
		require.Equal(t, top, s.Level(entry))
	}
	require.Positive(t, s.MemoryUsage())
}

// reachable returns how many nodes a search can reach on the lowest level.
func reachable(s *Set) (n int) {
	if s.Len() == 0 {
		return 0
	}
	seen := make([]bool, s.Len())
	entry, _, _ := s.graph.Entry()
	seen[entry] = true
	for next := []uint32{entry}; len(next) > 0; n++ {
		id := next[len(next)-1]
		next = next[:len(next)-1]
		for _, other := range s.Links(id, 0) {
			if !seen[other] {
				seen[other] = true
				next = append(next, other)
			}
		}
	}
	return n
}

// storedParts returns all parts of a set.
func storedParts(s *Set) map[string]string {
	parts := map[string]string{}
	for c, more := (delta.Cursor{}), true; more; {
		c, more = s.Walk(c, 10, func(name string) {
			data, ok := s.AppendPart(nil, name)
			if !ok {
				panic("no part " + name)
			}
			parts[name] = string(data)
		})
	}
	return parts
}

// loaded returns the set built from the given parts.
func loaded(t *testing.T, parts map[string]string) *Set {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		require.NoError(t, l.Add([]byte(name), []byte(parts[name])))
	}
	s, err := l.Finish(delta.NewLog(1, &delta.Epochs{Current: 1}))
	require.NoError(t, err)
	return s
}

func TestASetIsLikeAModel(t *testing.T) {
	rounds, ops := 6, 5_000
	switch {
	case full():
		rounds, ops = 50, 20_000
	case testing.Short():
		ops = 500
	}
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(round), 1))
		c := Settings{Dim: 1 + rnd.IntN(20), Quant: Quantisation(round % 3), M: MinM + rnd.IntN(6)}
		s, model := New(c), map[string]plain{}
		var log *delta.Log
		epochs := &delta.Epochs{Current: 1}
		stored := map[string]string{}
		most := 5 + rnd.IntN(200)
		vector := func() []float32 {
			v := make([]float32, c.Dim)
			if rnd.IntN(50) > 0 {
				for i := range v {
					v[i] = float32(rnd.NormFloat64() * math.Exp(float64(rnd.IntN(20)-10)))
				}
			}
			return v
		}
		for op := range ops {
			name := fmt.Sprint("e", rnd.IntN(most))
			was, there := model[name]
			id, ok := s.Find([]byte(name))
			require.Equal(t, there, ok)
			switch rnd.IntN(10) {
			case 0, 1, 2, 3:
				p := plain{vector(), was.attributes}
				if !ok && rnd.IntN(4) == 0 {
					p.attributes = []byte{}
				}
				if ok {
					s.Remove(id)
				}
				s.Add([]byte(name), slices.Clone(p.v), p.attributes, 1+rnd.IntN(20))
				model[name] = p
			case 4, 5, 6:
				if ok {
					s.Remove(id)
					delete(model, name)
				}
			case 7:
				if ok {
					was.attributes = [][]byte{nil, []byte(`{"a":1}`), []byte(name)}[rnd.IntN(3)]
					s.SetAttributes(id, was.attributes)
					model[name] = was
				}
			case 8:
				if ok {
					norm := 0.0
					for _, x := range was.v {
						norm += float64(x) * float64(x)
					}
					want, got := kept(c.Quant, was.v), s.AppendVector(nil, id)
					for i := range got {
						x := want[i] * math.Sqrt(norm)
						if c.Quant == Bin {
							x = math.Copysign(1, want[i])
						}
						require.InDelta(t, x, float64(got[i]), 1e-4*math.Sqrt(norm)+math.Sqrt(norm)/127*btof(c.Quant == Q8)+1e-9)
					}
				}
			}
			require.Equal(t, len(model), s.Len())
			if id, ok := s.Find([]byte(name)); ok {
				attributes, has := s.Attributes(id)
				require.Equal(t, model[name].attributes != nil, has)
				require.Equal(t, string(model[name].attributes), attributes)
			}
			if op%200 == 0 {
				check(t, s)
				compare(t, rnd, s, model, vector())
			}
			switch {
			case op%500 == 499 && !s.Large() && s.Len() > 0:
				blob := s.AppendBlob(nil)
				again, err := DecodeBlob(blob)
				require.NoError(t, err)
				require.Equal(t, blob, again.AppendBlob(nil))
				require.LessOrEqual(t, again.MemoryUsage(), 2*s.MemoryUsage())
				s = again
			case s.Large() && log == nil:
				log = delta.NewLog(1, epochs)
				s.Track(log)
			case s.Large() && s.Len() > 0 && rnd.IntN(100) == 0: // a checkpoint
				epochs.Current++
				frozen := log.Frozen()
				for range min(rnd.IntN(5), s.Len()-1) {
					id := uint32(rnd.IntN(s.Len()))
					delete(model, s.Name(id))
					s.Remove(id)
				}
				for _, name := range frozen.Sorted() {
					data, ok := log.AppendFrozen(nil, name, s)
					if ok {
						stored[name] = string(data)
					} else {
						delete(stored, name)
					}
				}
				log.Done()
				before := loaded(t, stored)
				check(t, before)
				for _, name := range log.Frozen().Sorted() {
					require.Fail(t, "frozen after Done", name)
				}
				if rnd.IntN(3) == 0 { // and a restart
					epochs.Current++
					for _, name := range log.Frozen().Sorted() {
						if data, ok := log.AppendFrozen(nil, name, s); ok {
							stored[name] = string(data)
						} else {
							delete(stored, name)
						}
					}
					log.Done()
					require.Equal(t, storedParts(s), stored)
					s = loaded(t, stored)
					log = delta.NewLog(1, epochs)
					s.Attach(log)
				}
			case rnd.IntN(500) == 0:
				clone := s.Clone()
				require.Equal(t, storedParts(s), storedParts(clone))
				if clone.Len() > 0 {
					clone.Remove(0)
					clone.Add([]byte("another"), vector(), nil, 10)
				}
				check(t, clone)
				check(t, s)
			}
		}
		for s.Len() > 0 {
			s.Remove(uint32(rnd.IntN(s.Len())))
		}
		check(t, s)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func btof(b bool) float64 { return float64(btoi(b)) }

// compare searches for a vector with and without the graph, and in the model.
func compare(t *testing.T, rnd *rand.Rand, s *Set, model map[string]plain, v []float32) {
	t.Helper()
	query := kept(s.quant, v)
	var want []float64
	for _, p := range model {
		want = append(want, (1+cosine(kept(s.quant, p.v), query))/2)
	}
	slices.Sort(want)
	slices.Reverse(want)
	count := 1 + rnd.IntN(20)
	truth := s.Similar(QueryVector(slices.Clone(v)), Search{Count: count, All: true})
	require.Len(t, truth, min(count, len(want)))
	for i, f := range truth {
		require.InDelta(t, want[i], f.Score, 0.01)
	}
	found := s.Similar(QueryVector(slices.Clone(v)), Search{Count: count, EF: 200})
	require.True(t, slices.IsSortedFunc(found, func(a, b Found) int { return int(math.Copysign(1, b.Score-a.Score)) }))
	hits := 0
	for _, f := range found {
		if f.Score >= truth[len(truth)-1].Score {
			hits++
		}
	}
	require.GreaterOrEqual(t, float64(hits), 0.7*float64(len(truth)), "reachable: %d of %d", reachable(s), s.Len())
	accept := func(id uint32) bool { return id%3 == 1 }
	for _, f := range s.Similar(QueryVector(v), Search{Count: count, EF: 50, Accept: accept, Effort: 1 + rnd.IntN(100)}) {
		require.True(t, accept(f.ID))
	}
}

func TestTheSameChangesMakeTheSameSet(t *testing.T) {
	build := func() *Set {
		rnd := rand.New(rand.NewPCG(3, 4))
		s := New(Settings{Dim: 10, M: 4})
		for i := range 1000 {
			v := make([]float32, 10)
			for k := range v {
				v[k] = float32(rnd.NormFloat64())
			}
			s.Add(fmt.Append(nil, i), v, nil, 20)
			if i%3 == 0 {
				s.Remove(uint32(rnd.IntN(s.Len())))
			}
		}
		return s
	}
	require.Equal(t, build().AppendBlob(nil), build().AppendBlob(nil))
}

func TestAllNodesStayReachable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	s := New(Settings{Dim: 8, M: 8})
	for i := range 3000 {
		v := make([]float32, 8)
		for k := range v {
			v[k] = float32(rnd.NormFloat64())
		}
		s.Add(fmt.Append(nil, i), v, nil, 30)
	}
	require.Greater(t, reachable(s), s.Len()*99/100)
	for s.Len() > 100 {
		s.Remove(uint32(rnd.IntN(s.Len())))
		if s.Len()%500 == 0 {
			require.Greater(t, reachable(s), s.Len()*98/100)
		}
	}
	check(t, s)
}

func TestExtremeVectors(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, q := range []Quantisation{Q8, Bin, None} {
		s := New(Settings{Dim: 3, Quant: q, M: 4})
		for i, v := range [][]float32{{0, 0, 0}, {inf, 1, 0}, {-inf, inf, inf}, {1e-45, 0, 0}, {math.MaxFloat32, math.MaxFloat32, 1},
			{1e-30, -1e-30, 0}, {1, 2, 3}} {
			s.Add(fmt.Append(nil, i), v, nil, 10)
		}
		check(t, s)
		for id := range uint32(s.Len()) {
			for _, f := range s.Similar(QueryNode(id), Search{Count: 10, EF: 10}) {
				require.True(t, f.Score >= -0.01 && f.Score <= 1.01, "%v: %v", q, f.Score)
			}
			for _, x := range s.AppendVector(nil, id) {
				require.False(t, math.IsNaN(float64(x)))
			}
		}
		again, err := DecodeBlob(s.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, s.AppendBlob(nil), again.AppendBlob(nil))
	}
}

func TestProductsOfPartsAreProducts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for dim := range 70 {
		dim++
		var a, b [2][]uint64
		vectors := [2][]float32{make([]float32, dim), make([]float32, dim)}
		for k := range vectors {
			for i := range vectors[k] {
				vectors[k][i] = float32(rnd.IntN(3)-1) * rnd.Float32()
			}
			words, _ := Q8.code(dim)
			a[k], b[k] = make([]uint64, words), nil
			encode8(a[k], vectors[k])
		}
		q := query{words: a[0]}
		q.prepare8()
		want, rough := 0, 0.0
		for i := range dim {
			want += component8(a[0], i) * component8(a[1], i)
		}
		rough = float64(want) * float64(range8(a[0])) * float64(range8(a[1])) / (127 * 127)
		require.Equal(t, int64(want), q.dot8(a[1]))
		require.InDelta(t, rough, float64(q.rough8(a[1])), 0.02*float64(dim))
	}
}

// decodeParts builds a set from bytes: the length of a name, the name, two bytes with a length, the data.
func decodeParts(b []byte) (*Set, error) {
	l := NewLoader()
	for len(b) >= 3 {
		n := min(int(b[0]), len(b)-3)
		name := b[1 : 1+n]
		size := min(int(binary.LittleEndian.Uint16(b[1+n:])), len(b)-3-n)
		if err := l.Add(name, b[3+n:3+n+size]); err != nil {
			return nil, err
		}
		b = b[3+n+size:]
	}
	return l.Finish(nil)
}

// use applies to a loaded set what is usually done with sets.
func use(t *testing.T, s *Set) {
	check(t, s)
	v := make([]float32, s.Dim())
	v[0] = 1
	s.Similar(QueryVector(slices.Clone(v)), Search{Count: 3, EF: 10})
	if _, ok := s.Find([]byte("new")); !ok {
		s.Add([]byte("new"), v, []byte("x"), 10)
	}
	check(t, s)
	for s.Len() > 0 {
		s.Similar(QueryNode(0), Search{Count: 3, EF: 10})
		s.Remove(uint32(s.Len() / 2))
	}
	check(t, s)
}

func FuzzDecodeBlob(f *testing.F) {
	for _, c := range []Settings{{Dim: 2, M: 4}, {Dim: 3, M: 4, Quant: Bin}, {Dim: 2, M: 5, Quant: None, Input: 3}} {
		s := New(c)
		f.Add(s.AppendBlob(nil))
		for i := range 5 {
			v := make([]float32, c.Dim)
			v[0], v[1] = float32(i), 1
			s.Add(fmt.Append(nil, i), v, []byte("{}")[:i%2*2], 10)
		}
		f.Add(s.AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeBlob(b)
		if err == nil && s.Len() < 50 && s.Dim() < 1000 {
			use(t, s)
		}
	})
}

func FuzzLoader(f *testing.F) {
	s := New(Settings{Dim: 2, M: 4})
	for i := range 5 {
		s.Add(fmt.Append(nil, i), []float32{float32(i), 1}, nil, 10)
	}
	var b []byte
	parts := storedParts(s)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		b = append(append(b, byte(len(name))), name...)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(parts[name])))
		b = append(b, parts[name]...)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeParts(b)
		if err == nil && s.Len() < 50 && s.Dim() < 1000 {
			use(t, s)
		}
	})
}
