package shapes

import (
	"cmp"
	"slices"
)

// has reports whether a shape has a relation to other.
func has(sp space, b *body, r Relation, other *body) bool {
	switch r {
	case Contains:
		return within(sp, other, b)
	case Within:
		return within(sp, b, other)
	case Disjoint:
		return !intersect(sp, b, other)
	}
	return intersect(sp, b, other)
}

// place is the position of a point relative to a polygon.
type place uint8

const (
	outside place = iota
	onBorder
	inside
)

// locate returns the position of a point relative to a polygon.
func locate(sp space, b *body, p vertex) place {
	in := false
	for r, ring := range b.rings {
		for i := range len(ring) - 1 {
			if on(sp, ring[i], ring[i+1], p) {
				return onBorder
			}
		}
		if sp.inside(ring, p) {
			in = r == 0
		} else if r == 0 {
			return outside
		}
	}
	if in {
		return inside
	}
	return outside
}

// on reports whether a point is on a side.
func on(sp space, a, b, p vertex) bool {
	if sp.same(a, p) || sp.same(b, p) {
		return true
	}
	if sp.side(a, b, p) != 0 {
		return false
	}
	t := sp.along(a, b, p)
	return t >= 0 && t <= 1
}

// cuts appends the positions on the side from a to b where the side from c to d touches or crosses it; if they overlap,
// the ends of the overlap.
func cuts(sp space, a, b, c, d vertex, dst []float64) []float64 {
	fromC, fromD := sp.side(a, b, c), sp.side(a, b, d)
	fromA, fromB := sp.side(c, d, a), sp.side(c, d, b)
	if fromC*fromD < 0 && fromA*fromB < 0 {
		if t := sp.meet(a, b, c, d); t >= 0 && t <= 1 { // else it is the opposite intersection of the great circles
			dst = append(dst, t)
		}
		return dst
	}
	if fromC == 0 && on(sp, a, b, c) {
		dst = append(dst, min(max(sp.along(a, b, c), 0), 1))
	}
	if fromD == 0 && on(sp, a, b, d) {
		dst = append(dst, min(max(sp.along(a, b, d), 0), 1))
	}
	if fromA == 0 && on(sp, c, d, a) {
		dst = append(dst, 0)
	}
	if fromB == 0 && on(sp, c, d, b) {
		dst = append(dst, 1)
	}
	return dst
}

// edge is a side of a polygon.
type edge struct {
	ring, i     int // from vertex i of the ring to the next
	lo, hi      float64
	low2, high2 float64 // on the other axis
}

// edges returns the sides of a polygon, ordered by their lowest coordinate on one axis.
func edges(sp space, b *body) []edge {
	var all []edge
	for r, ring := range b.rings {
		for i := range len(ring) - 1 {
			e := edge{ring: r, i: i}
			e.lo, e.hi = sp.span(ring[i], ring[i+1], 0)
			e.low2, e.high2 = sp.span(ring[i], ring[i+1], 1)
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b edge) int { return cmp.Compare(a.lo, b.lo) })
	return all
}

// pairs calls do for pairs of sides of two polygons that may meet, until do returns false.
func pairs(as, bs []edge, do func(a, b edge) bool) {
	var activeA, activeB []edge // sides that have begun and may not have ended
	for len(as) > 0 || len(bs) > 0 {
		if len(bs) == 0 || len(as) > 0 && as[0].lo <= bs[0].lo {
			a := as[0]
			as = as[1:]
			activeB = slices.DeleteFunc(activeB, func(b edge) bool { return b.hi < a.lo })
			for _, b := range activeB {
				if a.low2 <= b.high2 && b.low2 <= a.high2 && !do(a, b) {
					return
				}
			}
			activeA = append(activeA, a)
			continue
		}
		b := bs[0]
		bs = bs[1:]
		activeA = slices.DeleteFunc(activeA, func(a edge) bool { return a.hi < b.lo })
		for _, a := range activeA {
			if a.low2 <= b.high2 && b.low2 <= a.high2 && !do(a, b) {
				return
			}
		}
		activeB = append(activeB, b)
	}
}

// intersect reports whether two shapes have a point in common.
func intersect(sp space, a, b *body) bool {
	switch {
	case a.rings == nil && b.rings == nil:
		return sp.same(a.point, b.point)
	case a.rings == nil:
		return locate(sp, b, a.point) != outside
	case b.rings == nil:
		return locate(sp, a, b.point) != outside
	}
	meet := false
	var t []float64
	pairs(edges(sp, a), edges(sp, b), func(e, f edge) bool {
		r, s := a.rings[e.ring], b.rings[f.ring]
		t = cuts(sp, r[e.i], r[e.i+1], s[f.i], s[f.i+1], t[:0])
		meet = len(t) > 0
		return !meet
	})
	// If the borders do not meet, each outer ring lies completely inside or outside of the other polygon.
	return meet || locate(sp, b, a.point) == inside || locate(sp, a, b.point) == inside
}

// within reports whether a shape is within a polygon. A point on the border is not within; a polygon may touch the
// border. Nothing is within a point.
//
// A polygon a is within b if no part of b's border is in the interior of a, so that the whole interior is on one side
// of b's border, and one of its points is in b.
func within(sp space, a, b *body) bool {
	switch {
	case b.rings == nil:
		return false
	case a.rings == nil:
		return locate(sp, b, a.point) == inside
	}
	// Each side of b is divided where a's border meets it. A part's inner points are all where its middle is: inside,
	// outside or on the border of a.
	parts := map[[2]int][]float64{}
	pairs(edges(sp, a), edges(sp, b), func(e, f edge) bool {
		r, s := a.rings[e.ring], b.rings[f.ring]
		if t := cuts(sp, s[f.i], s[f.i+1], r[e.i], r[e.i+1], parts[[2]int{f.ring, f.i}]); len(t) > 0 {
			parts[[2]int{f.ring, f.i}] = t
		}
		return true
	})
	for r, ring := range b.rings {
		whole := true // a's border does not meet the ring
		for i := range len(ring) - 1 {
			t := parts[[2]int{r, i}]
			if len(t) == 0 {
				continue // it lies where the adjoining parts lie
			}
			whole = false
			t = append(t, 0, 1)
			slices.Sort(t)
			for j := 1; j < len(t); j++ {
				const tooShort = 1e-9
				if t[j]-t[j-1] > tooShort && locate(sp, a, sp.at(ring[i], ring[i+1], (t[j]+t[j-1])/2)) == inside {
					return false
				}
			}
		}
		if whole && locate(sp, a, ring[0]) == inside {
			return false
		}
	}
	if p, ok := interior(sp, a); ok {
		return locate(sp, b, p) != outside
	}
	return isWithin(sp, a.rings[0], b)
}

// interior returns an interior point of a polygon; ok is false if the polygon is too thin to have one.
func interior(sp space, b *body) (p vertex, ok bool) {
	for fraction := 1e-2; fraction > 1e-13; fraction /= 8 {
		for _, ring := range b.rings {
			for i := range min(len(ring)-1, 64) {
				for _, f := range [2]float64{fraction, -fraction} {
					if p := sp.beside(ring[i], ring[i+1], f); locate(sp, b, p) == inside {
						return p, true
					}
				}
			}
		}
	}
	return vertex{}, false
}
