// Package glob matches byte strings against the glob patterns of KEYS, SCAN,
// PSUBSCRIBE, CONFIG GET and the other commands that take a pattern.
package glob

// Match reports whether the whole of s matches pattern. The pattern has these elements:
//
//	?       any one byte
//	*       any run of bytes, also none
//	[ab]    one of the listed bytes; [^ab] none of them; [a-z] a range, in either order
//	\x      the byte x itself, inside a class as well
//
// An unclosed class ends with the pattern, and a backslash at the very end stands for itself. An empty s matches only
// the empty pattern, not even "*": Redis compares the same way (its KEYS and SCAN treat a lone "*" as "no pattern"
// before that).
//
// With nocase, ASCII letters match in either case, except after a backslash inside a class.
//
// A pattern with more than maxStars stars, each followed by something, does not match where all of them would be
// needed.
//
// Only the latest star is ever retried, because giving an earlier one more bytes cannot turn a failure into a match.
// The work is therefore bounded by len(pattern) times len(s), whatever the pattern.
func Match(pattern, s []byte, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	p, i := 0, 0
	stars := 0
	retry, mark := -1, 0 // pattern position after the latest star; its continuation in s
	for i < len(s) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				p++
				if p == len(pattern) {
					return true
				}
				if pattern[p] != '*' {
					stars++
				}
				if stars > maxStars {
					return false
				}
				retry, mark = p, i
				continue
			}
			if n, ok := matchOne(pattern[p:], s[i], nocase); ok {
				p += n
				i++
				continue
			}
		}
		if retry < 0 {
			return false
		}
		mark++
		p, i = retry, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// maxStars is how deep Redis recurses, once for each run of stars.
const maxStars = 1000

// matchOne compares c with the first element of p, which is not a star, and
// returns the length of that element if it matches.
func matchOne(p []byte, c byte, nocase bool) (n int, ok bool) {
	switch {
	case p[0] == '?':
		return 1, true
	case p[0] == '[':
		return matchClass(p, c, nocase)
	case p[0] == '\\' && len(p) >= 2:
		return 2, equal(p[1], c, nocase)
	}
	return 1, equal(p[0], c, nocase)
}

// matchClass compares c with the class at the start of p and returns the
// length of the class.
func matchClass(p []byte, c byte, nocase bool) (n int, ok bool) {
	i := 1
	negated := i < len(p) && p[i] == '^'
	if negated {
		i++
	}
	found := false
	for i < len(p) && p[i] != ']' {
		switch {
		case p[i] == '\\' && len(p)-i >= 2:
			found = found || p[i+1] == c
			i += 2
		case len(p)-i >= 3 && p[i+1] == '-':
			found = found || inRange(p[i], p[i+2], c, nocase)
			i += 3
		default:
			found = found || equal(p[i], c, nocase)
			i++
		}
	}
	if i < len(p) {
		i++ // the closing bracket
	}
	return i, found != negated
}

// inRange orders the ends before it folds case, and compares bytes as signed ones, as Redis does on most machines.
func inRange(from, to, c byte, nocase bool) bool {
	lo, hi := int8(from), int8(to)
	if lo > hi {
		lo, hi = hi, lo
	}
	if nocase {
		lo, hi, c = int8(lower(byte(lo))), int8(lower(byte(hi))), lower(c)
	}
	return lo <= int8(c) && int8(c) <= hi
}

func equal(a, b byte, nocase bool) bool {
	return a == b || nocase && lower(a) == lower(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
