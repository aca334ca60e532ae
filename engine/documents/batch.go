package documents

import (
	"cmp"
	"slices"
)

// Batch is a set of changes made at once: each page is rewritten only once. Places refer to the document before the
// batch. They must be distinct, and none may lie within another.
type Batch struct {
	d      *Document
	levels []level
	pages  []*edited
	of     map[*chunk]*edited
	rest   []edit        // replacements made one by one
	gone   []*Place      // removals made one by one
	busy   map[busy]bool // where members are removed
}

// busy is a container in a chunk, with all its content.
type busy struct {
	ch   *chunk
	head int
}

// level is a step of the path to the last place looked up.
type level struct {
	place *Place
	spot  spot
}

// edited is a chunk with pending changes.
type edited struct {
	frames []frame
	ch     *chunk
	edits  []edit
}

// edit replaces the bytes [from, to) of a chunk.
type edit struct {
	from, to int
	with     []byte
	n        int   // change of the element count of the innermost container
	heads    []int // of the enclosing containers in the chunk
	place    *Place
	value    Value // the new value of a replacement
}

// Batch returns an empty batch of changes of the document.
func (d *Document) Batch() *Batch {
	return &Batch{d: d, of: map[*chunk]*edited{}, busy: map[busy]bool{}}
}

// Find returns the value, before the batch, at a place, which must exist.
func (b *Batch) Find(p *Place) Value { return b.spot(p, p.Depth()).value() }

// Replace schedules v, which the document keeps, to replace the value at p.
func (b *Batch) Replace(p *Place, v Value) {
	s := b.spot(p, p.Depth())
	with := encoded(v)
	if _, isRef := refAt(s.ch.enc[s.item.value:]); isRef || len(with.refs) > 0 {
		b.rest = append(b.rest, edit{place: p, value: v})
		return
	}
	b.add(s, edit{from: s.item.value, to: s.item.end, with: with.enc, place: p, value: v})
}

// Remove schedules the removal of the value at p, which is not the root. A batch either removes only elements of arrays
// or only members of objects.
func (b *Batch) Remove(p *Place) {
	s := b.spot(p, p.Depth())
	if p.Index < 0 {
		b.removeMember(s, p)
		return
	}
	if i, isRef := refAt(s.ch.enc[s.item.value:]); isRef {
		b.d.drop(s.ch.refs[i].value())
		b.d.forget(s, s.item.value)
	}
	b.add(s, edit{from: s.item.at, to: s.item.end, n: -1, place: p})
}

// removeMember schedules the removal of a member. The members behind it move, so a container without pages, with all
// its content, allows only one such change.
func (b *Batch) removeMember(s *spot, p *Place) {
	if len(s.heads) == 0 || b.busy[busy{s.ch, s.heads[0]}] {
		b.gone = append(b.gone, p)
		return
	}
	b.busy[busy{s.ch, s.heads[0]}] = true
	at := s.heads[len(s.heads)-1]
	_, count := head(s.ch.enc[at:])
	last := nth(s.ch.enc, at+headSize, count-1, true)
	b.add(s, edit{from: s.item.at, to: b.d.limit(s), with: moved(s.ch.enc, s.item, last), n: -1, place: p})
}

// add records a change in the chunk of a spot.
func (b *Batch) add(s *spot, e edit) {
	page := b.of[s.ch]
	if page == nil {
		page = &edited{frames: slices.Clone(s.frames), ch: s.ch}
		b.of[s.ch], b.pages = page, append(b.pages, page)
	}
	// Changes in one container share its heads.
	if n := len(page.edits); n > 0 && slices.Equal(page.edits[n-1].heads, s.heads) {
		e.heads = page.edits[n-1].heads
	} else {
		e.heads = slices.Clone(s.heads)
	}
	page.edits = append(page.edits, e)
}

// spot returns the spot of the value at a place, which must exist. If the previous place is in the same container, the
// search starts there.
func (b *Batch) spot(p *Place, depth int) *spot {
	for len(b.levels) <= depth {
		b.levels = append(b.levels, level{})
	}
	l := &b.levels[depth]
	if l.place == p && (p != nil || l.spot.ch != nil) {
		return &l.spot
	}
	if p == nil {
		l.spot, _ = b.d.spot(nil)
		return &l.spot
	}
	up := b.spot(p.Up, depth-1)
	l = &b.levels[depth]
	if l.place == nil || l.place.Up != p.Up || l.place.Index < 0 || !b.forward(l, p.Index-l.place.Index) {
		l.spot.frames = append(l.spot.frames[:0], up.frames...)
		l.spot.heads = append(l.spot.heads[:0], up.heads...)
		l.spot.ch, l.spot.item = up.ch, up.item
		l.spot.step(p)
	}
	l.place = p
	return &l.spot
}

// forward advances a level by n elements of its array, and reports whether it stays in the same chunk.
func (b *Batch) forward(l *level, n int) bool {
	s := &l.spot
	if n < 0 {
		return false
	}
	limit := b.d.limit(s)
	it := s.item
	for ; n > 0; n-- {
		if it.end >= limit {
			return false
		}
		it = itemAt(s.ch.enc, it.end, false)
	}
	s.item = it
	return true
}

// Do makes the changes.
func (b *Batch) Do() {
	for _, page := range b.pages {
		if !page.apply(b.d) {
			b.rest = append(b.rest, page.edits...) // no removals, so nothing here grows
		}
	}
	for _, e := range b.rest {
		b.d.Replace(e.place, e.value)
	}
	for _, p := range b.gone {
		b.d.Remove(p)
	}
	for _, page := range b.pages {
		if n := len(page.frames); n > 0 {
			f := &page.frames[n-1]
			k, ok := f.pages.find(page.ch.key)
			if ok && f.pages.chunks[k] == page.ch {
				f.k = k
				b.d.balance(&spot{frames: page.frames, ch: page.ch})
			}
		}
	}
}

// apply makes the changes of a chunk; it reports false, and makes none, if a container would become too large.
func (page *edited) apply(d *Document) bool {
	slices.SortFunc(page.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	type change struct{ size, n, shift int }
	heads := map[int]*change{}
	elements, shift := 0, 0
	for _, e := range page.edits {
		more := len(e.with) - (e.to - e.from)
		for i, at := range e.heads {
			c := heads[at]
			if c == nil {
				// All earlier edits lie before this head: an edit after it and within the container would list it in its heads.
				c = &change{shift: shift}
				heads[at] = c
			}
			c.size += more
			if i == len(e.heads)-1 {
				c.n += e.n
			}
		}
		if len(e.heads) == 0 {
			elements += e.n
		}
		shift += more
	}
	for at, c := range heads {
		if size, _ := head(page.ch.enc[at:]); size+c.size > maxFlat && c.size > 0 {
			return false
		}
	}
	s := spot{frames: page.frames, ch: page.ch}
	d.noteSpot(&s)
	before := page.ch.memory()
	old := page.ch.enc
	enc, from := make([]byte, 0, len(old)+shift), 0
	for _, e := range page.edits {
		enc = append(append(enc, old[from:e.from]...), e.with...)
		from = e.to
	}
	enc = append(enc, old[from:]...)
	for at, c := range heads {
		size, count := head(enc[at+c.shift:])
		putHead(enc[at+c.shift:], enc[at+c.shift], size+c.size, count+c.n)
	}
	page.ch.enc = enc
	if n := len(page.frames); n > 0 {
		f := page.frames[n-1]
		page.ch.n += elements
		f.pages.count += elements
		if elements != 0 {
			f.pages.known = 0
		}
	}
	d.grown(page.frames, page.ch.memory()-before)
	return true
}
