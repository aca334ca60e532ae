package query

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	le "encoding/binary"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// kind is a kind of comparable values.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindOther // values that are only equal or not
)

// value is a value of an expression.
type value struct {
	kind kind
	code binary.Code // of the object that it is; 0 if it was calculated
	i    int64       // of an integer, a boolean, or a date or time (ms)
	f    float64     // of a number with a point; the nanoseconds of a timestamp
	s    string      // a text or an object
}

// is reports whether a value is a boolean.
func (v value) is(truth bool) bool { return v.kind == kindBool && v.i != 0 == truth }

func truth(v bool) value {
	if v {
		return value{kind: kindBool, i: 1}
	}
	return value{kind: kindBool}
}

// valueOf returns the value of an object; nil is null.
func valueOf(object []byte) value {
	if len(object) == 0 {
		return value{}
	}
	b, code := object[1:], binary.Code(object[0])
	switch code {
	case binary.Null:
		return value{}
	case binary.Bool:
		return value{kind: kindBool, code: code, i: int64(min(b[0], 1))}
	case binary.Byte:
		return value{kind: kindInt, code: code, i: int64(int8(b[0]))}
	case binary.Short:
		return value{kind: kindInt, code: code, i: int64(int16(le.LittleEndian.Uint16(b)))}
	case binary.Int:
		return value{kind: kindInt, code: code, i: int64(int32(le.LittleEndian.Uint32(b)))}
	case binary.Long, binary.Date, binary.Time:
		return value{kind: kindInt, code: code, i: int64(le.LittleEndian.Uint64(b))}
	case binary.Timestamp:
		nanos := float64(int32(le.LittleEndian.Uint32(b[8:])))
		return value{kind: kindInt, code: code, i: int64(le.LittleEndian.Uint64(b)), f: nanos}
	case binary.Float:
		return value{kind: kindFloat, code: code, f: float64(math.Float32frombits(le.LittleEndian.Uint32(b)))}
	case binary.Double:
		return value{kind: kindFloat, code: code, f: math.Float64frombits(le.LittleEndian.Uint64(b))}
	case binary.Decimal:
		if text, ok := binary.AsDecimal(object); ok {
			f, _ := strconv.ParseFloat(text, 64) // infinite if it is too large
			return value{kind: kindFloat, code: code, f: f}
		}
	case binary.Char:
		return value{kind: kindText, code: code, s: string(rune(le.LittleEndian.Uint16(b)))}
	case binary.String:
		return value{kind: kindText, code: code, s: string(b[4:])}
	}
	return value{kind: kindOther, code: code, s: string(object)}
}

// order compares two values; ok is false if they cannot be compared. For values that are only equal or not, n is 0
// or 1. A text is compared as a value of the other one's type.
func order(a, b value) (n int, ok bool) {
	number := func(v value) bool { return v.kind == kindInt || v.kind == kindFloat }
	switch {
	case number(a) && number(b):
		if a.kind == b.kind && a.kind == kindInt {
			return cmp.Or(cmp.Compare(a.i, b.i), cmp.Compare(a.f, b.f)), true
		}
		return cmp.Compare(a.float(), b.float()), true
	case a.kind == kindNull || b.kind == kindNull:
		return 0, false
	case a.kind == kindText && b.kind != kindText:
		if a, ok = a.as(b); ok {
			return order(a, b)
		}
		return 0, false
	case b.kind == kindText && a.kind != kindText:
		if b, ok = b.as(a); ok {
			return order(a, b)
		}
		return 0, false
	case a.kind != b.kind:
		return 0, false
	case a.kind == kindBool:
		return cmp.Compare(a.i, b.i), true
	case a.kind == kindText:
		return strings.Compare(a.s, b.s), true
	case a.s == b.s:
		return 0, true
	}
	return 1, true
}

// as returns a text as a value of the type of another value.
func (v value) as(other value) (converted value, ok bool) {
	code := other.code
	switch {
	case other.kind == kindFloat || other.kind == kindInt && code == 0:
		code = binary.Double
	case other.kind == kindBool:
		code = binary.Bool
	}
	object, ok := v.to(code)
	if !ok {
		return value{}, false
	}
	converted = valueOf(object)
	return converted, converted.kind != kindText
}

func (v value) float() float64 {
	if v.kind == kindInt {
		return float64(v.i)
	}
	return v.f
}

// node is a part of a condition.
type node interface{ eval(r *row) value }

type (
	field struct {
		of, name string
		column   *tableColumn // set when the statement is executed
	}
	literal  struct{ value }
	argument int
	logic    struct {
		op   string
		a, b node
	}
	compare struct {
		op   string
		a, b node
	}
	arithmetic struct {
		op   string
		a, b node
	}
	isNull struct{ a node }
	like   struct{ a, pattern node }
	oneOf  struct {
		a  node
		of []node
	}
)

// walk calls fn with a node and all nodes in it.
func walk(n node, fn func(n node)) {
	switch n := n.(type) {
	case nil:
		return
	case *logic:
		walk(n.a, fn)
		walk(n.b, fn)
	case *compare:
		walk(n.a, fn)
		walk(n.b, fn)
	case *arithmetic:
		walk(n.a, fn)
		walk(n.b, fn)
	case *isNull:
		walk(n.a, fn)
	case *like:
		walk(n.a, fn)
		walk(n.pattern, fn)
	case *oneOf:
		walk(n.a, fn)
		for _, of := range n.of {
			walk(of, fn)
		}
	}
	fn(n)
}

func (f *field) eval(r *row) value { return valueOf(r.cell(f.column)) }

func (l literal) eval(*row) value { return l.value }

func (a argument) eval(r *row) value { return r.run.args[a] }

// objectOf returns an expression as an object.
func objectOf(n node, r *row) []byte {
	switch n := n.(type) {
	case *field:
		if object := r.cell(n.column); object != nil {
			return bytes.Clone(object)
		}
		return binary.AppendNull(nil)
	case argument:
		return r.run.objects[n]
	}
	return n.eval(r).object()
}

// eval uses three-valued logic: null means unknown.
func (l *logic) eval(r *row) value {
	a := l.a.eval(r)
	if l.op == "NOT" {
		if a.kind != kindBool {
			return value{}
		}
		return truth(a.i == 0)
	}
	decides := l.op == "OR"
	if a.is(decides) {
		return a
	}
	b := l.b.eval(r)
	switch {
	case b.is(decides):
		return b
	case a.kind != kindBool || b.kind != kindBool:
		return value{}
	}
	return truth(!decides)
}

// eval calculates with longs and doubles.
func (c *arithmetic) eval(r *row) value {
	a, b := c.a.eval(r), c.b.eval(r)
	if a.kind == kindNull || b.kind == kindNull {
		return value{}
	}
	if c.op == "||" {
		left, ok := a.text()
		right, fits := b.text()
		if !ok || !fits {
			return r.fail("Data conversion error: the operands of || must be texts")
		}
		if len(left)+len(right) > maxJoined {
			return r.fail("The text is too long")
		}
		return value{kind: kindText, s: left + right}
	}
	if a.kind == kindInt && b.kind == kindInt {
		return c.integers(r, a.i, b.i)
	}
	left, ok := a.number()
	right, fits := b.number()
	if !ok || !fits {
		return r.fail("Data conversion error: the operands of " + c.op + " must be numbers")
	}
	v := value{kind: kindFloat}
	switch c.op {
	case "+":
		v.f = left + right
	case "-":
		v.f = left - right
	case "*":
		v.f = left * right
	default:
		if right == 0 {
			return r.fail("Division by zero")
		}
		if v.f = left / right; c.op == "%" {
			v.f = math.Mod(left, right)
		}
	}
	return v
}

// maxJoined is the longest text that || makes. A statement may have thousands of them.
const maxJoined = 64 << 10

// integers calculates with whole numbers.
func (c *arithmetic) integers(r *row, a, b int64) value {
	n, ok := int64(0), true
	switch c.op {
	case "+":
		n = a + b
		ok = (n > a) == (b > 0)
	case "-":
		n = a - b
		ok = (n < a) == (b > 0)
	case "*":
		n = a * b
		ok = a == 0 || n/a == b && !(a == -1 && b == math.MinInt64)
	default:
		switch {
		case b == 0:
			return r.fail("Division by zero")
		case b == -1 && c.op == "/":
			n, ok = -a, a != math.MinInt64
		case b == -1:
		case c.op == "/":
			n = a / b
		default:
			n = a % b
		}
	}
	if !ok {
		return r.fail("Numeric value out of range")
	}
	return value{kind: kindInt, i: n}
}

// fail ends the execution of the statement, and returns null.
func (r *row) fail(message string) value {
	if r.run.err == nil {
		r.run.err = errors.New(message)
	}
	return value{}
}

func (c *compare) eval(r *row) value {
	n, ok := order(c.a.eval(r), c.b.eval(r))
	if !ok {
		return value{}
	}
	switch c.op {
	case "=":
		return truth(n == 0)
	case "<":
		return truth(n < 0)
	case "<=":
		return truth(n <= 0)
	case ">":
		return truth(n > 0)
	case ">=":
		return truth(n >= 0)
	}
	return truth(n != 0)
}

func (i *isNull) eval(r *row) value { return truth(i.a.eval(r).kind == kindNull) }

func (l *like) eval(r *row) value {
	a, pattern := l.a.eval(r), l.pattern.eval(r)
	if a.kind != kindText || pattern.kind != kindText {
		return value{}
	}
	return truth(matches(a.s, pattern.s))
}

// matches reports whether a text matches a pattern with % for any letters and _ for one.
func matches(s, pattern string) bool {
	star, from := -1, 0
	i, j := 0, 0
	for i < len(s) {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case j < len(pattern) && pattern[j] == '%':
			star, from = j, i
			j++
		case j < len(pattern) && pattern[j] == '_':
			i, j = i+size, j+1
		case j < len(pattern) && pattern[j] == s[i]:
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = from, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[j:], "%") == ""
}

func (o *oneOf) eval(r *row) value {
	a, unknown := o.a.eval(r), false
	for _, of := range o.of {
		n, ok := order(a, of.eval(r))
		if ok && n == 0 {
			return truth(true)
		}
		unknown = unknown || !ok
	}
	if unknown {
		return value{}
	}
	return truth(false)
}

// Run is a statement that is being executed.
type Run struct {
	st      *Statement
	types   binary.Types
	table   *table
	args    []value
	objects [][]byte               // the arguments
	cells   []node                 // the columns of the result
	sets    []*tableColumn         // the columns that are written
	written map[int32]*binary.Type // types that must be registered
	rows    []result
	count   int64
	err     error
}

// result is a matching row.
type result struct {
	cells  [][]byte
	orders []value
}

// row is a key with its value.
type row struct {
	run        *Run
	key, value []byte
	// k and v are the key and the value if they are complex; nil if not.
	k, v *binary.Object
}

// NewRun begins to execute a statement on the cache with a configuration, and objects as arguments.
func (st *Statement) NewRun(config *binary.Config, types binary.Types, args [][]byte) (*Run, error) {
	if len(args) != st.args {
		return nil, fmt.Errorf("the statement has %d arguments, not %d", st.args, len(args))
	}
	if st.Kind.Defines() {
		return nil, fmt.Errorf("%w: the statement has no rows", ErrUnsupported)
	}
	t, err := st.newTable(config, types)
	if err != nil {
		return nil, err
	}
	r := &Run{st: st, types: types, table: t, objects: args}
	for _, a := range args {
		r.args = append(r.args, valueOf(a))
	}
	st.walk(func(n node) {
		if f, ok := n.(*field); ok && r.err == nil {
			f.column, r.err = t.column(f.name)
		}
	})
	switch {
	case r.err != nil:
	case st.Kind == Select:
		r.selects()
	case st.Kind != Delete:
		r.writes()
	}
	return r, r.err
}

// selects sets the columns of the result.
func (r *Run) selects() {
	for _, c := range r.st.columns {
		if c.node != nil {
			r.cells = append(r.cells, c.node)
		}
	}
	if r.st.columns == nil {
		for _, c := range r.table.columns {
			r.cells = append(r.cells, &field{name: c.Name, column: c})
		}
	}
}

// Add adds a key with its value to the result if it matches. It returns false if no more keys are needed.
func (r *Run) Add(key, value []byte) (more bool) {
	if r.st.limit == 0 && len(r.st.order) == 0 {
		return false
	}
	row := r.row(key, value)
	if row == nil {
		return true
	}
	if r.st.where != nil && !r.st.where.eval(row).is(true) {
		return r.err == nil
	}
	if r.st.count {
		r.count++
		return true
	}
	var res result
	for _, o := range r.st.order {
		res.orders = append(res.orders, o.node.eval(row))
	}
	switch r.st.Kind {
	case Update:
		res.cells = [][]byte{bytes.Clone(key), r.updated(row)}
	case Delete:
		res.cells = [][]byte{bytes.Clone(key)}
	}
	for _, n := range r.cells {
		res.cells = append(res.cells, objectOf(n, row))
	}
	r.rows = append(r.rows, res)
	enough := len(r.st.order) == 0 && r.st.limit >= 0 && len(r.rows)-r.st.offset >= r.st.limit
	return r.err == nil && !enough
}

// row returns a key with its value, or nil if they are not of the types of the table.
func (r *Run) row(key, value []byte) *row {
	row := &row{run: r, key: key, value: value}
	row.k, row.v = complexOf(key), complexOf(value)
	if !r.table.values.has(value, row.v) || r.table.made && !r.table.keys.has(key, row.k) {
		return nil
	}
	return row
}

// complexOf returns an object that is complex, or nil.
func complexOf(object []byte) *binary.Object {
	if len(object) == 0 || binary.Code(object[0]) != binary.Complex {
		return nil
	}
	o, err := binary.ParseObject(object)
	if err != nil {
		return nil
	}
	return &o
}

// cell returns the value of a column as an object; nil if the row does not have it.
func (r *row) cell(c *tableColumn) []byte {
	o := r.v
	switch c.part {
	case wholeKey:
		return r.key
	case wholeValue:
		return r.value
	case fieldOfKey:
		o = r.k
	}
	if o == nil {
		return nil
	}
	v, err := o.Field(r.run.types.Schemas(), c.id)
	if err != nil && r.run.err == nil {
		r.run.err = err
	}
	if v, err = binary.Unwrap(v); err != nil {
		return nil
	}
	return v
}

// Columns returns the names of the columns of the result, in upper case unless they were quoted.
func (r *Run) Columns() (names []string) {
	if r.st.columns == nil {
		for _, c := range r.table.columns {
			names = append(names, c.Name)
		}
	}
	for _, c := range r.st.columns {
		names = append(names, c.name)
	}
	return names
}

// Rows returns the rows of the result, whose cells are objects.
func (r *Run) Rows() ([][][]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.st.count {
		r.rows = []result{{cells: [][]byte{binary.AppendLong(nil, r.count)}}}
	}
	slices.SortStableFunc(r.rows, func(a, b result) int {
		for i, o := range r.st.order {
			n := sorted(a.orders[i], b.orders[i])
			if o.descending {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
	rows := r.rows[min(r.st.offset, len(r.rows)):]
	if r.st.limit >= 0 {
		rows = rows[:min(r.st.limit, len(rows))]
	}
	out := make([][][]byte, len(rows))
	for i, row := range rows {
		out[i] = row.cells
	}
	return out, nil
}

// sorted compares values of any kinds; null is first.
func sorted(a, b value) int {
	if n, ok := order(a, b); ok && a.kind != kindOther {
		return n
	}
	if n := cmp.Compare(a.kind, b.kind); n != 0 {
		return n
	}
	return strings.Compare(a.s, b.s)
}
