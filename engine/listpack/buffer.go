package listpack

import (
	"sync"
	"unsafe"
)

// Buffer is what a small collection keeps its elements in: 16 bytes, and one piece of memory without pointers that is
// hardly larger than it has to be. A collection that has become large keeps a pointer to its other form there
// instead. The zero value is empty and ready to use. Nobody may use a Buffer and a plain copy of it; Clone makes an
// independent one.
//
// Memory that a Buffer has outgrown is soon used by another one: a view of it is valid until the Buffer changes, and
// no longer.
type Buffer struct {
	p     unsafe.Pointer // the memory, or what SetOther was given
	size  uint32
	Count uint16 // for the use of the owner
	class uint8  // says how much memory there is
	Mark  uint8  // for the use of the owner, up to 254
}

// markOther is the Mark of a Buffer that has another pointer.
const markOther = 255

// sizes are those of the memory that a Buffer may have, by class: those in which Go's allocator gives it, so that
// nothing is wasted by rounding up. Larger ones are multiples of pageSize.
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
	// MaxSize is how many bytes a Buffer can have. With more it panics.
	MaxSize = maxSized + (255-len(sizes))*pageSize
	// roomy is the spare room that is never worth giving back.
	roomy = 64
)

var (
	roomOf   [256]int              // the size of a class
	classOf  [maxSized/8 + 1]uint8 // the class for a size, by an eighth of it, rounded up
	outgrown [len(sizes)]sync.Pool // memory for another Buffer, by class: pointers to its first byte
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

// Bytes returns what is in the Buffer.
func (b *Buffer) Bytes() []byte { return unsafe.Slice((*byte)(b.p), b.size) }

// MemoryUsage returns the size in bytes of the memory that the Buffer points to, if that is its own.
func (b *Buffer) MemoryUsage() int { return roomOf[b.class] }

// Allocated returns how many bytes the allocator uses for n bytes without pointers, as far as it is known here: not
// above MaxSize.
func Allocated(n int) int {
	if n <= maxSized {
		return roomOf[classOf[(n+7)/8]]
	}
	return (n + pageSize - 1) / pageSize * pageSize
}

// Other returns the pointer that the Buffer has in place of its memory, nil if there is none.
func (b *Buffer) Other() unsafe.Pointer {
	if b.Mark != markOther {
		return nil
	}
	return b.p
}

// SetOther puts a pointer in the place of the memory, which the Buffer gives up.
func (b *Buffer) SetOther(p unsafe.Pointer) {
	b.Reset()
	b.p, b.Mark = p, markOther // and no class
}

// Splice turns the `old` bytes at offset i into `size` bytes of unspecified content.
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

// Clone returns an independent copy of a Buffer that has no other pointer.
func (b *Buffer) Clone() Buffer {
	c := *b
	c.allocate()
	copy(c.Bytes(), b.Bytes())
	return c
}

// Reset empties the Buffer, and gives up its memory or the other pointer.
func (b *Buffer) Reset() {
	b.release()
	*b = Buffer{}
}

// allocate gives the Buffer memory for its size, of unspecified content.
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
