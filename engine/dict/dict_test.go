package dict

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireSound checks what must hold between the parts of d.
func requireSound[V any](t require.TestingT, d *Dict[V]) {
	requireSoundIndex(t, &d.index, d.n)
	require.LessOrEqual(t, d.n, len(d.chunks)*chunkSize)
	for i := range d.n {
		j, ok := d.IndexOf([]byte(d.entry(i).key))
		if !ok || i != j {
			require.Fail(t, "an entry is not found by its key")
		}
	}
}

func contents[V any](d *Dict[V]) map[string]V {
	m := map[string]V{}
	for k, v := range d.All() {
		m[k] = *v
	}
	return m
}

func TestZeroValueIsAnEmptyDict(t *testing.T) {
	var d Dict[int]
	_, ok := d.Get([]byte("a"))
	require.False(t, ok)
	_, ok = d.Delete([]byte("a"))
	require.False(t, ok)
	require.Equal(t, uint64(0), d.Scan(7, 10, func(string, *int) { t.Fatal("no entries") }))
	c := d.Clone(nil)
	for _, d := range []*Dict[int]{&d, c} {
		require.False(t, d.Set(nil, 1))
		v, ok := d.Get([]byte{})
		require.True(t, ok)
		require.Equal(t, 1, *v)
	}
}

func TestBehavesLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := New[int]()
		model := map[string]int{}
		key := rapid.Map(rapid.IntRange(0, 2000), strconv.Itoa)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
				_, want := model[k]
				require.Equal(t, want, d.Set([]byte(k), v))
				model[k] = v
			},
			"set string": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
				_, want := model[k]
				require.Equal(t, want, d.SetString(k, v))
				model[k] = v
			},
			"set many": func(t *rapid.T) {
				first := rapid.IntRange(0, 2000).Draw(t, "first")
				for i := first; i < first+300; i++ {
					k := strconv.Itoa(i)
					_, want := model[k]
					if want != d.SetString(k, i) {
						require.Fail(t, "wrong word on replacement", k)
					}
					model[k] = i
				}
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				want, wantOK := model[k]
				v, ok := d.Delete([]byte(k))
				require.Equal(t, wantOK, ok)
				require.Equal(t, want, v)
				delete(model, k)
			},
			"delete many": func(t *rapid.T) {
				for range rapid.IntRange(0, d.Len()).Draw(t, "n") {
					k, v := d.DeleteAt(d.Len() / 2)
					if model[k] != v {
						require.Fail(t, "wrong value deleted", k)
					}
					delete(model, k)
				}
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				want, wantOK := model[k]
				v, ok := d.Get([]byte(k))
				require.Equal(t, wantOK, ok)
				if ok {
					require.Equal(t, want, *v)
					*v++
					model[k]++
				}
			},
			"clone": func(*rapid.T) { d = d.Clone(func(v *int) int { return *v }) },
			"": func(t *rapid.T) {
				require.Equal(t, len(model), d.Len())
				require.True(t, maps.Equal(model, contents(d)))
				requireSoundIndex(t, &d.index, d.n)
			},
		})
		requireSound(t, d)
	})
}

func TestGrowsAndShrinksByPieces(t *testing.T) {
	const n = 100_000
	d := New[int]()
	for i := range n {
		d.SetString(strconv.Itoa(i), i)
	}
	requireSound(t, d)
	require.Greater(t, d.index.depth, 5)
	for i := range n - 10 {
		_, ok := d.Delete([]byte(strconv.Itoa(i)))
		require.True(t, ok)
	}
	requireSound(t, d)
	require.Zero(t, d.index.depth)
	require.Len(t, d.chunks, 1)
	require.LessOrEqual(t, len(d.index.dir[0].slots), 128)
	for i := n - 10; i < n; i++ {
		v, ok := d.Get([]byte(strconv.Itoa(i)))
		require.True(t, ok)
		require.Equal(t, i, *v)
	}
}

func TestKeysWithEqualHashBitsAreKeptApart(t *testing.T) {
	byHash := map[uint32]string{}
	for i := 0; ; i++ {
		k := strconv.Itoa(i)
		other, ok := byHash[hashOf(k)]
		if !ok {
			byHash[hashOf(k)] = k
			continue
		}
		d := New[int]()
		d.SetString(k, 1)
		_, ok = d.GetString(other)
		require.False(t, ok)
		d.SetString(other, 2)
		v, _ := d.GetString(k)
		require.Equal(t, 1, *v)
		d.Delete([]byte(k))
		v, _ = d.GetString(other)
		require.Equal(t, 2, *v)
		requireSound(t, d)
		return
	}
}

func TestScanVisitsEveryEntryThatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := New[int]()
		stays := map[string]bool{}
		for i := range rapid.IntRange(0, 600).Draw(t, "entries") {
			k := strconv.Itoa(i)
			d.SetString(k, i)
			stays[k] = true
		}
		seen := map[string]bool{}
		cursor, next := uint64(0), 1000
		for {
			cursor = d.Scan(cursor, rapid.IntRange(-1, 50).Draw(t, "count"), func(k string, _ *int) { seen[k] = true })
			if cursor == 0 {
				break
			}
			for range rapid.IntRange(0, 20).Draw(t, "inserts") {
				d.SetString(strconv.Itoa(next), next)
				next++
			}
			for range min(d.Len(), rapid.IntRange(0, 30).Draw(t, "deletes")) {
				k, _ := d.DeleteAt(rapid.IntRange(0, d.Len()-1).Draw(t, "victim"))
				delete(stays, k)
			}
		}
		for k := range stays {
			require.True(t, seen[k], "%s was there throughout and not visited", k)
		}
	})
}

func TestScanVisitsEachEntryOnceWhenNothingChanges(t *testing.T) {
	d := New[int]()
	for i := range 1000 {
		d.SetString(strconv.Itoa(i), i)
	}
	calls, visits := 0, map[string]int{}
	for cursor := uint64(0); calls == 0 || cursor != 0; calls++ {
		cursor = d.Scan(cursor, 10, func(k string, _ *int) { visits[k]++ })
	}
	require.Equal(t, 100, calls)
	require.Len(t, visits, 1000)
}

func TestScanTakesAnyCursor(t *testing.T) {
	d := New[int]()
	for i := range 5 {
		d.SetString(strconv.Itoa(i), i)
	}
	for _, cursor := range []uint64{5, 6, 1 << 31, 1 << 32, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		var keys []string
		require.Equal(t, uint64(3), d.Scan(cursor, 2, func(k string, _ *int) { keys = append(keys, k) }))
		require.Equal(t, []string{"4", "3"}, keys)
	}
}

func TestScanMayDeleteWhatItVisits(t *testing.T) {
	d := New[int]()
	for i := range 1000 {
		d.SetString(strconv.Itoa(i), i)
	}
	visits := 0
	for cursor := uint64(0); visits == 0 || cursor != 0; {
		cursor = d.Scan(cursor, 7, func(k string, _ *int) {
			visits++
			if visits%3 != 0 {
				d.Delete([]byte(k))
			}
		})
	}
	require.Equal(t, 1000, visits)
	require.Equal(t, 333, d.Len())
	requireSound(t, d)
}

func TestCloneIsIndependent(t *testing.T) {
	d := New[[]int]()
	for i := range 3000 {
		d.SetString(strconv.Itoa(i), []int{i})
	}
	c := d.Clone(func(v *[]int) []int { return append([]int(nil), *v...) })
	for i := range 3000 {
		v, _ := d.GetString(strconv.Itoa(i))
		(*v)[0] = -1
		d.Delete([]byte(strconv.Itoa(i)))
	}
	require.Equal(t, 3000, c.Len())
	for i := range 3000 {
		v, ok := c.GetString(strconv.Itoa(i))
		require.True(t, ok)
		require.Equal(t, []int{i}, *v)
	}
	requireSound(t, c)
}

func TestKeyIsCopied(t *testing.T) {
	d := New[int]()
	key := []byte("key")
	d.Set(key, 1)
	key[0] = 'K'
	_, ok := d.Get([]byte("key"))
	require.True(t, ok)
}

func TestLookupDoesNotAllocate(t *testing.T) {
	d := New[int]()
	for i := range 1000 {
		d.SetString(strconv.Itoa(i), i)
	}
	hit, miss := []byte("500"), []byte("a key that is not there and is longer than 32 bytes")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		d.Get(hit)
		d.Get(miss)
		d.Set(hit, 1)
		d.Delete(miss)
		d.IndexOf(hit)
	}))
}

func benchmarkSizes(b *testing.B, run func(b *testing.B, d *Dict[int], keys [][]byte)) {
	for _, n := range []int{1e3, 1e6} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, keys := New[int](), make([][]byte, n)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "key:%08d", i)
				d.Set(keys[i], i)
			}
			rand.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			b.ReportAllocs()
			b.ResetTimer()
			run(b, d, keys)
		})
	}
}

func BenchmarkGetHit(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, d *Dict[int], keys [][]byte) {
		for i := range b.N {
			d.Get(keys[i%len(keys)])
		}
	})
}

func BenchmarkGetMiss(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, d *Dict[int], keys [][]byte) {
		for _, k := range keys {
			k[0] = 'K'
		}
		for i := range b.N {
			d.Get(keys[i%len(keys)])
		}
	})
}

func BenchmarkSetReplace(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, d *Dict[int], keys [][]byte) {
		for i := range b.N {
			d.Set(keys[i%len(keys)], i)
		}
	})
}

func BenchmarkSetNew(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, d *Dict[int], keys [][]byte) {
		for i := range b.N {
			if i%len(keys) == 0 {
				d = New[int]()
			}
			d.Set(keys[i%len(keys)], i)
		}
	})
}

func BenchmarkDeleteAndSet(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, d *Dict[int], keys [][]byte) {
		for i := range b.N {
			k := keys[i%len(keys)]
			d.Delete(k)
			d.Set(k, i)
		}
	})
}

func TestLookupReturnsTheKeyThatIsKept(t *testing.T) {
	d := New[int]()
	key := []byte("key")
	_, _, ok := d.Lookup(key)
	require.False(t, ok)
	d.Set(key, 1)
	kept, v, ok := d.Lookup(key)
	require.True(t, ok)
	*v = 2
	got, _ := d.Get(key)
	require.Equal(t, 2, *got)
	key[0] = 'x'
	d.DeleteAt(0)
	require.Equal(t, "key", kept)
}
