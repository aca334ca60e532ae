package vectors

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine/vectors/graph"
)

// How an index is stored: a byte with the format, then as uvarints type, metric, dimensions, 0 or M, and the numbers of
// vectors and of documents. Then for each vector its document and the vector's stored form; if there are more vectors
// than documents, also its index within the document. With a graph follow, for each vector, the length of its links and
// the links as package graph stores them; then the number of vectors ever added, the entry and its level. A CRC-32C
// ends it, four bytes, little-endian. Vectors without a document are left out, so that the numbers of nodes have no
// gaps.

const format = 1

// Errors of stored indexes.
var (
	errFormat  = errors.New("search vectors: unknown stored format")
	errSum     = errors.New("search vectors: checksum of stored index does not match")
	errCut     = errors.New("search vectors: stored index has the wrong length")
	errOptions = errors.New("search vectors: stored index belongs to other vectors")
	errDoc     = errors.New("search vectors: stored document is malformed")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBlob appends the stored form of the index to dst. No writer may run meanwhile.
func (x *Index) AppendBlob(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, format)
	for _, n := range x.head() {
		dst = binary.AppendUvarint(dst, n)
	}
	numbers := make([]uint32, x.docs.Len()) // the numbers under which nodes are stored
	ordinals := x.ordinals()
	n := uint32(0)
	for node := range numbers {
		doc := x.doc(uint32(node))
		if doc == 0 {
			continue
		}
		numbers[node] = n
		n++
		dst = binary.AppendUvarint(dst, doc)
		dst = x.space.append(dst, uint32(node))
		if ordinals != nil {
			dst = binary.AppendUvarint(dst, uint64(ordinals[node]))
		}
	}
	if x.graph != nil {
		number := func(node uint32) (uint32, bool) { return numbers[node], x.doc(node) != 0 }
		var links []byte
		for node := range numbers {
			if x.doc(uint32(node)) != 0 {
				links = x.graph.AppendLinks(links[:0], uint32(node), number)
				dst = append(binary.AppendUvarint(dst, uint64(len(links))), links...)
			}
		}
		entry, top, ok := x.graph.Entry()
		if ok {
			entry = numbers[entry]
		}
		for _, n := range [...]uint64{x.graph.Added(), uint64(entry), uint64(top)} {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return order.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// head returns the numbers at the start of a stored index.
func (x *Index) head() [6]uint64 {
	o, m := x.options, 0
	if x.graph != nil {
		m = x.graph.M
	}
	return [...]uint64{uint64(o.Type), uint64(o.Metric), uint64(o.Dim), uint64(m), uint64(x.Vectors()), uint64(x.Len())}
}

// ordinals returns for each node its index within its document; nil if all documents have one vector.
func (x *Index) ordinals() []uint32 {
	if x.Vectors() == x.Len() {
		return nil
	}
	out := make([]uint32, x.docs.Len())
	for node := range out {
		if doc := x.doc(uint32(node)); doc != 0 {
			if first, _ := x.find(doc); first == uint32(node) {
				at := uint32(0)
				for next, more := x.nextOf(first); more; next, more = x.nextOf(next) {
					at++
					out[next] = at
				}
			}
		}
	}
	return out
}

// Decode returns the index that AppendBlob has stored, or an error if b is damaged or does not fit the options.
// It does not keep b.
func Decode(b []byte, o Options) (*Index, error) {
	if len(b) < 5 || b[0] != format {
		return nil, errFormat
	}
	body, sum := b[:len(b)-4], order.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errSum
	}
	d := decoder{body[1:]}
	x := New(o)
	head := x.head()
	for i := range head {
		n := d.uvarint()
		if i < 4 && n != head[i] {
			return nil, errOptions
		}
		head[i] = n
	}
	n, documents := head[4], head[5]
	kept := x.space.kept()
	if d.bad() || n > math.MaxInt32 || n > uint64(len(d.b))/uint64(kept+1) || documents > n || n > 0 && documents == 0 {
		return nil, errCut
	}
	if err := x.decodeDocs(&d, int(n), int(documents)); err != nil {
		return nil, err
	}
	if x.graph != nil {
		if err := x.decodeGraph(&d, int(n)); err != nil {
			return nil, err
		}
	}
	if d.bad() || len(d.b) > 0 {
		return nil, errCut
	}
	return x, nil
}

func (x *Index) decodeDocs(d *decoder, n, documents int) error {
	kept := x.space.kept()
	several := map[uint64][]uint32{} // node+1 for each vector of a document, if documents have several
	room := n
	x.table.Store(newTable(documents))
	for node := range uint32(n) {
		doc, vector := d.uvarint(), d.take(kept)
		ordinal := uint64(0)
		if n > documents {
			ordinal = d.uvarint()
		}
		switch {
		case d.bad():
			return errCut
		case doc == 0 || ordinal >= uint64(n):
			return errDoc
		}
		x.space.restore(vector)
		x.more.Push()
		x.docs.Push()[0] = doc
		if n > documents {
			nodes := several[doc]
			for ; len(nodes) <= int(ordinal); room-- {
				if room == 0 {
					return errDoc // some ordinals are missing
				}
				nodes = append(nodes, 0)
			}
			if nodes[ordinal] != 0 {
				return errDoc
			}
			nodes[ordinal] = node + 1
			several[doc] = nodes
			continue
		}
		if _, twice := x.find(doc); twice {
			return errDoc
		}
		x.enter(doc, node)
		x.documents.Add(1)
	}
	for doc, nodes := range several {
		for i, next := range nodes {
			if next == 0 {
				return errDoc
			}
			if i > 0 {
				atomic.StoreUint32(&x.more.At(nodes[i-1] - 1)[0], next)
			}
		}
		x.enter(doc, nodes[0]-1)
		x.documents.Add(1)
	}
	x.nodes.Store(int64(n))
	if x.Len() != documents {
		return errDoc
	}
	return nil
}

func (x *Index) decodeGraph(d *decoder, n int) error {
	l := x.graph.Load(n)
	for range n {
		links := d.take(int(min(d.uvarint(), math.MaxInt32)))
		if d.bad() {
			return errCut
		}
		if err := l.Add(links); err != nil {
			return err
		}
	}
	added, entry, top := d.uvarint(), d.uvarint(), d.uvarint()
	if d.bad() || entry > math.MaxUint32 || top > graph.MaxLevel {
		return errCut
	}
	if n == 0 {
		return nil
	}
	return l.Finish(added, uint32(entry), int(top))
}

// decoder reads untrusted data.
type decoder struct{ b []byte }

func (d *decoder) bad() bool { return d.b == nil }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) take(n int) []byte {
	if d.b == nil || n > len(d.b) {
		d.b = nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}
