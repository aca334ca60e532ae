package hashes

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/internal/buffers"
)

// field is a field of a large hash with its value. Its memory, one piece without pointers, has the name, the value, and
// perhaps spare room for a longer value. The lengths stand beside the pointer, so that name and value can be prefetched
// together. A very long field has its lengths in a longHead before the name.
type field struct {
	p        *byte
	valueLen uint32
	nameLen  uint16
	units    uint16 // size of the memory in sizeUnits; 0 if there is a longHead, which then has all sizes
}

type longHead struct{ nameLen, valueLen, size int }

const (
	longHeadLen = int(unsafe.Sizeof(longHead{}))
	sizeUnit    = 8     // divides all size classes of the allocator
	maxShort    = 65000 // length of name and value above which there is a longHead
	spareValue  = 64    // bytes that a shorter value may leave unused
	sharedSize  = 1024  // memory up to which a kept name may keep its value's memory alive
)

// newField returns a field with copies of a name and a value.
func newField(name, value []byte) field {
	n := len(name) + len(value)
	if n > maxShort {
		b := buffers.Uncleared(longHeadLen + n)
		p := unsafe.SliceData(b)
		*(*longHead)(unsafe.Pointer(p)) = longHead{len(name), len(value), cap(b)}
		_ = append(append(b[:longHeadLen], name...), value...)
		return field{p: p}
	}
	b := slices.Grow([]byte(nil), max(n, 1)) // uses the whole size class
	_ = append(append(b, name...), value...)
	return field{unsafe.SliceData(b), uint32(len(value)), uint16(len(name)), uint16(cap(b) / sizeUnit)}
}

// bounds returns where the value begins and ends in the field's memory, and the size of the memory.
func (f *field) bounds() (start, end, size int) {
	if h := f.longHead(); h != nil {
		start = longHeadLen + h.nameLen
		return start, start + h.valueLen, h.size
	}
	start = int(f.nameLen)
	return start, start + int(f.valueLen), int(f.units) * sizeUnit
}

// size returns how many bytes the field takes.
func (f *field) size() int {
	_, _, size := f.bounds()
	return size
}

// longHead returns the head of a very long field, nil for other fields.
func (f *field) longHead() *longHead {
	if f.units != 0 {
		return nil
	}
	return (*longHead)(unsafe.Pointer(f.p))
}

// Key returns the name of the field as a string, which shares its memory.
func (f field) Key() string {
	if h := f.longHead(); h != nil {
		return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(f.p), longHeadLen)), h.nameLen)
	}
	return unsafe.String(f.p, f.nameLen)
}

// name returns the field's name as a view of its memory.
func (f *field) name() []byte { return bytesOf(f.Key()) }

func (f *field) value() []byte {
	start, end, size := f.bounds()
	return unsafe.Slice(f.p, size)[start:end:end]
}

// overwrite writes a value in place if it fits and does not leave too much room unused, and reports whether it did.
func (f *field) overwrite(value []byte) bool {
	start, _, size := f.bounds()
	if room := size - start; len(value) > room || room > 2*len(value)+spareValue {
		return false
	}
	copy(unsafe.Slice(f.p, size)[start:], value)
	if h := f.longHead(); h != nil {
		h.valueLen = len(value)
	} else {
		f.valueLen = uint32(len(value))
	}
	return true
}

// keptName returns the name as a string that may outlive the field without keeping much other memory alive.
func (f *field) keptName() string {
	if _, _, size := f.bounds(); size > sharedSize {
		return strings.Clone(f.Key())
	}
	return f.Key()
}
