package vectors

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/atomredis/atomredis/engine/prefetch"
)

// key is a distance and the node that has it. Keys are ordered by the distance, and then by the node.
type key uint64

func makeKey(distance float32, id uint32) key {
	b := math.Float32bits(distance)
	b ^= uint32(int32(b)>>31) | 1<<31 // is in the order of the floats
	return key(b)<<32 | key(id)
}

func (k key) id() uint32 { return uint32(k) }

func (k key) distance() float32 {
	b := uint32(k >> 32)
	b ^= ^uint32(int32(b)>>31) | 1<<31
	return math.Float32frombits(b)
}

// nearest is a heap with the lowest key in front, farthest one with the highest.
type (
	nearest  []key
	farthest []key
)

func (h *nearest) push(k key) {
	s := append(*h, k)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up] <= k {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = k
	*h = s
}

func (h *nearest) pop() key {
	s := *h
	first, k := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return first
	}
	i := 0
	for {
		kid := 2*i + 1
		if kid >= len(s) {
			break
		}
		if kid+1 < len(s) && s[kid+1] < s[kid] {
			kid++
		}
		if s[kid] >= k {
			break
		}
		s[i] = s[kid]
		i = kid
	}
	s[i] = k
	return first
}

func (h *farthest) push(k key) {
	s := append(*h, k)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up] >= k {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = k
	*h = s
}

// replace puts a key in the place of the highest one.
func (h farthest) replace(k key) {
	i := 0
	for {
		kid := 2*i + 1
		if kid >= len(h) {
			break
		}
		if kid+1 < len(h) && h[kid+1] > h[kid] {
			kid++
		}
		if h[kid] <= k {
			break
		}
		h[i] = h[kid]
		i = kid
	}
	h[i] = k
}

// sort puts the keys in ascending order.
func (h farthest) sort() { slices.Sort(h) }

// scratch is the memory of one search.
type scratch struct {
	q       query
	next    nearest  // nodes whose neighbours have not been looked at
	found   farthest // sorted when a search is over
	seen    []uint64 // a bit for each node
	fresh   []uint32 // neighbours of a node that have not been looked at
	fetches prefetch.List

	other query // for comparisons of nodes with each other
	keys  []key
	mine  []key
	nodes []uint32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func newScratch() *scratch { return scratches.Get().(*scratch) }

// maxKept is how many elements of its parts a scratch keeps.
const maxKept = 1 << 16

// release gives the scratch back. It keeps no view of a set.
func (w *scratch) release() {
	w.q.words, w.q.floats, w.other.words, w.other.floats = nil, nil, nil, nil
	if cap(w.next)+cap(w.found)+cap(w.seen)+cap(w.q.high) > maxKept {
		return
	}
	scratches.Put(w)
}

// reset empties the scratch for a search among n nodes.
func (w *scratch) reset(n int) {
	w.next, w.found = w.next[:0], w.found[:0]
	words := (n + 63) / 64
	if cap(w.seen) < words {
		w.seen = make([]uint64, words)
	}
	w.seen = w.seen[:words]
	clear(w.seen)
}

// see marks a node, and reports whether it was not marked.
func (w *scratch) see(id uint32) bool {
	bit := uint64(1) << (id % 64)
	if w.seen[id/64]&bit != 0 {
		return false
	}
	w.seen[id/64] |= bit
	return true
}

// capacity returns how many links a node can have on a level.
func (s *Set) capacity(level int) int {
	if level == 0 {
		return 2 * s.m
	}
	return s.m
}

// record returns what is kept of the links of a node on a level, which it must have: how many there are, and room for
// as many as there can be.
func (s *Set) record(id uint32, level int) []uint32 {
	if level == 0 {
		return s.bottom.at(id)
	}
	from := (level - 1) * (s.m + 1)
	return s.upper[id][from : from+s.m+1]
}

// links returns the links of a node on a level.
func (s *Set) links(id uint32, level int) []uint32 {
	r := s.record(id, level)
	return r[1 : 1+r[0]]
}

// level returns the level of a node.
func (s *Set) level(id uint32) int { return len(s.upper[id]) / (s.m + 1) }

// Level returns the level of node id, on which and below it has links.
func (s *Set) Level(id uint32) int { return s.level(id) }

// Links returns the nodes that node id is linked with on a level. They are a view until the set changes.
func (s *Set) Links(id uint32, level int) []uint32 { return s.links(id, level) }

// maxLevel is the highest level of all.
const maxLevel = 16

// nextLevel returns the level of the node that is added next. One of M nodes is also on the next level.
func (s *Set) nextLevel() (level int) {
	h := mix(s.seed + s.added)
	for level < maxLevel && h%uint64(s.m) == 0 {
		h /= uint64(s.m)
		level++
	}
	return level
}

// add links a with b one way. There must be room.
func (s *Set) add(a, b uint32, level int) {
	s.note(linksPart, a)
	r := s.record(a, level)
	n := int(r[0])
	i := sort.Search(n, func(i int) bool { return r[1+i] >= b })
	copy(r[2+i:2+n], r[1+i:1+n])
	r[1+i] = b
	r[0]++
}

// drop ends a link one way.
func (s *Set) drop(a, b uint32, level int) {
	s.note(linksPart, a)
	r := s.record(a, level)
	n := int(r[0])
	if i, ok := slices.BinarySearch(r[1:1+n], b); ok {
		copy(r[1+i:n], r[2+i:1+n])
		r[n] = 0
		r[0]--
	}
}

// full reports whether a node has no room for links on a level.
func (s *Set) full(id uint32, level int) bool {
	return int(s.record(id, level)[0]) == s.capacity(level)
}

// search looks for the ef nodes on a level that are nearest to the query of w, beginning at a node, and leaves them
// in w.found, in no order. Distances are those of rough.
func (s *Set) search(w *scratch, start uint32, ef, level int, accept func(id uint32) bool, effort int) {
	w.reset(s.Len())
	w.see(start)
	first := makeKey(s.rough(&w.q, start), start)
	w.next.push(first)
	if accept == nil || accept(start) {
		w.found.push(first)
	}
	worst := ^key(0)
	if len(w.found) == ef {
		worst = w.found[0]
	}
	for n := 0; len(w.next) > 0; n++ {
		k := w.next.pop()
		if k > worst || n == effort && accept != nil && effort > 0 {
			break
		}
		w.fresh = w.fresh[:0]
		for _, id := range s.links(k.id(), level) {
			if w.see(id) {
				w.fresh = append(w.fresh, id)
			}
		}
		if len(w.next) > 0 && level == 0 { // whose links are probably wanted next
			r := s.bottom.at(w.next[0].id())
			w.fetches.Add(uintptr(unsafe.Pointer(unsafe.SliceData(r))), min(4*len(r), 2*prefetch.LineSize))
		}
		for i, id := range w.fresh {
			if i%fetched == 0 {
				s.fetch(w, w.fresh[i:min(i+fetched, len(w.fresh))])
			}
			k := makeKey(s.rough(&w.q, id), id)
			if k >= worst {
				continue
			}
			w.next.push(k)
			if accept != nil && !accept(id) {
				continue
			}
			if len(w.found) < ef {
				w.found.push(k)
			} else {
				w.found.replace(k)
			}
			if len(w.found) == ef {
				worst = w.found[0]
			}
		}
	}
}

// fetched is how many vectors are fetched at once: as many as a list takes, beside links.
const fetched = prefetch.Len/fetchedLines - 1

// fetchedLines is how many lines of memory of a vector are fetched: what follows them the processor fetches itself.
const fetchedLines = 3

// fetch begins to fetch the vectors of nodes from memory, which takes longer than to compare them.
func (s *Set) fetch(w *scratch, ids []uint32) {
	for _, id := range ids {
		var p uintptr
		var size int
		if s.quant == None {
			v := s.floats.at(id)
			p, size = uintptr(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v)
		} else {
			v := s.words.at(id)
			p, size = uintptr(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v)
		}
		w.fetches.Add(p, min(size, fetchedLines*prefetch.LineSize))
		if size > 2*prefetch.LineSize {
			w.fetches.Add(p+prefetch.LineSize, 1)
		}
	}
	w.fetches.Fetch()
}

// descend goes from the highest level down to the one above level, always to the node that is nearest to the query of
// w, and returns where it arrives.
func (s *Set) descend(w *scratch, level int) uint32 {
	best := makeKey(s.rough(&w.q, s.entry), s.entry)
	for l := s.top; l > level; l-- {
		for moved := true; moved; {
			moved = false
			for _, id := range s.links(best.id(), l) {
				if k := makeKey(s.rough(&w.q, id), id); k < best {
					best, moved = k, true
				}
			}
		}
	}
	return best.id()
}

// scan looks at all nodes and leaves the count nearest in w.found, sorted.
func (s *Set) scan(w *scratch, count int, accept func(id uint32) bool) {
	w.found = w.found[:0]
	for id := range uint32(s.Len()) {
		k := makeKey(s.distance(&w.q, id), id)
		switch {
		case len(w.found) == count && k >= w.found[0] || accept != nil && !accept(id):
		case len(w.found) < count:
			w.found.push(k)
		default:
			w.found.replace(k)
		}
	}
	w.found.sort()
}

// link gives the newest node, of which all but the links is there, its place in the graph.
func (s *Set) link(id uint32, ef int) {
	level := s.nextLevel()
	s.added++
	s.bottom.push()
	if level > 0 {
		s.upper[id] = make([]uint32, level*(s.m+1))
		s.upperWords += level * (s.m + 1)
	}
	if id == 0 {
		s.entry, s.top = id, level
		return
	}
	w := newScratch()
	defer w.release()
	s.queryOf(&w.q, id)
	at := s.descend(w, min(level, s.top))
	for l := min(level, s.top); l >= 0; l-- {
		s.search(w, at, min(ef, int(id)), l, nil, 0)
		w.found.sort()
		w.keys = append(w.keys[:0], w.found...)
		at = w.keys[0].id()
		for i, other := range s.choose(w, w.keys, s.m) {
			s.connect(w, id, other, l, i < minForced)
		}
		if s.record(id, l)[0] == 0 { // all others need what they have
			s.makeWay(w, id, w.nodes[0], l)
		}
	}
	if level > s.top {
		s.entry, s.top = id, level
	}
}

// choose returns those of the candidates, sorted by their distances to a node, to which it should have links: first
// such that are nearer to the node than to any that was chosen before, so that links lead in all directions; then the
// nearest others. The candidates are overwritten.
func (s *Set) choose(w *scratch, candidates []key, most int) []uint32 {
	chosen := w.nodes[:0]
	rest := candidates[:0]
	for _, k := range candidates {
		if len(chosen) == most/2 {
			rest = append(rest, k)
			continue
		}
		s.queryOf(&w.other, k.id())
		near := false
		for _, c := range chosen {
			if near = s.rough(&w.other, c) < k.distance(); near {
				break
			}
		}
		if near {
			rest = append(rest, k)
		} else {
			chosen = append(chosen, k.id())
		}
	}
	for _, k := range rest {
		if len(chosen) == most {
			break
		}
		chosen = append(chosen, k.id())
	}
	w.nodes = chosen
	return chosen
}

// makeWay links a node with another one, which gives up its farthest link.
func (s *Set) makeWay(w *scratch, id, other uint32, level int) {
	s.queryOf(&w.other, other)
	far := key(0)
	for _, l := range s.links(other, level) {
		far = max(far, makeKey(s.rough(&w.other, l), l))
	}
	s.drop(other, far.id(), level)
	s.drop(far.id(), other, level)
	s.add(id, other, level)
	s.add(other, id, level)
	if s.record(far.id(), level)[0] == 0 {
		s.add(id, far.id(), level)
		s.add(far.id(), id, level)
	}
}

// minForced is how many links a new node gets although the other nodes have nearer ones.
const minForced = 2

// connect links a node with another one, which gives up a link if it has no room: one that is farther, or any if the
// link is forced.
func (s *Set) connect(w *scratch, id, other uint32, level int, forced bool) {
	if s.full(id, level) {
		return
	}
	if s.full(other, level) {
		s.queryOf(&w.other, other)
		beyond := key(0)
		if !forced {
			beyond = makeKey(s.rough(&w.other, id), id)
		}
		if !s.giveUp(w, other, level, beyond) {
			return
		}
	}
	s.add(id, other, level)
	s.add(other, id, level)
}

// giveUp ends the farthest link of a node that is not needed, if there is one beyond a distance. What the other node
// needs is half of the links that it can have, and, if these are few, each without which there is no way by a common
// neighbour: so nothing is cut off. w.other is the query of the node.
func (s *Set) giveUp(w *scratch, id uint32, level int, beyond key) bool {
	least := s.capacity(level) / 2
	w.mine = w.mine[:0]
	for _, l := range s.links(id, level) {
		if k := makeKey(s.rough(&w.other, l), l); k > beyond && int(s.record(l, level)[0]) > least {
			w.mine = append(w.mine, k)
		}
	}
	slices.Sort(w.mine)
	for _, k := range slices.Backward(w.mine) {
		if int(s.record(k.id(), level)[0]) > fewLinks || s.meet(id, k.id(), level) {
			s.drop(id, k.id(), level)
			s.drop(k.id(), id, level)
			return true
		}
	}
	return false
}

// fewLinks is how many links a node has at most of which one more or less decides whether it can be reached.
const fewLinks = 12

// meet reports whether two nodes have a common neighbour on a level.
func (s *Set) meet(a, b uint32, level int) bool {
	x, y := s.links(a, level), s.links(b, level)
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] == y[0]:
			return true
		case x[0] < y[0]:
			x = x[1:]
		default:
			y = y[1:]
		}
	}
	return false
}

// repairPairs is how many other neighbours of a node that goes a neighbour may be linked with.
const repairPairs = 64

// unlink takes a node out of the graph. Those that were linked with it are linked with each other, the nearest first.
func (s *Set) unlink(id uint32) {
	w := newScratch()
	defer w.release()
	level := s.level(id)
	for l := level; l >= 0; l-- {
		nodes := append([]uint32(nil), s.links(id, l)...)
		for _, n := range nodes {
			s.drop(n, id, l)
			s.drop(id, n, l)
		}
		s.repair(w, nodes, l, id)
	}
	if s.entry == id {
		s.replaceEntry(id)
	}
	s.upperWords -= len(s.upper[id])
	delete(s.upper, id)
}

// repair links nodes that have lost a link on a level, because a node goes: first so that each can still be reached
// from the others, then as far as they have room.
func (s *Set) repair(w *scratch, nodes []uint32, level int, gone uint32) {
	type pair struct {
		distance key
		a, b     int
	}
	var pairs []pair
	groups := make([]int, len(nodes)) // those with the same root are linked
	root := func(i int) int {
		for groups[i] != i {
			groups[i] = groups[groups[i]]
			i = groups[i]
		}
		return i
	}
	for i := range groups {
		groups[i] = i
	}
	for i, a := range nodes {
		s.queryOf(&w.other, a)
		have := s.links(a, level)
		for k := i + 1; k < min(len(nodes), i+1+repairPairs); k++ {
			if _, ok := slices.BinarySearch(have, nodes[k]); ok {
				groups[root(i)] = root(k)
			} else {
				pairs = append(pairs, pair{makeKey(s.rough(&w.other, nodes[k]), 0), i, k})
			}
		}
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	given := make([]bool, len(nodes))
	for _, joining := range [...]bool{true, false} {
		for _, p := range pairs {
			a, b := nodes[p.a], nodes[p.b]
			if joining && (root(p.a) == root(p.b) || !s.room(w, a, level) || !s.room(w, b, level)) ||
				!joining && (given[p.a] || given[p.b] || s.full(a, level) || s.full(b, level)) {
				continue
			}
			if _, ok := slices.BinarySearch(s.links(a, level), b); ok {
				continue // since the last round
			}
			s.add(a, b, level)
			s.add(b, a, level)
			groups[root(p.a)] = root(p.b)
			given[p.a], given[p.b] = true, true
		}
	}
	for _, n := range nodes {
		if s.record(n, level)[0] == 0 {
			s.reconnect(w, n, level, gone)
		}
	}
}

// room makes room for a link of a node, if there is a link that is not needed.
func (s *Set) room(w *scratch, id uint32, level int) bool {
	if !s.full(id, level) {
		return true
	}
	s.queryOf(&w.other, id)
	return s.giveUp(w, id, level, 0)
}

// reconnect looks for links for a node that has none on a level, other than to a node that goes.
func (s *Set) reconnect(w *scratch, id uint32, level int, gone uint32) {
	if s.Len() <= 2 {
		return
	}
	s.queryOf(&w.q, id)
	accept := func(other uint32) bool { return other != id && other != gone }
	start := s.entry
	if start == id || start == gone { // which lead nowhere
		if level > 0 {
			return // nothing depends on links above
		}
		for start = 0; !accept(start); start++ {
		}
	} else {
		start = s.descend(w, level)
	}
	s.search(w, start, min(DefaultBuildEF, s.Len()), level, accept, 0)
	w.found.sort()
	w.keys = append(w.keys[:0], w.found...)
	for _, other := range s.choose(w, w.keys, s.capacity(level)/2) {
		s.connect(w, id, other, level, true)
	}
}

// replaceEntry makes another node the one where searches begin.
func (s *Set) replaceEntry(id uint32) {
	s.entry, s.top = 0, 0
	if id == 0 && s.Len() > 1 {
		s.entry = 1
	}
	for other, links := range s.upper {
		level := len(links) / (s.m + 1)
		if other != id && (level > s.top || level == s.top && level > 0 && other < s.entry) {
			s.entry, s.top = other, level
		}
	}
}

// renumber gives a node another number, which no node has.
func (s *Set) renumber(from, to uint32) {
	for l := s.level(from); l >= 0; l-- {
		for _, n := range s.links(from, l) {
			s.drop(n, from, l)
			s.add(n, to, l)
		}
	}
	copy(s.bottom.at(to), s.bottom.at(from))
	if links, ok := s.upper[from]; ok {
		s.upper[to] = links
		delete(s.upper, from)
	}
	if s.entry == from {
		s.entry = to
	}
}
