package postings

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// A block has entries in columns. Its data is
//
//	the number of entries, from 1 to blockSize     1 byte
//	the widths of the columns                      1 byte each
//	the lowest values of the columns               an unsigned varint each
//	the columns, each starting at a whole byte
//	the distances of all offsets, as unsigned varints
//	slack                                          8 bytes
//
// A column has the differences of its values from the lowest one, with a fixed number of bits, so that each can be read
// by itself; if all are equal it takes no room. The columns are the documents (differences from block.first, the lowest
// value), the frequencies, the halves of the masks, and the numbers of offsets. Columns that the list does not keep are
// absent.
type block struct {
	first uint64 // the first document
	data  []byte // immutable
}

const (
	colDoc = iota
	colFreq
	colLo
	colHi
	colCount
	columns
)

// asFreq is the width of the column of numbers of offsets if these equal the frequencies.
const asFreq = 0xff

// slack is how many bytes follow the columns, so that eight bytes can be read at any place.
const slack = 8

// columnsOf returns which columns a block has.
func columnsOf(keep Keep) (has [columns]bool) {
	has[colDoc] = true
	has[colFreq] = keep&Freqs != 0
	has[colLo] = keep&Masks != 0
	has[colHi] = keep&Masks != 0
	has[colCount] = keep&Offsets != 0
	return has
}

// width returns the bits per difference of a column whose differences reach most.
func width(most uint64) int {
	if w := bits.Len64(most); w <= 57 { // so that eight bytes from the first one have the whole value
		return w
	}
	return 64
}

// pack packs the entries of a tail into a block.
func pack(t []byte, keep Keep) block {
	var values [columns][blockSize]uint64
	var offsets [blockSize][2]int // start and end for each entry
	var e tailEntry
	var first Mask
	n := 0
	for ; e.end < len(t); n++ {
		e.next(t, keep, &first)
		values[colDoc][n] = e.doc
		values[colFreq][n] = uint64(e.freq)
		values[colLo][n] = e.mask.Lo
		values[colHi][n] = e.mask.Hi
		values[colCount][n] = uint64(e.count)
		offsets[n] = [2]int{e.offsets, e.end}
	}
	var least [columns]uint64
	var widths [columns]int
	has := columnsOf(keep)
	size := 1 + slack
	for c := range columns {
		if !has[c] {
			continue
		}
		lo, hi := values[c][0], values[c][0]
		for _, v := range values[c][:n] {
			lo, hi = min(lo, v), max(hi, v)
		}
		least[c], widths[c] = lo, width(hi-lo)
		size += 1 + binary.MaxVarintLen64 + (n*widths[c]+7)/8
	}
	if has[colCount] && has[colFreq] && values[colCount] == values[colFreq] {
		widths[colCount] = asFreq
	}
	b := make([]byte, 1, size+len(t))
	b[0] = byte(n)
	for c := range columns {
		if has[c] {
			b = append(b, byte(widths[c]))
		}
	}
	for c := 1; c < columns; c++ {
		if has[c] && widths[c] != asFreq {
			b = binary.AppendUvarint(b, least[c])
		}
	}
	for c := range columns {
		if has[c] && widths[c] != asFreq {
			b = appendColumn(b, values[c][:n], least[c], widths[c])
		}
	}
	if keep&Offsets != 0 {
		for _, o := range offsets[:n] {
			b = append(b, t[o[0]:o[1]]...)
		}
	}
	b = append(b, make([]byte, slack)...)
	return block{first: values[colDoc][0], data: append([]byte(nil), b...)}
}

// appendColumn appends the differences of values from the lowest one, with width bits each.
func appendColumn(b []byte, values []uint64, least uint64, width int) []byte {
	at := len(b)
	b = append(b, make([]byte, (len(values)*width+7)/8)...)
	for i, v := range values {
		v -= least
		bit := i * width
		for left := width; left > 0; {
			room := 8 - bit&7
			b[at+bit>>3] |= byte(v << (bit & 7))
			v >>= room
			bit += room
			left -= room
		}
	}
	return b
}

// column reads the values of one column.
type column struct {
	data  []byte
	width uint
	mask  uint64
	least uint64
}

// at returns the value of entry i.
func (c *column) at(i int) uint64 {
	bit := uint(i) * c.width
	return c.least + binary.LittleEndian.Uint64(c.data[bit>>3:])>>(bit&7)&c.mask
}

// open reads the head of a block. It returns the number of entries and the start of the offsets.
func (b block) open(keep Keep, cols *[columns]column) (n, offsets int) {
	has := columnsOf(keep)
	n = int(b.data[0])
	at := 1
	var widths [columns]int
	for c := range columns {
		if has[c] {
			widths[c] = int(b.data[at])
			at++
		}
	}
	cols[colDoc].least = b.first
	for c := 1; c < columns; c++ {
		if has[c] && widths[c] != asFreq {
			cols[c].least, at = uvarint(b.data, at)
		}
	}
	for c := range columns {
		switch {
		case !has[c]:
		case widths[c] == asFreq:
			cols[c] = cols[colFreq]
		default:
			cols[c].data, cols[c].width, cols[c].mask = b.data[at:], uint(widths[c]), 1<<widths[c]-1
			at += (n*widths[c] + 7) / 8
		}
	}
	return n, at
}

// skipVarints returns the position after n varints.
func skipVarints(t []byte, at, n int) int {
	for n >= 8 && at+8 <= len(t) {
		ends := bits.OnesCount64(^binary.LittleEndian.Uint64(t[at:]) & 0x8080808080808080)
		n -= ends
		at += 8
	}
	// Eight bytes may end inside a varint; its rest is skipped with the next ones.
	for ; n > 0; n-- {
		for t[at] >= 0x80 {
			at++
		}
		at++
	}
	return at
}

// blockOf returns the last block whose first document is at most doc. It starts at block from, and returns from if the
// first documents of all later blocks are above doc.
func blockOf(blocks []block, from int, doc uint64) int {
	step := 1
	for from+step < len(blocks) && blocks[from+step].first <= doc {
		from += step
		step *= 2
	}
	rest := blocks[from+1 : min(from+step, len(blocks))]
	return from + sort.Search(len(rest), func(i int) bool { return rest[i].first > doc })
}
