// Streams with only some blocks in memory. All others are stored.

package streams

import (
	"errors"
	"iter"
	"slices"

	"github.com/atomredis/atomredis/engine/delta"
)

// span is a range of IDs; a partial stream has in memory all blocks whose bases are in its spans. A span begins at the
// base of a block that was read, or at MinID. So no block before a span has entries in it or after it.
type span struct{ first, last ID }

var errLength = errors.New("stream: the stored blocks have the wrong number of entries")

// NewPartial returns a stream of n entries that is stored in parts, with nothing in memory. It notes its changes in
// log. Data must be loaded before a method needs it: see SetRest for data other than entries, and Lack for entries.
func NewPartial(n int, log *delta.Log) *Stream {
	return &Stream{length: n, track: &tracking{log: log, partial: true}}
}

// SetRest gives a partial stream all stored parts other than blocks, in the order of their names. That does not count
// as a change. It keeps none of its arguments.
func (s *Stream) SetRest(parts iter.Seq2[[]byte, []byte]) error {
	l := NewLoader()
	l.s = s
	for name, data := range parts {
		if err := l.Add(name, data); err != nil {
			return err
		}
	}
	_, err := l.Finish(nil)
	return err
}

// RestParts returns the names between which all parts other than blocks are.
func RestParts() (from, to []byte) { return []byte{kindBlock + 1}, []byte{kindPending + 1} }

// Stretch names needed entries: those from From to To, and of these only the first N unless that is 0, or the last N if
// Reverse is set.
type Stretch struct {
	From, To ID
	N        int
	Reverse  bool
}

// Lack is the missing part of a Stretch: it must be read from a gap between blocks in memory.
type Lack struct {
	need   Stretch // its N is the number still needed
	gap    span    // the bases of the missing blocks
	Blocks int     // blocks of the stretch in memory
}

// Between returns the names between which the needed blocks are: from the last one not after from, up to to. They must
// be read from the end if reverse is set.
func (l *Lack) Between() (from, to []byte, reverse bool) {
	return BlockPart(l.gap.atLeast(l.need.From)), BlockPart(l.gap.atMost(l.need.To)), l.need.Reverse
}

func (s span) has(id ID) bool { return !id.Less(s.first) && !s.last.Less(id) }

// atLeast returns the later of id and the start of the span.
func (s span) atLeast(id ID) ID {
	if id.Less(s.first) {
		return s.first
	}
	return id
}

// atMost returns the earlier of id and the end of the span.
func (s span) atMost(id ID) ID {
	if s.last.Less(id) {
		return s.last
	}
	return id
}

// partial reports whether some blocks may not be in memory.
func (s *Stream) partial() bool { return s.track != nil && s.track.partial }

// Lack returns what must be read next for a stretch; lacks is false if the stretch is in memory.
func (s *Stream) Lack(need Stretch) (l Lack, lacks bool) {
	if !s.partial() || need.To.Less(need.From) {
		return Lack{}, false
	}
	begin := need.From
	if need.Reverse {
		begin = need.To
	}
	l = Lack{need: need}
	i := s.spanOf(begin)
	if i < 0 || !s.track.spans[i].has(begin) {
		l.gap = s.gap(i)
		return l, true
	}
	known := s.track.spans[i]
	n, p, step := 0, s.blocks.ceil(known.atLeast(s.floorBase(need.From))), s.blocks.next
	if need.Reverse {
		p, step = s.blocks.floor(need.To), s.blocks.prev
	}
	for ; s.blocks.valid(p) && (need.N == 0 || n < need.N); p = step(p) {
		b := s.blocks.at(p)
		if !known.has(b.base) || need.To.Less(b.base) {
			break
		}
		l.Blocks++
		n += b.count(need, need.N-n)
	}
	switch {
	case need.N > 0 && n >= need.N:
		return l, false
	case need.Reverse && !need.From.Less(known.first), !need.Reverse && !known.last.Less(need.To):
		return l, false
	}
	if need.N > 0 {
		l.need.N -= n
	}
	if need.Reverse {
		i--
	}
	l.gap = s.gap(i)
	return l, true
}

// floorBase returns the base of the last block in memory that does not begin after id, or id if there is none.
func (s *Stream) floorBase(id ID) ID {
	if p := s.blocks.floor(id); s.blocks.valid(p) {
		return s.blocks.at(p).base
	}
	return id
}

// count returns how many entries of a stretch a block has, at most most if that is positive.
func (b *block) count(need Stretch, most int) (n int) {
	b.ascend(need.From, need.To, func(Entry) bool {
		n++
		return n != most
	})
	return n
}

// spanOf returns the index of the last span that does not begin after id, -1 if there is none.
func (s *Stream) spanOf(id ID) int {
	i, found := slices.BinarySearchFunc(s.track.spans, id, func(s span, id ID) int { return s.first.Compare(id) })
	if found {
		return i
	}
	return i - 1
}

// gap returns the range missing from memory after span i, or from the beginning if i is -1. It is not empty, because
// adjacent spans are merged.
func (s *Stream) gap(i int) span {
	gap := span{MinID, MaxID}
	if i >= 0 {
		gap.first, _ = s.track.spans[i].last.Next()
	}
	if i+1 < len(s.track.spans) {
		gap.last, _ = s.track.spans[i+1].first.Prev()
	}
	return gap
}

// Blocks are blocks read for a Lack.
type Blocks struct {
	lack   Lack
	blocks []block // in the order of reading
	n      int     // entries
	ended  bool    // stopped before all was read
}

// NewBlocks returns a collection without blocks.
func NewBlocks(l Lack) *Blocks { return &Blocks{lack: l} }

// Len returns the number of blocks.
func (r *Blocks) Len() int { return len(r.blocks) }

// Add adds the block with a part's name and data, unless it is not needed, and keeps neither. more is false if no
// further block is needed, or if there are most.
func (r *Blocks) Add(name, data []byte, most int) (more bool, err error) {
	p, err := parsePart(name)
	switch {
	case err != nil:
		return false, err
	case p.kind != kindBlock:
		return false, errName
	case !r.lack.gap.has(p.id):
		return !r.lack.need.Reverse, nil
	case len(data) == 0 || data[0] != format:
		return false, errFormat
	}
	b, err := decodeBlock(p.id, &reader{b: data[1:]})
	if err != nil {
		return false, err
	}
	r.blocks = append(r.blocks, b)
	r.n += b.count(r.lack.need, r.lack.need.N-r.n)
	r.ended = r.lack.need.N > 0 && r.n >= r.lack.need.N || len(r.blocks) >= most
	return !r.ended, nil
}

// span returns the range in which there are no other blocks than those read.
func (r *Blocks) span() span {
	found, need := r.lack.gap, r.lack.need
	if need.Reverse {
		found.last = found.atMost(need.To)
		if n := len(r.blocks); n > 0 {
			if last := r.blocks[n-1].base; r.ended || !need.From.Less(last) {
				found.first = last
			}
		}
		return found
	}
	if len(r.blocks) > 0 && !need.From.Less(r.blocks[0].base) {
		found.first = r.blocks[0].base
	}
	end := need.To
	if n := len(r.blocks); n > 0 {
		if last := r.blocks[n-1].newest().id; r.ended || end.Less(last) {
			end = last // no other block begins before
		}
	}
	found.last = found.atMost(end)
	return found
}

// Reach adds blocks that were read, except those already in memory, which may have changed. That does not count as a
// change.
func (s *Stream) Reach(r *Blocks) error {
	if !s.partial() {
		return nil
	}
	for _, b := range r.blocks {
		if err := s.reach(b); err != nil {
			return err
		}
	}
	return s.learn(r.span())
}

func (s *Stream) reach(b block) error {
	if i := s.spanOf(b.base); i >= 0 && s.track.spans[i].has(b.base) || s.blocks.get(b.base) != nil {
		return nil
	}
	if p := s.blocks.floor(b.base); s.blocks.valid(p) && !s.blocks.at(p).newest().id.Less(b.base) {
		return errBlockOrder
	}
	if p := s.blocks.ceil(b.base); s.blocks.valid(p) && !b.newest().id.Less(s.blocks.at(p).base) {
		return errBlockOrder
	}
	*s.blocks.add(b.base) = b
	s.buffers += cap(b.buf)
	return nil
}

// learn records that all blocks of a span are in memory.
func (s *Stream) learn(found span) error {
	spans := append(slices.Clone(s.track.spans), found) // the old slice may be in use: see Known
	slices.SortFunc(spans, func(a, b span) int { return a.first.Compare(b.first) })
	all := spans[:1]
	for _, next := range spans[1:] {
		last := &all[len(all)-1]
		if end, ok := last.last.Next(); ok && end.Less(next.first) {
			all = append(all, next)
		} else if last.last.Less(next.last) {
			last.last = next.last
		}
	}
	s.track.spans = all
	if all[0] != (span{MinID, MaxID}) {
		return nil
	}
	n := 0
	for p := s.blocks.first(); s.blocks.valid(p); p = s.blocks.next(p) {
		n += int(s.blocks.at(p).live)
	}
	if n != s.length {
		return errLength
	}
	s.track.partial, s.track.spans = false, nil
	return nil
}

// Fill gives a partial stream its missing blocks. whole is the stream as stored; it must not be used afterwards.
func (s *Stream) Fill(whole *Stream) error {
	if !s.partial() {
		return nil
	}
	for p := whole.blocks.first(); whole.blocks.valid(p); p = whole.blocks.next(p) {
		if err := s.reach(*whole.blocks.at(p)); err != nil {
			return err
		}
	}
	return s.learn(span{MinID, MaxID})
}

// Known returns a function that reports whether a part is in memory as of now; nil if all are.
func (s *Stream) Known() func(name string) bool {
	if !s.partial() {
		return nil
	}
	then := &Stream{track: &tracking{spans: s.track.spans}}
	return func(name string) bool {
		p, err := parsePart(raw(name))
		if err != nil || p.kind != kindBlock {
			return true
		}
		i := then.spanOf(p.id)
		return i >= 0 && then.track.spans[i].has(p.id)
	}
}
