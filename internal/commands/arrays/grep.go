package arrays

import (
	"bytes"
	"math"
	"regexp"
	"regexp/syntax"

	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/internal/command"
)

// Limits on the conditions of ARGREP.
const (
	maxConditions = 250
	maxExpression = 2048   // bytes
	maxProgram    = 10_000 // instructions of a compiled expression
	// maxWork limits the bytes that a command matches, times the instructions of its expressions. Most expressions
	// execute few instructions for each byte; in the worst case the limit takes tens of seconds.
	maxWork = 1 << 32
)

// Errors of ARGREP.
const (
	errConditions     command.Error = "ERR too many predicates, maximum is 250"
	errLongExpression command.Error = "ERR regular expression is too long, maximum is 2048 bytes"
	errNoExpression   command.Error = "ERR regular expression is empty"
	errBackreference  command.Error = "ERR regular expression backreferences are not supported"
	errExpression     command.Error = "ERR invalid regular expression"
	errWork           command.Error = "ERR regular expressions take too long for so many elements"
)

// search holds the conditions of ARGREP.
type search struct {
	conditions       []func(v []byte) bool
	all              bool // all of the conditions must hold, not any
	nocase, withText bool
	limit            int64
	work             int64  // upper bound of the work for expressions so far
	size             int    // instructions of all expressions
	lower            []byte // room for the element in lower case
	lowered          bool   // lower has the present element
}

func cmdGrep(c *command.Ctx) {
	var ends [2]uint64
	for i := range ends {
		switch arg := c.Args[2+i]; string(arg) {
		case "-":
		case "+":
			ends[i] = arrays.MaxIndex
		default:
			var ok bool
			if ends[i], ok = index(c, arg); !ok {
				return
			}
		}
	}
	s := &search{limit: -1}
	if !s.parse(c) {
		return
	}
	a, ok := array(c)
	if !ok {
		return
	}
	if s.limit < 0 {
		s.long(c, a, min(a.Count(), int(min(max(ends[0], ends[1])-min(ends[0], ends[1]), math.MaxInt-1))+1))
	}
	mark, n, seen := c.W.Defer(), 0, 0
	a.Each(ends[0], ends[1], func(at uint64, v []byte) bool {
		if seen++; s.limit > 0 && seen%elementsAsked == 0 {
			s.long(c, a, seen)
		}
		switch {
		case !s.matches(v):
			return s.work <= maxWork
		case s.work > maxWork:
			return false
		}
		if s.withText {
			pair(c, at, v)
		} else {
			c.W.Uint(at)
		}
		n++
		s.limit--
		return s.limit != 0
	})
	if s.work > maxWork {
		c.W.Truncate(int(mark))
		c.Err(errWork)
		return
	}
	c.W.EndArray(mark, n)
}

// elementsAsked is the number of elements after which a search that may end early calls long.
const elementsAsked = 256

// long is Ctx.Long for n elements to search.
func (s *search) long(c *command.Ctx, a *arrays.Array, n int) {
	each := len(s.conditions) + s.size/instructionsAsOne + a.MemoryUsage()/max(a.Count(), 1)/bytesAsOne
	if n > math.MaxInt/each {
		n = math.MaxInt / each
	}
	c.Long(n*each, a.Count())
}

// Sizes that take about as long as an empty element: of expressions, and of the element.
const (
	instructionsAsOne = 8
	bytesAsOne        = 256
)

// parse reads the arguments after the range. If they are wrong, it writes an error and returns false.
func (s *search) parse(c *command.Ctx) bool {
	type condition struct {
		kind string
		text []byte
	}
	var conditions []condition
	for o := c.Options(4); o.Next(); {
		kind := command.Lower(o.Word())
		switch {
		case (kind == "exact" || kind == "match" || kind == "glob" || kind == "re") && o.More():
			if len(conditions) == maxConditions {
				c.Err(errConditions)
				return false
			}
			conditions = append(conditions, condition{kind, o.Arg()})
		case kind == "limit" && o.More():
			var ok bool
			if s.limit, ok = limit(c, o.Arg()); !ok {
				return false
			}
		case kind == "and" || kind == "or":
			s.all = kind == "and"
		case kind == "nocase":
			s.nocase = true
		case kind == "withvalues":
			s.withText = true
		default:
			c.Err(command.ErrSyntax)
			return false
		}
	}
	if len(conditions) == 0 {
		c.Err(command.ErrSyntax)
		return false
	}
	for _, x := range conditions {
		fn, err := s.condition(x.kind, x.text)
		if err != "" {
			c.Err(err)
			return false
		}
		s.conditions = append(s.conditions, fn)
	}
	return true
}

// matches reports whether an element meets the conditions.
func (s *search) matches(v []byte) bool {
	s.lowered = false
	for _, fn := range s.conditions {
		if fn(v) != s.all {
			return !s.all
		}
	}
	return s.all
}

// condition returns the condition of a kind for a text.
func (s *search) condition(kind string, text []byte) (fn func(v []byte) bool, err command.Error) {
	compare := bytes.Equal
	switch kind {
	case "glob":
		return func(v []byte) bool { return glob.Match(text, v, s.nocase) }, ""
	case "re":
		re, size, err := s.compile(text)
		if err != "" {
			return nil, err
		}
		s.size += size
		return func(v []byte) bool {
			s.work += int64(1+len(v)) * int64(size)
			return re.Match(v)
		}, ""
	case "match":
		compare = bytes.Contains
	}
	if !s.nocase {
		return func(v []byte) bool { return compare(v, text) }, ""
	}
	text = appendLower(nil, text)
	return func(v []byte) bool { return compare(s.inLower(v), text) }, ""
}

// inLower returns the element in lower case.
func (s *search) inLower(v []byte) []byte {
	if !s.lowered {
		s.lower, s.lowered = appendLower(s.lower[:0], v), true
	}
	return s.lower
}

// appendLower appends a text with its ASCII letters in lower case.
func appendLower(dst, text []byte) []byte {
	for _, b := range text {
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		dst = append(dst, b)
	}
	return dst
}

// compile compiles a regular expression, and returns the number of its instructions. A point also matches a line
// break.
func (s *search) compile(text []byte) (re *regexp.Regexp, size int, wrong command.Error) {
	switch {
	case len(text) == 0:
		return nil, 0, errNoExpression
	case len(text) > maxExpression:
		return nil, 0, errLongExpression
	case hasBackreference(text):
		return nil, 0, errBackreference
	}
	flags := "(?s)"
	if s.nocase {
		flags = "(?si)"
	}
	expression := flags + string(text)
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, 0, errExpression
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, 0, errExpression
	}
	if re, err = regexp.Compile(expression); err != nil {
		return nil, 0, errExpression
	}
	return re, len(program.Inst), ""
}

// hasBackreference reports whether an expression refers to a group by its number, outside of brackets.
func hasBackreference(text []byte) bool {
	class := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\\' && i+1 < len(text):
			if i++; !class && '1' <= text[i] && text[i] <= '9' {
				return true
			}
		case b == '[' && !class:
			class = true
			if i+1 < len(text) && text[i+1] == '^' {
				i++
			}
			if i+1 < len(text) && text[i+1] == ']' {
				i++
			}
		case b == ']':
			class = false
		}
	}
	return false
}
