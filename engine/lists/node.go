package lists

import (
	"bytes"

	"github.com/atomredis/atomredis/internal/buffers"
)

// node is a run of consecutive elements in one buffer. Unlike a listpack it may have free room at both ends, so that
// pushes and pops at either end move no other element.
//
// An element is its length as a varint, its bytes, and the same varint reversed, so the run can be read from both ends.
type node struct {
	buf   []byte // elements are buf[head:]; buf[:head] and the bytes after len(buf) are free
	head  int
	n     int // number of elements
	start int // position of the first element; node i+1 starts where node i ends
}

// lengthBytes returns the size of the varint of a length.
func lengthBytes(n int) int {
	w := 1
	for n >= 0x80 {
		n >>= 7
		w++
	}
	return w
}

// encodedLen returns the room that an element of n bytes takes in a node.
func encodedLen(n int) int { return n + 2*lengthBytes(n) }

// put encodes v as an element into dst, which has exactly the length needed.
func put(dst, v []byte) {
	front, back := 0, len(dst)-1
	n := len(v)
	for n >= 0x80 {
		dst[front], dst[back] = byte(n)|0x80, byte(n)|0x80
		front, back = front+1, back-1
		n >>= 7
	}
	dst[front], dst[back] = byte(n), byte(n)
	copy(dst[front+1:], v)
}

// size returns the number of bytes in use.
func (nd *node) size() int { return len(nd.buf) - nd.head }

// elem returns the element that begins at p and the offset where the next one begins.
func (nd *node) elem(p int) (v []byte, next int) {
	n, w := int(nd.buf[p]), 1
	if n >= 0x80 {
		n &= 0x7f
		for {
			b := int(nd.buf[p+w])
			n |= (b & 0x7f) << (7 * w)
			w++
			if b < 0x80 {
				break
			}
		}
	}
	from := p + w
	to := from + n
	return nd.buf[from:to:to], to + w
}

// elemBefore returns the element that ends at p and the offset where it begins.
func (nd *node) elemBefore(p int) (v []byte, at int) {
	n, w := int(nd.buf[p-1]), 1
	if n >= 0x80 {
		n &= 0x7f
		for {
			b := int(nd.buf[p-1-w])
			n |= (b & 0x7f) << (7 * w)
			w++
			if b < 0x80 {
				break
			}
		}
	}
	to := p - w
	from := to - n
	return nd.buf[from:to:to], from - w
}

// seek returns the offset of element k, or the end if k is n. It walks from the nearer end.
func (nd *node) seek(k int) int {
	if k <= nd.n/2 {
		p := nd.head
		for ; k > 0; k-- {
			_, p = nd.elem(p)
		}
		return p
	}
	p := len(nd.buf)
	for ; k < nd.n; k++ {
		_, p = nd.elemBefore(p)
	}
	return p
}

// find returns the offset and the number of the first element equal to v, or -1, -1.
func (nd *node) find(v []byte) (p, k int) {
	p = nd.head
	for k = range nd.n {
		e, next := nd.elem(p)
		if bytes.Equal(e, v) {
			return p, k
		}
		p = next
	}
	return -1, -1
}

// open makes a gap of size bytes at offset p and returns its start. The gap opens towards the side where less has to
// move; a buffer that must grow grows up to maxBytes.
func (nd *node) open(p, size, maxBytes int) int {
	end := len(nd.buf)
	before, after := p-nd.head, end-p
	backRoom := cap(nd.buf)-end >= size
	switch {
	case nd.head >= size && (!backRoom || before <= after):
		copy(nd.buf[nd.head-size:], nd.buf[nd.head:p])
		nd.head -= size
		return p - size
	case backRoom:
		nd.buf = nd.buf[:end+size]
		copy(nd.buf[p+size:], nd.buf[p:end])
		return p
	}
	need := before + size + after
	if need <= cap(nd.buf) {
		// The free room is split between both ends, so that a stream of pushes at one end of a
		// nearly full buffer does not move it every time.
		return nd.move(p, size, (cap(nd.buf)-need)/2)
	}
	fresh := buffers.Uncleared(grown(need, size, maxBytes))
	head := 0
	if before == 0 && after > 0 {
		head = cap(fresh) - need
	}
	fresh = fresh[:head+need]
	copy(fresh[head:], nd.buf[nd.head:p])
	copy(fresh[head+before+size:], nd.buf[p:])
	nd.buf, nd.head = fresh, head
	return head + before
}

// move shifts the elements within the buffer, so that they begin at head, with a gap of size bytes before the element
// at p. It returns the start of the gap.
func (nd *node) move(p, size, head int) int {
	left, right, end := nd.head, p, len(nd.buf)
	gap := head + p - left
	full := nd.buf[:cap(nd.buf)]
	// The part that moves away from the other is moved first, so that it is not overwritten.
	if gap+size > right {
		copy(full[gap+size:], full[right:end])
		copy(full[head:], full[left:p])
	} else {
		copy(full[head:], full[left:p])
		copy(full[gap+size:], full[right:end])
	}
	nd.head, nd.buf = head, full[:gap+size+end-right]
	return gap
}

// grown returns the capacity for a buffer that must hold need bytes, of which the newest element takes size. Buffers
// grow by three eighths, up to maxBytes; a few large elements get exactly what they need.
func grown(need, size, maxBytes int) int {
	if need >= maxBytes || size > maxBytes/8 {
		return need
	}
	return min(need+need*3/8, maxBytes)
}

// cut removes the bytes from p to q, moving the smaller side, and returns the new offset of the bytes after them.
func (nd *node) cut(p, q int) int {
	if p-nd.head <= len(nd.buf)-q {
		copy(nd.buf[nd.head+q-p:], nd.buf[nd.head:p])
		nd.head += q - p
		return q
	}
	nd.buf = append(nd.buf[:p], nd.buf[q:]...)
	return p
}

// removeFirst removes the first elements equal to v, up to limit, and returns how many it removed.
func (nd *node) removeFirst(v []byte, limit int) int {
	removed := 0
	write, kept := nd.head, nd.head // buf[kept:read] stays and moves to write
	read := nd.head
	for read < len(nd.buf) && removed < limit {
		e, next := nd.elem(read)
		if bytes.Equal(e, v) {
			write += copy(nd.buf[write:], nd.buf[kept:read])
			kept = next
			removed++
		}
		read = next
	}
	if removed > 0 {
		write += copy(nd.buf[write:], nd.buf[kept:])
		nd.buf = nd.buf[:write]
		nd.n -= removed
	}
	return removed
}

// removeLast removes the last elements equal to v, up to limit, and returns how many it removed.
func (nd *node) removeLast(v []byte, limit int) int {
	removed := 0
	write, kept := len(nd.buf), len(nd.buf) // buf[read:kept] stays and moves to end at write
	read := len(nd.buf)
	for read > nd.head && removed < limit {
		e, at := nd.elemBefore(read)
		if bytes.Equal(e, v) {
			write -= kept - read
			copy(nd.buf[write:], nd.buf[read:kept])
			kept = at
			removed++
		}
		read = at
	}
	if removed > 0 {
		write -= kept - nd.head
		copy(nd.buf[write:], nd.buf[nd.head:kept])
		nd.head = write
		nd.n -= removed
	}
	return removed
}

// tighten frees memory when the buffer is mostly unused. The bounds are far enough apart that a queue that fills and
// drains rarely pays for it.
func (nd *node) tighten() {
	size := nd.size()
	if cap(nd.buf) <= 512 || size > cap(nd.buf)/8 {
		return
	}
	fresh := buffers.Uncleared(2 * size)
	head := (cap(fresh) - size) / 2
	fresh = fresh[:head+size]
	copy(fresh[head:], nd.buf[nd.head:])
	nd.buf, nd.head = fresh, head
}
