package resp

import (
	"encoding"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/values"
)

// Scan stores the reply in the value that dst points to. It is the inverse of how Go values become arguments:
//
//   - a string, []byte (a copy), an integer, a float, a bool; types of these kinds
//   - a time.Duration from nanoseconds, a time.Time from RFC 3339, a net.IP from its bytes, any type with
//     encoding.BinaryUnmarshaler or encoding.TextUnmarshaler
//   - a slice or an array from the elements; a map from keys and values, in a map or in an array in turn (HGETALL)
//   - a struct likewise: the fields with a tag such as `redis:"name"` get the values of these names, and keep their own
//     where there is none
//   - a pointer, which is nil for null; any, which becomes the Go form of Redis's types: nil, string, int64, float64,
//     bool, []any, map[string]any, or an Error; a Reply, which refers to this one's memory
//
// An error reply is returned as an Error. Null is ErrNull, except for pointers and any; null elements become zero
// values. A reply that does not fit, such as a number that is too great, is an error that names the type; parts of dst
// may then have changed.
func (r Reply) Scan(dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("atomredis: Scan needs a pointer, not a %T", dst)
	}
	return r.scan(v.Elem(), 0)
}

// scan stores the reply in v, which can be set; depth is the number of collections around it.
func (r Reply) scan(v reflect.Value, depth int) error {
	if depth > values.MaxNesting {
		return fmt.Errorf("atomredis: %w", values.ErrTooDeep)
	}
	if dst, ok := v.Addr().Interface().(*Reply); ok {
		*dst = r
		return nil
	}
	err := r.unusable()
	switch {
	case errors.Is(err, ErrNull) && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface):
		v.SetZero()
		return nil
	case err != nil && v.Kind() != reflect.Interface:
		return err
	}
	if done, err := r.unmarshal(v); done {
		return err
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return r.scan(v.Elem(), depth+1)
	case reflect.Interface:
		return r.scanAny(v, depth)
	case reflect.Struct:
		return r.scanStruct(v, depth)
	case reflect.Map:
		return r.scanMap(v, depth)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			return r.scanList(v, depth)
		}
	}
	return r.scanScalar(v)
}

// unmarshal stores the reply with the methods of v's type, if it has any.
func (r Reply) unmarshal(v reflect.Value) (done bool, err error) {
	var set func(b []byte) error
	switch u := v.Addr().Interface().(type) {
	case *time.Time: // its binary form differs from that of arguments
		set = u.UnmarshalText
	case *net.IP: // likewise
		set = func(b []byte) error { *u = append(net.IP{}, b...); return nil }
	case encoding.BinaryUnmarshaler:
		set = u.UnmarshalBinary
	case encoding.TextUnmarshaler:
		set = u.UnmarshalText
	default:
		return false, nil
	}
	b, err := r.Bytes()
	if err != nil {
		return true, err
	}
	if err := set(b); err != nil {
		return true, fmt.Errorf("atomredis: %w", err)
	}
	return true, nil
}

func (r Reply) scanScalar(v reflect.Value) error {
	misfit := func() error { return r.isNo(v.Type().String()) }
	if v.Kind() == reflect.Bool {
		b, err := r.Bool()
		if err != nil {
			return err
		}
		v.SetBool(b)
		return nil
	}
	b, err := r.Bytes()
	if err != nil {
		return err
	}
	switch k := v.Kind(); {
	case k == reflect.String:
		v.SetString(string(b))
	case k == reflect.Slice:
		v.SetBytes(append([]byte{}, b...))
	case k == reflect.Array:
		if len(b) != v.Len() {
			return misfit()
		}
		reflect.Copy(v, reflect.ValueOf(b))
	case v.CanInt():
		n, ok := ParseInt(b)
		if !ok || v.OverflowInt(n) {
			return misfit()
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(string(b), 10, 64)
		if err != nil || v.OverflowUint(n) {
			return misfit()
		}
		v.SetUint(n)
	case v.CanFloat():
		f, ok := ParseFloat(b)
		if !ok || v.OverflowFloat(f) {
			return misfit()
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("atomredis: a %s cannot be scanned into", v.Type())
	}
	return nil
}

// scanElement stores an element of a collection: null leaves the zero value.
func (r Reply) scanElement(v reflect.Value, depth int) error {
	err := r.scan(v, depth+1)
	if err == ErrNull && r.IsNull() {
		v.SetZero()
		return nil
	}
	return err
}

func (r Reply) scanList(v reflect.Value, depth int) error {
	elements, err := r.Slice()
	if err != nil {
		return err
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	} else if len(elements) != v.Len() {
		return r.isNo(v.Type().String())
	}
	for i, e := range elements {
		if err := e.scanElement(v.Index(i), depth); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// pairs returns the keys and values of a map, one after the other.
func (r Reply) pairs() ([]Reply, error) {
	elements, err := r.Slice()
	if err == nil && len(elements)%2 != 0 {
		err = r.isNo("map")
	}
	return elements, err
}

func (r Reply) scanMap(v reflect.Value, depth int) error {
	elements, err := r.pairs()
	if err != nil {
		return err
	}
	m := reflect.MakeMapWithSize(v.Type(), len(elements)/2)
	for i := 0; i < len(elements); i += 2 {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := elements[i].scanElement(key, depth); err != nil {
			return fmt.Errorf("a key: %w", err)
		}
		if err := elements[i+1].scanElement(value, depth); err != nil {
			return fmt.Errorf("the value of %v: %w", key, err)
		}
		m.SetMapIndex(key, value)
	}
	v.Set(m)
	return nil
}

func (r Reply) scanStruct(v reflect.Value, depth int) error {
	fields := values.Fields(v)
	if fields == nil {
		return fmt.Errorf("atomredis: a %s cannot be scanned into: none of its fields has a tag `redis:\"name\"`", v.Type())
	}
	elements, err := r.Map()
	if err != nil {
		return err
	}
	for _, f := range fields {
		e, ok := elements[f.Name]
		if !ok {
			continue
		}
		if err := e.scanElement(f.Value, depth); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

// scanAny stores the Go form of the reply.
func (r Reply) scanAny(v reflect.Value, depth int) error {
	if v.NumMethod() > 0 {
		return fmt.Errorf("atomredis: a %s cannot be scanned into", v.Type())
	}
	a, err := r.value(depth)
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(&a).Elem())
	return nil
}

// value returns the Go form of the reply.
func (r Reply) value(depth int) (any, error) {
	if len(r.raw) == 0 {
		return nil, ErrNoReply
	}
	if err := r.Err(); err != nil {
		return err, nil
	}
	if r.IsNull() {
		return nil, nil
	}
	switch r.raw[0] {
	case ':':
		return r.Int()
	case ',':
		return r.Float()
	case '#':
		return r.Bool()
	case '%':
		m := map[string]any{}
		err := r.scanMap(reflect.ValueOf(&m).Elem(), depth)
		return m, err
	case '*', '~', '>':
		list := []any{}
		err := r.scanList(reflect.ValueOf(&list).Elem(), depth)
		return list, err
	}
	return r.Text()
}
