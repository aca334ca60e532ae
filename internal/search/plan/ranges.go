package plan

import (
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine/geo"
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/numbers"
	"github.com/atomredis/atomredis/internal/search/query"
)

// ranges matches documents with a number in one of some ranges, or with a place in a circle. They are collected at
// the first use.
type ranges struct {
	listed
	numbers numbers.View
	within  []numbers.Range
	keep    func(v float64) bool // of the numbers in the ranges; nil keeps all
	count   int                  // of the numbers in the ranges
	ready   bool
	watch   *watch

	// Documents have at most one number if single is set. docs then has it in place place.
	single bool
	place  int
	docs   docs.View

	field *query.Field
}

func (r *ranges) estimate() int { return r.count }

// extent returns the lowest and the highest number or place of the field, in the form of PROFILE.
func (r *ranges) extent() string {
	text := func(v float64) string { return short(v) }
	if r.kind == "GEO" {
		text = func(v float64) string {
			p := geo.FromScore(v)
			return short(p.Lon) + "," + short(p.Lat)
		}
	}
	extent := ""
	add := func(i numbers.Item) bool {
		extent += text(i.Value)
		return false
	}
	r.numbers.Ascend(numbers.All, add)
	extent += " - "
	r.numbers.Descend(numbers.All, add)
	return extent
}

// collect finds the documents.
func (r *ranges) collect() {
	r.ready = true
	r.set = newSet(r.count, r.docs.Last())
	for _, within := range r.within {
		r.numbers.Ascend(within, func(i numbers.Item) bool {
			if r.keep == nil || r.keep(i.Value) {
				r.set.add(i.Doc)
			}
			return !r.watch.tick()
		})
	}
	r.set.done()
}

func (r *ranges) seek(to uint64) uint64 {
	if !r.ready {
		r.collect()
	}
	return r.listed.seek(to)
}

// canFilter reports whether checking the numbers of n documents is faster than collecting all documents in the
// ranges.
func (r *ranges) canFilter(n int) bool { return r.single && r.keep == nil && r.count > 4*n }

// has reports whether a document has a number in a range. It is only for filters.
func (r *ranges) has(doc uint64) bool {
	d := r.docs.Get(doc)
	if d == nil {
		return false
	}
	v := d.Sort(r.place)
	return v.Kind == docs.Number && slices.ContainsFunc(r.within, func(w numbers.Range) bool { return w.Has(v.Number) })
}

// numeric makes the iterator of a range.
func (b *builder) numeric(n *query.Numeric) iterator {
	tree := b.numbers(n.Field, query.NumericKind)
	if tree == nil {
		return nil
	}
	r := b.newRanges(n.Field, tree, rangeWeight, "NUMERIC")
	r.place, r.single = b.index.Single(n.Field)
	b.addRange(r, tree, numbers.Range{Min: n.Min, Max: n.Max, MinExclusive: n.MinExclusive, MaxExclusive: n.MaxExclusive})
	return b.ranges(r)
}

// rangeWeight is the weight of ranges and circles; weights in the query do not change it.
const rangeWeight = 1

// inOrder returns the matches of the query as a range of the field by which they will be sorted; nil if they are not
// such a range.
func (b *builder) inOrder(f *query.Field) *ranges {
	if f == nil || f.Kind != query.NumericKind {
		return nil
	}
	switch root := bare(b.plan.root).(type) {
	case *ranges:
		if root.field == f && root.single && root.keep == nil && len(root.within) == 1 {
			return root
		}
	case *all:
		if _, single := b.index.Single(f); single && b.index.Numbers(f) != nil {
			return &ranges{numbers: b.index.Numbers(f).View(), within: []numbers.Range{numbers.All}}
		}
	}
	return nil
}

// numbers returns the numbers of a field, or nil if it is not of a kind.
func (b *builder) numbers(f *query.Field, k query.Kind) *numbers.Tree {
	if f == nil || f.Kind&k == 0 {
		return nil
	}
	return b.index.Numbers(f)
}

// newRanges returns the iterator of no range.
func (b *builder) newRanges(f *query.Field, tree *numbers.Tree, weight float64, kind string) *ranges {
	r := &ranges{numbers: tree.View(), watch: &b.plan.watch, docs: b.plan.docs, field: f}
	r.weight, r.freq, r.kind = weight, 1, kind
	return r
}

// addRange adds a range.
func (b *builder) addRange(r *ranges, tree *numbers.Tree, within numbers.Range) {
	if n := tree.Count(within); n > 0 {
		r.within = append(r.within, within)
		r.count += n
	}
}

// ranges completes both kinds of ranges.
func (b *builder) ranges(r *ranges) iterator {
	if r.count == 0 {
		return nil
	}
	b.spend(setSize(r.count, r.docs.Last()))
	return b.wrap(r)
}

// metres are the lengths of the units.
var metres = map[string]float64{"m": 1, "km": 1000, "mi": 1609.34, "ft": 0.3048}

// farthest is the largest radius in metres for which the ranges of package geo are complete.
const farthest = 1_000_000

// geo makes the iterator of a circle.
func (b *builder) geo(n *query.Geo) iterator {
	tree := b.numbers(n.Field, query.GeoKind)
	unit, ok := metres[n.Unit]
	if tree == nil || !ok {
		return nil
	}
	circle := &geo.Shape{Center: geo.Position{Lon: n.Lon, Lat: n.Lat}, Radius: n.Radius * unit}
	area := circle.Area()
	r := b.newRanges(n.Field, tree, rangeWeight, "GEO")
	r.keep = func(v float64) bool { return area.Contains(geo.FromScore(v)) }
	if onMap(circle) {
		for _, part := range circle.Ranges() {
			b.addRange(r, tree, numbers.Range{Min: part.Min, Max: part.Max, MaxExclusive: true})
		}
	} else {
		b.addRange(r, tree, numbers.All)
	}
	return b.ranges(r)
}

// onMap reports whether a circle is far from the edges of the map. Across an edge, and for very large circles, the
// ranges of package geo may miss places.
func onMap(c *geo.Shape) bool {
	const degree = 111_000 // in metres, or a little less
	up := c.Radius / degree
	north := math.Abs(c.Center.Lat) + up
	right := up / math.Cos(min(north, 89)*math.Pi/180)
	return c.Radius <= farthest && north < 80 && math.Abs(c.Center.Lon)+right < geo.MaxLon
}
