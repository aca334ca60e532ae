package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// matcher matches Lua's patterns. Its methods take positions in the string (at) and in the pattern (pc); they return
// the end of the match, or noMatch.
type matcher struct {
	L        *lua.LState
	s, p     string
	level    int // captures begun
	captures [maxCaptures]struct {
		start, size int // size may be one of the constants below
	}
	depth int
	effort
}

const (
	maxCaptures = 32
	// maxMatchDepth bounds the recursion, which grows with the pattern and not with the string.
	maxMatchDepth = 4000

	noMatch = -1

	unfinished = -1 // the capture has not ended yet
	placeOnly  = -2 // the capture is a position
)

func (m *matcher) reset() { m.level, m.depth = 0, 0 }

// search finds the first match that begins at start or later.
func (m *matcher) search(start int) (from, to int, ok bool) {
	pc := 0
	if len(m.p) > 0 && m.p[0] == '^' {
		pc = 1
	}
	for at := start; at <= len(m.s); at++ {
		m.reset()
		if end := m.match(at, pc); end != noMatch {
			return at, end, true
		}
		if pc == 1 {
			break
		}
	}
	return 0, 0, false
}

// match matches the pattern from pc on.
func (m *matcher) match(at, pc int) int {
	m.spend(m.L, 1)
	if m.depth++; m.depth > maxMatchDepth {
		fail(m.L, "pattern too complex")
	}
	defer func() { m.depth-- }()
	for pc < len(m.p) {
		switch m.p[pc] {
		case '(':
			if pc+1 < len(m.p) && m.p[pc+1] == ')' {
				return m.begin(at, pc+2, placeOnly)
			}
			return m.begin(at, pc+1, unfinished)
		case ')':
			return m.end(at, pc+1)
		case '$':
			if pc+1 == len(m.p) {
				if at == len(m.s) {
					return at
				}
				return noMatch
			}
		case '%':
			if pc+1 == len(m.p) {
				break
			}
			switch c := m.p[pc+1]; {
			case c == 'b':
				if at = m.balanced(at, pc+2); at == noMatch {
					return noMatch
				}
				pc += 4
				continue
			case c == 'f':
				pc += 2
				if pc >= len(m.p) || m.p[pc] != '[' {
					fail(m.L, "%s", "missing '[' after '%f' in pattern")
				}
				end := m.classEnd(pc)
				var before, here byte
				if at > 0 {
					before = m.s[at-1]
				}
				if at < len(m.s) {
					here = m.s[at]
				}
				if m.inSet(before, pc, end-1) || !m.inSet(here, pc, end-1) {
					return noMatch
				}
				pc = end
				continue
			case c >= '0' && c <= '9':
				if at = m.repeated(at, c); at == noMatch {
					return noMatch
				}
				pc += 2
				continue
			}
		}
		end := m.classEnd(pc)
		suffix := byte(0)
		if end < len(m.p) {
			suffix = m.p[end]
		}
		switch suffix {
		case '?':
			if m.single(at, pc, end) {
				if to := m.match(at+1, end+1); to != noMatch {
					return to
				}
			}
			pc = end + 1
		case '*':
			return m.longest(at, pc, end)
		case '+':
			if !m.single(at, pc, end) {
				return noMatch
			}
			return m.longest(at+1, pc, end)
		case '-':
			return m.shortest(at, pc, end)
		default:
			if !m.single(at, pc, end) {
				return noMatch
			}
			at++
			pc = end
		}
	}
	return at
}

// classEnd returns the end of the single-character class that begins at pc.
func (m *matcher) classEnd(pc int) int {
	c := m.p[pc]
	pc++
	switch c {
	case '%':
		if pc >= len(m.p) {
			fail(m.L, "%s", "malformed pattern (ends with '%')")
		}
		return pc + 1
	case '[':
		if pc < len(m.p) && m.p[pc] == '^' {
			pc++
		}
		for first := true; first || pc >= len(m.p) || m.p[pc] != ']'; first = false {
			if pc >= len(m.p) {
				fail(m.L, "malformed pattern (missing ']')")
			}
			if m.p[pc] == '%' {
				pc++
			}
			pc++
		}
		return pc + 1
	}
	return pc
}

// single reports whether the character at at is in the class p[pc:end].
func (m *matcher) single(at, pc, end int) bool {
	if at >= len(m.s) {
		return false
	}
	c := m.s[at]
	switch m.p[pc] {
	case '.':
		return true
	case '%':
		return inClass(c, m.p[pc+1])
	case '[':
		return m.inSet(c, pc, end-1)
	}
	return m.p[pc] == c
}

// inSet reports whether c is in the set between the brackets at pc and last.
func (m *matcher) inSet(c byte, pc, last int) bool {
	found := true
	pc++
	if m.p[pc] == '^' {
		found = false
		pc++
	}
	for pc < last {
		switch {
		case m.p[pc] == '%':
			if inClass(c, m.p[pc+1]) {
				return found
			}
			pc += 2
		case pc+2 < last && m.p[pc+1] == '-':
			if m.p[pc] <= c && c <= m.p[pc+2] {
				return found
			}
			pc += 3
		default:
			if m.p[pc] == c {
				return found
			}
			pc++
		}
	}
	return !found
}

// inClass reports whether c is in the class written as "%" and name.
func inClass(c, name byte) bool {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	in := false
	switch name | 0x20 {
	case 'a':
		in = lower || upper
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = digit
	case 'l':
		in = lower
	case 'p':
		in = c > 0x20 && c < 0x7f && !lower && !upper && !digit
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = upper
	case 'w':
		in = lower || upper || digit
	case 'x':
		in = digit || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return name == c
	}
	switch {
	case name >= 'a' && name <= 'z':
		return in
	case name >= 'A' && name <= 'Z':
		return !in
	}
	return name == c // not a letter, although its lower-case form looks like one
}

// longest matches as many characters of a class as the rest of the pattern allows.
func (m *matcher) longest(at, pc, end int) int {
	n := 0
	for m.single(at+n, pc, end) {
		n++
	}
	m.spend(m.L, n)
	for ; n >= 0; n-- {
		if to := m.match(at+n, end+1); to != noMatch {
			return to
		}
	}
	return noMatch
}

// shortest matches as few characters of a class as the rest of the pattern allows.
func (m *matcher) shortest(at, pc, end int) int {
	for {
		if to := m.match(at, end+1); to != noMatch {
			return to
		}
		if !m.single(at, pc, end) {
			return noMatch
		}
		at++
	}
}

// begin opens a capture.
func (m *matcher) begin(at, pc, size int) int {
	if m.level >= maxCaptures {
		fail(m.L, "too many captures")
	}
	m.captures[m.level].start, m.captures[m.level].size = at, size
	m.level++
	to := m.match(at, pc)
	if to == noMatch {
		m.level--
	}
	return to
}

// end closes the innermost open capture.
func (m *matcher) end(at, pc int) int {
	i := m.level - 1
	for i >= 0 && m.captures[i].size != unfinished {
		i--
	}
	if i < 0 {
		fail(m.L, "invalid pattern capture")
	}
	m.captures[i].size = at - m.captures[i].start
	to := m.match(at, pc)
	if to == noMatch {
		m.captures[i].size = unfinished
	}
	return to
}

// balanced matches "%b": from an opening character to its closing one.
func (m *matcher) balanced(at, pc int) int {
	if pc+1 >= len(m.p) {
		fail(m.L, "unbalanced pattern")
	}
	if at >= len(m.s) || m.s[at] != m.p[pc] {
		return noMatch
	}
	open := 1
	for i := at + 1; i < len(m.s); i++ {
		m.spend(m.L, 1)
		switch m.s[i] {
		case m.p[pc+1]:
			if open--; open == 0 {
				return i + 1
			}
		case m.p[pc]:
			open++
		}
	}
	return noMatch
}

// repeated matches the text of an earlier capture.
func (m *matcher) repeated(at int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].size == unfinished {
		fail(m.L, "invalid capture index")
	}
	c := m.captures[i]
	if c.size == placeOnly {
		return noMatch
	}
	size := c.size
	if len(m.s)-at < size || m.s[c.start:c.start+size] != m.s[at:at+size] {
		return noMatch
	}
	return at + size
}

// capture returns a capture of the match s[from:to]; without captures the whole match is the first.
func (m *matcher) capture(i, from, to int) lua.LValue {
	if i >= m.level {
		if i != 0 {
			fail(m.L, "invalid capture index")
		}
		return lua.LString(m.s[from:to])
	}
	c := m.captures[i]
	switch c.size {
	case unfinished:
		fail(m.L, "unfinished capture")
	case placeOnly:
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.s[c.start : c.start+c.size])
}

// pushCaptures pushes all captures of a match and returns their number.
func (m *matcher) pushCaptures(from, to int) int {
	n := max(m.level, 1)
	for i := range n {
		m.L.Push(m.capture(i, from, to))
	}
	return n
}
