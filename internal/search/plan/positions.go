package plan

import (
	"math"
	"slices"
)

// places has the positions of a child's words in a document, ascending, and how far they have been read.
type places struct {
	list []uint32
	at   int
}

// appendPositions appends the positions of the words of an iterator's match, ascending.
func appendPositions(buf []uint32, it iterator) []uint32 {
	begin := len(buf)
	switch it := bare(it).(type) {
	case *term:
		return append(buf, it.reader.Offsets()...)
	case *optional:
		if it.matches() {
			return appendPositions(buf, it.child)
		}
	case *union:
		for _, i := range it.matching() {
			buf = appendPositions(buf, it.children[i])
		}
		if len(it.matching()) > 1 {
			slices.Sort(buf[begin:])
		}
	case *intersect:
		for _, c := range it.children {
			buf = appendPositions(buf, c)
		}
		slices.Sort(buf[begin:])
	case *knn:
		if it.filter != nil {
			return appendPositions(buf, it.filter)
		}
	}
	return buf
}

// within reports whether the words of the present document meet the required slop and order. It ignores children
// without positions.
func (n *intersect) within() bool {
	list := n.places[:0]
	for _, c := range n.children {
		if len(list) < cap(list) {
			list = list[:len(list)+1]
		} else {
			list = append(list, places{})
		}
		p := &list[len(list)-1]
		p.at = 0
		if p.list = appendPositions(p.list[:0], c); len(p.list) == 0 {
			list = list[:len(list)-1]
		}
	}
	n.places = list
	switch {
	case len(list) < 2:
		return true
	case n.inOrder:
		return ordered(list, n.slop)
	}
	return unordered(list, n.slop)
}

// ordered reports whether each child has a position after that of the child before, with at most slop other words
// between them.
func ordered(list []places, slop int) bool {
	for _, first := range list[0].list {
		last, gaps := first, 0
		for i := 1; i < len(list); i++ {
			p := &list[i]
			for p.at < len(p.list) && p.list[p.at] <= last {
				p.at++
			}
			if p.at == len(p.list) {
				return false
			}
			gaps += int(p.list[p.at]-last) - 1
			last = p.list[p.at]
			if gaps > slop {
				break
			}
		}
		if gaps <= slop {
			return true
		}
	}
	return false
}

// unordered reports whether each child has a position such that at most slop other words are between the first and
// the last of them.
func unordered(list []places, slop int) bool {
	last := uint32(0)
	for i := range list {
		last = max(last, list[i].list[0])
	}
	for {
		lowest := &list[0]
		for i := range list {
			if p := &list[i]; p.list[p.at] < lowest.list[lowest.at] {
				lowest = p
			}
		}
		if first := lowest.list[lowest.at]; first != last && int(last-first)-(len(list)-1) <= slop {
			return true
		}
		if lowest.at++; lowest.at == len(lowest.list) {
			return false
		}
		last = max(last, lowest.list[lowest.at])
	}
}

// distances measures the distances between the words of matches. It has memory for their positions.
type distances struct{ before, next []uint32 }

// of returns the distance of a match: the older scorers divide by it. It is the square root of the sum of the
// squared smallest distances between each child with words and the next one. Words at the same position count as one
// apart.
func (d *distances) of(it iterator) int {
	switch it := bare(it).(type) {
	case *knn:
		if it.matches() {
			return d.of(it.filter)
		}
	case *optional:
		if it.matches() {
			return d.of(it.child)
		}
	case *intersect:
		return d.between(len(it.children), func(i int) iterator { return it.children[i] })
	case *union:
		hits := it.matching()
		return d.between(len(hits), func(i int) iterator { return it.children[hits[i]] })
	}
	return 1
}

// between is the distance of n children.
func (d *distances) between(n int, child func(i int) iterator) int {
	if n < 2 {
		return 1
	}
	d.before = d.before[:0]
	sum := 0
	for i := range n {
		d.next = appendPositions(d.next[:0], child(i))
		if len(d.next) == 0 {
			continue
		}
		if len(d.before) > 0 {
			apart := least(d.before, d.next)
			sum += apart * apart
		}
		d.before, d.next = d.next, d.before
	}
	if sum == 0 {
		return n - 1
	}
	return int(math.Sqrt(float64(sum)))
}

// least returns the smallest distance between two ascending lists.
func least(a, b []uint32) int {
	found := -1
	for len(a) > 0 && len(b) > 0 && (found < 0 || found > 1) {
		x, y := int(a[0]), int(b[0])
		if d := max(x-y, y-x); found < 0 || d < found {
			found = d
		}
		if y > x {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return found
}
