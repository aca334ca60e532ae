package scripting

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// spaces are the bytes that C's library skips before numbers.
const spaces = " \t\n\v\f\r"

// parseNumber reads a number as Lua does where it accepts a string as one. Like C, it ignores the text after a zero
// byte.
func parseNumber(s string) (f float64, ok bool) {
	s = strings.TrimLeft(cString(s), spaces)
	f, length := leadingNumber(s)
	if length == 0 || strings.TrimLeft(s[length:], spaces) != "" {
		return 0, false
	}
	return f, true
}

// cString returns s up to its first zero byte, which is the part of a string that C's library sees.
func cString(s string) string {
	if end := strings.IndexByte(s, 0); end >= 0 {
		return s[:end]
	}
	return s
}

// leadingNumber reads the longest number at the start of s: decimal, hexadecimal, infinite or NaN, as C's strtod does.
// A length of 0 means that there is none.
func leadingNumber(s string) (f float64, length int) {
	i := 0
	negative := s != "" && s[0] == '-'
	if negative || s != "" && s[0] == '+' {
		i = 1
	}
	first := i
	n := uint64(0)
	for ; i < len(s) && isDigit(s[i]); i++ {
		n = n*10 + uint64(s[i]-'0')
	}
	const exact = 15 // digits that certainly fit an integer and a double
	if digits := i - first; digits > 0 && digits <= exact && (i == len(s) || !continuesNumber(s[i])) {
		return signed(float64(n), negative), i
	}
	rest := s[first:]
	switch {
	case hasWord(rest, "inf"):
		f, length = math.Inf(1), 3
		if hasWord(rest, "infinity") {
			length = 8
		}
	case hasWord(rest, "nan"):
		f, length = notANumber(rest)
	case len(rest) > 1 && rest[0] == '0' && rest[1]|0x20 == 'x' && mantissa(rest[2:], hexadecimal) > 0:
		length = 2 + mantissa(rest[2:], hexadecimal)
		if more := exponent(rest[length:], 'p'); more > 0 {
			length += more
			f = parseFloat(rest[:length])
		} else {
			f = parseFloat(rest[:length] + "p0")
		}
	default:
		length = mantissa(rest, isDigit)
		if length == 0 {
			return 0, 0
		}
		length += exponent(rest[length:], 'e')
		f = parseFloat(rest[:length])
	}
	return signed(f, negative), first + length
}

// continuesNumber reports whether a byte after an integer may continue the number.
func continuesNumber(c byte) bool { return c == '.' || c|0x20 == 'e' || c|0x20 == 'x' }

func signed(f float64, negative bool) float64 {
	if negative {
		return math.Copysign(f, -1)
	}
	return math.Copysign(f, 1)
}

// parseFloat reads a text known to be a number. A number that is too large or too small becomes infinity or 0.
func parseFloat(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

func hexadecimal(c byte) bool {
	_, ok := hexDigit(c)
	return ok
}

// hexDigit returns the value of a hexadecimal digit in either case.
func hexDigit(c byte) (digit byte, ok bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// mantissa returns the length of the digits at the start of s, with at most one point among them; 0 if there is no
// digit.
func mantissa(s string, isDigit func(byte) bool) int {
	digits, point := 0, 0
	i := 0
	for ; i < len(s); i++ {
		switch {
		case isDigit(s[i]):
			digits++
		case s[i] == '.' && point == 0:
			point++
		default:
			return lengthIf(digits > 0, i)
		}
	}
	return lengthIf(digits > 0, i)
}

func lengthIf(ok bool, n int) int {
	if ok {
		return n
	}
	return 0
}

// exponent returns the length of the exponent at the start of s; 0 if there is none.
func exponent(s string, mark byte) int {
	if s == "" || s[0]|0x20 != mark {
		return 0
	}
	i := 1
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	first := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return lengthIf(i > first, i)
}

// notANumber reads "nan" and the word in parentheses that may follow it. A word that is an integer becomes the low bits
// of the NaN, which bit functions show. Without a word these bits are 0, unlike those of Go's own NaN.
func notANumber(s string) (f float64, length int) {
	const quiet, payload = 0x7ff8 << 48, 1<<51 - 1
	length = len("nan")
	if len(s) == length || s[length] != '(' {
		return math.Float64frombits(quiet), length
	}
	for i := length + 1; i < len(s); i++ {
		if s[i] == ')' {
			n := parseWord(s[length+1 : i])
			return math.Float64frombits(quiet | n&payload), i + 1
		}
		if !isAlphanumeric(s[i]) && s[i] != '_' {
			break
		}
	}
	return math.Float64frombits(quiet), length
}

// parseWord reads an integer with the prefixes of C; 0 if it is none.
func parseWord(s string) uint64 {
	base := uint64(10)
	switch {
	case hasWord(s, "0x"):
		base = 16
	case strings.HasPrefix(s, "0"):
		base = 8
	}
	n, _ := parseUnsigned(s, base)
	return n
}

// hasWord reports whether s begins with a word, whatever its case.
func hasWord(s, word string) bool {
	return len(s) >= len(word) && strings.EqualFold(s[:len(word)], word)
}

// parseUnsigned reads an integer in a base as C's strtoul does. Only white space may surround it.
func parseUnsigned(s string, base uint64) (n uint64, ok bool) {
	s = strings.Trim(cString(s), spaces)
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if base == 16 && len(s) > 2 && hasWord(s, "0x") {
		s = s[2:]
	}
	overflow := false
	for _, c := range []byte(s) {
		digit := base
		switch {
		case isDigit(c):
			digit = uint64(c - '0')
		case isAlphanumeric(c):
			digit = uint64(c|0x20-'a') + 10
		}
		if digit >= base {
			return 0, false
		}
		next := n*base + digit
		overflow = overflow || n > (math.MaxUint64-digit)/base
		n = next
	}
	switch {
	case s == "":
		return 0, false
	case overflow:
		return math.MaxUint64, true
	case negative:
		return -n, true
	}
	return n, true
}

// loopNumber returns its argument as a number if it is a string that contains one, and otherwise unchanged: the
// interpreter then reports what is wrong with it.
func loopNumber(L *lua.LState) int {
	v := L.Get(1)
	if s, ok := v.(lua.LString); ok {
		if n, ok := parseNumber(string(s)); ok {
			v = lua.LNumber(n)
		}
	}
	L.SetTop(0)
	L.Push(v)
	return 1
}
