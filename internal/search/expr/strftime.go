package expr

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// composed are the conversions that expand to others, in the C locale.
var composed = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'r': "%I:%M:%S %p", 'R': "%H:%M", 'T': "%H:%M:%S",
	'x': "%m/%d/%y", 'X': "%H:%M:%S",
}

// appendTime appends an instant in a layout of strftime. It may stop once more than most bytes are written.
func appendTime(dst []byte, t time.Time, layout string, most int) []byte {
	for i := 0; i < len(layout) && len(dst) <= most; i++ {
		if layout[i] != '%' {
			dst = append(dst, layout[i])
			continue
		}
		start := i
		i++
		pad, upper := byte(0), false
		for ; i < len(layout) && strings.IndexByte("_-0^#", layout[i]) >= 0; i++ {
			if c := layout[i]; c == '^' || c == '#' {
				upper = true
			} else {
				pad = c
			}
		}
		if i < len(layout) && (layout[i] == 'E' || layout[i] == 'O') {
			i++
		}
		if i == len(layout) {
			return append(dst, layout[start:]...)
		}
		before := len(dst)
		var ok bool
		if dst, ok = appendConversion(dst, t, layout[i], pad); !ok {
			dst = append(dst, layout[start:i+1]...)
		} else if upper {
			copy(dst[before:], bytes.ToUpper(dst[before:]))
		}
	}
	return dst
}

// appendConversion appends one conversion. It returns false if there is no such conversion.
func appendConversion(dst []byte, t time.Time, c, pad byte) ([]byte, bool) {
	if layout, ok := composed[c]; ok {
		return appendTime(dst, t, layout, len(dst)+256), true
	}
	num := func(n, width int, usual byte) ([]byte, bool) { return appendPadded(dst, n, width, usual, pad), true }
	hour12 := (t.Hour()+11)%12 + 1
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case 'a':
		return append(dst, t.Weekday().String()[:3]...), true
	case 'A':
		return append(dst, t.Weekday().String()...), true
	case 'b', 'h':
		return append(dst, t.Month().String()[:3]...), true
	case 'B':
		return append(dst, t.Month().String()...), true
	case 'C':
		return num(floorDiv(t.Year(), 100), 2, '0')
	case 'd':
		return num(t.Day(), 2, '0')
	case 'e':
		return num(t.Day(), 2, '_')
	case 'G':
		return num(isoYear, 1, '0')
	case 'g':
		return num(isoYear-100*floorDiv(isoYear, 100), 2, '0')
	case 'H':
		return num(t.Hour(), 2, '0')
	case 'I':
		return num(hour12, 2, '0')
	case 'j':
		return num(t.YearDay(), 3, '0')
	case 'k':
		return num(t.Hour(), 2, '_')
	case 'l':
		return num(hour12, 2, '_')
	case 'm':
		return num(int(t.Month()), 2, '0')
	case 'M':
		return num(t.Minute(), 2, '0')
	case 'n':
		return append(dst, '\n'), true
	case 'p':
		return append(dst, half(t, "AM", "PM")...), true
	case 'P':
		return append(dst, half(t, "am", "pm")...), true
	case 's':
		return strconv.AppendInt(dst, t.Unix(), 10), true
	case 'S':
		return num(t.Second(), 2, '0')
	case 't':
		return append(dst, '\t'), true
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1, '0')
	case 'U':
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2, '0')
	case 'V':
		return num(isoWeek, 2, '0')
	case 'w':
		return num(int(t.Weekday()), 1, '0')
	case 'W':
		return num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0')
	case 'y':
		return num(t.Year()-100*floorDiv(t.Year(), 100), 2, '0')
	case 'Y':
		return num(t.Year(), 1, '0')
	case 'z':
		return append(dst, "+0000"...), true
	case 'Z':
		return append(dst, "GMT"...), true
	case '%':
		return append(dst, '%'), true
	}
	return dst, false
}

// appendPadded appends a number with a width. The padding is 0, _ for blanks or - for none.
func appendPadded(dst []byte, n, width int, usual, pad byte) []byte {
	if pad == 0 {
		pad = usual
	}
	digits := strconv.Itoa(n)
	for i := len(digits); i < width && pad != '-'; i++ {
		if pad == '_' {
			dst = append(dst, ' ')
		} else {
			dst = append(dst, '0')
		}
	}
	return append(dst, digits...)
}

func half(t time.Time, am, pm string) string {
	if t.Hour() < 12 {
		return am
	}
	return pm
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
