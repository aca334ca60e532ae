package query

import (
	le "encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// This file converts values to the types of columns.

// codes are the types of objects by the names of simple types, in upper case and without their packages.
var codes = map[string]binary.Code{"BYTE": binary.Byte, "SHORT": binary.Short, "INTEGER": binary.Int, "INT": binary.Int,
	"LONG": binary.Long, "FLOAT": binary.Float, "DOUBLE": binary.Double, "BOOLEAN": binary.Bool, "STRING": binary.String,
	"CHARACTER": binary.Char, "UUID": binary.UUID, "DATE": binary.Date, "TIMESTAMP": binary.Timestamp, "TIME": binary.Time,
	"BYTE[]": binary.ByteArray, "[B": binary.ByteArray, "BIGDECIMAL": binary.Decimal}

// codeOf returns the type of objects of a named type; 0 if objects of it have various types.
func codeOf(typeName string) binary.Code { return codes[strings.ToUpper(simpleName(typeName))] }

// sqlNames are the names of types in errors.
var sqlNames = map[binary.Code]string{binary.Byte: "TINYINT", binary.Short: "SMALLINT", binary.Int: "INTEGER", binary.Long: "BIGINT",
	binary.Float: "REAL", binary.Double: "DOUBLE", binary.Bool: "BOOLEAN", binary.String: "VARCHAR", binary.Char: "CHAR",
	binary.UUID: "UUID", binary.Date: "DATE", binary.Timestamp: "TIMESTAMP", binary.Time: "TIME", binary.ByteArray: "VARBINARY",
	binary.Decimal: "DECIMAL"}

// convert returns an object as one of a type. Null stays null, and 0 is any type.
func convert(object []byte, code binary.Code) ([]byte, error) {
	if len(object) == 0 {
		return binary.AppendNull(nil), nil
	}
	if have := binary.Code(object[0]); code == 0 || have == code || have == binary.Null {
		return object, nil
	}
	v := valueOf(object)
	converted, ok := v.to(code)
	if !ok {
		text := string(binary.AppendText(nil, object, nil))
		if len(text) > 100 {
			text = text[:100] + "…"
		}
		return nil, fmt.Errorf("Data conversion error converting %q to %s", text, sqlNames[code])
	}
	return converted, nil
}

// to returns the value as an object of a type; ok is false if the value is not of that type.
func (v value) to(code binary.Code) (object []byte, ok bool) {
	switch code {
	case binary.Byte, binary.Short, binary.Int, binary.Long:
		n, ok := v.integer()
		if !ok {
			return nil, false
		}
		return appendInteger(code, n)
	case binary.Float, binary.Double:
		f, ok := v.number()
		switch {
		case !ok:
			return nil, false
		case code == binary.Double:
			return binary.AppendDouble(nil, f), true
		}
		return le.LittleEndian.AppendUint32([]byte{byte(code)}, math.Float32bits(float32(f))), true
	case binary.Decimal:
		return v.decimal()
	case binary.Bool:
		return v.boolean()
	case binary.String:
		s, ok := v.text()
		return binary.AppendString(nil, s), ok
	case binary.UUID, binary.ByteArray:
		return v.octets(code)
	case binary.Date, binary.Time, binary.Timestamp:
		return v.time(code)
	}
	return nil, false
}

// appendInteger encodes a number; ok is false if it is too large for its type.
func appendInteger(code binary.Code, n int64) (object []byte, ok bool) {
	size := map[binary.Code]int{binary.Byte: 1, binary.Short: 2, binary.Int: 4, binary.Long: 8}[code]
	if shift := 64 - 8*size; n<<shift>>shift != n {
		return nil, false
	}
	return le.LittleEndian.AppendUint64([]byte{byte(code)}, uint64(n))[:1+size], true
}

// integer returns the value as a whole number.
func (v value) integer() (n int64, ok bool) {
	switch v.kind {
	case kindBool:
		return v.i, true
	case kindInt:
		return v.i, v.code != binary.Timestamp
	case kindText:
		n, err := strconv.ParseInt(strings.TrimSpace(v.s), 10, 64)
		return n, err == nil
	case kindFloat:
		f := math.RoundToEven(v.f)
		return int64(f), f >= -(1<<63) && f < 1<<63
	}
	return 0, false
}

// number returns the value as a number with a point.
func (v value) number() (f float64, ok bool) {
	switch v.kind {
	case kindFloat:
		return v.f, true
	case kindText:
		f, err := strconv.ParseFloat(strings.TrimSpace(v.s), 64)
		return f, err == nil
	}
	n, ok := v.integer()
	return float64(n), ok
}

// decimal returns the value as an object that is a decimal.
func (v value) decimal() (object []byte, ok bool) {
	text := strings.TrimSpace(v.s)
	switch v.kind {
	case kindFloat:
		text = strconv.FormatFloat(v.f, 'f', -1, 64)
	case kindText:
	default:
		n, ok := v.integer()
		if !ok {
			return nil, false
		}
		text = strconv.FormatInt(n, 10)
	}
	const most = 1000 // digits
	whole, fraction, _ := strings.Cut(text, ".")
	unscaled, ok := new(big.Int), len(text) <= most
	if ok {
		unscaled, ok = unscaled.SetString(whole+fraction, 10)
	}
	if !ok || strings.ContainsAny(fraction, "+-_") {
		return nil, false
	}
	return binary.AppendDecimal(nil, unscaled, int32(len(fraction))), true
}

// boolean returns the value as an object that is a boolean.
func (v value) boolean() (object []byte, ok bool) {
	switch {
	case v.kind == kindText && strings.EqualFold(v.s, "true"):
		return binary.AppendBool(nil, true), true
	case v.kind == kindText && strings.EqualFold(v.s, "false"):
		return binary.AppendBool(nil, false), true
	}
	f, ok := v.number()
	return binary.AppendBool(nil, f != 0), ok
}

// text returns the value as a text.
func (v value) text() (s string, ok bool) {
	switch v.kind {
	case kindText:
		return v.s, true
	case kindBool:
		return strings.ToUpper(strconv.FormatBool(v.i != 0)), true
	case kindInt:
		if layout := layouts[v.code]; layout != "" {
			return v.utc().Format(layout), true
		}
		return strconv.FormatInt(v.i, 10), true
	case kindFloat:
		return strconv.FormatFloat(v.f, 'f', -1, 64), true
	}
	if v.kind == kindOther && v.code == binary.UUID {
		s = string(binary.AppendText(nil, []byte(v.s), nil))
		return strings.TrimSuffix(strings.TrimPrefix(s, "uuid("), ")"), true
	}
	return "", false
}

// octets returns the value as an object that is a UUID or an array of bytes.
func (v value) octets(code binary.Code) (object []byte, ok bool) {
	if v.kind != kindText {
		return nil, false
	}
	if code == binary.UUID {
		object, err := binary.ParseText([]byte("uuid(" + v.s + ")"))
		return object, err == nil && binary.Code(object[0]) == binary.UUID
	}
	b, err := hex.DecodeString(v.s)
	object = le.LittleEndian.AppendUint32([]byte{byte(code)}, uint32(len(b)))
	return append(object, b...), err == nil
}

// layouts are the forms of dates and times as texts.
var layouts = map[binary.Code]string{binary.Date: "2006-01-02", binary.Time: "15:04:05",
	binary.Timestamp: "2006-01-02 15:04:05.999999999"}

// utc returns a value that is a date or time.
func (v value) utc() time.Time { return time.UnixMilli(v.i).Add(time.Duration(v.f)).UTC() }

// time returns the value as an object that is a date or time.
func (v value) time(code binary.Code) (object []byte, ok bool) {
	var t time.Time
	switch {
	case v.kind == kindText:
		s := strings.Replace(strings.TrimSpace(v.s), "T", " ", 1)
		parsed := false
		for _, layout := range layouts {
			if at, err := time.Parse(layout, s); err == nil {
				t, parsed = at, true
			}
		}
		if !parsed {
			return nil, false
		}
		if t.Year() == 0 { // a time without a date
			t = time.Unix(0, 0).UTC().Add(t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
	case v.kind == kindInt && layouts[v.code] != "":
		t = v.utc()
	default:
		return nil, false
	}
	const day = 24 * 60 * 60 * 1000
	ms := t.UnixMilli()
	inDay := ((ms % day) + day) % day
	switch code {
	case binary.Date:
		ms -= inDay
	case binary.Time:
		ms = inDay
	}
	object = le.LittleEndian.AppendUint64([]byte{byte(code)}, uint64(ms))
	if code == binary.Timestamp {
		object = le.LittleEndian.AppendUint32(object, uint32(t.Nanosecond()%1e6))
	}
	return object, true
}

// object returns the value as an object of its own type.
func (v value) object() []byte {
	switch v.kind {
	case kindBool:
		return binary.AppendBool(nil, v.i != 0)
	case kindInt:
		return binary.AppendLong(nil, v.i)
	case kindFloat:
		return binary.AppendDouble(nil, v.f)
	case kindText:
		return binary.AppendString(nil, v.s)
	case kindOther:
		return []byte(v.s)
	}
	return binary.AppendNull(nil)
}
