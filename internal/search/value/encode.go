package value

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrEncoding is the error of Decode.
var ErrEncoding = errors.New("invalid encoding of a value")

// maxDepth is how deep decoded values nest at most.
const maxDepth = 128

// withForms marks a value with forms in its first byte.
const withForms = 0x80

// AppendKey appends bytes that are the same for the same values and differ for others: a number and its text are
// different values. The forms for replies (WithForms) are ignored.
func (v Value) AppendKey(dst []byte) []byte { return v.encode(dst, false) }

// Append appends a value so that Decode returns it.
func (v Value) Append(dst []byte) []byte { return v.encode(dst, true) }

func (v Value) encode(dst []byte, forms bool) []byte {
	own := forms && v.more != nil && (v.more.shown.kind != Absent || v.more.expanded.kind != Absent)
	if own {
		dst = append(dst, byte(v.kind)|withForms)
	} else {
		dst = append(dst, byte(v.kind))
	}
	switch v.kind {
	case Number:
		f := v.number
		switch {
		case f == 0:
			f = 0 // -0 too
		case math.IsNaN(f):
			f = math.NaN()
		}
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	case String:
		dst = binary.AppendUvarint(dst, uint64(len(v.text)))
		dst = append(dst, v.text...)
	case Array, Map:
		dst = binary.AppendUvarint(dst, uint64(len(v.more.items)))
		for _, item := range v.more.items {
			dst = item.encode(dst, forms)
		}
	}
	if own {
		dst = v.more.expanded.encode(v.more.shown.encode(dst, true), true)
	}
	return dst
}

// Decode returns the first value of b and what follows it. The value does not refer to b.
func Decode(b []byte) (Value, []byte, error) { return decode(b, 0) }

func decode(b []byte, depth int) (v Value, rest []byte, err error) {
	if len(b) == 0 || depth > maxDepth {
		return Value{}, nil, ErrEncoding
	}
	forms := b[0]&withForms != 0
	v.kind = Kind(b[0] &^ withForms)
	b = b[1:]
	switch v.kind {
	case Absent, Null:
	case Number:
		if len(b) < 8 {
			return Value{}, nil, ErrEncoding
		}
		v.number = math.Float64frombits(binary.LittleEndian.Uint64(b))
		b = b[8:]
	case String, Array, Map:
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) || v.kind == Map && n%2 != 0 {
			return Value{}, nil, ErrEncoding
		}
		b = b[size:]
		if v.kind == String {
			v.text, b = string(b[:n]), b[n:]
			break
		}
		v.more = &more{}
		for range n {
			var item Value
			if item, b, err = decode(b, depth+1); err != nil {
				return Value{}, nil, err
			}
			v.more.items = append(v.more.items, item)
		}
	default:
		return Value{}, nil, ErrEncoding
	}
	if forms {
		var shown, expanded Value
		if shown, b, err = decode(b, depth+1); err != nil {
			return Value{}, nil, err
		}
		if expanded, b, err = decode(b, depth+1); err != nil {
			return Value{}, nil, err
		}
		v = v.WithForms(shown, expanded)
	}
	return v, b, nil
}
