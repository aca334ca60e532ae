package graph

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// line is a space of numbers.
type line []float32

type point struct {
	line *line
	at   float32
}

func (l *line) Query(id uint32, _ Query) Query { return point{l, (*l)[id]} }

func (p point) Distance(id uint32) float32 { return (p.at - (*p.line)[id]) * (p.at - (*p.line)[id]) }

func (p point) Distances(ids []uint32, distances []float32) {
	for i, id := range ids {
		distances[i] = p.Distance(id)
	}
}

func (p point) Release() {}

// check checks the invariants of a graph's links.
func check(t *testing.T, g *Graph) {
	t.Helper()
	live, top := 0, 0
	type place struct {
		id    uint32
		level int
	}
	in := map[place]int{}
	for id := range uint32(g.bottom.Len()) {
		if g.bottom.At(id)[0] == 0 {
			continue
		}
		if g.has(id) {
			live++
			top = max(top, g.Level(id))
		} else if !g.Shared {
			continue // its links are not needed
		}
		for l := range g.Level(id) + 1 {
			links := g.Links(id, l)
			require.True(t, slices.IsSorted(links) && len(slices.Compact(slices.Clone(links))) == len(links))
			require.LessOrEqual(t, len(links), g.Room(l))
			for _, other := range links {
				require.True(t, other != id && g.bottom.At(other)[0] > 0 && g.Level(other) >= l)
				in[place{other, l}]++
				if !g.Shared {
					require.Contains(t, g.Links(other, l), id)
				}
			}
		}
	}
	for id := range uint32(g.bottom.Len()) {
		if g.Shared && g.bottom.At(id)[0] > 0 {
			for l := range g.Level(id) + 1 {
				require.Equal(t, in[place{id, l}], g.reached(id, l))
			}
		}
	}
	require.Equal(t, live, g.Live())
	entry, level, ok := g.Entry()
	require.Equal(t, live > 0, ok)
	if ok {
		require.True(t, g.has(entry))
		require.Equal(t, top, level)
		require.Equal(t, top, g.Level(entry))
	}
}

func TestNodesThatGoKeepTheirLinks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		rnd := rand.New(rand.NewPCG(1, 2))
		space := new(line)
		g := New(space, Settings{M: 4, Seed: 1, Shared: shared})
		var live, going, free []uint32
		hits, searches := 0, 0
		for op := range 6000 {
			switch {
			case len(live) < 10 || len(live) < 300 && op%3000 < 1500 && rnd.IntN(2) == 0:
				id := uint32(len(*space))
				if len(free) > 0 {
					id, free = free[0], free[1:]
				} else {
					*space = append(*space, 0)
				}
				(*space)[id] = rnd.Float32()
				g.Add(id, 1+rnd.IntN(20))
				live = append(live, id)
			case rnd.IntN(2) == 0:
				i := rnd.IntN(len(live))
				id := live[i]
				links := slices.Clone(g.Links(id, 0))
				g.Unlink(id)
				require.Equal(t, links, g.Links(id, 0))
				live = slices.Delete(live, i, i+1)
				going = append(going, id)
			case len(going) > 0:
				if shared {
					g.Sweep(20)
				}
				if i := rnd.IntN(len(going)); !shared || g.In(going[i]) == 0 {
					g.Clear(going[i])
					free = append(free, going[i])
					going = slices.Delete(going, i, i+1)
				}
			}
			if op%50 > 0 {
				continue
			}
			check(t, g)
			w := NewScratch()
			q := point{space, rnd.Float32()}
			found, done := g.Search(w, q, 30, func(id uint32) bool { return !g.going[id] }, 0)
			require.True(t, done)
			found.Sort()
			want := slices.Clone(live)
			slices.SortFunc(want, func(a, b uint32) int { return int(MakeKey(q.Distance(a), a)>>1) - int(MakeKey(q.Distance(b), b)>>1) })
			require.NotEmpty(t, found)
			if want[0] == found[0].ID() {
				hits++
			}
			searches++
			radius := found[len(found)/2].Distance()
			within, done := g.Within(w, q, radius, radius, 5, 1000)
			require.True(t, done)
			require.GreaterOrEqual(t, len(within), len(found)/3)
			for _, k := range within {
				require.LessOrEqual(t, k.Distance(), radius)
			}
			_, done = g.Within(w, q, 10, 10, 5, 1)
			require.Equal(t, len(live) == 1, done)
			w.Release()
		}
		require.GreaterOrEqual(t, hits, searches*95/100)
		require.Less(t, len(going), 200)
	}
}
