package atomredis

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

// This file is what arguments of commands and results of handlers have in common: how values of any Go type are taken apart.

// maxNesting is how deep values can be nested.
const maxNesting = 32

var errTooDeep = errors.New("the value is nested too deeply")

func isTime(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

// scalarOf returns the value of a basic type that stands for v, which is a: that of its kind, or what its methods make of it. ok is false if
// there is none.
func scalarOf(v reflect.Value, a any) (scalar any, ok bool, err error) {
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

// nonNil keeps an empty text from being taken for none.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// field is a field of a struct that has a tag.
type field struct {
	name    string
	value   reflect.Value
	omitted bool // it is empty, and the tag says omitempty
}

// taggedFields returns the exported fields of a struct that have a tag `redis:"name"`, in their order, as go-redis writes and reads them.
func taggedFields(v reflect.Value) (fields []field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("redis"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		omit := slices.Contains(strings.Split(options, ","), "omitempty") && isEmpty(v.Field(i))
		fields = append(fields, field{name, v.Field(i), omit})
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

// sortedKeys returns the keys of a map in order, as far as they have one.
func sortedKeys(v reflect.Value) []reflect.Value {
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
