package rdb

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/resp"
)

// arrayKind is the kind of arrays. An array is the number of its elements, a flag, if it is set the index that was
// inserted last, and for each element its index, the kind of its value, and the value: integers and floats in eight
// bytes, others as strings. Like Redis, the encoder writes a text as an integer or float if 62 bits can represent it
// exactly.
var arrayKind = kind{
	numbers:       []byte{typeArray},
	module:        "atomARRAY", // our own form, which older versions have written
	moduleVersion: 1,
	read: func(d *decoder, number byte, _ *Limits) (any, error) {
		if number == typeModule {
			return readParts[*arrays.Array](d, arrays.NewLoader())
		}
		return d.array()
	},
	form: func(*engine.Entry) form { return form{typeArray, VersionArrays} },
	write: func(e *Encoder, entry *engine.Entry) {
		a := entry.Array()
		e.length(uint64(a.Count()))
		if next := a.Next(); next > 0 {
			e.length(1)
			e.length(next - 1)
		} else {
			e.length(0)
		}
		a.Each(0, arrays.MaxIndex, func(index uint64, v []byte) bool {
			e.length(index)
			e.arrayValue(v)
			e.written()
			return true
		})
	},
}

// The kinds of values in arrays.
const (
	arrayString = iota
	arrayInt
	arrayFloat
	arrayShortString // of up to shortString bytes
)

const (
	shortString = 7
	maxArrayInt = 1<<61 - 1
)

// arrayValue writes a value with its kind.
func (e *Encoder) arrayValue(v []byte) {
	if n, ok := canonicalInt(v); ok && n >= -maxArrayInt-1 && n <= maxArrayInt {
		e.length(arrayInt)
		e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(n))
		return
	}
	if f, ok := arrayFloatOf(v); ok {
		e.length(arrayFloat)
		e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(f))
		return
	}
	if len(v) <= shortString {
		e.length(arrayShortString)
	} else {
		e.length(arrayString)
	}
	e.string(v)
}

// maxFloatText is the maximum length of a float's text.
const maxFloatText = 32

// arrayFloatOf returns the float with two zero bits at the end whose text is v, if there is one.
func arrayFloatOf(v []byte) (float64, bool) {
	if len(v) == 0 || len(v) > maxFloatText || !bytes.ContainsAny(v, ".e") {
		return 0, false
	}
	f, ok := resp.ParseFloat(v)
	if !ok || math.IsInf(f, 0) {
		return 0, false
	}
	f = math.Float64frombits(math.Float64bits(f) &^ 3)
	var text [maxFloatText]byte
	return f, bytes.Equal(appendArrayFloat(text[:0], f), v)
}

// appendArrayFloat appends the text of a float, which differs from that of an integer.
func appendArrayFloat(dst []byte, f float64) []byte {
	from := len(dst)
	dst = resp.AppendFloat(dst, f)
	if !math.IsInf(f, 0) && !math.IsNaN(f) && !bytes.ContainsAny(dst[from:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// array reads an array.
func (d *decoder) array() (any, error) {
	var count, inserted, last uint64
	if err := d.numbers(&count, &inserted); err != nil {
		return nil, err
	}
	switch {
	case count == 0:
		return nil, errEmpty
	case inserted > 1:
		return nil, corrupt("an array with the flag %d", inserted)
	case inserted == 1:
		if err := d.numbers(&last); err != nil {
			return nil, err
		}
		if last > arrays.MaxIndex {
			return nil, corrupt("an array with the index %d", last)
		}
	}
	a := arrays.New()
	for ; count > 0; count-- {
		d.recycle()
		index, err := d.length()
		if err != nil {
			return nil, err
		}
		v, err := d.arrayValue()
		if err != nil {
			return nil, err
		}
		if index > arrays.MaxIndex || !a.Set(index, v) {
			return nil, corrupt("an array with the index %d, too large or twice", index)
		}
	}
	if inserted == 1 {
		a.Seek(last + 1)
	}
	return a, nil
}

// arrayValue reads a value with its kind, and returns the text, which is valid until recycle.
func (d *decoder) arrayValue() ([]byte, error) {
	kind, err := d.length()
	if err != nil {
		return nil, err
	}
	switch kind {
	case arrayString, arrayShortString:
		return d.string()
	case arrayInt, arrayFloat:
	default:
		return nil, corrupt("an array with a value of the unknown kind %d", kind)
	}
	b, err := d.fixed(8)
	if err != nil {
		return nil, err
	}
	bits := binary.LittleEndian.Uint64(b)
	if kind == arrayInt {
		return strconv.AppendInt(nil, int64(bits), 10), nil
	}
	return appendArrayFloat(nil, math.Float64frombits(bits)), nil
}
