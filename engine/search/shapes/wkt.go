package shapes

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The errors of texts that are not shapes.
var (
	errType       = errors.New("unknown geometry type")
	errFewPoints  = invalid("Geometry has too few points")
	errCoordinate = invalid("Geometry has point(s) with invalid coordinate(s)")
	errThin       = invalid("Geometry has wrong topological dimension")
	errSpikes     = invalid("Geometry has spikes")
	errCrossing   = invalid("Geometry has invalid self-intersections")
	errHole       = invalid("Geometry has interior rings defined outside the outer boundary")
	errNested     = invalid("Geometry has nested interior rings")
)

func invalid(reason string) error { return errors.New("invalid geometry: " + reason) }

// Parse reads a shape in Well-Known Text: POINT(x y) or POLYGON((x y, …), …), where further rings are holes. Rings may
// have either direction, and need not be closed. A polygon must be simple.
func Parse(c Coordinates, wkt string) (Shape, error) {
	p := parser{wkt: wkt, rest: wkt}
	word := ""
	switch {
	case strings.HasPrefix(wkt, "POI"):
		word = "POINT"
	case strings.HasPrefix(wkt, "POL"):
		word = "POLYGON"
	default:
		return Shape{}, errType
	}
	if !strings.EqualFold(p.peek(), word) {
		return Shape{}, fmt.Errorf("Should start with '%s' in '%s'", word, wkt)
	}
	p.next()
	var s Shape
	p.expect("(")
	if word == "POINT" {
		s.points = append(s.points, p.point())
	} else {
		for {
			s.points = p.ring(s.points)
			s.ends = append(s.ends, int32(len(s.points)))
			if p.err != nil || p.peek() != "," {
				break
			}
			p.next()
		}
	}
	p.expect(")")
	if p.err == nil && p.peek() != "" {
		p.fail("Too many tokens")
	}
	if p.err != nil {
		return Shape{}, p.err
	}
	if err := s.check(spaceOf(c)); err != nil {
		return Shape{}, err
	}
	return s, nil
}

// parser reads the tokens of a text: words, numbers, and brackets and commas.
type parser struct {
	wkt, rest string
	err       error
}

const blanks = " \t\r\n"

// peek returns the next token; "" at the end.
func (p *parser) peek() string {
	p.rest = strings.TrimLeft(p.rest, blanks)
	n := strings.IndexAny(p.rest, blanks+"(),")
	switch {
	case n < 0:
		return p.rest
	case n == 0:
		return p.rest[:1]
	}
	return p.rest[:n]
}

func (p *parser) next() { p.rest = p.rest[len(p.peek()):] }

// fail records that a token is invalid.
func (p *parser) fail(why string) {
	if p.err != nil {
		return
	}
	if t := p.peek(); t != "" {
		why += " at '" + t + "'"
	}
	p.err = fmt.Errorf("%s in '%s'", why, p.wkt)
}

func (p *parser) expect(token string) {
	if p.peek() != token {
		p.fail("Expected '" + token + "'")
		return
	}
	p.next()
}

func (p *parser) point() (at Point) {
	at.X = p.number()
	at.Y = p.number()
	return at
}

func (p *parser) number() float64 {
	v, err := strconv.ParseFloat(p.peek(), 64)
	if err != nil || strings.ContainsAny(p.peek(), "xX_") {
		p.fail("bad lexical cast: source type value could not be interpreted as target")
		return 0
	}
	p.next()
	return v
}

// ring appends the points of a ring, without immediate repetitions.
func (p *parser) ring(points []Point) []Point {
	from := len(points)
	p.expect("(")
	for p.err == nil {
		if at := p.point(); len(points) == from || points[len(points)-1] != at {
			points = append(points, at)
		}
		if p.peek() != "," {
			break
		}
		p.next()
	}
	p.expect(")")
	if n := len(points); n-from > 1 && points[n-1] == points[from] {
		points = points[:n-1]
	}
	return points
}

// check returns an error that says why a shape is invalid.
func (s *Shape) check(sp space) error {
	for _, p := range s.points {
		if math.IsNaN(p.X) || math.IsInf(p.X, 0) || math.IsNaN(p.Y) || math.IsInf(p.Y, 0) {
			return errCoordinate
		}
	}
	if s.ends == nil {
		return nil
	}
	b := newBody(sp, s)
	for _, ring := range b.rings {
		if len(ring) < 4 {
			return errFewPoints
		}
		if err := checkCorners(sp, ring); err != nil {
			return err
		}
	}
	if err := checkSides(sp, b); err != nil {
		return err
	}
	for i, hole := range b.rings[1:] {
		if !isWithin(sp, hole, &body{rings: b.rings[:1]}) {
			return errHole
		}
		for j, other := range b.rings[1:] {
			if i != j && isWithin(sp, hole, &body{rings: [][]vertex{other}}) {
				return errNested
			}
		}
	}
	return nil
}

// isWithin reports whether all vertices of a ring are inside a polygon or on its border.
func isWithin(sp space, ring []vertex, b *body) bool {
	return !slices.ContainsFunc(ring, func(v vertex) bool { return locate(sp, b, v) == outside })
}

// checkCorners finds corners whose two sides overlap.
func checkCorners(sp space, ring []vertex) error {
	thin := true
	for i := range len(ring) - 1 {
		a, b := ring[i], ring[i+1]
		c := ring[1]
		if i+2 < len(ring) {
			c = ring[i+2]
		}
		if sp.side(a, b, c) != 0 {
			thin = false
		} else if sp.along(a, b, c) < 1 {
			return errSpikes
		}
	}
	if thin {
		return errThin
	}
	return nil
}

// maxPairs is the maximum number of compared pairs of sides; beyond it, a polygon counts as simple.
const maxPairs = 1 << 22

// checkSides finds sides that cross or overlap.
func checkSides(sp space, b *body) (err error) {
	all := edges(sp, b)
	n := 0
	var t []float64
	pairs(all, all, func(e, f edge) bool {
		if e.ring > f.ring || e.ring == f.ring && e.i >= f.i {
			return true
		}
		last := len(b.rings[e.ring]) - 2
		if e.ring == f.ring && (f.i == e.i+1 || e.i == 0 && f.i == last) { // neighbours
			return true
		}
		r, s := b.rings[e.ring], b.rings[f.ring]
		a, c, d, g := r[e.i], r[e.i+1], s[f.i], s[f.i+1]
		crosses := sp.side(a, c, d)*sp.side(a, c, g) < 0 && sp.side(d, g, a)*sp.side(d, g, c) < 0
		t = cuts(sp, a, c, d, g, t[:0])
		if len(t) > 0 && (crosses || !sp.same(sp.at(a, c, slices.Min(t)), sp.at(a, c, slices.Max(t)))) {
			err = errCrossing
			return false
		}
		n++
		return n < maxPairs
	})
	return err
}
