package buffers

// Incoming receives bytes whose number the sender has announced. The announcement alone takes no memory. The first
// bytes go into parts, each at most half as large as what has arrived. Once a quarter has arrived, a buffer for all
// bytes takes the rest. The parts are copied to it one at a time, with each piece that arrives, because copying
// hundreds of megabytes at once would delay other work of the goroutine.
type Incoming struct {
	size  int
	b     []byte   // bytes after the parts; if own is set all bytes, where some parts may still be missing
	parts [][]byte // full parts, in order
	had   int      // bytes of the parts; fixed when own is set
	left  int      // bytes of the parts not yet copied; used if own is set
	own   bool     // b has room for all of it
}

const (
	firstPart = 64 << 10 // bytes
	lastPart  = 4 << 20  // bytes, of the largest parts
	// incomingShare: after 1/incomingShare of the bytes, memory for all of them is allocated.
	incomingShare = 4
)

// Begin starts to receive size bytes. Of these, expected bytes have already arrived, or cost little memory.
func (in *Incoming) Begin(size, expected int) {
	*in = Incoming{size: size}
	if in.own = size <= max(firstPart, incomingShare*expected); in.own {
		in.b = GetFitting(size)
		return
	}
	in.b = Get(partAfter(expected))
}

// partAfter returns the size of the next part after so many bytes. Get makes buffers of exactly this size; one that was put
// by others may be up to twice as large.
func partAfter(arrived int) int {
	n := firstPart
	for n < lastPart && 4*n <= arrived {
		n *= 2
	}
	return n
}

// Active reports whether Begin was called, and neither Whole nor Drop since then.
func (in *Incoming) Active() bool { return in.size > 0 }

// Size returns the announced number of bytes.
func (in *Incoming) Size() int { return in.size }

// Arrived returns how many bytes have arrived.
func (in *Incoming) Arrived() int {
	if in.own {
		return len(in.b)
	}
	return in.had + len(in.b)
}

// Memory returns how many bytes of memory it takes.
func (in *Incoming) Memory() int {
	if in.own {
		return in.left + cap(in.b)
	}
	return in.had + cap(in.b)
}

// Room returns the space for the next bytes. The caller then reports their number with Received.
func (in *Incoming) Room() []byte {
	if in.own {
		return in.b[len(in.b):in.size]
	}
	return in.b[len(in.b):min(cap(in.b), in.size-in.had)]
}

// Received records that n bytes were put into the space that Room returned.
func (in *Incoming) Received(n int) {
	in.b = in.b[:len(in.b)+n]
	switch {
	case in.own:
		in.movePart()
	case len(in.b) == cap(in.b):
		in.parts = append(in.parts, in.b)
		if in.had += len(in.b); incomingShare*in.had < in.size {
			in.b = Get(partAfter(in.had))
		} else {
			in.b, in.own, in.left = GetFitting(in.size)[:in.had], true, in.had
		}
	}
}

// movePart copies the next part to its place, if a part is left.
func (in *Incoming) movePart() {
	i := len(in.parts) - 1
	if i < 0 {
		return
	}
	part := in.parts[i]
	in.left -= len(part)
	copy(in.b[in.left:], part)
	Put(part)
	in.parts[i] = nil
	in.parts = in.parts[:i]
}

// Take consumes the bytes that are still missing from the front of b, and returns the rest of b.
func (in *Incoming) Take(b []byte) []byte {
	for len(b) > 0 && in.Arrived() < in.size {
		n := copy(in.Room(), b)
		in.Received(n)
		b = b[n:]
	}
	return b
}

// Whole returns all bytes once they have arrived. The caller owns them.
func (in *Incoming) Whole() []byte {
	for len(in.parts) > 0 {
		in.movePart()
	}
	b := in.b
	*in = Incoming{}
	return b
}

// Drop releases the memory.
func (in *Incoming) Drop() {
	for _, part := range in.parts {
		Put(part)
	}
	Put(in.b)
	*in = Incoming{}
}
