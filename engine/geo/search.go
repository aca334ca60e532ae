package geo

import "math"

const (
	// earthRadius is the quadratic mean radius of the earth in metres.
	earthRadius = 6372797.560856
	// mercatorMax is half of the earth's circumference on the Mercator map, in metres.
	mercatorMax = 20037726.37
	degree      = math.Pi / 180
)

// Distance returns the distance of two positions on a sphere in metres. The order of operations determines the last
// digits.
func Distance(a, b Position) float64 {
	lat1, lat2 := a.Lat*degree, b.Lat*degree
	u := sin((lat2 - lat1) / 2)
	v := sin((b.Lon*degree - a.Lon*degree) / 2)
	h := float64(u*u) + float64(float64(float64(cos(lat1)*cos(lat2))*v)*v)
	return 2 * earthRadius * asin(math.Sqrt(min(h, 1)))
}

// Shape is an area around a position: a circle, a box with sides to the north and east, or a polygon. A polygon's
// centre is in the direction of the mean of its vertices, seen from the centre of the earth. Lengths are in metres.
type Shape struct {
	Center Position
	// Radius belongs to the circle; Width and Height are the sides of the box, if Box is true.
	Radius, Width, Height float64
	Box                   bool
	// Polygon has at least three vertices. Edges are straight on a map on which all degrees are equally long.
	Polygon []Position
}

// NewPolygon returns a polygon.
func NewPolygon(vertices []Position) Shape {
	s := Shape{Polygon: vertices}
	var x, y, z float64
	for _, v := range vertices {
		x += math.Cos(v.Lat*degree) * math.Cos(v.Lon*degree)
		y += math.Cos(v.Lat*degree) * math.Sin(v.Lon*degree)
		z += math.Sin(v.Lat * degree)
	}
	s.Center = Position{math.Atan2(y, x) / degree, math.Atan2(z, math.Hypot(x, y)) / degree}
	for _, v := range vertices {
		s.Radius = max(s.Radius, Distance(s.Center, v))
	}
	return s
}

// Area tests which positions lie in a shape. Exact distances are slow, so it computes them only where the last digits
// decide.
type Area struct {
	shape  *Shape
	radius limit // of a circle
	width  limit // of half of the box
	height limit
	cosLat float64 // of the centre, approximate
}

// Area prepares a shape for many tests. The shape must not change.
func (s *Shape) Area() Area {
	return Area{s, newLimit(s.Radius), newLimit(s.Width / 2), newLimit(s.Height / 2), math.Cos(s.Center.Lat * degree)}
}

// Contains reports whether a position lies in the shape.
func (a *Area) Contains(p Position) bool {
	if a.shape.Polygon != nil {
		return a.shape.encloses(p)
	}
	center := a.shape.Center
	// No point is nearer than its north-south distance. Here as in reaches, angles are rounded as in Distance.
	up := math.Abs(p.Lat*degree-center.Lat*degree) * earthRadius
	if !a.shape.Box {
		return !a.radius.below(up) && a.radius.reaches(center, p, a.cosLat)
	}
	// The width is measured on the position's own parallel.
	if a.height.below(up) || !a.width.reaches(p, Position{center.Lon, p.Lat}, math.Cos(p.Lat*degree)) {
		return false
	}
	return a.height.above(up) || Distance(p, Position{p.Lon, center.Lat}) <= a.height.metres
}

// encloses reports whether a position lies in the polygon: a line from it to the east crosses an odd number of edges.
func (s *Shape) encloses(p Position) bool {
	inside := false
	a := s.Polygon[len(s.Polygon)-1]
	for _, b := range s.Polygon {
		if (a.Lat > p.Lat) != (b.Lat > p.Lat) && p.Lon < (b.Lon-a.Lon)*(p.Lat-a.Lat)/(b.Lat-a.Lat)+a.Lon {
			inside = !inside
		}
		a = b
	}
	return inside
}

// limit is a distance for comparisons.
type limit struct {
	metres float64
	// Haversines below within belong to shorter distances, those above beyond to longer ones.
	within, beyond float64
}

// tolerance is far more than the error of package math's sines and cosines, and of everything computed from them here.
const tolerance = 1e-9

func newLimit(metres float64) limit {
	switch angle := metres / (2 * earthRadius); {
	case angle > math.Pi/2*(1+tolerance):
		return limit{metres, 2, 2} // no distance reaches it
	case angle > 1.4:
		return limit{metres, -1, 2} // near the antipodes haversines barely differ
	default:
		h := math.Sin(angle) * math.Sin(angle)
		return limit{metres, h * (1 - tolerance), h * (1 + tolerance)}
	}
}

// below reports whether the limit is certainly below a distance that is exact except for its last digits.
func (l *limit) below(distance float64) bool { return distance > l.metres*(1+tolerance) }

// above reports whether the limit is certainly above such a distance.
func (l *limit) above(distance float64) bool { return distance < l.metres*(1-tolerance) }

// reaches reports whether two positions are at most the limit apart. cosLat is about the cosine of a's latitude.
func (l *limit) reaches(a, b Position, cosLat float64) bool {
	lat1, lat2 := a.Lat*degree, b.Lat*degree
	cosLat2 := cosLat
	u := 0.0
	if lat1 != lat2 {
		cosLat2 = math.Cos(lat2)
		u = math.Sin((lat2 - lat1) / 2)
	}
	v := math.Sin((b.Lon*degree - a.Lon*degree) / 2)
	switch h := u*u + cosLat*cosLat2*v*v; {
	case h < l.within:
		return true
	case h > l.beyond:
		return false
	}
	return Distance(a, b) <= l.metres
}

// bounds returns a box of coordinates that encloses the shape.
func (s *Shape) bounds() area {
	if s.Polygon != nil {
		first := s.Polygon[0]
		b := area{first.Lon, first.Lon, first.Lat, first.Lat}
		for _, v := range s.Polygon {
			b.minLon, b.maxLon = min(b.minLon, v.Lon), max(b.maxLon, v.Lon)
			b.minLat, b.maxLat = min(b.minLat, v.Lat), max(b.maxLat, v.Lat)
		}
		return b
	}
	height, width := s.Radius, s.Radius
	if s.Box {
		height, width = s.Height/2, s.Width/2
	}
	up := height / earthRadius / degree
	// The sides converge; the one nearer to the pole counts.
	edge := s.Center.Lat + up
	if s.Center.Lat < 0 {
		edge = s.Center.Lat - up
	}
	right := width / earthRadius / math.Cos(edge*degree) / degree
	return area{s.Center.Lon - right, s.Center.Lon + right, s.Center.Lat - up, s.Center.Lat + up}
}

// Range is the scores from Min (included) to Max (excluded).
type Range struct{ Min, Max float64 }

// Ranges returns the ranges of scores that positions in the shape can have: those of a cell about as large as the shape
// that contains its centre, and of the cells around it, in Redis's search order.
func (s *Shape) Ranges() []Range {
	around := s.bounds()
	step := s.step()
	center := encode(s.Center, MaxLat, step)
	if step > 1 && !center.coversWithNeighbours(around) {
		step--
		center = encode(s.Center, MaxLat, step)
	}
	// Cells outside the shape are left out, if cells are small enough that none is its own neighbour.
	var reach struct{ north, south, east, west bool }
	reach.north, reach.south, reach.east, reach.west = true, true, true, true
	if step >= 2 {
		a := center.area()
		reach.south = !(a.minLat < around.minLat)
		reach.north = !(a.maxLat > around.maxLat)
		reach.west = !(a.minLon < around.minLon)
		reach.east = !(a.maxLon > around.maxLon)
	}
	ranges := []Range{center.scores()}
	var last cell // the previous cell; as in Redis, the first is not compared
	add := func(wanted bool, dx, dy int) {
		if c := center.neighbour(dx, dy); wanted && c != last {
			ranges = append(ranges, c.scores())
			last = c
		}
	}
	add(reach.north, 0, 1)
	add(reach.south, 0, -1)
	add(reach.east, 1, 0)
	add(reach.west, -1, 0)
	add(reach.north && reach.east, 1, 1)
	add(reach.north && reach.west, -1, 1)
	add(reach.south && reach.east, 1, -1)
	add(reach.south && reach.west, -1, -1)
	return ranges
}

// coversWithNeighbours reports whether a cell and its eight neighbours cover an area.
func (c cell) coversWithNeighbours(a area) bool {
	return !(c.neighbour(0, 1).area().maxLat < a.maxLat || c.neighbour(0, -1).area().minLat > a.minLat ||
		c.neighbour(1, 0).area().maxLon < a.maxLon || c.neighbour(-1, 0).area().minLon > a.minLon)
}

// step returns the number of bits for cells about as large as the shape.
func (s *Shape) step() uint {
	radius := s.Radius
	if s.Box {
		radius = math.Sqrt(float64(s.Width/2*(s.Width/2)) + float64(s.Height/2*(s.Height/2)))
	}
	if radius == 0 {
		return maxStep
	}
	step := -1
	for ; radius < mercatorMax; radius *= 2 {
		step++
	}
	// Towards the poles, cells are narrower on the ground than on the map.
	lat := math.Abs(s.Center.Lat)
	if lat > 66 {
		step--
	}
	if lat > 80 {
		step--
	}
	return uint(min(max(step, 1), maxStep))
}
