package atom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// The serializations that need no Options.Codecs.
const (
	None    = "none"
	Msgpack = "msgpack"
	Pickle  = "pickle" // for queues: Python pickles their items; elements expect pickles nowhere else
)

// Codec serializes values. Its methods may be called by several goroutines.
type Codec interface {
	// Name is the value of the field "ser" in packets.
	Name() string
	// Encode serializes a value.
	Encode(v any) ([]byte, error)
	// Decode stores the value at the pointer into. It keeps no part of data.
	Decode(data []byte, into any) error
}

// Decoding says how to read data that does not name its serialization.
type Decoding struct {
	// Serialization is for data without a serialization of its own. Empty means None.
	Serialization string
	// Force uses Serialization even if the data names another one.
	Force bool
}

// Value is stored data together with its serialization. The zero Value means that there is no data.
type Value struct {
	// Bytes is the stored data: nil if there is none, not nil if it is empty.
	Bytes []byte
	// Serialization is the one with which Decode and Any read the data.
	Serialization string

	codec Codec // nil if the serialization is not known
}

// Exists reports whether there is data, which may be empty.
func (v Value) Exists() bool { return v.Bytes != nil }

// String returns the stored data.
func (v Value) String() string { return string(v.Bytes) }

// Decode stores the value at the pointer into. The error is an *Error with DeserializationError; it wraps ErrNotFound
// if there is no data.
func (v Value) Decode(into any) error {
	const op = "decode"
	switch {
	case v.Bytes == nil:
		return &Error{Code: DeserializationError, Op: op, Err: ErrNotFound}
	case v.codec == nil:
		return &Error{Code: DeserializationError, Op: op, Err: fmt.Errorf("unknown serialization %q", v.Serialization)}
	}
	if err := v.codec.Decode(v.Bytes, into); err != nil {
		return &Error{Code: DeserializationError, Op: op + " " + v.Serialization, Err: err}
	}
	return nil
}

// Any returns the value with the type that its serialization defines: []byte for None; nil, bool, int64, uint64,
// float64, string, []byte, time.Time, []any, map[string]any and map[any]any for the others.
func (v Value) Any() (any, error) {
	var value any
	err := v.Decode(&value)
	return value, err
}

// codecs has the serializations of an element by name.
type codecs map[string]Codec

func newCodecs(more []Codec) codecs {
	all := codecs{None: noneCodec{}, Msgpack: msgpackCodec{}, Pickle: pickleCodec{}}
	for _, c := range more {
		all[c.Name()] = c
	}
	return all
}

// encode serializes a value, and returns the name of the serialization with "" replaced by None.
func (c codecs) encode(op, serialization string, v any) (data []byte, name string, err error) {
	name = orNone(serialization)
	codec, ok := c[name]
	if !ok {
		return nil, name, &Error{Code: SerializationError, Op: op, Err: fmt.Errorf("unknown serialization %q", name)}
	}
	if data, err = codec.Encode(v); err != nil {
		return nil, name, &Error{Code: SerializationError, Op: op, Err: err}
	}
	return data, name, nil
}

// value applies the rules of the specification: the serialization that the data names (ser, "" if it names none)
// overrides d.Serialization, unless d.Force is set.
func (c codecs) value(data []byte, ser string, d Decoding) Value {
	name := orNone(d.Serialization)
	if ser != "" && !d.Force {
		name = ser
	}
	return Value{Bytes: data, Serialization: name, codec: c[name]}
}

func orNone(serialization string) string {
	if serialization == "" {
		return None
	}
	return serialization
}

// noneCodec passes bytes and text through and writes numbers in decimal, as the Python client does. nil becomes empty.
type noneCodec struct{}

func (noneCodec) Name() string { return None }

func (noneCodec) Encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return []byte{}, nil
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Append(nil, v), nil
	case float32:
		return strconv.AppendFloat(nil, float64(v), 'g', -1, 32), nil
	case float64:
		return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
	}
	return nil, fmt.Errorf("%T needs a serialization: %s takes bytes, text and numbers", v, None)
}

func (noneCodec) Decode(data []byte, into any) (err error) {
	switch into := into.(type) {
	case *any:
		*into = bytes.Clone(data)
	case *[]byte:
		*into = bytes.Clone(data)
	case *string:
		*into = string(data)
	case *int:
		*into, err = strconv.Atoi(string(data))
	case *int64:
		*into, err = strconv.ParseInt(string(data), 10, 64)
	case *uint64:
		*into, err = strconv.ParseUint(string(data), 10, 64)
	case *float64:
		*into, err = strconv.ParseFloat(string(data), 64)
	default:
		err = fmt.Errorf("%s cannot fill a %T", None, into)
	}
	return err
}

// msgpackCodec is compatible with the defaults of Python's msgpack.
type msgpackCodec struct{}

func (msgpackCodec) Name() string { return Msgpack }

func (msgpackCodec) Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := msgpack.NewEncoder(&out)
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (msgpackCodec) Decode(data []byte, into any) error {
	if err := checkMsgpack(data); err != nil {
		return err
	}
	dec := msgpack.NewDecoder(bytes.NewReader(data))
	dec.UseLooseInterfaceDecoding(true)
	dec.SetMapDecoder(decodeMap)
	if into, ok := into.(*any); ok {
		v, err := decodeAny(dec)
		*into = v
		return err
	}
	return dec.Decode(into)
}

// decodeAny returns integers as int64 if they fit, and bytes as []byte; the library would return a string.
func decodeAny(d *msgpack.Decoder) (any, error) {
	code, err := d.PeekCode()
	if err != nil {
		return nil, err
	}
	switch {
	case msgpcode.IsBin(code):
		return d.DecodeBytes()
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		n, err := d.DecodeArrayLen()
		if err != nil {
			return nil, err
		}
		list := make([]any, n)
		for i := range list {
			if list[i], err = decodeAny(d); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	v, err := d.DecodeInterfaceLoose()
	if n, ok := v.(uint64); ok && n <= math.MaxInt64 {
		v = int64(n)
	}
	return v, err
}

// decodeMap returns a map[string]any if all keys are text or bytes (Python programs use both), otherwise a map[any]any.
func decodeMap(d *msgpack.Decoder) (any, error) {
	n, err := d.DecodeMapLen()
	if err != nil || n < 0 {
		return nil, err
	}
	pairs := make([]any, 0, 2*n)
	for range 2 * n {
		v, err := decodeAny(d)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, v)
	}
	return mapOf(pairs)
}

// mapOf makes a map from alternating keys and values.
func mapOf(pairs []any) (any, error) {
	byName, byValue := make(map[string]any, len(pairs)/2), map[any]any(nil)
	for i := 0; i < len(pairs); i += 2 {
		key, value := pairs[i], pairs[i+1]
		switch k := key.(type) {
		case string:
		case []byte:
			key = string(k)
		case []any, map[string]any, map[any]any:
			return nil, fmt.Errorf("a %T cannot be the key of a map", k)
		default:
			if byValue == nil {
				byValue = make(map[any]any, len(pairs)/2)
				for name, v := range byName {
					byValue[name] = v
				}
			}
		}
		if byValue != nil {
			byValue[key] = value
		} else {
			byName[key.(string)] = value
		}
	}
	if byValue != nil {
		return byValue, nil
	}
	return byName, nil
}

// maxDepth bounds how deep received values may be nested, so that a small message cannot exhaust the stack.
const maxDepth = 512

var errTruncated = errors.New("the data ends too early")

// checkMsgpack validates data before it is decoded. The decoder trusts announced lengths and recurses, so a few bytes
// from another element could otherwise end the process.
func checkMsgpack(data []byte) error {
	open := []int64{1} // values still missing at each level
	for len(open) > 0 {
		last := len(open) - 1
		if open[last] == 0 {
			open = open[:last]
			continue
		}
		open[last]--
		if len(data) == 0 {
			return errTruncated
		}
		size, children := msgpackHead(data)
		if size < 0 || size > int64(len(data)) || children > int64(len(data))-size {
			return errTruncated
		}
		data = data[size:]
		if children > 0 {
			if len(open) == maxDepth {
				return fmt.Errorf("nested deeper than %d levels", maxDepth)
			}
			open = append(open, children)
		}
	}
	if len(data) > 0 {
		return errors.New("there is more than one value")
	}
	return nil
}

// msgpackHead returns the number of bytes of the value at the start of data, without contained values, and the number
// of contained values. The size is negative if bytes are missing.
func msgpackHead(data []byte) (size, children int64) {
	c := data[0]
	number := func(width int64) int64 { // reads the length after the code
		if int64(len(data)) <= width {
			return -1 << 40
		}
		var b [8]byte
		copy(b[8-width:], data[1:1+width])
		return int64(binary.BigEndian.Uint64(b[:]))
	}
	switch {
	case c < 0x80, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return 1, 0
	case c < 0x90:
		return 1, 2 * int64(c&0x0f)
	case c < 0xa0:
		return 1, int64(c & 0x0f)
	case c < 0xc0:
		return 1 + int64(c&0x1f), 0
	}
	widths := []int64{1, 2, 4}
	switch c {
	case 0xc4, 0xc5, 0xc6: // bytes
		w := widths[c-0xc4]
		return 1 + w + number(w), 0
	case 0xc7, 0xc8, 0xc9: // extensions: a type follows the length
		w := widths[c-0xc7]
		return 2 + w + number(w), 0
	case 0xca, 0xcb: // floats
		return 1 + 4<<(c-0xca), 0
	case 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3: // integers
		return 1 + 1<<((c-0xcc)&3), 0
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // extensions of fixed size
		return 2 + 1<<(c-0xd4), 0
	case 0xd9, 0xda, 0xdb: // text
		w := widths[c-0xd9]
		return 1 + w + number(w), 0
	case 0xdc, 0xdd: // arrays
		w := widths[c-0xdc+1]
		return sized(w, number(w), 1)
	case 0xde, 0xdf: // maps
		w := widths[c-0xde+1]
		return sized(w, number(w), 2)
	}
	return -1, 0 // 0xc1 is never used
}

// sized returns the head of a value whose length field has the given width; each unit of length has per contained
// values.
func sized(width, length, per int64) (size, children int64) {
	if length < 0 {
		return -1, 0
	}
	return 1 + width, length * per
}

// sortedKeys returns the keys of a map in order, so that equal maps have equal bytes.
func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
