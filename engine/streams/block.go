// A block holds consecutive entries of a stream in one flat buffer.

package streams

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"

	"github.com/atomredis/atomredis/internal/buffers"
)

// block is a run of entries. Its buffer starts with the field names of the first entry ever stored in it, which entries
// with the same names share. The entries follow:
//
//	flags   1 byte
//	size    uvarint, bytes of the next three
//	ms      uvarint, distance from base.Ms
//	seq     uvarint, distance from base.Seq if ms is zero, else the number itself
//	fields  only the values if the names are shared; else their number and name, value, ...
//	back    total bytes of the above, readable from its end
//
// Names and values are a uvarint length and the bytes. The encoding of an entry does not depend on its position, so
// compaction just moves live entries.
//
// While live > 0, head is the offset of the first live entry. The stream drops a block with live == 0.
type block struct {
	base, last ID // of the first and the last entry ever stored here
	buf        []byte
	names      uint32 // number of names at the start of buf
	body       uint32 // start of the entries
	head       uint32 // the first live entry
	live       uint32 // entries not deleted
	slots      uint32 // entries ever stored here; limits the block
	dead       uint32 // bytes of deleted entries still in buf
}

// maxBlockBytes limits blocks without another limit. Even with the largest possible entry at its end, a block stays
// below 4 GiB.
const maxBlockBytes = 1 << 30

func (b *block) key() ID { return b.base }

const (
	flagDeleted = 1 << iota
	flagShared
)

// Entry is a view of one entry. It is valid until the stream changes.
type Entry struct {
	ID     ID
	n      int
	shared bool   // names are in names, values in data
	names  []byte // unused if the names are in data
	data   []byte
}

// Len returns the number of field-value pairs.
func (e Entry) Len() int { return e.n }

// Fields iterates over the fields and their values, in the given order. Fields may repeat.
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

// newBlock returns a block for a first entry, which is not added yet. The block takes over buf, which is empty.
func newBlock(id ID, fields [][]byte, buf []byte) block {
	for i := 0; i < len(fields); i += 2 {
		buf = appendBytes(buf, fields[i])
	}
	body := uint32(len(buf))
	return block{base: id, last: id, buf: buf, names: uint32(len(fields) / 2), body: body, head: body}
}

// form describes how an entry will be stored.
type form struct {
	shared  bool
	payload int // its size
	size    int // of the whole entry
}

// form returns how the block would store an entry whose ID is after all others. The block must have names.
func (b *block) form(id ID, fields [][]byte) form {
	f := form{shared: b.hasNames(fields)}
	ms, seq := b.distance(id)
	n := uvarintLen(ms) + uvarintLen(seq)
	if f.shared {
		for i := 1; i < len(fields); i += 2 {
			n += bytesLen(fields[i])
		}
	} else {
		n += uvarintLen(uint64(len(fields) / 2))
		for _, v := range fields {
			n += bytesLen(v)
		}
	}
	f.payload = n
	n += 1 + uvarintLen(uint64(n))
	f.size = n + uvarintLen(uint64(n))
	return f
}

// add stores an entry in its form.
func (b *block) add(id ID, fields [][]byte, f form) {
	start := len(b.buf)
	buf := b.buf
	if f.size >= buffers.Large && f.size > cap(buf)-len(buf) {
		buf = append(buffers.GetFitting(len(buf)+f.size), buf...)
	} else {
		buf = slices.Grow(buf, f.size)
	}
	flags, first, step := byte(0), 0, 1
	if f.shared {
		flags, first, step = flagShared, 1, 2
	}
	ms, seq := b.distance(id)
	buf = appendUvarint(append(buf, flags), uint64(f.payload))
	buf = appendUvarint(appendUvarint(buf, ms), seq)
	if !f.shared {
		buf = appendUvarint(buf, uint64(len(fields)/2))
	}
	for i := first; i < len(fields); i += step {
		buf = appendBytes(buf, fields[i])
	}
	b.buf = appendBack(buf, len(buf)-start)
	b.last = id
	b.live++
	b.slots++
}

// distance returns id in its stored form.
func (b *block) distance(id ID) (ms, seq uint64) {
	if ms = id.Ms - b.base.Ms; ms == 0 {
		return 0, id.Seq - b.base.Seq
	}
	return ms, id.Seq
}

// hasNames reports whether the names in fields equal those of the block.
func (b *block) hasNames(fields [][]byte) bool {
	if len(fields)/2 != int(b.names) {
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

// slot is an entry's location in the buffer, with its head decoded.
type slot struct {
	id    ID
	pos   int
	data  int // the fields
	end   int // end of the fields
	next  int // start of the next slot
	flags byte
}

func (s slot) deleted() bool { return s.flags&flagDeleted != 0 }

// at decodes the slot at pos, which must be the start of one.
func (b *block) at(pos int) slot {
	size, data := uvarintAt(b.buf, pos+1)
	s := slot{pos: pos, end: data + int(size), flags: b.buf[pos]}
	ms, data := uvarintAt(b.buf, data)
	seq, data := uvarintAt(b.buf, data)
	s.data = data
	if ms == 0 {
		seq += b.base.Seq
	}
	s.id = ID{b.base.Ms + ms, seq}
	s.next = s.end + uvarintLen(uint64(s.end-pos))
	return s
}

// before decodes the slot that ends at pos; ok is false at the start.
func (b *block) before(pos int) (s slot, ok bool) {
	if pos <= int(b.head) {
		return slot{}, false
	}
	n, width := cutBack(b.buf[:pos])
	return b.at(pos - width - n), true
}

// seek returns the first live slot not before id. It starts from the nearer end, assuming evenly spaced entries:
// clients that follow a stream are near its end.
func (b *block) seek(id ID) (s slot, ok bool) {
	s = b.first()
	if !s.id.Less(id) {
		return s, true
	}
	if nearer(id, s.id, b.last) {
		s = slot{}
		for at, more := b.before(len(b.buf)); more && (at.deleted() || !at.id.Less(id)); at, more = b.before(at.pos) {
			if !at.deleted() {
				s, ok = at, true
			}
		}
		return s, ok
	}
	for s.next < len(b.buf) {
		s = b.at(s.next)
		if !s.deleted() && !s.id.Less(id) {
			return s, true
		}
	}
	return slot{}, false
}

// nearer reports whether id, which is after first, is nearer to last.
func nearer(id, first, last ID) bool {
	if last.Ms == first.Ms {
		return id.Ms > first.Ms || id.Seq-first.Seq > (last.Seq-first.Seq)/2
	}
	return id.Ms-first.Ms > (last.Ms-first.Ms)/2
}

// ascend calls fn with the entries from start to end. more is false once fn has returned false or end was passed.
func (b *block) ascend(start, end ID, fn func(Entry) bool) (more bool) {
	at, ok := b.seek(start)
	for ok {
		// A deleted entry may have a higher ID than later ones, if the stream's last ID was set back.
		if !at.deleted() && (end.Less(at.id) || !fn(b.entry(at))) {
			return false
		}
		if ok = at.next < len(b.buf); ok {
			at = b.at(at.next)
		}
	}
	return true
}

// descend calls fn with the entries from end back to start. more is false once fn has returned false or start was
// passed.
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
func (b *block) first() slot { return b.at(int(b.head)) }

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
		e.shared, e.n, e.names = true, int(b.names), b.buf[:b.body]
		return e
	}
	n, width := binary.Uvarint(e.data)
	e.n, e.data = int(n), e.data[width:]
	return e
}

// remove deletes the entry in s, which invalidates earlier slots: once deleted entries take more than half of the
// block, it is compacted, so that the amortised cost of a deletion is constant. With inPlace, compaction keeps the
// buffer.
func (b *block) remove(s slot, inPlace bool) {
	b.buf[s.pos] |= flagDeleted
	b.live--
	b.dead += uint32(s.next - s.pos)
	if b.live == 0 {
		return
	}
	if s.pos == int(b.head) {
		s = b.at(s.next)
		for s.deleted() {
			s = b.at(s.next)
		}
		b.head = uint32(s.pos)
	}
	if int(b.dead) > len(b.buf)/2 {
		b.compact(inPlace)
	}
}

// compact removes the deleted entries from the buffer, or moves the rest to a smaller one.
func (b *block) compact(inPlace bool) {
	buf := b.buf[:b.body]
	if !inPlace {
		buf = append(make([]byte, 0, len(b.buf)-int(b.dead)), buf...)
	}
	for pos := int(b.head); pos < len(b.buf); {
		s := b.at(pos)
		if !s.deleted() {
			buf = append(buf, b.buf[pos:s.next]...)
		}
		pos = s.next
	}
	b.buf, b.head, b.dead = buf, b.body, 0
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// uvarintAt returns the number at b[i:] and its end.
func uvarintAt(b []byte, i int) (v uint64, end int) {
	for shift := 0; ; shift += 7 {
		c := b[i]
		i++
		v |= uint64(c&0x7f) << (shift & 63)
		if c < 0x80 {
			return v, i
		}
	}
}

// appendUvarint is binary.AppendUvarint, with the common small numbers inlined.
func appendUvarint(dst []byte, v uint64) []byte {
	if v < 0x80 {
		return append(dst, byte(v))
	}
	return binary.AppendUvarint(dst, v)
}

func bytesLen(v []byte) int { return uvarintLen(uint64(len(v))) + len(v) }

func appendBytes(dst, v []byte) []byte {
	return append(appendUvarint(dst, uint64(len(v))), v...)
}

// cutBytes returns the byte string at the start of b, and the rest.
func cutBytes(b []byte) (v, rest []byte) {
	n, width := uvarintAt(b, 0)
	end := width + int(n)
	return b[width:end:end], b[end:]
}

// appendBack appends n as a reversed uvarint: the low bits come last.
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

// cutBack reads the reversed uvarint at the end of b.
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
