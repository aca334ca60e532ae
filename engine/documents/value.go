// Package documents has JSON values and the documents that hold them.
//
// A small document is encoded in one piece of memory, see encode.go. A large container is divided into pages, which are
// found by index or, in an object, by name. Pages are the unit of storage of a large document, and of rewriting after a
// change: see stored.go. Encoded data is immutable: a change makes a new copy of one page.
package documents

import (
	"math"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine/listpack"
)

// MaxDepth is how deep arrays and objects may be nested.
const MaxDepth = 127

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of values. An Integer fits int64 or uint64; all other numbers are Numbers.
const (
	Null Kind = iota
	Boolean
	Integer
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"null", "boolean", "integer", "number", "string", "array", "object"}

// String returns the name as in replies of JSON.TYPE.
func (k Kind) String() string { return kindNames[k] }

// Value is a JSON value; the zero value is null. A container of a divided document changes with the document; all other
// values are immutable.
type Value struct {
	p unsafe.Pointer // a number's type, or data described by the form; nil for null, false and true
	n uint64         // the tag, if p is nil; a number; or the form and a string's length
}

// numberTypes has the targets of p that say that n is a number: an integer, or the bits of a float64.
var numberTypes [6]uint64

var (
	isInt      = unsafe.Pointer(&numberTypes[0])
	isUint     = unsafe.Pointer(&numberTypes[1])
	isDouble   = unsafe.Pointer(&numberTypes[2])
	isFloat32  = unsafe.Pointer(&numberTypes[3])
	isFloat16  = unsafe.Pointer(&numberTypes[4])
	isBFloat16 = unsafe.Pointer(&numberTypes[5])
)

// The form of the data at p, in the highest byte of n.
const (
	formShift         = 56
	formMask   uint64 = 0x7f << formShift
	formString uint64 = 1 << formShift    // its bytes
	formFlat   uint64 = 2 << formShift    // an encoded container
	formPages  uint64 = 3 << formShift    // a *pages
	formList   uint64 = 4 << formShift    // a *list
	formObject uint64 = 0x80 << formShift // combined with one of the last three
)

// list is an array or object that is not encoded and not part of a document.
type list struct {
	vals  []Value
	names []string
}

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// Bool returns true or false.
func Bool(b bool) Value { return Value{n: uint64(tagFalse + btoi(b))} }

// Int returns an integer.
func Int(i int64) Value { return Value{isInt, uint64(i)} }

// Uint returns an integer.
func Uint(u uint64) Value {
	if u <= math.MaxInt64 {
		return Int(int64(u))
	}
	return Value{isUint, u}
}

// Double returns a Number, even if f has an integer's value. f must be finite.
func Double(f float64) Value { return Value{isDouble, math.Float64bits(f)} }

// Text returns a string that shares the bytes of s.
func Text(s string) Value {
	p := unsafe.StringData(s)
	if p == nil {
		p = &noBytes
	}
	return Value{unsafe.Pointer(p), uint64(len(s)) | formString}
}

var noBytes byte // of the empty string

// NewArray returns an array with the given elements, which it keeps.
func NewArray(elements ...Value) Value { return Value{ptr(&list{vals: elements}), formList} }

// NewObject returns an object with the given members, which it keeps. Names must be distinct.
func NewObject(names []string, values []Value) Value {
	return Value{ptr(&list{vals: values, names: names}), formList | formObject}
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind {
	switch v.p {
	case nil:
		if v.n == tagNull {
			return Null
		}
		return Boolean
	case isInt, isUint:
		return Integer
	case isDouble, isFloat32, isFloat16, isBFloat16:
		return Number
	}
	switch {
	case v.n&formMask == formString:
		return String
	case v.n&formObject != 0:
		return Object
	}
	return Array
}

// IsNumber reports whether the value is an Integer or a Number.
func (v Value) IsNumber() bool { return v.p != nil && v.isFixed() }

// isFixed reports whether p points to no data of the value.
func (v Value) isFixed() bool {
	switch v.p {
	case nil, isInt, isUint, isDouble, isFloat32, isFloat16, isBFloat16:
		return true
	}
	return false
}

// form returns the form of the value, 0 if p points to no data.
func (v Value) form() uint64 {
	if v.isFixed() {
		return 0
	}
	return v.n & formMask
}

// flat returns the encoding of a formFlat value.
func (v Value) flat() []byte {
	size, _ := head(unsafe.Slice((*byte)(v.p), headSize))
	return unsafe.Slice((*byte)(v.p), headSize+size)
}

// text returns the bytes of a formString value.
func (v Value) text() string { return unsafe.String((*byte)(v.p), v.n&^formMask) }

// Bool reports whether the value is true.
func (v Value) Bool() bool { return v.p == nil && v.n == tagTrue }

// Int returns the value of an Integer; ok is false for other kinds and beyond int64.
func (v Value) Int() (i int64, ok bool) { return int64(v.n), v.p == isInt }

// Uint returns the value of an Integer beyond int64; ok is false for all other values.
func (v Value) Uint() (u uint64, ok bool) { return v.n, v.p == isUint }

// Float returns the value of a Number, that of an Integer rounded, and 0 for other kinds.
func (v Value) Float() float64 {
	switch v.p {
	case isInt:
		return float64(int64(v.n))
	case isUint:
		return float64(v.n)
	case isDouble, isFloat32, isFloat16, isBFloat16:
		return math.Float64frombits(v.n)
	}
	return 0
}

// Text returns the value of a String, and the empty string for other kinds.
func (v Value) Text() string {
	if v.form() != formString {
		return ""
	}
	return v.text()
}

// Len returns the number of elements or members, 0 for other kinds.
func (v Value) Len() int {
	switch v.form() {
	case formFlat:
		_, n := head(unsafe.Slice((*byte)(v.p), headSize))
		return n
	case formPages:
		return (*pages)(v.p).count
	case formList:
		return len((*list)(v.p).vals)
	}
	return 0
}

// At returns an element of an array, or the value of a member in the order of members. i must be less than Len.
func (v Value) At(i int) Value {
	it := v.iterate(i)
	_, element, _ := it.next()
	return element
}

// Get returns the value of an object's member by name.
func (v Value) Get(name string) (Value, bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	switch v.form() {
	case formFlat:
		b := v.flat()
		it, _, ok := member(b, headSize, len(b), name)
		if !ok {
			return Value{}, false
		}
		return decode(b[it.value:], nil), true
	case formPages:
		b := (*pages)(v.p)
		k, it, ok := b.search(name)
		if !ok {
			return Value{}, false
		}
		return decode(b.chunks[k].enc[it.value:], b.chunks[k].refs), true
	}
	l := (*list)(v.p)
	if i := indexOf(l.names, name); i >= 0 {
		return l.vals[i], true
	}
	return Value{}, false
}

// iterator goes over the elements of a container.
type iterator struct {
	b      []byte // the rest of the page
	refs   []*pages
	object bool
	pages  []*chunk // pages that follow
	list   list     // the rest of a list
}

// iterate returns an iterator that starts at element i.
func (v Value) iterate(i int) (it iterator) {
	if i >= v.Len() {
		return it
	}
	it.object = v.Kind() == Object
	switch v.form() {
	case formFlat:
		it.b = v.flat()[headSize:]
	case formPages:
		b, k := (*pages)(v.p), 0
		if i > 0 {
			k, i = b.locate(i)
		}
		it.b, it.refs, it.pages = b.chunks[k].enc, b.chunks[k].refs, b.chunks[k+1:]
	case formList:
		l := (*list)(v.p)
		it.list.vals = l.vals[i:]
		if it.object {
			it.list.names = l.names[i:]
		}
		return it
	}
	for range i {
		it.b = it.b[itemAt(it.b, 0, it.object).end:]
	}
	return it
}

// next returns the next element; ok is false if there is none.
func (it *iterator) next() (name string, v Value, ok bool) {
	for len(it.b) == 0 {
		if len(it.pages) > 0 {
			it.b, it.refs, it.pages = it.pages[0].enc, it.pages[0].refs, it.pages[1:]
			continue
		}
		if len(it.list.vals) == 0 {
			return "", Value{}, false
		}
		v, it.list.vals = it.list.vals[0], it.list.vals[1:]
		if it.object {
			name, it.list.names = it.list.names[0], it.list.names[1:]
		}
		return name, v, true
	}
	n := 0
	if it.object {
		name, n = nameAt(it.b)
		it.b = it.b[n:]
	}
	v, n = decode(it.b, it.refs), sizeAt(it.b)
	it.b = it.b[n:]
	return name, v, true
}

// Elements calls fn with the elements of an array and their indexes, or with the members of an object in their order,
// until it returns false. Neither may change meanwhile.
func (v Value) Elements(fn func(i int, name string, element Value) bool) { v.ElementsFrom(0, fn) }

// ElementsFrom is Elements starting at an index.
func (v Value) ElementsFrom(i int, fn func(i int, name string, element Value) bool) {
	for it := v.iterate(i); ; i++ {
		name, element, ok := it.next()
		if !ok || !fn(i, name, element) {
			return
		}
	}
}

// Backward calls fn with the elements of an array from an index down, until it returns false.
func (v Value) Backward(i int, fn func(i int, element Value) bool) {
	var vals []Value
	for i >= 0 {
		from := max(i-maxChunk/refSize, 0)
		if v.form() == formPages {
			_, j := (*pages)(v.p).locate(i)
			from = i - j
		}
		vals = vals[:0]
		for it := v.iterate(from); len(vals) <= i-from; {
			_, element, _ := it.next()
			vals = append(vals, element)
		}
		for ; i >= from; i-- {
			if !fn(i, vals[i-from]) {
				return
			}
		}
	}
}

// Clone returns a copy of the value that belongs to no document.
func (v Value) Clone() Value {
	switch v.form() {
	case formString:
		return Text(strings.Clone(v.text()))
	case formFlat:
		return Value{ptr(unsafe.SliceData(append([]byte(nil), v.flat()...))), v.n}
	case formPages:
		return (*pages)(v.p).clone().value()
	case formList:
		var b builder
		b.value(v)
		c := b.chunk(1)
		return decode(c.enc, c.refs).Clone()
	}
	return v
}

// clone returns a copy that belongs to no document. Encoded data is immutable and therefore shared.
func (b *pages) clone() *pages {
	c := &pages{object: b.object, mixed: b.mixed}
	for _, ch := range b.chunks {
		copied := *ch
		copied.refs = nil
		for _, ref := range ch.refs {
			if ref != nil {
				ref = ref.clone()
			}
			copied.refs = append(copied.refs, ref)
		}
		c.chunks = append(c.chunks, &copied)
	}
	c.settle()
	return c
}

// Depth returns how deep arrays and objects are nested in the value: 0 for other kinds, 1 for an empty container. Large
// values cache it until they change.
func (v Value) Depth() int {
	if kind := v.Kind(); kind != Array && kind != Object {
		return 0
	}
	var b *pages
	if v.form() == formPages {
		if b = (*pages)(v.p); b.depth > 0 {
			return b.depth
		}
	}
	deepest := 0
	for it := v.iterate(0); ; {
		_, element, ok := it.next()
		if !ok {
			break
		}
		deepest = max(deepest, element.Depth())
	}
	if b != nil {
		b.depth = deepest + 1
	}
	return deepest + 1
}

// Memory returns about how many bytes of memory the value takes, in constant time for parts of a document.
func (v Value) Memory() int {
	switch v.form() {
	case formString:
		return textSize + len(v.text())
	case formFlat:
		return len(v.flat())
	case formPages:
		return (*pages)(v.p).mem
	case formList:
		n := headSize
		for _, element := range (*list)(v.p).vals {
			n += element.Memory()
		}
		return n
	}
	if v.p == nil {
		return 1
	}
	var b [16]byte
	return len(appendScalar(b[:0], v))
}

const (
	wordSize  = int(unsafe.Sizeof(uintptr(0)))
	textSize  = 2 // about a string's overhead beside its bytes
	pagesSize = int(unsafe.Sizeof(pages{}))
	chunkSize = int(unsafe.Sizeof(chunk{})) + wordSize
	// indexedSize is about the size of a name in an object's index.
	indexedSize = 24
)

// allocated returns the bytes that the allocator uses for n.
func allocated(n int) int {
	if n == 0 {
		return 0
	}
	return listpack.Allocated(n)
}

// Equal reports whether two values are the same JSON: numbers compare by value, objects regardless of the order of
// members.
func Equal(a, b Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return CompareNumbers(a, b) == 0
	}
	return alike(a, b, Equal)
}

// Same is Equal, but an integer never equals a double. Integers beyond int64 count as doubles.
func Same(a, b Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return (a.p == isInt) == (b.p == isInt) && CompareNumbers(a, b) == 0
	}
	return alike(a, b, Same)
}

// alike reports whether two values that are not both numbers are equal; equal compares what they contain.
func alike(a, b Value, equal func(a, b Value) bool) bool {
	kind := a.Kind()
	if kind != b.Kind() {
		return false
	}
	switch kind {
	case Null, Boolean:
		return a.n == b.n
	case String:
		return a.text() == b.text()
	}
	if a.Len() != b.Len() {
		return false
	}
	other := b.iterate(0)
	for it := a.iterate(0); ; {
		name, element, ok := it.next()
		if !ok {
			return true
		}
		beside, v, _ := other.next()
		if name != beside {
			if v, ok = b.Get(name); !ok {
				return false
			}
		}
		if !equal(element, v) {
			return false
		}
	}
}

// CompareNumbers returns -1, 0 or 1 as the first number is less than, equal to or greater than the second one.
// Integers are compared exactly.
func CompareNumbers(a, b Value) int {
	aInt, bInt := a.Kind() == Integer, b.Kind() == Integer
	switch {
	case !aInt || !bInt:
		return compareFloats(a.Float(), b.Float())
	case a.p != b.p && a.p == isInt:
		return -1 // b is above all int64
	case a.p != b.p:
		return 1
	case a.p == isInt && int64(a.n) < int64(b.n), a.p == isUint && a.n < b.n:
		return -1
	case a.n == b.n:
		return 0
	}
	return 1
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// CompareText orders two Strings as bytes.
func CompareText(a, b Value) int { return strings.Compare(a.Text(), b.Text()) }

// AddInts returns the sum; ok is false on overflow of int64.
func AddInts(x, y int64) (sum int64, ok bool) {
	sum = x + y
	return sum, (sum > x) == (y > 0)
}

// MultiplyInts returns the product; ok is false on overflow of int64.
func MultiplyInts(x, y int64) (product int64, ok bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	product = x * y
	return product, product/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
}
