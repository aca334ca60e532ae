// Package postings has inverted lists: the documents that have a term, by their numbers.
//
// A list belongs to its index, whose lock protects it. A View is the list at one instant: views are read without the
// lock, while the list continues to change. So a list only appends to memory that views share, and replaces what it
// rewrites.
//
// New entries go to the tail, one after the other (tail.go). A tail of 128 entries becomes a block, whose columns are
// packed and read in any order (block.go). A list of one or two documents is a struct of 48 bytes and a small tail.
//
// A removed document leaves its entries where they are, because lists are compressed. Remove counts them, and rewrites
// the list once a quarter of it is dead (sweep.go). Readers of a View skip dead documents (package docs).
package postings

import (
	"slices"
	"unsafe"
)

// Mask has a bit for each TEXT field, by the field's number from 0 to 127.
type Mask struct{ Lo, Hi uint64 }

// Bit returns the mask of one field.
func Bit(field int) Mask {
	if field < 64 {
		return Mask{Lo: 1 << field}
	}
	return Mask{Hi: 1 << (field - 64)}
}

// All is the mask of all fields.
var All = Mask{Lo: ^uint64(0), Hi: ^uint64(0)}

// Or returns the fields that are in either mask.
func (m Mask) Or(o Mask) Mask { return Mask{m.Lo | o.Lo, m.Hi | o.Hi} }

// Meets reports whether the masks have a field in common.
func (m Mask) Meets(o Mask) bool { return m.Lo&o.Lo|m.Hi&o.Hi != 0 }

// short returns a mask in 16 bits; the last one stands for all fields that have none.
func (m Mask) short() uint16 {
	const own = 1<<15 - 1
	low := uint16(m.Lo & own)
	if m.Lo&^own != 0 || m.Hi != 0 {
		low |= 1 << 15
	}
	return low
}

// Keep says what a list stores about each document beside its number.
type Keep uint8

const (
	Freqs   Keep = 1 << iota // how often the term occurs; else always 1
	Masks                    // in which fields it occurs; else always All
	Offsets                  // at which positions it occurs
)

// Entry is a list's data about a document.
type Entry struct {
	Doc  uint64 // above 0 and below 1<<62
	Freq uint32
	Mask Mask
	// Offsets are the term's positions, ascending. Those of a reader are valid until it moves.
	Offsets []uint32
}

// blockSize is the number of entries in a block.
const blockSize = 128

// List has the documents with a term.
type List struct {
	more    *more // the blocks; nil while all entries are in the tail
	tail    *byte // the tail; its first tailLen bytes never change
	tailLen uint32
	tailCap uint32
	last    uint64 // the highest document number
	live    uint32
	entries uint32 // living and dead ones
	offsets uint32 // bytes of the entries' offsets
	tailN   uint8  // the entries of the tail, fewer than blockSize
	keep    Keep
	fields  uint16 // of all entries since the last rewrite, as short gives them
}

// more is the rest of a list beside its tail.
type more struct {
	blocks []block
	bytes  int    // of the blocks' data
	sweep  *sweep // nil unless the list is being rewritten
}

// New returns an empty list.
func New(keep Keep) *List { return &List{keep: keep} }

// Add appends a document, whose number must be above all others of the list. It copies the offsets.
func (l *List) Add(e Entry) {
	l.live++
	l.add(e)
}

// add appends an entry without counting it as live.
func (l *List) add(e Entry) {
	t := l.tailBytes()
	before := len(t)
	t = appendEntry(t, l.keep, l.tailN > 0, e, l.last)
	if cap(t) != int(l.tailCap) {
		grown := t
		t = slices.Grow([]byte(nil), len(grown)+before/4)[:len(grown)]
		copy(t, grown)
	}
	l.setTail(t)
	l.last = e.Doc
	l.entries++
	l.fields |= e.Mask.short()
	if l.keep&Offsets != 0 {
		l.offsets += offsetBytes(e.Offsets)
	}
	l.tailN++
	if l.tailN == blockSize {
		l.seal()
	}
}

func (l *List) tailBytes() []byte { return unsafe.Slice(l.tail, l.tailCap)[:l.tailLen] }

func (l *List) setTail(t []byte) {
	l.tail, l.tailLen, l.tailCap = unsafe.SliceData(t), uint32(len(t)), uint32(cap(t))
}

// seal turns the tail into a block. Views keep the old tail.
func (l *List) seal() {
	if l.more == nil {
		l.more = &more{}
	}
	b := pack(l.tailBytes(), l.keep)
	l.more.blocks = append(l.more.blocks, b)
	l.more.bytes += cap(b.data)
	l.setTail(nil)
	l.tailN = 0
}

// Len returns the number of live documents.
func (l *List) Len() int { return int(l.live) }

// HasMasks reports whether the list stores the fields of its entries.
func (l *List) HasMasks() bool { return l.keep&Masks != 0 }

// MayMeet reports whether an entry may have one of some fields; if not, none has. The list stores fields.
func (l *List) MayMeet(m Mask) bool { return l.fields&m.short() != 0 }

// Entries returns the number of entries, including dead ones.
func (l *List) Entries() int { return int(l.entries) }

// Bytes returns the memory that the list takes.
func (l *List) Bytes() int {
	n := int(unsafe.Sizeof(*l)) + int(l.tailCap)
	if m := l.more; m != nil {
		n += int(unsafe.Sizeof(*m)) + cap(m.blocks)*int(unsafe.Sizeof(block{})) + m.bytes
		if m.sweep != nil {
			n += m.sweep.to.Bytes()
		}
	}
	return n
}

// OffsetBytes returns approximately the part of Bytes that offsets take.
func (l *List) OffsetBytes() int { return int(l.offsets) }

// View is a list at one instant.
type View struct {
	blocks []block
	tail   []byte
	live   int
	tailN  int
	keep   Keep
}

// View returns the present list.
func (l *List) View() View {
	v := View{tail: l.tailBytes(), live: int(l.live), tailN: int(l.tailN), keep: l.keep}
	if l.more != nil {
		v.blocks = l.more.blocks
	}
	return v
}

// Len returns the number of live documents.
func (v View) Len() int { return v.live }
