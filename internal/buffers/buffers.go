// Package buffers shares large pieces of memory, and allocates them without clearing them. A large one is needed for a
// moment, to send, receive or store something: allocating it each time costs more than filling it, and keeping it for
// each client or key costs memory for good.
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

	classes = 9 // of buffers, each twice as large as the one before

	page = 8 << 10 // bytes, whole ones of which the allocator gives to what is large
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

// GetFitting returns an empty buffer with room for n bytes and not much more, which may be kept for what it is filled
// with.
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

// Put takes back a buffer that nobody uses any more, whoever has made it. Small ones are left to the garbage collector.
func Put(b []byte) {
	if class := classOf(cap(b)); class >= 0 && class < classes {
		b = b[:0]
		shared[class].Put(&b)
	}
}

// classOf returns the class that a buffer of n bytes is taken back to.
func classOf(n int) int { return bits.Len(uint(n)) - bits.Len(uint(Large)) }

// Grow returns b with room for n more bytes. If it has to move, its former memory is taken back: nobody else may use
// it.
func Grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := append(Get(max(len(b)+n, 2*cap(b))), b...)
	Put(b)
	return grown
}

// Uncleared returns an empty slice with room for at least n bytes, as many as append would give it for so many.
// Whatever lay in the memory before is beyond the slice's length: to clear 256 KiB first may take as long as to fill
// them.
func Uncleared(n int) []byte {
	if n <= 0 {
		return nil
	}
	// A Builder is the one part of the standard library that hands out such memory. It is the only owner, so that nobody
	// takes for a constant string what is written there.
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), b.Cap())[:0]
}
