package values

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// Encoder encodes commands for execution. The zero value is ready.
type Encoder struct {
	buf  []byte // all arguments except those that are []byte
	args []encoded
	ends []int // of the commands, in args
	out  [][]byte
	list [][][]byte
}

// encoded is one argument: bytes of its own, or a part of Encoder.buf.
type encoded struct {
	own        []byte
	start, end int
}

var encoders = sync.Pool{New: func() any { return new(Encoder) }}

// NewEncoder returns an encoder, which may reuse memory of an earlier one.
func NewEncoder() *Encoder { return encoders.Get().(*Encoder) }

// Release gives the memory to other encoders. e must not be used any more.
func (e *Encoder) Release() {
	e.Reset()
	encoders.Put(e)
}

const (
	maxKeptBuffer = 64 << 10 // bytes
	maxKeptArgs   = 1024
)

// Reset removes all commands. Their memory is kept for reuse unless it is large.
func (e *Encoder) Reset() {
	if cap(e.buf) > maxKeptBuffer || cap(e.args) > maxKeptArgs {
		*e = Encoder{}
		return
	}
	clear(e.args)
	clear(e.out)
	clear(e.list)
	*e = Encoder{e.buf[:0], e.args[:0], e.ends[:0], e.out[:0], e.list[:0]}
}

// Len returns how many commands there are.
func (e *Encoder) Len() int { return len(e.ends) }

// Add encodes one command: its name and its arguments. []byte are not copied. After an error e has the commands that it
// had before.
func (e *Encoder) Add(args []any) error {
	before := len(e.args)
	for i, a := range args {
		if err := e.arg(a, 0); err != nil {
			clear(e.args[before:])
			e.args = e.args[:before]
			return fmt.Errorf("argument %d of %v: %w", i, args[0], err)
		}
	}
	if len(e.args) == before {
		return errors.New("a command has no name")
	}
	e.ends = append(e.ends, len(e.args))
	return nil
}

// arg encodes a value, which may be several arguments; depth is how many collections it is in.
func (e *Encoder) arg(a any, depth int) error {
	switch v := a.(type) {
	case []byte:
		e.args = append(e.args, encoded{own: v})
		return nil
	case [][]byte:
		for _, b := range v {
			e.args = append(e.args, encoded{own: b})
		}
		return nil
	}
	start := len(e.buf)
	buf, ok := appendScalar(e.buf, a)
	if !ok {
		return e.reflected(a, depth)
	}
	e.buf = buf
	e.args = append(e.args, encoded{start: start, end: len(e.buf)})
	return nil
}

// reflected encodes a value of a type that appendScalar does not know.
func (e *Encoder) reflected(a any, depth int) error {
	if depth > MaxNesting {
		return ErrTooDeep
	}
	v := reflect.ValueOf(a)
	if scalar, ok, err := Scalar(v, a); ok || err != nil {
		if err != nil {
			return err
		}
		return e.arg(scalar, depth)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return e.arg(v.Elem().Interface(), depth+1)
		}
		if v.Type().Elem().Kind() == reflect.Struct && !isTime(v.Type().Elem()) {
			return nil // as in go-redis: no fields
		}
		return e.arg(reflect.Zero(v.Type().Elem()).Interface(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := e.arg(v.Index(i).Interface(), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		for _, k := range SortedKeys(v) {
			if err := e.arg(k.Interface(), depth+1); err != nil {
				return err
			}
			if err := e.arg(v.MapIndex(k).Interface(), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		fields := Fields(v)
		if fields == nil {
			return fmt.Errorf("a %T cannot be sent: none of its fields has a tag `redis:\"name\"`", a)
		}
		for _, f := range fields {
			if f.Omitted {
				continue
			}
			_ = e.arg(f.Name, depth+1) // a string
			if err := e.arg(f.Value.Interface(), depth+1); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("a %T cannot be sent", a)
}

// Commands returns all commands that were added; they are valid until the next call of another method.
func (e *Encoder) Commands() [][][]byte {
	e.out, e.list = e.out[:0], e.list[:0]
	for _, a := range e.args {
		b := a.own
		if b == nil {
			b = e.buf[a.start:a.end:a.end]
		}
		e.out = append(e.out, b)
	}
	start := 0
	for _, end := range e.ends {
		e.list = append(e.list, e.out[start:end:end])
		start = end
	}
	return e.list
}

// appendScalar appends an encoded value, if it is of one of the most common types.
func appendScalar(dst []byte, a any) (out []byte, ok bool) {
	switch v := a.(type) {
	case nil:
		return dst, true
	case string:
		return append(dst, v...), true
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int8:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int16:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case uint:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint8:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint16:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint32:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint64:
		return strconv.AppendUint(dst, v, 10), true
	case float32:
		return strconv.AppendFloat(dst, float64(v), 'f', -1, 32), true
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64), true
	case bool:
		if v {
			return append(dst, '1'), true
		}
		return append(dst, '0'), true
	case time.Duration:
		return strconv.AppendInt(dst, v.Nanoseconds(), 10), true
	case time.Time:
		return v.AppendFormat(dst, time.RFC3339Nano), true
	}
	return dst, false
}
