package postings

import (
	"encoding/binary"
	"math/bits"
)

// An entry of a tail begins with an unsigned varint: four times the distance from the previous document (the first
// one's number), plus two flags. Then follows, as unsigned varints, what the flags do not imply: the frequency, the
// mask, the number of offsets, and the distances of the offsets.

const (
	flagSimple = 1 << iota // the frequency is 1, as is the number of offsets if the list keeps them
	flagSame               // the mask equals that of the tail's first entry
	flagBits   = iota
)

// appendEntry appends an entry to a tail. last is the previous document; other says that the tail has entries.
func appendEntry(t []byte, keep Keep, other bool, e Entry, last uint64) []byte {
	if !other {
		last = 0
	}
	v := (e.Doc - last) << flagBits
	simple := (keep&Freqs == 0 || e.Freq == 1) && (keep&Offsets == 0 || len(e.Offsets) == 1)
	if simple {
		v |= flagSimple
	}
	if keep&Masks == 0 || other && firstMask(t) == e.Mask {
		v |= flagSame
	}
	t = binary.AppendUvarint(t, v)
	if v&flagSame == 0 {
		t = appendMask(t, e.Mask)
	}
	if !simple && keep&Freqs != 0 {
		t = binary.AppendUvarint(t, uint64(e.Freq))
	}
	if keep&Offsets == 0 {
		return t
	}
	if !simple {
		t = binary.AppendUvarint(t, uint64(len(e.Offsets)))
	}
	return appendOffsets(t, e.Offsets)
}

// appendOffsets appends the distances of ascending offsets.
func appendOffsets(t []byte, offsets []uint32) []byte {
	before := uint32(0)
	for _, o := range offsets {
		t = binary.AppendUvarint(t, uint64(o-before))
		before = o
	}
	return t
}

// offsetBytes returns how many bytes appendOffsets appends.
func offsetBytes(offsets []uint32) (n uint32) {
	before := uint32(0)
	for _, o := range offsets {
		n += uint32(max(1, bits.Len32(o-before))+6) / 7
		before = o
	}
	return n
}

// appendMask appends a mask: its low half as a varint; or, if the low half is not all of it, a zero and both halves.
func appendMask(t []byte, m Mask) []byte {
	if m.Hi == 0 && m.Lo != 0 {
		return binary.AppendUvarint(t, m.Lo)
	}
	t = binary.LittleEndian.AppendUint64(append(t, 0), m.Lo)
	return binary.LittleEndian.AppendUint64(t, m.Hi)
}

// maskAt returns the mask at a position of a tail, and the position after it.
func maskAt(t []byte, at int) (Mask, int) {
	if t[at] != 0 {
		lo, at := uvarint(t, at)
		return Mask{Lo: lo}, at
	}
	return Mask{binary.LittleEndian.Uint64(t[at+1:]), binary.LittleEndian.Uint64(t[at+9:])}, at + 17
}

// firstMask returns the mask of the first entry of a tail that has masks.
func firstMask(t []byte) Mask {
	_, at := uvarint(t, 0)
	m, _ := maskAt(t, at)
	return m
}

// uvarint returns the varint at a position, and the position after it.
func uvarint(t []byte, at int) (uint64, int) {
	v := uint64(t[at])
	if v < 0x80 {
		return v, at + 1
	}
	v &= 0x7f
	for shift := 7; ; shift += 7 {
		at++
		b := t[at]
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, at + 1
		}
	}
}

// tailEntry is a decoded entry of a tail.
type tailEntry struct {
	doc     uint64
	freq    uint32
	mask    Mask
	offsets int // where the offsets begin
	count   int // of the offsets
	end     int // where the next entry begins
}

// next reads the entry after e. first is the mask of the tail's first entry; reading that entry sets it.
func (e *tailEntry) next(t []byte, keep Keep, first *Mask) {
	v, at := uvarint(t, e.end)
	e.doc += v >> flagBits
	e.freq, e.count = 1, 0
	switch {
	case keep&Masks == 0:
		e.mask = All
	case v&flagSame != 0:
		e.mask = *first
	default:
		m, behind := maskAt(t, at)
		if e.end == 0 {
			*first = m
		}
		e.mask, at = m, behind
	}
	if v&flagSimple == 0 && keep&Freqs != 0 {
		var f uint64
		f, at = uvarint(t, at)
		e.freq = uint32(f)
	}
	if keep&Offsets != 0 {
		e.count = 1
		if v&flagSimple == 0 {
			var n uint64
			n, at = uvarint(t, at)
			e.count = int(n)
		}
	}
	e.offsets = at
	e.end = skipVarints(t, at, e.count)
}
