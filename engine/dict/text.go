package dict

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Text is a byte string in one piece of memory without pointers: its length (unsigned varint) and its bytes. A Text
// field takes 8 bytes, half of a string. In a Table a Text is its own key. There is no zero Text.
type Text struct{ p *byte }

// NewText returns a Text that is a copy of b.
func NewText(b []byte) Text {
	text := make([]byte, TextLen(b))
	PutText(text, b)
	return Text{unsafe.SliceData(text)}
}

// Key returns the bytes as a string, which shares their memory.
func (t Text) Key() string { return TextAt(t.p) }

// TextLen returns how many bytes PutText writes for b.
func TextLen(b []byte) int { return (bits.Len(uint(len(b))|1)+6)/7 + len(b) }

// PutText writes b and its length to dst, which must have room for them.
func PutText(dst, b []byte) {
	if len(b) < 0x80 {
		dst[0] = byte(len(b))
		copy(dst[1:], b)
		return
	}
	copy(dst[binary.PutUvarint(dst, uint64(len(b))):], b)
}

// TextAt returns the bytes that PutText wrote at p as a string, which shares their memory.
func TextAt(p *byte) string {
	if n := *p; n-1 < 0x7f {
		return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(p), 1)), n)
	}
	return otherTextAt(p)
}

// otherTextAt is TextAt for the empty string, whose data address could lie outside the memory, and for a length of
// several bytes.
func otherTextAt(p *byte) string {
	n, shift := 0, 0
	for *p >= 0x80 {
		n |= int(*p&0x7f) << shift
		shift += 7
		p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1))
	}
	n |= int(*p) << shift
	if n == 0 {
		return ""
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(p), 1)), n)
}
