package documents

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"unicode/utf8"
)

// The types of BSON elements that have a counterpart here. All others are refused.
const (
	bsonDouble   = 0x01
	bsonText     = 0x02
	bsonDocument = 0x03
	bsonArray    = 0x04
	bsonObjectID = 0x07
	bsonBool     = 0x08
	bsonNull     = 0x0a
	bsonInt32    = 0x10
	bsonInt64    = 0x12
)

// Errors of BSON.
var (
	errBSON     = errors.New("ERR malformed BSON document")
	errBSONType = errors.New("ERR the BSON document has an element of a type that is not supported")
)

// ParseBSON returns the value of the first element of a BSON document, null if it is empty. The document must be valid
// UTF-8, because arguments are text.
func ParseBSON(b []byte) (Value, error) {
	if !utf8.Valid(b) {
		return Value{}, ErrUTF8
	}
	r := bsonReader{b}
	_, vals, err := r.document(0)
	switch {
	case err != nil:
		return Value{}, err
	case len(r.b) > 0:
		return Value{}, errBSON
	case len(vals) == 0:
		return Value{}, nil
	}
	return vals[0], nil
}

// bsonReader consumes elements from b.
type bsonReader struct{ b []byte }

func (r *bsonReader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.b) {
		return nil, errBSON
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b, nil
}

func (r *bsonReader) length() (int, error) {
	b, err := r.take(4)
	if err != nil {
		return 0, err
	}
	return int(int32(binary.LittleEndian.Uint32(b))), nil
}

// document reads a document at a nesting depth.
func (r *bsonReader) document(depth int) (names []string, vals []Value, err error) {
	n, err := r.length()
	if err != nil {
		return nil, nil, err
	}
	body, err := r.take(n - 4)
	if err != nil || len(body) == 0 || body[len(body)-1] != 0 {
		return nil, nil, errBSON
	}
	if depth > MaxDepth {
		return nil, nil, errDepth
	}
	places := map[string]int{}
	for in := (bsonReader{body[:len(body)-1]}); len(in.b) > 0; {
		kind := in.b[0]
		end := 1
		for end < len(in.b) && in.b[end] != 0 {
			end++
		}
		if end == len(in.b) {
			return nil, nil, errBSON
		}
		name := string(in.b[1:end])
		in.b = in.b[end+1:]
		v, err := in.value(kind, depth)
		if err != nil {
			return nil, nil, err
		}
		if i, twice := places[name]; twice {
			vals[i] = v
			continue
		}
		places[name] = len(vals)
		names, vals = append(names, name), append(vals, v)
	}
	return names, vals, nil
}

func (r *bsonReader) value(kind byte, depth int) (Value, error) {
	switch kind {
	case bsonNull:
		return Value{}, nil
	case bsonDocument, bsonArray:
		names, vals, err := r.document(depth + 1)
		if kind == bsonArray {
			return NewArray(vals...), err
		}
		return NewObject(names, vals), err
	case bsonText:
		n, err := r.length()
		if err != nil {
			return Value{}, err
		}
		b, err := r.take(n)
		if err != nil || n == 0 || b[n-1] != 0 {
			return Value{}, errBSON
		}
		return Text(string(b[:n-1])), nil
	}
	sizes := map[byte]int{bsonDouble: 8, bsonObjectID: 12, bsonBool: 1, bsonInt32: 4, bsonInt64: 8}
	n, ok := sizes[kind]
	if !ok {
		return Value{}, errBSONType
	}
	b, err := r.take(n)
	if err != nil {
		return Value{}, err
	}
	switch kind {
	case bsonDouble:
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return Value{}, errBSONType
		}
		return Double(f), nil
	case bsonObjectID:
		return NewObject([]string{"$oid"}, []Value{Text(hex.EncodeToString(b))}), nil
	case bsonBool:
		return Bool(b[0] != 0), nil
	case bsonInt32:
		return Int(int64(int32(binary.LittleEndian.Uint32(b)))), nil
	}
	return Int(int64(binary.LittleEndian.Uint64(b))), nil
}
