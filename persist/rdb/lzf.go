package rdb

import "math"

// LZF is Redis's compression of strings. A control byte below 32 is followed by that many literal bytes plus one. Any
// other is a reference: its upper three bits are the length less 2 (after 7, another byte is added), the lower five
// with the next byte are the distance less 1.

const (
	lzfLiteral   = 32      // most bytes in one literal run
	lzfReference = 264     // most bytes of one reference,
	lzfDistance  = 1 << 13 // and its largest distance
	lzfRatio     = lzfReference / 3
	lzfHashBits  = 16
)

// decompress appends the size bytes that b encodes to dst.
func decompress(dst, b []byte, size int) (out []byte, ok bool) {
	if size/lzfRatio > len(b) {
		return dst, false // allocate no memory for the impossible
	}
	start := len(dst)
	out = grow(dst, size)
	for len(b) > 0 {
		control := int(b[0])
		b = b[1:]
		if control < lzfLiteral {
			n := control + 1
			if n > len(b) || len(out)-start+n > size {
				return dst, false
			}
			out, b = append(out, b[:n]...), b[n:]
			continue
		}
		length := control >> 5
		if length == 7 {
			if len(b) == 0 {
				return dst, false
			}
			length += int(b[0])
			b = b[1:]
		}
		if len(b) == 0 {
			return dst, false
		}
		length += 2
		from := len(out) - (control&0x1f)<<8 - int(b[0]) - 1
		b = b[1:]
		if from < start || len(out)-start+length > size {
			return dst, false
		}
		for i := range length { // byte by byte: it may refer to its own output
			out = append(out, out[from+i])
		}
	}
	return out, len(out)-start == size
}

// lzfTable has positions in texts, by the hash of the three bytes there. Positions in earlier texts are below base, so
// that the table need not be cleared for each text.
type lzfTable struct {
	places [1 << lzfHashBits]uint32
	base   uint32 // position 0 of the present text; the zero value is never a valid position
}

// begin makes room for the positions of a text.
func (t *lzfTable) begin(size int) {
	if uint64(t.base)+uint64(size) > math.MaxUint32 {
		clear(t.places[:])
		t.base = 0
	}
	t.base++
}

func (t *lzfTable) end(size int) { t.base += uint32(size) }

// put records position i of b, and returns the previous one with the same hash. It is below 1 if there is none that may
// be referred to: Redis never refers to the first byte.
func (t *lzfTable) put(b []byte, i int) int {
	three := uint32(b[i])<<16 | uint32(b[i+1])<<8 | uint32(b[i+2])
	slot := &t.places[(three>>8-three*5)&(1<<lzfHashBits-1)]
	before := int(*slot) - int(t.base)
	*slot = t.base + uint32(i)
	return before
}

// compress appends the compressed form of b to dst. If that would not save at least four bytes, ok is false and dst is
// unchanged. It makes the same choices as Redis, so that the length, which DEBUG OBJECT shows, is the same.
func compress(dst, b []byte, table *lzfTable) (out []byte, ok bool) {
	table.begin(len(b))
	defer table.end(len(b))
	start, limit := len(dst), len(b)-4
	out = dst
	from, i := 0, 0 // everything before from has been written
	literal := func(to int) {
		for from < to {
			n := min(to-from, lzfLiteral)
			out = append(append(out, byte(n-1)), b[from:from+n]...)
			from += n
		}
	}
	// position returns where the next byte would go after the literals up to i, with the control byte of their run
	// already written.
	position := func() (at, run int) {
		run = (i - from) % lzfLiteral
		return len(out) - start + (i-from)/lzfLiteral*(lzfLiteral+1) + 1 + run, run
	}
	for i < len(b)-2 {
		at := table.put(b, i)
		if at < 1 || i-at > lzfDistance || b[at] != b[i] || b[at+1] != b[i+1] || b[at+2] != b[i+2] {
			i++
			continue
		}
		pos, run := position()
		if run == 0 {
			pos--
		}
		if pos+4 >= limit {
			return dst, false
		}
		literal(i)
		n, most := 3, longestReference(len(b)-i)
		for n < most && b[at+n] == b[i+n] {
			n++
		}
		distance := i - at - 1
		if n-2 < 7 {
			out = append(out, byte((n-2)<<5|distance>>8), byte(distance))
		} else {
			out = append(out, byte(7<<5|distance>>8), byte(n-2-7), byte(distance))
		}
		i += n
		from = i
		if i < len(b)-2 { // the last two bytes of a reference are recorded
			table.put(b, i-2)
			table.put(b, i-1)
		}
	}
	if pos, _ := position(); pos+3 > limit {
		return dst, false
	}
	literal(len(b))
	return out, true
}

// longestReference returns the maximum length of a reference when so many bytes are left. It excludes the last two,
// except where Redis compares the first nineteen at once.
func longestReference(left int) int {
	most := min(left-2, lzfReference)
	if most > 16 {
		return max(most, 19)
	}
	return max(most, 3)
}
