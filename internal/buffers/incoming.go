package buffers

// Incoming receives bytes whose number the sender has announced. What is only announced takes no memory: at first they
// are received into parts, each at most as large as half of what has arrived, and once a quarter of all is there into
// memory of the size of all. The parts are moved there meanwhile, one with each piece that comes, because to move
// hundreds of megabytes at once would hold up other work of the goroutine.
type Incoming struct {
	size  int
	b     []byte   // what has arrived behind the parts; if own is set all that has, of which the parts are still to be copied
	parts [][]byte // full ones, in order
	had   int      // bytes of the parts that there were when own was set, or of all parts before
	left  int      // bytes of the parts that are still to be copied; used if own is set
	own   bool     // b has room for all of it
}

const (
	firstPart = 64 << 10 // bytes
	lastPart  = 4 << 20  // bytes of the largest parts
	// incomingShare is the part of all after which there is memory for all of it.
	incomingShare = 4
)

// Begin begins to receive size bytes, of which expected are known to be there already, or are cheap to make room for.
func (in *Incoming) Begin(size, expected int) {
	*in = Incoming{size: size}
	if in.own = size <= max(firstPart, incomingShare*expected); in.own {
		in.b = GetFitting(size)
		return
	}
	in.b = Get(partAfter(expected))
}

// partAfter returns how large a part is when so many bytes have arrived: a size that Get gives exactly.
func partAfter(arrived int) int {
	n := firstPart
	for n < lastPart && 4*n <= arrived {
		n *= 2
	}
	return n
}

// Active reports whether Begin was called, and neither Whole nor Drop since then.
func (in *Incoming) Active() bool { return in.size > 0 }

// Size returns how many bytes there will be.
func (in *Incoming) Size() int { return in.size }

// Arrived returns how many bytes there are.
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

// Room returns where the next bytes should be put. Received tells how many there are.
func (in *Incoming) Room() []byte {
	if in.own {
		return in.b[len(in.b):in.size]
	}
	return in.b[len(in.b):min(cap(in.b), in.size-in.had)]
}

// Received notes that n bytes are in the room.
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

// movePart copies a part to its place, if there is one.
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

// Take takes those of the bytes that belong to it, and returns the others.
func (in *Incoming) Take(b []byte) []byte {
	for len(b) > 0 && in.Arrived() < in.size {
		n := copy(in.Room(), b)
		in.Received(n)
		b = b[n:]
	}
	return b
}

// Whole returns all of the bytes, which have arrived. The caller owns them.
func (in *Incoming) Whole() []byte {
	for len(in.parts) > 0 {
		in.movePart()
	}
	b := in.b
	*in = Incoming{}
	return b
}

// Drop gives the memory back.
func (in *Incoming) Drop() {
	for _, part := range in.parts {
		Put(part)
	}
	Put(in.b)
	*in = Incoming{}
}
