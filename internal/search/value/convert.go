package value

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ToNumber returns the number that a value is: a number, or a string that is one in whole.
func (v Value) ToNumber() (float64, bool) {
	switch v.kind {
	case Number:
		return v.number, true
	case String:
		return ParseNumber(v.text)
	}
	return 0, false
}

// ParseNumber returns the number that a text is. Blanks may stand before it, and inf and nan are numbers.
func ParseNumber(s string) (float64, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if s == "" || !strings.ContainsRune("0123456789+-.iInN", rune(s[0])) || strings.ContainsAny(s, "_xXpP") {
		return 0, false // Go's numbers have more forms
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && (!errors.Is(err, strconv.ErrRange) || math.IsInf(f, 0)) {
		return 0, false
	}
	return f, true
}

// ToText returns the text of a string or a number, "" for other kinds.
func (v Value) ToText() string {
	switch v.kind {
	case String:
		return v.text
	case Number:
		return string(AppendNumber(nil, v.number))
	}
	return ""
}

// AppendNumber appends a number as replies print it: a whole number with all its digits, others with twelve.
func AppendNumber(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == math.Trunc(f) && f >= -1<<63 && f < 1<<63:
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', 12, 64)
}
