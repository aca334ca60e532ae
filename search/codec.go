package search

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Point is a point on the earth, in degrees.
type Point struct {
	Lon, Lat float64
}

// The limits of points in an index.
const (
	maxLon = 180
	maxLat = 85.05112878
)

// String returns a point in the form of documents: longitude, comma, latitude.
func (p Point) String() string { return number(p.Lon) + "," + number(p.Lat) }

// MarshalText implements encoding.TextMarshaler.
func (p Point) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Point) UnmarshalText(text []byte) error {
	lon, lat, _ := strings.Cut(strings.ReplaceAll(string(text), " ", ","), ",")
	var err, err2 error
	p.Lon, err = strconv.ParseFloat(lon, 64)
	p.Lat, err2 = strconv.ParseFloat(strings.TrimLeft(lat, ","), 64)
	if err != nil || err2 != nil {
		return fmt.Errorf("%q is not a longitude and a latitude", text)
	}
	return nil
}

// value is the value of a field in a document.
type value struct {
	field *field
	text  string // the field of a hash, or JSON text in a JSON document
}

// encode returns the values of a document and the fields without a value.
func (s *schema) encode(v reflect.Value) (has []value, absent []*field, err error) {
	for _, f := range s.fields {
		fv := v.FieldByIndex(f.at)
		if f.lacks(fv) {
			absent = append(absent, f)
			continue
		}
		if f.pointer {
			fv = fv.Elem()
		}
		var text string
		if s.json {
			text, err = f.toJSON(fv)
		} else {
			text, err = f.toHash(fv)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("search: field %s: %w", f.name, err)
		}
		has = append(has, value{f, text})
	}
	return has, absent, nil
}

// lacks reports whether a document has no value for a field.
func (f *field) lacks(v reflect.Value) bool {
	switch {
	case f.pointer && v.IsNil(), f.goType.Kind() == reflect.Slice && v.Len() == 0:
		return true
	case f.omitEmpty:
		return v.IsZero()
	}
	return false
}

// toHash returns a value as the field of a hash.
func (f *field) toHash(v reflect.Value) (string, error) {
	switch f.typ {
	case vectorType:
		return f.vector(v)
	case tagType:
		if v.Kind() != reflect.Slice {
			return f.tag(scalar(v))
		}
		tags := make([]string, v.Len())
		for i := range tags {
			tag, err := f.tag(v.Index(i).String())
			if err != nil {
				return "", err
			}
			tags[i] = tag
		}
		return strings.Join(tags, f.separator), nil
	}
	return f.plainText(v)
}

// tag refuses a tag that the separator would split.
func (f *field) tag(s string) (string, error) {
	if f.separator != "" && strings.Contains(s, f.separator) {
		return "", fmt.Errorf("the tag %q has the separator %q in it", s, f.separator)
	}
	return s, nil
}

// plainText returns a value as text, and refuses values that cannot be indexed.
func (f *field) plainText(v reflect.Value) (string, error) {
	switch {
	case f.typ == numericType && f.goType == timeType:
		return seconds(v.Interface().(time.Time)), nil
	case f.goType == pointType:
		p := v.Interface().(Point)
		if f.typ == geoType && !(math.Abs(p.Lon) <= maxLon && math.Abs(p.Lat) <= maxLat) {
			return "", fmt.Errorf("%s cannot be indexed: longitudes go to %d, latitudes to %g", p, maxLon, maxLat)
		}
		return p.String(), nil
	case f.typ == "" && f.marshals():
		b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		return string(b), err
	case v.Kind() == reflect.Slice:
		return string(v.Bytes()), nil
	case v.CanFloat() && math.IsNaN(v.Float()) && f.typ == numericType:
		return "", errors.New("NaN cannot be indexed")
	}
	return scalar(v), nil
}

// scalar returns a string, a boolean or a number as text.
func scalar(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	}
	return v.String()
}

// seconds returns a time in seconds since 1970, to the nanosecond.
func seconds(t time.Time) string {
	whole, ns := t.Unix(), int64(t.Nanosecond())
	sign := ""
	if whole < 0 {
		sign, whole, ns = "-", -whole, -ns
		if ns < 0 {
			whole, ns = whole-1, ns+1e9
		}
	}
	text := sign + strconv.FormatInt(whole, 10)
	if ns != 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%09d", ns), "0")
	}
	return text
}

// parseSeconds reads the result of seconds, or a float. The time is in UTC.
func parseSeconds(s string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err == nil && len(fraction) <= 9 {
		if ns, err := strconv.ParseUint((fraction + "000000000")[:9], 10, 63); err == nil {
			if strings.HasPrefix(whole, "-") {
				return time.Unix(n, -int64(ns)).UTC(), nil
			}
			return time.Unix(n, int64(ns)).UTC(), nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > 1<<60 || math.IsNaN(f) {
		return time.Time{}, fmt.Errorf("%q is not a time in seconds", s)
	}
	return time.Unix(int64(f), int64((f-math.Trunc(f))*1e9)).UTC(), nil
}

// vector returns a vector's bytes.
func (f *field) vector(v reflect.Value) (string, error) {
	if v.Len() != f.dim {
		return "", fmt.Errorf("the vector has %d elements, not %d", v.Len(), f.dim)
	}
	var b []byte
	for i := range v.Len() {
		switch e := v.Index(i); e.Kind() {
		case reflect.Float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(e.Float())))
		case reflect.Float64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Float()))
		case reflect.Int8:
			b = append(b, byte(e.Int()))
		default:
			b = append(b, byte(e.Uint()))
		}
	}
	return string(b), nil
}

// toJSON returns a value as JSON.
func (f *field) toJSON(v reflect.Value) (string, error) {
	switch f.typ {
	case textType, tagType:
		if v.Kind() != reflect.Slice {
			return f.quoted(scalar(v))
		}
		parts := make([]string, v.Len())
		for i := range parts {
			text, err := f.quoted(v.Index(i).String())
			if err != nil {
				return "", err
			}
			parts[i] = text
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	case geoType, geoShapeType:
		text, err := f.plainText(v)
		if err != nil {
			return "", err
		}
		return f.quoted(text)
	case numericType:
		if v.CanFloat() && math.IsInf(v.Float(), 0) {
			return "", errors.New("JSON has no infinite numbers")
		}
		return f.plainText(v)
	case vectorType:
		if v.Len() != f.dim {
			return "", fmt.Errorf("the vector has %d elements, not %d", v.Len(), f.dim)
		}
		parts := make([]string, v.Len())
		for i := range parts {
			e := v.Index(i)
			if e.CanFloat() && (math.IsInf(e.Float(), 0) || math.IsNaN(e.Float())) {
				return "", errors.New("JSON has no infinite numbers")
			}
			parts[i] = scalar(e)
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	}
	b, err := json.Marshal(v.Interface())
	return string(b), err
}

// quoted returns a text as a string of JSON.
func (f *field) quoted(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%q is not UTF-8, as JSON must be", s)
	}
	if _, err := f.tag(s); f.typ == tagType && err != nil {
		return "", err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// decode sets the fields of a struct to the values that get finds in a document. Other fields do not change.
func (s *schema) decode(v reflect.Value, json bool, get func(name string) (text string, ok bool)) error {
	for _, f := range s.fields {
		text, ok := get(f.name)
		if !ok {
			continue
		}
		fv := v.FieldByIndex(f.at)
		if f.pointer {
			if json && text == "null" {
				continue
			}
			fv.Set(reflect.New(f.goType))
			fv = fv.Elem()
		}
		var err error
		if json {
			err = f.fromJSON(fv, text)
		} else {
			err = f.fromText(fv, text)
		}
		if err != nil {
			return fmt.Errorf("search: field %s: %w", f.name, err)
		}
	}
	return nil
}

// fromText sets a value from the field of a hash.
func (f *field) fromText(v reflect.Value, s string) error {
	switch {
	case f.typ == vectorType:
		return f.fromVector(v, s)
	case f.typ == tagType && v.Kind() == reflect.Slice:
		return setStrings(v, strings.Split(s, f.separator))
	case f.typ == numericType && f.goType == timeType:
		t, err := parseSeconds(s)
		v.Set(reflect.ValueOf(t))
		return err
	case f.goType == pointType, f.typ == "" && f.marshals():
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
	case v.Kind() == reflect.Slice:
		v.SetBytes([]byte(s))
		return nil
	}
	return setScalar(v, s)
}

// setStrings sets a slice of strings.
func setStrings(v reflect.Value, list []string) error {
	out := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, s := range list {
		out.Index(i).SetString(s)
	}
	v.Set(out)
	return nil
}

// setScalar sets a string, a boolean or a number.
func setScalar(v reflect.Value, s string) error {
	failed := func(err error) error { return fmt.Errorf("%q does not fit into %s: %w", s, v.Type(), err) }
	switch {
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return failed(err)
		}
		v.SetBool(b)
	case v.CanInt():
		n, err := strconv.ParseInt(s, 10, v.Type().Bits())
		if err != nil {
			f, ok := whole(s)
			if !ok || v.OverflowInt(int64(f)) {
				return failed(err)
			}
			n = int64(f)
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(s, 10, v.Type().Bits())
		if err != nil {
			f, ok := whole(s)
			if !ok || f < 0 || v.OverflowUint(uint64(f)) {
				return failed(err)
			}
			n = uint64(f)
		}
		v.SetUint(n)
	default:
		f, err := strconv.ParseFloat(s, v.Type().Bits())
		if err != nil {
			return failed(err)
		}
		v.SetFloat(f)
	}
	return nil
}

// whole reads an integer in the form of a float, such as 1e6, as in aggregations and JSON.
func whole(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<63
}

// fromVector sets a vector from its bytes.
func (f *field) fromVector(v reflect.Value, s string) error {
	size := int(f.goType.Elem().Size())
	if len(s) != f.dim*size {
		return fmt.Errorf("the vector has %d bytes, not %d", len(s), f.dim*size)
	}
	out := reflect.MakeSlice(v.Type(), f.dim, f.dim)
	for i := range f.dim {
		b := []byte(s[i*size : (i+1)*size])
		switch e := out.Index(i); e.Kind() {
		case reflect.Float32:
			e.SetFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		case reflect.Float64:
			e.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		case reflect.Int8:
			e.SetInt(int64(int8(b[0])))
		default:
			e.SetUint(uint64(b[0]))
		}
	}
	v.Set(out)
	return nil
}

// fromJSON sets a value from JSON.
func (f *field) fromJSON(v reflect.Value, s string) error {
	if f.typ == "" {
		return json.Unmarshal([]byte(s), v.Addr().Interface())
	}
	if s == "null" {
		return nil
	}
	if v.Kind() != reflect.Slice {
		text, err := jsonText(s)
		if err != nil {
			return err
		}
		return f.fromText(v, text)
	}
	var parts []json.RawMessage
	if !strings.HasPrefix(s, "[") {
		parts = []json.RawMessage{json.RawMessage(s)} // a single value in place of a list
	} else if err := json.Unmarshal([]byte(s), &parts); err != nil {
		return err
	}
	out := reflect.MakeSlice(v.Type(), len(parts), len(parts))
	for i, part := range parts {
		text, err := jsonText(string(part))
		if err == nil {
			err = setScalar(out.Index(i), text)
		}
		if err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

// jsonText decodes a JSON string, and returns any other JSON as it is.
func jsonText(s string) (text string, err error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	err = json.Unmarshal([]byte(s), &text)
	return text, err
}
