// Package streams is the stream data type: entries sorted by ID, and the consumer groups that read them. It knows no
// protocol, locks, clock or I/O: callers pass times in milliseconds.
//
// # Layout
//
// Entries are in blocks of up to 100 by default, which are found by their first ID in sorted chunks (sorted.go).
// Consecutive entries share the names of their fields. The last block fills a working buffer; once full, it moves to a
// buffer of exactly its size. Buffers of 32 KiB or more come from package buffers and return there.
//
// The chunks hold blocks and pending entries by value: they are added at the end and removed from the start, where a
// general tree has half-full nodes and a pointer for each. A million pending entries take 56 MB (in a B-tree 155 MB, in
// Redis 84 MB).
//
// A group that is read with CLAIM has, from the first time on, a heap of its pending entries in the order of delivery
// (idle.go), 24 bytes for each. It is rebuilt when needed, and never stored.
//
// A stream whose producers identify their additions has a table of recent ones (idempotence.go).
package streams

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/internal/buffers"
)

// Stream is an append-only log of entries with 128-bit IDs. Appending is O(1) on average, and finding an ID is O(log
// n).
//
// The entries are in blocks (see block.go), ordered by the first entry ever stored in each. No block is empty. The last
// one, the tail, has room to grow. When it is full, its content moves to a buffer of exactly its size, and the next
// block uses its old buffer.
type Stream struct {
	blocks       sorted[block, *block]
	length       int
	lastID       ID
	maxDeletedID ID
	entriesAdded int64
	groups       []*Group // by name
	buffers      int      // bytes of the blocks' buffers
	// spare is the buffer of a removed block, kept for the tail or the next full block, so that a stream trimmed as it
	// grows does not allocate. It is nil if there is no block.
	spare       []byte
	track       *tracking    // nil unless the stream is tracked
	productions *productions // nil unless producers are remembered
}

// maxRoom is the capacity of the largest buffer that is kept for reuse. Blocks are larger only after a change of the
// limits, or for a single large entry.
const maxRoom = 64 << 10

// Limits bound the content of one block; zero is no limit.
type Limits struct {
	Entries int // stream-node-max-entries
	Bytes   int // stream-node-max-bytes
}

// DefaultLimits are the default limits of a server.
var DefaultLimits = Limits{Entries: 100, Bytes: 4096}

// The errors that a stream returns, with Redis's texts.
var (
	ErrIDTooSmall           = errors.New("ERR The ID specified in XADD is equal or smaller than the target stream top item")
	ErrTooLarge             = errors.New("ERR Elements are too large to be stored")
	ErrSetIDTooSmall        = errors.New("ERR The ID specified in XSETID is smaller than the target stream top item")
	ErrSetIDBelowDeleted    = errors.New("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
	ErrEntriesAddedTooSmall = errors.New("ERR The entries_added specified in XSETID is smaller than the target stream length")
)

// maxEntryBytes limits the total size of the fields and values of an entry.
const maxEntryBytes = 1 << 30

// New returns an empty stream.
func New() *Stream { return &Stream{} }

// Len returns the number of entries.
func (s *Stream) Len() int { return s.length }

// LastID returns the highest ID that was ever given out or set.
func (s *Stream) LastID() ID { return s.lastID }

// MaxDeletedID returns the highest ID that Delete removed, or 0-0.
func (s *Stream) MaxDeletedID() ID { return s.maxDeletedID }

// EntriesAdded returns how many entries were ever added.
func (s *Stream) EntriesAdded() int64 { return s.entriesAdded }

// NodeCount returns the number of blocks.
func (s *Stream) NodeCount() int { return s.blocks.len() }

// MemoryUsage estimates how many bytes the stream takes. It visits every group.
func (s *Stream) MemoryUsage() int {
	n := int(unsafe.Sizeof(*s)) + cap(s.spare) + s.buffers + s.blocks.len()*blockOverhead + s.productions.memory()
	for _, g := range s.groups {
		n += groupOverhead + len(g.consumers)*consumerOverhead + g.pending.len()*nackOverhead + g.byDelivery.memory()
	}
	return n
}

// Memory of the structures around the buffers, including some free slots.
const (
	blockOverhead    = 96
	groupOverhead    = 192
	consumerOverhead = 160
	nackOverhead     = 64
)

// FirstID returns the ID of the first entry, or 0-0 if there is none.
func (s *Stream) FirstID() ID {
	if s.length == 0 {
		return ID{}
	}
	return s.head().first().id
}

// First returns the first entry.
func (s *Stream) First() (Entry, bool) {
	if s.length == 0 {
		return Entry{}, false
	}
	b := s.head()
	return b.entry(b.first()), true
}

// Last returns the last entry.
func (s *Stream) Last() (Entry, bool) {
	if s.length == 0 {
		return Entry{}, false
	}
	b := s.blocks.last()
	return b.entry(b.newest()), true
}

// head returns the first block, which must exist.
func (s *Stream) head() *block { return s.blocks.at(s.blocks.first()) }

// NextID returns the ID for an entry added at the given time; ok is false if no ID is left.
func (s *Stream) NextID(ms uint64) (id ID, ok bool) {
	if ms > s.lastID.Ms {
		return ID{Ms: ms}, true
	}
	return s.lastID.Next()
}

// NextSeq completes an ID of the given time; ok is false if no ID is left. The result may still be too small for
// Append.
func (s *Stream) NextSeq(ms uint64) (id ID, ok bool) {
	if ms != s.lastID.Ms {
		return ID{Ms: ms}, true
	}
	id, ok = s.lastID.Next()
	return id, ok && id.Ms == ms
}

// Append adds an entry. fields is field, value, field, value, ..., at least one pair, and is copied. The ID must be
// after LastID.
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
	b, how := s.blocks.last(), form{}
	if b != nil {
		how = b.form(id, fields)
	}
	if b == nil || lim.full(b, size, how.size) {
		s.noteBlock(id)
		b = s.newTail(id, fields)
		how = b.form(id, fields)
	} else {
		s.noteBlock(b.base)
	}
	s.note(metaPart)
	was := cap(b.buf)
	b.add(id, fields, how)
	s.buffers += cap(b.buf) - was
	s.length++
	s.entriesAdded++
	s.lastID = id
	return nil
}

// full reports whether b has no room for an entry with these sizes: of its fields and values, and of its stored form.
// Redis compares the former with the limit. The check of the latter keeps blocks within the limit, so that all blocks
// of a stream take the same memory.
func (lim Limits) full(b *block, size, stored int) bool {
	limit := lim.Bytes
	if limit <= 0 || limit > maxBlockBytes {
		limit = maxBlockBytes
	}
	return len(b.buf)+size >= limit || len(b.buf)+stored > limit || lim.Entries > 0 && int(b.slots) >= lim.Entries
}

// newTail adds a block for the given entry, which is not added yet. The previous tail will not grow any more.
func (s *Stream) newTail(id ID, fields [][]byte) *block {
	var room []byte
	if b := s.blocks.last(); b != nil {
		room = s.seal(b)
	}
	b := s.blocks.add(id)
	*b = newBlock(id, fields, room)
	s.buffers += cap(b.buf)
	return b
}

// seal moves the content of the tail to a buffer of exactly its size, and returns its old buffer, empty, for the next
// tail, or nil if the buffer is too large. A very long entry with a block of its own is not moved.
func (s *Stream) seal(b *block) (room []byte) {
	n, old := len(b.buf), b.buf
	if b.slots == 1 && cap(old) <= n+n/4 { // the allocator may have added up to a fifth
		room, s.spare = s.spare, nil
		return room
	}
	reuse := cap(old) <= maxRoom && cap(old) <= 2*n
	if !reuse && cap(old) <= n+n/8 {
		return nil
	}
	exact := s.spare
	s.spare = nil
	if cap(exact) < n || cap(exact) > n+n/8 {
		exact = nil
	}
	b.buf = append(exact, old...)
	s.buffers += cap(b.buf) - cap(old)
	if reuse {
		room = old[:0]
	}
	return room
}

// Get returns the entry with the given ID.
func (s *Stream) Get(id ID) (Entry, bool) {
	p, at, ok := s.find(id)
	if !ok {
		return Entry{}, false
	}
	return s.blocks.at(p).entry(at), true
}

// Has reports whether there is an entry with the given ID.
func (s *Stream) Has(id ID) bool {
	_, _, ok := s.find(id)
	return ok
}

// find returns the entry with the given ID and the place of its block.
func (s *Stream) find(id ID) (p place, at slot, ok bool) {
	if p = s.blocks.floor(id); !s.blocks.valid(p) {
		return p, slot{}, false
	}
	b := s.blocks.at(p)
	if b.last.Less(id) {
		return p, slot{}, false
	}
	at, ok = b.seek(id)
	return p, at, ok && at.id == id
}

// Range calls fn with the entries from start to end, both included, in reverse order if reverse, until fn returns
// false. fn must not change the stream.
func (s *Stream) Range(start, end ID, reverse bool, fn func(Entry) bool) {
	if end.Less(start) {
		return
	}
	b := &s.blocks
	if reverse {
		for p := b.floor(end); b.valid(p); p = b.prev(p) {
			if !b.at(p).descend(start, end, fn) {
				return
			}
		}
		return
	}
	p := b.floor(start)
	if !b.valid(p) {
		p = b.first()
	}
	for ; b.valid(p); p = b.next(p) {
		if !b.at(p).ascend(start, end, fn) {
			return
		}
	}
}

// Delete removes an entry and reports whether it existed.
func (s *Stream) Delete(id ID) bool {
	p, at, ok := s.find(id)
	if !ok {
		return false
	}
	s.remove(p, at)
	if s.maxDeletedID.Less(id) {
		s.note(metaPart)
		s.maxDeletedID = id
	}
	return true
}

// remove removes an entry from the block at p, and the block if it becomes empty. Blocks that are likely to be filled
// or removed soon keep their buffers.
func (s *Stream) remove(p place, at slot) {
	b := s.blocks.at(p)
	s.noteBlock(b.base)
	s.length--
	was := cap(b.buf)
	b.remove(at, was <= maxRoom && (p == s.blocks.first() || b == s.blocks.last()))
	s.buffers += cap(b.buf) - was
	if b.live == 0 {
		s.drop(p)
	}
}

// drop removes the block at p. The caller updates the length.
func (s *Stream) drop(p place) {
	b := s.blocks.at(p)
	s.noteBlock(b.base)
	s.buffers -= cap(b.buf)
	if s.spare == nil && cap(b.buf) <= maxRoom {
		s.spare = b.buf[:0]
	} else {
		buffers.Put(b.buf)
	}
	if s.blocks.remove(p); s.blocks.len() == 0 {
		s.spare = nil
	}
}

// SetID sets the last ID, the number of entries ever added unless that is negative, and the highest deleted ID unless
// that is 0-0.
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
	if last.Less(s.lastID) {
		for _, g := range s.groups {
			g.byDelivery = nil // see earliest
		}
	}
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
	for p := s.blocks.first(); s.blocks.valid(p); p = s.blocks.next(p) {
		b := *s.blocks.at(p)
		b.buf = slices.Clone(b.buf)
		*c.blocks.add(b.base) = b
		c.buffers += cap(b.buf)
	}
	for _, g := range s.groups {
		c.groups = append(c.groups, g.clone(c))
	}
	c.productions = s.productions.clone()
	return c
}
