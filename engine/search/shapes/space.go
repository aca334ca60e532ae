package shapes

import "math"

// vertex is a point in a space's own form.
type vertex struct {
	x, y float64
	v    vector // from the centre of the earth; zero if flat
}

// body is a shape in a space's own form. A ring repeats its first vertex at the end. A point has no rings.
type body struct {
	point vertex // a point of the shape
	rings [][]vertex
}

// box is a rectangle: its lowest and its highest coordinates.
type box [2][2]float64

// space has the operations of a kind of coordinates. Sides are closed, and shorter than half of a great circle.
type space interface {
	// vertex converts a point.
	vertex(p Point) vertex
	// boxes returns rectangles that cover a shape and everything that touches it.
	boxes(b *body) []box
	// side returns the side of the line through a and b on which a point lies: 0 if it is on the line within the
	// precision.
	side(a, b, p vertex) int
	// along returns the position of a point of the line, which runs from a (0) to b (1).
	along(a, b, p vertex) float64
	// meet returns the position on the line from a to b where the side from c to d crosses it. c and d are on different
	// sides of the line.
	meet(a, b, c, d vertex) float64
	// at returns the point at a position of the line from a to b.
	at(a, b vertex, t float64) vertex
	// span returns an interval on an axis that contains a side.
	span(a, b vertex, axis int) (lo, hi float64)
	// inside reports whether a point is within a ring. It must not be on any of the ring's sides.
	inside(ring []vertex, p vertex) bool
	// beside returns a point next to the middle of a side, at a fraction of its length: on the left if that is
	// positive.
	beside(a, b vertex, fraction float64) vertex
	// same reports whether two points are equal.
	same(a, b vertex) bool
}

func spaceOf(c Coordinates) space {
	if c == Flat {
		return flat{}
	}
	return sphere{}
}

// newBody converts a shape to a space, without vertices that equal the previous one there.
func newBody(sp space, s *Shape) *body {
	b := &body{point: sp.vertex(s.points[0])}
	from := 0
	for _, end := range s.ends {
		ring := make([]vertex, 0, int(end)-from+1)
		for _, p := range s.points[from:end] {
			if v := sp.vertex(p); len(ring) == 0 || !sp.same(v, ring[len(ring)-1]) {
				ring = append(ring, v)
			}
		}
		if n := len(ring); n > 1 && sp.same(ring[0], ring[n-1]) {
			ring = ring[:n-1]
		}
		b.rings = append(b.rings, append(ring, ring[0]))
		from = int(end)
	}
	return b
}

// flat is the plane.
type flat struct{}

// rounding bounds the error of a few operations, relative to their operands.
const rounding = 1e-15

func (flat) vertex(p Point) vertex { return vertex{x: p.X, y: p.Y} }
func (flat) same(a, b vertex) bool { return a.x == b.x && a.y == b.y }

func (flat) boxes(b *body) []box {
	r := box{{b.point.x, b.point.y}, {b.point.x, b.point.y}}
	for _, ring := range b.rings {
		for _, v := range ring {
			r[0][0], r[0][1] = min(r[0][0], v.x), min(r[0][1], v.y)
			r[1][0], r[1][1] = max(r[1][0], v.x), max(r[1][1], v.y)
		}
	}
	for axis := range 2 {
		slack := 8 * rounding * max(math.Abs(r[0][axis]), math.Abs(r[1][axis]))
		r[0][axis] -= slack
		r[1][axis] += slack
	}
	return []box{r}
}

func (flat) side(a, b, p vertex) int {
	l, r := (b.x-a.x)*(p.y-a.y), (b.y-a.y)*(p.x-a.x)
	size := max(math.Abs(a.x), math.Abs(a.y), math.Abs(b.x), math.Abs(b.y), math.Abs(p.x), math.Abs(p.y))
	slack := rounding * (math.Abs(l) + math.Abs(r) + size*(math.Abs(b.x-a.x)+math.Abs(b.y-a.y)))
	return sign(l-r, slack)
}

// sign returns the sign of v, 0 if it is at most slack.
func sign(v, slack float64) int {
	switch {
	case v > slack:
		return 1
	case v < -slack:
		return -1
	}
	return 0
}

func (flat) along(a, b, p vertex) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	if math.Abs(dx) > math.Abs(dy) {
		return (p.x - a.x) / dx
	}
	return (p.y - a.y) / dy
}

func (f flat) meet(a, b, c, d vertex) float64 {
	from := (d.x-c.x)*(a.y-c.y) - (d.y-c.y)*(a.x-c.x)
	to := (d.x-c.x)*(b.y-c.y) - (d.y-c.y)*(b.x-c.x)
	return from / (from - to)
}

func (flat) at(a, b vertex, t float64) vertex {
	return vertex{x: a.x + t*(b.x-a.x), y: a.y + t*(b.y-a.y)}
}

func (flat) span(a, b vertex, axis int) (lo, hi float64) {
	from, to := a.x, b.x
	if axis == 1 {
		from, to = a.y, b.y
	}
	slack := 8 * rounding * max(math.Abs(from), math.Abs(to))
	return min(from, to) - slack, max(from, to) + slack
}

func (flat) inside(ring []vertex, p vertex) bool {
	in := false
	for i := range len(ring) - 1 {
		a, b := ring[i], ring[i+1]
		if (a.y > p.y) != (b.y > p.y) && p.x < a.x+(p.y-a.y)/(b.y-a.y)*(b.x-a.x) {
			in = !in
		}
	}
	return in
}

func (f flat) beside(a, b vertex, fraction float64) vertex {
	m := f.at(a, b, 0.5)
	return vertex{x: m.x - fraction*(b.y-a.y), y: m.y + fraction*(b.x-a.x)}
}
