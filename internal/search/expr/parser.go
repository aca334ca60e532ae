package expr

import (
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// Limits of an expression, so that functions that descend into it end.
const (
	maxNesting = 256    // parentheses, calls and operators whose right side is still open
	maxDepth   = 10_000 // of the tree: a + b + c + … is as deep as it is long
)

// errTooDeep is the error for an expression beyond the limits.
var errTooDeep = &query.Error{Code: query.BadExpression, Text: "Parser stack overflow. Try moving nested parentheses more to the left"}

// Parse parses an expression.
func Parse(s string) (*Expr, error) {
	p := &parser{lexer: lexer{s: s}, expr: &Expr{}}
	p.look()
	root, err := p.expression(lowest)
	if err == nil && p.token.kind != end {
		err = p.syntaxError()
	}
	if err == nil {
		err = p.pending
	}
	if err != nil {
		return nil, err
	}
	p.expr.root = root
	return p.expr, nil
}

// Precedences of operators.
const (
	lowest = iota
	orLevel
	andLevel
	notLevel
	compareLevel
	sumLevel
	productLevel
	powerLevel
)

var levels = map[string]int{
	"||": orLevel, "&&": andLevel,
	"==": compareLevel, "!=": compareLevel, "<": compareLevel, "<=": compareLevel, ">": compareLevel, ">=": compareLevel,
	"+": sumLevel, "-": sumLevel, "*": productLevel, "/": productLevel, "%": productLevel, "^": powerLevel,
}

// parser parses an expression, with one token of lookahead.
//
// The error for an unknown function waits in pending until the next token is read, because the reference adds it to
// a syntax error at that token. A syntax error names the last token that is no sign.
type parser struct {
	lexer   lexer
	token   token
	near    string // the text of the last number, name, symbol or string
	offset  int    // where the last token begins
	nesting int
	pending error
	expr    *Expr
}

// look makes the next token the current one.
func (p *parser) look() {
	p.token = p.lexer.next()
	switch p.token.kind {
	case end:
		return // a syntax error at the end names the token before
	case operator, foreign:
	default:
		p.near = p.token.text
	}
	p.offset = p.token.pos
}

// advance accepts the current token.
func (p *parser) advance() error {
	if p.pending != nil {
		return p.pending
	}
	p.look()
	return nil
}

// is reports whether the current token is a sign.
func (p *parser) is(sign string) bool { return p.token.kind == operator && p.token.text == sign }

// syntaxError is the error for the current token.
func (p *parser) syntaxError() error {
	reason := ""
	if p.pending != nil {
		reason = ": " + p.pending.(*query.Error).Text
	}
	return errorf(query.BadExpression, "Syntax error at offset %d near '%s'%s", p.offset, p.near, reason)
}

// expression parses operators that bind tighter than a level.
func (p *parser) expression(above int) (node, error) {
	if p.nesting++; p.nesting > maxNesting {
		return nil, errTooDeep
	}
	defer func() { p.nesting-- }()
	left, err := p.operand()
	compared := false
	for err == nil && p.token.kind == operator {
		op := p.token.text
		level := levels[op]
		if level <= above {
			break
		}
		if level == compareLevel && compared {
			return nil, p.syntaxError() // a == b == c
		}
		compared = level == compareLevel
		if err = p.advance(); err != nil {
			break
		}
		side := level
		if op == "^" {
			side-- // 2^3^2 is 2^(3^2)
		}
		var right node
		if right, err = p.expression(side); err != nil {
			break
		}
		b := binary{op, left, right, 1 + max(left.depth(), right.depth())}
		if b.deep > maxDepth {
			return nil, errTooDeep
		}
		if level <= compareLevel {
			left = &predicate{b}
		} else {
			left = &arithmetic{b}
		}
	}
	return left, err
}

// operand parses an operand of an operator.
func (p *parser) operand() (node, error) {
	t := p.token
	switch {
	case p.is("!"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		child, err := p.expression(notLevel)
		if err != nil {
			return nil, err
		}
		if twice, ok := child.(*inverted); ok {
			return twice.child, nil
		}
		return &inverted{child, 1 + child.depth()}, nil
	case p.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		n, err := p.expression(lowest)
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	case t.kind == number:
		return &literal{value.Num(t.number)}, p.advance()
	case t.kind == text:
		return &literal{value.Str(unescape(t.text[1 : len(t.text)-1]))}, p.advance()
	case t.kind == name:
		n := newProperty(unescape(t.text))
		p.expr.props = append(p.expr.props, n)
		return n, p.advance()
	case t.kind == symbol:
		return p.symbol()
	}
	return nil, p.syntaxError()
}

// expect accepts a sign.
func (p *parser) expect(sign string) error {
	if !p.is(sign) {
		return p.syntaxError()
	}
	return p.advance()
}

// symbol parses NULL or the call of a function.
func (p *parser) symbol() (node, error) {
	called := p.token.text
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.is("(") {
		if called != "NULL" {
			p.pending = errorf(query.BadExpression, "Unknown symbol '%s'", called)
		}
		return &literal{value.Nil}, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	c := &call{deep: 1}
	for first := true; !p.is(")"); first = false {
		if !first || p.is(",") { // the first argument may be left out
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		arg, err := p.expression(lowest)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, arg)
		c.deep = max(c.deep, 1+arg.depth())
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	f := functions[strings.ToLower(called)]
	switch n := len(c.args); {
	case f == nil:
		p.pending = errorf(query.BadExpression, "Unknown function name '%s'", called)
	case n >= f.min && n <= f.max:
		c.f = f
		p.expr.matched = p.expr.matched || f.name == "matched_terms"
	case f.min == f.max:
		p.pending = errorf(query.BadExpression, "Function '%s' expects %d arguments, but got %d", called, f.min, n)
	default:
		p.pending = errorf(query.BadExpression, "Function '%s' expects between %d and %d arguments, but got %d", called, f.min, f.max, n)
	}
	return c, nil
}
