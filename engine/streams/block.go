// A block holds consecutive entries of a stream in one flat buffer.

package streams

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// block is a run of entries. Its buffer starts with the field names of the
// first entry ever stored in it, which entries with the same names share, and
// goes on with the entries:
//
//	flags   1 byte
//	size    uvarint, bytes of the next three
//	ms      uvarint, distance from base.Ms
//	seq     uvarint, distance from base.Seq if ms is zero, else the number itself
//	fields  values alone if the names are shared; else their number and name, value, ...
//	back    bytes of all of the above, readable from its end
//
// Names and values are a uvarint length and the bytes. An entry does not
// depend on its position, so a block is compacted by moving its live entries.
//
// While live > 0, head is the offset of a live entry and no live entry is
// before it. A block with live == 0 is dropped by the stream.
type block struct {
	base, last ID // of the first and the last entry ever stored here
	buf        []byte
	names      int    // number of names at the start of buf
	body       int    // where the entries start
	head       int    // the first live entry
	live       int    // entries not deleted
	slots      int    // entries ever stored here; limits how many may join
	dead       int    // bytes of deleted entries still in buf
	part       string // its name as a part, if the stream is tracked
}

const (
	flagDeleted = 1 << iota
	flagShared
)

// Entry is a view of one entry. It is valid until the stream changes.
type Entry struct {
	ID     ID
	n      int
	shared bool   // the names are in names, the values in data
	names  []byte // not used if the names are in data
	data   []byte
}

// Len returns the number of field-value pairs.
func (e Entry) Len() int { return e.n }

// Fields iterates over the fields and their values, in the order in which they
// were given. Fields may repeat.
func (e Entry) Fields() iter.Seq2[[]byte, []byte] {
	return func(yield func(field, value []byte) bool) {
		names, data := e.names, e.data
		for range e.n {
			var field, value []byte
			if e.shared {
				field, names = cutBytes(names)
			} else {
				field, data = cutBytes(data)
			}
			value, data = cutBytes(data)
			if !yield(field, value) {
				return
			}
		}
	}
}

// newBlock returns a block for the given first entry, which is not yet in it.
func newBlock(id ID, fields [][]byte) *block {
	b := &block{base: id, last: id, names: len(fields) / 2}
	size := 0
	for i := 0; i < len(fields); i += 2 {
		size += bytesLen(fields[i])
	}
	b.buf = make([]byte, 0, size+b.entryLen(id, fields, true))
	for i := 0; i < len(fields); i += 2 {
		b.buf = appendBytes(b.buf, fields[i])
	}
	b.body, b.head = len(b.buf), len(b.buf)
	return b
}

// add stores an entry whose ID is after all others of the block.
func (b *block) add(id ID, fields [][]byte) {
	shared := b.hasNames(fields)
	start := len(b.buf)
	b.buf = slices.Grow(b.buf, b.entryLen(id, fields, shared))

	flags := byte(0)
	if shared {
		flags = flagShared
	}
	b.buf = append(b.buf, flags)
	b.buf = binary.AppendUvarint(b.buf, uint64(b.payloadLen(id, fields, shared)))
	ms, seq := b.distance(id)
	b.buf = binary.AppendUvarint(b.buf, ms)
	b.buf = binary.AppendUvarint(b.buf, seq)
	if !shared {
		b.buf = binary.AppendUvarint(b.buf, uint64(len(fields)/2))
	}
	for i, f := range fields {
		if !shared || i%2 == 1 {
			b.buf = appendBytes(b.buf, f)
		}
	}
	b.buf = appendBack(b.buf, len(b.buf)-start)
	b.last = id
	b.live++
	b.slots++
}

// distance returns id as it is stored.
func (b *block) distance(id ID) (ms, seq uint64) {
	if ms = id.Ms - b.base.Ms; ms == 0 {
		return 0, id.Seq - b.base.Seq
	}
	return ms, id.Seq
}

// hasNames reports whether the names in fields are those of the block.
func (b *block) hasNames(fields [][]byte) bool {
	if len(fields)/2 != b.names {
		return false
	}
	names := b.buf[:b.body]
	for i := 0; i < len(fields); i += 2 {
		var name []byte
		name, names = cutBytes(names)
		if string(name) != string(fields[i]) {
			return false
		}
	}
	return true
}

// payloadLen returns what the size of the entry will be.
func (b *block) payloadLen(id ID, fields [][]byte, shared bool) int {
	ms, seq := b.distance(id)
	n := uvarintLen(ms) + uvarintLen(seq)
	if !shared {
		n += uvarintLen(uint64(len(fields) / 2))
	}
	for i, f := range fields {
		if !shared || i%2 == 1 {
			n += bytesLen(f)
		}
	}
	return n
}

// entryLen returns how many bytes the whole entry will take.
func (b *block) entryLen(id ID, fields [][]byte, shared bool) int {
	n := b.payloadLen(id, fields, shared)
	n += 1 + uvarintLen(uint64(n))
	return n + uvarintLen(uint64(n))
}

// slot is an entry's place in the buffer, with its head decoded.
type slot struct {
	id    ID
	pos   int
	data  int // the fields
	end   int // of the fields
	next  int // the slot that follows
	flags byte
}

func (s slot) deleted() bool { return s.flags&flagDeleted != 0 }

// at decodes the slot at pos, which must be one.
func (b *block) at(pos int) slot {
	s := slot{pos: pos, flags: b.buf[pos]}
	size, n := binary.Uvarint(b.buf[pos+1:])
	s.data = pos + 1 + n
	s.end = s.data + int(size)
	ms, n := binary.Uvarint(b.buf[s.data:])
	s.data += n
	seq, n := binary.Uvarint(b.buf[s.data:])
	s.data += n
	if ms == 0 {
		seq += b.base.Seq
	}
	s.id = ID{b.base.Ms + ms, seq}
	s.next = s.end + uvarintLen(uint64(s.end-pos))
	return s
}

// before decodes the slot that ends at pos; ok is false at the start.
func (b *block) before(pos int) (s slot, ok bool) {
	if pos <= b.head {
		return slot{}, false
	}
	n, width := cutBack(b.buf[:pos])
	return b.at(pos - width - n), true
}

// seek returns the first live slot that is not before id.
func (b *block) seek(id ID) (s slot, ok bool) {
	for pos := b.head; pos < len(b.buf); pos = s.next {
		s = b.at(pos)
		if !s.deleted() && !s.id.Less(id) {
			return s, true
		}
	}
	return slot{}, false
}

// ascend calls fn with the entries from start to end; more is false once fn has
// returned false or end was passed.
func (b *block) ascend(start, end ID, fn func(Entry) bool) (more bool) {
	at, ok := b.seek(start)
	for ok {
		// The ID of a deleted entry may be beyond later ones, if the last ID of the stream was set back.
		if !at.deleted() && (end.Less(at.id) || !fn(b.entry(at))) {
			return false
		}
		if ok = at.next < len(b.buf); ok {
			at = b.at(at.next)
		}
	}
	return true
}

// descend calls fn with the entries from end back to start; more is false once
// fn has returned false or start was passed.
func (b *block) descend(start, end ID, fn func(Entry) bool) (more bool) {
	pos := len(b.buf)
	if end.Less(b.last) {
		if at, ok := b.seek(end); ok {
			if pos = at.pos; at.id == end {
				pos = at.next
			}
		}
	}
	for at, ok := b.before(pos); ok; at, ok = b.before(at.pos) {
		if at.id.Less(start) || !at.deleted() && !fn(b.entry(at)) {
			return false
		}
	}
	return true
}

// first returns the first live slot of a block that has one.
func (b *block) first() slot { return b.at(b.head) }

// newest returns the last live slot of a block that has one.
func (b *block) newest() slot {
	s, ok := b.before(len(b.buf))
	for ok && s.deleted() {
		s, ok = b.before(s.pos)
	}
	return s
}

// entry returns the view of the entry in s.
func (b *block) entry(s slot) Entry {
	e := Entry{ID: s.id, data: b.buf[s.data:s.end]}
	if s.flags&flagShared != 0 {
		e.shared, e.n, e.names = true, b.names, b.buf[:b.body]
		return e
	}
	n, width := binary.Uvarint(e.data)
	e.n, e.data = int(n), e.data[width:]
	return e
}

// remove deletes the entry in s. Slots found earlier are not valid any more:
// the block is compacted once more than half of it is deleted entries, which
// keeps the work per deletion constant on average.
func (b *block) remove(s slot) {
	b.buf[s.pos] |= flagDeleted
	b.live--
	b.dead += s.next - s.pos
	if b.live == 0 {
		return
	}
	if s.pos == b.head {
		s = b.at(s.next)
		for s.deleted() {
			s = b.at(s.next)
		}
		b.head = s.pos
	}
	if b.dead > len(b.buf)/2 {
		b.compact()
	}
}

// compact rewrites the buffer without its deleted entries.
func (b *block) compact() {
	buf := make([]byte, 0, len(b.buf)-b.dead)
	buf = append(buf, b.buf[:b.body]...)
	for pos := b.head; pos < len(b.buf); {
		s := b.at(pos)
		if !s.deleted() {
			buf = append(buf, b.buf[pos:s.next]...)
		}
		pos = s.next
	}
	b.buf, b.head, b.dead = buf, b.body, 0
}

// seal gives back spare room if that is worth a copy: nothing more will join.
func (b *block) seal() {
	if cap(b.buf)-len(b.buf) > len(b.buf)/8 {
		b.buf = slices.Clone(b.buf)
	}
}

func (b *block) clone() *block {
	c := *b
	c.buf = slices.Clone(b.buf)
	return &c
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func bytesLen(v []byte) int { return uvarintLen(uint64(len(v))) + len(v) }

func appendBytes(dst, v []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}

// cutBytes returns the byte string at the start of b and what follows it.
func cutBytes(b []byte) (v, rest []byte) {
	n, width := binary.Uvarint(b)
	end := width + int(n)
	return b[width:end:end], b[end:]
}

// appendBack appends n as a mirrored uvarint: the low bits come last.
func appendBack(dst []byte, n int) []byte {
	width := uvarintLen(uint64(n))
	for i := width - 1; i >= 0; i-- {
		c := byte(n>>(7*i)) & 0x7f
		if i < width-1 {
			c |= 0x80
		}
		dst = append(dst, c)
	}
	return dst
}

// cutBack reads the mirrored uvarint at the end of b.
func cutBack(b []byte) (n, width int) {
	for {
		c := b[len(b)-1-width]
		n |= int(c&0x7f) << (7 * width)
		width++
		if c&0x80 == 0 {
			return n, width
		}
	}
}
