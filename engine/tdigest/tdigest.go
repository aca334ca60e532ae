// Package tdigest has t-digests: how numbers are distributed, from few nodes that each stand for some of them that are
// close to one another. Nodes are small at both ends, where one wants to know more.
//
// Numbers that are added gather behind the nodes, and become part of them once there is no room for more. Who asks
// sees them merged, without that this changes what is kept: so it depends on what was added and on nothing else.
package tdigest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/paged"
)

const (
	// MaxCompression is the largest compression.
	MaxCompression = 100_000
	// maxWeight is how many numbers there may be.
	maxWeight = 1 << 62

	nodeSize = 16 // mean and weight
)

// Errors of stored data.
var (
	errHead = errors.New("t-digest: the stored head is malformed")
	errNode = errors.New("t-digest: a stored node is malformed")
)

// node stands for some numbers.
type node struct {
	mean   float64
	weight int64
}

// Digest is a t-digest.
type Digest struct {
	paged.Value
	compression      int
	merged, unmerged int   // nodes
	mergedWeight     int64 // of these
	unmergedWeight   int64
	compressions     uint64
	min, max         float64

	view []node // all numbers as nodes in order, nil if nobody has asked since the last change
}

// New returns a digest without numbers. compression is from 1 to MaxCompression; with more it is more exact.
func New(compression int) *Digest {
	d := &Digest{compression: compression}
	d.Init(d)
	const most = paged.PageSize / nodeSize
	pages := (d.Capacity() + most - 1) / most
	inPage := (d.Capacity() + pages - 1) / pages
	d.AddArray(paged.NewBytes(inPage*nodeSize, pages))
	return d
}

// Capacity returns how many nodes there may be, with the numbers that are not merged.
func (d *Digest) Capacity() int { return 6*d.compression + 10 }

// at returns where a node is.
func (d *Digest) at(i int) (page, at int) {
	inPage := d.Array(0).PageSize() / nodeSize
	return i / inPage, i % inPage * nodeSize
}

func (d *Digest) node(i int) node {
	page, at := d.at(i)
	b := d.Array(0).Page(page)[at:]
	return node{math.Float64frombits(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
}

func (d *Digest) setNode(i int, n node) {
	page, at := d.at(i)
	b := d.Write(0, page)[at:]
	binary.LittleEndian.PutUint64(b, math.Float64bits(n.mean))
	binary.LittleEndian.PutUint64(b[8:], uint64(n.weight))
}

// HasRoom reports whether so many numbers more can be counted.
func (d *Digest) HasRoom(n int64) bool { return d.Weight() <= maxWeight-n }

// Add adds a finite number. There must be room for it.
func (d *Digest) Add(x float64) { d.add(node{x, 1}, x, x) }

// add adds a node for numbers between min and max. There must be room for the weight.
func (d *Digest) add(n node, min, max float64) {
	d.NoteHead()
	d.view = nil
	if d.merged+d.unmerged == d.Capacity() {
		d.compress()
	}
	if first := d.Weight() == 0; first || min < d.min {
		d.min = min
	}
	if first := d.Weight() == 0; first || max > d.max {
		d.max = max
	}
	d.setNode(d.merged+d.unmerged, n)
	d.unmerged++
	d.unmergedWeight += n.weight
}

// Merge adds the numbers of another digest, which is not d. There must be room for them.
func (d *Digest) Merge(from *Digest) {
	for i := range from.merged + from.unmerged {
		d.add(from.node(i), from.min, from.max)
	}
}

// Reset removes all numbers.
func (d *Digest) Reset() {
	d.NoteHead()
	d.Truncate(0, 0)
	d.merged, d.unmerged, d.mergedWeight, d.unmergedWeight, d.compressions = 0, 0, 0, 0, 0
	d.min, d.max, d.view = 0, 0, nil
}

// compress merges what is unmerged.
func (d *Digest) compress() {
	nodes := d.nodes()
	for i, n := range nodes {
		d.setNode(i, n)
	}
	d.merged, d.unmerged = len(nodes), 0
	d.mergedWeight, d.unmergedWeight = d.Weight(), 0
	d.compressions++
	page, at := d.at(len(nodes))
	if at > 0 {
		page++
	}
	d.Truncate(0, page)
}

// nodes returns all numbers as nodes, in order.
func (d *Digest) nodes() []node {
	nodes := make([]node, d.merged+d.unmerged)
	for i := range nodes {
		nodes[i] = d.node(i)
	}
	if d.unmerged == 0 {
		return nodes
	}
	slices.SortStableFunc(nodes, func(a, b node) int { return cmp.Compare(a.mean, b.mean) })
	// Neighbours become one node as long as its weight is at most q(1-q) times a part of the whole, where q is the part
	// that is before it, or before its end. There are about as many nodes then as the compression says. The logarithm is
	// a rough one: it must be the same on all processors.
	total := float64(d.Weight())
	log := float64(bits.Len64(uint64(d.Weight()))) * math.Ln2
	part := float64(d.compression) / (2 * total * log)
	out, before := 0, int64(0)
	for _, n := range nodes[1:] {
		last := &nodes[out]
		weight := last.weight + n.weight
		w, q0, q1 := float64(weight)*part, float64(before)/total, float64(before+weight)/total
		if w <= float64(q0*(1-q0)) && w <= float64(q1*(1-q1)) {
			last.mean = between(last.mean, n.mean, float64(n.weight)/float64(weight))
			last.weight = weight
			continue
		}
		before += last.weight
		out++
		nodes[out] = n
	}
	return slices.Clip(nodes[:out+1])
}

// between returns what lies so far between a and b, of which b is not less: a at 0, b at 1.
func between(a, b, part float64) float64 {
	// Products on their own, so that no processor does two steps in one; and none of them overflows.
	x := float64(a*(1-part)) + float64(b*part)
	return max(a, min(x, b))
}

// sorted returns all numbers as nodes in order, not to be changed.
func (d *Digest) sorted() []node {
	if d.view == nil && d.Weight() > 0 {
		d.view = d.nodes()
	}
	return d.view
}

// Quantile returns the number below which about a part q, from 0 to 1, of all numbers are. NaN if there are none.
func (d *Digest) Quantile(q float64) float64 { return d.value(q * float64(d.Weight())) }

// ByRank returns about the number that so many others are less than: +Inf if there are not so many, NaN if there are
// none at all.
func (d *Digest) ByRank(rank int64) float64 {
	if d.Weight() > 0 && rank >= d.Weight() {
		return math.Inf(1)
	}
	return d.value(float64(rank))
}

// ByReverseRank returns about the number that so many others are greater than: -Inf if there are not so many, NaN if
// there are none at all.
func (d *Digest) ByReverseRank(rank int64) float64 {
	if d.Weight() > 0 && rank >= d.Weight() {
		return math.Inf(-1)
	}
	return d.value(float64(d.Weight() - 1 - rank))
}

// value returns the number at a place among all of them in order. A node of one number is that number; between the
// middles of larger ones it is interpolated.
func (d *Digest) value(place float64) float64 {
	nodes := d.sorted()
	if len(nodes) == 0 {
		return math.NaN()
	}
	total := float64(d.Weight())
	first, last := nodes[0], nodes[len(nodes)-1]
	if half := float64(first.weight) / 2; place < 1 {
		return d.min
	} else if first.weight > 1 && place < half {
		return between(d.min, first.mean, (place-1)/(half-1))
	}
	if half := float64(last.weight) / 2; place > total-1 {
		return d.max
	} else if last.weight > 2 && total-place <= half {
		return between(last.mean, d.max, 1-(total-place-1)/(half-1))
	}
	middle := float64(first.weight) / 2 // of the node
	for i, n := range nodes[:len(nodes)-1] {
		next := nodes[i+1]
		step := float64(n.weight+next.weight) / 2
		if middle+step <= place {
			middle += step
			continue
		}
		left, right := place-middle, middle+step-place
		if n.weight == 1 {
			if left < 0.5 {
				return n.mean
			}
			left -= 0.5
		}
		if next.weight == 1 {
			if right <= 0.5 {
				return next.mean
			}
			right -= 0.5
		}
		return between(n.mean, next.mean, left/(left+right))
	}
	return between(last.mean, d.max, (place-middle)/(float64(last.weight)/2))
}

// below returns about how many numbers are less than x, and half of those that are equal.
func (d *Digest) below(x float64) float64 {
	nodes := d.sorted()
	switch {
	case len(nodes) == 0:
		return math.NaN()
	case x < d.min:
		return 0
	case x > d.max:
		return float64(d.Weight())
	}
	i, _ := slices.BinarySearchFunc(nodes, x, func(n node, x float64) int { return cmp.Compare(n.mean, x) })
	before, equal := int64(0), int64(0)
	for _, n := range nodes[:i] {
		before += n.weight
	}
	j := i
	for ; j < len(nodes) && nodes[j].mean == x; j++ {
		equal += nodes[j].weight
	}
	if j > i {
		return float64(before) + float64(equal)/2
	}
	// x is between the middles of two nodes, or between one and an end, where there is one number. A node of one number
	// has it on one side only.
	from, to := d.min, d.max
	start, end := 1.0, float64(d.Weight()-1)
	if i > 0 {
		from, start = nodes[i-1].mean, float64(before)
		if w := nodes[i-1].weight; w > 1 {
			start -= float64(w) / 2
		}
	}
	if i < len(nodes) {
		to, end = nodes[i].mean, float64(before)
		if w := nodes[i].weight; w > 1 {
			end += float64(w) / 2
		}
	}
	switch {
	case x == from:
		return start - 0.5
	case x == to:
		return end + 0.5
	}
	part := (x/2 - from/2) / (to/2 - from/2)
	return between(start, max(start, end), part)
}

// CDF returns the part of the numbers that are less than x, with half of those that are equal. NaN if there are none.
func (d *Digest) CDF(x float64) float64 { return d.below(x) / float64(d.Weight()) }

// Rank returns about how many numbers are less than x, with half of those that are equal: -1 if x is below all, -2 if
// there are none.
func (d *Digest) Rank(x float64) int64 {
	switch {
	case d.Weight() == 0:
		return -2
	case x < d.min:
		return -1
	}
	return int64(d.below(x))
}

// ReverseRank returns about how many numbers are greater than x, with half of those that are equal: -1 if x is above
// all, -2 if there are none.
func (d *Digest) ReverseRank(x float64) int64 {
	switch {
	case d.Weight() == 0:
		return -2
	case x > d.max:
		return -1
	}
	return int64(float64(d.Weight()) - d.below(x))
}

// TrimmedMean returns the mean of the numbers between two quantiles. NaN if there are none.
func (d *Digest) TrimmedMean(low, high float64) float64 {
	from, to := math.Floor(low*float64(d.Weight())), math.Ceil(high*float64(d.Weight()))
	sum, weight, at := 0.0, 0.0, 0.0
	for _, n := range d.sorted() {
		end := at + float64(n.weight)
		if part := min(end, to) - max(at, from); part > 0 {
			sum += float64(n.mean * part)
			weight += part
		}
		at = end
	}
	if mean := sum / weight; !math.IsInf(mean, 0) && !math.IsNaN(mean) || weight == 0 {
		return mean
	}
	mean, seen, at := 0.0, 0.0, 0.0 // the sum is too large
	for _, n := range d.sorted() {
		end := at + float64(n.weight)
		if part := min(end, to) - max(at, from); part > 0 {
			seen += part
			mean = float64(mean*(1-part/seen)) + float64(n.mean*(part/seen))
		}
		at = end
	}
	return mean
}

// Min returns the least number, NaN if there are none.
func (d *Digest) Min() float64 { return d.orNaN(d.min) }

// Max returns the greatest number, NaN if there are none.
func (d *Digest) Max() float64 { return d.orNaN(d.max) }

func (d *Digest) orNaN(x float64) float64 {
	if d.Weight() == 0 {
		return math.NaN()
	}
	return x
}

// Weight returns how many numbers there are.
func (d *Digest) Weight() int64 { return d.mergedWeight + d.unmergedWeight }

// Compression returns what New was given.
func (d *Digest) Compression() int { return d.compression }

// State is how the numbers are kept.
type State struct {
	Merged, Unmerged             int   // nodes
	MergedWeight, UnmergedWeight int64 // how many numbers they stand for
	Compressions                 uint64
}

// State returns how the numbers are kept, as who has asked last has seen them.
func (d *Digest) State() State {
	if d.view != nil && d.unmerged > 0 {
		return State{len(d.view), 0, d.Weight(), 0, d.compressions + 1}
	}
	return State{d.merged, d.unmerged, d.mergedWeight, d.unmergedWeight, d.compressions}
}

// Clone returns a copy.
func (d *Digest) Clone() *Digest {
	c := &Digest{compression: d.compression, merged: d.merged, unmerged: d.unmerged, mergedWeight: d.mergedWeight,
		unmergedWeight: d.unmergedWeight, compressions: d.compressions, min: d.min, max: d.max}
	c.Init(c)
	d.CopyTo(&c.Value)
	return c
}

// MemoryUsage returns how many bytes of memory the digest takes, without what is kept for who asks again.
func (d *Digest) MemoryUsage() int { return int(unsafe.Sizeof(*d)) + d.Value.MemoryUsage() }

// format is the first byte of a head.
const format = 1

// AppendHead appends the stored form of all but the pages: the format, min and max in eight bytes each, and as unsigned
// varints the compression, merged nodes, unmerged ones, the weights of both, and the compressions.
func (d *Digest) AppendHead(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, format), math.Float64bits(d.min))
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(d.max))
	for _, n := range [...]uint64{uint64(d.compression), uint64(d.merged), uint64(d.unmerged), uint64(d.mergedWeight),
		uint64(d.unmergedWeight), d.compressions} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// decodeHead returns the digest of a head, whose nodes are still to come.
func decodeHead(head []byte) (*Digest, error) {
	if len(head) == 0 || head[0] != format {
		return nil, errHead
	}
	r := paged.NewReader(head[1:])
	least, most := math.Float64frombits(r.Fixed()), math.Float64frombits(r.Fixed())
	compression := r.Uint(1, MaxCompression)
	if !r.OK() {
		return nil, errHead
	}
	d := New(int(compression))
	d.min, d.max = least, most
	d.merged = int(r.Uint(0, uint64(d.Capacity())))
	d.unmerged = int(r.Uint(0, uint64(d.Capacity()-d.merged)))
	d.mergedWeight = int64(r.Uint(0, maxWeight))
	d.unmergedWeight = int64(r.Uint(0, uint64(maxWeight-d.mergedWeight)))
	d.compressions = r.Uint(0, 1<<62)
	return d, r.Err("t-digest")
}

// check reports what is wrong with the nodes.
func check(d *Digest) error {
	if n := d.merged + d.unmerged; n > 0 {
		last, _ := d.at(n - 1)
		for page := range last + 1 {
			if d.Array(0).Page(page) == nil {
				return errNode
			}
		}
	}
	weights := [2]int64{}
	for i := range d.merged + d.unmerged {
		n := d.node(i)
		which := 0
		if i >= d.merged {
			which = 1
		}
		if n.weight < 1 || n.weight > maxWeight-weights[which] || !(n.mean >= d.min && n.mean <= d.max) ||
			i > 0 && i < d.merged && n.mean < d.node(i-1).mean {
			return errNode
		}
		weights[which] += n.weight
	}
	if weights != [2]int64{d.mergedWeight, d.unmergedWeight} || math.IsInf(d.min, 0) || math.IsInf(d.max, 0) ||
		d.Weight() == 0 && (d.min != 0 || d.max != 0) {
		return errNode
	}
	return nil
}

// NewLoader returns what builds a digest from its parts.
func NewLoader() *paged.Loader[*Digest] { return &paged.Loader[*Digest]{Head: decodeHead, End: check} }

// DecodeBlob returns the digest that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Digest, error) { return NewLoader().Decode(b) }
