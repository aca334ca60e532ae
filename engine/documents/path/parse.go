// Package path has JSONPath: the paths and expressions that find values in a JSON document.
//
// A path that begins with $ selects any number of values. A legacy path, which begins with a name or a dot, means the
// first match, or all matches in a command that changes them. An expression that is not a path computes its values: a
// projection.
package path

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/documents"
)

// Limits on paths.
const (
	maxNesting  = 128  // of parentheses, functions, filters and literals
	maxSegments = 1024 // of one path
)

// Path is a path or a projection.
type Path struct {
	// Text is the path as given, Fixed the same as JSONPath.
	Text, Fixed string
	// Legacy says that the path uses the first version of the syntax.
	Legacy bool
	expr   expr
}

// Root is the path of a whole document.
var Root = &Path{Text: "$", Fixed: "$", expr: &query{absolute: true}}

// LegacyRoot is the legacy path of a whole document.
var LegacyRoot = &Path{Text: ".", Fixed: "$", Legacy: true, expr: &query{absolute: true}}

// Parse parses a path or a projection.
func Parse(text string) (*Path, error) {
	if !utf8.ValidString(text) {
		return nil, documents.ErrUTF8
	}
	p := &Path{Text: text, Fixed: text, Legacy: !isJSONPath(text)}
	switch {
	case !p.Legacy:
	case text == ".":
		p.Fixed = "$"
	case text != "" && (text[0] == '.' || text[0] == '['):
		p.Fixed = "$" + text
	default:
		p.Fixed = "$." + text
	}
	ps := parser{s: p.Fixed}
	e, err := ps.whole()
	if err != nil {
		return nil, err
	}
	p.expr = e
	return p, nil
}

// isJSONPath reports whether a text is not a legacy path: it begins with $ or a parenthesis, perhaps after a sign, or
// with a function call. $a is the legacy path of a member.
func isJSONPath(text string) bool {
	rest := text
	if text != "" && (text[0] == '-' || text[0] == '+') {
		rest = strings.TrimLeft(text[1:], " ")
	}
	switch {
	case rest == "":
		return false
	case rest[0] == '(', rest == "$":
		return true
	case rest[0] == '$':
		return strings.IndexByte(".[~", rest[1]) >= 0
	}
	return strings.HasPrefix(strings.TrimLeft(text[nameLen(text):], " "), "(") && nameLen(text) > 0
}

// nameLen returns the length of the function name at the start of a text, 0 if there is none.
func nameLen(text string) (n int) {
	for n < len(text) {
		c := text[n]
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (n == 0 || c != '_' && (c < '0' || c > '9')) {
			break
		}
		n++
	}
	return n
}

// IsRoot reports whether the path selects the whole document.
func (p *Path) IsRoot() bool {
	q, ok := p.expr.(*query)
	return ok && len(q.segments) == 0
}

// IsProjection reports whether the path computes values instead of selecting them.
func (p *Path) IsProjection() bool {
	_, ok := p.expr.(*query)
	return !ok
}

// Static reports whether every step of the path is one name or one index, so that it selects at most one place.
func (p *Path) Static() bool {
	q, ok := p.expr.(*query)
	return ok && !slices.ContainsFunc(q.segments, func(s segment) bool {
		return s.descend || len(s.selectors) != 1 || s.selectors[0].kind != byName && s.selectors[0].kind != byIndex
	})
}

// Distinct reports whether the path cannot select a value twice.
func (p *Path) Distinct() bool {
	q, ok := p.expr.(*query)
	descents := 0
	return ok && !slices.ContainsFunc(q.segments, func(s segment) bool {
		descents += btoi(s.descend)
		return descents > 1 || len(s.selectors) != 1
	})
}

// Parent returns the path without its last step, and the name in that step; ok is false if the step is not a name.
func (p *Path) Parent() (parent *Path, name string, ok bool) {
	q, isQuery := p.expr.(*query)
	if !isQuery || len(q.segments) == 0 {
		return nil, "", false
	}
	n := len(q.segments) - 1
	last := q.segments[n]
	parent = &Path{Text: p.Text, Fixed: p.Fixed, Legacy: p.Legacy, expr: &query{absolute: true, segments: q.segments[:n]}}
	if last.descend || len(last.selectors) != 1 || last.selectors[0].kind != byName {
		return parent, "", false
	}
	return parent, last.selectors[0].name, true
}

// AppendPlace appends the path of a place in the form that Parse reads.
func AppendPlace(dst []byte, p *documents.Place) []byte {
	if p == nil {
		return append(dst, '$')
	}
	dst = append(AppendPlace(dst, p.Up), '[')
	if p.Index >= 0 {
		dst = strconv.AppendInt(dst, int64(p.Index), 10)
	} else {
		dst = documents.AppendQuoted(dst, p.Name)
	}
	return append(dst, ']')
}

// words are the operators that are written as words.
var words = []string{"in", "nin", "subsetof", "anyof", "noneof", "sizeof", "size", "empty"}

type parser struct {
	s       string
	at      int
	nesting int
}

// fail returns an error that says what was expected at the present position.
func (p *parser) fail(expected string) error {
	return fmt.Errorf("Error occurred at position %d, Error at position %d: expected one of the following: %s", p.at, p.at, expected)
}

func (p *parser) space() {
	for p.at < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.at]) >= 0 {
		p.at++
	}
}

// peek returns the byte at the present position, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.s) {
		return p.s[p.at]
	}
	return 0
}

// take skips s and returns true if the text continues with it.
func (p *parser) take(s string) bool {
	if strings.HasPrefix(p.s[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

// need is take for a required s.
func (p *parser) need(s string) error {
	if p.take(s) {
		return nil
	}
	return p.fail("`" + s + "`")
}

// nest increases the nesting depth until leave.
func (p *parser) nest() error {
	if p.nesting++; p.nesting > maxNesting {
		return fmt.Errorf("Error occurred at position 0, JSONPath nesting too deep (max depth %d)", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.nesting-- }

// whole reads the whole text.
func (p *parser) whole() (expr, error) {
	p.space()
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.s) {
		return nil, p.fail("the end of the path")
	}
	for {
		g, ok := e.(*group)
		if !ok {
			return e, nil
		}
		e = g.expr
	}
}

func (p *parser) or() (expr, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.leave()
	return p.sequence(p.and, func() expr {
		if p.take("||") {
			return &logical{}
		}
		return nil
	})
}

func (p *parser) and() (expr, error) {
	return p.sequence(p.not, func() expr {
		if p.take("&&") {
			return &logical{and: true}
		}
		return nil
	})
}

func (p *parser) sum() (expr, error) {
	return p.sequence(p.product, func() expr { return p.arithmetic("+-") })
}

func (p *parser) product() (expr, error) {
	return p.sequence(p.unary, func() expr { return p.arithmetic("*/%") })
}

func (p *parser) arithmetic(operators string) expr {
	if c := p.peek(); c != 0 && strings.IndexByte(operators, c) >= 0 {
		p.at++
		return &arithmetic{operator: c}
	}
	return nil
}

// sequence reads operands separated by left-associative operators. operator returns the node for the next operator, nil
// if there is none.
func (p *parser) sequence(operand func() (expr, error), operator func() expr) (expr, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		p.space()
		e := operator()
		if e == nil {
			return left, nil
		}
		p.space()
		right, err := operand()
		if err != nil {
			return nil, err
		}
		switch e := e.(type) {
		case *logical:
			// One list for a whole chain keeps evaluation from nesting.
			if l, ok := left.(*logical); ok && l.and == e.and {
				l.operands = append(l.operands, right)
				continue
			}
			e.operands = []expr{left, right}
		case *arithmetic:
			if a, ok := left.(*arithmetic); ok {
				if e.depth = a.depth + 1; e.depth > maxSegments {
					return nil, p.fail("fewer operators")
				}
			}
			e.left, e.right = left, right
		}
		left = e
	}
}

func (p *parser) not() (expr, error) {
	n := 0
	for p.peek() == '!' && !strings.HasPrefix(p.s[p.at:], "!=") {
		p.at++
		p.space()
		n++
	}
	e, err := p.comparison()
	if err != nil || n == 0 {
		return e, err
	}
	return &negation{operand: e, twice: n%2 == 0}, nil
}

// comparisons are the comparison operators, longer ones before their prefixes.
var comparisons = []string{"==", "!=", "<=", ">=", "<", ">", "=~"}

func (p *parser) comparison() (expr, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	p.space()
	operator := ""
	for _, o := range comparisons {
		if p.take(o) {
			operator = o
			break
		}
	}
	if operator == "" {
		for _, o := range words {
			if end := p.at + len(o); strings.HasPrefix(p.s[p.at:], o) && (end == len(p.s) || !isName(p.s[end])) {
				p.at, operator = end, o
				break
			}
		}
	}
	if operator == "" {
		return left, nil
	}
	p.space()
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	return &comparison{operator: operator, left: left, right: right}, nil
}

func (p *parser) unary() (expr, error) {
	c := p.peek()
	if c != '-' && c != '+' {
		return p.primary()
	}
	if p.at+1 < len(p.s) && c == '-' && '0' <= p.s[p.at+1] && p.s[p.at+1] <= '9' {
		return p.primary()
	}
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.at++
	p.space()
	e, err := p.unary()
	if err != nil {
		return nil, err
	}
	return &sign{operand: e, minus: c == '-'}, nil
}

func (p *parser) primary() (expr, error) {
	c := p.peek()
	switch {
	case c == '$' || c == '@':
		p.at++
		return p.query(&query{absolute: c == '$'})
	case c == '(':
		p.at++
		p.space()
		e, err := p.or()
		if err != nil {
			return nil, err
		}
		p.space()
		if err := p.need(")"); err != nil {
			return nil, err
		}
		return p.methods(&group{e})
	case c == '"' || c == '\'':
		s, err := p.quoted()
		if err != nil {
			return nil, err
		}
		return &literal{documents.Text(s)}, nil
	case c == '[' || c == '{':
		return p.container()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	name := p.word()
	switch name {
	case "true", "false":
		return &literal{documents.Bool(name == "true")}, nil
	case "null":
		return &literal{}, nil
	}
	p.space()
	if name == "" || p.peek() != '(' {
		return nil, p.fail("a path, a literal, a function")
	}
	e, err := p.call(name, nil)
	if err != nil {
		return nil, err
	}
	return p.methods(e)
}

// word reads the name of a function.
func (p *parser) word() string {
	from := p.at
	p.at += nameLen(p.s[from:])
	return p.s[from:p.at]
}

// call reads the arguments of a function; receiver is the first one if known. An unknown function returns Nothing.
func (p *parser) call(name string, receiver expr) (expr, error) {
	f := functions[name]
	if f == nil {
		f = &function{do: nothing}
	}
	c := &call{name: name, function: f}
	if receiver != nil {
		c.arguments = append(c.arguments, receiver)
	}
	p.at++ // the parenthesis
	for p.space(); !p.take(")"); p.space() {
		if len(c.arguments) > btoi(receiver != nil) {
			if err := p.need(","); err != nil {
				return nil, err
			}
			p.space()
		}
		e, err := p.or()
		if err != nil {
			return nil, err
		}
		if c.arguments = append(c.arguments, e); len(c.arguments) > maxSegments {
			return nil, p.fail("fewer arguments")
		}
	}
	return c, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// methods reads function calls that take the expression as their first argument.
func (p *parser) methods(e expr) (expr, error) {
	for n := 0; p.peek() == '.'; n++ {
		from := p.at
		p.at++
		name := p.word()
		if name == "" || p.peek() != '(' || n == maxNesting {
			p.at = from
			return e, nil
		}
		var err error
		if e, err = p.call(name, e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// query reads the steps of a path.
func (p *parser) query(q *query) (expr, error) {
	for len(q.segments) <= maxSegments {
		s := segment{}
		switch {
		case p.take("~"):
			return &call{name: "~", function: functions["keys"], arguments: []expr{q}}, nil
		case p.take(".."):
			s.descend = true
			if p.peek() == '[' {
				break
			}
			fallthrough
		case p.take("."):
			if p.peek() == '[' {
				break
			}
			if p.take("*") {
				s.selectors = []selector{{kind: all}}
				break
			}
			from := p.at
			for p.at < len(p.s) && isName(p.s[p.at]) {
				p.at++
			}
			name := p.s[from:p.at]
			if name == "" {
				return nil, p.fail("a name, `*` or `[`")
			}
			if p.peek() == '(' && !s.descend && nameLen(name) == len(name) {
				e, err := p.call(name, q)
				if err != nil {
					return nil, err
				}
				return p.methods(e)
			}
			s.selectors = []selector{{kind: byName, name: name}}
		case p.peek() == '[':
		default:
			return q, nil
		}
		if s.selectors == nil {
			var err error
			if s.selectors, err = p.brackets(); err != nil {
				return nil, err
			}
		}
		q.segments = append(q.segments, s)
	}
	return nil, p.fail(fmt.Sprintf("at most %d steps", maxSegments))
}

// isName reports whether a byte may occur in an unquoted name.
func isName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf ||
		strings.IndexByte("_-+/%$^:#`", c) >= 0
}

// brackets reads the selectors in brackets.
func (p *parser) brackets() (s []selector, err error) {
	p.at++
	for {
		p.space()
		one, err := p.selector()
		if err != nil {
			return nil, err
		}
		if s = append(s, one); len(s) > maxSegments {
			return nil, p.fail("a shorter union")
		}
		p.space()
		if p.take("]") {
			return s, nil
		}
		if !p.take(",") {
			return nil, p.fail("`,` or `]`")
		}
	}
}

func (p *parser) selector() (s selector, err error) {
	switch c := p.peek(); {
	case c == '*':
		p.at++
		return selector{kind: all}, nil
	case c == '"' || c == '\'':
		name, err := p.quoted()
		return selector{kind: byName, name: name}, err
	case c == '?':
		p.at++
		p.space()
		e, err := p.or()
		return selector{kind: byFilter, filter: e}, err
	}
	s = selector{kind: byIndex, from: math.MinInt, to: math.MinInt, step: 1}
	var hasFrom bool
	if s.from, hasFrom, err = p.integer(); err != nil {
		return s, err
	}
	p.space()
	if p.peek() != ':' {
		if !hasFrom {
			return s, p.fail("a name in quotes, an index, a slice, `*` or `?`")
		}
		return s, nil
	}
	p.at++
	s.kind, s.hasFrom = bySlice, hasFrom
	p.space()
	if s.to, s.hasTo, err = p.integer(); err != nil {
		return s, err
	}
	if p.space(); p.take(":") {
		p.space()
		step, ok, err := p.integer()
		if err != nil {
			return s, err
		}
		if ok {
			s.step = step
		}
	}
	return s, nil
}

// integer reads an integer if there is one.
func (p *parser) integer() (n int, ok bool, err error) {
	from := p.at
	p.take("-")
	for '0' <= p.peek() && p.peek() <= '9' {
		p.at++
	}
	if p.at == from {
		return 0, false, nil
	}
	if n, err = strconv.Atoi(p.s[from:p.at]); err != nil {
		p.at = from
		return 0, false, p.fail("an integer")
	}
	return n, true, nil
}

// quoted reads a string in single or double quotes.
func (p *parser) quoted() (string, error) {
	quote := p.s[p.at]
	var b []byte
	for i := p.at + 1; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == quote:
			// JSON knows all escapes except the single quote; unknown ones stand for themselves, as in regular
			// expressions.
			v, err := documents.Parse(append(append([]byte{'"'}, b...), '"'))
			if err != nil {
				return "", p.fail("a string")
			}
			p.at = i + 1
			return v.Text(), nil
		case c == '\\' && i+1 < len(p.s):
			i++
			switch next := p.s[i]; {
			case next == '\'':
				b = append(b, next)
			case strings.IndexByte(`"\/bfnrtu`, next) >= 0:
				b = append(b, '\\', next)
			default:
				b = append(b, '\\', '\\', next)
			}
		case c == '"':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, fmt.Sprintf(`\u%04x`, c)...)
		default:
			b = append(b, c)
		}
	}
	p.at = len(p.s)
	return "", p.fail("the end of a string")
}

// container reads an array or object literal.
func (p *parser) container() (expr, error) {
	depth, inString := 0, false
	for i := p.at; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth > 0 {
				break
			}
			v, err := documents.Parse([]byte(p.s[p.at : i+1]))
			if err != nil {
				return nil, p.fail("a JSON literal")
			}
			p.at = i + 1
			return &literal{v}, nil
		}
	}
	return nil, p.fail("a JSON literal")
}

// number reads a number literal.
func (p *parser) number() (expr, error) {
	from := p.at
	p.at++
	for p.at < len(p.s) {
		c := p.s[p.at]
		if (c == '+' || c == '-') && p.s[p.at-1]|0x20 != 'e' {
			break
		}
		if ('0' > c || c > '9') && strings.IndexByte(".eE+-", c) < 0 {
			break
		}
		p.at++
	}
	v, err := documents.ParseNumber([]byte(p.s[from:p.at]))
	if err != nil {
		p.at = from
		return nil, p.fail("a number")
	}
	return &literal{v}, nil
}
