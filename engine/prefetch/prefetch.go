// Package prefetch brings memory into the processor's caches before it is used. A read would do so too, but the
// processor can queue only a few dozen instructions behind a read that it waits for, and so has few reads under way at
// once.
//
// The instruction is in assembler for amd64 and arm64; elsewhere nothing happens.
package prefetch

// List is a list of addresses, which need not be valid: fetching from unmapped memory does nothing. The zero value is
// empty.
type List struct {
	n         int
	addresses [Len]uintptr
}

// Len is how many addresses a List has room for. Further ones are not fetched.
const Len = 48

// LineSize is the length in bytes of a cache line of most processors.
const LineSize = 64

// Add adds the first and the last byte of size > 0 bytes at address p. It ignores address 0.
func (l *List) Add(p uintptr, size int) {
	if p == 0 || l.n == Len {
		return
	}
	l.addresses[l.n] = p
	l.n++
	if last := p + uintptr(size) - 1; last/LineSize != p/LineSize && l.n < Len {
		l.addresses[l.n] = last
		l.n++
	}
}

// Fetch starts fetching the added addresses without waiting, and empties the list.
func (l *List) Fetch() {
	if l.n > 0 {
		fetch(&l.addresses[0], l.n)
		l.n = 0
	}
}
