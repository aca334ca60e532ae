// Package prefetch has memory fetched into the processor's caches before it is used. A read would do so too, but the
// processor can keep only a few dozen instructions behind a read that it waits for, and so has few of them under way
// at once.
//
// The instruction is in assembler for amd64 and arm64; elsewhere nothing happens.
package prefetch

// List is a list of addresses. The zero value is empty. They may be anything: to fetch from where there is no memory
// does nothing.
type List struct {
	n         int
	addresses [Len]uintptr
}

// Len is how many addresses a List has room for. What is added to a full one is not fetched.
const Len = 48

// LineSize is the length in bytes of what is fetched at once, by most processors.
const LineSize = 64

// Add adds the first and the last byte of size > 0 bytes at address p. 0 is no address.
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

// Fetch begins to fetch what was added, does not wait for it, and leaves the list empty.
func (l *List) Fetch() {
	if l.n > 0 {
		fetch(&l.addresses[0], l.n)
		l.n = 0
	}
}
