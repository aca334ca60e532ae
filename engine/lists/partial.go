package lists

import (
	"bytes"
	"errors"

	"github.com/atomredis/atomredis/engine/delta"
)

// This file handles lists with only the nodes at the ends in memory. All others are stored; one node, the gap, stands
// for them: it has no elements and their count. Elements at an end may be added, removed and read as long as a node of
// that end stays in memory. Everything else requires filling the gap.

// StatePart returns the name of the part with the list's state beside its nodes.
func StatePart() []byte { return []byte(stateName) }

// LastPart returns a name after those of all parts.
func LastPart() []byte { return bytes.Repeat([]byte{0xff}, nameLen+1) }

// CountPart returns the number of elements of the node that is stored as the part with the given name and data.
func CountPart(name, data []byte) (int, error) {
	nd, err := decodeNode(name, data)
	return nd.n, err
}

var errGap = errors.New("list: the stored nodes have the wrong number of elements")

// NewPartial returns a list of n elements that is stored in parts, with none of them in memory. It notes its changes in
// log.
func NewPartial(n int, limit Limit, log *delta.Log) *List {
	l := New(limit)
	l.quick = true
	l.fill([]node{{n: n}})
	l.extra = &extra{log: log, names: make([]string, len(l.ring))}
	return l
}

// away reports whether the node is the gap.
func (nd *node) away() bool { return nd.n > 0 && len(nd.buf) == 0 }

// gap returns the index of the gap, -1 if there is none.
func (l *List) gap() int {
	if l.extra == nil || l.extra.names == nil {
		return -1
	}
	if i, _ := l.find(l.extra.gap); i < l.nodes && l.at(i).away() {
		return i
	}
	return -1
}

// Reached returns how many elements at each end are in memory.
func (l *List) Reached() (front, back int) {
	i := l.gap()
	if i < 0 {
		return l.len, l.len
	}
	front = l.at(i).start - l.at(0).start
	return front, l.len - front - l.at(i).n
}

// Gap returns the names of the parts right before and after the gap; ok is false if there is no gap. A name is empty if
// there is no such part.
func (l *List) Gap() (after, before string, ok bool) {
	i := l.gap()
	if i < 0 {
		return "", "", false
	}
	if i > 0 {
		after = l.extra.names[l.slot(i-1)]
	}
	if i+1 < l.nodes {
		before = l.extra.names[l.slot(i+1)]
	}
	return after, before, true
}

// SetState decodes the data stored as StatePart.
func (l *List) SetState(data []byte) error {
	quick, rest, err := decodeState(data)
	if err == nil && len(rest) > 0 {
		err = errFormat
	}
	l.quick = quick
	return err
}

// Nodes are nodes read from the store, with their names.
type Nodes struct {
	names []string
	nodes []node
}

// Add adds a node with the data of a part, which must follow those added before. It returns the node's number of
// elements, and keeps neither argument.
func (n *Nodes) Add(name, data []byte) (elements int, err error) {
	nd, err := decodeNode(name, data)
	if err != nil {
		return 0, err
	}
	if len(n.names) > 0 && string(name) <= n.names[len(n.names)-1] {
		return 0, errOrder
	}
	n.names, n.nodes = append(n.names, string(name)), append(n.nodes, nd)
	return nd.n, nil
}

// Len returns the number of nodes.
func (n *Nodes) Len() int { return len(n.nodes) }

// Reach fills the gap partly, with nodes from its front or its back. That does not count as a change.
func (l *List) Reach(n *Nodes, back bool) error {
	i := l.gap()
	if i < 0 {
		return errGap
	}
	left := l.at(i).n
	for k := range n.nodes {
		left -= n.nodes[k].n
	}
	if left < 0 {
		return errGap
	}
	nodes := make([]node, 0, l.nodes+len(n.nodes))
	names := make([]string, 0, cap(nodes))
	add := func(nd node, name string) {
		nodes, names = append(nodes, nd), append(names, name)
	}
	for j := range l.nodes {
		if j != i {
			add(*l.at(j), l.extra.names[l.slot(j)])
			continue
		}
		for k := range n.nodes {
			if !back {
				add(n.nodes[k], n.names[k])
			}
		}
		if left > 0 {
			name := ""
			if len(names) > 0 {
				name = names[len(names)-1] + "\x00" // before any following name
			}
			l.extra.gap = name
			add(node{n: left}, name)
		}
		for k := range n.nodes {
			if back {
				add(n.nodes[k], n.names[k])
			}
		}
	}
	l.one, l.first, l.len = [1]node{}, 0, 0
	l.fill(nodes)
	l.extra.names = make([]string, len(l.ring))
	copy(l.extra.names, names)
	l.extra.buffers = l.buffers() + cap(l.extra.spare)
	return nil
}

// Fill replaces the gap by the corresponding nodes of whole, which loses them. whole is the list as stored.
func (l *List) Fill(whole *List) error {
	after, before, ok := l.Gap()
	if !ok {
		return nil
	}
	var n Nodes
	for i := range whole.nodes {
		if name := whole.extra.names[whole.slot(i)]; name > after && (before == "" || name < before) {
			n.names, n.nodes = append(n.names, name), append(n.nodes, *whole.at(i))
		}
	}
	if err := l.Reach(&n, false); err != nil {
		return err
	}
	if l.gap() >= 0 {
		return errGap
	}
	return nil
}
