package expr

import (
	"strconv"
	"strings"
	"time"
)

// timeParser has the fields of a parsed time. Missing fields keep the values of an empty struct tm: the year 1900,
// and the day 0 of January.
type timeParser struct {
	year, month, day     int // the month from 0 on
	hour, minute, second int
	yearDay, weekDay     int
	week                 int
	century              int // -1 if the text does not have it

	twelve, pm               bool
	hasMonth, hasDay         bool
	hasYearDay, hasWeekDay   bool
	hasCenturyYear, wantsDay bool
	sundayWeeks, mondayWeeks bool
	isEpoch                  bool
	epoch                    int64
}

// parse reads s in a layout of strptime and returns what is left of s.
func (p *timeParser) parse(s, layout string) (string, bool) {
	for i := 0; i < len(layout); i++ {
		c := layout[i]
		switch {
		case isSpace(c):
			s = skipSpace(s)
			continue
		case c != '%' || i+1 == len(layout):
			if s == "" || s[0] != c {
				return s, false
			}
			s = s[1:]
			continue
		}
		i++
		for i+1 < len(layout) && strings.IndexByte("_-0^#EO", layout[i]) >= 0 {
			i++
		}
		var ok bool
		if s, ok = p.conversion(s, layout[i]); !ok {
			return s, false
		}
	}
	return s, true
}

// conversion reads the text of one conversion.
func (p *timeParser) conversion(s string, c byte) (rest string, ok bool) {
	if layout, ok := composed[c]; ok {
		return p.parse(s, layout)
	}
	n := 0
	switch c {
	case '%':
		return strings.CutPrefix(s, "%")
	case 'n', 't':
		return skipSpace(s), true
	case 'a', 'A':
		rest, p.weekDay, ok = name7(s)
		p.hasWeekDay = true
	case 'b', 'B', 'h':
		rest, p.month, ok = name12(s)
		p.hasMonth, p.wantsDay = true, true
	case 'C':
		rest, p.century, ok = digits(s, 0, 99, 2)
		p.wantsDay = true
	case 'd', 'e':
		rest, p.day, ok = digits(s, 1, 31, 2)
		p.hasDay, p.wantsDay = true, true
	case 'H', 'k':
		rest, p.hour, ok = digits(s, 0, 23, 2)
		p.twelve = false
	case 'I', 'l':
		rest, n, ok = digits(s, 1, 12, 2)
		p.hour, p.twelve = n%12, true
	case 'j':
		rest, n, ok = digits(s, 1, 366, 3)
		p.yearDay, p.hasYearDay = n-1, true
	case 'm':
		rest, n, ok = digits(s, 1, 12, 2)
		p.month, p.hasMonth, p.wantsDay = n-1, true, true
	case 'M':
		rest, p.minute, ok = digits(s, 0, 59, 2)
	case 'p', 'P':
		if len(s) < 2 {
			return s, false
		}
		p.pm = strings.EqualFold(s[:2], "PM")
		return s[2:], p.pm || strings.EqualFold(s[:2], "AM")
	case 's':
		rest = strings.TrimLeft(s, "0123456789")
		n, err := strconv.ParseInt(s[:len(s)-len(rest)], 10, 64)
		p.epoch, p.isEpoch, ok = n, true, err == nil
	case 'S':
		rest, p.second, ok = digits(s, 0, 61, 2)
	case 'u':
		rest, n, ok = digits(s, 1, 7, 1)
		p.weekDay, p.hasWeekDay = n%7, true
	case 'w':
		rest, p.weekDay, ok = digits(s, 0, 6, 1)
		p.hasWeekDay = true
	case 'U':
		rest, p.week, ok = digits(s, 0, 53, 2)
		p.sundayWeeks = true
	case 'W':
		rest, p.week, ok = digits(s, 0, 53, 2)
		p.mondayWeeks = true
	case 'V':
		rest, _, ok = digits(s, 0, 53, 2)
	case 'g':
		rest, _, ok = digits(s, 0, 99, 2)
	case 'G':
		rest, _, ok = digits(s, 0, 9999, 4)
	case 'y':
		rest, n, ok = digits(s, 0, 99, 2)
		if p.year = 1900 + n; n < 69 {
			p.year += 100
		}
		p.hasCenturyYear, p.wantsDay = true, true
	case 'Y':
		rest, p.year, ok = digits(s, 0, 9999, 4)
		p.hasCenturyYear, p.century, p.wantsDay = false, -1, true
	case 'z':
		return zone(s)
	case 'Z':
		s = skipSpace(s)
		for s != "" && !isSpace(s[0]) {
			s = s[1:]
		}
		return s, true
	}
	return rest, ok
}

// seconds returns the instant, as UTC.
func (p *timeParser) seconds() int64 {
	if p.isEpoch {
		return p.epoch
	}
	if p.twelve && p.pm {
		p.hour += 12
	}
	if p.century >= 0 {
		if p.hasCenturyYear {
			p.year = p.year%100 + p.century*100
		} else {
			p.year = p.century * 100
		}
	}
	if (p.sundayWeeks || p.mondayWeeks) && p.hasWeekDay && !p.hasYearDay {
		first := 0 // the day with which weeks begin
		if !p.sundayWeeks {
			first = 1
		}
		newYear := int(time.Date(p.year, 1, 1, 0, 0, 0, 0, time.UTC).Weekday())
		p.yearDay = (7-(newYear-first))%7 + (p.week-1)*7 + (p.weekDay-first+7)%7
		p.hasYearDay = true
	}
	if p.hasYearDay && (p.wantsDay || p.hasWeekDay) && !(p.hasMonth && p.hasDay) {
		t := time.Date(p.year, 1, 1+p.yearDay, 0, 0, 0, 0, time.UTC)
		if !p.hasMonth {
			p.month = int(t.Month()) - 1
		}
		if !p.hasDay {
			p.day = t.Day()
		}
	}
	return time.Date(p.year, time.Month(p.month+1), p.day, p.hour, p.minute, p.second, 0, time.UTC).Unix()
}

func skipSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

// digits reads a number of at most n digits, which ends before it becomes too large.
func digits(s string, least, most, n int) (rest string, number int, ok bool) {
	s = strings.TrimLeft(s, " ")
	if s == "" || !isDigit(s[0]) {
		return s, 0, false
	}
	for first := true; n > 0 && s != "" && isDigit(s[0]) && (first || number*10 <= most); first = false {
		number = number*10 + int(s[0]-'0')
		s = s[1:]
		n--
	}
	return s, number, least <= number && number <= most
}

// name7 reads the name of a day, whole or its first three letters.
func name7(s string) (string, int, bool) {
	return nameOf(s, 7, func(i int) string { return time.Weekday(i).String() })
}

// name12 reads the name of a month.
func name12(s string) (string, int, bool) {
	return nameOf(s, 12, func(i int) string { return time.Month(i + 1).String() })
}

func nameOf(s string, n int, of func(int) string) (rest string, number int, ok bool) {
	for i := range n {
		full := of(i)
		for _, form := range []string{full, full[:3]} {
			if len(s) >= len(form) && strings.EqualFold(s[:len(form)], form) {
				return s[len(form):], i, true
			}
		}
	}
	return s, 0, false
}

// zone reads Z, +hh, +hhmm or +hh:mm. As in the reference, it does not change the time.
func zone(s string) (string, bool) {
	s = skipSpace(s)
	if rest, ok := strings.CutPrefix(s, "Z"); ok {
		return rest, true
	}
	if s == "" || s[0] != '+' && s[0] != '-' {
		return s, false
	}
	s = s[1:]
	n := 0
	for n < 4 && s != "" && (isDigit(s[0]) || n == 2 && s[0] == ':' && len(s) > 1 && isDigit(s[1])) {
		if isDigit(s[0]) {
			n++
		}
		s = s[1:]
	}
	return s, n == 2 || n == 4
}
