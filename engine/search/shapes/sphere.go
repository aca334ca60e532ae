package shapes

import "math"

// vector is a direction.
type vector [3]float64

func (a vector) dot(b vector) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func (a vector) cross(b vector) vector {
	return vector{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func (a vector) plus(f float64, b vector) vector {
	return vector{a[0] + f*b[0], a[1] + f*b[1], a[2] + f*b[2]}
}

func (a vector) length() float64 { return math.Sqrt(a.dot(a)) }

// unit returns the vector of length 1 in the same direction.
func (a vector) unit() vector {
	l := a.length()
	if l == 0 {
		return a
	}
	return vector{a[0] / l, a[1] / l, a[2] / l}
}

// sphere is the surface of the earth.
type sphere struct{}

const (
	degree = math.Pi / 180
	// arcRounding bounds the error, as an angle, of a computed point's distance from its great circle: less than a
	// thousandth of a millimetre.
	arcRounding = 1e-13
)

func (sphere) vertex(p Point) vertex {
	sinLat, cosLat := math.Sincos(p.Y * degree)
	sinLon, cosLon := math.Sincos(p.X * degree)
	return fromVector(vector{cosLat * cosLon, cosLat * sinLon, sinLat})
}

func fromVector(v vector) vertex {
	return vertex{math.Atan2(v[1], v[0]) / degree, math.Atan2(v[2], math.Hypot(v[0], v[1])) / degree, v}
}

func (sphere) same(a, b vertex) bool { return a.v.plus(-1, b.v).length() <= arcRounding }

func (sphere) side(a, b, p vertex) int {
	return sign(a.v.cross(b.v).unit().dot(p.v), arcRounding)
}

// angle returns the angle from a to b, seen along n: positive to the left.
func angle(a, b, n vector) float64 { return math.Atan2(a.cross(b).dot(n), a.dot(b)) }

func (sphere) along(a, b, p vertex) float64 {
	n := a.v.cross(b.v)
	n = n.unit()
	return angle(a.v, p.v, n) / angle(a.v, b.v, n)
}

func (s sphere) meet(a, b, c, d vertex) float64 {
	v := a.v.cross(b.v).cross(c.v.cross(d.v)).unit()
	if v.dot(c.v.plus(1, d.v)) < 0 {
		v = vector{}.plus(-1, v)
	}
	return s.along(a, b, vertex{v: v})
}

func (sphere) at(a, b vertex, t float64) vertex {
	whole := math.Atan2(a.v.cross(b.v).length(), a.v.dot(b.v))
	n := a.v.cross(b.v).cross(a.v).unit() // perpendicular to a, towards b
	sin, cos := math.Sincos(t * whole)
	return fromVector(vector{}.plus(cos, a.v).plus(sin, n))
}

func (sphere) span(a, b vertex, axis int) (lo, hi float64) {
	r := a.v.plus(-1, b.v).length()/2 + arcRounding // no point of the arc is farther from the chord's middle
	m := (a.v[axis] + b.v[axis]) / 2
	return m - r, m + r
}

func (s sphere) beside(a, b vertex, fraction float64) vertex {
	m := s.at(a, b, 0.5)
	n := a.v.cross(b.v)
	return fromVector(m.v.plus(fraction, n).unit())
}

// turn normalises a difference of longitudes to -180 up to 180.
func turn(d float64) float64 {
	d = math.Mod(d, 360)
	switch {
	case d >= 180:
		return d - 360
	case d < -180:
		return d + 360
	}
	return d
}

// around returns how far to the east a ring leads: 0, or about 360 or -360 if it encloses a pole; and whether the
// northern of its two sides is the smaller one.
func around(ring []vertex) (east float64, north bool) {
	height := 0.0
	for i := range len(ring) - 1 {
		d := turn(ring[i+1].x - ring[i].x)
		east += d
		height += math.Abs(d) * (ring[i].v[2] + ring[i+1].v[2])
	}
	return east, math.Abs(east) > 180 && height >= 0
}

// inside counts the ring's sides between p and the north pole.
func (sphere) inside(ring []vertex, p vertex) bool {
	_, in := around(ring) // whether the pole is inside
	for i := range len(ring) - 1 {
		a, b := ring[i], ring[i+1]
		d := turn(b.x - a.x)
		from := turn(a.x - p.x)
		if to := from + d; (from < 0) == (to < 0) || math.Abs(from-to) > 180 {
			continue
		}
		if up := a.v.cross(b.v).dot(p.v); (d > 0) == (up < 0) {
			in = !in
		}
	}
	return in
}

// boxes returns a rectangle of longitudes and latitudes, or two if the shape crosses longitude 180.
func (sphere) boxes(b *body) []box {
	const slack = 1e-9
	west, east, south, north := b.point.x, b.point.x, b.point.y, b.point.y
	if b.rings != nil { // holes are within the outer ring
		ring := b.rings[0]
		x := ring[0].x // may exceed 180
		for i := range len(ring) - 1 {
			x += turn(ring[i+1].x - ring[i].x)
			west, east = min(west, x), max(east, x)
			lo, hi := heights(ring[i].v, ring[i+1].v)
			south, north = min(south, lo), max(north, hi)
		}
		switch e, isNorth := around(ring); {
		case math.Abs(e) > 180 && isNorth:
			north = 90
		case math.Abs(e) > 180:
			south = -90
		}
	}
	south, north = south-slack, north+slack
	west, east = west-slack, east+slack
	if east-west >= 360 || north >= 90 || south <= -90 { // at a pole all longitudes meet
		return []box{{{-181, south}, {181, north}}}
	}
	if west < -180 {
		west, east = west+360, east+360
	}
	if east <= 180 {
		return []box{{{west, south}, {east, north}}}
	}
	return []box{{{west, south}, {180, north}}, {{-180, south}, {east - 360, north}}}
}

// heights returns the lowest and the highest latitude of an arc.
func heights(a, b vector) (lo, hi float64) {
	lat := func(v vector) float64 { return math.Atan2(v[2], math.Hypot(v[0], v[1])) / degree }
	lo, hi = min(lat(a), lat(b)), max(lat(a), lat(b))
	n := a.cross(b).unit()
	top := vector{0, 0, 1}.plus(-n[2], n) // the highest point of the great circle
	if top.length() < arcRounding {
		return lo, hi
	}
	top = top.unit()
	m := a.plus(1, b)
	if top.dot(m) >= a.dot(m) {
		hi = max(hi, lat(top))
	}
	if -top.dot(m) >= a.dot(m) {
		lo = min(lo, -lat(top))
	}
	return lo, hi
}
