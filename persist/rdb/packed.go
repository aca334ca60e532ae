package rdb

import (
	"encoding/binary"
	"iter"
	"strconv"
)

// Redis's flat forms of small collections, which files contain as strings: listpacks, ziplists, zipmaps and sorted
// integers.

// packed walks the elements of a listpack or a ziplist.
type packed struct {
	b     []byte    // the remaining elements, without the end mark
	text  [2][]byte // text of the last two integers
	zip   bool
	prev  int // of a ziplist: the length in bytes of the previous element
	count int // according to the header, -1 if unknown
	seen  int
}

const (
	packedUnknown = 1<<16 - 1 // the count is unknown
	packedEnd     = 0xff
)

// listpack returns a walk over a listpack.
func listpack(b []byte) (*packed, error) {
	const header = 6
	if len(b) < header+1 || int64(binary.LittleEndian.Uint32(b)) != int64(len(b)) || b[len(b)-1] != packedEnd {
		return nil, corrupt("the frame of a listpack")
	}
	p := &packed{b: b[header : len(b)-1], count: int(binary.LittleEndian.Uint16(b[4:]))}
	if p.count == packedUnknown {
		p.count = -1
	}
	return p, nil
}

// ziplist returns a walk over a ziplist.
func ziplist(b []byte) (*packed, error) {
	const header = 10
	if len(b) < header+1 || int64(binary.LittleEndian.Uint32(b)) != int64(len(b)) || b[len(b)-1] != packedEnd {
		return nil, corrupt("the frame of a ziplist")
	}
	p := &packed{b: b[header : len(b)-1], count: int(binary.LittleEndian.Uint16(b[8:])), zip: true}
	if p.count == packedUnknown {
		p.count = -1
	}
	return p, nil
}

// more reports whether elements are left. At the end it fails if their number was wrong.
func (p *packed) more() (bool, error) {
	if len(p.b) == 0 && p.count >= 0 && p.seen != p.count {
		return false, corrupt("%d elements where %d are told", p.seen, p.count)
	}
	return len(p.b) > 0, nil
}

// next returns the next element. A number is valid until the call after the next, a string as long as the data.
func (p *packed) next() ([]byte, error) {
	v, n, isInt, err := p.element()
	if err == nil && isInt {
		text := &p.text[p.seen%2]
		*text = strconv.AppendInt((*text)[:0], n, 10)
		v = *text
	}
	return v, err
}

// number returns the next element, which must be a number.
func (p *packed) number() (int64, error) {
	v, n, isInt, err := p.element()
	if err == nil && !isInt {
		var bad error
		if n, bad = strconv.ParseInt(string(v), 10, 64); bad != nil {
			err = corrupt("%.20q in the place of a number", v)
		}
	}
	return n, err
}

// element returns the next element in its stored type.
func (p *packed) element() (v []byte, n int64, isInt bool, err error) {
	if len(p.b) == 0 {
		return nil, 0, false, corrupt("an element is missing")
	}
	p.seen++
	if p.zip {
		return p.zipElement()
	}
	head, size, isInt, n := p.listHead()
	whole := head + size
	tail := backLength(whole)
	if head == 0 || size > len(p.b) || whole+tail > len(p.b) || !checkBack(p.b[whole:whole+tail], whole) {
		return nil, 0, false, corrupt("an element of a listpack")
	}
	v = p.b[head:whole:whole]
	p.b = p.b[whole+tail:]
	if isInt && size > 0 {
		n = littleInt(v)
	}
	return v, n, isInt, nil
}

// listHead reads the head of a listpack's element: its length, and the length of the following data. If none follows,
// the number is n.
func (p *packed) listHead() (head, size int, isInt bool, n int64) {
	b := p.b
	switch c := b[0]; {
	case c < 0x80:
		return 1, 0, true, int64(c)
	case c < 0xc0:
		return 1, int(c & 0x3f), false, 0
	case c < 0xe0:
		if len(b) < 2 {
			return 0, 0, false, 0
		}
		return 2, 0, true, int64(int16(uint16(c&0x1f)<<11|uint16(b[1])<<3) >> 3) // 13 bits, signed
	case c < 0xf0:
		if len(b) < 2 {
			return 0, 0, false, 0
		}
		return 2, int(c&0x0f)<<8 | int(b[1]), false, 0
	case c == 0xf0:
		if len(b) < 5 {
			return 0, 0, false, 0
		}
		return 5, int(binary.LittleEndian.Uint32(b[1:])), false, 0
	case c == 0xf1:
		return 1, 2, true, 0
	case c == 0xf2:
		return 1, 3, true, 0
	case c == 0xf3:
		return 1, 4, true, 0
	case c == 0xf4:
		return 1, 8, true, 0
	}
	return 0, 0, false, 0
}

// backLength returns the size of an element's trailing length, which lets listpacks be read backwards.
func backLength(n int) int {
	switch {
	case n <= 127:
		return 1
	case n < 16383:
		return 2
	case n < 2097151:
		return 3
	case n < 268435455:
		return 4
	}
	return 5
}

// appendBack appends the length of an element, seven bits per byte, the lowest in the last byte; all bytes except the
// first have the high bit.
func appendBack(dst []byte, n int) []byte {
	for i := backLength(n) - 1; i >= 0; i-- {
		c := byte(n>>(7*i)) & 0x7f
		if i != backLength(n)-1 {
			c |= 0x80
		}
		dst = append(dst, c)
	}
	return dst
}

func checkBack(b []byte, n int) bool {
	var want [5]byte
	return string(appendBack(want[:0], n)) == string(b)
}

// littleInt decodes a signed little-endian number.
func littleInt(b []byte) int64 {
	n := uint64(0)
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(n<<shift) >> shift
}

// zipElement is element for a ziplist.
func (p *packed) zipElement() (v []byte, n int64, isInt bool, err error) {
	b := p.b
	bad := func() ([]byte, int64, bool, error) { return nil, 0, false, corrupt("an element of a ziplist") }
	prev, head := int(b[0]), 1
	if b[0] == 254 {
		if len(b) < 5 {
			return bad()
		}
		prev, head = int(binary.LittleEndian.Uint32(b[1:])), 5
	}
	if prev != p.prev || b[0] == packedEnd || len(b) == head {
		return bad()
	}
	c := b[head]
	size := 0
	switch {
	case c < 0x40:
		head, size = head+1, int(c)
	case c < 0x80 && len(b) >= head+2:
		size = int(c&0x3f)<<8 | int(b[head+1])
		head += 2
	case c == 0x80 && len(b) >= head+5:
		size = int(binary.BigEndian.Uint32(b[head+1:]))
		head += 5
	case c == 0xc0:
		head, size, isInt = head+1, 2, true
	case c == 0xd0:
		head, size, isInt = head+1, 4, true
	case c == 0xe0:
		head, size, isInt = head+1, 8, true
	case c == 0xf0:
		head, size, isInt = head+1, 3, true
	case c == 0xfe:
		head, size, isInt = head+1, 1, true
	case c > 0xf0 && c < 0xfe:
		head, n, isInt = head+1, int64(c&0x0f)-1, true
	default:
		return bad()
	}
	if size > len(b)-head {
		return bad()
	}
	v = b[head : head+size : head+size]
	p.b, p.prev = b[head+size:], head+size
	if isInt && size > 0 {
		n = littleInt(v)
	}
	return v, n, isInt, nil
}

// appendListpackString appends a string as an element of a listpack, as a number if it is one.
func appendListpackString(dst, v []byte) []byte {
	if n, ok := canonicalInt(v); ok {
		return appendListpackInt(dst, n)
	}
	start := len(dst)
	switch n := len(v); {
	case n < 1<<6:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<12:
		dst = append(dst, 0xe0|byte(n>>8), byte(n))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xf0), uint32(n))
	}
	dst = append(dst, v...)
	return appendBack(dst, len(dst)-start)
}

// appendListpackInt appends a number as an element of a listpack.
func appendListpackInt(dst []byte, n int64) []byte {
	start := len(dst)
	switch {
	case n >= 0 && n < 1<<7:
		dst = append(dst, byte(n))
	case n >= -1<<12 && n < 1<<12:
		dst = append(dst, 0xc0|byte(n>>8)&0x1f, byte(n))
	case n >= -1<<15 && n < 1<<15:
		dst = append(dst, 0xf1, byte(n), byte(n>>8))
	case n >= -1<<23 && n < 1<<23:
		dst = append(dst, 0xf2, byte(n), byte(n>>8), byte(n>>16))
	case n >= -1<<31 && n < 1<<31:
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xf3), uint32(n))
	default:
		dst = binary.LittleEndian.AppendUint64(append(dst, 0xf4), uint64(n))
	}
	return appendBack(dst, len(dst)-start)
}

// canonicalInt returns the number whose exact text is v, if there is one.
func canonicalInt(v []byte) (int64, bool) {
	if len(v) == 0 || len(v) > 20 || v[0] > '9' || v[0] < '-' || v[0] == '0' && len(v) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, false
	}
	var text [20]byte
	return n, string(strconv.AppendInt(text[:0], n, 10)) == string(v)
}

// zipmap calls fn with the fields and values of a zipmap, views of b.
func zipmap(b []byte, fn func(field, value []byte) error) error {
	if len(b) < 2 || b[len(b)-1] != packedEnd {
		return corrupt("the frame of a zipmap")
	}
	b = b[1 : len(b)-1]
	text := func(extra int) ([]byte, bool) {
		if len(b) == 0 || b[0] == packedEnd {
			return nil, false
		}
		n, head := int(b[0]), 1
		if b[0] == 254 {
			if len(b) < 5 {
				return nil, false
			}
			n, head = int(binary.LittleEndian.Uint32(b[1:])), 5
		}
		free := 0
		if extra > 0 { // the number of unused bytes after the value
			if len(b) <= head {
				return nil, false
			}
			free = int(b[head])
			head++
		}
		if n > len(b)-head || free > len(b)-head-n {
			return nil, false
		}
		v := b[head : head+n : head+n]
		b = b[head+n+free:]
		return v, true
	}
	for len(b) > 0 {
		field, ok := text(0)
		if !ok {
			return corrupt("a field of a zipmap")
		}
		value, ok := text(1)
		if !ok {
			return corrupt("a value of a zipmap")
		}
		if err := fn(field, value); err != nil {
			return err
		}
	}
	return nil
}

// intset calls fn with the numbers of a set of integers, as text valid during the call.
func intset(b []byte, fn func(member []byte) error) error {
	const header = 8
	if len(b) < header {
		return corrupt("the frame of a set of integers")
	}
	width, n := int64(binary.LittleEndian.Uint32(b)), int64(binary.LittleEndian.Uint32(b[4:]))
	if width != 2 && width != 4 && width != 8 || int64(len(b)) != header+width*n {
		return corrupt("the frame of a set of integers")
	}
	var text []byte
	last := int64(0)
	for i := range n {
		v := littleInt(b[header+i*width : header+(i+1)*width])
		if i > 0 && v <= last {
			return corrupt("integers that are out of order")
		}
		last = v
		text = strconv.AppendInt(text[:0], v, 10)
		if err := fn(text); err != nil {
			return err
		}
	}
	return nil
}

// packed reads a string that is a listpack or a ziplist, and calls fn while elements are left.
func (d *decoder) packed(open func(b []byte) (*packed, error), fn func(p *packed) error) error {
	b, err := d.string()
	if err != nil {
		return err
	}
	p, err := open(b)
	if err != nil {
		return err
	}
	for {
		more, err := p.more()
		if err != nil || !more {
			return err
		}
		if err := fn(p); err != nil {
			return err
		}
	}
}

// packedBytes is the size of a listpack's head and end.
const packedBytes = 4 + 2 + 1

// sealListpack makes a listpack of n encoded elements.
func sealListpack(elements []byte, n int) []byte {
	size := packedBytes + len(elements)
	pack := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(size))
	pack = binary.LittleEndian.AppendUint16(pack, uint16(min(n, packedUnknown)))
	return append(append(pack, elements...), packedEnd)
}

func listpackOf(elements iter.Seq[[]byte]) []byte {
	var b []byte
	n := 0
	for v := range elements {
		b = appendListpackString(b, v)
		n++
	}
	return sealListpack(b, n)
}
