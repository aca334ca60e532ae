package binary

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	le "encoding/binary"
)

// This file converts objects to and from readable text:
//
//	null true false 5 -1.5 text "text"   null, booleans, a long, a double, strings
//	int(5) short(5) byte(5) float(1.5)   numbers of other types
//	uuid(8-4-4-4-12) hex(09…)            a UUID, the bytes of any object
//
// Other types are only shown, not read: char("c"), date("…"), int[1, 2], list[…], {key: value}, Type{field: value}.

// maxText is the approximate limit of an object's text in bytes: fields may overlap, so a small object can have a
// long text.
const maxText = 1 << 20

// AppendText appends an object as readable text; a very long one ends with "…". types may be nil.
func AppendText(dst, object []byte, types Types) []byte {
	if s, ok := AsString(object); ok && plain(s) {
		return append(dst, s...)
	}
	w := textWriter{dst: dst, types: types, most: len(dst) + maxText}
	if n, err := Len(object); err != nil || n != len(object) {
		w.hex(object)
		return w.dst
	}
	w.object(object, 0)
	return w.dst
}

// plain reports whether a string needs no quotes, because it is read back as the same string.
func plain(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	object, err := ParseText([]byte(s))
	got, ok := AsString(object)
	return err == nil && ok && got == s
}

// textWriter appends objects to dst.
type textWriter struct {
	dst   []byte
	types Types
	most  int // the length of dst at which the text ends
}

func (w *textWriter) full() bool { return len(w.dst) >= w.most }

func (w *textWriter) add(s string) { w.dst = append(w.dst, s...) }

func (w *textWriter) hex(b []byte) {
	w.add("hex(")
	w.dst = hex.AppendEncode(w.dst, b)
	w.add(")")
}

func (w *textWriter) quote(s string) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) == nil { // always succeeds for a string
		w.dst = append(w.dst, bytes.TrimRight(b.Bytes(), "\n")...)
	}
}

// CodeNames are the names of types.
var CodeNames = map[Code]string{
	Byte: "byte", Short: "short", Int: "int", Float: "float", Char: "char", Bool: "bool", Long: "long", Double: "double",
	Date: "date", Timestamp: "timestamp", Time: "time", Decimal: "decimal", UUID: "uuid", String: "string",
	ByteArray: "byte[]", ShortArray: "short[]", IntArray: "int[]", LongArray: "long[]", FloatArray: "float[]",
	DoubleArray: "double[]", CharArray: "char[]", BoolArray: "bool[]", StringArray: "string[]", UUIDArray: "uuid[]",
	DateArray: "date[]", ObjectArray: "object[]", Collection: "list", Map: "map", Enum: "enum", EnumArray: "enum[]",
	DecimalArray: "decimal[]", TimestampArray: "timestamp[]", TimeArray: "time[]", BinaryEnum: "enum", Complex: "object",
}

// elementsOf are the types of the elements of arrays.
var elementsOf = map[Code]Code{
	ByteArray: Byte, ShortArray: Short, IntArray: Int, LongArray: Long, FloatArray: Float, DoubleArray: Double,
	CharArray: Char, BoolArray: Bool,
}

// object appends a well-formed object.
func (w *textWriter) object(b []byte, depth int) {
	if depth > maxDepth || w.full() {
		w.add("…")
		return
	}
	switch code := Code(b[0]); code {
	case Null:
		w.add("null")
	case Long, Bool, Double:
		w.scalar(code, b[1:])
	case Byte, Short, Int, Float, Char, Date, Timestamp, Time, UUID:
		w.add(CodeNames[code])
		w.add("(")
		w.scalar(code, b[1:])
		w.add(")")
	case String:
		w.quote(string(b[5:]))
	case ByteArray, ShortArray, IntArray, LongArray, FloatArray, DoubleArray, CharArray, BoolArray:
		element := elementsOf[code]
		w.add(CodeNames[element])
		w.add("[")
		size := sizes[code]
		for rest := b[5:]; len(rest) > 0 && !w.full(); rest = rest[size:] {
			w.comma(len(rest) < len(b)-5)
			w.scalar(element, rest[:size])
		}
		w.add("]")
	case StringArray, UUIDArray, DateArray, DecimalArray, TimestampArray, TimeArray:
		w.list("[", b[5:], "]", depth)
	case ObjectArray, EnumArray:
		w.list("[", b[9:], "]", depth)
	case Collection:
		w.list("list[", b[6:], "]", depth)
	case Map:
		w.pairs(b[6:], depth)
	case Wrapped:
		if inner, err := Unwrap(b); err == nil {
			w.object(inner, depth+1)
			return
		}
		w.hex(b)
	case Enum, BinaryEnum:
		w.enum(int32(le.LittleEndian.Uint32(b[1:])), int32(le.LittleEndian.Uint32(b[5:])))
	case Decimal:
		w.decimal(int32(le.LittleEndian.Uint32(b[1:])), b[9:])
	case Complex:
		w.complex(b, depth)
	default:
		w.hex(b)
	}
}

// scalar appends a value of one size without its type.
func (w *textWriter) scalar(code Code, b []byte) {
	switch code {
	case Byte:
		w.dst = strconv.AppendInt(w.dst, int64(int8(b[0])), 10)
	case Short:
		w.dst = strconv.AppendInt(w.dst, int64(int16(le.LittleEndian.Uint16(b))), 10)
	case Int:
		w.dst = strconv.AppendInt(w.dst, int64(int32(le.LittleEndian.Uint32(b))), 10)
	case Long:
		w.dst = strconv.AppendInt(w.dst, int64(le.LittleEndian.Uint64(b)), 10)
	case Float:
		w.float(float64(math.Float32frombits(le.LittleEndian.Uint32(b))), 32)
	case Double:
		w.float(math.Float64frombits(le.LittleEndian.Uint64(b)), 64)
	case Bool:
		w.dst = strconv.AppendBool(w.dst, b[0] != 0)
	case Char:
		w.quote(string(utf16.Decode([]uint16{le.LittleEndian.Uint16(b)})))
	case UUID:
		// Two longs: the more significant one first.
		var u [16]byte
		le.BigEndian.PutUint64(u[:], le.LittleEndian.Uint64(b))
		le.BigEndian.PutUint64(u[8:], le.LittleEndian.Uint64(b[8:]))
		w.dst = fmt.Appendf(w.dst, "%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	case Date:
		w.time(int64(le.LittleEndian.Uint64(b)), 0, "2006-01-02T15:04:05.000Z")
	case Timestamp:
		w.time(int64(le.LittleEndian.Uint64(b)), int32(le.LittleEndian.Uint32(b[8:])), "2006-01-02T15:04:05.000000000Z")
	case Time:
		w.time(int64(le.LittleEndian.Uint64(b)), 0, "15:04:05.000")
	}
}

// time appends a time in ms since 1970, with the nanoseconds within the millisecond.
func (w *textWriter) time(ms int64, nanos int32, layout string) {
	const most = 1 << 53 // years beyond have too many digits
	if ms < -most || ms > most {
		w.dst = strconv.AppendInt(w.dst, ms, 10)
		return
	}
	w.quote(time.UnixMilli(ms).Add(time.Duration(nanos)).UTC().Format(layout))
}

// float appends a number with a point or an exponent, or a word such as NaN.
func (w *textWriter) float(f float64, bits int) {
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	if strings.ContainsAny(text, "IN") && bits == 64 {
		text = "double(" + text + ")"
	}
	w.add(text)
}

func (w *textWriter) comma(needed bool) {
	if needed {
		w.add(", ")
	}
}

// list appends consecutive objects.
func (w *textWriter) list(open string, b []byte, end string, depth int) {
	w.add(open)
	for first := true; len(b) > 0 && !w.full(); first = false {
		w.comma(!first)
		b = w.next(b, depth)
	}
	w.add(end)
}

// next appends the first object and returns the rest.
func (w *textWriter) next(b []byte, depth int) (rest []byte) {
	object, rest, err := Next(b)
	if err != nil {
		w.add("…")
		return nil
	}
	w.object(object, depth+1)
	return rest
}

func (w *textWriter) pairs(b []byte, depth int) {
	w.add("{")
	for first := true; len(b) > 0 && !w.full(); first = false {
		w.comma(!first)
		b = w.next(b, depth)
		w.add(": ")
		if len(b) > 0 {
			b = w.next(b, depth)
		}
	}
	w.add("}")
}

// named returns a registered type, or nil.
func (w *textWriter) named(id int32) *Type {
	if w.types == nil {
		return nil
	}
	return w.types(id)
}

// typeName appends the name of a type, or its id if t is nil.
func (w *textWriter) typeName(t *Type, id int32) {
	if t != nil && t.Name != "" {
		w.add(t.Name)
		return
	}
	w.add("type#")
	w.dst = strconv.AppendInt(w.dst, int64(id), 10)
}

func (w *textWriter) enum(id, ordinal int32) {
	t := w.named(id)
	w.typeName(t, id)
	w.add("(")
	defer w.add(")")
	if t != nil {
		for _, v := range t.Values {
			if v.Ordinal == ordinal {
				w.add(v.Name)
				return
			}
		}
	}
	w.dst = strconv.AppendInt(w.dst, int64(ordinal), 10)
}

// decimal appends the number magnitude / 10^scale; magnitude is a big-endian integer.
func (w *textWriter) decimal(scale int32, magnitude []byte) {
	const most = 1 << 12 // more digits are not readable
	w.add("decimal(")
	defer w.add(")")
	if len(magnitude) > most/4 || scale > most || scale < -most {
		w.dst = hex.AppendEncode(w.dst, magnitude)
		w.add("e")
		w.dst = strconv.AppendInt(w.dst, -int64(scale), 10)
		return
	}
	b := bytes.Clone(magnitude)
	negative := len(b) > 0 && b[0]&0x80 != 0
	if negative {
		b[0] &= 0x7f
	}
	digits := new(big.Int).SetBytes(b).String()
	if negative {
		w.add("-")
	}
	if scale <= 0 {
		w.add(digits)
		w.add(strings.Repeat("0", int(-scale)))
		return
	}
	if n := int(scale) + 1 - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	at := len(digits) - int(scale)
	w.add(digits[:at] + "." + digits[at:])
}

func (w *textWriter) complex(b []byte, depth int) {
	o, err := ParseObject(b)
	if err != nil {
		w.hex(b)
		return
	}
	t := w.named(o.TypeID)
	var fields map[int32]string
	if t != nil {
		fields = t.Names()
	}
	schemas := Schemas(func(int32, int32) []int32 { return nil })
	if w.types != nil {
		schemas = w.types.Schemas()
	}
	w.typeName(t, o.TypeID)
	w.add("{")
	first := true
	err = o.Fields(schemas, func(f Field) bool {
		w.comma(!first)
		first = false
		if name := fields[f.ID]; name != "" {
			w.add(name)
		} else {
			w.add("#")
			w.dst = strconv.AppendInt(w.dst, int64(f.ID), 10)
		}
		w.add(": ")
		w.object(f.Value, depth+1)
		return !w.full()
	})
	if err != nil {
		w.comma(!first)
		w.hex(b)
	}
	w.add("}")
}

// ErrText says that a text is no object.
var ErrText = errors.New("not a value")

// ParseText reads an object from readable text.
func ParseText(text []byte) (object []byte, err error) {
	s := string(text)
	switch s {
	case "null":
		return AppendNull(nil), nil
	case "true", "false":
		return AppendBool(nil, s == "true"), nil
	}
	if s == "" {
		return AppendString(nil, s), nil
	}
	switch c := s[0]; {
	case c == '"':
		var text string
		if err := json.Unmarshal([]byte(s), &text); err != nil {
			return nil, ErrText
		}
		return AppendString(nil, text), nil
	case c == '-' && len(s) > 1 && s[1] >= '0' && s[1] <= '9', c >= '0' && c <= '9':
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return AppendLong(nil, n), nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && strings.ContainsAny(s, ".eE") && !strings.ContainsAny(s, "xX_") {
			return AppendDouble(nil, f), nil
		}
		return AppendString(nil, s), nil
	}
	if name, arg, ok := strings.Cut(s, "("); ok && strings.HasSuffix(arg, ")") {
		if parse := calls[name]; parse != nil {
			if object = parse(strings.TrimSuffix(arg, ")")); object == nil {
				return nil, ErrText
			}
			return object, nil
		}
	}
	return AppendString(nil, s), nil
}

// calls read the text between the brackets after a name; nil if it is invalid.
var calls map[string]func(arg string) []byte

func init() {
	calls = map[string]func(arg string) []byte{
		"byte":  func(arg string) []byte { return integer(Byte, arg) },
		"short": func(arg string) []byte { return integer(Short, arg) },
		"int":   func(arg string) []byte { return integer(Int, arg) },
		"long":  func(arg string) []byte { return integer(Long, arg) },
		"float": func(arg string) []byte {
			f, err := strconv.ParseFloat(arg, 32)
			if err != nil {
				return nil
			}
			return le.LittleEndian.AppendUint32([]byte{byte(Float)}, math.Float32bits(float32(f)))
		},
		"double": func(arg string) []byte {
			f, err := strconv.ParseFloat(arg, 64)
			if err != nil {
				return nil
			}
			return AppendDouble(nil, f)
		},
		"uuid": func(arg string) []byte {
			u, err := hex.DecodeString(strings.ReplaceAll(arg, "-", ""))
			if err != nil || len(u) != 16 {
				return nil
			}
			b := le.LittleEndian.AppendUint64([]byte{byte(UUID)}, le.BigEndian.Uint64(u))
			return le.LittleEndian.AppendUint64(b, le.BigEndian.Uint64(u[8:]))
		},
		"hex": func(arg string) []byte {
			b, err := hex.DecodeString(arg)
			if err != nil {
				return nil
			}
			if n, err := Len(b); err != nil || n != len(b) {
				return nil
			}
			if b, err = Unwrap(b); err != nil {
				return nil
			}
			return b
		},
	}
}

// integer encodes an integer; nil if it is invalid, or too large for its type.
func integer(code Code, arg string) []byte {
	size := sizes[code]
	n, err := strconv.ParseInt(arg, 10, 8*size)
	if err != nil {
		return nil
	}
	b := le.LittleEndian.AppendUint64([]byte{byte(code)}, uint64(n))
	return b[:1+size]
}
