// Package buffers reuses large buffers, and allocates them without clearing them. A large buffer is needed only
// briefly, to send, receive or store something. Allocating one each time costs more than filling it, and keeping one
// for each client or key wastes memory.
package buffers

import (
	"math/bits"
	"strings"
	"sync"
	"unsafe"
)

const (
	// Large is the size in bytes of the smallest buffer that is worth sharing.
	Large = 32 << 10

	classes = 9 // classes of buffers, each twice the size of the one before

	page = 8 << 10 // in bytes; the Go allocator gives large objects whole pages
)

var shared [classes]sync.Pool // of *[]byte

// Get returns an empty buffer with room for n bytes or more.
func Get(n int) []byte {
	if n <= Large/2 {
		return make([]byte, 0, n)
	}
	class := max(bits.Len(uint(n-1))-bits.Len(uint(Large-1)), 0)
	if class >= classes {
		return make([]byte, 0, n)
	}
	if b, ok := shared[class].Get().(*[]byte); ok {
		return *b
	}
	return Uncleared(Large << class)
}

// GetFitting returns an empty buffer with room for n bytes and little more. The caller may keep it for good.
func GetFitting(n int) []byte {
	if class := classOf(n); class >= 0 && class < classes {
		if b, ok := shared[class].Get().(*[]byte); ok {
			if c := cap(*b); n <= c && c <= n+n/8+page {
				return *b
			}
			shared[class].Put(b)
		}
	}
	return Uncleared(n)
}

// Put takes an unused buffer for reuse; any package may have allocated it. Small ones are left to the garbage
// collector.
func Put(b []byte) {
	if class := classOf(cap(b)); class >= 0 && class < classes {
		b = b[:0]
		shared[class].Put(&b)
	}
}

// classOf returns the class of a buffer of n bytes.
func classOf(n int) int { return bits.Len(uint(n)) - bits.Len(uint(Large)) }

// Grow returns b with room for n more bytes. If it moves, the former memory is reused, so nobody else may refer to
// it.
func Grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := append(Get(max(len(b)+n, 2*cap(b))), b...)
	Put(b)
	return grown
}

// Uncleared returns an empty slice with room for at least n bytes, rounded up as append does. The memory is not
// cleared, because clearing 256 KiB may take as long as filling them.
func Uncleared(n int) []byte {
	if n <= 0 {
		return nil
	}
	// Only strings.Builder of the standard library hands out uncleared memory. No string refers to it, so writing to
	// it is safe.
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), b.Cap())[:0]
}
