// Package query implements the subset of SQL for queries of caches:
//
//	SELECT _VAL | _KEY | * | field, … | COUNT(*) FROM ["cache".]type [[AS] alias]
//	[WHERE condition] [ORDER BY field [ASC | DESC], …] [LIMIT n] [OFFSET n]
//
// A condition compares fields of the objects of a type, "_KEY" and "_VAL" with each other, with literals and with
// arguments ("?") by = <> != < <= > >=, BETWEEN, IN, LIKE and IS [NOT] NULL, joined by AND, OR, NOT and brackets.
// Null is neither equal nor unequal to anything.
package query

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// Statement is a parsed statement.
type Statement struct {
	// Cache is the name before the type, or "". Quoted says that case matters.
	Cache  string
	Quoted bool
	// Table is the type whose objects are selected, as written.
	Table string

	alias   string
	columns []column // nil is "*", all fields of the type
	count   bool     // only COUNT(*)
	where   node
	order   []ordering
	limit   int // -1 is no limit
	offset  int
	args    int // number of arguments
}

// column is a column of the result.
type column struct {
	name string // its name in the result
	node node
}

// ordering is a field that orders the result.
type ordering struct {
	node       node
	descending bool
}

// Limits of a statement.
const (
	maxText  = 64 << 10
	maxDepth = 64
)

// ErrUnsupported says that a statement is not supported; its text says where.
var ErrUnsupported = errors.New("unsupported SQL")

// Parse reads a statement.
func Parse(text string) (*Statement, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%w: the statement is too long", ErrUnsupported)
	}
	p := parser{rest: text}
	p.next()
	st := p.statement()
	return st, p.err
}

// In reports whether the statement selects from the cache with a name and a configuration, which may give it another
// name.
func (st *Statement) In(name string, config *binary.Config) bool {
	if st.Cache == "" {
		return true
	}
	for _, n := range []string{name, config.Schema()} {
		if n == st.Cache || !st.Quoted && strings.EqualFold(n, st.Cache) {
			return true
		}
	}
	return false
}

// token is a word or a sign of a statement.
type token struct {
	kind tokenKind
	text string // in upper case for a word
	from string // the statement from here on, for errors
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenQuoted // "name"
	tokenText   // 'text'
	tokenNumber
	tokenSign
)

// parser reads a statement by recursive descent.
type parser struct {
	rest  string
	tok   token
	err   error
	args  int
	depth int
}

func (p *parser) fail() {
	if p.err == nil {
		at := p.tok.from
		if len(at) > 40 {
			at = at[:40] + "…"
		}
		if at == "" {
			at = "the end"
		} else {
			at = strconv.Quote(at)
		}
		p.err = fmt.Errorf("%w at %s", ErrUnsupported, at)
	}
	p.tok, p.rest = token{}, ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"

// next moves to the next token.
func (p *parser) next() {
	s := strings.TrimLeft(p.rest, " \t\r\n")
	p.tok = token{from: s}
	if s == "" {
		p.rest = ""
		return
	}
	n := 0
	switch c := s[0]; {
	case c == '"' || c == '\'':
		text, end, ok := quoted(s)
		if !ok {
			p.fail()
			return
		}
		p.tok.kind, p.tok.text, n = tokenText, text, end
		if c == '"' {
			p.tok.kind = tokenQuoted
		}
	case c >= '0' && c <= '9', c == '.' && len(s) > 1 && s[1] >= '0' && s[1] <= '9':
		for n = 1; n < len(s) && (isIn(s[n], "0123456789.eE") || isIn(s[n], "+-") && isIn(s[n-1], "eE")); n++ {
		}
		p.tok.kind, p.tok.text = tokenNumber, s[:n]
	case isIn(c, letters) || c >= 0x80:
		for n = 1; n < len(s) && (isIn(s[n], letters) || isIn(s[n], "0123456789") || s[n] >= 0x80); n++ {
		}
		p.tok.kind, p.tok.text = tokenWord, strings.ToUpper(s[:n])
	default:
		if n = 1; len(s) > 1 && (s[:2] == "<=" || s[:2] == ">=" || s[:2] == "<>" || s[:2] == "!=") {
			n = 2
		}
		p.tok.kind, p.tok.text = tokenSign, s[:n]
	}
	p.rest = s[n:]
}

func isIn(c byte, set string) bool { return strings.IndexByte(set, c) >= 0 }

// quoted reads a text in quotes; quotes within it are doubled.
func quoted(s string) (text string, end int, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != s[0] {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != s[0] {
			return b.String(), i + 1, true
		}
		b.WriteByte(s[i])
		i++
	}
	return "", 0, false
}

// takes skips a word or sign if it is next, and reports whether it was.
func (p *parser) takes(text string) bool {
	if p.tok.text != text || p.tok.kind != tokenWord && p.tok.kind != tokenSign {
		return false
	}
	p.next()
	return true
}

// needs is takes for required words.
func (p *parser) needs(texts ...string) {
	for _, text := range texts {
		if !p.takes(text) {
			p.fail()
		}
	}
}

// reserved are the words that cannot be names.
var reserved = map[string]bool{"SELECT": true, "FROM": true, "WHERE": true, "ORDER": true, "BY": true, "LIMIT": true,
	"OFFSET": true, "AND": true, "OR": true, "NOT": true, "IN": true, "LIKE": true, "BETWEEN": true, "IS": true, "NULL": true,
	"AS": true, "ASC": true, "DESC": true, "TRUE": true, "FALSE": true, "GROUP": true, "HAVING": true, "UNION": true,
	"JOIN": true, "INNER": true, "LEFT": true, "RIGHT": true, "ON": true, "DISTINCT": true}

// name reads a name.
func (p *parser) name() (name string, quoted bool) {
	name, quoted = p.tok.text, p.tok.kind == tokenQuoted
	if !quoted && (p.tok.kind != tokenWord || reserved[name]) {
		p.fail()
		return "", false
	}
	p.next()
	return name, quoted
}

func (p *parser) statement() *Statement {
	st := &Statement{limit: -1}
	p.needs("SELECT")
	p.columns(st)
	p.needs("FROM")
	name, quoted := p.name()
	if st.Table = name; p.takes(".") {
		st.Cache, st.Quoted = name, quoted
		st.Table, _ = p.name()
	}
	if p.takes("AS") || p.tok.kind == tokenQuoted || p.tok.kind == tokenWord && !reserved[p.tok.text] {
		st.alias, _ = p.name()
	}
	if p.takes("WHERE") {
		st.where = p.or()
	}
	if p.takes("ORDER") {
		p.needs("BY")
		for {
			o := ordering{node: p.operand()}
			if o.descending = p.takes("DESC"); !o.descending {
				p.takes("ASC")
			}
			st.order = append(st.order, o)
			if !p.takes(",") {
				break
			}
		}
	}
	if p.takes("LIMIT") {
		st.limit = p.whole()
	}
	if p.takes("OFFSET") {
		st.offset = p.whole()
	}
	p.takes(";")
	if p.tok.kind != tokenEnd {
		p.fail()
	}
	st.args = p.args
	st.unqualify(p)
	return st
}

func (p *parser) columns(st *Statement) {
	if p.takes("*") {
		return
	}
	if p.tok.text == "COUNT" && p.tok.kind == tokenWord {
		p.next()
		p.needs("(", "*", ")")
		st.count = true
		st.columns = []column{{name: "COUNT(*)"}}
		return
	}
	for {
		c := column{node: p.field()}
		if f, ok := c.node.(*field); ok {
			c.name = f.name
		}
		if p.takes("AS") {
			c.name, _ = p.name()
		}
		st.columns = append(st.columns, c)
		if !p.takes(",") || p.err != nil {
			return
		}
	}
}

// whole reads a non-negative integer.
func (p *parser) whole() int {
	n, err := strconv.ParseInt(p.tok.text, 10, 64)
	if p.tok.kind != tokenNumber || err != nil {
		p.fail()
		return 0
	}
	p.next()
	return int(min(n, math.MaxInt))
}

// field reads the name of a field, with an optional qualifier.
func (p *parser) field() node {
	f := new(field)
	if f.name, _ = p.name(); p.takes(".") {
		f.of = f.name
		if p.takes("*") {
			p.fail()
		}
		f.name, _ = p.name()
	}
	return f
}

// unqualify checks the qualifiers of fields: they must be the type, the alias or the cache.
func (st *Statement) unqualify(p *parser) {
	check := func(n node) {
		if f, ok := n.(*field); ok && f.of != "" && !strings.EqualFold(f.of, st.alias) &&
			!strings.EqualFold(f.of, st.Table) && p.err == nil {
			p.err = fmt.Errorf("%w: %s is not selected from", ErrUnsupported, f.of)
		}
	}
	for _, c := range st.columns {
		walk(c.node, check)
	}
	for _, o := range st.order {
		walk(o.node, check)
	}
	walk(st.where, check)
}

// or reads a condition.
func (p *parser) or() node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.fail()
		return nil
	}
	n := p.and()
	for p.takes("OR") {
		n = &logic{op: "OR", a: n, b: p.and()}
	}
	return n
}

func (p *parser) and() node {
	n := p.not()
	for p.takes("AND") {
		n = &logic{op: "AND", a: n, b: p.not()}
	}
	return n
}

func (p *parser) not() node {
	negations := 0
	for p.takes("NOT") {
		negations++
	}
	n := p.comparison()
	if negations%2 == 1 {
		n = &logic{op: "NOT", a: n}
	}
	return n
}

func (p *parser) comparison() node {
	if p.takes("(") {
		n := p.or()
		p.needs(")")
		return n
	}
	a := p.operand()
	for _, op := range []string{"=", "<>", "!=", "<", "<=", ">", ">="} {
		if p.takes(op) {
			return &compare{op: op, a: a, b: p.operand()}
		}
	}
	if p.takes("IS") {
		negated := p.takes("NOT")
		p.needs("NULL")
		return negate(&isNull{a}, negated)
	}
	negated := p.takes("NOT")
	switch {
	case p.takes("BETWEEN"):
		low := p.operand()
		p.needs("AND")
		high := p.operand()
		return negate(&logic{op: "AND", a: &compare{op: ">=", a: a, b: low}, b: &compare{op: "<=", a: a, b: high}}, negated)
	case p.takes("LIKE"):
		return negate(&like{a, p.operand()}, negated)
	case p.takes("IN"):
		p.needs("(")
		in := &oneOf{a: a, of: []node{p.operand()}}
		for p.takes(",") {
			in.of = append(in.of, p.operand())
		}
		p.needs(")")
		return negate(in, negated)
	case negated:
		p.fail()
	}
	return a // a boolean
}

func negate(n node, negated bool) node {
	if negated {
		return &logic{op: "NOT", a: n}
	}
	return n
}

// operand reads a field, a literal or a placeholder of an argument.
func (p *parser) operand() node {
	negative := p.takes("-")
	tok := p.tok
	switch {
	case tok.kind == tokenNumber:
		p.next()
		if negative {
			tok.text = "-" + tok.text
		}
		if n, err := strconv.ParseInt(tok.text, 10, 64); err == nil {
			return literal{value{kind: kindInt, i: n}}
		}
		f, err := strconv.ParseFloat(tok.text, 64)
		if err != nil {
			p.fail()
		}
		return literal{value{kind: kindFloat, f: f}}
	case negative:
		p.fail()
	case tok.kind == tokenText:
		p.next()
		return literal{value{kind: kindText, s: tok.text}}
	case p.takes("?"):
		p.args++
		return argument(p.args - 1)
	case p.takes("NULL"):
		return literal{}
	case p.takes("TRUE"):
		return literal{truth(true)}
	case p.takes("FALSE"):
		return literal{truth(false)}
	}
	return p.field()
}
