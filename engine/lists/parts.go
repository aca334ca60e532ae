package lists

import (
	"encoding/binary"
	"math"
	"sort"
	"unsafe"
)

// This file handles tracked lists: every node has a name, under which it is stored as a part, and every change of a
// node is noted.

// partBytes is the memory of a node's name.
const partBytes = int(unsafe.Sizeof("")) + nameLen

// nameLen is the length of a node's name.
const nameLen = 8

// stateName is the name of the part with the list's state beside its nodes. It sorts before all names of nodes.
const stateName = "\x00"

const (
	// middle is the number of a list's first node.
	middle = 1 << 63
	// spacing is the distance of a new node at either end from its neighbour. It leaves room for 2^32 nodes at either
	// end, and between two neighbours for about 31 insertions in the same place.
	spacing = 1 << 31
)

func nameOf(number uint64) string {
	var name [nameLen]byte
	binary.BigEndian.PutUint64(name[:], number)
	return string(name[:])
}

func numberOf(name string) uint64 { return binary.BigEndian.Uint64(view(name)) }

// view returns the bytes of s, which must not be changed.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// spaced returns names for n nodes, with room at the ends and between them.
func spaced(n int) []string {
	names := make([]string, n)
	number := uint64(middle) - uint64(n/2)*spacing
	for i := range names {
		names[i] = nameOf(number)
		number += spacing
	}
	return names
}

// tracked reports whether the list tracks its changes.
func (l *List) tracked() bool { return l.extra != nil && l.extra.log != nil }

// note must be called before node i changes, while nodes and names agree or the node is already noted.
func (l *List) note(i int) {
	if l.tracked() {
		l.noteNode(i)
	}
}

func (l *List) noteNode(i int) { l.notePart(l.extra.names[l.slot(i)]) }

func (l *List) notePart(name string) {
	l.extra.log.Before(view(name), l)
	l.extra.log.After(name, l.nodes)
}

// noteState must be called before quick changes.
func (l *List) noteState() {
	if l.tracked() {
		l.notePart(stateName)
	}
}

// noteIfHas must be called before elements equal to v are removed from node i. If the list is tracked, it reports
// whether there are any.
func (l *List) noteIfHas(i int, v []byte) bool {
	if !l.tracked() {
		return true
	}
	if _, k := l.at(i).find(v); k < 0 {
		return false
	}
	l.note(i)
	return true
}

// noteGone must be called before n nodes, starting at j, are removed. It removes their names.
func (l *List) noteGone(j, n int) {
	if !l.tracked() {
		return
	}
	names := l.extra.names
	for i := j; i < j+n; i++ {
		if name := names[l.slot(i)]; name != "" { // else the node has moved
			l.notePart(name)
		}
	}
	for i := j; i < j+n; i++ {
		names[l.slot(i)] = ""
	}
}

// newName returns the name for a node to be inserted as node j, and notes its appearance. It returns "" if the list is
// not tracked.
func (l *List) newName(j int) string {
	if !l.tracked() {
		return ""
	}
	number, ok := l.newNumber(j)
	if !ok {
		l.rename()
		number, _ = l.newNumber(j)
	}
	name := nameOf(number)
	l.notePart(name)
	return name
}

// newNumber returns the number for a new node j; ok is false if none is free between its neighbours.
func (l *List) newNumber(j int) (number uint64, ok bool) {
	if l.nodes == 0 {
		return middle, true
	}
	lo, hi := uint64(0), uint64(math.MaxUint64)
	if j > 0 {
		lo = numberOf(l.extra.names[l.slot(j-1)])
	}
	if j < l.nodes {
		hi = numberOf(l.extra.names[l.slot(j)])
	}
	switch {
	case hi-lo <= 1:
		return 0, false
	case j == l.nodes && hi-lo > spacing:
		return lo + spacing, true
	case j == 0 && hi-lo > spacing:
		return hi - spacing, true
	}
	return lo + (hi-lo)/2, true
}

// rename gives all nodes new names, with room between them. All parts change.
func (l *List) rename() {
	x := l.extra
	names := spaced(l.nodes)
	// A node may get the former name of another one.
	for i, name := range names {
		x.log.Before(view(x.names[l.slot(i)]), l)
		x.log.Before(view(name), l)
	}
	for i, name := range names {
		slot := l.slot(i)
		x.log.After(x.names[slot], l.nodes)
		x.log.After(name, l.nodes)
		x.names[slot] = name
	}
}

// find returns the node with the given name; ok is false if there is none.
func (l *List) find(name string) (i int, ok bool) {
	names := l.extra.names
	i = sort.Search(l.nodes, func(i int) bool { return names[l.slot(i)] >= name })
	return i, i < l.nodes && names[l.slot(i)] == name
}
