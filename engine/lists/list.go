// Package lists has the list data structure: a deque of byte strings in flat chunks.
//
// The chunks, called nodes, form a ring. Every node knows the position of its first element, so that binary search
// finds an index; a change in the middle renumbers the nodes on one side, which costs less than the search did.
//
// Arguments are copied when they are stored and may change afterwards. They must not be views of the list they are
// passed to. Slices that a List returns are views: read-only, and valid until the next change of the list.
//
// A node has up to 8 KiB, with room at both ends. Nodes of 32 KiB or more take their memory from package buffers and
// return it, so that a queue of long messages makes little garbage: a result of Front or Back must not be used after
// the element was dropped.
package lists

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
)

// List is a list of byte strings. It has no lock. Make one with New.
type List struct {
	ring  []node // a power of two of slots, or none
	first int    // slot of the first node
	nodes int    // slots in use; no node in them is empty
	len   int
	limit int32   // a Limit
	quick bool    // reported as quicklist: sticky until the list is well within one node again
	extra *extra  // not nil if the list is tracked or its ring has more than one slot: see MemoryUsage
	one   [1]node // the ring of a list of one node, as most are
}

// extra has the fields that small lists do not need.
type extra struct {
	// spare is the buffer of a removed node, kept for the next one, so that neither a queue nor pushes and pops across
	// the boundary of a node allocate.
	spare []byte
	// buffers is the size in bytes of the buffers of all nodes and the spare one.
	buffers int
	log     *delta.Log // nil unless the list is tracked
	// names are the names of a tracked list's nodes, in the same slots of a ring of the same size; a slot without a
	// node has none. A name is a big-endian number, so that the names are in the order of the nodes.
	names []string
	gap   string // the name of the gap, if there is one: see partial.go
}

// Limit is the size of a node, as in list-max-listpack-size: -1 to -5 mean 4, 8, 16, 32 and 64 KiB, a positive number
// is a number of elements (within 8 KiB).
type Limit int

// DefaultLimit is Redis's default: 8 KiB.
const DefaultLimit Limit = -2

// entryLimitBytes is the most bytes of a node whose limit is a number of elements.
const entryLimitBytes = 8 << 10

// Bounds returns the limit in bytes and in elements.
func (m Limit) Bounds() (maxBytes, maxEntries int) {
	if m < 0 {
		return 4 << 10 << (-max(m, -5) - 1), math.MaxInt
	}
	return entryLimitBytes, int(min(max(m, 1), 1<<15-1))
}

// narrow returns the limit, or the nearest one with the same bounds, as an int32.
func (m Limit) narrow() int32 { return int32(min(max(m, math.MinInt32), math.MaxInt32)) }

// New returns an empty list.
func New(limit Limit) *List { return &List{limit: limit.narrow()} }

// SetLimit changes the node size for later changes.
func (l *List) SetLimit(limit Limit) { l.limit = limit.narrow() }

// bounds returns the list's limit in bytes and in elements.
func (l *List) bounds() (maxBytes, maxEntries int) { return Limit(l.limit).Bounds() }

// Len is the number of elements.
func (l *List) Len() int { return l.len }

// MemoryUsage returns how many bytes the list takes, in constant time.
func (l *List) MemoryUsage() int {
	n := int(unsafe.Sizeof(*l))
	if len(l.ring) > len(l.one) {
		n += int(unsafe.Sizeof(node{})) * len(l.ring)
	}
	if l.extra == nil {
		return n + l.buffers() // of at most one node
	}
	n += l.extra.buffers
	if log := l.extra.log; log != nil && log.ID != 0 { // memory only for a copy is not counted
		n += partBytes * len(l.extra.names)
	}
	return n
}

// buffers returns how many bytes the buffers of all nodes take.
func (l *List) buffers() int {
	n := 0
	for i := range l.nodes {
		n += cap(l.at(i).buf)
	}
	return n
}

// resized adds n bytes to the size of the buffers of the nodes and the spare one.
func (l *List) resized(n int) {
	if l.extra != nil {
		l.extra.buffers += n
	}
}

// extend returns the list's extra, and creates it if there is none.
func (l *List) extend() *extra {
	if l.extra == nil {
		l.extra = &extra{buffers: l.buffers()}
	}
	return l.extra
}

// Nodes returns the number of nodes.
func (l *List) Nodes() int { return l.nodes }

// Encoding returns Redis's name for the form of the list: "listpack" for one node within the limit, "quicklist" for
// more. As in Redis, a list that has shrunk counts as a listpack again once its only node is at most half full.
func (l *List) Encoding() string {
	if l.quick {
		return "quicklist"
	}
	return "listpack"
}

// Reload decides the encoding as for a list read from a file, regardless of its history.
func (l *List) Reload() {
	l.settle()
	if l.nodes == 1 {
		maxBytes, maxEntries := l.bounds()
		l.setQuick(l.at(0).size() > maxBytes || l.at(0).n > maxEntries)
	}
}

// settle decides the encoding after a change.
func (l *List) settle() {
	if l.nodes != 1 {
		l.setQuick(l.nodes > 1)
		return
	}
	nd := l.at(0)
	maxBytes, maxEntries := l.bounds()
	size := nd.size()
	switch {
	case size > maxBytes || nd.n > maxEntries:
		l.setQuick(true)
	case size <= maxBytes/2 && nd.n <= maxEntries/2:
		l.setQuick(false)
	}
}

func (l *List) setQuick(quick bool) {
	if l.quick != quick {
		l.noteState()
		l.quick = quick
	}
}

// PushFront adds v before the first element.
func (l *List) PushFront(v []byte) {
	size := encodedLen(len(v))
	if l.nodes == 0 || !l.fits(l.at(0), size, 1) {
		l.insertNode(0, size, true)
	}
	nd := l.at(0)
	l.write(0, nd.head, size, v)
	nd.start--
	l.settle()
}

// PushBack adds v after the last element.
func (l *List) PushBack(v []byte) {
	size := encodedLen(len(v))
	if l.nodes == 0 || !l.fits(l.at(l.nodes-1), size, 1) {
		l.insertNode(l.nodes, size, false)
	}
	last := l.nodes - 1
	l.write(last, len(l.at(last).buf), size, v)
	l.settle()
}

// Front returns the first element.
func (l *List) Front() ([]byte, bool) {
	if l.len == 0 {
		return nil, false
	}
	nd := l.at(0)
	v, _ := nd.elem(nd.head)
	return v, true
}

// Back returns the last element.
func (l *List) Back() ([]byte, bool) {
	if l.len == 0 {
		return nil, false
	}
	nd := l.at(l.nodes - 1)
	v, _ := nd.elemBefore(len(nd.buf))
	return v, true
}

// DropFront removes the first element, if there is one. Call Front before to read it: its result becomes invalid, and
// its memory may be reused.
func (l *List) DropFront() {
	if l.len == 0 {
		return
	}
	l.note(0)
	nd := l.at(0)
	_, nd.head = nd.elem(nd.head)
	nd.n--
	nd.start++
	l.len--
	l.dropped(0)
}

// DropBack removes the last element, if there is one, as DropFront removes the first one.
func (l *List) DropBack() {
	if l.len == 0 {
		return
	}
	l.note(l.nodes - 1)
	nd := l.at(l.nodes - 1)
	_, end := nd.elemBefore(len(nd.buf))
	nd.buf = nd.buf[:end]
	nd.n--
	l.len--
	l.dropped(l.nodes - 1)
}

// dropped cleans up after elements were removed from node i, the first or the last one.
func (l *List) dropped(i int) {
	if nd := l.at(i); nd.n == 0 {
		l.deleteNodes(i, 1)
	}
	l.tighten()
	l.settle()
}

// tighten frees unused room of a list that has shrunk to a small part of one node.
func (l *List) tighten() {
	if l.nodes == 1 {
		nd := l.at(0)
		was := cap(nd.buf)
		nd.tighten()
		l.resized(cap(nd.buf) - was)
		if l.extra != nil && cap(nd.buf) < cap(l.extra.spare) {
			l.resized(-cap(l.extra.spare))
			l.extra.spare = nil
		}
	}
}

// Index returns element i, counted from 0.
func (l *List) Index(i int) ([]byte, bool) {
	if i < 0 || i >= l.len {
		return nil, false
	}
	j, k := l.locate(i)
	nd := l.at(j)
	v, _ := nd.elem(nd.seek(k))
	return v, true
}

// Range calls fn with the elements start to stop, both included, in order, until fn returns false.
// The part of the range outside the list is ignored.
func (l *List) Range(start, stop int, fn func(v []byte) bool) {
	start, stop = max(start, 0), min(stop, l.len-1)
	if start > stop {
		return
	}
	todo := stop - start + 1
	i, k := l.locate(start)
	nd := l.at(i)
	for p := nd.seek(k); ; {
		for p < len(nd.buf) {
			v, next := nd.elem(p)
			if !fn(v) {
				return
			}
			if todo--; todo == 0 {
				return
			}
			p = next
		}
		i++
		nd = l.at(i)
		p = nd.head
	}
}

// RangeReverse calls fn with the elements stop down to start, both included, until fn returns false.
// The part of the range outside the list is ignored.
func (l *List) RangeReverse(start, stop int, fn func(v []byte) bool) {
	start, stop = max(start, 0), min(stop, l.len-1)
	if start > stop {
		return
	}
	todo := stop - start + 1
	i, k := l.locate(stop)
	nd := l.at(i)
	for p := nd.seek(k + 1); ; {
		for p > nd.head {
			v, at := nd.elemBefore(p)
			if !fn(v) {
				return
			}
			if todo--; todo == 0 {
				return
			}
			p = at
		}
		i--
		nd = l.at(i)
		p = len(nd.buf)
	}
}

// Pos calls fn with the indexes of elements equal to v, as LPOS does. Rank 1 starts with the first match, 2 with the
// second; -1 starts with the last match and goes backwards. At most count matches are reported and at most maxlen
// elements compared; 0 is no limit. Rank 0 counts as 1.
func (l *List) Pos(v []byte, rank, count, maxlen int, fn func(i int)) {
	if maxlen <= 0 || maxlen > l.len {
		maxlen = l.len
	}
	i, step, skip := 0, 1, rank-1
	walk, start, stop := l.Range, 0, maxlen-1
	if rank < 0 {
		i, step, skip = l.len-1, -1, -(rank + 1)
		walk, start, stop = l.RangeReverse, l.len-maxlen, l.len-1
	}
	found := 0
	walk(start, stop, func(e []byte) bool {
		if bytes.Equal(e, v) {
			if skip > 0 {
				skip--
			} else {
				fn(i)
				found++
			}
		}
		i += step
		return count <= 0 || found < count
	})
}

// Clone returns an independent copy, which is not tracked.
func (l *List) Clone() *List {
	c := &List{nodes: l.nodes, len: l.len, limit: l.limit, quick: l.quick}
	ring := c.newRing(len(l.ring))
	for i := range l.nodes {
		nd := *l.at(i)
		nd.buf = append([]byte(nil), nd.buf[nd.head:]...)
		nd.head = 0
		ring[i] = nd
	}
	c.setRing(ring)
	return c
}

// newRing returns a ring of the given size, perhaps the one inside the list.
func (l *List) newRing(size int) []node {
	if size == len(l.one) {
		return l.one[:]
	}
	return make([]node, size)
}

// setRing gives the list a result of newRing, which has all nodes in its first slots.
func (l *List) setRing(ring []node) {
	l.ring, l.first = ring, 0
	if len(ring) > len(l.one) {
		l.extend()
	}
}

// at returns node i. The pointer is valid until a node is inserted or deleted.
func (l *List) at(i int) *node { return &l.ring[l.slot(i)] }

// slot returns the ring slot of node i.
func (l *List) slot(i int) int { return (l.first + i) & (len(l.ring) - 1) }

// locate returns the node that holds element i, which must exist, and the element's index in it.
func (l *List) locate(i int) (j, k int) {
	at := l.at(0).start + i
	if last := l.at(l.nodes - 1); at >= last.start {
		return l.nodes - 1, at - last.start
	}
	lo, hi := 0, l.nodes-1 // node lo starts at or before the element, node hi after it
	for hi-lo > 1 {
		mid := int(uint(lo+hi) / 2)
		if l.at(mid).start <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, at - l.at(lo).start
}

// fits reports whether n more elements of size bytes in total fit into a node. Anything fits into an empty one, so an
// element beyond the limit has a node of its own.
func (l *List) fits(nd *node, size, n int) bool {
	if nd.n == 0 {
		return true
	}
	maxBytes, maxEntries := l.bounds()
	return nd.size()+size <= maxBytes && nd.n+n <= maxEntries
}

// write stores v, encoded in size bytes, at offset p of node j.
func (l *List) write(j, p, size int, v []byte) {
	l.note(j)
	nd := l.at(j)
	maxBytes, _ := l.bounds()
	was := cap(nd.buf)
	p = nd.open(p, size, maxBytes)
	l.resized(cap(nd.buf) - was)
	put(nd.buf[p:p+size], v)
	nd.n++
	l.len++
}
