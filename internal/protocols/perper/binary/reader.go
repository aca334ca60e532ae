package binary

import le "encoding/binary"

// Reader reads consecutive values. After an error, all values that it returns are zero.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a reader of b. Slices that it returns share the memory of b.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err returns the first error: ErrMalformed, or a more specific error.
func (r *Reader) Err() error { return r.err }

// Len returns how many bytes are left.
func (r *Reader) Len() int { return len(r.b) }

// Rest returns the bytes that are left.
func (r *Reader) Rest() []byte { return r.b }

// Take reads n bytes.
func (r *Reader) Take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.Fail(ErrMalformed)
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// Fail makes all later reads fail.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err, r.b = err, nil
	}
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if b := r.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Bool reads a byte as a boolean.
func (r *Reader) Bool() bool { return r.Byte() != 0 }

// Int16 reads a number of two bytes.
func (r *Reader) Int16() int16 {
	if b := r.Take(2); b != nil {
		return int16(le.LittleEndian.Uint16(b))
	}
	return 0
}

// Int32 reads a number of four bytes.
func (r *Reader) Int32() int32 {
	if b := r.Take(4); b != nil {
		return int32(le.LittleEndian.Uint32(b))
	}
	return 0
}

// Int64 reads a number of eight bytes.
func (r *Reader) Int64() int64 {
	if b := r.Take(8); b != nil {
		return int64(le.LittleEndian.Uint64(b))
	}
	return 0
}

// Count reads how many elements follow, each of which has at least size bytes.
func (r *Reader) Count(size int) int {
	n := int(r.Int32())
	if n < 0 || n > len(r.b)/size {
		r.Fail(ErrMalformed)
		return 0
	}
	return n
}

// Object reads an object, and unwraps it.
func (r *Reader) Object() []byte {
	if r.err != nil {
		return nil
	}
	object, rest, err := Next(r.b)
	if err == nil {
		object, err = Unwrap(object)
	}
	if err != nil {
		r.Fail(err)
		return nil
	}
	r.b = rest
	return object
}

// String reads an object that is a string, or null, which is "".
func (r *Reader) String() string {
	object := r.Object()
	if len(object) == 0 || Code(object[0]) == Null {
		return ""
	}
	s, ok := AsString(object)
	if !ok {
		r.Fail(ErrMalformed)
	}
	return s
}
