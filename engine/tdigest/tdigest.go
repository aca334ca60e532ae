// Package tdigest has t-digests: the distribution of numbers, described by few nodes, each of which stands for some
// neighbouring numbers. Nodes are small at both ends, where precision matters most.
//
// Merging and queries compute like the module of Redis, so that digests move between both and answer alike.
//
// Added numbers collect after the nodes, and are merged into nodes when there is no more room. Queries merge them into
// a separate view, so the stored state depends only on the added numbers.
package tdigest

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/naturallog"
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
	if d.merged+d.unmerged >= d.Capacity()-1 {
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
	if d.unmerged > 0 {
		d.NoteHead()
		d.compress()
	}
	for _, n := range from.sorted() {
		d.add(n, from.min, from.max)
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
	sortNodes(nodes)
	total := float64(d.mergedWeight) + float64(d.unmergedWeight)
	if total <= 1 {
		return nodes
	}
	// Neighbours are merged as long as the weight of the node is at most q(1-q) times a fraction of the total, both for
	// the fraction q of numbers before the node and for that before its end. The number of nodes is then about the
	// compression.
	part := float64(d.compression) / (2 * math.Pi * total * naturallog.Of(total))
	out, before := 0, 0.0
	for _, n := range nodes[1:] {
		last := &nodes[out]
		weight := float64(last.weight) + float64(n.weight)
		w, q0, q1 := weight*part, before/total, (before+weight)/total
		if w <= float64(q0*(1-q0)) && w <= float64(q1*(1-q1)) {
			last.weight += n.weight
			mean := last.mean + float64((n.mean-last.mean)*float64(n.weight))/float64(last.weight)
			if math.IsInf(mean, 0) || math.IsNaN(mean) { // the difference is too large
				mean = between(last.mean, n.mean, float64(n.weight)/float64(last.weight))
			}
			last.mean = mean
			continue
		}
		before += float64(last.weight)
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

// Size returns the size of the digest as the module counts it, in bytes.
func (d *Digest) Size() int { return moduleDigest + nodeSize*d.Capacity() }

// moduleDigest is the size that the module counts for a digest in addition to its nodes.
const moduleDigest = 80

// Each calls fn with the means and weights of all nodes in order, and returns how often nodes have been merged,
// including for this.
func (d *Digest) Each(fn func(mean float64, weight int64)) (compressions uint64) {
	for _, n := range d.sorted() {
		fn(n.mean, n.weight)
	}
	if d.unmerged > 0 {
		return d.compressions + 1
	}
	return d.compressions
}

// Restore returns a stored digest of numbers between min and max.
func Restore(compression int, compressions uint64, min, max float64, means []float64, weights []int64) (*Digest, error) {
	if compression < 1 || compression > MaxCompression || compressions > maxCompressions {
		return nil, errHead
	}
	d := New(compression)
	if len(means) > d.Capacity() || len(means) != len(weights) {
		return nil, errHead
	}
	d.compressions, d.merged = compressions, len(means)
	for i, mean := range means {
		if weights[i] < 1 || weights[i] > maxWeight-d.mergedWeight {
			return nil, errNode
		}
		d.mergedWeight += weights[i]
		d.setNode(i, node{mean, weights[i]})
	}
	if len(means) > 0 {
		d.min, d.max = min, max
	}
	return d, check(d)
}

// maxCompressions is the limit of the stored number of merges.
const maxCompressions = 1 << 62

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
	d.compressions = r.Uint(0, maxCompressions)
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
		if n.weight < 1 || n.weight > maxWeight-weights[which] || math.IsNaN(n.mean) || math.IsInf(n.mean, 0) {
			return errNode
		}
		weights[which] += n.weight
	}
	if weights != [2]int64{d.mergedWeight, d.unmergedWeight} || !(d.min <= d.max) || math.IsInf(d.min, 0) || math.IsInf(d.max, 0) ||
		d.Weight() == 0 && (d.min != 0 || d.max != 0) {
		return errNode
	}
	return nil
}

// NewLoader returns a loader that builds a digest from its parts.
func NewLoader() *paged.Loader[*Digest] { return &paged.Loader[*Digest]{Head: decodeHead, End: check} }

// DecodeBlob returns the digest that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Digest, error) { return NewLoader().Decode(b) }
