// Package tdigest has t-digests: the distribution of numbers, described by few nodes, each of which stands for some
// neighbouring numbers. Nodes are small at both ends, where precision matters most.
//
// Added numbers collect after the nodes, and are merged into nodes when there is no more room. Queries merge them into
// a separate view, so the stored state depends only on the added numbers.
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
	// maxWeight is the maximum number of numbers.
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
	merged, unmerged int   // number of nodes
	mergedWeight     int64 // their weight
	unmergedWeight   int64
	compressions     uint64
	min, max         float64

	view []node // all numbers as sorted nodes; nil until the first query after a change
}

// New returns an empty digest. compression is from 1 to MaxCompression; a higher one is more exact.
func New(compression int) *Digest {
	d := &Digest{compression: compression}
	d.Init(d)
	const most = paged.PageSize / nodeSize
	pages := (d.Capacity() + most - 1) / most
	inPage := (d.Capacity() + pages - 1) / pages
	d.AddArray(paged.NewBytes(inPage*nodeSize, pages))
	return d
}

// Capacity returns the maximum number of nodes, including unmerged numbers.
func (d *Digest) Capacity() int { return 6*d.compression + 10 }

// at returns the page of a node and its offset there.
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

// HasRoom reports whether n more numbers can be counted.
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

// Merge adds the numbers of another digest, which must not be d. There must be room for them.
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

// compress merges the unmerged nodes.
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

// nodes returns all numbers as sorted nodes.
func (d *Digest) nodes() []node {
	nodes := make([]node, d.merged+d.unmerged)
	for i := range nodes {
		nodes[i] = d.node(i)
	}
	if d.unmerged == 0 {
		return nodes
	}
	slices.SortStableFunc(nodes, func(a, b node) int { return cmp.Compare(a.mean, b.mean) })
	// Neighbours are merged while the weight is at most q(1-q) times a fraction of the total, where q is the fraction
	// before the node, or up to its end. The number of nodes is then about the compression. The logarithm is
	// approximate: it must be the same on all processors.
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

// between interpolates between a and b, where b is at least a: part 0 is a, 1 is b.
func between(a, b, part float64) float64 {
	// Separate products prevent a fused multiply-add, and none of them overflows.
	x := float64(a*(1-part)) + float64(b*part)
	return max(a, min(x, b))
}

// sorted returns all numbers as sorted nodes, which must not be changed.
func (d *Digest) sorted() []node {
	if d.view == nil && d.Weight() > 0 {
		d.view = d.nodes()
	}
	return d.view
}

// Quantile returns the number below which about a fraction q, from 0 to 1, of all numbers lies. NaN if there are none.
func (d *Digest) Quantile(q float64) float64 { return d.value(q * float64(d.Weight())) }

// ByRank returns about the number with rank smaller ones: +Inf if there are too few, NaN if there are none at all.
func (d *Digest) ByRank(rank int64) float64 {
	if d.Weight() > 0 && rank >= d.Weight() {
		return math.Inf(1)
	}
	return d.value(float64(rank))
}

// ByReverseRank returns about the number with rank greater ones: -Inf if there are too few, NaN if there are none at
// all.
func (d *Digest) ByReverseRank(rank int64) float64 {
	if d.Weight() > 0 && rank >= d.Weight() {
		return math.Inf(-1)
	}
	return d.value(float64(d.Weight() - 1 - rank))
}

// value returns the number at a position in the sorted numbers. A node of one number is that number; between the
// middles of larger nodes it interpolates.
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
	middle := float64(first.weight) / 2 // of the present node
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

// below returns about how many numbers are less than x, plus half of those equal to x.
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
	// x is between the middles of two nodes, or between a middle and an end, which is a single number. A node of one
	// number has it on one side only.
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

// CDF returns the fraction of the numbers less than x, plus half of those equal to x. NaN if there are none.
func (d *Digest) CDF(x float64) float64 { return d.below(x) / float64(d.Weight()) }

// Rank returns about how many numbers are less than x, plus half of those equal to x: -1 if x is below all, -2 if there
// are none.
func (d *Digest) Rank(x float64) int64 {
	switch {
	case d.Weight() == 0:
		return -2
	case x < d.min:
		return -1
	}
	return int64(d.below(x))
}

// ReverseRank returns about how many numbers are greater than x, plus half of those equal to x: -1 if x is above all,
// -2 if there are none.
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
	mean, seen, at := 0.0, 0.0, 0.0 // the plain sum overflows
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

// Weight returns the number of numbers.
func (d *Digest) Weight() int64 { return d.mergedWeight + d.unmergedWeight }

// Compression returns the compression given to New.
func (d *Digest) Compression() int { return d.compression }

// State describes the stored nodes.
type State struct {
	Merged, Unmerged             int   // numbers of nodes
	MergedWeight, UnmergedWeight int64 // numbers that they stand for
	Compressions                 uint64
}

// State returns the state of the nodes, as merged by the last query if nothing has changed since.
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

// MemoryUsage returns how many bytes of memory the digest takes, without the view of queries.
func (d *Digest) MemoryUsage() int { return int(unsafe.Sizeof(*d)) + d.Value.MemoryUsage() }

// format is the first byte of a head.
const format = 1

// AppendHead appends the stored form of everything except the pages: the format, min and max in eight bytes each, and
// as unsigned varints the compression, merged nodes, unmerged nodes, the weights of both, and the number of
// compressions.
func (d *Digest) AppendHead(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, format), math.Float64bits(d.min))
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(d.max))
	for _, n := range [...]uint64{uint64(d.compression), uint64(d.merged), uint64(d.unmerged), uint64(d.mergedWeight),
		uint64(d.unmergedWeight), d.compressions} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// decodeHead returns the digest described by a head, without nodes.
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

// check returns an error if the nodes are invalid.
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

// NewLoader returns a loader that builds a digest from its parts.
func NewLoader() *paged.Loader[*Digest] { return &paged.Loader[*Digest]{Head: decodeHead, End: check} }

// DecodeBlob returns the digest that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Digest, error) { return NewLoader().Decode(b) }
