package rdb

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/tdigest"
)

// tDigestKind is the kind of t-digests. The module of Redis merges all nodes. It writes the compression, minimum and
// maximum, the limit of nodes, the numbers of merged and unmerged nodes, the number of merges, the weights of both
// kinds of nodes, and then the means and the weights of the merged nodes.
var tDigestKind = redisKind(partsKind("atomTDIGS", func(e *engine.Entry) parts { return e.TDigest() }, tdigest.NewLoader),
	moduleForm{name: tDigestModule, newest: tDigestVersion, read: readTDigest}, nil, writeTDigest)

const (
	tDigestModule  = "TDIS-TYPE"
	tDigestVersion = 0
)

func writeTDigest(e *Encoder, entry *engine.Entry) {
	d := entry.TDigest()
	w := e.moduleHead(tDigestModule, tDigestVersion)
	least, most := d.Min(), d.Max()
	if d.Weight() == 0 {
		least, most = math.MaxFloat64, -math.MaxFloat64
	}
	w.Double(float64(d.Compression()))
	w.Double(least)
	w.Double(most)
	nodes := uint64(0)
	compressions := d.Each(func(float64, int64) { nodes++ })
	w.Uint(uint64(d.Capacity()), nodes, 0, compressions)
	w.Double(float64(d.Weight()))
	w.Double(0)
	d.Each(func(mean float64, _ int64) { w.Double(mean) })
	d.Each(func(_ float64, weight int64) { w.Double(float64(weight)) })
	w.End()
}

// readTDigest reads a digest. For a digest with a single number the module writes only the minimum.
func readTDigest(m *Module, _ *Limits) any {
	compression, least, most := m.Double(), m.Double(), m.Double()
	capacity, merged, other, compressions := m.Uint(), m.Uint(), m.Uint(), m.Uint()
	weight, otherWeight := m.Double(), m.Double()
	single := merged == 0 && other == 1 && otherWeight == 1 && least == most
	wrong := !(compression >= 1 && compression <= tdigest.MaxCompression) || compression != math.Trunc(compression) ||
		capacity != 6*uint64(compression)+10 || merged > capacity || !single && (other != 0 || otherWeight != 0)
	if m.err == nil && wrong {
		m.Corrupt("a t-digest of compression %v with %d, %d and %d nodes", compression, capacity, merged, other)
	}
	var means []float64
	var weights []int64
	for uint64(len(means)) < merged && m.err == nil {
		means = append(means, m.Double())
	}
	sum := 0.0
	for uint64(len(weights)) < merged && m.err == nil {
		n := m.Double()
		if !(n >= 1 && n <= math.MaxInt64/2) {
			m.Corrupt("a node of the weight %v", n)
		}
		weights = append(weights, int64(n))
		sum += n
	}
	if single {
		means, weights = []float64{least}, []int64{1}
	} else if m.err == nil && math.Abs(sum-weight) > sum/1e9 {
		m.Corrupt("a t-digest of the weight %v with nodes of %v", weight, sum)
	}
	if m.err != nil {
		return nil
	}
	digest, err := tdigest.Restore(int(compression), compressions, least, most, means, weights)
	if err != nil {
		m.Corrupt("%v", err)
	}
	return digest
}
