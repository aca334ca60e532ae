// Package documents has JSON values and the documents that hold them.
//
// A value takes two words: numbers, literals and strings of up to seven bytes need no more, other strings point to
// their bytes, arrays and objects to what they contain. A container that has become large is divided into pages, which
// are found by index or, in an object, by name. Pages are what is stored of a large document, and what is written again
// after a change: see stored.go.
package documents

import (
	"encoding/binary"
	"math"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine/listpack"
)

// MaxDepth is how deep arrays and objects may be nested.
const MaxDepth = 127

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of values. An Integer fits an int64 or a uint64; all other numbers are Numbers.
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

// String returns the name that JSON.TYPE answers.
func (k Kind) String() string { return kindNames[k] }

// Value is a JSON value; the zero value is null. A value that is part of a document changes with it.
type Value struct {
	p unsafe.Pointer // one of tags, the bytes of a string, or a *container; nil for null, false and true
	n uint64         // what a tag says; else the form, and the length of a string
}

// tags are pointers that say what n is: numbers, or a short string with its length in the first byte.
var tags [4]uint64

var (
	tagInt    = unsafe.Pointer(&tags[0])
	tagUint   = unsafe.Pointer(&tags[1])
	tagDouble = unsafe.Pointer(&tags[2])
	tagShort  = unsafe.Pointer(&tags[3])
)

// What n is without a pointer.
const (
	isNull = iota
	isFalse
	isTrue
)

// The form of what p points to, in the highest byte of n.
const (
	formShift         = 56
	formString uint64 = 1 << formShift
	formArray  uint64 = 2 << formShift
	formObject uint64 = 3 << formShift
	formMask   uint64 = 0xff << formShift
)

// maxShort is the length in bytes of the longest string that a Value holds itself.
const maxShort = 7

// Bool returns true or false.
func Bool(b bool) Value {
	if b {
		return Value{n: isTrue}
	}
	return Value{n: isFalse}
}

// Int returns an integer.
func Int(i int64) Value { return Value{tagInt, uint64(i)} }

// Uint returns an integer.
func Uint(u uint64) Value {
	if u <= math.MaxInt64 {
		return Int(int64(u))
	}
	return Value{tagUint, u}
}

// Double returns a number that is no integer, though its value may be one. f must be finite.
func Double(f float64) Value { return Value{tagDouble, math.Float64bits(f)} }

// Text returns a string, of which it keeps s.
func Text(s string) Value {
	if len(s) <= maxShort {
		var b [8]byte
		b[0] = byte(len(s))
		copy(b[1:], s)
		return Value{tagShort, binary.LittleEndian.Uint64(b[:])}
	}
	return Value{unsafe.Pointer(unsafe.StringData(s)), uint64(len(s)) | formString}
}

// NewArray returns an array with the given elements, which it keeps.
func NewArray(elements ...Value) Value {
	return wrap(&container{vals: elements}, false)
}

// NewObject returns an object with the given members, which it keeps. No name may be there twice.
func NewObject(names []string, values []Value) Value {
	return wrap(&container{vals: values, keys: names}, true)
}

// wrap returns the value that has a container.
func wrap(c *container, object bool) Value {
	if object {
		return Value{unsafe.Pointer(c), formObject}
	}
	return Value{unsafe.Pointer(c), formArray}
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind {
	switch v.p {
	case nil:
		if v.n == isNull {
			return Null
		}
		return Boolean
	case tagInt, tagUint:
		return Integer
	case tagDouble:
		return Number
	case tagShort:
		return String
	}
	switch v.n & formMask {
	case formString:
		return String
	case formArray:
		return Array
	}
	return Object
}

// IsNumber reports whether the value is an Integer or a Number.
func (v Value) IsNumber() bool { return v.p == tagInt || v.p == tagUint || v.p == tagDouble }

// Bool reports whether the value is true.
func (v Value) Bool() bool { return v.p == nil && v.n == isTrue }

// Int returns the value of an Integer; ok is false if it is no int64, or the value no Integer.
func (v Value) Int() (i int64, ok bool) { return int64(v.n), v.p == tagInt }

// Uint returns the value of an Integer beyond int64; ok is false if the value is anything else.
func (v Value) Uint() (u uint64, ok bool) { return v.n, v.p == tagUint }

// Float returns the value of an Integer, rounded, or of a Number, and 0 for everything else.
func (v Value) Float() float64 {
	switch v.p {
	case tagInt:
		return float64(int64(v.n))
	case tagUint:
		return float64(v.n)
	case tagDouble:
		return math.Float64frombits(v.n)
	}
	return 0
}

// Text returns a String, and the empty string for everything else.
func (v Value) Text() string {
	if v.p == tagShort {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v.n)
		return string(b[1 : 1+b[0]])
	}
	if v.isLong() {
		return v.long()
	}
	return ""
}

func (v Value) isLong() bool { return v.hasForm() && v.n&formMask == formString }

// hasForm reports whether n has a form.
func (v Value) hasForm() bool {
	return v.p != nil && v.p != tagInt && v.p != tagUint && v.p != tagDouble && v.p != tagShort
}

func (v Value) long() string { return unsafe.String((*byte)(v.p), v.n&^formMask) }

// container returns what an array or an object contains, nil for everything else.
func (v Value) container() *container {
	if !v.hasForm() || v.n&formMask == formString {
		return nil
	}
	return (*container)(v.p)
}

// Len returns how many elements or members the value has, 0 if it is neither an array nor an object.
func (v Value) Len() int {
	if c := v.container(); c != nil {
		return c.len()
	}
	return 0
}

// At returns an element of an array or the value of a member in the order of the members. i must be less than Len.
func (v Value) At(i int) Value {
	c := v.container()
	if c.big == nil {
		return c.vals[i]
	}
	k, j := c.big.locate(i)
	return c.big.chunks[k].vals[j]
}

// Get returns the value of the member of an object that has the given name.
func (v Value) Get(name string) (Value, bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	c := v.container()
	k, j := c.search(name)
	if j < 0 {
		return Value{}, false
	}
	vals, _ := c.page(k)
	return vals[j], true
}

// Elements calls fn with the elements of an array and their indexes, or with the members of an object in their order,
// until it returns false. Neither may change meanwhile.
func (v Value) Elements(fn func(i int, name string, element Value) bool) { v.ElementsFrom(0, fn) }

// ElementsFrom is Elements from an index on.
func (v Value) ElementsFrom(i int, fn func(i int, name string, element Value) bool) {
	if i >= v.Len() {
		return
	}
	c := v.container()
	first, from := 0, i
	if c.big != nil {
		first, from = c.big.locate(i)
	}
	for k := first; k < c.pages(); k++ {
		vals, keys := c.page(k)
		for j := from; j < len(vals); j++ {
			element, name := vals[j], ""
			if keys != nil {
				name = keys[j]
			}
			if !fn(i, name, element) {
				return
			}
			i++
		}
		from = 0
	}
}

// Clone returns a copy of the value that belongs to no document.
func (v Value) Clone() Value {
	c := v.container()
	if c == nil {
		return v
	}
	n := c.len()
	flat := &container{vals: make([]Value, 0, n)}
	if v.Kind() == Object {
		flat.keys = make([]string, 0, n)
	}
	for k := range c.pages() {
		vals, keys := c.page(k)
		for _, element := range vals {
			flat.vals = append(flat.vals, element.Clone())
		}
		flat.keys = append(flat.keys, keys...)
	}
	return wrap(flat, v.Kind() == Object)
}

// Depth returns how deep arrays and objects are nested in the value: 0 for everything else, 1 for an empty one.
func (v Value) Depth() int {
	if v.container() == nil {
		return 0
	}
	deepest := 0
	v.Elements(func(_ int, _ string, element Value) bool {
		deepest = max(deepest, element.Depth())
		return true
	})
	return deepest + 1
}

// Memory returns about how many bytes of memory the value takes, in constant time for what is part of a document.
func (v Value) Memory() int { return valueSize + v.extra() }

const (
	valueSize     = int(unsafe.Sizeof(Value{}))
	nameSize      = int(unsafe.Sizeof(""))
	containerSize = int(unsafe.Sizeof(container{}))
	pagesSize     = int(unsafe.Sizeof(pages{}))
	chunkSize     = int(unsafe.Sizeof(chunk{})) + int(unsafe.Sizeof((*chunk)(nil)))
	// indexedSize is about what a name takes in the index of an object.
	indexedSize = 40
)

// extra returns how many bytes the value takes beside its two words.
func (v Value) extra() int {
	if v.isLong() {
		return listpack.Allocated(len(v.long()))
	}
	c := v.container()
	switch {
	case c == nil:
		return 0
	case c.big != nil:
		return c.big.mem
	}
	return c.mem()
}

// Stored sizes. They need not be exact: they say when a container gets pages, and when pages are divided.
const (
	sizeLiteral   = 1
	sizeInt       = 4
	sizeNumber    = 9
	sizeText      = 2 // and its bytes
	sizeContainer = 3 // and what it contains
	sizeRef       = 8
)

// size returns about how many bytes the value takes where it is stored.
func (v Value) size() int {
	switch v.p {
	case nil:
		return sizeLiteral
	case tagInt, tagUint:
		return sizeInt
	case tagDouble:
		return sizeNumber
	case tagShort:
		return sizeText + int(v.n&0xff)
	}
	if v.n&formMask == formString {
		return sizeText + len(v.long())
	}
	if c := v.container(); c.big == nil {
		return c.size()
	}
	return sizeRef
}

// Equal reports whether two values are the same JSON: numbers by their value, objects whatever the order of their
// members.
func Equal(a, b Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return CompareNumbers(a, b) == 0
	}
	return alike(a, b, Equal)
}

// Same is Equal, but an integer and a double are never the same. Integers beyond int64 count as doubles.
func Same(a, b Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return (a.p == tagInt) == (b.p == tagInt) && CompareNumbers(a, b) == 0
	}
	return alike(a, b, Same)
}

// alike reports whether two values that are not both numbers are equal, what they contain by the function given.
func alike(a, b Value, equal func(a, b Value) bool) bool {
	kind := a.Kind()
	if kind != b.Kind() {
		return false
	}
	switch kind {
	case Null, Boolean:
		return a.n == b.n
	case String:
		if a.p == tagShort || b.p == tagShort {
			return a == b
		}
		return a.long() == b.long()
	}
	if a.Len() != b.Len() {
		return false
	}
	same := true
	a.Elements(func(i int, name string, element Value) bool {
		if kind == Array {
			same = equal(element, b.At(i))
		} else {
			other, ok := b.Get(name)
			same = ok && equal(element, other)
		}
		return same
	})
	return same
}

// CompareNumbers returns -1, 0 or 1 as the first number is less than, equal to or greater than the second one.
// Integers are compared exactly.
func CompareNumbers(a, b Value) int {
	if a.p == tagDouble || b.p == tagDouble {
		return compareFloats(a.Float(), b.Float())
	}
	switch {
	case a.p != b.p && a.p == tagInt:
		return -1 // b is beyond all int64
	case a.p != b.p:
		return 1
	case a.p == tagInt && int64(a.n) < int64(b.n), a.p == tagUint && a.n < b.n:
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

// MultiplyInts returns a product; ok is false if it is no int64.
func MultiplyInts(x, y int64) (product int64, ok bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	product = x * y
	return product, product/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
}
