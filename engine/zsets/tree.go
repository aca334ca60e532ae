package zsets

import (
	"unsafe"

	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// member is a member of a large set: its score and its name (dict.Text), in one piece of memory without pointers.
type member struct{ p *byte }

// minMember is the size from which the allocator aligns memory as a score needs it.
const minMember = 16

// newMember returns a member with a copy of a name.
func newMember(name []byte, score float64) member {
	b := make([]byte, max(scoreLen+dict.TextLen(name), minMember))
	dict.PutText(b[scoreLen:], name)
	m := member{unsafe.SliceData(b)}
	*m.score() = score
	return m
}

// size returns how many bytes the member takes.
func (m member) size() int {
	return listpack.Allocated(max(scoreLen+dict.TextLen(m.name()), minMember))
}

// score returns the address of the score.
func (m member) score() *float64 { return (*float64)(unsafe.Pointer(m.p)) }

// Key returns the name, which shares the memory of the member.
func (m member) Key() string { return dict.TextAt((*byte)(unsafe.Add(unsafe.Pointer(m.p), scoreLen))) }

// name returns the name as bytes, which must not be changed.
func (m member) name() []byte { return view(m.Key()) }

// item is a member in the tree, with its score (in bounds of inner nodes, a former score). Items are ordered by score
// and then by name; the member's memory is read only to distinguish equal scores.
type item struct {
	score  float64
	member member
}

func (a *item) less(b *item) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return a.member.less(b.member)
}

// less is separate so that the compiler inlines the comparison of scores.
func (m member) less(other member) bool { return m.Key() < other.Key() }

// tree is a B+tree of items with the number of items below each node, so that a rank is found on the way down. Nodes
// may have few items after deletions, but none is empty, except for a root leaf.
type tree struct {
	root *node
	len  int

	leaves, inners int // number of nodes
}

// maxItems is the number of items with which a node fills its 1024 bytes.
const maxItems = 62

// node is a node of the tree.
type node struct {
	n     int            // number of items
	inner *inner         // nil in a leaf
	items [maxItems]item // inner: items[i] is above all items below kid i, and not above any below kid i+1
}

// inner has the additional fields of an inner node: it has one more kid than items.
type inner struct {
	kids   [maxItems + 1]*node
	counts [maxItems + 1]uint32 // number of items below kids[i]
}

// memoryUsage returns how many bytes the nodes take.
func (t *tree) memoryUsage() int {
	return (t.leaves+t.inners)*int(unsafe.Sizeof(node{})) + t.inners*int(unsafe.Sizeof(inner{}))
}

// newLeaf returns a leaf for the tree.
func (t *tree) newLeaf() *node {
	t.leaves++
	return new(node)
}

// newInner returns an inner node for the tree.
func (t *tree) newInner() *node {
	t.inners++
	return &node{inner: new(inner)}
}

// lose records that a node leaves the tree.
func (t *tree) lose(b *node) {
	if b.inner == nil {
		t.leaves--
	} else {
		t.inners--
	}
}

// size returns the number of items below b.
func (b *node) size() int {
	if b.inner == nil {
		return b.n
	}
	return b.before(b.n + 1)
}

// before returns the number of items below the first kids of an inner node.
func (b *node) before(kids int) int {
	total := 0
	for _, n := range b.inner.counts[:kids] {
		total += int(n)
	}
	return total
}

// lower returns the number of items in b that are less than it, upper the number of those that are not greater.
func (b *node) lower(it *item) int {
	lo, hi := 0, b.n
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

func (b *node) upper(it *item) int {
	lo, hi := 0, b.n
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

// leaf returns the leaf for an item.
func (t *tree) leaf(it *item) *node {
	b := t.root
	for b.inner != nil {
		b = b.inner.kids[b.upper(it)]
	}
	return b
}

// child returns the index of the kid with the item at the given rank, and the item's rank there.
func (b *node) child(rank int) (i, rest int) {
	for rank >= int(b.inner.counts[i]) {
		rank -= int(b.inner.counts[i])
		i++
	}
	return i, rank
}

// insert adds a new item.
func (t *tree) insert(it item) {
	if t.root == nil {
		t.root = t.newLeaf()
	}
	t.len++
	if right, bound := t.root.insert(t, &it, true); right != nil {
		root := t.newInner()
		root.inner.kids[0], root.inner.counts[0] = t.root, uint32(t.root.size())
		root.addKid(0, bound, right)
		t.root = root
	}
}

// insert adds an item below b, a node of t. If b had to split, it returns the new right half and a lower bound of its
// items. last says that b is at the right end of the tree, where a split leaves the left half full: items that arrive
// in order fill the tree densely.
func (b *node) insert(t *tree, it *item, last bool) (right *node, bound item) {
	if b.inner == nil {
		return b.insertItem(t, it, last)
	}
	i := b.upper(it)
	last = last && i == b.n
	kid, kidBound := b.inner.kids[i].insert(t, it, last)
	b.inner.counts[i]++
	if kid == nil {
		return nil, item{}
	}
	b.inner.counts[i] -= uint32(kid.size())
	if b.n < maxItems {
		b.addKid(i, kidBound, kid)
		return nil, item{}
	}
	at := maxItems / 2
	if last {
		at = maxItems - 1
	}
	bound = b.items[at]
	right = t.newInner()
	copy(right.inner.kids[:], b.inner.kids[at+1:])
	copy(right.inner.counts[:], b.inner.counts[at+1:])
	right.n = copy(right.items[:], b.items[at+1:])
	clear(b.inner.kids[at+1:])
	clear(b.items[at:])
	b.n = at
	if i <= at {
		b.addKid(i, kidBound, kid)
	} else {
		right.addKid(i-at-1, kidBound, kid)
	}
	return right, bound
}

// insertItem is insert for a leaf.
func (b *node) insertItem(t *tree, it *item, last bool) (right *node, bound item) {
	i := b.lower(it)
	if b.n < maxItems {
		b.add(i, it)
		return nil, item{}
	}
	right = t.newLeaf()
	at := maxItems / 2
	if last && i == maxItems {
		at = maxItems
	}
	right.n = copy(right.items[:], b.items[at:])
	clear(b.items[at:])
	b.n = at
	if i <= at && at < maxItems {
		b.add(i, it)
	} else {
		right.add(i-at, it)
	}
	return right, right.items[0]
}

// add adds an item to a node that has room for it.
func (b *node) add(i int, it *item) {
	copy(b.items[i+1:], b.items[i:b.n])
	b.items[i] = *it
	b.n++
}

// addKid adds a kid after kid i of an inner node that has room for it, with the bound between the two.
func (b *node) addKid(i int, bound item, kid *node) {
	in := b.inner
	copy(in.kids[i+2:], in.kids[i+1:b.n+1])
	copy(in.counts[i+2:], in.counts[i+1:b.n+1])
	in.kids[i+1], in.counts[i+1] = kid, uint32(kid.size())
	b.add(i, &bound)
}

// rank returns the number of items that are less than it.
func (t *tree) rank(it item) int {
	b, rank := t.root, 0
	for b.inner != nil {
		i := b.upper(&it)
		rank += b.before(i)
		b = b.inner.kids[i]
	}
	return rank + b.lower(&it)
}

// first returns the number of items before the first one for which reached returns true. It must then return true for
// all items after that.
func (t *tree) first(reached func(*item) bool) int {
	b, rank := t.root, 0
	if b == nil {
		return 0
	}
	for {
		lo, hi := 0, b.n
		for lo < hi {
			mid := int(uint(lo+hi) / 2)
			if reached(&b.items[mid]) {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		if b.inner == nil {
			return rank + lo
		}
		rank += b.before(lo)
		b = b.inner.kids[lo]
	}
}

// at returns the item at a rank, which must exist.
func (t *tree) at(rank int) item {
	b := t.root
	for b.inner != nil {
		var i int
		i, rank = b.child(rank)
		b = b.inner.kids[i]
	}
	return b.items[rank]
}

// ascend calls fn with the items from the given rank on, which must exist, until fn returns false.
func (b *node) ascend(rank int, fn func(*item) bool) bool {
	if b.inner == nil {
		for i := rank; i < b.n; i++ {
			if !fn(&b.items[i]) {
				return false
			}
		}
		return true
	}
	i, rank := b.child(rank)
	for ; i <= b.n; i++ {
		if !b.inner.kids[i].ascend(rank, fn) {
			return false
		}
		rank = 0
	}
	return true
}

// descend calls fn with the items from the given rank down, until fn returns false.
func (b *node) descend(rank int, fn func(*item) bool) bool {
	if b.inner == nil {
		for i := rank; i >= 0; i-- {
			if !fn(&b.items[i]) {
				return false
			}
		}
		return true
	}
	i, rank := b.child(rank)
	for {
		if !b.inner.kids[i].descend(rank, fn) {
			return false
		}
		if i--; i < 0 {
			return true
		}
		rank = int(b.inner.counts[i]) - 1
	}
}

// move replaces an item of the tree by one with the same name and another score.
func (t *tree) move(from, to item) {
	b := t.leaf(&from)
	if i := b.lower(&from); i > 0 && i+1 < b.n && b.items[i-1].less(&to) && to.less(&b.items[i+1]) {
		b.items[i] = to // small steps rarely lead farther
		return
	}
	t.delete(from)
	t.insert(to)
}

// delete removes an item of the tree.
func (t *tree) delete(it item) {
	t.root.delete(t, &it)
	t.len--
	t.collapse()
}

func (b *node) delete(t *tree, it *item) {
	if b.inner == nil {
		i := b.lower(it)
		b.cut(i, i+1)
		return
	}
	i := b.upper(it)
	b.inner.kids[i].delete(t, it)
	b.inner.counts[i]--
	b.settle(t, i)
}

// remove removes n items starting at the given rank, which must exist, and calls fn with each.
func (t *tree) remove(rank, n int, fn func(item)) {
	for n > 0 {
		removed := t.root.remove(t, rank, n, fn)
		t.len -= removed
		n -= removed
		t.collapse()
	}
}

// remove removes up to n items starting at the given rank, as many as are in one leaf.
func (b *node) remove(t *tree, rank, n int, fn func(item)) int {
	if b.inner == nil {
		end := min(rank+n, b.n)
		for _, it := range b.items[rank:end] {
			fn(it)
		}
		b.cut(rank, end)
		return end - rank
	}
	i, rank := b.child(rank)
	removed := b.inner.kids[i].remove(t, rank, n, fn)
	b.inner.counts[i] -= uint32(removed)
	b.settle(t, i)
	return removed
}

// collapse removes root nodes with a single kid.
func (t *tree) collapse() {
	for t.root.inner != nil && t.root.n == 0 {
		t.lose(t.root)
		t.root = t.root.inner.kids[0]
	}
}

// cut removes items from a node.
func (b *node) cut(from, to int) {
	copy(b.items[from:], b.items[to:b.n])
	clear(b.items[b.n-(to-from) : b.n])
	b.n -= to - from
}

// settle drops or merges kid i of an inner node, which has lost items, if it has few or none.
func (b *node) settle(t *tree, i int) {
	switch {
	case b.inner.counts[i] == 0:
		if b.n == 0 {
			return // the node itself is empty, and its parent drops it
		}
		kid := b.inner.kids[i]
		t.lose(kid)
		for kid.inner != nil { // an empty node has only its first kid left
			kid = kid.inner.kids[0]
			t.lose(kid)
		}
		b.drop(i)
	case b.inner.kids[i].n < maxItems/4:
		if i == 0 || !b.merge(t, i-1) {
			b.merge(t, i)
		}
	}
}

// drop removes kid i of an inner node, which must have others. The kid before it inherits its range, or the one after
// it if it was the first.
func (b *node) drop(i int) {
	in := b.inner
	copy(in.kids[i:], in.kids[i+1:b.n+1])
	copy(in.counts[i:], in.counts[i+1:b.n+1])
	in.kids[b.n] = nil
	b.cut(max(i-1, 0), max(i-1, 0)+1)
}

// merge moves kid i+1 into kid i, if it exists and both together leave room to grow. It reports whether it did.
func (b *node) merge(t *tree, i int) bool {
	if i == b.n {
		return false
	}
	left, right := b.inner.kids[i], b.inner.kids[i+1]
	if left.n+right.n >= maxItems*3/4 {
		return false
	}
	if left.inner != nil {
		copy(left.inner.kids[left.n+1:], right.inner.kids[:right.n+1])
		copy(left.inner.counts[left.n+1:], right.inner.counts[:right.n+1])
		left.items[left.n] = b.items[i]
		left.n++
	}
	left.n += copy(left.items[left.n:], right.items[:right.n])
	b.inner.counts[i] += b.inner.counts[i+1]
	t.lose(right)
	b.drop(i + 1)
	return true
}

// clone returns an independent copy with the same members.
func (t *tree) clone() tree {
	c := *t
	if c.root != nil {
		c.root = c.root.clone()
	}
	return c
}

func (b *node) clone() *node {
	c := *b
	if b.inner != nil {
		in := *b.inner
		for i, kid := range in.kids[:b.n+1] {
			in.kids[i] = kid.clone()
		}
		c.inner = &in
	}
	return &c
}
