package sorted

import "sort"

// View is a tree as it is now, or for one that Freeze returns, as it was. Where a walk begins is told by a function that
// reports whether an item comes before; it is true for the first items up to one, and false from there on.
type View[T any] struct {
	root *node[T] // nil if it is empty
	n    int
}

// Len returns how many items there are.
func (v View[T]) Len() int { return v.n }

// Rank returns how many items come before.
func (v View[T]) Rank(before func(T) bool) int {
	rank := 0
	n := v.root
	if n == nil {
		return 0
	}
	for n.kids != nil {
		i := n.enter(before)
		for _, k := range n.kids[:i] {
			rank += k.n
		}
		n = n.kids[i].node
	}
	return rank + n.start(before)
}

// enter returns the kid of an inner node under which the first item is that does not come before, or the last that does.
func (n *node[T]) enter(before func(T) bool) int {
	return sort.Search(len(n.kids)-1, func(i int) bool { return !before(n.kids[i+1].first) })
}

// start returns the place of the first item of a leaf that does not come before.
func (n *node[T]) start(before func(T) bool) int {
	return sort.Search(len(n.items), func(i int) bool { return !before(n.items[i]) })
}

// Ascend calls do for the items that do not come before, in their order, until it returns false.
func (v View[T]) Ascend(before func(T) bool, do func(T) bool) {
	if v.root != nil {
		v.root.ascend(before, do)
	}
}

func (n *node[T]) ascend(before func(T) bool, do func(T) bool) bool {
	if n.kids == nil {
		i := 0
		if before != nil {
			i = n.start(before)
		}
		for _, item := range n.items[i:] {
			if !do(item) {
				return false
			}
		}
		return true
	}
	i := 0
	if before != nil {
		i = n.enter(before)
	}
	for _, k := range n.kids[i:] {
		if !k.node.ascend(before, do) {
			return false
		}
		before = nil // nothing of the next kids does
	}
	return true
}

// Descend calls do for the items that come before, the last one first, until it returns false.
func (v View[T]) Descend(before func(T) bool, do func(T) bool) {
	if v.root != nil {
		v.root.descend(before, do)
	}
}

func (n *node[T]) descend(before func(T) bool, do func(T) bool) bool {
	if n.kids == nil {
		i := len(n.items)
		if before != nil {
			i = n.start(before)
		}
		for i--; i >= 0; i-- {
			if !do(n.items[i]) {
				return false
			}
		}
		return true
	}
	i := len(n.kids) - 1
	if before != nil {
		i = n.enter(before)
	}
	for ; i >= 0; i-- {
		if !n.kids[i].node.descend(before, do) {
			return false
		}
		before = nil // all of the kids before do
	}
	return true
}
