package vectors

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// usual is HNSW as its paper describes it, for comparison.
type usual struct {
	m, buildEF int
	rnd        *rand.Rand
	vectors    [][]float64
	links      [][][]int // by node and level
	entry, top int
}

type candidate struct {
	id       int
	distance float64
}

func (u *usual) distance(a []float64, id int) (sum float64) {
	for i, x := range u.vectors[id] {
		sum += (a[i] - x) * (a[i] - x)
	}
	return sum
}

func insert(list []candidate, c candidate) []candidate {
	i, _ := slices.BinarySearchFunc(list, c, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	return slices.Insert(list, i, c)
}

func (u *usual) search(v []float64, start, ef, level int) []candidate {
	first := candidate{start, u.distance(v, start)}
	seen := make([]bool, len(u.vectors))
	seen[start] = true
	next, found := []candidate{first}, []candidate{first}
	for len(next) > 0 && (len(found) < ef || next[0].distance <= found[len(found)-1].distance) {
		c := next[0]
		next = next[1:]
		for _, id := range u.links[c.id][level] {
			if seen[id] {
				continue
			}
			seen[id] = true
			if n := (candidate{id, u.distance(v, id)}); len(found) < ef || n.distance < found[len(found)-1].distance {
				next = insert(next, n)
				found = insert(found, n)
				found = found[:min(ef, len(found))]
			}
		}
	}
	return found
}

func (u *usual) choose(found []candidate, most int) (out []int) {
	for _, c := range found {
		if len(out) < most && !slices.ContainsFunc(out, func(id int) bool { return u.distance(u.vectors[id], c.id) < c.distance }) {
			out = append(out, c.id)
		}
	}
	return out
}

func (u *usual) descend(v []float64, level int) int {
	at := u.entry
	for l := u.top; l > level; l-- {
		at = u.search(v, at, 1, l)[0].id
	}
	return at
}

func (u *usual) add(v []float64) {
	id := len(u.vectors)
	u.vectors = append(u.vectors, v)
	level := int(-math.Log(u.rnd.Float64()) / math.Log(float64(u.m)))
	u.links = append(u.links, make([][]int, level+1))
	if id == 0 {
		u.top = level
		return
	}
	at := u.descend(v, min(level, u.top))
	for l := min(level, u.top); l >= 0; l-- {
		found := u.search(v, at, u.buildEF, l)
		at = found[0].id
		most := u.m
		if l == 0 {
			most *= 2
		}
		for _, other := range u.choose(found, u.m) {
			u.links[id][l] = append(u.links[id][l], other)
			links := append(u.links[other][l], id)
			if len(links) > most {
				var all []candidate
				for _, k := range links {
					all = insert(all, candidate{k, u.distance(u.vectors[other], k)})
				}
				links = u.choose(all, most)
			}
			u.links[other][l] = links
		}
	}
	if level > u.top {
		u.entry, u.top = id, level
	}
}

func (u *usual) nearest(v []float64, ef, k int) (out []int) {
	for _, c := range u.search(v, u.descend(v, 0), ef, 0)[:k] {
		out = append(out, c.id)
	}
	return out
}
