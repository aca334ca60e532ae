package resp

import (
	"math/bits"
	"sync"
)

// Large buffers. A client that sends or gets something large needs one for a moment. To allocate it each time would cost more than
// to fill it, and to keep it for each client would cost memory for good.

const (
	minLarge     = 32 << 10 // size in bytes of the smallest buffer that is worth sharing
	largeClasses = 9        // of buffers, each twice as large as the one before
)

var large [largeClasses]sync.Pool // of *[]byte

// GetBuffer returns an empty buffer with room for n bytes or more.
func GetBuffer(n int) []byte {
	if n <= minLarge/2 {
		return make([]byte, 0, n)
	}
	class := max(bits.Len(uint(n-1))-bits.Len(uint(minLarge-1)), 0)
	if class >= largeClasses {
		return make([]byte, 0, n)
	}
	if b, ok := large[class].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, minLarge<<class)
}

// PutBuffer takes back a buffer that nobody uses any more, whoever has made it.
func PutBuffer(b []byte) {
	if class := bits.Len(uint(cap(b))) - bits.Len(uint(minLarge)); class >= 0 && class < largeClasses {
		b = b[:0]
		large[class].Put(&b)
	}
}

// Grow returns b with room for n more bytes. If it has to move, its former memory is taken back: nobody else may use it.
func Grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := append(GetBuffer(max(len(b)+n, 2*cap(b))), b...)
	PutBuffer(b)
	return grown
}
