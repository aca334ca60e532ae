package lists

import (
	"errors"
	"slices"

	"github.com/atomredis/atomredis/engine/delta"
)

// The stored forms. Elements are stored as in a node. A small list is stored whole: the format, a byte that is 1 for a list
// reported as quicklist, and the elements. A large list is stored in parts: the part stateName has the format and that byte;
// each other part has the format and the elements of one node. The parts' names are in the order of the nodes.

// format is the first byte of every stored form.
const format = 1

// Errors of stored data.
var (
	errFormat   = errors.New("list: unknown stored format")
	errEncoding = errors.New("list: stored encoding does not fit the elements")
	errElement  = errors.New("list: a stored element is malformed")
	errName     = errors.New("list: the name of a stored node is malformed")
	errOrder    = errors.New("list: stored nodes are out of order")
	errNoState  = errors.New("list: the state of the list is not the first of the stored parts")
	errEmpty    = errors.New("list: a stored node is empty")
)

// Large reports whether the list must be stored in parts.
func (l *List) Large() bool { return l.nodes > 1 }

// Track makes the list record changed nodes in log. All present nodes count as changed.
func (l *List) Track(log *delta.Log) {
	l.Attach(log)
	log.After(stateName, l.nodes)
	for i := range l.nodes {
		log.After(l.extra.names[l.slot(i)], l.nodes)
	}
}

// Attach makes the list record changed nodes in log, and gives them names; nil ends that.
func (l *List) Attach(log *delta.Log) {
	x := l.extend()
	x.log, x.names = log, nil
	if log == nil {
		return
	}
	x.names = make([]string, len(l.ring))
	for i, name := range spaced(l.nodes) {
		x.names[l.slot(i)] = name
	}
}

// Walk calls fn with the names of about count parts of a tracked list, in their order. Parts that exist
// from the first call to the last are visited, whatever changes between the calls.
func (l *List) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	i := 0
	if c.Name == "" {
		fn(stateName)
	} else if i, more = l.find(c.Name); more {
		i++
	}
	for ; i < l.nodes && count > 0; i++ {
		if l.at(i).away() {
			continue // not a part
		}
		c.Name = l.extra.names[l.slot(i)]
		fn(c.Name)
		count--
	}
	return c, i < l.nodes
}

// Log returns the record of changes, nil if the list has none.
func (l *List) Log() *delta.Log {
	if l.extra == nil {
		return nil
	}
	return l.extra.log
}

// AppendPart appends the stored form of a part of a tracked list to dst; ok is false if there is no such part.
func (l *List) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	if name == stateName {
		return append(dst, format, l.quickByte()), true
	}
	i, ok := l.find(name)
	if !ok {
		return dst, false
	}
	nd := l.at(i)
	return append(append(dst, format), nd.buf[nd.head:]...), true
}

// AppendBlob appends the stored form of the whole list to dst.
func (l *List) AppendBlob(dst []byte) []byte {
	dst = append(dst, format, l.quickByte())
	for i := range l.nodes {
		nd := l.at(i)
		dst = append(dst, nd.buf[nd.head:]...)
	}
	return dst
}

func (l *List) quickByte() byte {
	if l.quick {
		return 1
	}
	return 0
}

// decodeState returns whether a list is reported as quicklist, and the rest of b.
func decodeState(b []byte) (quick bool, rest []byte, err error) {
	if len(b) == 0 || b[0] != format {
		return false, nil, errFormat
	}
	if len(b) < 2 || b[1] > 1 {
		return false, nil, errEncoding
	}
	return b[1] == 1, b[2:], nil
}

// DecodeBlob returns the list that AppendBlob has stored, or an error if b is not one. It does not keep b. limit
// applies to the nodes now and later, so the list becomes a quicklist if it does not fit into one.
func DecodeBlob(b []byte, limit Limit) (*List, error) {
	quick, b, err := decodeState(b)
	if err != nil {
		return nil, err
	}
	if quick && len(b) == 0 {
		return nil, errEncoding
	}
	l := New(limit)
	var nodes []node
	for len(b) > 0 {
		var nd node
		end := 0
		for end < len(b) {
			size, ok := elementSize(b[end:])
			if !ok {
				return nil, errElement
			}
			if !l.fits(&node{buf: b[:end], n: nd.n}, size, 1) {
				break
			}
			end += size
			nd.n++
		}
		nd.buf = slices.Clone(b[:end])
		nodes = append(nodes, nd)
		b = b[end:]
	}
	l.fill(nodes)
	l.quick = quick || l.nodes > 1
	return l, nil
}

// elementSize returns the size of the element at the start of b in bytes; ok is false if b does not begin with an element.
func elementSize(b []byte) (size int, ok bool) {
	n, w := 0, 0
	for {
		if w == len(b) || w == maxLengthBytes {
			return 0, false
		}
		n |= int(b[w]&0x7f) << (7 * w)
		w++
		if b[w-1] < 0x80 {
			break
		}
	}
	if w != lengthBytes(n) || n > len(b)-2*w {
		return 0, false
	}
	size = n + 2*w
	for i := range w {
		if b[i] != b[size-1-i] {
			return 0, false
		}
	}
	return size, true
}

// maxLengthBytes is the size of the varint of the largest possible length.
const maxLengthBytes = 7

// fill gives an empty list its nodes, whose positions it sets.
func (l *List) fill(nodes []node) {
	size := 0
	for size < len(nodes) {
		size = max(1, 2*size)
	}
	ring := l.newRing(size)
	for i := range nodes {
		ring[i] = nodes[i]
		ring[i].start = l.len
		l.len += nodes[i].n
	}
	l.nodes = len(nodes)
	l.setRing(ring)
}

// Loader builds a list from its parts.
type Loader struct {
	list  *List
	state bool // seen
	nodes Nodes
}

// NewLoader returns a Loader that has no parts, for a list whose nodes will be within limit.
func NewLoader(limit Limit) *Loader { return &Loader{list: New(limit)} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no list, is an error. After an error the Loader must not be used.
func (l *Loader) Add(name, data []byte) error {
	if string(name) == stateName {
		quick, rest, err := decodeState(data)
		switch {
		case err != nil:
			return err
		case l.state:
			return errOrder
		case len(rest) > 0:
			return errFormat
		}
		l.state, l.list.quick = true, quick
		return nil
	}
	if !l.state {
		return errNoState
	}
	_, err := l.nodes.Add(name, data)
	return err
}

// decodeNode returns the node stored as the part with the given name and data, and keeps neither.
func decodeNode(name, data []byte) (nd node, err error) {
	switch {
	case len(name) != nameLen:
		return nd, errName
	case len(data) == 0 || data[0] != format:
		return nd, errFormat
	case len(data) == 1:
		return nd, errEmpty
	}
	nd.buf = slices.Clone(data[1:])
	for p := 0; p < len(nd.buf); nd.n++ {
		size, ok := elementSize(nd.buf[p:])
		if !ok {
			return nd, errElement
		}
		p += size
	}
	return nd, nil
}

// Finish returns the list, which records its changes in log.
func (l *Loader) Finish(log *delta.Log) (*List, error) {
	if !l.state {
		return nil, errNoState
	}
	if n := l.nodes.Len(); l.list.quick != (n > 1) && n != 1 {
		return nil, errEncoding
	}
	l.list.fill(l.nodes.nodes)
	names := make([]string, len(l.list.ring))
	copy(names, l.nodes.names)
	l.list.extra = &extra{buffers: l.list.buffers(), log: log, names: names}
	return l.list, nil
}
