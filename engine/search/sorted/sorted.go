// Package sorted has sorted sequences: B-trees with positions, whose views can be read while the tree changes.
//
// A tree belongs to its index, whose lock protects it: one goroutine at a time changes it, and no view is taken
// meanwhile. Any number of goroutines may take and read views. A change copies the nodes on its path that views share,
// once after each view: about 3 KB.
//
// Leaves have memory for their content and an eighth more, so an item takes little more than its own size.
package sorted

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

const (
	maxItems = 128 // of a leaf
	maxKids  = 64  // of an inner node
)

// Tree is a sorted sequence of distinct items.
type Tree[T any] struct {
	View[T]
	cmp    func(a, b T) int
	epoch  uint64      // of nodes that no view shares
	viewed atomic.Bool // a view was taken since epoch began
	bytes  int
}

// node is a leaf with items, or an inner node with kids. It has at least one.
type node[T any] struct {
	epoch uint64
	items []T
	kids  []kid[T]
}

// kid is a node below another one.
type kid[T any] struct {
	first T // the first item below it
	node  *node[T]
	n     int // number of items below it
}

// New returns an empty tree, in the order of cmp.
func New[T any](cmp func(a, b T) int) *Tree[T] { return &Tree[T]{cmp: cmp} }

// Bytes returns the memory that the tree takes.
func (t *Tree[T]) Bytes() int { return int(unsafe.Sizeof(*t)) + t.bytes }

// Freeze returns a view of the tree that later changes do not affect.
func (t *Tree[T]) Freeze() View[T] {
	if !t.viewed.Load() {
		t.viewed.Store(true)
	}
	return t.View
}

// change starts a change.
func (t *Tree[T]) change() {
	if t.viewed.Load() {
		t.viewed.Store(false)
		t.epoch++
	}
}

func (t *Tree[T]) newNode() *node[T] {
	t.bytes += int(unsafe.Sizeof(node[T]{}))
	return &node[T]{epoch: t.epoch}
}

// drop subtracts a node that has left the tree from the memory.
func (t *Tree[T]) drop(n *node[T]) {
	t.setItems(n.items, nil)
	t.setKids(n.kids, nil)
	t.bytes -= int(unsafe.Sizeof(*n))
}

func (t *Tree[T]) setItems(from, to []T) []T {
	var item T
	t.bytes += (cap(to) - cap(from)) * int(unsafe.Sizeof(item))
	return to
}

func (t *Tree[T]) setKids(from, to []kid[T]) []kid[T] {
	t.bytes += (cap(to) - cap(from)) * int(unsafe.Sizeof(kid[T]{}))
	return to
}

// own returns a node with the content of n that no view shares.
func (t *Tree[T]) own(n *node[T]) *node[T] {
	if n.epoch == t.epoch {
		return n
	}
	o := t.newNode()
	o.items = t.setItems(nil, roomy(n.items))
	o.kids = t.setKids(nil, roomy(n.kids))
	t.drop(n)
	return o
}

// roomy returns a copy of s with an eighth of spare room, nil for an empty s.
func roomy[E any](s []E) []E {
	if len(s) == 0 {
		return nil
	}
	return append(slices.Grow([]E(nil), len(s)+len(s)/8+1), s...)
}

// first returns the first item below a node.
func (n *node[T]) first() T {
	if n.kids == nil {
		return n.items[0]
	}
	return n.kids[0].first
}

// kidOf returns the kid of an inner node under which an item is or belongs.
func (t *Tree[T]) kidOf(n *node[T], item T) int {
	lo, hi := 1, len(n.kids)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); t.cmp(n.kids[mid].first, item) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// Set adds an item, or replaces an equal one. It reports whether it added one.
func (t *Tree[T]) Set(item T) bool {
	t.change()
	if t.root == nil {
		t.root = t.newNode()
	} else {
		t.root = t.own(t.root)
	}
	added, right := t.set(t.root, item, true)
	if right != nil {
		left := t.root
		total := t.n + 1
		n := count(right)
		t.root = t.newNode()
		t.root.kids = t.setKids(nil, []kid[T]{{left.first(), left, total - n}, {right.first(), right, n}})
	}
	if added {
		t.n++
	}
	return added
}

// count returns the number of items below a node.
func count[T any](n *node[T]) int {
	total := len(n.items)
	for i := range n.kids {
		total += n.kids[i].n
	}
	return total
}

// set is Set for the items below n, which no view shares. last says that n is the last node. If n becomes too large,
// its right part moves to right.
func (t *Tree[T]) set(n *node[T], item T, last bool) (added bool, right *node[T]) {
	if n.kids == nil {
		i, found := slices.BinarySearchFunc(n.items, item, t.cmp)
		if found {
			n.items[i] = item
			return false, nil
		}
		if len(n.items) == cap(n.items) {
			n.items = t.setItems(n.items, roomy(n.items))
		}
		old := n.items
		n.items = t.setItems(old, slices.Insert(n.items, i, item))
		if len(n.items) <= maxItems {
			return true, nil
		}
		at := len(n.items) / 2
		if last && i == len(n.items)-1 { // items added in order fill the leaves
			at = i
		}
		right = t.newNode()
		right.items = t.setItems(nil, roomy(n.items[at:]))
		n.items = t.setItems(n.items, append([]T(nil), n.items[:at]...))
		return true, right
	}
	i := t.kidOf(n, item)
	k := &n.kids[i]
	k.node = t.own(k.node)
	added, other := t.set(k.node, item, last && i == len(n.kids)-1)
	if added {
		k.n++
	}
	k.first = k.node.first()
	if other == nil {
		return added, nil
	}
	moved := count(other)
	k.n -= moved
	if len(n.kids) == cap(n.kids) {
		n.kids = t.setKids(n.kids, roomy(n.kids))
	}
	old := n.kids
	n.kids = t.setKids(old, slices.Insert(n.kids, i+1, kid[T]{other.first(), other, moved}))
	if len(n.kids) <= maxKids {
		return added, nil
	}
	at := len(n.kids) / 2
	if last && i+1 == len(n.kids)-1 {
		at = i + 1
	}
	right = t.newNode()
	right.kids = t.setKids(nil, roomy(n.kids[at:]))
	n.kids = t.setKids(n.kids, append([]kid[T](nil), n.kids[:at]...))
	return added, right
}

// Delete removes an item. It reports whether it existed.
func (t *Tree[T]) Delete(item T) bool {
	if t.root == nil {
		return false
	}
	t.change()
	t.root = t.own(t.root)
	if !t.delete(t.root, item) {
		return false
	}
	t.n--
	for len(t.root.kids) == 1 {
		below := t.root.kids[0].node
		t.drop(t.root)
		t.root = below
	}
	if t.n == 0 {
		t.drop(t.root)
		t.root = nil
	}
	return true
}

// delete removes an item below n, which no view shares, if it exists. n may become empty.
func (t *Tree[T]) delete(n *node[T], item T) bool {
	if n.kids == nil {
		i, found := slices.BinarySearchFunc(n.items, item, t.cmp)
		if !found {
			return false
		}
		n.items = slices.Delete(n.items, i, i+1)
		if cap(n.items) > 2*len(n.items)+8 {
			n.items = t.setItems(n.items, roomy(n.items))
		}
		return true
	}
	i := t.kidOf(n, item)
	k := &n.kids[i]
	k.node = t.own(k.node)
	if !t.delete(k.node, item) {
		return false
	}
	k.n--
	if k.n == 0 {
		t.drop(k.node)
		n.kids = slices.Delete(n.kids, i, i+1)
		return true
	}
	k.first = k.node.first()
	for _, left := range [2]int{i - 1, i} {
		if left >= 0 && left+1 < len(n.kids) && t.join(n, left) {
			break
		}
	}
	return true
}

// join merges two neighbours below n if they are small.
func (t *Tree[T]) join(n *node[T], i int) bool {
	a, b := &n.kids[i], &n.kids[i+1]
	items, kids := len(a.node.items)+len(b.node.items), len(a.node.kids)+len(b.node.kids)
	if items > maxItems/2 || kids > maxKids/2 {
		return false
	}
	a.node = t.own(a.node)
	a.node.items = t.setItems(a.node.items, roomy(slices.Concat(a.node.items, b.node.items)))
	a.node.kids = t.setKids(a.node.kids, roomy(slices.Concat(a.node.kids, b.node.kids)))
	a.n += b.n
	t.drop(b.node)
	n.kids = slices.Delete(n.kids, i+1, i+2)
	return true
}
