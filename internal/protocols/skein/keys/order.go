package keys

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Keys are ordered as strings of Java are, by UTF-16 code units. That is the order of UTF-8 bytes, except that
// characters beyond U+FFFF come before those from U+E000 on.

// text is UTF-8.
type text interface{ ~string | ~[]byte }

// Compare returns -1, 0 or 1 as a is before, the same as, or behind b. Both must be UTF-8.
func Compare[A, B text](a A, b B) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		switch {
		case x == y:
			continue
		case x >= lastUnits && y >= lastUnits && (x >= supplementary) != (y >= supplementary):
			x, y = y, x
		}
		if x < y {
			return -1
		}
		return 1
	}
	switch {
	case len(a) < len(b):
		return -1
	case len(a) > len(b):
		return 1
	}
	return 0
}

const (
	lastUnits     = 0xee // the least first byte of a character from U+E000 on
	supplementary = 0xf0 // the least first byte of one beyond U+FFFF
)

// Contains reports whether a range has a key: start is in it and end is not. An empty start, or a single NUL, is
// before all keys, and an empty end behind them.
func Contains[K, B text](start, end B, key K) bool {
	return (FromFirst(start) || Compare(key, start) >= 0) && (len(end) == 0 || Compare(key, end) < 0)
}

// FromFirst reports whether a range with this start includes the first key.
func FromFirst[B text](start B) bool { return len(start) == 0 || len(start) == 1 && start[0] == 0 }

// Member appends a key in the form whose byte order is the order of keys: UTF-8, but the two surrogates of a character
// beyond U+FFFF are written as if they were characters (CESU-8).
func Member(dst, key []byte) []byte {
	for {
		i := bytes.IndexFunc(key, func(r rune) bool { return r > 0xffff })
		if i < 0 {
			return append(dst, key...)
		}
		dst = append(dst, key[:i]...)
		r, size := utf8.DecodeRune(key[i:])
		high, low := utf16.EncodeRune(r)
		dst = appendUnit(appendUnit(dst, high), low)
		key = key[i+size:]
	}
}

// appendUnit appends a surrogate.
func appendUnit(dst []byte, unit rune) []byte {
	return append(dst, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
}

// surrogates is the length of two of them in Member's form.
const surrogates = 6

// Key appends the key from which Member made a text. It copies invalid parts unchanged.
func Key(dst, member []byte) []byte {
	for {
		i := bytes.IndexByte(member, 0xed)
		if i < 0 {
			return append(dst, member...)
		}
		dst, member = append(dst, member[:i]...), member[i:]
		if r := pair(member); r >= 0 {
			dst, member = utf8.AppendRune(dst, r), member[surrogates:]
		} else {
			dst, member = append(dst, member[0]), member[1:]
		}
	}
}

// pair returns the character whose two surrogates b begins with, -1 if it does not.
func pair(b []byte) rune {
	if len(b) < surrogates || b[3] != 0xed || b[1]&0xf0 != 0xa0 || b[4]&0xf0 != 0xb0 {
		return -1
	}
	unit := func(b []byte) rune { return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f) }
	return utf16.DecodeRune(unit(b), unit(b[3:]))
}
