package lists

import (
	"bytes"
	"errors"

	"github.com/atomredis/atomredis/engine/delta"
)

// This file is about lists of which only nodes at the ends are in memory. All others are stored, and in their place is
// one node, the gap, that has no elements and counts theirs. Elements may be added and taken at the ends, as long as a
// node of that end stays in memory, and be read there. For everything else the gap must be filled.

// StatePart returns the name of the part that says what the nodes do not.
func StatePart() []byte { return []byte(stateName) }

// LastPart returns a name behind those of all parts.
func LastPart() []byte { return bytes.Repeat([]byte{0xff}, nameLen+1) }

// CountPart returns how many elements the node has that is stored as the part with the given name and data.
func CountPart(name, data []byte) (int, error) {
	nd, err := decodeNode(name, data)
	return nd.n, err
}

var errGap = errors.New("list: the stored nodes have not as many elements as they should have")

// NewPartial returns a list of n elements that is stored in parts, and of which nothing is in memory. Its changes are
// noted in log.
func NewPartial(n int, limit Limit, log *delta.Log) *List {
	l := New(limit)
	l.quick = true
	l.fill([]node{{n: n}})
	l.extra = &extra{log: log, names: make([]string, len(l.ring))}
	return l
}

// away reports whether the node is the gap.
func (nd *node) away() bool { return nd.n > 0 && len(nd.buf) == 0 }

// gap returns the number of the node that is the gap, -1 if there is none.
func (l *List) gap() int {
	if l.extra == nil || l.extra.names == nil {
		return -1
	}
	if i, _ := l.find(l.extra.gap); i < l.nodes && l.at(i).away() {
		return i
	}
	return -1
}

// Reached returns how many elements there are in memory from either end on.
func (l *List) Reached() (front, back int) {
	i := l.gap()
	if i < 0 {
		return l.len, l.len
	}
	front = l.at(i).start - l.at(0).start
	return front, l.len - front - l.at(i).n
}

// Gap returns the names of the parts between which all are away; ok is false if none are. A name is empty if there is no
// such part.
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

// SetState takes what is stored as StatePart.
func (l *List) SetState(data []byte) error {
	quick, rest, err := decodeState(data)
	if err == nil && len(rest) > 0 {
		err = errFormat
	}
	l.quick = quick
	return err
}

// Nodes that were read, with their names.
type Nodes struct {
	names []string
	nodes []node
}

// Add adds a node with the data of a part, which comes behind those that were added before. It returns how many elements
// it has. Neither argument is kept.
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

// Len returns how many nodes there are.
func (n *Nodes) Len() int { return len(n.nodes) }

// Reach puts nodes into the gap that are next to its front, or to its back. It counts as no change.
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
				name = names[len(names)-1] + "\x00" // before the name of whatever follows
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

// Fill puts what whole has there into the gap, which it is then rid of. whole is the list as it is stored.
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
