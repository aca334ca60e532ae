package sorted

import "sort"

// View is a tree at one instant, or for a Tree's own View the present tree. The start of a walk is given by a function
// before: it returns true for all items before the start, and false for all others.
type View[T any] struct {
	root *node[T] // nil if it is empty
	n    int
}

// Len returns the number of items.
func (v View[T]) Len() int { return v.n }

// Rank returns the number of items before the start.
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

// enter returns the kid of an inner node with the start, or the last kid.
func (n *node[T]) enter(before func(T) bool) int {
	return sort.Search(len(n.kids)-1, func(i int) bool { return !before(n.kids[i+1].first) })
}

// start returns the index of the start within a leaf.
func (n *node[T]) start(before func(T) bool) int {
	return sort.Search(len(n.items), func(i int) bool { return !before(n.items[i]) })
}

// Ascend calls do for the items from the start on, in order, until do returns false.
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
		before = nil // the following kids are after the start
	}
	return true
}

// Descend calls do for the items before the start, last first, until do returns false.
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
		before = nil // the preceding kids are before the start
	}
	return true
}
