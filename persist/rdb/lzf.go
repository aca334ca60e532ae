package rdb

import "math"

// LZF, with which Redis compresses strings. A control byte below 32 stands before that many bytes and one more, which
// are as they were; any other is a reference: its upper three bits are the length less 2 (7 has another byte added),
// the lower five with the next byte are the distance less 1.

const (
	lzfLiteral   = 32      // bytes in one run at most
	lzfReference = 264     // bytes that one reference stands for at most,
	lzfDistance  = 1 << 13 // at most so far back
	lzfRatio     = lzfReference / 3
	lzfHashBits  = 16
)

// decompress appends the size bytes that b stands for to dst.
func decompress(dst, b []byte, size int) (out []byte, ok bool) {
	if size/lzfRatio > len(b) {
		return dst, false // so that memory is not taken for what cannot be
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
		for i := range length { // byte by byte: it may refer to what it appends
			out = append(out, out[from+i])
		}
	}
	return out, len(out)-start == size
}

// lzfTable has places in the texts so far, by the hash of the three bytes there. Places of earlier texts are below
// base, so that the table need not be cleared for each text.
type lzfTable struct {
	places [1 << lzfHashBits]uint32
	base   uint32 // place 0 of the text at hand; the zero value of a place is never one
}

// begin makes room for the places of a text.
func (t *lzfTable) begin(size int) {
	if uint64(t.base)+uint64(size) > math.MaxUint32 {
		clear(t.places[:])
		t.base = 0
	}
	t.base++
}

func (t *lzfTable) end(size int) { t.base += uint32(size) }

// put notes place i of b, and returns the one that had the same hash before. It is below 1 if there is none that may
// be referred to: Redis never refers to the first byte.
func (t *lzfTable) put(b []byte, i int) int {
	three := uint32(b[i])<<16 | uint32(b[i+1])<<8 | uint32(b[i+2])
	slot := &t.places[(three>>8-three*5)&(1<<lzfHashBits-1)]
	before := int(*slot) - int(t.base)
	*slot = t.base + uint32(i)
	return before
}

// compress appends what stands for b to dst. ok is false, and dst as it was, if that would not save at least four
// bytes. It chooses as Redis does, so that the length is the same: DEBUG OBJECT tells it.
func compress(dst, b []byte, table *lzfTable) (out []byte, ok bool) {
	table.begin(len(b))
	defer table.end(len(b))
	start, limit := len(dst), len(b)-4
	out = dst
	from, i := 0, 0 // what is before from has been written
	literal := func(to int) {
		for from < to {
			n := min(to-from, lzfLiteral)
			out = append(append(out, byte(n-1)), b[from:from+n]...)
			from += n
		}
	}
	// position is where the next byte would go behind the literals up to i, the control byte of their run being there
	// already.
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
		if i < len(b)-2 { // of the bytes referred from, the last two are places to refer to
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

// longestReference returns how many of the bytes that are left a reference may stand for. The last two are left out,
// but for where Redis compares the first nineteen at once.
func longestReference(left int) int {
	most := min(left-2, lzfReference)
	if most > 16 {
		return max(most, 19)
	}
	return max(most, 3)
}
