package text

import (
	"unicode"
	"unicode/utf8"
)

// Fold returns a text in lower case. Each character is mapped by itself: accents stay, ß is not ss, and the two small sigmas of
// Greek are different. Bytes that are no UTF-8 stay as they are.
func Fold(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return string(AppendFold(make([]byte, 0, len(s)+2), s))
		}
	}
	return s
}

// AppendFold appends Fold(s) to dst.
func AppendFold[S string | []byte](dst []byte, s S) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			dst = append(dst, lower[c])
			i++
			continue
		}
		var n int
		dst, n = appendFoldRune(dst, string(s[i:min(i+utf8.UTFMax, len(s))]))
		i += n
	}
	return dst
}

// appendFoldRune appends the first character of s in lower case and returns its length in s.
func appendFoldRune(dst []byte, s string) ([]byte, int) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n <= 1:
		return append(dst, s[0]), 1
	case r == 'İ': // the one character whose small form is two
		return append(dst, "i̇"...), n
	}
	return utf8.AppendRune(dst, unicode.ToLower(r)), n
}

// lower maps ASCII to lower case.
var lower = func() (t [utf8.RuneSelf]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()
