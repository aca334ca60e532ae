// Tracking: the names of a stream's parts, and the record of their changes.

package streams

import (
	"encoding/binary"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
)

// The first byte of a part's name says what the part is and what follows:
//
//	b  a block: the ID of the first entry ever stored in it
//	c  a consumer: the length of the group's name, the group's name, the consumer's name
//	d  the setting and counters of all producers, if any: nothing follows
//	g  a group: its name
//	i  an entry of a producer: the length of the producer's name, the producer's name, the idempotent ID
//	m  the stream's own numbers: nothing follows
//	p  a pending entry: the length of the group's name, the group's name, the ID
//
// IDs are two big-endian numbers, which sort by value; lengths are uvarints.
const (
	kindBlock       = 'b'
	kindConsumer    = 'c'
	kindProductions = 'd'
	kindGroup       = 'g'
	kindProduction  = 'i'
	kindMeta        = 'm'
	kindPending     = 'p'
)

// metaPart is the name of the part with the stream's own numbers.
const metaPart = string(kindMeta)

// productionsPart is the name of the part with the setting and counters of producers.
const productionsPart = string(kindProductions)

// idLen is the length of an ID in a name.
const idLen = 16

// BlockPart returns the name of the part of the block with the given base. MetaPart returns the name of the part that
// every stored stream has.
func BlockPart(base ID) []byte { return []byte(blockPart(base)) }

// MetaPart: see BlockPart.
func MetaPart() []byte { return []byte(metaPart) }

func blockPart(base ID) string { return string(appendID([]byte{kindBlock}, base)) }

func groupPart(name string) string { return string(kindGroup) + name }

func consumerPart(group, name string) string {
	part := make([]byte, 0, 1+uvarintLen(uint64(len(group)))+len(group)+len(name))
	return text(append(appendText(append(part, kindConsumer), group), name...))
}

func pendingPart(group string, id ID) string {
	part := make([]byte, 0, 1+uvarintLen(uint64(len(group)))+len(group)+idLen)
	return text(appendID(appendText(append(part, kindPending), group), id))
}

func appendID(dst []byte, id ID) []byte {
	dst = binary.BigEndian.AppendUint64(dst, id.Ms)
	return binary.BigEndian.AppendUint64(dst, id.Seq)
}

// appendText is appendBytes for a string.
func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// raw returns the bytes of s, which must not be changed.
func raw(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// text returns b, which must not change any more, as a string.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// tracking is the state of a tracked stream beside its entries and groups.
type tracking struct {
	log *delta.Log
	// partial is set if some blocks may be missing from memory: those whose bases are in no span. The spans are sorted;
	// see partial.go.
	partial bool
	spans   []span
	// blocks are the names of the last noted blocks: for a stream trimmed as it grows, those of both ends.
	blocks [2]struct {
		base ID
		part string
	}
}

// note must be called before the part with the given name changes, appears or goes. The name is kept.
func (s *Stream) note(part string) {
	if s.track != nil {
		s.track.log.Before(raw(part), s)
		s.track.log.After(part, 0)
	}
}

// noteBlock notes a change of the block with the given base.
func (s *Stream) noteBlock(base ID) {
	if s.track != nil {
		s.note(s.track.blockPart(base))
	}
}

// blockPart returns the name of the part with the block's base.
func (t *tracking) blockPart(base ID) string {
	for i := range t.blocks {
		if b := &t.blocks[i]; b.base == base && b.part != "" {
			return b.part
		}
	}
	t.blocks[1] = t.blocks[0]
	t.blocks[0].base, t.blocks[0].part = base, blockPart(base)
	return t.blocks[0].part
}

// notePending must be called before the record of a pending entry changes, appears or goes.
func (g *Group) notePending(id ID) {
	if g.stream.track != nil {
		g.stream.note(pendingPart(g.Name, id))
	}
}

// noteGone must be called before a group is removed, with its consumers and pending entries.
func (s *Stream) noteGone(g *Group) {
	if s.track != nil {
		g.eachPart(s.note)
	}
}

// eachPart calls fn with the names of all parts, in no order. fn may keep them.
func (s *Stream) eachPart(fn func(part string)) {
	fn(metaPart)
	for p := s.blocks.first(); s.blocks.valid(p); p = s.blocks.next(p) {
		fn(blockPart(s.blocks.at(p).base))
	}
	for _, g := range s.groups {
		g.eachPart(fn)
	}
	s.productions.eachPart(fn)
}

// eachPart calls fn with the names of all parts of a group.
func (g *Group) eachPart(fn func(part string)) {
	fn(g.part)
	for _, c := range g.consumers {
		fn(c.part)
	}
	g.pending.ascend(MinID, MaxID, func(n *NACK) bool {
		fn(pendingPart(g.Name, n.ID))
		return true
	})
}

// Walk calls fn with the names of about count parts, which fn may keep: first the blocks, then at once all groups and
// consumers, then the pending entries, then the producers' entries. Parts that exist from the first call to the last
// are visited, whatever changes between the calls.
func (s *Stream) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	var last part // visited
	if c.Name != "" {
		last, _ = parsePart(raw(c.Name)) // made by this method
	}
	if c.Number == walkBlocks {
		p := s.blocks.first()
		if c.Name != "" {
			if after, ok := last.id.Next(); ok {
				p = s.blocks.ceil(after)
			} else {
				p = place{chunk: -1}
			}
		}
		for ; s.blocks.valid(p) && count > 0; p = s.blocks.next(p) {
			c.Name = blockPart(s.blocks.at(p).base)
			fn(c.Name)
			count--
		}
		if s.blocks.valid(p) {
			return c, true
		}
		fn(metaPart)
		if s.productions != nil {
			fn(productionsPart)
		}
		for _, g := range s.groups {
			fn(g.part)
			for _, consumer := range g.consumers {
				fn(consumer.part)
			}
		}
		return delta.Cursor{Number: walkPending}, true
	}
	if c.Number >= walkProducers {
		return s.walkProducers(c, count, fn)
	}
	i := 0
	if c.Name != "" {
		i, _ = search(s.groups, last.group)
	}
	for ; i < len(s.groups); i++ {
		g, from := s.groups[i], MinID
		if c.Name != "" && g.Name == string(last.group) {
			var ok bool
			if from, ok = last.id.Next(); !ok {
				continue
			}
		}
		g.pending.ascend(from, MaxID, func(n *NACK) bool {
			if count > 0 {
				c.Name = pendingPart(g.Name, n.ID)
				fn(c.Name)
			}
			count--
			return count >= 0
		})
		if count < 0 {
			return c, true
		}
	}
	if s.productions == nil {
		return c, false
	}
	return delta.Cursor{Number: walkProducers + uint64(len(s.productions.turns))}, true
}

// walkProducers is the last stage of Walk. The cursor's number says how many producers, at the start of the list, are
// left: when a producer is removed, the last of all takes its place.
func (s *Stream) walkProducers(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	if s.productions == nil {
		return c, false
	}
	left := min(c.Number-walkProducers, uint64(len(s.productions.turns)))
	for ; left > 0 && count > 0; left-- {
		queue := s.productions.turns[left-1].queue
		for _, made := range queue {
			fn(made.part)
		}
		count -= len(queue) + 1
	}
	return delta.Cursor{Number: walkProducers + left}, left > 0
}

// The stages of Walk.
const (
	walkBlocks = iota // then groups and consumers
	walkPending
	walkProducers // and all higher numbers
)
