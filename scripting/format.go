package scripting

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringFormat is string.format.
func stringFormat(L *lua.LState) int {
	format := argString(L, 1, "format")
	var buf []byte
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			buf = append(buf, format[i])
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			buf = append(buf, '%')
			continue
		}
		if arg++; arg > L.GetTop() {
			badArgument(L, arg, "format", "no value")
		}
		d, length := parseDirective(L, format[i:])
		i += length - 1
		buf = d.append(L, buf, arg)
		if len(buf) > maxString {
			fail(L, "resulting string too large")
		}
	}
	L.Push(lua.LString(buf))
	return 1
}

// directive is one % directive.
type directive struct {
	flags            string
	width, precision int // precision is -1 if there is none
	verb             byte
}

// parseDirective reads the directive at the start of s, which is the text after a %, and returns its length.
func parseDirective(L *lua.LState, s string) (d directive, length int) {
	i := 0
	for i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0 {
		i++
	}
	if i > 5 {
		fail(L, "invalid format (repeated flags)")
	}
	d.flags, d.precision = s[:i], -1
	number := func() (n int) {
		start := i
		for i < len(s) && i < start+2 && s[i] >= '0' && s[i] <= '9' {
			n = n*10 + int(s[i]-'0')
			i++
		}
		return n
	}
	d.width = number()
	if i < len(s) && s[i] == '.' {
		i++
		d.precision = number()
	}
	if i < len(s) && s[i] >= '0' && s[i] <= '9' {
		fail(L, "invalid format (width or precision too long)")
	}
	if i == len(s) {
		return d, i
	}
	d.verb = s[i]
	return d, i + 1
}

// append formats argument n.
func (d *directive) append(L *lua.LState, buf []byte, n int) []byte {
	switch d.verb {
	case 'c':
		return append(buf, cString(string(d.pad(nil, string([]byte{byte(truncate32(argNumber(L, n, "format")))}), false)))...)
	case 'd', 'i':
		return d.integer(buf, truncate(argNumber(L, n, "format")))
	case 'o', 'u', 'x', 'X':
		return d.unsigned(buf, argNumber(L, n, "format"))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(buf, argNumber(L, n, "format"))
	case 'q':
		return appendQuoted(buf, argString(L, n, "format"))
	case 's':
		s := argString(L, n, "format")
		if d.precision < 0 && len(s) >= maxFormatted {
			return append(buf, s...)
		}
		s = cString(s)
		if d.precision >= 0 && d.precision < len(s) {
			s = s[:d.precision]
		}
		return d.pad(buf, s, false)
	}
	fail(L, "invalid option '%%%s' to 'format'", cString(string([]byte{d.verb})))
	return nil
}

// maxFormatted is the length from which strings are used whole, including zero bytes. A zero byte ends a shorter
// string.
const maxFormatted = 100

func (d *directive) has(flag byte) bool { return strings.IndexByte(d.flags, flag) >= 0 }

// pad appends s, which is a number if numeric is set, padded to the directive's width.
func (d *directive) pad(buf []byte, s string, numeric bool) []byte {
	missing := d.width - len(s)
	switch {
	case missing <= 0:
		return append(buf, s...)
	case d.has('-'):
		buf = append(buf, s...)
		return append(buf, strings.Repeat(" ", missing)...)
	case numeric && d.has('0'):
		sign := 0
		if s[0] == '-' || s[0] == '+' || s[0] == ' ' {
			sign = 1
		}
		if len(s) > sign+1 && s[sign] == '0' && s[sign+1]|0x20 == 'x' {
			sign += 2
		}
		buf = append(buf, s[:sign]...)
		buf = append(buf, strings.Repeat("0", missing)...)
		return append(buf, s[sign:]...)
	}
	buf = append(buf, strings.Repeat(" ", missing)...)
	return append(buf, s...)
}

// sign returns the beginning of a number that is not negative.
func (d *directive) sign() string {
	switch {
	case d.has('+'):
		return "+"
	case d.has(' '):
		return " "
	}
	return ""
}

func (d *directive) integer(buf []byte, n int64) []byte {
	digits := strings.TrimPrefix(fmt.Sprint(n), "-")
	sign := "-"
	if n >= 0 {
		sign = d.sign()
	}
	digits = d.digits(digits)
	return d.pad(buf, sign+digits, d.precision < 0)
}

// digits pads an integer's digits to the precision.
func (d *directive) digits(s string) string {
	if d.precision == 0 && s == "0" {
		return ""
	}
	if missing := d.precision - len(s); missing > 0 {
		return strings.Repeat("0", missing) + s
	}
	return s
}

func (d *directive) unsigned(buf []byte, f float64) []byte {
	n := unsigned(f)
	var s, prefix string
	switch d.verb {
	case 'o':
		s = d.digits(fmt.Sprintf("%o", n))
		if d.has('#') && !strings.HasPrefix(s, "0") {
			s = "0" + s
		}
		return d.pad(buf, s, d.precision < 0)
	case 'u':
		s = fmt.Sprint(n)
	case 'x', 'X':
		s = fmt.Sprintf("%"+string(rune(d.verb)), n)
		if d.has('#') && n != 0 {
			prefix = "0" + string(rune(d.verb))
		}
	}
	return d.pad(buf, prefix+d.digits(s), d.precision < 0)
}

func (d *directive) float(buf []byte, f float64) []byte {
	sign := d.sign()
	if math.Signbit(f) {
		sign, f = "-", -f
	}
	upper := d.verb == 'E' || d.verb == 'G'
	if math.IsInf(f, 0) || math.IsNaN(f) {
		s := "inf"
		if math.IsNaN(f) {
			s = "nan"
		}
		if upper {
			s = strings.ToUpper(s)
		}
		return d.pad(buf, sign+s, false)
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	var s string
	switch {
	case d.verb|0x20 != 'g':
		point := ""
		if d.has('#') {
			point = "#"
		}
		s = fmt.Sprintf("%"+point+".*"+string(rune(d.verb)), precision, f)
	case d.has('#'):
		s = fmt.Sprintf("%#.*"+string(rune(d.verb)), max(precision, 1), f)
	default:
		s = string(appendG(nil, f, max(precision, 1)))
		if upper {
			s = strings.ToUpper(s)
		}
	}
	return d.pad(buf, sign+s, true)
}

// appendQuoted appends a string in a form that Lua can read.
func appendQuoted(buf []byte, s string) []byte {
	buf = append(buf, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			buf = append(buf, '\\', c)
		case '\r':
			buf = append(buf, `\r`...)
		case 0:
			buf = append(buf, `\000`...)
		default:
			buf = append(buf, c)
		}
	}
	return append(buf, '"')
}
