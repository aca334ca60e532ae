// Package expr has the expressions of APPLY, FILTER and of an index's FILTER: it parses them, binds their names to the slots of
// rows, and computes them. It knows no index and no pipeline.
//
//   - lexer.go cuts the text into tokens, parser.go makes a tree of them, with the errors of the reference.
//   - expr.go has the tree and its evaluation.
//   - functions.go has the table of functions; strings.go, times.go, strftime.go, strptime.go and geo.go have those on texts, on
//     instants and on places.
//
// A tree nests at most maxDepth, so functions that descend into it end.
package expr

import (
	"errors"
	"fmt"
	"math"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// Row has the values that an expression reads.
type Row interface {
	// Get returns the value in a slot, Absent if the row has none.
	Get(slot int) value.Value
	// MatchedTerms returns at most max terms of the query that the row's document matched.
	MatchedTerms(max int) []string
}

// Expr is an expression. After Bind it does not change, and goroutines may share it.
type Expr struct {
	root    node
	props   []*property // in the order of the text
	matched bool
}

// Bind finds the slots of all names, in the order of the text. It must be called once, before Eval.
func (e *Expr) Bind(slot func(name string) (int, bool)) error {
	for _, p := range e.props {
		at, ok := slot(p.name)
		if !ok {
			return errorf(query.NoProperty, "Property not loaded nor in pipeline: `%s`", p.name)
		}
		p.slot = at
	}
	return nil
}

// Names returns the names of the expression in the order of the text, with repetitions.
func (e *Expr) Names() []string {
	names := make([]string, len(e.props))
	for i, p := range e.props {
		names[i] = p.name
	}
	return names
}

// UsesTerms reports whether the expression calls Row.MatchedTerms.
func (e *Expr) UsesTerms() bool { return e.matched }

// Eval computes the expression for a row.
func (e *Expr) Eval(row Row) (value.Value, error) { return e.root.eval(row) }

// Holds reports whether the expression is true for a row. If a comparison cannot be computed, because a value is
// missing or of another kind, neither it nor its negation holds.
func (e *Expr) Holds(row Row) bool {
	holds, _ := holds(e.root, row)
	return holds
}

// holds reports whether a node is true; known is false if it cannot be computed.
func holds(n node, row Row) (is, known bool) {
	switch n := n.(type) {
	case *inverted:
		is, known = holds(n.child, row)
		return known && !is, known
	case *predicate:
		if n.op != "&&" && n.op != "||" {
			break
		}
		left, leftKnown := holds(n.left, row)
		right, rightKnown := holds(n.right, row)
		decides := n.op == "||" // a side with this value decides alone
		if leftKnown && left == decides || rightKnown && right == decides {
			return decides, true
		}
		return !decides && left && right, leftKnown && rightKnown
	}
	v, err := n.eval(row)
	return err == nil && v.Truth(), err == nil
}

// String describes the expression as FT.PROFILE does: "Function upper", "Predicate &&".
func (e *Expr) String() string { return e.root.String() }

// node is a part of an expression.
type node interface {
	eval(row Row) (value.Value, error)
	depth() int
	String() string
}

// missing is the error for a name that a row has no value for.
type missing struct{ err query.Error }

func (m *missing) Error() string { return m.err.Error() }
func (m *missing) Unwrap() error { return &m.err }

var errNotNumber = &query.Error{Code: query.NotNumeric, Text: "Invalid numeric value"}

func errorf(code query.Code, format string, args ...any) error {
	return &query.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// literal is a value of the text.
type literal struct{ v value.Value }

func (l *literal) eval(Row) (value.Value, error) { return l.v, nil }
func (l *literal) depth() int                    { return 1 }
func (l *literal) String() string                { return "Literal " + l.v.ToText() }

// property is the value of a name.
type property struct {
	name    string
	slot    int
	missing *missing
}

func newProperty(name string) *property {
	return &property{name: name, missing: &missing{query.Error{
		Code: query.NoValue,
		Text: "Could not find the value for a parameter name, consider using EXISTS if applicable for " + name,
	}}}
}

func (p *property) eval(row Row) (value.Value, error) {
	v := row.Get(p.slot)
	if v.IsAbsent() {
		return v, p.missing
	}
	return v, nil
}

func (p *property) depth() int     { return 1 }
func (p *property) String() string { return "Property " + p.name }

// binary is the common part of operators with two sides.
type binary struct {
	op          string
	left, right node
	deep        int
}

func (b *binary) depth() int { return b.deep }

// arithmetic is an operator that computes a number.
type arithmetic struct{ binary }

func (a *arithmetic) String() string { return "Operator " + a.op }

func (a *arithmetic) eval(row Row) (value.Value, error) {
	left, err := a.left.eval(row)
	if err != nil {
		return left, err
	}
	right, err := a.right.eval(row)
	if err != nil {
		return right, err
	}
	l, ok := left.ToNumber()
	r, also := right.ToNumber()
	if !ok || !also {
		return value.Value{}, errNotNumber
	}
	switch a.op {
	case "+":
		l += r
	case "-":
		l -= r
	case "*":
		l *= r
	case "/":
		l /= r
	case "%":
		l = math.Mod(l, r)
	case "^":
		l = math.Pow(l, r)
	}
	return value.Num(l), nil
}

// predicate is a comparison, && or ||.
type predicate struct{ binary }

func (p *predicate) String() string { return "Predicate " + p.op }

func (p *predicate) eval(row Row) (value.Value, error) {
	left, err := p.left.eval(row)
	if err != nil {
		return left, err
	}
	switch {
	case p.op == "&&" && !left.Truth():
		return value.Num(0), nil
	case p.op == "||" && left.Truth():
		return value.Num(1), nil
	}
	right, err := p.right.eval(row)
	if err != nil {
		return right, err
	}
	var holds bool
	switch p.op {
	case "&&", "||":
		holds = right.Truth()
	case "==":
		holds = value.Equal(left, right)
	case "!=":
		holds = !value.Equal(left, right)
	default:
		if holds, err = p.ordered(left, right); err != nil {
			return value.Value{}, err
		}
	}
	return value.Bool(holds), nil
}

// ordered compares the sides with <, <=, > or >=. With NaN the result is false.
func (p *predicate) ordered(left, right value.Value) (bool, error) {
	order, err := value.Compare(left, right)
	if err != nil || isNaN(left) || isNaN(right) {
		return false, err
	}
	switch p.op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

func isNaN(v value.Value) bool { return v.Kind() == value.Number && math.IsNaN(v.Float()) }

// inverted is an expression after !.
type inverted struct {
	child node
	deep  int
}

func (i *inverted) depth() int     { return i.deep }
func (i *inverted) String() string { return "Inverted" }

func (i *inverted) eval(row Row) (value.Value, error) {
	v, err := i.child.eval(row)
	if err != nil {
		return v, err
	}
	return value.Bool(!v.Truth()), nil
}

// call is a call of a function.
type call struct {
	f    *function
	args []node
	deep int
}

func (c *call) depth() int     { return c.deep }
func (c *call) String() string { return "Function " + c.f.name }

func (c *call) eval(row Row) (value.Value, error) {
	if c.f.lazy != nil {
		return c.f.lazy(c, row)
	}
	var few [4]value.Value
	args := few[:0]
	for _, a := range c.args {
		v, err := a.eval(row)
		if err != nil {
			return v, err
		}
		args = append(args, v)
	}
	return c.f.call(args)
}

// choose computes the condition of case and only the selected branch.
func (c *call) choose(row Row) (value.Value, error) {
	condition, err := c.args[0].eval(row)
	if err != nil {
		return condition, err
	}
	if condition.Truth() {
		return c.args[1].eval(row)
	}
	return c.args[2].eval(row)
}

// exists reports whether a name has a value. A missing value within a larger expression stays an error, except in
// the branch of a case.
func (c *call) exists(row Row) (value.Value, error) {
	v, err := c.args[0].eval(row)
	if err != nil && mayLack(c.args[0]) && errors.As(err, new(*missing)) {
		return value.Num(0), nil
	}
	if err != nil {
		return v, err
	}
	return value.Bool(!v.IsNull()), nil
}

func mayLack(n node) bool {
	switch n := n.(type) {
	case *property:
		return true
	case *call:
		return n.f.name == "case"
	}
	return false
}

func (c *call) matchedTerms(row Row) (value.Value, error) {
	const most = 100
	n := most
	if len(c.args) == 1 {
		v, err := c.args[0].eval(row)
		if err != nil {
			return v, err
		}
		if f, ok := v.ToNumber(); ok && f >= 1 && f <= most {
			n = int(f)
		}
	}
	terms := row.MatchedTerms(n)
	if len(terms) == 0 {
		return value.Nil, nil
	}
	return value.Strings(terms), nil
}
