package rdb

// LZF, with which Redis compresses strings. A control byte below 32 stands before that many bytes and one more, which are as they were; any
// other is a reference: its upper three bits are the length less 2 (7 has another byte added), the lower five with the next byte are the
// distance less 1.

const (
	lzfLiteral   = 32      // bytes in one run at most
	lzfReference = 264     // bytes that one reference stands for at most,
	lzfDistance  = 1 << 13 // at most so far back
	lzfRatio     = lzfReference / 3
	lzfHashBits  = 13
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

// lzfTable has places in the text, one more than they are, by the hash of the three bytes there.
type lzfTable [1 << lzfHashBits]int32

// compress appends what stands for b to dst. ok is false, and dst as it was, if that would not save at least four bytes.
func compress(dst, b []byte, table *lzfTable) (out []byte, ok bool) {
	start, limit := len(dst), len(b)-4
	clear(table[:])
	out = dst
	from := 0 // what is before has been written
	literal := func(to int) {
		for from < to {
			n := min(to-from, lzfLiteral)
			out = append(append(out, byte(n-1)), b[from:from+n]...)
			from += n
		}
	}
	for i := 0; i+2 < len(b); {
		h := (uint32(b[i])<<16 | uint32(b[i+1])<<8 | uint32(b[i+2])) * 2654435761 >> (32 - lzfHashBits)
		at := int(table[h]) - 1
		table[h] = int32(i + 1)
		if at < 0 || i-at > lzfDistance || b[at] != b[i] || b[at+1] != b[i+1] || b[at+2] != b[i+2] {
			i++
			continue
		}
		n := 3
		for n < lzfReference && i+n < len(b) && b[at+n] == b[i+n] {
			n++
		}
		literal(i)
		distance := i - at - 1
		if n-2 < 7 {
			out = append(out, byte((n-2)<<5|distance>>8), byte(distance))
		} else {
			out = append(out, byte(7<<5|distance>>8), byte(n-2-7), byte(distance))
		}
		i += n
		from = i
		if len(out)-start > limit {
			return dst, false
		}
	}
	literal(len(b))
	if len(out)-start > limit {
		return dst, false
	}
	return out, true
}
