package rdb

import (
	"encoding/binary"
	"io"
	"math"
)

// Encoder encodes. Its output collects in memory, or goes to a Writer now and then. The zero value collects.
type Encoder struct {
	w      io.Writer // nil if everything stays in buf
	buf    []byte
	crc    uint64 // of the output already written to w
	err    error
	table  *lzfTable // of compress; nil before the first use
	plain  bool      // strings are not compressed
	alone  bool      // omit keys named in values
	valkey bool      // the file has the form of Valkey
}

// NewEncoder returns an Encoder that writes a file to w.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

const (
	flushSize = 1 << 20
	// minCompressed and maxCompressed are the lengths of the shortest and the longest strings that are compressed.
	minCompressed = 21
	maxCompressed = math.MaxInt32
)

// flush writes the collected output to w.
func (e *Encoder) flush() {
	if e.w == nil {
		return
	}
	e.crc = checksum(e.crc, e.buf)
	if e.err == nil {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

// written is called between the parts of a value.
func (e *Encoder) written() {
	if len(e.buf) >= flushSize {
		e.flush()
	}
}

// length writes a length, in 6, 14, 32 or 64 bits.
func (e *Encoder) length(n uint64) { e.buf = appendLength(e.buf, n) }

func appendLength(dst []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, length14<<6|byte(n>>8), byte(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, length32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, length64), n)
}

// string writes a string: as a number if it is one of up to 32 bits, or compressed if that is shorter.
func (e *Encoder) string(v []byte) {
	if len(v) <= len("-2147483648") {
		if n, ok := canonicalInt(v); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
			switch {
			case n == int64(int8(n)):
				e.buf = append(e.buf, lengthSpecial<<6|specialInt8, byte(n))
			case n == int64(int16(n)):
				e.buf = binary.LittleEndian.AppendUint16(append(e.buf, lengthSpecial<<6|specialInt16), uint16(n))
			default:
				e.buf = binary.LittleEndian.AppendUint32(append(e.buf, lengthSpecial<<6|specialInt32), uint32(n))
			}
			return
		}
	}
	if !e.plain && len(v) >= minCompressed && len(v) <= maxCompressed && e.compressed(v) {
		return
	}
	e.length(uint64(len(v)))
	e.buf = append(e.buf, v...)
}

// compressed writes a string compressed if that is shorter, and reports whether it did.
func (e *Encoder) compressed(v []byte) bool {
	if e.table == nil {
		e.table = new(lzfTable)
	}
	// The compressed string is first written after room for the longest head, and then moved.
	const room = 1 + 9 + 9
	start := len(e.buf)
	e.buf = append(e.buf, make([]byte, room)...)
	out, ok := compress(e.buf, v, e.table)
	if !ok {
		e.buf = e.buf[:start]
		return false
	}
	n := len(out) - start - room
	head := appendLength(append(out[:start], lengthSpecial<<6|specialLZF), uint64(n))
	head = appendLength(head, uint64(len(v)))
	e.buf = append(head, out[start+room:]...)
	return true
}

func (e *Encoder) millis(at int64) { e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(at)) }
