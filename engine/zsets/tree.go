package zsets

import "slices"

// item is a member with its score. Items are ordered by score and then by the bytes of the member.
type item struct {
	score  float64
	member string // the same string as the key in the dictionary: its bytes are stored once
}

func (a *item) less(b *item) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return a.member < b.member
}

// tree is a B+tree of items that knows how many items lie below each branch, so that a rank is found
// on the way down. Nodes may run low after deletions, but no node is empty, except for a root leaf.
type tree struct {
	root *branch
	len  int
}

// branch is a node of the tree, inner or leaf.
type branch struct {
	items  []item    // leaf: its items. Inner: items[i] is above all of kids[i] and not above any of kids[i+1]
	kids   []*branch // nil in a leaf
	counts []int     // counts[i] is the number of items below kids[i]
}

const (
	maxLeaf  = 64
	maxInner = 64
	// Leaf buffers grow in steps, because a leaf filled in random order is about two thirds full.
	leafStep = 16
)

// size is the number of items below b.
func (b *branch) size() int {
	if b.kids == nil {
		return len(b.items)
	}
	total := 0
	for _, n := range b.counts {
		total += n
	}
	return total
}

// low tells whether b should merge with a neighbour if it can.
func (b *branch) low() bool {
	if b.kids == nil {
		return len(b.items) < maxLeaf/4
	}
	return len(b.kids) < maxInner/4
}

// lower is the number of items in b that are less than it, and upper of those that are not greater.
func (b *branch) lower(it *item) int {
	lo, hi := 0, len(b.items)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if b.items[mid].less(it) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (b *branch) upper(it *item) int {
	lo, hi := 0, len(b.items)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if it.less(&b.items[mid]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// child returns the kid of an inner node that holds the item at the given rank, and its rank there.
func (b *branch) child(rank int) (i, rest int) {
	for rank >= b.counts[i] {
		rank -= b.counts[i]
		i++
	}
	return i, rank
}

// insert adds an item, which must not be in the tree.
func (t *tree) insert(it item) {
	if t.root == nil {
		t.root = new(branch)
	}
	t.len++
	if right, bound := t.root.insert(it, true); right != nil {
		left := t.root
		t.root = &branch{
			items:  []item{bound},
			kids:   []*branch{left, right},
			counts: []int{left.size(), right.size()},
		}
	}
}

// insert adds an item below b. If b had to split, it returns the new right half and a lower bound of
// its items. Last tells that b is at the right end of the tree, where a split leaves the left half
// full: items that arrive in order fill the tree densely.
func (b *branch) insert(it item, last bool) (right *branch, bound item) {
	if b.kids == nil {
		return b.insertItem(it, last)
	}
	i := b.upper(&it)
	last = last && i == len(b.items)
	kid, kidBound := b.kids[i].insert(it, last)
	b.counts[i]++
	if kid == nil {
		return nil, item{}
	}
	b.counts[i] -= kid.size()
	b.items = slices.Insert(b.items, i, kidBound)
	b.kids = slices.Insert(b.kids, i+1, kid)
	b.counts = slices.Insert(b.counts, i+1, kid.size())
	if len(b.kids) <= maxInner {
		return nil, item{}
	}
	at := len(b.kids) / 2
	if last {
		at = len(b.kids) - 1
	}
	bound = b.items[at-1]
	right = &branch{
		items:  slices.Clone(b.items[at:]),
		kids:   slices.Clone(b.kids[at:]),
		counts: slices.Clone(b.counts[at:]),
	}
	clear(b.items[at-1:])
	clear(b.kids[at:])
	b.items, b.kids, b.counts = b.items[:at-1], b.kids[:at], b.counts[:at]
	return right, bound
}

// insertItem is insert for a leaf.
func (b *branch) insertItem(it item, last bool) (right *branch, bound item) {
	i := b.lower(&it)
	if len(b.items) < maxLeaf {
		b.add(i, it)
		return nil, item{}
	}
	if last && i == maxLeaf {
		right = new(branch)
		right.add(0, it)
		return right, it
	}
	const at = maxLeaf / 2
	right = &branch{items: copyItems(b.items[at:], at+leafStep)}
	b.items = copyItems(b.items[:at], at+leafStep)
	if i <= at {
		b.add(i, it)
	} else {
		right.add(i-at, it)
	}
	return right, right.items[0]
}

// add puts an item into a leaf that has room for it.
func (b *branch) add(i int, it item) {
	n := len(b.items)
	if n == cap(b.items) {
		b.items = copyItems(b.items, min(max(2*n, 1), n+leafStep))
	}
	b.items = b.items[:n+1]
	copy(b.items[i+1:], b.items[i:n])
	b.items[i] = it
}

func copyItems(items []item, capacity int) []item {
	return append(make([]item, 0, capacity), items...)
}

// rank is the number of items that are less than it.
func (t *tree) rank(it item) int {
	b, rank := t.root, 0
	if b == nil {
		return 0
	}
	for b.kids != nil {
		i := b.upper(&it)
		for _, n := range b.counts[:i] {
			rank += n
		}
		b = b.kids[i]
	}
	return rank + b.lower(&it)
}

// first is the number of items before the first one for which reached is true. Once reached, it must
// be true for all items after.
func (t *tree) first(reached func(score float64, member string) bool) int {
	b, rank := t.root, 0
	if b == nil {
		return 0
	}
	for {
		lo, hi := 0, len(b.items)
		for lo < hi {
			mid := int(uint(lo+hi) / 2)
			if reached(b.items[mid].score, b.items[mid].member) {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		if b.kids == nil {
			return rank + lo
		}
		for _, n := range b.counts[:lo] {
			rank += n
		}
		b = b.kids[lo]
	}
}

// at returns the item at a rank, which must exist.
func (t *tree) at(rank int) item {
	b := t.root
	for b.kids != nil {
		var i int
		i, rank = b.child(rank)
		b = b.kids[i]
	}
	return b.items[rank]
}

// ascend calls fn with the items from the given rank on, which must exist, until fn returns false.
func (b *branch) ascend(rank int, fn func(*item) bool) bool {
	if b.kids == nil {
		for i := rank; i < len(b.items); i++ {
			if !fn(&b.items[i]) {
				return false
			}
		}
		return true
	}
	i, rank := b.child(rank)
	for ; i < len(b.kids); i++ {
		if !b.kids[i].ascend(rank, fn) {
			return false
		}
		rank = 0
	}
	return true
}

// descend calls fn with the items from the given rank down, until fn returns false.
func (b *branch) descend(rank int, fn func(*item) bool) bool {
	if b.kids == nil {
		for i := rank; i >= 0; i-- {
			if !fn(&b.items[i]) {
				return false
			}
		}
		return true
	}
	i, rank := b.child(rank)
	for {
		if !b.kids[i].descend(rank, fn) {
			return false
		}
		if i--; i < 0 {
			return true
		}
		rank = b.counts[i] - 1
	}
}

// remove removes n items from the given rank on, which must exist, and calls fn with each of them.
func (t *tree) remove(rank, n int, fn func(item)) {
	for n > 0 {
		removed := t.root.remove(rank, n, fn)
		t.len -= removed
		n -= removed
		for t.root.kids != nil && len(t.root.kids) < 2 {
			if len(t.root.kids) == 0 {
				t.root = new(branch)
			} else {
				t.root = t.root.kids[0]
			}
		}
	}
}

// remove removes up to n items from the given rank on, as many as are in one leaf.
func (b *branch) remove(rank, n int, fn func(item)) int {
	if b.kids == nil {
		end := min(rank+n, len(b.items))
		for _, it := range b.items[rank:end] {
			fn(it)
		}
		b.items = slices.Delete(b.items, rank, end)
		return end - rank
	}
	i, rank := b.child(rank)
	removed := b.kids[i].remove(rank, n, fn)
	b.counts[i] -= removed
	switch {
	case b.counts[i] == 0:
		b.drop(i)
	case b.kids[i].low():
		if i == 0 || !b.merge(i-1) {
			b.merge(i)
		}
	}
	return removed
}

// drop takes kid i out of an inner node. The kid before it inherits its range, or the one after it if
// it was the first.
func (b *branch) drop(i int) {
	b.kids = slices.Delete(b.kids, i, i+1)
	b.counts = slices.Delete(b.counts, i, i+1)
	if len(b.items) > 0 {
		i = max(i-1, 0)
		b.items = slices.Delete(b.items, i, i+1)
	}
}

// merge puts kid i+1 into kid i, if there is one and both together leave room to grow. It reports
// whether it did.
func (b *branch) merge(i int) bool {
	if i+1 >= len(b.kids) {
		return false
	}
	left, right := b.kids[i], b.kids[i+1]
	if left.kids == nil {
		n := len(left.items) + len(right.items)
		if n > maxLeaf*3/4 {
			return false
		}
		if n > cap(left.items) {
			left.items = copyItems(left.items, (n/leafStep+1)*leafStep)
		}
		left.items = append(left.items, right.items...)
	} else {
		if len(left.kids)+len(right.kids) > maxInner*3/4 {
			return false
		}
		left.items = append(append(left.items, b.items[i]), right.items...)
		left.kids = append(left.kids, right.kids...)
		left.counts = append(left.counts, right.counts...)
	}
	b.counts[i] += b.counts[i+1]
	b.drop(i + 1)
	return true
}

// clone returns an independent copy. The strings are shared.
func (t *tree) clone() tree {
	c := *t
	if c.root != nil {
		c.root = c.root.clone()
	}
	return c
}

func (b *branch) clone() *branch {
	c := &branch{items: slices.Clone(b.items), counts: slices.Clone(b.counts)}
	if b.kids != nil {
		c.kids = make([]*branch, len(b.kids))
		for i, kid := range b.kids {
			c.kids[i] = kid.clone()
		}
	}
	return c
}
