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

// Document is a JSON value that can be changed at any place. The cost of a change grows with the length of the path,
// the values inserted or removed, and one page of the container, but not with the rest of the document.
type Document struct {
	root  chunk  // of one element
	parts *parts // nil if the document never had any: most are small
}

// parts is a document's record of its divided containers.
type parts struct {
	log  *delta.Log
	big  []*pages // by id, including removed ones
	gone int      // how many of these were removed
	ids  uint64   // number of ids given out
	// former has the names of the stored parts of form 1, until the first change; nil if there are none.
	former []string
}

// Place is a place in a document: a member or an element of the value at Up. A nil *Place is the root.
type Place struct {
	Up    *Place
	Name  string // of the member of an object, if Index is -1
	Index int    // in an array
}

// Member returns the place of a member of the object at p.
func (p *Place) Member(name string) *Place { return &Place{Up: p, Name: name, Index: -1} }

// Element returns the place of an element of the array at p.
func (p *Place) Element(i int) *Place { return &Place{Up: p, Index: i} }

// Depth returns the number of steps from the root to the place.
func (p *Place) Depth() (n int) {
	for ; p != nil; p = p.Up {
		n++
	}
	return n
}

// New returns a document with value v, which it keeps and which must not be part of another document.
func New(v Value) *Document {
	d := &Document{root: encoded(v)}
	d.adopt(d.root.refs)
	return d
}

// encoded returns a chunk with a single value.
func encoded(v Value) chunk {
	switch v.form() {
	case formFlat:
		return chunk{enc: v.flat(), n: 1}
	case 0:
		return chunk{enc: appendScalar(nil, v), n: 1}
	}
	var b builder
	b.value(v)
	return b.chunk(1)
}

// Root returns the whole value, which may only be changed through the document.
func (d *Document) Root() Value { return decode(d.root.enc, d.root.refs) }

// Clone returns a copy.
func (d *Document) Clone() *Document { return New(d.Root().Clone()) }

// MemoryUsage returns about how many bytes of memory the document takes, in constant time.
func (d *Document) MemoryUsage() int {
	n := int(unsafe.Sizeof(*d)) + d.root.memory() - chunkSize
	if d.parts != nil {
		n += int(unsafe.Sizeof(*d.parts)) + cap(d.parts.big)*wordSize
	}
	return n
}

// Find returns the value at a place; ok is false if there is none.
func (d *Document) Find(p *Place) (v Value, ok bool) {
	if p == nil {
		return d.Root(), true
	}
	up, ok := d.Find(p.Up)
	switch {
	case !ok:
	case p.Index < 0:
		return up.Get(p.Name)
	case up.Kind() == Array && p.Index < up.Len():
		return up.At(p.Index), true
	}
	return Value{}, false
}

// spot is a location in encoded data: that of a value, or the end of a container.
type spot struct {
	frames []frame // the pages on the path, innermost last
	ch     *chunk  // the chunk of the last frame, or the root
	heads  []int   // offsets in ch of the undivided containers on the path, innermost last
	item   item
}

// frame is a page on the path to a place.
type frame struct {
	pages *pages
	k     int
}

// owner returns the divided container that has the value as a direct element; nil if there is none.
func (s *spot) owner() *pages {
	if len(s.heads) > 0 || len(s.frames) == 0 {
		return nil
	}
	return s.frames[len(s.frames)-1].pages
}

// value returns the value at the spot.
func (s *spot) value() Value { return decode(s.ch.enc[s.item.value:], s.ch.refs) }

// spot returns the spot of the value at a place; ok is false if there is none.
func (d *Document) spot(p *Place) (s spot, ok bool) {
	if p == nil {
		return spot{ch: &d.root, item: item{end: len(d.root.enc)}, heads: make([]int, 0, 8)}, true
	}
	if s, ok = d.spot(p.Up); !ok {
		return s, false
	}
	return s, s.step(p)
}

// step moves from a container to one of its elements; it returns false if that does not exist.
func (s *spot) step(p *Place) (ok bool) {
	v := s.value()
	if (v.Kind() == Object) != (p.Index < 0) || p.Index >= v.Len() {
		return false
	}
	switch v.form() {
	case formPages:
		b := (*pages)(v.p)
		var k, j int
		if p.Index < 0 {
			if k, s.item, ok = b.search(p.Name); !ok {
				return false
			}
		} else {
			k, j = b.locate(p.Index)
			s.item = nth(b.chunks[k].enc, 0, j, false)
		}
		s.frames, s.ch, s.heads = append(s.frames, frame{b, k}), b.chunks[k], s.heads[:0]
		return true
	case formFlat:
		from := s.item.value + headSize
		s.heads = append(s.heads, s.item.value)
		if p.Index < 0 {
			s.item, _, ok = member(s.ch.enc, from, s.item.end, p.Name)
			return ok
		}
		s.item = nth(s.ch.enc, from, p.Index, false)
		return true
	}
	return false
}

// noteSpot must be called before the chunk of a spot changes.
func (d *Document) noteSpot(s *spot) {
	if n := len(s.frames); n > 0 {
		d.note(s.frames[n-1].pages.id, s.ch.key)
	} else {
		d.note(0, 0)
	}
}

// splice replaces the bytes [from, to) of the spot's container by encoded elements; n is the change of the element
// count. The enclosing containers must not become too large.
func (d *Document) splice(s *spot, from, to int, with []byte, n int) {
	d.noteSpot(s)
	before := s.ch.memory()
	enc := make([]byte, 0, len(s.ch.enc)-(to-from)+len(with))
	enc = append(append(append(enc, s.ch.enc[:from]...), with...), s.ch.enc[to:]...)
	for i, at := range s.heads {
		size, count := head(enc[at:])
		if i == len(s.heads)-1 {
			count += n
		}
		putHead(enc[at:], enc[at], size-(to-from)+len(with), count)
	}
	s.ch.enc = enc
	if b := s.owner(); b != nil {
		s.ch.n += n
		b.count += n
		b.changed(s.frames[len(s.frames)-1].k)
	}
	d.grown(s.frames, s.ch.memory()-before)
}

// grown records in the frames' containers that their content has changed, and their memory by mem bytes.
func (d *Document) grown(frames []frame, mem int) {
	for _, f := range frames {
		f.pages.mem += mem
		f.pages.depth = 0
	}
}

// fits reports whether the undivided containers around a spot have room for with in place of n bytes. If not, it
// divides the outermost one, and the spot becomes invalid.
func (d *Document) fits(s *spot, n int, with *chunk) bool {
	grows := len(with.enc) - n
	tooLarge := len(with.refs) > 0
	for _, at := range s.heads {
		size, _ := head(s.ch.enc[at:])
		tooLarge = tooLarge || size+grows > maxFlat
	}
	if !tooLarge || len(s.heads) == 0 {
		return true
	}
	at := s.heads[0]
	flat := decode(s.ch.enc[at:], nil)
	b := &pages{object: flat.Kind() == Object}
	body := flat.flat()[headSize:]
	b.chunks = (&chunk{enc: body}).cut(b.object)
	b.settle()
	outer := *s
	outer.heads = nil
	d.noteSpot(s)
	before := s.ch.memory()
	ref := appendRef(nil, b.object, s.ch.refer(b))
	d.grown(s.frames, s.ch.memory()-before)
	d.adopt([]*pages{b})
	d.splice(&outer, at, at+headSize+len(body), ref, 0)
	d.balance(&outer)
	return false
}

// Replace replaces the value at p by v, which the document keeps; ok is false if nothing is at p.
func (d *Document) Replace(p *Place, v Value) (ok bool) {
	s, ok := d.spot(p)
	if !ok {
		return false
	}
	with := encoded(v)
	for !d.fits(&s, s.item.end-s.item.value, &with) {
		s, _ = d.spot(p)
	}
	d.drop(s.value())
	d.forget(&s, s.item.value)
	d.splice(&s, s.item.value, s.item.end, d.referring(&s, &with, false), 0)
	d.balance(&s)
	d.adopt(with.refs)
	return true
}

// forget removes the container that the value at an offset refers to from the chunk's references.
func (d *Document) forget(s *spot, at int) {
	if i, ok := refAt(s.ch.enc[at:]); ok {
		d.noteSpot(s)
		before := s.ch.memory()
		s.ch.refs = slices.Clone(s.ch.refs)
		s.ch.refs[i] = nil
		d.grown(s.frames, s.ch.memory()-before)
	}
}

// referring returns encoded elements with their references adapted to the chunk of a spot, which gets them.
func (d *Document) referring(s *spot, with *chunk, object bool) []byte {
	if len(with.refs) == 0 {
		return with.enc
	}
	d.noteSpot(s)
	before := s.ch.memory()
	enc := slices.Clone(with.enc)
	s.ch.refs = slices.Clone(s.ch.refs)
	s.ch.adoptRefs(enc, with.refs, object)
	d.grown(s.frames, s.ch.memory()-before)
	return enc
}

// SetMember sets a member of the object at p, whether it exists or not; ok is false if there is no object. It keeps the
// value.
func (d *Document) SetMember(p *Place, name string, v Value) (ok bool) {
	up, ok := d.Find(p)
	if !ok || up.Kind() != Object {
		return false
	}
	if _, has := up.Get(name); has {
		return d.Replace(p.Member(name), v)
	}
	with := encoded(v)
	with.enc = append(appendName(make([]byte, 0, len(name)+5+len(with.enc)), name), with.enc...)
	d.insert(p, up.Len(), &with)
	return true
}

// Insert inserts values, which the document keeps, before element i of the array at p, or at its end if i is its
// length; ok is false if there is no such place.
func (d *Document) Insert(p *Place, i int, values ...Value) (ok bool) {
	up, ok := d.Find(p)
	if !ok || up.Kind() != Array || i < 0 || i > up.Len() {
		return false
	}
	for len(values) > 0 {
		var b builder
		n := 0
		for ; n < len(values) && len(b.buf) < fullChunk; n++ {
			b.value(values[n])
		}
		with := b.chunk(n)
		d.insert(p, i, &with)
		values, i = values[n:], i+n
	}
	return true
}

// insert inserts encoded elements before element i of the container at p.
func (d *Document) insert(p *Place, i int, with *chunk) {
	s := d.behind(p, i)
	for !d.fits(&s, 0, with) {
		s = d.behind(p, i)
	}
	b := s.owner()
	enc := d.referring(&s, with, b != nil && b.object)
	d.splice(&s, s.item.at, s.item.at, enc, with.n)
	if b != nil && b.object {
		name, _ := nameAt(enc)
		d.grown(s.frames, b.named(name, s.ch))
	}
	d.adopt(with.refs)
	d.balance(&s)
}

// behind returns the spot where element i of the container at p begins or would begin.
func (d *Document) behind(p *Place, i int) spot {
	s, _ := d.spot(p)
	v := s.value()
	object := v.Kind() == Object
	if v.form() == formFlat {
		from := s.item.value + headSize
		s.heads = append(s.heads, s.item.value)
		at := s.item.end
		if i < v.Len() {
			at = nth(s.ch.enc, from, i, object).at
		}
		s.item = item{at: at}
		return s
	}
	b := (*pages)(v.p)
	if len(b.chunks) == 0 {
		d.note(b.id, firstKey)
		b.chunks = append(b.chunks, &chunk{key: firstKey})
		b.restarted(0)
		d.grown(append(s.frames, frame{pages: b}), chunkSize)
	}
	k, at := len(b.chunks)-1, len(b.chunks[len(b.chunks)-1].enc)
	if i < b.count {
		var j int
		k, j = b.locate(i)
		at = nth(b.chunks[k].enc, 0, j, object).at
	}
	s.frames, s.ch, s.heads, s.item = append(s.frames, frame{b, k}), b.chunks[k], s.heads[:0], item{at: at}
	return s
}

// Remove removes the member or element at p, which must not be the root; ok is false if nothing is there. The last
// member of an object takes the place of a removed one.
func (d *Document) Remove(p *Place) (ok bool) {
	if p == nil {
		return false
	}
	if _, ok = d.Find(p); !ok {
		return false
	}
	if p.Index >= 0 {
		return d.RemoveRange(p.Up, p.Index, p.Index+1)
	}
	s, _ := d.spot(p)
	d.drop(s.value())
	d.forget(&s, s.item.value)
	b := s.owner()
	if b == nil {
		at := s.heads[len(s.heads)-1]
		size, count := head(s.ch.enc[at:])
		end := at + headSize + size
		last := nth(s.ch.enc, at+headSize, count-1, true)
		d.splice(&s, s.item.at, end, moved(s.ch.enc, s.item, last), -1)
		d.balance(&s)
		return true
	}
	d.grown(s.frames, b.unnamed(p.Name))
	ch := b.chunks[len(b.chunks)-1]
	last := nth(ch.enc, 0, ch.n-1, true)
	if ch == s.ch {
		d.splice(&s, s.item.at, len(ch.enc), moved(ch.enc, s.item, last), -1)
		d.balance(&s)
		return true
	}
	// The last member moves from its chunk to the other one.
	end := s
	end.frames = slices.Clone(s.frames)
	end.frames[len(end.frames)-1].k = len(b.chunks) - 1
	end.ch, end.item = ch, last
	with := chunk{enc: ch.enc[last.at:last.end], refs: ch.refs, n: 1}
	enc := with.enc
	if _, ok := refAt(ch.enc[last.value:]); ok {
		enc = d.referring(&s, &with, true)
		d.forget(&end, last.value)
	}
	name, _ := nameAt(enc)
	d.splice(&s, s.item.at, s.item.end, enc, 0)
	if b.index != nil {
		b.index[hashOf(name)] = s.ch
	}
	d.splice(&end, last.at, last.end, nil, -1)
	d.balance(&end)
	if k, ok := b.find(s.ch.key); ok && b.chunks[k] == s.ch {
		s.frames[len(s.frames)-1].k = k
		d.balance(&s)
	}
	return true
}

// moved returns the bytes after a removed member once the last member has taken its place.
func moved(enc []byte, gone, last item) []byte {
	if gone.at == last.at {
		return nil
	}
	return append(slices.Clone(enc[last.at:last.end]), enc[gone.end:last.at]...)
}

// RemoveRange removes elements from to to-1 of the array at p; ok is false if it has fewer.
func (d *Document) RemoveRange(p *Place, from, to int) (ok bool) {
	up, ok := d.Find(p)
	if !ok || up.Kind() != Array || from < 0 || to > up.Len() || from > to {
		return false
	}
	for left := to - from; left > 0; {
		s := d.behind(p, from)
		if b := s.owner(); b != nil && s.item.at == 0 && s.ch.n <= left {
			left -= d.removeChunks(&s, left)
			continue
		}
		n, end := 0, s.item.at
		for limit := d.limit(&s); n < left && end < limit; n++ {
			it := itemAt(s.ch.enc, end, false)
			d.drop(decode(s.ch.enc[it.value:], s.ch.refs))
			d.forget(&s, it.value)
			end = it.end
		}
		d.splice(&s, s.item.at, end, nil, -n)
		d.balance(&s)
		left -= n
	}
	return true
}

// removeChunks removes the longest run of chunks, beginning at that of a spot, with at most n elements in all, and
// returns how many elements it had.
func (d *Document) removeChunks(s *spot, n int) (removed int) {
	f := s.frames[len(s.frames)-1]
	b, end, mem := f.pages, f.k, 0
	for ; end < len(b.chunks) && removed+b.chunks[end].n <= n; end++ {
		ch := b.chunks[end]
		d.note(b.id, ch.key)
		mem -= ch.memory()
		removed += ch.n
		for _, ref := range ch.refs {
			if ref != nil {
				d.drop(ref.value())
			}
		}
	}
	b.chunks = slices.Delete(b.chunks, f.k, end)
	b.count -= removed
	b.restarted(f.k)
	d.grown(s.frames, mem)
	return removed
}

// limit returns the end of the elements of a spot's container within its chunk.
func (d *Document) limit(s *spot) int {
	if len(s.heads) == 0 {
		return len(s.ch.enc)
	}
	at := s.heads[len(s.heads)-1]
	size, _ := head(s.ch.enc[at:])
	return at + headSize + size
}

// balance splits the chunk of a spot if it is too large, merges it with a neighbour if it is small, and removes it if
// it is empty.
func (d *Document) balance(s *spot) {
	if len(s.frames) == 0 {
		return
	}
	f := s.frames[len(s.frames)-1]
	b := f.pages
	switch {
	case s.ch.n == 0:
		d.note(b.id, s.ch.key)
		mem := s.ch.memory()
		b.chunks = slices.Delete(b.chunks, f.k, f.k+1)
		b.restarted(f.k)
		d.grown(s.frames, -mem)
	case len(s.ch.enc) > maxChunk && s.ch.n > 1:
		d.split(s.frames, b, f.k)
	case len(s.ch.enc) < maxChunk/4:
		d.merge(s.frames, b, f.k)
	}
}

// split divides a chunk that is too large.
func (d *Document) split(frames []frame, b *pages, k int) {
	whole := b.chunks[k]
	pieces := whole.cut(b.object)
	if len(pieces) == 1 {
		return
	}
	d.makeRoom(b, k, uint64(len(pieces)))
	low := whole.key
	step := uint64(keyStep)
	if k+1 < len(b.chunks) {
		step = (b.chunks[k+1].key - low) / uint64(len(pieces))
	}
	mem := -whole.memory()
	d.note(b.id, low)
	for i, p := range pieces {
		if p.key = low + uint64(i)*step; i > 0 {
			d.note(b.id, p.key)
		}
		b.point(p)
		mem += p.memory()
	}
	b.chunks = slices.Replace(b.chunks, k, k+1, pieces...)
	b.restarted(k)
	d.grown(frames, mem+b.reindex())
}

// merge joins a small chunk with a neighbour, if both are small.
func (d *Document) merge(frames []frame, b *pages, k int) {
	small := func(k int) bool {
		return k >= 0 && k+1 < len(b.chunks) && len(b.chunks[k].enc)+len(b.chunks[k+1].enc) < maxChunk/2
	}
	if !small(k) {
		if k--; !small(k) {
			return
		}
	}
	first, second := b.chunks[k], b.chunks[k+1]
	d.note(b.id, first.key)
	d.note(b.id, second.key)
	mem := -first.memory() - second.memory()
	into := &chunk{enc: append(slices.Clip(first.enc), second.enc...), refs: slices.Clone(first.refs), n: first.n + second.n,
		key: first.key}
	into.adoptRefs(into.enc[len(first.enc):], second.refs, b.object)
	b.point(into)
	b.chunks[k] = into
	b.chunks = slices.Delete(b.chunks, k+1, k+2)
	b.restarted(k)
	d.grown(frames, mem+into.memory())
}

// Order returns the order in which to change or remove the values at places: later array elements before earlier ones,
// members by name, and inner values before outer ones.
func Order(places []*Place) []int {
	order := make([]int, len(places))
	steps := make([][]step, len(places))
	for i, p := range places {
		order[i], steps[i] = i, stepsTo(p)
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareSteps(steps[i], steps[j]) })
	return order
}

// Outermost returns the places in the order of Order, without repetitions and without places inside of others.
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

// within reports whether a place is outer or lies in it.
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

// step is a step on the path to a place.
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

// compareSteps compares two paths for Order.
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

// adopt makes containers that belong to no document, with their content, part of this one.
func (d *Document) adopt(refs []*pages) {
	for _, b := range refs {
		if b == nil || b.id != 0 {
			continue
		}
		if d.parts == nil {
			d.parts = &parts{}
		}
		d.parts.ids++
		b.id = d.parts.ids
		for _, ch := range b.chunks {
			d.note(b.id, ch.key)
		}
		d.parts.big = append(d.parts.big, b)
		for _, ch := range b.chunks {
			d.adopt(ch.refs)
		}
	}
}

// drop removes a value's parts from the document.
func (d *Document) drop(v Value) {
	if v.form() != formPages {
		return
	}
	d.dropPages((*pages)(v.p))
	if p := d.parts; p.gone > len(p.big)/2 {
		p.big = slices.DeleteFunc(p.big, func(b *pages) bool { return b.gone })
		p.gone = 0
	}
}

func (d *Document) dropPages(b *pages) {
	for _, ch := range b.chunks {
		d.note(b.id, ch.key)
		for _, ref := range ch.refs {
			if ref != nil {
				d.dropPages(ref)
			}
		}
	}
	b.gone = true
	d.parts.gone++
}

// makeRoom ensures that n-1 keys are free after that of chunk k. In rare cases all chunks get new keys.
func (d *Document) makeRoom(b *pages, k int, n uint64) {
	last := k+1 == len(b.chunks)
	switch {
	case last && b.chunks[k].key < 1<<64-1-keyStep*n:
		return
	case !last && b.chunks[k+1].key-b.chunks[k].key >= n:
		return
	case k == 0 && b.chunks[0].key > keyStep:
		d.note(b.id, b.chunks[0].key-keyStep)
		b.chunks[0].key -= keyStep
		return
	}
	step := min(keyStep, firstKey/(uint64(len(b.chunks))+n))
	for i, ch := range b.chunks {
		d.note(b.id, ch.key)
		d.note(b.id, firstKey+uint64(i)*step)
	}
	for i, ch := range b.chunks {
		ch.key = firstKey + uint64(i)*step
	}
}

// pagesOf returns the container with an id, nil if there is none.
func (d *Document) pagesOf(id uint64) *pages {
	if d.parts == nil {
		return nil
	}
	i := d.parts.from(id)
	if big := d.parts.big; i < len(big) && big[i].id == id && !big[i].gone {
		return big[i]
	}
	return nil
}

// from returns the index of the first container whose id is at least id.
func (p *parts) from(id uint64) int {
	return sort.Search(len(p.big), func(i int) bool { return p.big[i].id >= id })
}
