package plan

import "slices"

// best keeps the k best of many.
type best[T any] struct {
	k     int
	less  func(a, b *T) bool // a is better
	items []T                // once there are k, a heap with the worst on top
	next  T                  // the last offered item; a field, so that it needs no allocation
}

// full reports whether there are k items, so that only items better than the worst are accepted.
func (b *best[T]) full() bool { return len(b.items) == b.k }

// offer takes an item if it is among the k best so far.
func (b *best[T]) offer(item T) {
	switch {
	case len(b.items) < b.k:
		if b.items = append(b.items, item); len(b.items) == b.k {
			for i := b.k/2 - 1; i >= 0; i-- {
				b.sink(i)
			}
		}
	case b.k > 0:
		if b.next = item; b.less(&b.next, &b.items[0]) {
			b.items[0] = item
			b.sink(0)
		}
	}
}

// sink moves an item down to its place.
func (b *best[T]) sink(at int) {
	for {
		worst := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(b.items); child++ {
			if b.less(&b.items[worst], &b.items[child]) {
				worst = child
			}
		}
		if worst == at {
			return
		}
		b.items[at], b.items[worst] = b.items[worst], b.items[at]
		at = worst
	}
}

// sorted returns the items, the best first.
func (b *best[T]) sorted() []T {
	slices.SortFunc(b.items, func(x, y T) int {
		switch {
		case b.less(&x, &y):
			return -1
		case b.less(&y, &x):
			return 1
		}
		return 0
	})
	return b.items
}
