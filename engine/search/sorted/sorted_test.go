package sorted

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// all returns the items of a view in order, and checks that a walk backwards yields the same.
func all(t require.TestingT, v View[int]) (items []int) {
	v.Ascend(nil, func(i int) bool { items = append(items, i); return true })
	var back []int
	v.Descend(nil, func(i int) bool { back = append(back, i); return true })
	slices.Reverse(back)
	require.Equal(t, items, back)
	require.Len(t, items, v.Len())
	return items
}

// bytesOf counts the memory of all nodes.
func bytesOf[T any](t *Tree[T]) int {
	c := New[T](t.cmp)
	var add func(n *node[T])
	add = func(n *node[T]) {
		c.newNode()
		c.setItems(nil, n.items)
		c.setKids(nil, n.kids)
		for _, k := range n.kids {
			add(k.node)
		}
	}
	if t.root != nil {
		add(t.root)
	}
	return c.Bytes()
}

func TestTreeIsASortedSequence(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		tree := New(cmp.Compare[int])
		var model []int
		type taken struct {
			v    View[int]
			want []int
		}
		var views []taken
		span := 1 << (2 + r.IntN(14))
		phase := r.IntN(4)
		for step := range r.IntN(12_000) {
			if step%3000 == 0 {
				phase = r.IntN(4)
			}
			v := r.IntN(span)
			switch {
			case phase == 0: // growing
				v = step
			case phase == 1 && len(model) > 0 && r.IntN(4) > 0: // mostly removals
				v = model[r.IntN(len(model))]
			}
			i, there := slices.BinarySearch(model, v)
			if phase == 1 || phase == 2 && r.IntN(2) == 0 {
				if there {
					model = slices.Delete(model, i, i+1)
				}
				require.Equal(rt, there, tree.Delete(v))
			} else {
				if !there {
					model = slices.Insert(model, i, v)
				}
				require.Equal(rt, !there, tree.Set(v))
			}
			if r.IntN(1000) == 0 {
				views = append(views, taken{tree.Freeze(), slices.Clone(model)})
			}
		}
		views = append(views, taken{tree.View, model})
		for _, v := range views {
			require.True(rt, slices.Equal(v.want, all(rt, v.v)))
			for range 10 {
				bound := r.IntN(span+2) - 1
				at, _ := slices.BinarySearch(v.want, bound)
				before := func(i int) bool { return i < bound }
				require.Equal(rt, at, v.v.Rank(before))
				var up, down []int
				v.v.Ascend(before, func(i int) bool { up = append(up, i); return len(up) < 200 })
				v.v.Descend(before, func(i int) bool { down = append(down, i); return len(down) < 200 })
				require.True(rt, slices.Equal(v.want[at:min(at+200, len(v.want))], up))
				slices.Reverse(down)
				require.True(rt, slices.Equal(v.want[max(0, at-200):at], down))
			}
		}
		require.Equal(rt, bytesOf(tree), tree.Bytes())
	})
}

func TestItemTakesLittleMoreThanItsSize(t *testing.T) {
	type item [2]uint64
	for _, ascending := range []bool{true, false} {
		tree := New(func(a, b item) int { return cmp.Compare(a[0], b[0]) })
		for i, v := range testseed.Rand(t).Perm(100_000) {
			if ascending {
				v = i
			}
			tree.Set(item{uint64(v)})
		}
		require.LessOrEqual(t, tree.Bytes(), 20*100_000, "ascending: %v", ascending)
	}
}

func TestViewsAreReadBesideChanges(t *testing.T) {
	r := testseed.Rand(t)
	tree := New(cmp.Compare[int])
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
				v := tree.Freeze()
				lock.RUnlock()
				n := 0
				v.Ascend(nil, func(int) bool { n++; return true })
				if n != v.Len() {
					t.Errorf("%d items of %d", n, v.Len())
				}
			}
		})
	}
	for range 5000 {
		v := r.IntN(2000)
		lock.Lock()
		if !tree.Set(v) {
			tree.Delete(v)
		}
		lock.Unlock()
	}
	close(done)
	readers.Wait()
}

func benchmarkSet(b *testing.B, change func(t *Tree[[2]uint64])) {
	tree := New(func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	r := rand.New(rand.NewPCG(1, 2))
	for range 1_000_000 {
		tree.Set([2]uint64{r.Uint64()})
	}
	b.ReportMetric(float64(tree.Bytes())/float64(tree.Len()), "B/item")
	b.ReportAllocs()
	for b.Loop() {
		v := [2]uint64{r.Uint64()}
		change(tree)
		tree.Set(v)
		change(tree)
		tree.Delete(v)
	}
}

// A pair of Set and Delete in a tree of a million items, without views and with a new view before each.
func BenchmarkSetAndDelete(b *testing.B) { benchmarkSet(b, func(*Tree[[2]uint64]) {}) }

func BenchmarkSetAndDeleteAfterViews(b *testing.B) {
	benchmarkSet(b, func(t *Tree[[2]uint64]) { t.Freeze() })
}
