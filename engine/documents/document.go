package documents

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
)

// Document is a JSON value that can be changed in any place. Changing a place takes time for the length of the path and
// for what is put in or taken out there, not for the rest of the document.
type Document struct {
	root  Value
	log   *delta.Log
	big   []*pages // by id, those that are gone among them
	gone  int      // how many these are
	ids   uint64   // given
	large bool     // had pages once
}

// Place is a place in a document: a member or an element of what is at Up. A nil *Place is the root.
type Place struct {
	Up    *Place
	Name  string // of the member of an object, if Index is -1
	Index int    // in an array
}

// Member returns the place of a member of the object at p.
func (p *Place) Member(name string) *Place { return &Place{Up: p, Name: name, Index: -1} }

// Element returns the place of an element of the array at p.
func (p *Place) Element(i int) *Place { return &Place{Up: p, Index: i} }

// Depth returns how many steps lead from the root to the place.
func (p *Place) Depth() (n int) {
	for ; p != nil; p = p.Up {
		n++
	}
	return n
}

// New returns a document with a value, which it keeps, and which must not be part of another one.
func New(v Value) *Document {
	d := &Document{root: v}
	d.adopt(v)
	return d
}

// Root returns the whole value, which must not be changed but through the document.
func (d *Document) Root() Value { return d.root }

// Clone returns a copy.
func (d *Document) Clone() *Document { return New(d.root.Clone()) }

// MemoryUsage returns about how many bytes of memory the document takes, in constant time.
func (d *Document) MemoryUsage() int {
	return int(unsafe.Sizeof(*d)) + d.root.extra() + cap(d.big)*int(unsafe.Sizeof((*pages)(nil)))
}

// Find returns the value at a place; ok is false if there is none.
func (d *Document) Find(p *Place) (v Value, ok bool) {
	if p == nil {
		return d.root, true
	}
	up, ok := d.Find(p.Up)
	if !ok {
		return Value{}, false
	}
	k, j, ok := up.place(p)
	if !ok {
		return Value{}, false
	}
	vals, _ := up.container().page(k)
	return vals[j], true
}

// frame is a container on the way to a place, and the element of it by which the way goes on.
type frame struct {
	c      *container
	object bool
	k, j   int
}

// way returns the containers on the way to a place, and where its value is kept; ok is false if there is none.
func (d *Document) way(p *Place) (frames []frame, at *Value, ok bool) {
	if p == nil {
		return make([]frame, 0, 8), &d.root, true
	}
	frames, at, ok = d.way(p.Up)
	if !ok {
		return nil, nil, false
	}
	k, j, ok := at.place(p)
	if !ok {
		return nil, nil, false
	}
	c := at.container()
	vals, _ := c.page(k)
	return append(frames, frame{c, at.Kind() == Object, k, j}), &vals[j], true
}

// Replace puts a value, which the document keeps, in the place of what is at p; ok is false if nothing is.
func (d *Document) Replace(p *Place, v Value) (ok bool) {
	frames, at, ok := d.way(p)
	if !ok {
		return false
	}
	d.noteWay(frames)
	old := *at
	d.drop(old)
	d.adopt(v)
	size, mem := v.size()-old.size(), v.extra()-old.extra()
	*at = v
	d.resized(frames, size, mem)
	return true
}

// SetMember gives the object at p a member, or a member that it has a new value; ok is false if there is no object. It
// keeps the value and the name.
func (d *Document) SetMember(p *Place, name string, v Value) (ok bool) {
	frames, at, ok := d.way(p)
	if !ok || at.Kind() != Object {
		return false
	}
	if _, j := at.container().search(name); j >= 0 {
		return d.Replace(p.Member(name), v)
	}
	d.insert(frames, *at, at.Len(), []string{name}, []Value{v})
	return true
}

// Insert puts values, which the document keeps, before an element of the array at p, or at its end if i is its length;
// ok is false if there is no such place.
func (d *Document) Insert(p *Place, i int, values ...Value) (ok bool) {
	frames, at, ok := d.way(p)
	if !ok || at.Kind() != Array || i < 0 || i > at.Len() {
		return false
	}
	d.insert(frames, *at, i, nil, values)
	return true
}

// insert puts elements into a container at the end of a way.
func (d *Document) insert(frames []frame, v Value, i int, keys []string, vals []Value) {
	if len(vals) == 0 {
		return
	}
	c, k, j := v.container(), 0, i
	object := v.Kind() == Object
	switch {
	case c.big == nil:
	case len(c.big.chunks) == 0:
		d.note(partName(c.big.id, firstKey))
		c.big.chunks = append(c.big.chunks, &chunk{key: firstKey})
		c.big.mem += chunkSize
		c.big.restarted(0)
	case i == c.big.count:
		k = len(c.big.chunks) - 1
		j = len(c.big.chunks[k].vals)
	default:
		k, j = c.big.locate(i)
	}
	frames = append(frames, frame{c, object, k, j})
	d.noteWay(frames)
	size, mem := 0, 0
	for n, v := range vals {
		d.adopt(v)
		size += itemSize(v, keys, n)
		mem += itemMemory(v, keys, n)
	}
	if c.big == nil {
		c.vals = slices.Insert(c.vals, j, vals...)
		c.keys = slices.Insert(c.keys, min(j, len(c.keys)), keys...)
	} else {
		ch := c.big.chunks[k]
		ch.vals = slices.Insert(ch.vals, j, vals...)
		ch.keys = slices.Insert(ch.keys, min(j, len(ch.keys)), keys...)
		c.big.count += len(vals)
		c.big.changed(k)
		if c.big.index != nil {
			for _, key := range keys {
				c.big.index[key] = ch
			}
			mem += indexedSize * len(keys)
		}
	}
	d.resized(frames, size, mem)
}

// Remove takes out the member or element at p, which must not be the root; ok is false if nothing is there.
func (d *Document) Remove(p *Place) (ok bool) {
	if p == nil {
		return false
	}
	frames, _, ok := d.way(p)
	if !ok {
		return false
	}
	last := frames[len(frames)-1]
	d.removeIn(frames, last.j, last.j+1)
	return true
}

// RemoveRange takes the elements from from to before to out of the array at p; ok is false if it has not as many.
func (d *Document) RemoveRange(p *Place, from, to int) (ok bool) {
	frames, at, ok := d.way(p)
	if !ok || at.Kind() != Array || from < 0 || to > at.Len() || from > to {
		return false
	}
	c := at.container()
	for left := to - from; left > 0; {
		k, j := 0, from
		if c.big != nil {
			k, j = c.big.locate(from)
		}
		vals, _ := c.page(k)
		if j == 0 && c.big != nil && len(vals) <= left {
			left -= d.removeChunks(frames, c.big, k, left)
			continue
		}
		n := min(left, len(vals)-j)
		d.removeIn(append(frames, frame{c, false, k, j}), j, j+n)
		left -= n
	}
	return true
}

// removeChunks takes as many chunks of an array out as have at most n elements, from chunk k on, and returns how many
// elements these had.
func (d *Document) removeChunks(frames []frame, b *pages, k, n int) (removed int) {
	end, mem := k, 0
	for ; end < len(b.chunks) && removed+len(b.chunks[end].vals) <= n; end++ {
		ch := b.chunks[end]
		d.note(partName(b.id, ch.key))
		for _, v := range ch.vals {
			d.drop(v)
			mem -= v.Memory()
		}
		removed += len(ch.vals)
		mem -= chunkSize
	}
	b.chunks = slices.Delete(b.chunks, k, end)
	b.count -= removed
	b.restarted(k)
	b.mem += mem
	d.resized(frames, 0, mem)
	return removed
}

// removeIn takes elements out of the piece of a container to which a way leads.
func (d *Document) removeIn(frames []frame, from, to int) {
	f := frames[len(frames)-1]
	d.noteWay(frames)
	vals, keys := f.c.page(f.k)
	size, mem := 0, 0
	for j := from; j < to; j++ {
		d.drop(vals[j])
		size -= itemSize(vals[j], keys, j)
		mem -= itemMemory(vals[j], keys, j)
	}
	if f.c.big == nil {
		f.c.vals = slices.Delete(f.c.vals, from, to)
		if f.object {
			f.c.keys = slices.Delete(f.c.keys, from, to)
		}
		d.resized(frames, size, mem)
		return
	}
	b := f.c.big
	ch := b.chunks[f.k]
	if b.index != nil {
		for _, key := range keys[from:to] {
			delete(b.index, key)
		}
		mem -= indexedSize * (to - from)
	}
	ch.vals = slices.Delete(ch.vals, from, to)
	if f.object {
		ch.keys = slices.Delete(ch.keys, from, to)
	}
	b.count -= to - from
	b.changed(f.k)
	ch.size += size
	if len(ch.vals) == 0 {
		b.chunks = slices.Delete(b.chunks, f.k, f.k+1)
		b.restarted(f.k)
		mem -= chunkSize
	} else if ch.size < maxChunk/4 {
		mem += d.merge(b, f.k)
	}
	b.mem += mem
	d.resized(frames[:len(frames)-1], 0, mem)
}

// merge joins a small chunk with a neighbour, if both are small, and returns by how much the memory grows.
func (d *Document) merge(b *pages, k int) int {
	small := func(k int) bool {
		return k >= 0 && k+1 < len(b.chunks) && b.chunks[k].size+b.chunks[k+1].size < maxChunk/2
	}
	if !small(k) {
		if k--; !small(k) {
			return 0
		}
	}
	into, from := b.chunks[k], b.chunks[k+1]
	d.note(partName(b.id, into.key))
	d.note(partName(b.id, from.key))
	if b.index != nil {
		for _, key := range from.keys {
			b.index[key] = into
		}
	}
	into.vals, into.keys = append(into.vals, from.vals...), append(into.keys, from.keys...)
	into.size += from.size
	b.chunks = slices.Delete(b.chunks, k+1, k+2)
	b.restarted(k)
	return -chunkSize
}

// Order returns the order in which what is at places is removed or changed: what comes later in an array before what
// comes earlier, members by their names, and what is inside of another one before it.
func Order(places []*Place) []int {
	order := make([]int, len(places))
	steps := make([][]step, len(places))
	for i, p := range places {
		order[i], steps[i] = i, stepsTo(p)
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareSteps(steps[i], steps[j]) })
	return order
}

// Outermost returns places in the order of Order, without those that are there twice or in others.
func Outermost(places []*Place) []*Place {
	if len(places) < 2 {
		return places
	}
	kept := make([]*Place, 0, len(places))
	for _, i := range slices.Backward(Order(places)) {
		if n := len(kept); n == 0 || !places[i].within(kept[n-1]) {
			kept = append(kept, places[i])
		}
	}
	slices.Reverse(kept)
	return kept
}

// within reports whether a place is another one, or in it.
func (p *Place) within(outer *Place) bool {
	for range p.Depth() - outer.Depth() {
		p = p.Up
	}
	for ; p != outer; p, outer = p.Up, outer.Up {
		if p == nil || outer == nil || p.Index != outer.Index || p.Name != outer.Name {
			return false
		}
	}
	return true
}

// step is a step of the way to a place.
type step struct {
	place   *Place
	n       uint64
	numeric bool // the step is an index, or a name that is a number, which is n
}

// stepsTo returns the steps from the root to a place.
func stepsTo(p *Place) []step {
	steps := make([]step, p.Depth())
	for i := len(steps) - 1; p != nil; i, p = i-1, p.Up {
		steps[i] = step{place: p, n: uint64(p.Index), numeric: true}
		if p.Index < 0 {
			n, err := strconv.ParseUint(p.Name, 10, 64)
			steps[i] = step{p, n, err == nil}
		}
	}
	return steps
}

// compareSteps compares ways for Order.
func compareSteps(a, b []step) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		switch {
		case x.place == y.place:
		case x.numeric != y.numeric:
			return btoi(x.numeric) - btoi(y.numeric)
		case x.numeric && x.n != y.n:
			return cmp.Compare(y.n, x.n)
		case !x.numeric && x.place.Name != y.place.Name:
			return strings.Compare(x.place.Name, y.place.Name)
		}
	}
	return len(b) - len(a)
}

// adopt makes a value that belongs to no document one that can be part of this one: sizes are known, and what is large
// has pages.
func (d *Document) adopt(v Value) {
	c := v.container()
	if c == nil {
		return
	}
	size, mem := sizeContainer, containerSize
	for j, element := range c.vals {
		d.adopt(element)
		size += itemSize(element, c.keys, j)
		mem += itemMemory(element, c.keys, j)
	}
	if c.setTakes(min(size, maxFlat), mem); size > maxFlat {
		d.divide(c, v.Kind() == Object)
	}
}

// divide gives a container that is in one piece pages.
func (d *Document) divide(c *container, object bool) {
	d.ids++
	b := &pages{id: d.ids, object: object, count: len(c.vals), mem: containerSize + pagesSize}
	whole := &chunk{vals: c.vals, keys: c.keys}
	for j, v := range whole.vals {
		b.mem += itemMemory(v, whole.keys, j)
	}
	b.chunks = whole.cut(object)
	for k, ch := range b.chunks {
		ch.key = firstKey + uint64(k)*keyStep
		d.note(partName(b.id, ch.key))
	}
	b.mem += chunkSize * len(b.chunks)
	c.vals, c.keys, c.takes, c.big = nil, nil, 0, b
	b.mem += b.reindex()
	d.big = append(d.big, b)
	d.large = true
}

// cut divides a chunk into full ones, of which each has its own memory.
func (ch *chunk) cut(object bool) (pieces []*chunk) {
	from, size := 0, 0
	for j, v := range ch.vals {
		n := itemSize(v, ch.keys, j)
		if j > from && size+n > fullChunk {
			pieces = append(pieces, ch.piece(from, j, size, object))
			from, size = j, 0
		}
		size += n
	}
	return append(pieces, ch.piece(from, len(ch.vals), size, object))
}

func (ch *chunk) piece(from, to, size int, object bool) *chunk {
	p := &chunk{vals: slices.Clone(ch.vals[from:to]), size: size}
	if object {
		p.keys = slices.Clone(ch.keys[from:to])
	}
	return p
}

// reindex makes the index of an object that has several chunks and none yet, and returns its memory.
func (b *pages) reindex() int {
	if !b.object || b.index != nil || len(b.chunks) < 2 {
		return 0
	}
	b.index = make(map[string]*chunk, b.count)
	for _, ch := range b.chunks {
		for _, key := range ch.keys {
			b.index[key] = ch
		}
	}
	return indexedSize * b.count
}

// drop takes a value out of the document: its parts go.
func (d *Document) drop(v Value) {
	if len(d.big) > d.gone {
		d.dropPages(v)
		if d.gone > len(d.big)/2 {
			d.big = slices.DeleteFunc(d.big, func(b *pages) bool { return b.gone })
			d.gone = 0
		}
	}
}

func (d *Document) dropPages(v Value) {
	c := v.container()
	if c == nil {
		return
	}
	for k := range c.pages() {
		if c.big != nil {
			d.note(partName(c.big.id, c.big.chunks[k].key))
		}
		vals, _ := c.page(k)
		for _, element := range vals {
			d.dropPages(element)
		}
	}
	if c.big != nil {
		c.big.gone = true
		d.gone++
	}
}

// resized notes that what a way leads to takes more or less, where it is stored and in memory. Containers that have
// become large are divided, and so are chunks.
func (d *Document) resized(frames []frame, size, mem int) {
	for i := len(frames) - 1; i >= 0 && (size != 0 || mem != 0); i-- {
		f := &frames[i]
		if f.c.big == nil {
			s, m := f.c.size(), f.c.mem()
			if s+size <= maxFlat {
				f.c.setTakes(max(s+size, 0), max(m+mem, 0))
				continue
			}
			d.divide(f.c, f.object)
			size, mem = sizeRef-s, f.c.big.mem-m
			continue
		}
		ch := f.c.big.chunks[f.k]
		ch.size += size
		size = 0
		if ch.size > maxChunk && len(ch.vals) > 1 {
			mem += d.split(f.c.big, f.k)
		}
		f.c.big.mem += mem
	}
}

// split divides a chunk that is too long, and returns by how much the memory grows.
func (d *Document) split(b *pages, k int) (mem int) {
	pieces := b.chunks[k].cut(b.object)
	if len(pieces) == 1 {
		return 0
	}
	d.makeRoom(b, k, uint64(len(pieces)))
	low := b.chunks[k].key
	step := uint64(keyStep)
	if k+1 < len(b.chunks) {
		step = (b.chunks[k+1].key - low) / uint64(len(pieces))
	}
	for i, p := range pieces {
		if p.key = low + uint64(i)*step; i > 0 {
			d.note(partName(b.id, p.key))
		}
		if b.index != nil {
			for _, key := range p.keys {
				b.index[key] = p
			}
		}
	}
	b.chunks = slices.Replace(b.chunks, k, k+1, pieces...)
	b.restarted(k)
	return chunkSize*(len(pieces)-1) + b.reindex()
}

// makeRoom sees to it that there are n-1 keys free behind that of chunk k. Rarely that takes new keys for all chunks.
func (d *Document) makeRoom(b *pages, k int, n uint64) {
	last := k+1 == len(b.chunks)
	switch {
	case last && b.chunks[k].key < 1<<64-1-keyStep*n:
		return
	case !last && b.chunks[k+1].key-b.chunks[k].key >= n:
		return
	case k == 0 && b.chunks[0].key > keyStep:
		d.note(partName(b.id, b.chunks[0].key-keyStep))
		b.chunks[0].key -= keyStep
		return
	}
	step := min(keyStep, firstKey/(uint64(len(b.chunks))+n))
	for i, ch := range b.chunks {
		d.note(partName(b.id, ch.key))
		d.note(partName(b.id, firstKey+uint64(i)*step))
	}
	for i, ch := range b.chunks {
		ch.key = firstKey + uint64(i)*step
	}
}

// pagesOf returns the container with an id, nil if there is none.
func (d *Document) pagesOf(id uint64) *pages {
	i := sort.Search(len(d.big), func(i int) bool { return d.big[i].id >= id })
	if i == len(d.big) || d.big[i].id != id || d.big[i].gone {
		return nil
	}
	return d.big[i]
}
