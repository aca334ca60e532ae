package dict

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// pair is an element with a value by which the tests identify it.
type pair struct {
	key   string
	value int
}

func (p pair) Key() string { return p.key }

// put sets the value of key, adds the key if it is new, and reports whether it was there.
func put(t *Table[pair], key string, value int) (replaced bool) {
	_, e, hash := t.Find([]byte(key))
	if e == nil {
		t.Insert(hash, pair{key, value})
		return false
	}
	*e = pair{key, value}
	return true
}

// numbered returns a table of the names of the numbers from 0 to n-1.
func numbered(n int) *Table[pair] {
	t := new(Table[pair])
	for i := range n {
		t.Add(pair{strconv.Itoa(i), i})
	}
	return t
}

// requireSoundTable checks the invariants between the parts of tab.
func requireSoundTable(t require.TestingT, tab *Table[pair]) {
	requireSoundIndex(t, &tab.index, tab.n)
	require.LessOrEqual(t, tab.n, len(tab.chunks)*chunkSize)
	for i := range tab.n {
		if j, ok := tab.IndexOf([]byte(tab.at(i).key)); !ok || i != j {
			require.Fail(t, "an element is not found by its key")
		}
	}
}

func tableContents(tab *Table[pair]) map[string]int {
	m := map[string]int{}
	for e := range tab.All() {
		m[e.key] = e.value
	}
	return m
}

// probe takes the steps of a lookup through Ahead, and returns the number of the element found, or -1.
func probe(a Ahead, key []byte) int {
	hash, slot := a.Slot(key)
	i, address := a.Element(hash)
	if (i < 0) != (address == 0) || i >= 0 && slot == 0 {
		panic("the steps do not agree")
	}
	return i
}

func TestZeroValueIsAnEmptyTable(t *testing.T) {
	var tab Table[pair]
	_, ok := tab.Get([]byte("a"))
	require.False(t, ok)
	_, ok = tab.Delete([]byte("a"))
	require.False(t, ok)
	require.Equal(t, uint64(0), tab.Scan(7, 10, func(*pair) { t.Fatal("no elements") }))
	require.Equal(t, -1, probe(&tab, []byte("a")))
	c := tab.Clone(nil)
	for _, tab := range []*Table[pair]{&tab, &c} {
		require.False(t, put(tab, "", 1))
		e, ok := tab.Get([]byte{})
		require.True(t, ok)
		require.Equal(t, 1, e.value)
	}
}

func TestTableBehavesLikeAMap(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		tab := new(Table[pair])
		model := map[string]int{}
		key := rapid.Map(rapid.IntRange(0, 2000), strconv.Itoa)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
				_, want := model[k]
				require.Equal(t, want, put(tab, k, v))
				model[k] = v
			},
			"add": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
				if _, ok := tab.Get([]byte(k)); !ok {
					require.Equal(t, pair{k, v}, *tab.Add(pair{k, v}))
					model[k] = v
				}
			},
			"put many": func(t *rapid.T) {
				first := rapid.IntRange(0, 2000).Draw(t, "first")
				for i := first; i < first+300; i++ {
					k := strconv.Itoa(i)
					_, want := model[k]
					if want != put(tab, k, i) {
						require.Fail(t, "wrong word on replacement", k)
					}
					model[k] = i
				}
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				want, wantOK := model[k]
				e, ok := tab.Delete([]byte(k))
				require.Equal(t, wantOK, ok)
				require.Equal(t, want, e.value)
				delete(model, k)
			},
			"delete many": func(t *rapid.T) {
				for range rapid.IntRange(0, tab.Len()).Draw(t, "n") {
					e := tab.DeleteAt(tab.Len() / 2)
					if model[e.key] != e.value {
						require.Fail(t, "wrong element deleted", e.key)
					}
					delete(model, e.key)
				}
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				want, wantOK := model[k]
				e, ok := tab.Get([]byte(k))
				require.Equal(t, wantOK, ok)
				if i := probe(tab, []byte(k)); ok {
					require.Equal(t, want, e.value)
					require.Same(t, e, tab.At(i))
					e.value++
					model[k]++
				}
			},
			"clone": func(*rapid.T) {
				c := tab.Clone(func(e pair) pair { return e })
				tab = &c
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), tab.Len())
				require.True(t, maps.Equal(model, tableContents(tab)))
				requireSoundIndex(t, &tab.index, tab.n)
			},
		})
		requireSoundTable(t, tab)
	})
}

func TestMarksBelongToElementsForOneRound(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		tab := new(Table[pair])
		marked := map[string]bool{} // keys of all present elements
		round := uint32(1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "n") {
					k := strconv.Itoa(len(marked) + 1000*int(round))
					if _, ok := marked[k]; !ok {
						tab.Add(pair{key: k})
						marked[k] = false
					}
				}
			},
			"mark": func(t *rapid.T) {
				for range min(tab.Len(), 50) {
					i := rapid.IntRange(0, tab.Len()-1).Draw(t, "i")
					k := tab.At(i).key
					require.Equal(t, !marked[k], tab.Mark(i, round))
					marked[k] = true
				}
			},
			"delete": func(t *rapid.T) {
				for range rapid.IntRange(0, tab.Len()).Draw(t, "n") {
					delete(marked, tab.DeleteAt(rapid.IntRange(0, tab.Len()-1).Draw(t, "i")).key)
				}
			},
			"round": func(*rapid.T) {
				round++
				for k := range marked {
					marked[k] = false
				}
			},
			"unmark": func(*rapid.T) {
				tab.Unmark()
				for k := range marked {
					marked[k] = false
				}
			},
		})
		for i := range tab.Len() {
			require.Equal(t, !marked[tab.At(i).key], tab.Mark(i, round))
		}
	})
}

func TestTableGrowsAndShrinksByPieces(t *testing.T) {
	const n = 100_000
	tab := numbered(n)
	requireSoundTable(t, tab)
	require.Greater(t, tab.index.depth, 5)
	for i := range n - 10 {
		_, ok := tab.Delete([]byte(strconv.Itoa(i)))
		require.True(t, ok)
	}
	requireSoundTable(t, tab)
	require.Zero(t, tab.index.depth)
	require.Len(t, tab.chunks, 1)
	require.LessOrEqual(t, len(tab.index.dir[0].slots), 128)
	for i := n - 10; i < n; i++ {
		e, ok := tab.Get([]byte(strconv.Itoa(i)))
		require.True(t, ok)
		require.Equal(t, i, e.value)
	}
}

func TestElementsWhoseHashBitsAreEqualAreKeptApart(t *testing.T) {
	byHash := map[uint32]string{}
	for i := 0; ; i++ {
		k := strconv.Itoa(i)
		other, ok := byHash[hashOf(k)]
		if !ok {
			byHash[hashOf(k)] = k
			continue
		}
		tab := new(Table[pair])
		put(tab, k, 1)
		_, ok = tab.GetString(other)
		require.False(t, ok)
		put(tab, other, 2)
		e, _ := tab.GetString(k)
		require.Equal(t, 1, e.value)
		tab.Delete([]byte(k))
		e, _ = tab.GetString(other)
		require.Equal(t, 2, e.value)
		requireSoundTable(t, tab)
		return
	}
}

func TestTableScanVisitsEveryElementThatStays(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		tab := numbered(rapid.IntRange(0, 600).Draw(t, "elements"))
		stays := map[string]bool{}
		for e := range tab.All() {
			stays[e.key] = true
		}
		seen := map[string]bool{}
		cursor, next := uint64(0), 1000
		for {
			cursor = tab.Scan(cursor, rapid.IntRange(-1, 50).Draw(t, "count"), func(e *pair) { seen[e.key] = true })
			if cursor == 0 {
				break
			}
			for range rapid.IntRange(0, 20).Draw(t, "inserts") {
				put(tab, strconv.Itoa(next), next)
				next++
			}
			for range min(tab.Len(), rapid.IntRange(0, 30).Draw(t, "deletes")) {
				delete(stays, tab.DeleteAt(rapid.IntRange(0, tab.Len()-1).Draw(t, "victim")).key)
			}
		}
		for k := range stays {
			require.True(t, seen[k], "%s was there throughout and not visited", k)
		}
	})
}

func TestTableScanVisitsEachElementOnceWhenNothingChanges(t *testing.T) {
	tab := numbered(1000)
	calls, visits := 0, map[string]int{}
	for cursor := uint64(0); calls == 0 || cursor != 0; calls++ {
		cursor = tab.Scan(cursor, 10, func(e *pair) { visits[e.key]++ })
	}
	require.Equal(t, 100, calls)
	require.Len(t, visits, 1000)
}

func TestTableScanTakesAnyCursor(t *testing.T) {
	tab := numbered(5)
	for _, cursor := range []uint64{5, 6, 1 << 31, 1 << 32, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		var keys []string
		require.Equal(t, uint64(3), tab.Scan(cursor, 2, func(e *pair) { keys = append(keys, e.key) }))
		require.Equal(t, []string{"4", "3"}, keys)
	}
}

func TestTableScanMayDeleteWhatItVisits(t *testing.T) {
	tab := numbered(1000)
	visits := 0
	for cursor := uint64(0); visits == 0 || cursor != 0; {
		cursor = tab.Scan(cursor, 7, func(e *pair) {
			visits++
			if visits%3 != 0 {
				tab.Delete([]byte(e.key))
			}
		})
	}
	require.Equal(t, 1000, visits)
	require.Equal(t, 333, tab.Len())
	requireSoundTable(t, tab)
}

func TestCloneOfATableIsIndependent(t *testing.T) {
	tab := numbered(3000)
	c := tab.Clone(func(e pair) pair { return pair{e.key, -e.value} })
	for i := range 3000 {
		put(tab, strconv.Itoa(i), 0)
		tab.Delete([]byte(strconv.Itoa(i)))
	}
	require.Equal(t, 3000, c.Len())
	for i := range 3000 {
		e, ok := c.GetString(strconv.Itoa(i))
		require.True(t, ok)
		require.Equal(t, -i, e.value)
	}
	requireSoundTable(t, &c)
}

func TestTableLookupDoesNotAllocate(t *testing.T) {
	tab := numbered(1000)
	hit, miss := []byte("500"), []byte("a key that is not there and is longer than 32 bytes")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tab.Get(hit)
		tab.Find(miss)
		tab.Delete(miss)
		tab.IndexOf(hit)
		probe(tab, hit)
	}))
}

func TestWholeChunksFillTheirMemory(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the size of a chunk is for pointers of 64 bits")
	}
	require.Len(t, make([]*pair, chunkSize), cap(slices.Grow([]*pair(nil), chunkSize)))
}

// byName returns a table of texts, the densest kind, and its keys in another order.
func byName(n int) (*Table[Text], [][]byte) {
	tab, keys := new(Table[Text]), make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%08d", i)
		tab.Add(NewText(keys[i]))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return tab, keys
}

func BenchmarkTable(b *testing.B) {
	for _, n := range []int{1000, 1000_000} {
		tab, keys := byName(n)
		run := func(name string, fn func(key []byte)) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if i++; i == n {
						i = 0
					}
					fn(keys[i])
				}
			})
		}
		run("Get", func(key []byte) { tab.Get(key) })
		run("DeleteAdd", func(key []byte) {
			e, _ := tab.Delete(key)
			tab.Add(e)
		})
		fresh := new(Table[Text])
		run("Add", func(key []byte) {
			if fresh.Len() == n-1 {
				fresh = new(Table[Text])
			}
			if _, e, hash := fresh.Find(key); e == nil {
				fresh.Insert(hash, NewText(key))
			}
		})
		for _, k := range keys {
			k[0] = 'K'
		}
		run("GetMiss", func(key []byte) { tab.Get(key) })
	}
}
