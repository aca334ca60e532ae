package rdb

import (
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strconv"
)

// decoder reads the primitives of the format. Its results are valid until recycle.
type decoder struct {
	r    io.Reader // nil if buf has everything
	buf  []byte
	pos  int
	crc  uint64 // of everything read before buf
	text []byte // strings that are not contiguous in buf
	// valkey says that Valkey 9 or later has written the data: some types have other numbers there.
	valkey bool
	// templates are the names of the fields of hashes in a file, by the numbers of the templates.
	templates map[uint64][][]byte
}

// knows reports whether a version is readable.
func (d *decoder) knows(version uint64) bool {
	if d.valkey {
		return version >= OldestValkey && version <= NewestValkey
	}
	return version <= Newest
}

const (
	bufferSize = 64 << 10
	// step is the most memory for a string beyond the bytes that have arrived.
	step = 1 << 20
	// keptText is the largest buffer of strings that is kept for reuse.
	keptText = 1 << 20
)

// recycle makes the memory of all returned strings reusable.
func (d *decoder) recycle() {
	if d.text = d.text[:0]; cap(d.text) > keptText {
		d.text = nil
	}
}

// grow makes room in b for n more bytes, but at most for a step beyond its present size.
func grow(b []byte, n int) []byte { return slices.Grow(b, min(n, max(step, len(b)))) }

// fill makes n bytes, at most bufferSize, available in buf after pos.
func (d *decoder) fill(n int) error {
	if len(d.buf)-d.pos >= n {
		return nil
	}
	if d.r == nil {
		return io.ErrUnexpectedEOF
	}
	d.crc = checksum(d.crc, d.buf[:d.pos])
	if cap(d.buf) < bufferSize {
		d.buf = append(make([]byte, 0, bufferSize), d.buf[d.pos:]...)
	} else {
		d.buf = d.buf[:copy(d.buf, d.buf[d.pos:])]
	}
	d.pos = 0
	for len(d.buf) < n {
		k, err := d.r.Read(d.buf[len(d.buf):cap(d.buf)])
		d.buf = d.buf[:len(d.buf)+k]
		switch {
		case k > 0:
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return nil
}

// sum returns the checksum of everything read.
func (d *decoder) sum() uint64 { return checksum(d.crc, d.buf[:d.pos]) }

// fixed reads n bytes, at most 64. They are valid until the next call of any method.
func (d *decoder) fixed(n int) ([]byte, error) {
	if err := d.fill(n); err != nil {
		return nil, err
	}
	d.pos += n
	return d.buf[d.pos-n : d.pos], nil
}

func (d *decoder) byte() (byte, error) {
	b, err := d.fixed(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// peek returns the next byte, which is still to be read.
func (d *decoder) peek() (byte, error) {
	if err := d.fill(1); err != nil {
		return 0, err
	}
	return d.buf[d.pos], nil
}

// raw reads n bytes.
func (d *decoder) raw(n uint64) ([]byte, error) {
	if d.r == nil {
		if n > uint64(len(d.buf)-d.pos) {
			return nil, io.ErrUnexpectedEOF
		}
		d.pos += int(n)
		return d.buf[d.pos-int(n) : d.pos : d.pos], nil
	}
	if n > math.MaxInt/2 {
		return nil, corrupt("a string of %d bytes", n)
	}
	start := len(d.text)
	for left := int(n); left > 0; {
		if d.pos == len(d.buf) {
			if err := d.fill(1); err != nil {
				return nil, err
			}
		}
		k := min(left, len(d.buf)-d.pos)
		d.text = append(grow(d.text, left), d.buf[d.pos:d.pos+k]...)
		d.pos += k
		left -= k
	}
	return d.text[start:len(d.text):len(d.text)], nil
}

// The first two bits of a length, and the meaning of the other bits if both are set.
const (
	length6       = 0
	length14      = 1
	lengthLong    = 2
	lengthSpecial = 3

	length32 = 0x80
	length64 = 0x81

	specialInt8  = 0
	specialInt16 = 1
	specialInt32 = 2
	specialLZF   = 3
)

// lengthOrSpecial reads a length, or the mark of a string in a special form in its place.
func (d *decoder) lengthOrSpecial() (n uint64, special bool, err error) {
	first, err := d.byte()
	if err != nil {
		return 0, false, err
	}
	var b []byte
	switch first >> 6 {
	case length6:
		return uint64(first), false, nil
	case length14:
		b, err = d.fixed(1)
		if err != nil {
			return 0, false, err
		}
		return uint64(first&0x3f)<<8 | uint64(b[0]), false, nil
	case lengthSpecial:
		return uint64(first & 0x3f), true, nil
	}
	switch first {
	case length32:
		if b, err = d.fixed(4); err != nil {
			return 0, false, err
		}
		return uint64(binary.BigEndian.Uint32(b)), false, nil
	case length64:
		if b, err = d.fixed(8); err != nil {
			return 0, false, err
		}
		return binary.BigEndian.Uint64(b), false, nil
	}
	return 0, false, corrupt("a length that begins with %#x", first)
}

// length reads a length, or a number encoded as one.
func (d *decoder) length() (uint64, error) {
	n, special, err := d.lengthOrSpecial()
	if err == nil && special {
		err = corrupt("a string in the place of a length")
	}
	return n, err
}

// string reads a string in any form.
func (d *decoder) string() ([]byte, error) {
	n, special, err := d.lengthOrSpecial()
	switch {
	case err != nil:
		return nil, err
	case !special:
		return d.raw(n)
	case n == specialLZF:
		return d.compressed()
	case n > specialLZF:
		return nil, corrupt("a string of the unknown form %d", n)
	}
	b, err := d.fixed(1 << n)
	if err != nil {
		return nil, err
	}
	var v int64
	switch n {
	case specialInt8:
		v = int64(int8(b[0]))
	case specialInt16:
		v = int64(int16(binary.LittleEndian.Uint16(b)))
	case specialInt32:
		v = int64(int32(binary.LittleEndian.Uint32(b)))
	}
	start := len(d.text)
	d.text = strconv.AppendInt(d.text, v, 10)
	return d.text[start:len(d.text):len(d.text)], nil
}

// compressed reads a string after the mark of LZF.
func (d *decoder) compressed() ([]byte, error) {
	n, err := d.length()
	if err != nil {
		return nil, err
	}
	size, err := d.length()
	if err != nil {
		return nil, err
	}
	b, err := d.raw(n)
	if err != nil {
		return nil, err
	}
	if size > math.MaxInt/2 {
		return nil, corrupt("a string of %d bytes", size)
	}
	start := len(d.text)
	out, ok := decompress(d.text, b, int(size))
	if !ok {
		return nil, corrupt("a compressed string")
	}
	d.text = out
	return out[start:len(out):len(out)], nil
}

// millis reads a time in ms since 1970.
func (d *decoder) millis() (int64, error) {
	b, err := d.fixed(8)
	if err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// numbers reads numbers encoded as lengths.
func (d *decoder) numbers(to ...*uint64) (err error) {
	for _, n := range to {
		if *n, err = d.length(); err != nil {
			return err
		}
	}
	return nil
}

// elements reads a length and calls fn that many times. It fails if the length is 0.
func (d *decoder) elements(fn func() error) error {
	n, err := d.length()
	if err == nil && n == 0 {
		err = errEmpty
	}
	for ; n > 0 && err == nil; n-- {
		err = fn()
	}
	return err
}
