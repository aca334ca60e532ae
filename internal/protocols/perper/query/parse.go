// Package query implements the part of SQL, in the dialect of Ignite and H2, that is served for caches:
//
//	SELECT * | COUNT(*) | expression [[AS] name], … FROM [schema.]table [[AS] alias]
//	[WHERE condition] [ORDER BY expression [ASC | DESC], …] [LIMIT n] [OFFSET n]
//	INSERT INTO table [(column, …)] VALUES (expression, …), …      MERGE INTO likewise
//	UPDATE table SET column = expression, … [WHERE condition]      DELETE FROM table [WHERE condition]
//	CREATE TABLE, DROP TABLE, ALTER TABLE … ADD | DROP COLUMN, CREATE INDEX, DROP INDEX
//
// The columns of a table are fields of the values of a type, fields of their keys, or the whole key or value; "_KEY" and
// "_VAL" are both in every table. Null is neither equal nor unequal to anything.
//
// The parser is written by hand because no parser for Go reads this dialect (docs/dependencies.md).
package query

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// Kind is what a statement does.
type Kind uint8

// The kinds of statements.
const (
	Select Kind = iota
	Insert
	Merge
	Update
	Delete
	CreateTable
	DropTable
	CreateIndex
	DropIndex
	AddColumns
	DropColumns
)

// Modifies reports whether a statement changes the rows of a table.
func (k Kind) Modifies() bool { return k >= Insert && k <= Delete }

// Defines reports whether a statement creates, drops or alters a table.
func (k Kind) Defines() bool { return k >= CreateTable }

// Statement is a parsed statement. It can be executed once.
type Statement struct {
	Kind Kind
	// Cache is the name before the table, or "". Quoted says that case matters.
	Cache  string
	Quoted bool
	// Table is the table or the type of its values, as written; "" in DROP INDEX.
	Table string
	// Index is the index that is created or dropped.
	Index string
	// Optional is set by IF EXISTS and IF NOT EXISTS.
	Optional bool

	alias   string
	columns []column // nil is "*", all columns of the table
	count   bool     // only COUNT(*)
	where   node
	order   []ordering
	limit   int // -1 is no limit
	offset  int
	args    int // number of arguments

	names []string // columns of INSERT, MERGE, UPDATE and DROP COLUMN; nil is all
	rows  [][]node // what INSERT and MERGE write, and UPDATE in one row; nil is DEFAULT

	definitions []binary.EntityField
	primary     []string
	options     map[string]string // WITH, with names in upper case
	indexed     []binary.IndexField
	skips       bool // ADD COLUMN IF NOT EXISTS, DROP COLUMN IF EXISTS
}

// column is a column of the result.
type column struct {
	name string // its name in the result
	node node
}

// ordering is an expression that orders the result.
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
	if p.err != nil {
		return nil, p.err
	}
	return st, nil
}

// In reports whether the statement is on the cache with a name and a configuration, which may give it another name.
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
	s := skipped(p.rest)
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
		if n = 1; len(s) > 1 && (s[:2] == "<=" || s[:2] == ">=" || s[:2] == "<>" || s[:2] == "!=" || s[:2] == "||") {
			n = 2
		}
		p.tok.kind, p.tok.text = tokenSign, s[:n]
	}
	p.rest = s[n:]
}

// skipped returns a text without the spaces and comments before it. A comment without an end has the rest of the text.
func skipped(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
		default:
			return s
		}
	}
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
	"JOIN": true, "INNER": true, "LEFT": true, "RIGHT": true, "ON": true, "DISTINCT": true, "SET": true, "VALUES": true}

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
	switch {
	case p.takes("INSERT"):
		p.insert(st, Insert)
	case p.takes("MERGE"):
		p.insert(st, Merge)
	case p.takes("UPDATE"):
		p.update(st)
	case p.takes("DELETE"):
		st.Kind = Delete
		p.needs("FROM")
		p.table(st)
		p.aliasAndCondition(st)
	case p.takes("CREATE"):
		p.create(st)
	case p.takes("DROP"):
		p.drop(st)
	case p.takes("ALTER"):
		p.alter(st)
	default:
		p.query(st)
	}
	p.takes(";")
	if p.tok.kind != tokenEnd {
		p.fail()
	}
	st.args = p.args
	st.unqualify(p)
	return st
}

// table reads the name of a table.
func (p *parser) table(st *Statement) {
	name, quoted := p.name()
	if st.Table = name; p.takes(".") {
		st.Cache, st.Quoted = name, quoted
		st.Table, _ = p.name()
	}
}

// aliasAndCondition reads what may follow the table in a query, UPDATE and DELETE, up to WHERE.
func (p *parser) aliasAndCondition(st *Statement) {
	p.readAlias(st)
	if p.takes("WHERE") {
		st.where = p.or()
	}
	if st.Kind != Select && p.takes("LIMIT") {
		st.limit = p.whole()
	}
}

func (p *parser) readAlias(st *Statement) {
	if p.takes("AS") || p.namesNext() {
		st.alias, _ = p.name()
	}
}

// namesNext reports whether a name is next.
func (p *parser) namesNext() bool {
	return p.tok.kind == tokenQuoted || p.tok.kind == tokenWord && !reserved[p.tok.text]
}

func (p *parser) query(st *Statement) {
	p.needs("SELECT")
	p.columns(st)
	p.needs("FROM")
	p.table(st)
	// LIMIT and OFFSET are reserved, so none is an alias.
	p.aliasAndCondition(st)
	if p.takes("ORDER") {
		p.needs("BY")
		for {
			o := ordering{node: st.ordered(p.operand())}
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
}

// ordered returns the column that an expression of ORDER BY means: by its name in the result, or its number.
func (st *Statement) ordered(n node) node {
	switch by := n.(type) {
	case *field:
		for _, c := range st.columns {
			if by.of == "" && strings.EqualFold(c.name, by.name) {
				return c.node
			}
		}
	case literal:
		if by.kind == kindInt && by.i >= 1 && by.i <= int64(len(st.columns)) && !st.count {
			return st.columns[by.i-1].node
		}
	}
	return n
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
		p.columnName(&st.columns[0])
		return
	}
	for {
		from := p.tok.from
		c := column{node: p.operand()}
		if f, ok := c.node.(*field); ok {
			c.name = f.name
		} else {
			c.name = strings.TrimSpace(from[:len(from)-len(p.tok.from)])
		}
		p.columnName(&c)
		st.columns = append(st.columns, c)
		if !p.takes(",") || p.err != nil {
			return
		}
	}
}

// columnName reads the name that a column gets in the result.
func (p *parser) columnName(c *column) {
	if p.takes("AS") || p.namesNext() {
		c.name, _ = p.name()
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
	st.walk(func(n node) {
		if f, ok := n.(*field); ok && f.of != "" && !strings.EqualFold(f.of, st.alias) &&
			!strings.EqualFold(f.of, st.Table) && p.err == nil {
			p.err = fmt.Errorf("%w: %s is not selected from", ErrUnsupported, f.of)
		}
	})
}

// walk calls fn with all expressions of the statement.
func (st *Statement) walk(fn func(n node)) {
	for _, c := range st.columns {
		walk(c.node, fn)
	}
	for _, o := range st.order {
		walk(o.node, fn)
	}
	for _, row := range st.rows {
		for _, n := range row {
			walk(n, fn)
		}
	}
	walk(st.where, fn)
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

// operand reads an expression without comparisons: sums, differences and texts that are joined.
func (p *parser) operand() node {
	n := p.product()
	for {
		switch op := p.tok.text; {
		case p.takes("+"), p.takes("-"), p.takes("||"):
			n = &arithmetic{op: op, a: n, b: p.product()}
		default:
			return n
		}
	}
}

func (p *parser) product() node {
	n := p.factor()
	for {
		switch op := p.tok.text; {
		case p.takes("*"), p.takes("/"), p.takes("%"):
			n = &arithmetic{op: op, a: n, b: p.factor()}
		default:
			return n
		}
	}
}

// factor reads a field, a literal, a placeholder of an argument, or an expression in brackets.
func (p *parser) factor() node {
	negative := false
	for p.takes("-") {
		negative = !negative
	}
	tok := p.tok
	if tok.kind == tokenNumber {
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
	}
	var n node
	switch {
	case tok.kind == tokenText:
		p.next()
		n = literal{value{kind: kindText, s: tok.text}}
	case p.takes("("):
		n = p.or()
		p.needs(")")
	case p.takes("?"):
		p.args++
		n = argument(p.args - 1)
	case p.takes("NULL"):
		n = literal{}
	case p.takes("TRUE"):
		n = literal{truth(true)}
	case p.takes("FALSE"):
		n = literal{truth(false)}
	default:
		n = p.field()
	}
	if negative {
		return &arithmetic{op: "-", a: literal{value{kind: kindInt}}, b: n}
	}
	return n
}
