package docs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestDocumentHasItsFields(t *testing.T) {
	long := make([]byte, 300)
	values := []Value{{}, {Kind: Number, Number: -1.5}, {Kind: Text}, {Kind: Text, Text: string(long)}, {Kind: Number, Number: math.Inf(1)}}
	for _, f := range []Fields{
		{Key: "k", Score: 1},
		{Key: "", Score: 0.25, Len: 3, MaxFreq: 2, Terms: []byte("terms")},
		{Key: string(long), Score: 1, Payload: []byte{}, Sort: values},
		{Key: "k", Score: 0, Payload: long, Sort: values[:1], Terms: long},
	} {
		table := New()
		id := table.Add(f)
		d := table.View().Get(id)
		require.Equal(t, f.Key, d.Key())
		require.Equal(t, f.Score, d.Score())
		require.Equal(t, f.Len, d.Len)
		require.Equal(t, f.MaxFreq, d.MaxFreq)
		payload, ok := d.Payload()
		require.Equal(t, f.Payload != nil, ok)
		require.Equal(t, string(f.Payload), payload)
		require.Equal(t, len(f.Sort), d.Sortables())
		for i, v := range f.Sort {
			require.Equal(t, v, d.Sort(i))
		}
		require.Equal(t, Value{}, d.Sort(len(f.Sort)))
		require.Equal(t, string(f.Terms), d.Terms())
	}
}

// check compares a view with its expected documents.
func check(t require.TestingT, v View, want map[uint64]string) {
	require.Equal(t, len(want), v.Len())
	length := uint64(0)
	for id := uint64(0); id <= v.Last()+1; id++ {
		key, ok := want[id]
		d := v.Get(id)
		if ok != v.Alive(id) || ok != (d != nil) || ok && d.Key() != key {
			require.Fail(t, "document", "%d is %v, want %q", id, d, key)
		}
		if ok {
			length += uint64(d.Len)
		}
	}
	require.Equal(t, length, v.Length())
}

func TestViewsStayWhileTheTableChanges(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		table := New()
		living := map[uint64]string{}
		byKey := map[string]uint64{}
		type taken struct {
			v    View
			want map[uint64]string
		}
		var views []taken
		keep := func() {
			want := map[uint64]string{}
			for id, key := range living {
				want[id] = key
			}
			views = append(views, taken{table.View(), want})
		}
		keys := 1 + r.IntN(1500)
		for range r.IntN(3000) {
			if r.IntN(600) == 0 {
				keep()
			}
			key := fmt.Sprint("key:", r.IntN(keys))
			id, ok := byKey[key]
			require.Equal(rt, id, table.Lookup(key))
			gone, d := table.Remove(key)
			require.Equal(rt, ok, d != nil)
			if ok {
				require.Equal(rt, id, gone)
				require.Equal(rt, key, d.Key())
				delete(living, id)
				delete(byKey, key)
			}
			if r.IntN(4) > 0 {
				id := table.Add(Fields{Key: key, Score: 1, Len: r.Uint32N(100)})
				require.Equal(rt, table.Last(), id)
				living[id], byKey[key] = key, id
			}
		}
		keep()
		for _, v := range views {
			check(rt, v.v, v.want)
		}
		for id := uint64(0); id <= table.Last()+1; id++ {
			if alive := living[id] != ""; alive != table.Alive(id) {
				rt.Fatalf("%d lives: %v", id, alive)
			}
		}
	})
}

func TestPagesOfDeadDocumentsAreFreed(t *testing.T) {
	table := New()
	r := testseed.Rand(t)
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprint("key:", i)
		table.Add(Fields{Key: keys[i], Score: 1})
	}
	before := table.Bytes()
	for range 100_000 { // each document changes twenty times
		key := keys[r.IntN(len(keys))]
		table.Remove(key)
		table.Add(Fields{Key: key, Score: 1})
	}
	require.Less(t, table.Bytes(), before*3/2)
	for _, key := range keys {
		table.Remove(key)
	}
	require.Equal(t, 0, table.Len())
	require.Less(t, table.Bytes(), before/4)
}

func TestDocumentTakesSixtyBytesBesideItsKey(t *testing.T) {
	table := New()
	const n = 100_000
	for i := range n {
		table.Add(Fields{Key: fmt.Sprintf("doc:%012d", i), Score: 1, Terms: []byte("123456789")})
	}
	require.Less(t, table.Bytes(), (60+32)*n) // the string of 28 bytes takes 32
}

// More than 2^32 documents may come and go.
func TestNumbersAreFoundBeyond32Bits(t *testing.T) {
	table := New()
	old := table.Add(Fields{Key: "old", Score: 1})
	// As if all numbers up to there had come and gone.
	nodes := uint64(numbers)/(nodeSize*pageSize) + 1
	for range 255 {
		table.Add(Fields{Key: fmt.Sprint("x", table.Last()), Score: 1})
	}
	require.Empty(t, table.now.tail.docs)
	for uint64(len(table.now.nodes)) < nodes {
		table.now.nodes = append(table.now.nodes, &node{})
	}
	table.now.last = nodes * nodeSize * pageSize
	id := table.Add(Fields{Key: "new", Score: 1})
	require.Greater(t, id, uint64(math.MaxUint32))
	// Two that are equal in the table of keys.
	same := table.Add(Fields{Key: "same", Score: 1})
	table.keys.Add(dict.HashOf("old"), uint32(same%numbers))
	require.Equal(t, id, table.Lookup("new"))
	require.Equal(t, same, table.Lookup("same"))
	require.Equal(t, old, table.Lookup("old"))
	gone, d := table.Remove("old")
	require.Equal(t, old, gone)
	require.Equal(t, "old", d.Key())
	require.Zero(t, table.Lookup("old"))
	require.Equal(t, 257, table.Len())
}

func TestViewsAreReadBesideChanges(t *testing.T) {
	r := testseed.Rand(t)
	table := New()
	var lock sync.RWMutex
	var readers sync.WaitGroup
	done := make(chan bool)
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				lock.RLock()
				v := table.View()
				lock.RUnlock()
				n := 0
				for id := range v.Last() + 1 {
					if d := v.Get(id); d != nil && d.Key() != "" {
						n++
					}
				}
				if n != v.Len() {
					t.Errorf("%d documents of %d", n, v.Len())
				}
			}
		})
	}
	var keys []string
	for i := range 4000 {
		lock.Lock()
		if len(keys) > 800 && i%2 == 0 {
			at := r.IntN(len(keys))
			table.Remove(keys[at])
			keys = slices.Delete(keys, at, at+1)
		} else {
			keys = append(keys, fmt.Sprint(i))
			table.Add(Fields{Key: keys[len(keys)-1], Score: 1})
		}
		lock.Unlock()
	}
	close(done)
	readers.Wait()
}

func filled(n int) (*Table, []string) {
	t := New()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("doc:%08d", i)
		t.Add(Fields{Key: keys[i], Score: 1, Sort: []Value{{Kind: Number, Number: 3}}})
	}
	return t, keys
}

func BenchmarkRemoveAndAdd(b *testing.B) {
	t, keys := filled(100_000)
	r := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		key := keys[r.IntN(len(keys))]
		t.Remove(key)
		t.Add(Fields{Key: key, Score: 1})
	}
	b.ReportMetric(float64(t.Bytes())/float64(t.Len()), "B/doc")
}

func BenchmarkRemoveAndAddAfterViews(b *testing.B) {
	t, keys := filled(100_000)
	r := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		key := keys[r.IntN(len(keys))]
		t.View()
		t.Remove(key)
		t.Add(Fields{Key: key, Score: 1})
	}
}

func BenchmarkGet(b *testing.B) {
	t, _ := filled(100_000)
	v := t.View()
	id := uint64(0)
	sum := uint32(0)
	for b.Loop() {
		if id++; id > v.Last() {
			id = 1
		}
		sum += v.Get(id).Len
	}
}

func BenchmarkSort(b *testing.B) {
	t, _ := filled(100)
	d := t.View().Get(50)
	for b.Loop() {
		d.Sort(0)
	}
}
