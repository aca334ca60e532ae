package path

import (
	"math"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/documents"
)

// expr is an expression. Its result is a list of values: those that a path selects, one that is computed, or none,
// which is called Nothing.
type expr any

type (
	literal struct{ value documents.Value }
	// query is a path from the root, or from the value that a filter examines.
	query struct {
		absolute bool
		segments []segment
	}
	// group is an expression in parentheses.
	group   struct{ expr expr }
	logical struct {
		and      bool
		operands []expr
	}
	negation struct {
		operand expr
		twice   bool
	}
	comparison struct {
		operator    string
		left, right expr
	}
	arithmetic struct {
		operator    byte
		left, right expr
		depth       int // number of operators to the left
	}
	sign struct {
		operand expr
		minus   bool
	}
	call struct {
		name      string
		arguments []expr
		function  *function
	}
)

// holds reports whether a condition is true for a value.
func (e *evaluator) holds(x expr, current documents.Value) bool {
	outer := e.current
	e.current = current
	ok := e.condition(x)
	e.current = outer
	return ok && e.err == nil
}

// condition reports whether an expression is true; a path is true if it selects anything.
func (e *evaluator) condition(x expr) bool {
	if !e.spend(1) {
		return false
	}
	switch x := x.(type) {
	case *group:
		return e.condition(x.expr)
	case *logical:
		for _, operand := range x.operands {
			if e.condition(operand) != x.and {
				return !x.and
			}
		}
		return x.and
	case *negation:
		return e.condition(x.operand) == x.twice
	case *comparison:
		return e.compare(x)
	case *query:
		selects := false
		places := e.places
		e.places = false
		e.walk(x.segments, e.start(x), nil, func(documents.Value, *documents.Place) bool {
			selects = true
			return false
		})
		e.places = places
		return selects
	}
	vals := e.operand(x, e.current)
	return len(vals) > 0 && (len(vals) > 1 || vals[0] != documents.Bool(false))
}

func (e *evaluator) start(q *query) documents.Value {
	if q.absolute {
		return e.root
	}
	return e.current
}

// operand returns the values of an expression.
func (e *evaluator) operand(x expr, current documents.Value) []documents.Value {
	if !e.spend(1) {
		return nil
	}
	switch x := x.(type) {
	case *literal:
		return []documents.Value{x.value}
	case *query:
		return e.selected(x)
	case *group:
		return e.operand(x.expr, current)
	case *logical, *negation, *comparison:
		return []documents.Value{documents.Bool(e.condition(x))}
	case *arithmetic:
		left, right := e.operand(x.left, current), e.operand(x.right, current)
		if len(left) != 1 || len(right) != 1 {
			return nil
		}
		return calculate(x.operator, left[0], right[0])
	case *sign:
		vals := e.operand(x.operand, current)
		if len(vals) != 1 || !vals[0].IsNumber() || !x.minus {
			return numbersOnly(vals)
		}
		return calculate('-', documents.Int(0), vals[0])
	case *call:
		arguments := make([][]documents.Value, len(x.arguments))
		for i, a := range x.arguments {
			arguments[i] = e.operand(a, current)
		}
		if n := len(arguments); n < x.function.least || n > x.function.most && x.function.most > 0 || e.err != nil {
			return nil
		}
		if x.name == "~" {
			return e.keys(arguments[0])
		}
		return x.function.do(e, x, arguments)
	}
	return nil
}

// selected returns the values that a path selects. A path from the root is evaluated once.
func (e *evaluator) selected(q *query) (vals []documents.Value) {
	if q.absolute {
		if vals, ok := e.known[q]; ok {
			return vals
		}
	}
	places := e.places
	e.places = false
	e.walk(q.segments, e.start(q), nil, func(v documents.Value, _ *documents.Place) bool {
		vals = append(vals, v)
		return e.results(len(vals))
	})
	e.places = places
	if q.absolute && e.err == nil {
		if e.known == nil {
			e.known = map[*query][]documents.Value{}
		}
		e.known[q] = vals
	}
	return vals
}

func numbersOnly(vals []documents.Value) []documents.Value {
	if len(vals) == 1 && vals[0].IsNumber() {
		return vals
	}
	return nil
}

// compare reports whether a comparison holds for any pair of values of its sides.
func (e *evaluator) compare(x *comparison) bool {
	left, right := e.operand(x.left, e.current), e.operand(x.right, e.current)
	switch x.operator {
	case "in", "nin":
		if len(left) == 0 {
			return false
		}
		is := false
		set := listOf(x.right, right)
		for _, v := range left {
			is = is || e.contains(set, v)
		}
		return is == (x.operator == "in")
	case "subsetof", "anyof", "noneof":
		if len(left) == 0 || len(right) == 0 {
			return false
		}
		set := listOf(x.right, right)
		for _, list := range lists(x.left, left) {
			if e.relates(x.operator, list, set) {
				return true
			}
		}
		return false
	}
	for _, l := range left {
		for _, r := range right {
			if !e.spend(1) {
				return false
			}
			if e.pair(x.operator, l, r) {
				return true
			}
		}
	}
	return false
}

// isList reports whether the result of an expression is a list even with a single value.
func isList(x expr) bool {
	for {
		switch y := x.(type) {
		case *group:
			x = y.expr
			continue
		case *call:
			return y.name == "~" || y.name == "keys" || y.name == "append"
		}
		return false
	}
}

// listOf returns the elements if the expression's result is an array, else its values.
func listOf(x expr, vals []documents.Value) list {
	if len(vals) == 1 && !isList(x) {
		if vals[0].Kind() != documents.Array {
			return list{}
		}
		return list{array: vals[0], isArray: true, n: vals[0].Len()}
	}
	return list{vals: vals, n: len(vals), isArray: len(vals) > 0}
}

// lists returns the arrays on a side of a set relation: each one that a path selects.
func lists(x expr, vals []documents.Value) (lists []list) {
	if isList(x) {
		return []list{listOf(x, vals)}
	}
	for _, v := range vals {
		if v.Kind() == documents.Array {
			lists = append(lists, list{array: v, isArray: true, n: v.Len()})
		}
	}
	if lists == nil && len(vals) > 1 {
		lists = []list{listOf(x, vals)}
	}
	return lists
}

// list is the elements of an array, or several values.
type list struct {
	array   documents.Value
	isArray bool
	vals    []documents.Value
	n       int
}

func (l *list) each(fn func(v documents.Value) bool) {
	if l.vals == nil {
		l.array.Elements(func(_ int, _ string, v documents.Value) bool { return fn(v) })
		return
	}
	for _, v := range l.vals {
		if !fn(v) {
			return
		}
	}
}

func (e *evaluator) contains(l list, v documents.Value) (found bool) {
	l.each(func(element documents.Value) bool {
		found = e.spend(1) && e.equal(element, v)
		return !found && e.err == nil
	})
	return found
}

func (e *evaluator) relates(operator string, l, set list) bool {
	if !set.isArray {
		return false
	}
	all, any := true, false
	l.each(func(v documents.Value) bool {
		is := e.contains(set, v)
		all, any = all && is, any || is
		return e.err == nil && (operator == "subsetof" && all || operator != "subsetof" && !any)
	})
	switch operator {
	case "subsetof":
		return all
	case "anyof":
		return any
	}
	return !any
}

// equal is documents.Equal, and counts its cost.
func (e *evaluator) equal(a, b documents.Value) bool {
	return e.spend(min(a.Memory(), b.Memory())/64) && documents.Equal(a, b)
}

// pair reports whether a comparison holds for two values.
func (e *evaluator) pair(operator string, l, r documents.Value) bool {
	switch operator {
	case "==":
		return e.equal(l, r)
	case "!=":
		return !e.equal(l, r)
	case "=~":
		return r.Kind() == documents.String && e.match(l, r.Text(), false)
	case "size", "sizeof":
		n, ok := size(l)
		return ok && r.IsNumber() && float64(n) == math.Trunc(r.Float())
	case "empty":
		n, ok := size(l)
		return ok && r.Kind() == documents.Boolean && (n == 0) == r.Bool()
	}
	order := 0
	switch {
	case l.IsNumber() && r.IsNumber():
		order = documents.CompareNumbers(l, r)
	case l.Kind() == documents.String && r.Kind() == documents.String:
		order = documents.CompareText(l, r)
	default:
		return false
	}
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// size returns the number of characters, elements or members of a value; ok is false for other kinds.
func size(v documents.Value) (n int, ok bool) {
	switch v.Kind() {
	case documents.String:
		return utf8.RuneCountInString(v.Text()), true
	case documents.Array, documents.Object:
		return v.Len(), true
	}
	return 0, false
}

// pattern is a compiled regular expression, nil if it is invalid, and the size of its program.
type pattern struct {
	re       *regexp.Regexp
	anchored *regexp.Regexp
	size     int
}

// Limits on regular expressions.
const (
	maxPattern     = 4096 // bytes
	maxProgram     = 20_000
	maxPatterns    = 256 // patterns kept for one path
	programPerStep = 64
)

// match reports whether a value is a string that matches a regular expression, wholly or in part.
func (e *evaluator) match(v documents.Value, expression string, whole bool) bool {
	if v.Kind() != documents.String {
		return false
	}
	p := e.regexes[expression]
	if p == nil {
		p = compile(expression)
		if e.regexes == nil || len(e.regexes) >= maxPatterns {
			e.regexes = map[string]*pattern{}
		}
		e.regexes[expression] = p
		e.spend(p.size + len(expression))
	}
	text := v.Text()
	if p.re == nil || !e.spend(len(text)*max(p.size/programPerStep, 1)/programPerStep) {
		return false
	}
	if whole {
		return p.anchored.MatchString(text)
	}
	return p.re.MatchString(text)
}

func compile(expression string) *pattern {
	if len(expression) > maxPattern {
		return &pattern{}
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return &pattern{}
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return &pattern{}
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return &pattern{}
	}
	anchored, err := regexp.Compile(`^(?:` + expression + `)$`)
	if err != nil {
		return &pattern{}
	}
	return &pattern{re, anchored, len(program.Inst)}
}

// calculate returns the result of an operator, nil for Nothing.
func calculate(operator byte, a, b documents.Value) []documents.Value {
	if !a.IsNumber() || !b.IsNumber() {
		return nil
	}
	x, isInt := a.Int()
	y, isToo := b.Int()
	if isInt && isToo && operator != '/' {
		if r, ok := calculateInt(operator, x, y); ok {
			return []documents.Value{documents.Int(r)}
		} else if operator == '%' {
			return nil
		}
	}
	f, g := a.Float(), b.Float()
	switch operator {
	case '+':
		f += g
	case '-':
		f -= g
	case '*':
		f *= g
	case '/':
		f /= g
	case '%':
		f = math.Mod(f, g)
	}
	return finite(f)
}

func calculateInt(operator byte, x, y int64) (r int64, ok bool) {
	switch operator {
	case '+':
		r = x + y
		return r, (r > x) == (y > 0)
	case '-':
		r = x - y
		return r, (r < x) == (y > 0)
	case '*':
		return documents.MultiplyInts(x, y)
	}
	if y == 0 || y == -1 && x == math.MinInt64 {
		return 0, false
	}
	return x % y, true
}

// finite returns a number, or Nothing if it is infinite or NaN.
func finite(f float64) []documents.Value {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	return []documents.Value{documents.Double(f)}
}
