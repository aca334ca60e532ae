// Package binary reads and writes the data objects of the Ignite thin client protocol: a byte for the type, and then
// its content, with little-endian numbers. It knows objects and types, and leaves their meaning to its users.
package binary

import (
	le "encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Code is the type of an object, its first byte.
type Code byte

// The types of objects.
const (
	Byte           Code = 1
	Short          Code = 2
	Int            Code = 3
	Long           Code = 4
	Float          Code = 5
	Double         Code = 6
	Char           Code = 7
	Bool           Code = 8
	String         Code = 9
	UUID           Code = 10
	Date           Code = 11
	ByteArray      Code = 12
	ShortArray     Code = 13
	IntArray       Code = 14
	LongArray      Code = 15
	FloatArray     Code = 16
	DoubleArray    Code = 17
	CharArray      Code = 18
	BoolArray      Code = 19
	StringArray    Code = 20
	UUIDArray      Code = 21
	DateArray      Code = 22
	ObjectArray    Code = 23
	Collection     Code = 24
	Map            Code = 25
	Wrapped        Code = 27
	Enum           Code = 28
	EnumArray      Code = 29
	Decimal        Code = 30
	DecimalArray   Code = 31
	Timestamp      Code = 33
	TimestampArray Code = 34
	Time           Code = 36
	TimeArray      Code = 37
	BinaryEnum     Code = 38
	Null           Code = 101
	Handle         Code = 102 // a reference to an earlier object, by its distance
	Complex        Code = 103
)

// Errors of objects.
var (
	// ErrMalformed says that bytes are no object, or end too early.
	ErrMalformed = errors.New("malformed object")
	// ErrTooDeep says that objects are nested more than 64 deep.
	ErrTooDeep = errors.New("objects are nested too deep")
)

// maxDepth is the largest depth of nested objects.
const maxDepth = 64

// sizes are the lengths of fixed-size objects, or of the elements of arrays, without the type.
var sizes = [256]int{
	Byte: 1, Short: 2, Int: 4, Long: 8, Float: 4, Double: 8, Char: 2, Bool: 1, UUID: 16, Date: 8, Timestamp: 12, Time: 8,
	Enum: 8, BinaryEnum: 8, Handle: 4,
	ByteArray: 1, ShortArray: 2, IntArray: 4, LongArray: 8, FloatArray: 4, DoubleArray: 8, CharArray: 2, BoolArray: 1,
}

// Len returns the length of the first object in b, with its type. Of a complex object it reads only the header.
func Len(b []byte) (int, error) { return length(b, 0) }

func length(b []byte, depth int) (int, error) {
	if len(b) == 0 {
		return 0, ErrMalformed
	}
	if depth > maxDepth {
		return 0, ErrTooDeep
	}
	n := 0
	switch code := Code(b[0]); code {
	case Null:
		return 1, nil
	case Byte, Short, Int, Long, Float, Double, Char, Bool, UUID, Date, Timestamp, Time, Enum, BinaryEnum, Handle:
		n = 1 + sizes[code]
	case String:
		return counted(b, 1, 1)
	case ByteArray, ShortArray, IntArray, LongArray, FloatArray, DoubleArray, CharArray, BoolArray:
		return counted(b, 1, sizes[code])
	case StringArray, UUIDArray, DateArray, DecimalArray, TimestampArray, TimeArray:
		return elements(b, 1, 0, 1, depth)
	case ObjectArray, EnumArray:
		return elements(b, 5, 0, 1, depth)
	case Collection:
		return elements(b, 1, 1, 1, depth)
	case Map:
		return elements(b, 1, 1, 2, depth)
	case Decimal:
		return counted(b, 5, 1)
	case Wrapped:
		inner, err := counted(b, 1, 1)
		if err != nil {
			return 0, err
		}
		n = inner + 4
	case Complex:
		if len(b) < headerLen {
			return 0, ErrMalformed
		}
		if n = int(int32(le.LittleEndian.Uint32(b[12:]))); n < headerLen {
			return 0, ErrMalformed
		}
	default:
		return 0, fmt.Errorf("%w: unknown type %d", ErrMalformed, b[0])
	}
	if n > len(b) {
		return 0, ErrMalformed
	}
	return n, nil
}

// counted returns the length of an object with fixed-size elements, whose number is at an offset.
func counted(b []byte, at, size int) (int, error) {
	n, ok := count(b, at)
	if !ok || n > (len(b)-at-4)/size {
		return 0, ErrMalformed
	}
	return at + 4 + n*size, nil
}

// count returns the number of elements at an offset.
func count(b []byte, at int) (n int, ok bool) {
	if len(b) < at+4 {
		return 0, false
	}
	n = int(int32(le.LittleEndian.Uint32(b[at:])))
	return n, n >= 0
}

// elements returns the length of an object that contains others. Their number is at an offset, which more further
// bytes follow. each is the number of objects of an element.
func elements(b []byte, at, more, each, depth int) (int, error) {
	n, ok := count(b, at)
	at += 4 + more
	if !ok || at > len(b) || n > (len(b)-at)/each {
		return 0, ErrMalformed
	}
	for range n * each {
		l, err := length(b[at:], depth+1)
		if err != nil {
			return 0, err
		}
		at += l
	}
	return at, nil
}

// Next splits the first object off.
func Next(b []byte) (object, rest []byte, err error) {
	n, err := Len(b)
	if err != nil {
		return nil, nil, err
	}
	return b[:n:n], b[n:], nil
}

// Unwrap returns the object inside a well-formed wrapped object, and any other object unchanged. In arrays,
// collections and maps it unwraps each element.
func Unwrap(object []byte) ([]byte, error) {
	for range maxDepth {
		if len(object) == 0 {
			return object, nil
		}
		switch code := Code(object[0]); {
		case contains(code) && hasWrapped(object):
			return appendElements(nil, object, appendUnwrapped)
		case code != Wrapped:
			return object, nil
		}
		n, _ := count(object, 1)
		at := int(int32(le.LittleEndian.Uint32(object[5+n:])))
		if at < 0 || at >= n {
			return nil, ErrMalformed
		}
		inner, _, err := Next(object[5+at : 5+n])
		if err != nil {
			return nil, err
		}
		object = inner
	}
	return nil, ErrTooDeep
}

// appendUnwrapped appends an element as Unwrap returns it.
func appendUnwrapped(dst, element []byte) ([]byte, error) {
	if contains(Code(element[0])) {
		return appendElements(dst, element, appendUnwrapped)
	}
	element, err := Unwrap(element)
	return append(dst, element...), err
}

// AppendWrapped appends an object in the form for replies. Complex objects are wrapped, also in arrays, collections
// and maps, because a client reads them before it knows their types. Objects in the fields of a complex one are not
// wrapped.
func AppendWrapped(dst, object []byte) []byte {
	if len(object) > 0 && contains(Code(object[0])) {
		each := func(dst, element []byte) ([]byte, error) { return AppendWrapped(dst, element), nil }
		if out, err := appendElements(dst, object, each); err == nil {
			return out
		}
	}
	if len(object) == 0 || Code(object[0]) != Complex {
		return append(dst, object...)
	}
	dst = le.LittleEndian.AppendUint32(append(dst, byte(Wrapped)), uint32(len(object)))
	return append(append(dst, object...), 0, 0, 0, 0)
}

// contains reports whether objects of a type contain objects of any type.
func contains(code Code) bool { return code == ObjectArray || code == Collection || code == Map }

// elementsAt returns the offset of the first element of an array, a collection or a map.
func elementsAt(code Code) int {
	if code == ObjectArray {
		return 1 + 4 + 4 // code, type, number
	}
	return 1 + 4 + 1 // code, number, kind
}

// hasWrapped reports whether an array, a collection or a map contains a wrapped object, at any depth of such
// containers.
func hasWrapped(container []byte) bool {
	for rest := container[elementsAt(Code(container[0])):]; len(rest) > 0; {
		element, more, err := Next(rest)
		if err != nil {
			return false
		}
		if code := Code(element[0]); code == Wrapped || contains(code) && hasWrapped(element) {
			return true
		}
		rest = more
	}
	return false
}

// appendElements appends a well-formed array, collection or map. The function each appends each of its elements.
func appendElements(dst, container []byte, each func(dst, element []byte) ([]byte, error)) ([]byte, error) {
	at := elementsAt(Code(container[0]))
	dst = append(dst, container[:at]...)
	for rest := container[at:]; len(rest) > 0; {
		element, more, err := Next(rest)
		if err != nil {
			return dst, err
		}
		if dst, err = each(dst, element); err != nil {
			return dst, err
		}
		rest = more
	}
	return dst, nil
}

// AppendNull appends null.
func AppendNull(dst []byte) []byte { return append(dst, byte(Null)) }

// AppendBool appends a boolean.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, byte(Bool), 1)
	}
	return append(dst, byte(Bool), 0)
}

// AppendInt appends an int.
func AppendInt(dst []byte, n int32) []byte {
	return le.LittleEndian.AppendUint32(append(dst, byte(Int)), uint32(n))
}

// AppendLong appends a long.
func AppendLong(dst []byte, n int64) []byte {
	return le.LittleEndian.AppendUint64(append(dst, byte(Long)), uint64(n))
}

// AppendDouble appends a double.
func AppendDouble(dst []byte, f float64) []byte {
	return le.LittleEndian.AppendUint64(append(dst, byte(Double)), math.Float64bits(f))
}

// AppendString appends a string.
func AppendString(dst []byte, s string) []byte {
	return append(le.LittleEndian.AppendUint32(append(dst, byte(String)), uint32(len(s))), s...)
}

// AppendArray appends the head of an array of n objects of a type; the objects must follow. The type -1 is any type.
func AppendArray(dst []byte, typeID int32, n int) []byte {
	dst = le.LittleEndian.AppendUint32(append(dst, byte(ObjectArray)), uint32(typeID))
	return le.LittleEndian.AppendUint32(dst, uint32(n))
}

// AsString returns the text of an object that is a string.
func AsString(object []byte) (s string, ok bool) {
	if len(object) < 5 || Code(object[0]) != String {
		return "", false
	}
	return string(object[5:]), true
}

// AsBool returns the value of an object that is a boolean.
func AsBool(object []byte) (v, ok bool) {
	if len(object) != 2 || Code(object[0]) != Bool {
		return false, false
	}
	return object[1] != 0, true
}

// AsLong returns the value of an object that is a long.
func AsLong(object []byte) (n int64, ok bool) {
	if len(object) != 9 || Code(object[0]) != Long {
		return 0, false
	}
	return int64(le.LittleEndian.Uint64(object[1:])), true
}

// maxDecimal limits decimals that are numbers here: the bytes of the magnitude, and the scale in either direction.
const maxDecimal = 1 << 10

// AsDecimal returns an object that is a decimal as a number with an exponent, such as -24e-1. Decimals with thousands of
// digits are not ok.
func AsDecimal(object []byte) (s string, ok bool) {
	if len(object) < 9 || Code(object[0]) != Decimal || len(object) > 9+maxDecimal {
		return "", false
	}
	scale := int32(le.LittleEndian.Uint32(object[1:]))
	if scale > maxDecimal || scale < -maxDecimal {
		return "", false
	}
	b, sign := slices.Clone(object[9:]), ""
	if len(b) > 0 && b[0]&0x80 != 0 {
		b[0], sign = b[0]&0x7f, "-"
	}
	return sign + new(big.Int).SetBytes(b).String() + "e" + strconv.Itoa(int(-scale)), true
}

// AppendDecimal appends the decimal unscaled / 10^scale.
func AppendDecimal(dst []byte, unscaled *big.Int, scale int32) []byte {
	b := unscaled.Bytes()
	if len(b) == 0 || b[0]&0x80 != 0 {
		b = append([]byte{0}, b...)
	}
	if unscaled.Sign() < 0 {
		b[0] |= 0x80
	}
	dst = le.LittleEndian.AppendUint32(append(dst, byte(Decimal)), uint32(scale))
	return append(le.LittleEndian.AppendUint32(dst, uint32(len(b))), b...)
}

// Hash returns Java's hash of a string, which is the id of a cache of that name.
func Hash(s string) int32 {
	h := int32(0)
	for _, r := range s {
		if r >= 0x10000 {
			high, low := utf16.EncodeRune(r)
			h = 31*(31*h+int32(high)) + int32(low)
			continue
		}
		h = 31*h + int32(r)
	}
	return h
}

// ID returns the id of a type or a field of that name, which must have no package.
func ID(name string) int32 { return Hash(lower(name)) }

// lower is Java's lower case, of each letter by itself.
func lower(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			r |= 0x20
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// SchemaID returns the id of the schema of objects with these fields, in order.
func SchemaID(fields []int32) int32 {
	if len(fields) == 0 {
		return 0
	}
	h := uint32(0x811C9DC5)
	for _, id := range fields {
		for shift := 0; shift < 32; shift += 8 {
			h = (h ^ uint32(id)>>shift&0xff) * 0x01000193
		}
	}
	return int32(h)
}
