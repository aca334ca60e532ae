package lists

import (
	"math"

	"github.com/atomredis/atomredis/internal/buffers"
)

// This file changes lists in the middle, and keeps the ring of nodes in order.

// CanSet reports whether Set can replace element i, which is in memory, of a list with a gap: v must fit into the
// element's node.
func (l *List) CanSet(i int, v []byte) bool {
	if l.gap() < 0 || i < 0 || i >= l.len {
		return true
	}
	j, k := l.locate(i)
	nd := l.at(j)
	old, _ := nd.elem(nd.seek(k))
	maxBytes, _ := l.bounds()
	return nd.size()-encodedLen(len(old))+encodedLen(len(v)) <= maxBytes
}

// Set replaces element i. It returns false if there is no such element.
func (l *List) Set(i int, v []byte) bool {
	if i < 0 || i >= l.len {
		return false
	}
	j, k := l.locate(i)
	nd := l.at(j)
	p := nd.seek(k)
	old, next := nd.elem(p)
	l.note(j)
	if l.nodes == 1 && !l.quick {
		// As in Redis, which requires room for the new element beside the old one.
		maxBytes, maxEntries := l.bounds()
		l.setQuick(nd.size()+encodedLen(len(v)) > maxBytes || nd.n+1 > maxEntries)
	}
	if len(old) == len(v) {
		copy(old, v)
		return true
	}
	p = nd.cut(p, next)
	nd.n--
	l.len--
	if l.gap() >= 0 {
		l.write(j, p, encodedLen(len(v)), v) // see CanSet; which nodes could be merged is unknown
		return true
	}
	if nd.n == 0 {
		l.release(nd)
		p = 0
	}
	l.insert(j, p, k, v)
	return true
}

// InsertAt inserts v as element i of a list that is in memory; i is from 0 up to the length.
func (l *List) InsertAt(i int, v []byte) {
	if i == l.len {
		l.PushBack(v)
		return
	}
	j, k := l.locate(i)
	l.insert(j, l.at(j).seek(k), k, v)
}

// InsertBefore inserts v before the first element equal to pivot. It returns false if there is none.
func (l *List) InsertBefore(pivot, v []byte) bool {
	for j := range l.nodes {
		if p, k := l.at(j).find(pivot); k >= 0 {
			l.insert(j, p, k, v)
			return true
		}
	}
	return false
}

// InsertAfter inserts v after the first element equal to pivot. It returns false if there is none.
func (l *List) InsertAfter(pivot, v []byte) bool {
	for j := range l.nodes {
		nd := l.at(j)
		if p, k := nd.find(pivot); k >= 0 {
			_, next := nd.elem(p)
			l.insert(j, next, k+1, v)
			return true
		}
	}
	return false
}

// insert stores v in node j at offset p; k of the node's elements lie before p. If v does not fit, it goes to the end
// of a neighbour, or the node splits.
func (l *List) insert(j, p, k int, v []byte) {
	size := encodedLen(len(v))
	lo := j
	if nd := l.at(j); !l.fits(nd, size, 1) {
		switch k {
		case 0:
			if j > 0 && l.fits(l.at(j-1), size, 1) {
				j--
				p = len(l.at(j).buf)
			} else {
				p = l.insertNode(j, size, false)
			}
		case nd.n:
			j++
			if j < l.nodes && l.fits(l.at(j), size, 1) {
				p = l.at(j).head
			} else {
				p = l.insertNode(j, size, false)
			}
		default:
			l.split(j, p, k)
			if l.fits(l.at(j), size, 1) {
				p = len(l.at(j).buf)
			} else if j++; l.fits(l.at(j), size, 1) {
				p = l.at(j).head
			} else {
				p = l.insertNode(j, size, false)
			}
		}
	}
	l.write(j, p, size, v)
	l.tidy(min(lo, j), min(max(lo, j)+1, l.nodes-1))
}

// Remove removes elements equal to v and returns how many, as LREM does: the first count ones, the last ones if count
// is negative, all if it is 0.
func (l *List) Remove(count int, v []byte) int {
	left := count
	switch {
	case count == 0:
		left = math.MaxInt
	case count < 0:
		left = -(count + 1)
		if left < math.MaxInt {
			left++
		}
	}
	removed, lo, hi := 0, 0, 0 // lo and hi are the first and the last node changed
	for i := 0; i < l.nodes && removed < left; i++ {
		j, n := i, 0
		if count < 0 {
			j = l.nodes - 1 - i
		}
		if !l.noteIfHas(j, v) {
			continue
		}
		if count < 0 {
			n = l.at(j).removeLast(v, left-removed)
		} else {
			n = l.at(j).removeFirst(v, left-removed)
		}
		if n == 0 {
			continue
		}
		if removed == 0 {
			lo, hi = j, j
		}
		lo, hi = min(lo, j), max(hi, j)
		removed += n
	}
	if removed > 0 {
		l.len -= removed
		l.tidy(lo, hi)
	}
	return removed
}

// Trim keeps only the elements start to stop, both included.
func (l *List) Trim(start, stop int) {
	start, stop = max(start, 0), min(stop, l.len-1)
	if start > stop {
		l.clear()
		return
	}
	front, back := start, l.len-1-stop
	if front > 0 {
		j, k := l.locate(front)
		l.deleteNodes(0, j)
		l.note(0)
		nd := l.at(0)
		nd.head = nd.seek(k)
		nd.n -= k
		nd.start += k
		l.len -= front
		l.dropped(0)
	}
	if back > 0 {
		j, k := l.locate(l.len - back - 1)
		l.deleteNodes(j+1, l.nodes-j-1)
		l.note(j)
		nd := l.at(j)
		nd.buf = nd.buf[:nd.seek(k+1)]
		nd.n = k + 1
		l.len -= back
		l.dropped(j)
	}
}

// clear removes all elements.
func (l *List) clear() {
	l.setQuick(false)
	for i := range l.nodes {
		l.note(i)
	}
	log := l.Log()
	*l = List{limit: l.limit}
	if log != nil {
		l.extra = &extra{log: log}
	}
}

// split divides node j at offset p, which has k elements before and at least one after it.
func (l *List) split(j, p, k int) {
	l.note(j)
	nd := l.at(j)
	right := node{buf: append([]byte(nil), nd.buf[p:]...), n: nd.n - k}
	nd.buf = nd.buf[:p]
	nd.n = k
	l.makeSlot(j + 1)
	*l.at(j + 1) = right
	l.resized(cap(right.buf))
	l.compact(l.at(j))
}

// compact frees the unused room of a node that is no longer pushed to, if that is worth a copy.
func (l *List) compact(nd *node) {
	if old := nd.buf; nd.size() < cap(old)-cap(old)/8 {
		nd.buf, nd.head = append([]byte(nil), old[nd.head:]...), 0
		l.resized(cap(nd.buf) - cap(old))
		l.keep(old)
	}
}

// keep saves an unused buffer for the next node, if none is saved yet and the buffer is not too large.
func (l *List) keep(buf []byte) {
	if maxBytes, _ := l.bounds(); cap(buf) > 2*maxBytes {
		return
	}
	if x := l.extend(); x.spare == nil {
		x.spare = buf[:0]
		x.buffers += cap(buf)
	}
}

// tidy restores the invariants after nodes lo to hi have changed: it deletes empty nodes, merges neighbours that fit
// into one, renumbers, frees memory, and settles the encoding.
func (l *List) tidy(lo, hi int) {
	lo, hi = max(lo-1, 0), min(hi+1, l.nodes-1)
	left := -1 // the node that takes the next one if it fits
	for i := lo; i <= hi; i++ {
		nd := l.at(i)
		if nd.n == 0 {
			l.release(nd)
			continue
		}
		if left >= 0 && l.fits(l.at(left), nd.size(), nd.n) {
			l.note(left)
			l.note(i)
			to := l.at(left)
			maxBytes, _ := l.bounds()
			was := cap(to.buf)
			p := to.open(len(to.buf), nd.size(), maxBytes)
			l.resized(cap(to.buf) - was)
			copy(to.buf[p:], nd.buf[nd.head:])
			to.n += nd.n
			l.release(nd)
			continue
		}
		left = i
	}
	write := lo
	for i := lo; i <= hi; i++ {
		if l.at(i).n > 0 {
			l.move(write, i)
			write++
		}
	}
	l.deleteNodes(write, hi+1-write)
	if l.nodes > 0 {
		l.renumber(lo, min(write, l.nodes-1))
	}
	l.tighten()
	l.settle()
}

// renumber sets the positions after nodes lo to hi have changed. It counts from the side with fewer nodes to update,
// and stops where positions are right.
func (l *List) renumber(lo, hi int) {
	if lo < l.nodes-1-hi {
		at := l.at(hi + 1).start
		for j := hi; j >= 0; j-- {
			nd := l.at(j)
			if at -= nd.n; j < lo && nd.start == at {
				break
			}
			nd.start = at
		}
		return
	}
	for j := max(lo, 1); j < l.nodes; j++ {
		before, nd := l.at(j-1), l.at(j)
		at := before.start + before.n
		if j > hi && nd.start == at {
			break
		}
		nd.start = at
	}
}

// insertNode creates an empty node j for elements of about size bytes; atFront says that they will be pushed to its
// front. It returns the offset to write at.
func (l *List) insertNode(j, size int, atFront bool) int {
	// The only node of a small list grows as needed. Otherwise a node gets memory for all the elements of this size
	// that it may have. If later elements have other sizes, the unused room is freed when the node is full, which is
	// when the next one is created at that end.
	room := size
	if maxBytes, maxEntries := l.bounds(); l.nodes > 0 {
		room = max(min(maxBytes/size, maxEntries), 1) * size
		if j == 0 {
			l.compact(l.at(0))
		} else if j == l.nodes {
			l.compact(l.at(j - 1))
		}
	}
	var nd node
	if x := l.extra; x != nil && room <= cap(x.spare) && cap(x.spare) <= 2*room {
		nd.buf, x.spare = x.spare, nil
		x.buffers -= cap(nd.buf)
	} else {
		nd.buf = buffers.GetFitting(room)
	}
	switch {
	case j < l.nodes:
		nd.start = l.at(j).start
	case j > 0:
		last := l.at(j - 1)
		nd.start = last.start + last.n
	}
	if atFront {
		nd.buf = nd.buf[:cap(nd.buf)]
		nd.head = len(nd.buf)
	}
	l.makeSlot(j)
	*l.at(j) = nd
	l.resized(cap(nd.buf))
	return nd.head
}

// makeSlot moves nodes so that slot j is free for a new one.
func (l *List) makeSlot(j int) {
	name := l.newName(j)
	if l.nodes == len(l.ring) {
		l.resizeRing(max(1, 2*len(l.ring)))
	}
	l.nodes++
	if j < l.nodes/2 {
		l.first = (l.first - 1) & (len(l.ring) - 1)
		for i := range j {
			l.move(i, i+1)
		}
	} else {
		for i := l.nodes - 1; i > j; i-- {
			l.move(i, i-1)
		}
	}
	if l.tracked() {
		l.extra.names[l.slot(j)] = name
	}
}

// move moves the node at from to to, which is empty.
func (l *List) move(to, from int) {
	if to == from {
		return
	}
	to, from = l.slot(to), l.slot(from)
	l.ring[to], l.ring[from] = l.ring[from], node{}
	if l.tracked() {
		names := l.extra.names
		names[to], names[from] = names[from], ""
	}
}

// deleteNodes removes n nodes, starting at j, from the ring.
func (l *List) deleteNodes(j, n int) {
	if n == 0 {
		return
	}
	l.noteGone(j, n)
	for i := j; i < j+n; i++ {
		l.release(l.at(i))
	}
	if j < l.nodes-j-n {
		for i := j - 1; i >= 0; i-- {
			l.move(i+n, i)
		}
		l.first = (l.first + n) & (len(l.ring) - 1)
	} else {
		for i := j + n; i < l.nodes; i++ {
			l.move(i-n, i)
		}
	}
	l.nodes -= n
	size := len(l.ring)
	for size > 8 && l.nodes < size/4 {
		size /= 2
	}
	if size < len(l.ring) {
		l.resizeRing(size)
	}
}

// resizeRing moves the nodes to a ring of another size.
func (l *List) resizeRing(size int) {
	ring := l.newRing(size)
	for i := range l.nodes {
		ring[i] = *l.at(i)
	}
	if l.tracked() {
		names := make([]string, size)
		for i := range l.nodes {
			names[i] = l.extra.names[l.slot(i)]
		}
		l.extra.names = names
	}
	if len(l.ring) == len(l.one) {
		l.one[0] = node{}
	}
	l.setRing(ring)
}

// release empties a node and frees its buffer, or keeps it as the spare one. The node's position stays.
func (l *List) release(nd *node) {
	buf := nd.buf
	*nd = node{start: nd.start}
	l.resized(-cap(buf))
	if cap(buf) >= buffers.Large {
		buffers.Put(buf) // invalidates results of Front and Back
	} else if l.nodes > 1 {
		l.keep(buf)
	}
}
