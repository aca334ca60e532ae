package hyperloglog

import "fmt"

// The sparse encoding is a sequence of runs, which together cover all registers:
//
//	00xxxxxx            xxxxxx+1 registers of 0
//	01xxxxxx yyyyyyyy   xxxxxxyyyyyyyy+1 registers of 0
//	1vvvvvxx            xx+1 registers of vvvvv+1
//
// How a string is split into runs depends on its history: changes split runs, and merge only nearby neighbours. The
// steps are those of Redis, so that the strings are equal too.
const (
	maxZeros     = 64        // of a run in one byte
	maxLongZeros = registers // of a run in two bytes
	maxEqual     = 4
	maxEqualRank = 32

	longBit, valueBit = 0x40, 0x80
	// mergeSteps is how many runs a change considers for merging.
	mergeSteps = 5
)

// run is a run of a sparse string.
type run struct {
	length int
	rank   byte
	size   int // bytes of its encoding
}

// readRun reads the run at the start of b, which must not be empty. If the second byte of a two-byte run is missing,
// size exceeds len(b).
func readRun(b []byte) run {
	switch c := b[0]; {
	case c&valueBit != 0:
		return run{int(c&(maxEqual-1)) + 1, c>>2&(maxEqualRank-1) + 1, 1}
	case c&longBit == 0:
		return run{int(c) + 1, 0, 1}
	case len(b) == 1:
		return run{int(c&^longBit)<<8 + 1, 0, 2}
	default:
		return run{(int(c&^longBit)<<8 | int(b[1])) + 1, 0, 2}
	}
}

// lengths has the length of a run in one byte, by this byte; 0 for runs in two bytes.
var lengths = func() (t [256]uint8) {
	for c := range t {
		if r := readRun([]byte{byte(c)}); r.size == 1 {
			t[c] = uint8(r.length)
		}
	}
	return t
}()

// appendZeros appends a run of registers of 0; none if n is 0.
func appendZeros(dst []byte, n int) []byte {
	switch {
	case n == 0:
		return dst
	case n > maxZeros:
		return append(dst, longBit|byte((n-1)>>8), byte(n-1))
	}
	return append(dst, byte(n-1))
}

// appendEqual appends a run of up to four registers of a rank; none if n is 0.
func appendEqual(dst []byte, n int, rank byte) []byte {
	if n == 0 {
		return dst
	}
	return append(dst, equalRun(n, rank))
}

func equalRun(n int, rank byte) byte { return valueBit | (rank-1)<<2 | byte(n-1) }

// cursor is a position in a sparse string: a run and its predecessor.
type cursor struct {
	pos   int // offset of the run
	first int // the run's first register
	prev  int // offset of the run before; -1 if there is none
}

var startCursor = cursor{pos: headerSize, prev: -1}

// seek returns the run with a register, or the end of the string, and the run before it or the start of the search.
func (e *Editor) seek(index int) (at, before cursor) {
	b, from := e.b, e.at
	pos, first, prev, prevFirst, prevPrev := from.pos, from.first, from.prev, from.first, from.prev
	for pos < len(b) {
		length, size := int(lengths[b[pos]]), 1
		if length == 0 {
			r := readRun(b[pos:])
			length, size = r.length, r.size
		}
		if index < first+length {
			break
		}
		prevFirst, prevPrev, prev = first, prev, pos
		pos, first = pos+size, first+length
	}
	if pos == from.pos {
		return from, from
	}
	return cursor{pos, first, prev}, cursor{prev, prevFirst, prevPrev}
}

// raiseSparse is raise for a sparse string.
func (e *Editor) raiseSparse(index int, rank byte) error {
	if rank > maxEqualRank {
		return e.promote(index, rank)
	}
	at, before := e.seek(index)
	if at.pos >= len(e.b) {
		return ErrCorrupted
	}
	r := readRun(e.b[at.pos:])
	if at.pos+r.size > len(e.b) {
		return ErrCorrupted
	}
	if e.at = before; r.rank >= rank {
		return nil
	}
	if at.pos == before.pos {
		e.at = startCursor // the run where the search began may merge with its predecessor
	}

	var room [5]byte
	split := room[:0]
	if left := index - at.first; r.rank == 0 {
		split = appendZeros(split, left)
		split = appendEqual(split, 1, rank)
		split = appendZeros(split, r.length-left-1)
	} else {
		split = appendEqual(split, left, r.rank)
		split = appendEqual(split, 1, rank)
		split = appendEqual(split, r.length-left-1, r.rank)
	}
	if more := len(split) - r.size; more > 0 && len(e.b)+more > e.maxSparse {
		return e.promote(index, rank)
	}
	e.replace(at.pos, r.size, split)
	e.changed = true
	e.merge(max(at.prev, headerSize))
	Outdate(e.b)
	return nil
}

// replace replaces n bytes by others.
func (e *Editor) replace(at, n int, by []byte) {
	old := len(e.b)
	switch more := len(by) - n; {
	case more > 0:
		e.b = append(e.b, by[:more]...) // the content is irrelevant: it only makes room
		copy(e.b[at+len(by):], e.b[at+n:old])
	case more < 0:
		copy(e.b[at+len(by):], e.b[at+n:])
		e.b = e.b[:old+more]
	}
	copy(e.b[at:], by)
}

// merge joins neighbouring runs of the same rank, starting with the one at an offset, for a few steps.
func (e *Editor) merge(at int) {
	for steps := mergeSteps; at < len(e.b) && steps > 0; steps-- {
		r := readRun(e.b[at:])
		if r.rank > 0 && at+1 < len(e.b) {
			if next := readRun(e.b[at+1:]); next.rank == r.rank && next.length+r.length <= maxEqual {
				e.replace(at, 2, []byte{equalRun(next.length+r.length, r.rank)})
				continue // retry with the next run
			}
		}
		at += r.size
	}
}

// promote makes the string dense, and raises a register.
func (e *Editor) promote(index int, rank byte) error {
	if err := e.Densify(); err != nil {
		return err
	}
	e.raiseDense(index, rank)
	return nil
}

// eachRun calls fn with each run of a sparse string and its first register. It returns ErrCorrupted unless the runs
// cover exactly all registers.
func eachRun(b []byte, fn func(first int, r run)) error {
	first := 0
	for at := headerSize; at < len(b); {
		r := readRun(b[at:])
		if first+r.length > registers {
			return ErrCorrupted
		}
		fn(first, r)
		first += r.length
		at += r.size
	}
	if first != registers {
		return ErrCorrupted
	}
	return nil
}

// AppendRuns appends a description of a sparse string's runs: z or Z with a number of registers of 0, v with a rank and
// a number of registers.
func AppendRuns(dst, b []byte) []byte {
	for at := headerSize; at < len(b); {
		r := readRun(b[at:])
		if at > headerSize {
			dst = append(dst, ' ')
		}
		switch {
		case r.rank > 0:
			dst = fmt.Appendf(dst, "v:%d,%d", r.rank, r.length)
		case r.size == 1:
			dst = fmt.Appendf(dst, "z:%d", r.length)
		default:
			dst = fmt.Appendf(dst, "Z:%d", r.length)
		}
		at += r.size
	}
	return dst
}
