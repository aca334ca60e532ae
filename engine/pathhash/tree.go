// Package pathhash has path hashes: paths, which are byte strings, each with fields and their values as in a hash. They
// find the paths that are prefixes of a text, and those that begin with one.
//
// The paths are a radix tree: a node stands for the text on the way to it, and its children begin with different bytes.
// A path costs a node, and paths with a common beginning share it. Lookups take as many steps as the text has nodes.
//
// Arguments are copied. Slices that a Tree returns are views: read-only, and valid until its next change.
package pathhash

import (
	"bytes"
	"slices"
	"sort"
	"unsafe"

	"github.com/atomredis/atomredis/engine/hashes"
)

// limits are those of the fields of a path in one piece of memory.
var limits = hashes.Limits{Entries: 128, Value: 64}

// Tree is a path hash. It has no lock. Make one with New.
type Tree struct {
	root   node
	paths  int
	memory int // bytes that nodes, labels and fields take
	track  *tracking
}

// node is the end of a path, or a place where paths part.
type node struct {
	label string  // from the parent to here
	kids  []*node // by their first bytes
	entry *entry  // nil if no path ends here
}

// entry has the fields of a path, at least one.
type entry struct {
	fields hashes.Hash
	noted  uint32 // the last epoch in which a change was noted
}

const (
	nodeSize  = int(unsafe.Sizeof(node{}))
	entrySize = int(unsafe.Sizeof(entry{}) - unsafe.Sizeof(hashes.Hash{}))
)

// New returns a path hash without paths.
func New() *Tree { return new(Tree) }

// Len returns the number of paths.
func (t *Tree) Len() int { return t.paths }

// MemoryUsage returns about how many bytes of memory the path hash takes, in constant time.
func (t *Tree) MemoryUsage() int { return int(unsafe.Sizeof(*t)) + t.memory }

// size returns how many bytes a node takes without its fields.
func (n *node) size() int { return nodeSize + len(n.label) + 8*cap(n.kids) }

// size returns how many bytes the fields of a path take.
func (e *entry) size() int { return entrySize + e.fields.MemoryUsage() }

// kid returns the index that a child that begins with c has or would have, and whether there is one.
func (n *node) kid(c byte) (i int, ok bool) {
	i = sort.Search(len(n.kids), func(i int) bool { return n.kids[i].label[0] >= c })
	return i, i < len(n.kids) && n.kids[i].label[0] == c
}

// common returns the length of the common beginning of a label and a text.
func common(label string, text []byte) int {
	n := min(len(label), len(text))
	for i := range n {
		if label[i] != text[i] {
			return i
		}
	}
	return n
}

// find returns the fields of a path, nil if there is no such path.
func (t *Tree) find(path []byte) *entry {
	n := &t.root
	for len(path) > 0 {
		i, ok := n.kid(path[0])
		if !ok || common(n.kids[i].label, path) < len(n.kids[i].label) {
			return nil
		}
		n = n.kids[i]
		path = path[len(n.label):]
	}
	return n.entry
}

// Get returns the fields of a path, nil if there is no such path. The caller must not change them.
func (t *Tree) Get(path []byte) *hashes.Hash {
	if e := t.find(path); e != nil {
		return &e.fields
	}
	return nil
}

// resized corrects the memory after a node has changed its size.
func (t *Tree) resized(n *node, was int) { t.memory += n.size() - was }

// node returns the node at the end of a path, which it makes if there is none.
func (t *Tree) node(path []byte) *node {
	n := &t.root
	for len(path) > 0 {
		i, ok := n.kid(path[0])
		if !ok {
			was := n.size()
			leaf := &node{label: string(path)}
			n.kids = slices.Insert(n.kids, i, leaf)
			t.resized(n, was)
			t.resized(leaf, 0)
			return leaf
		}
		k := n.kids[i]
		if at := common(k.label, path); at < len(k.label) { // the paths part here
			was := k.size()
			middle := &node{label: k.label[:at], kids: []*node{k}}
			k.label = k.label[at:]
			n.kids[i] = middle
			t.resized(k, was)
			t.resized(middle, 0)
			k = middle
		}
		n, path = k, path[len(k.label):]
	}
	return n
}

// Set gives a field of a path a value.
func (t *Tree) Set(path, field, value []byte) {
	e := t.find(path)
	epoch := t.note(path, e)
	if e == nil {
		e = &entry{noted: epoch}
		t.node(path).entry = e
		t.paths++
		t.memory += e.size()
	}
	was := e.size()
	e.fields.Set(field, value, limits)
	t.memory += e.size() - was
}

// DeleteField removes a field of a path, and the path if that was the last one. It reports whether there was such a
// field.
func (t *Tree) DeleteField(path, field []byte) bool {
	e := t.find(path)
	if e == nil || !e.fields.Has(field) {
		return false
	}
	if e.fields.Len() == 1 {
		return t.Delete(path)
	}
	t.note(path, e)
	was := e.size()
	e.fields.Delete(field)
	t.memory += e.size() - was
	return true
}

// Delete removes a path, and reports whether there was one.
func (t *Tree) Delete(path []byte) bool {
	e := t.find(path)
	if e == nil {
		return false
	}
	t.note(path, e)
	t.remove(&t.root, path)
	return true
}

// remove removes the path that ends at some bytes below a node.
func (t *Tree) remove(n *node, rest []byte) {
	if len(rest) == 0 {
		t.drop(n)
		return
	}
	i, _ := n.kid(rest[0])
	t.remove(n.kids[i], rest[len(n.kids[i].label):])
	t.tidy(n, i)
}

// drop removes the fields of the path that ends at a node, if one does.
func (t *Tree) drop(n *node) {
	if n.entry != nil {
		t.memory -= n.entry.size()
		t.paths--
		n.entry = nil
	}
}

// tidy removes child i of a node if nothing is left in it, or joins it with its only child.
func (t *Tree) tidy(n *node, i int) {
	k := n.kids[i]
	switch {
	case k.entry != nil || len(k.kids) > 1:
		return
	case len(k.kids) == 1:
		only := k.kids[0]
		was := k.size() + only.size()
		only.label = k.label + only.label
		n.kids[i] = only
		t.resized(only, was)
		return
	}
	was := n.size() + k.size()
	n.kids = slices.Delete(n.kids, i, i+1)
	if len(n.kids) < cap(n.kids)/4 {
		n.kids = slices.Clone(n.kids)
	}
	t.resized(n, was)
}

// DeletePrefix removes the paths that begin with a prefix, and returns how many there were.
func (t *Tree) DeletePrefix(prefix []byte) int {
	was := t.paths
	if t.track != nil {
		for path, e := range t.from(prefix) {
			if !bytes.HasPrefix(path, prefix) {
				break
			}
			t.note(path, e)
		}
	}
	t.cut(&t.root, prefix)
	return was - t.paths
}

// cut removes the paths below a node that begin with some bytes.
func (t *Tree) cut(n *node, prefix []byte) {
	if len(prefix) == 0 {
		t.drop(n)
		was := n.size()
		for _, k := range n.kids {
			t.cut(k, nil)
			was += k.size()
		}
		n.kids = nil
		t.resized(n, was)
		return
	}
	i, ok := n.kid(prefix[0])
	if !ok {
		return
	}
	k := n.kids[i]
	switch at := common(k.label, prefix); {
	case at == len(prefix):
		t.cut(k, nil)
	case at == len(k.label):
		t.cut(k, prefix[at:])
	default:
		return
	}
	t.tidy(n, i)
}

// Prefixes calls fn with the length and the fields of the paths that are prefixes of a text, in the order of their
// lengths, until fn returns false.
func (t *Tree) Prefixes(text []byte, fn func(length int, fields *hashes.Hash) bool) {
	n, at := &t.root, 0
	for {
		if n.entry != nil && !fn(at, &n.entry.fields) || at == len(text) {
			return
		}
		i, ok := n.kid(text[at])
		if !ok || common(n.kids[i].label, text[at:]) < len(n.kids[i].label) {
			return
		}
		n = n.kids[i]
		at += len(n.label)
	}
}

// Ascend iterates over the paths from a text on, in order, with their fields.
func (t *Tree) Ascend(from []byte) func(yield func(path []byte, fields *hashes.Hash) bool) {
	return func(yield func(path []byte, fields *hashes.Hash) bool) {
		for path, e := range t.from(from) {
			if !yield(path, &e.fields) {
				return
			}
		}
	}
}

func (t *Tree) from(from []byte) func(yield func(path []byte, e *entry) bool) {
	return func(yield func(path []byte, e *entry) bool) { t.root.ascend(make([]byte, 0, 64), from, yield) }
}

// ascend calls yield with the paths below a node, whose own path is given, that are not less than from, which is
// relative to the node. It reports whether to continue.
func (n *node) ascend(path, from []byte, yield func(path []byte, e *entry) bool) bool {
	if len(from) == 0 && n.entry != nil && !yield(path, n.entry) {
		return false
	}
	first := 0
	if len(from) > 0 {
		first, _ = n.kid(from[0])
	}
	for _, k := range n.kids[first:] {
		rest := from
		switch at := common(k.label, from); {
		case at == len(from):
			rest = nil
		case at == len(k.label):
			rest = from[at:]
		case k.label[at] < from[at]:
			continue
		default:
			rest = nil
		}
		if !k.ascend(append(path, k.label...), rest, yield) {
			return false
		}
	}
	return true
}

// Clone returns a copy that does not track its changes.
func (t *Tree) Clone() *Tree {
	c := New()
	for path, e := range t.from(nil) {
		copied := &entry{fields: *e.fields.Clone()}
		c.node(path).entry = copied
		c.paths++
		c.memory += copied.size()
	}
	return c
}
