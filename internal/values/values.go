// Package values encodes values of any Go type as arguments of commands, and provides their parts to callers that
// make replies of them.
package values

import (
	"cmp"
	"encoding"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"
)

// MaxNesting is how deep values can be nested.
const MaxNesting = 32

// ErrTooDeep means that a value is nested more deeply than MaxNesting.
var ErrTooDeep = errors.New("the value is nested too deeply")

func isTime(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

// Scalar returns the value of a basic type that represents v, which is the reflection of a: its own value, or the
// result of its methods. ok is false if there is none.
func Scalar(v reflect.Value, a any) (scalar any, ok bool, err error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false, nil // its methods cannot be called
	}
	switch m := a.(type) {
	case net.IP:
		return []byte(m), true, nil
	case *time.Time:
		return *m, true, nil
	case encoding.BinaryMarshaler:
		b, err := m.MarshalBinary()
		return nonNil(b), err == nil, err
	}
	switch k := v.Kind(); {
	case k == reflect.String:
		return v.String(), true, nil
	case k == reflect.Bool:
		return v.Bool(), true, nil
	case v.CanInt():
		return v.Int(), true, nil
	case v.CanUint():
		return v.Uint(), true, nil
	case k == reflect.Float32:
		return float32(v.Float()), true, nil
	case k == reflect.Float64:
		return v.Float(), true, nil
	case k == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return v.Bytes(), true, nil
	case k == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return b, true, nil
	}
	if m, is := a.(encoding.TextMarshaler); is {
		b, err := m.MarshalText()
		return nonNil(b), err == nil, err
	}
	return nil, false, nil
}

// nonNil returns b, or an empty slice instead of nil, which would mean that there is no text.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Field is a field of a struct that has a tag.
type Field struct {
	Name    string
	Value   reflect.Value
	Omitted bool // it is empty, and the tag says omitempty
}

// Fields returns the exported fields of a struct that have a tag `redis:"name"`, in their order, as go-redis writes
// and reads them.
func Fields(v reflect.Value) (fields []Field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("redis"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		omit := slices.Contains(strings.Split(options, ","), "omitempty") && isEmpty(v.Field(i))
		fields = append(fields, Field{name, v.Field(i), omit})
	}
	return fields
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return isTime(v.Type()) && v.IsZero()
	}
	return v.IsZero()
}

// SortedKeys returns the keys of a map, sorted if their type has an order.
func SortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		switch {
		case a.Kind() == reflect.String:
			return strings.Compare(a.String(), b.String())
		case a.CanInt():
			return cmp.Compare(a.Int(), b.Int())
		case a.CanUint():
			return cmp.Compare(a.Uint(), b.Uint())
		case a.CanFloat():
			return cmp.Compare(a.Float(), b.Float())
		}
		return 0
	})
	return keys
}
