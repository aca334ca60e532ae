package listpack

import (
	"sync"
	"unsafe"
)

// Buffer is the memory of a small collection: 16 bytes, and one piece of memory without pointers that is hardly larger
// than needed. A collection that has become large stores a pointer to its other form there instead. The zero value is
// empty and ready to use. A plain copy of a Buffer must not be used beside it; Clone makes an independent one.
//
// Memory that a Buffer has outgrown is soon reused by another one: a view is valid only until the Buffer changes.
type Buffer struct {
	p     unsafe.Pointer // the memory, or the pointer given to SetOther
	size  uint32
	Count uint16 // for the owner's use
	class uint8  // determines the size of the memory
	Mark  uint8  // for the owner's use, up to 254
}

// markOther is the Mark of a Buffer with another pointer.
const markOther = 255

// sizes are the sizes of a Buffer's memory, by class. They are the allocator's size classes, so that rounding up wastes
// nothing. Larger ones are multiples of pageSize.
var sizes = [...]uint16{
	0, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448,
	480, 512,
	576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5376,
	6144, 6528,
	6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576, 27264,
	28672, 32768,
}

const (
	maxSized = 4 * pageSize // the last of sizes
	pageSize = 8192
	// MaxSize is the largest size of a Buffer in bytes. Beyond it, a Buffer panics.
	MaxSize = maxSized + (255-len(sizes))*pageSize
	// roomy is the spare room that is never worth freeing.
	roomy = 64
)

var (
	roomOf   [256]int              // the size of a class
	classOf  [maxSized/8 + 1]uint8 // the class for a size, by a size in units of 8 bytes, rounded up
	outgrown [len(sizes)]sync.Pool // freed memory for reuse, by class: pointers to its first byte
)

func init() {
	class := 0
	for i := range classOf {
		if 8*i > int(sizes[class]) {
			class++
		}
		classOf[i] = uint8(class)
	}
	for class := range roomOf {
		if class < len(sizes) {
			roomOf[class] = int(sizes[class])
		} else {
			roomOf[class] = maxSized + (class-len(sizes)+1)*pageSize
		}
	}
}

// Bytes returns the content of the Buffer.
func (b *Buffer) Bytes() []byte { return unsafe.Slice((*byte)(b.p), b.size) }

// MemoryUsage returns the size in bytes of the Buffer's own memory.
func (b *Buffer) MemoryUsage() int { return roomOf[b.class] }

// Allocated returns how many bytes the allocator uses for n bytes without pointers, according to sizes: valid up to
// MaxSize.
func Allocated(n int) int {
	if n <= maxSized {
		return roomOf[classOf[(n+7)/8]]
	}
	return (n + pageSize - 1) / pageSize * pageSize
}

// Other returns the pointer that replaces the Buffer's memory, nil if there is none.
func (b *Buffer) Other() unsafe.Pointer {
	if b.Mark != markOther {
		return nil
	}
	return b.p
}

// SetOther frees the memory and stores a pointer in its place.
func (b *Buffer) SetOther(p unsafe.Pointer) {
	b.Reset()
	b.p, b.Mark = p, markOther // and no class
}

// Splice replaces the `old` bytes at offset i by `size` bytes of unspecified content.
func (b *Buffer) Splice(i, old, size int) {
	was := b.Bytes()
	end := len(was) + size - old
	spare := roomOf[b.class] - end
	if spare >= 0 && (spare <= roomy || spare <= end) && end > 0 {
		tail := was[i+old:]
		b.size = uint32(end)
		copy(b.Bytes()[i+size:], tail)
		return
	}
	now := Buffer{Count: b.Count, Mark: b.Mark, size: uint32(end)}
	now.allocate()
	copy(now.Bytes(), was[:i])
	copy(now.Bytes()[i+size:], was[i+old:])
	b.release()
	*b = now
}

// Clone returns an independent copy of a Buffer without another pointer.
func (b *Buffer) Clone() Buffer {
	c := *b
	c.allocate()
	copy(c.Bytes(), b.Bytes())
	return c
}

// Reset empties the Buffer, and frees its memory or the other pointer.
func (b *Buffer) Reset() {
	b.release()
	*b = Buffer{}
}

// allocate gives the Buffer memory of its size, with unspecified content.
func (b *Buffer) allocate() {
	n := int(b.size)
	if n > MaxSize {
		panic("listpack: a buffer beyond MaxSize")
	}
	if n <= maxSized {
		b.class = classOf[(n+7)/8]
	} else {
		b.class = uint8(len(sizes) + (n-maxSized-1)/pageSize)
	}
	b.p = nil
	if b.class == 0 {
		return
	}
	if int(b.class) < len(sizes) {
		if p := outgrown[b.class].Get(); p != nil {
			b.p = p.(unsafe.Pointer)
			return
		}
	}
	b.p = unsafe.Pointer(unsafe.SliceData(make([]byte, roomOf[b.class])))
}

// release lets another Buffer use the memory.
func (b *Buffer) release() {
	if b.class != 0 && int(b.class) < len(sizes) {
		outgrown[b.class].Put(b.p)
	}
}
