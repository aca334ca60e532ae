// Package streams is the stream data type: entries in the order of their IDs,
// and the consumer groups that read them. It knows no protocol, locks, clock or
// I/O: times are given by the caller, in milliseconds.
package streams

import (
	"errors"

	"github.com/tidwall/btree"

	"github.com/atomredis/atomredis/engine/delta"
)

// Stream is an append-only log of entries with 128-bit IDs. Appending is O(1)
// on average, and finding an ID is O(log n).
//
// The entries are in blocks (see block.go), and the blocks in a tree by the ID
// of the first entry ever stored in each. No block is empty.
type Stream struct {
	blocks       *btree.BTreeG[node]
	tail         *block // the last block, nil if there is none
	length       int
	lastID       ID
	maxDeletedID ID
	entriesAdded int64
	groups       []*Group   // by name
	bufBytes     int        // capacity of all buffers
	log          *delta.Log // nil unless the stream is tracked
}

// node is a block in the tree, with its key beside the pointer.
type node struct {
	base ID
	*block
}

// Limits bounds what goes into one block; zero is no bound.
type Limits struct {
	Entries int // stream-node-max-entries
	Bytes   int // stream-node-max-bytes
}

// DefaultLimits are the limits of a server that was not told otherwise.
var DefaultLimits = Limits{Entries: 100, Bytes: 4096}

// The errors that the stream itself finds, in the words that clients know.
var (
	ErrIDTooSmall           = errors.New("ERR The ID specified in XADD is equal or smaller than the target stream top item")
	ErrTooLarge             = errors.New("ERR Elements are too large to be stored")
	ErrSetIDTooSmall        = errors.New("ERR The ID specified in XSETID is smaller than the target stream top item")
	ErrSetIDBelowDeleted    = errors.New("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
	ErrEntriesAddedTooSmall = errors.New("ERR The entries_added specified in XSETID is smaller than the target stream length")
)

// maxEntryBytes bounds the fields and values of one entry together.
const maxEntryBytes = 1 << 30

// New returns an empty stream.
func New() *Stream {
	return &Stream{blocks: btree.NewBTreeGOptions(
		func(a, b node) bool { return a.base.Less(b.base) },
		btree.Options{NoLocks: true},
	)}
}

// Len returns the number of entries.
func (s *Stream) Len() int { return s.length }

// LastID returns the highest ID that was ever given out or set.
func (s *Stream) LastID() ID { return s.lastID }

// MaxDeletedID returns the highest ID that Delete removed, or 0-0.
func (s *Stream) MaxDeletedID() ID { return s.maxDeletedID }

// EntriesAdded returns how many entries were ever added.
func (s *Stream) EntriesAdded() int64 { return s.entriesAdded }

// NodeCount returns the number of blocks.
func (s *Stream) NodeCount() int { return s.blocks.Len() }

// MemoryUsage estimates how many bytes the stream takes. It is O(groups).
func (s *Stream) MemoryUsage() int {
	n := s.bufBytes + s.blocks.Len()*blockOverhead
	for _, g := range s.groups {
		n += groupOverhead + len(g.consumers)*consumerOverhead + g.pending.len()*nackOverhead
	}
	return n
}

// What the structures around the buffers take, tree nodes included.
const (
	blockOverhead    = 192
	groupOverhead    = 320
	consumerOverhead = 288
	nackOverhead     = 112
)

// FirstID returns the ID of the first entry, or 0-0 if there is none.
func (s *Stream) FirstID() ID {
	if n, ok := s.blocks.Min(); ok {
		return n.first().id
	}
	return ID{}
}

// First returns the first entry.
func (s *Stream) First() (Entry, bool) {
	n, ok := s.blocks.Min()
	if !ok {
		return Entry{}, false
	}
	return n.entry(n.first()), true
}

// Last returns the last entry.
func (s *Stream) Last() (Entry, bool) {
	if s.tail == nil {
		return Entry{}, false
	}
	return s.tail.entry(s.tail.newest()), true
}

// NextID returns the ID for an entry added at the given time; ok is false if
// no ID is left.
func (s *Stream) NextID(ms uint64) (id ID, ok bool) {
	if ms > s.lastID.Ms {
		return ID{Ms: ms}, true
	}
	return s.lastID.Next()
}

// NextSeq completes an ID of which only the time is given; ok is false if no ID
// is left. The result may still be too small for Append.
func (s *Stream) NextSeq(ms uint64) (id ID, ok bool) {
	if ms != s.lastID.Ms {
		return ID{Ms: ms}, true
	}
	id, ok = s.lastID.Next()
	return id, ok && id.Ms == ms
}

// Append adds an entry. fields is field, value, field, value, ..., at least one
// pair, and is copied. The ID must be after LastID.
func (s *Stream) Append(id ID, fields [][]byte, lim Limits) error {
	if !s.lastID.Less(id) {
		return ErrIDTooSmall
	}
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	if size > maxEntryBytes {
		return ErrTooLarge
	}
	b := s.tail
	if b == nil ||
		lim.Bytes > 0 && len(b.buf)+size >= lim.Bytes ||
		lim.Entries > 0 && b.slots >= lim.Entries {
		if b != nil {
			s.bufBytes -= cap(b.buf)
			b.seal()
			s.bufBytes += cap(b.buf)
		}
		b = newBlock(id, fields)
		if s.log != nil {
			b.part = blockPart(id)
			s.note(b.part)
		}
		s.bufBytes += cap(b.buf)
		s.blocks.Set(node{id, b})
		s.tail = b
	}
	s.note(b.part)
	s.note(metaPart)
	s.bufBytes -= cap(b.buf)
	b.add(id, fields)
	s.bufBytes += cap(b.buf)
	s.length++
	s.entriesAdded++
	s.lastID = id
	return nil
}

// Get returns the entry with the given ID.
func (s *Stream) Get(id ID) (Entry, bool) {
	b, at, ok := s.find(id)
	if !ok {
		return Entry{}, false
	}
	return b.entry(at), true
}

// Has reports whether there is an entry with the given ID.
func (s *Stream) Has(id ID) bool {
	_, _, ok := s.find(id)
	return ok
}

// find returns the entry with the given ID and its block.
func (s *Stream) find(id ID) (b *block, at slot, ok bool) {
	if s.tail == nil || s.tail.last.Less(id) {
		return nil, slot{}, false
	}
	if b = s.tail; id.Less(b.base) {
		var it btree.IterG[node]
		it.Init(s.blocks, false)
		if !seekFloor(&it, id) {
			return nil, slot{}, false
		}
		b = it.Item().block
	}
	at, ok = b.seek(id)
	return b, at, ok && at.id == id
}

// seekFloor moves to the last block whose key is not after id, if any is.
func seekFloor(it *btree.IterG[node], id ID) bool {
	if !it.Seek(node{base: id}) {
		return it.Last()
	}
	return it.Item().base == id || it.Prev()
}

// Range calls fn with the entries from start to end, both included, last one
// first if reverse, until it returns false. fn must not change the stream.
func (s *Stream) Range(start, end ID, reverse bool, fn func(Entry) bool) {
	if s.length == 0 || end.Less(start) {
		return
	}
	if reverse {
		s.descend(start, end, fn)
	} else {
		s.ascend(start, end, fn)
	}
}

// ascend and descend spare readers of the tail, who are most, the tree.

func (s *Stream) ascend(start, end ID, fn func(Entry) bool) {
	if !start.Less(s.tail.base) {
		s.tail.ascend(start, end, fn)
		return
	}
	var it btree.IterG[node]
	it.Init(s.blocks, false)
	for ok := seekFloor(&it, start) || it.First(); ok; ok = it.Next() {
		if !it.Item().ascend(start, end, fn) {
			return
		}
	}
}

func (s *Stream) descend(start, end ID, fn func(Entry) bool) {
	if !end.Less(s.tail.base) {
		before, ok := s.tail.base.Prev()
		if !s.tail.descend(start, end, fn) || !ok || before.Less(start) {
			return
		}
		end = before
	}
	var it btree.IterG[node]
	it.Init(s.blocks, false)
	for ok := seekFloor(&it, end); ok; ok = it.Prev() {
		if !it.Item().descend(start, end, fn) {
			return
		}
	}
}

// Delete removes an entry and reports whether it was there.
func (s *Stream) Delete(id ID) bool {
	b, at, ok := s.find(id)
	if !ok {
		return false
	}
	s.remove(b, at)
	if s.maxDeletedID.Less(id) {
		s.note(metaPart)
		s.maxDeletedID = id
	}
	return true
}

// remove takes an entry out of its block, and the block out of the tree if that
// was its last one.
func (s *Stream) remove(b *block, at slot) {
	s.note(b.part)
	s.length--
	s.bufBytes -= cap(b.buf)
	b.remove(at)
	s.bufBytes += cap(b.buf)
	if b.live == 0 {
		s.drop(b)
	}
}

// drop takes a block out of the tree. The length is the caller's matter.
func (s *Stream) drop(b *block) {
	s.note(b.part)
	s.bufBytes -= cap(b.buf)
	s.blocks.Delete(node{base: b.base})
	if b == s.tail {
		last, _ := s.blocks.Max()
		s.tail = last.block
	}
}

// SetID sets the last ID, and with it the number of entries ever added, unless
// that is negative, and the highest deleted ID, unless that is 0-0.
func (s *Stream) SetID(last ID, entriesAdded int64, maxDeleted ID) error {
	if last.Less(maxDeleted) {
		return ErrSetIDBelowDeleted
	}
	if top, ok := s.Last(); ok {
		if last.Less(top.ID) {
			return ErrSetIDTooSmall
		}
		if entriesAdded >= 0 && entriesAdded < int64(s.length) {
			return ErrEntriesAddedTooSmall
		}
	}
	s.note(metaPart)
	s.lastID = last
	if entriesAdded >= 0 {
		s.entriesAdded = entriesAdded
	}
	if !maxDeleted.IsZero() {
		s.maxDeletedID = maxDeleted
	}
	return nil
}

// Clone returns a deep copy, which is not tracked.
func (s *Stream) Clone() *Stream {
	c := New()
	c.length, c.lastID, c.maxDeletedID, c.entriesAdded = s.length, s.lastID, s.maxDeletedID, s.entriesAdded
	s.blocks.Scan(func(n node) bool {
		b := n.block.clone()
		c.blocks.Load(node{n.base, b})
		c.tail = b
		c.bufBytes += cap(b.buf)
		return true
	})
	for _, g := range s.groups {
		c.groups = append(c.groups, g.clone(c))
	}
	return c
}
