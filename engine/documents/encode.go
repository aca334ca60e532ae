package documents

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// The encoding of values in memory and in the store. A value is a tag, followed by:
//
//	null, false, true: nothing
//	an integer: one, two, four or eight bytes, little-endian; the tags from smallInt on are integers themselves
//	an integer beyond int64: eight bytes
//	a double: eight bytes, or the four of a float32 with the same value
//	a double of an array with a smaller type: four bytes or two
//	a string: its length and its bytes; the tags from shortText on include the length
//	an array, an object: three bytes with its size (lower 12 bits) and its number of elements (upper 12), and the
//	elements
//	a divided container: two bytes with its index in chunk.refs; in the store, eight with its id
//
// A member of an object is its name and its value. A name is its length in one byte and its bytes, or longName, the
// length in four bytes and the bytes. Encoded bytes never change, so that references to them stay valid.
const (
	tagNull = iota
	tagFalse
	tagTrue
	tagInt8
	tagInt16
	tagInt32
	tagInt64
	tagUint64
	tagDouble
	tagHalfDouble // equal to a float32
	tagFloat32
	tagFloat16
	tagBFloat16
	tagText8
	tagText16
	tagText32
	tagArray
	tagObject
	tagArrayRef
	tagObjectRef
	tags // the number of tags

	shortText = 0x40
	smallInt  = 0x80
	leastInt  = -16 // the integer of tag smallInt
	mostInt   = leastInt + 0xff - smallInt
	longName  = 0xff
)

const (
	// headSize is the size of a container's head, before its elements.
	headSize = 4
	sizeBits = 12
	// refSize is the size of a reference to a divided container, storedRefSize the size in the store.
	refSize       = 3
	storedRefSize = 9
)

// fixed has the sizes of values whose tag determines them; 0 for all others.
var fixed = [256]uint8{tagNull: 1, tagFalse: 1, tagTrue: 1, tagInt8: 2, tagInt16: 3, tagInt32: 5, tagInt64: 9, tagUint64: 9,
	tagDouble: 9, tagHalfDouble: 5, tagFloat32: 5, tagFloat16: 3, tagBFloat16: 3, tagArrayRef: refSize, tagObjectRef: refSize}

func init() {
	for tag := shortText; tag < 256; tag++ {
		fixed[tag] = uint8(1)
		if tag < smallInt {
			fixed[tag] += uint8(tag - shortText)
		}
	}
}

// sizeAt returns the size of the encoded value at the start of b.
func sizeAt(b []byte) int {
	if n := fixed[b[0]]; n > 0 {
		return int(n)
	}
	switch b[0] {
	case tagText8:
		return 2 + int(b[1])
	case tagText16:
		return 3 + int(binary.LittleEndian.Uint16(b[1:]))
	case tagText32:
		return 5 + int(binary.LittleEndian.Uint32(b[1:]))
	}
	size, _ := head(b)
	return headSize + size
}

// head returns the size and the number of the elements of the encoded container at the start of b.
func head(b []byte) (size, count int) {
	n := int(b[1]) | int(b[2])<<8 | int(b[3])<<16
	return n & (1<<sizeBits - 1), n >> sizeBits
}

// putHead writes the head that head reads.
func putHead(b []byte, tag byte, size, count int) {
	n := size | count<<sizeBits
	b[0], b[1], b[2], b[3] = tag, byte(n), byte(n>>8), byte(n>>16)
}

// nameAt returns the name at the start of b, and its encoded size.
func nameAt(b []byte) (name string, size int) {
	n, size := int(b[0]), 1
	if n == longName {
		n, size = int(binary.LittleEndian.Uint32(b[1:])), 5
	}
	return view(b[size : size+n]), size + n
}

// view returns immutable bytes as a string.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func appendName(dst []byte, name string) []byte {
	if len(name) < longName {
		return append(append(dst, byte(len(name))), name...)
	}
	return append(binary.LittleEndian.AppendUint32(append(dst, longName), uint32(len(name))), name...)
}

func appendInt(dst []byte, i int64) []byte {
	switch {
	case leastInt <= i && i <= mostInt:
		return append(dst, byte(i-leastInt+smallInt))
	case i == int64(int8(i)):
		return append(dst, tagInt8, byte(i))
	case i == int64(int16(i)):
		return binary.LittleEndian.AppendUint16(append(dst, tagInt16), uint16(i))
	case i == int64(int32(i)):
		return binary.LittleEndian.AppendUint32(append(dst, tagInt32), uint32(i))
	}
	return binary.LittleEndian.AppendUint64(append(dst, tagInt64), uint64(i))
}

func appendDouble(dst []byte, f float64) []byte {
	if bits := math.Float64bits(f); math.Float64bits(float64(float32(f))) == bits {
		return binary.LittleEndian.AppendUint32(append(dst, tagHalfDouble), math.Float32bits(float32(f)))
	}
	return binary.LittleEndian.AppendUint64(append(dst, tagDouble), math.Float64bits(f))
}

func appendText(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < smallInt-shortText:
		dst = append(dst, byte(shortText+n))
	case n <= math.MaxUint8:
		dst = append(dst, tagText8, byte(n))
	case n <= math.MaxUint16:
		dst = binary.LittleEndian.AppendUint16(append(dst, tagText16), uint16(n))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, tagText32), uint32(n))
	}
	return append(dst, s...)
}

// appendScalar appends a value that is not a container.
func appendScalar(dst []byte, v Value) []byte {
	switch v.p {
	case nil:
		return append(dst, byte(v.n))
	case isInt:
		return appendInt(dst, int64(v.n))
	case isUint:
		return binary.LittleEndian.AppendUint64(append(dst, tagUint64), v.n)
	case isDouble:
		return appendDouble(dst, v.Float())
	case isFloat32:
		return binary.LittleEndian.AppendUint32(append(dst, tagFloat32), math.Float32bits(float32(v.Float())))
	case isFloat16:
		return binary.LittleEndian.AppendUint16(append(dst, tagFloat16), halfOf(v.Float()))
	case isBFloat16:
		return binary.LittleEndian.AppendUint16(append(dst, tagBFloat16), uint16(math.Float32bits(float32(v.Float()))>>16))
	}
	return appendText(dst, v.text())
}

// decode returns the encoded value at the start of b; refs are the references of its chunk.
func decode(b []byte, refs []*pages) Value {
	switch tag := b[0]; {
	case tag >= smallInt:
		return Int(int64(tag) - smallInt + leastInt)
	case tag >= shortText:
		return Text(view(b[1 : 1+tag-shortText]))
	case tag <= tagTrue:
		return Value{n: uint64(tag)}
	case tag == tagArray || tag == tagObject:
		n := formFlat
		if tag == tagObject {
			n |= formObject
		}
		return Value{unsafe.Pointer(unsafe.SliceData(b)), n}
	default:
		return decodeOther(b, refs)
	}
}

func decodeOther(b []byte, refs []*pages) Value {
	switch b[0] {
	case tagInt8:
		return Int(int64(int8(b[1])))
	case tagInt16:
		return Int(int64(int16(binary.LittleEndian.Uint16(b[1:]))))
	case tagInt32:
		return Int(int64(int32(binary.LittleEndian.Uint32(b[1:]))))
	case tagInt64:
		return Int(int64(binary.LittleEndian.Uint64(b[1:])))
	case tagUint64:
		return Uint(binary.LittleEndian.Uint64(b[1:]))
	case tagDouble:
		return Double(math.Float64frombits(binary.LittleEndian.Uint64(b[1:])))
	case tagHalfDouble:
		return Double(float64(math.Float32frombits(binary.LittleEndian.Uint32(b[1:]))))
	case tagFloat32:
		return Value{isFloat32, math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(b[1:]))))}
	case tagFloat16:
		return Value{isFloat16, math.Float64bits(fromHalf(binary.LittleEndian.Uint16(b[1:])))}
	case tagBFloat16:
		f := math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[1:])) << 16)
		return Value{isBFloat16, math.Float64bits(float64(f))}
	case tagText8:
		return Text(view(b[2 : 2+int(b[1])]))
	case tagText16:
		return Text(view(b[3 : 3+int(binary.LittleEndian.Uint16(b[1:]))]))
	case tagText32:
		return Text(view(b[5 : 5+int(binary.LittleEndian.Uint32(b[1:]))]))
	}
	return refs[binary.LittleEndian.Uint16(b[1:])].value()
}

// builder encodes values, and divides containers as soon as they become large.
type builder struct {
	buf  []byte
	open []open
	refs []*pages // of all open containers, outer ones first
}

// open is a container to which elements are appended.
type open struct {
	start  int // of its elements in buf
	refs   int // start of its references in builder.refs
	last   int // start of the last element
	count  int // of the elements in buf
	object bool
	pages  *pages // chunks already completed; nil if there are none
}

// begin opens a container.
func (b *builder) begin(object bool) {
	b.buf = append(b.buf, 0, 0, 0, 0)
	b.open = append(b.open, open{start: len(b.buf), refs: len(b.refs), object: object})
}

// element must be called before each element that is appended to the innermost open container.
func (b *builder) element() {
	o := &b.open[len(b.open)-1]
	if len(b.buf)-o.start > fullChunk {
		b.flush(o)
	}
	o.last = len(b.buf)
	o.count++
}

// flush makes a chunk of the elements in buf, or two if the last element is large.
func (b *builder) flush(o *open) {
	if o.pages == nil {
		o.pages = &pages{object: o.object}
	}
	whole := chunk{enc: b.buf[o.start:], refs: b.refs[o.refs:], n: o.count}
	from, count := 0, o.count
	if len(whole.enc) > maxChunk && o.count > 1 {
		from, count = o.last-o.start, 1
		o.pages.chunks = append(o.pages.chunks, whole.piece(0, from, o.count-1, o.object))
	}
	o.pages.chunks = append(o.pages.chunks, whole.piece(from, len(whole.enc), count, o.object))
	b.buf, b.refs = b.buf[:o.start], b.refs[:o.refs]
	o.count = 0
}

// end closes the innermost open container. It is divided if it is large or has a divided element.
func (b *builder) end() {
	o := &b.open[len(b.open)-1]
	size := len(b.buf) - o.start
	if o.pages == nil && size <= maxFlat && len(b.refs) == o.refs {
		putHead(b.buf[o.start-headSize:], byte(tagArray+btoi(o.object)), size, o.count)
		b.open = b.open[:len(b.open)-1]
		return
	}
	if size > 0 {
		b.flush(o)
	}
	p := o.pages
	p.settle()
	b.buf = b.buf[:o.start-headSize]
	b.open = b.open[:len(b.open)-1]
	b.reference(p)
}

// reference appends a reference to a divided container.
func (b *builder) reference(p *pages) {
	from := 0
	if len(b.open) > 0 {
		from = b.open[len(b.open)-1].refs
	}
	b.buf = appendRef(b.buf, p.object, len(b.refs)-from)
	b.refs = append(b.refs, p)
}

func appendRef(dst []byte, object bool, i int) []byte {
	return binary.LittleEndian.AppendUint16(append(dst, byte(tagArrayRef+btoi(object))), uint16(i))
}

// value appends a value. A divided one must not be part of anything else.
func (b *builder) value(v Value) {
	switch v.form() {
	case formFlat:
		b.buf = append(b.buf, v.flat()...)
	case formPages:
		b.reference((*pages)(v.p))
	case formList:
		l := (*list)(v.p)
		b.begin(v.Kind() == Object)
		for i, element := range l.vals {
			b.element()
			if v.Kind() == Object {
				b.buf = appendName(b.buf, l.names[i])
			}
			b.value(element)
		}
		b.end()
	default:
		b.buf = appendScalar(b.buf, v)
	}
}

// chunk returns the result with memory of its own.
func (b *builder) chunk(count int) chunk {
	c := chunk{enc: append(make([]byte, 0, len(b.buf)), b.buf...), n: count}
	if len(b.refs) > 0 {
		c.refs = append([]*pages(nil), b.refs...)
	}
	return c
}
