package query

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
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

// value is a value of a condition.
type value struct {
	kind kind
	i    int64 // of an integer or a boolean
	f    float64
	s    string // a text or an object
}

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
	b := object[1:]
	switch binary.Code(object[0]) {
	case binary.Null:
		return value{}
	case binary.Bool:
		return truth(b[0] != 0)
	case binary.Byte:
		return value{kind: kindInt, i: int64(int8(b[0]))}
	case binary.Short:
		return value{kind: kindInt, i: int64(int16(le.LittleEndian.Uint16(b)))}
	case binary.Int:
		return value{kind: kindInt, i: int64(int32(le.LittleEndian.Uint32(b)))}
	case binary.Long, binary.Date, binary.Time:
		return value{kind: kindInt, i: int64(le.LittleEndian.Uint64(b))}
	case binary.Float:
		return value{kind: kindFloat, f: float64(math.Float32frombits(le.LittleEndian.Uint32(b)))}
	case binary.Double:
		return value{kind: kindFloat, f: math.Float64frombits(le.LittleEndian.Uint64(b))}
	case binary.Char:
		return value{kind: kindText, s: string(rune(le.LittleEndian.Uint16(b)))}
	case binary.String:
		return value{kind: kindText, s: string(b[4:])}
	}
	return value{kind: kindOther, s: string(object)}
}

// order compares two values; ok is false if they cannot be compared. For values that are only equal or not, n is 0
// or 1.
func order(a, b value) (n int, ok bool) {
	number := func(v value) bool { return v.kind == kindInt || v.kind == kindFloat }
	switch {
	case number(a) && number(b):
		if a.kind == b.kind && a.kind == kindInt {
			return cmp.Compare(a.i, b.i), true
		}
		return cmp.Compare(a.float(), b.float()), true
	case a.kind != b.kind || a.kind == kindNull:
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

func (v value) float() float64 {
	if v.kind == kindInt {
		return float64(v.i)
	}
	return v.f
}

// node is a part of a condition.
type node interface{ eval(r *row) value }

type (
	field    struct{ of, name string }
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

func (f *field) eval(r *row) value { return valueOf(r.field(f.name)) }

func (l literal) eval(*row) value { return l.value }

func (a argument) eval(r *row) value { return r.run.args[a] }

// eval uses three-valued logic: null means unknown.
func (l *logic) eval(r *row) value {
	a := l.a.eval(r)
	if l.op == "NOT" {
		if a.kind != kindBool {
			return value{}
		}
		return truth(a.i == 0)
	}
	decides := truth(l.op == "OR")
	if a == decides {
		return a
	}
	b := l.b.eval(r)
	switch {
	case b == decides:
		return b
	case a.kind != kindBool || b.kind != kindBool:
		return value{}
	}
	return truth(l.op == "AND")
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
	st     *Statement
	types  binary.Types
	args   []value
	typeID int32    // of the objects in the table
	code   int      // the type of simple values in the table; -1 for complex ones
	fields []string // of the type
	cells  []string // the fields in the columns
	ids    map[string]int32
	parts  map[string]string // columns that are the whole key or value, to "_KEY" and "_VAL"
	rows   []result
	count  int64
	err    error
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
}

// simple are the names of tables of simple values.
var simple = map[string]binary.Code{"BYTE": binary.Byte, "SHORT": binary.Short, "INTEGER": binary.Int, "INT": binary.Int,
	"LONG": binary.Long, "FLOAT": binary.Float, "DOUBLE": binary.Double, "BOOLEAN": binary.Bool, "STRING": binary.String,
	"CHARACTER": binary.Char, "UUID": binary.UUID, "DATE": binary.Date, "TIMESTAMP": binary.Timestamp, "TIME": binary.Time,
	"BYTE[]": binary.ByteArray}

// NewRun begins to execute a statement on the cache with a configuration, and objects as arguments.
func (st *Statement) NewRun(config *binary.Config, types binary.Types, args [][]byte) (*Run, error) {
	if len(args) != st.args {
		return nil, fmt.Errorf("the statement has %d arguments, not %d", st.args, len(args))
	}
	r := &Run{st: st, types: types, code: -1, ids: map[string]int32{}, parts: map[string]string{}}
	for _, a := range args {
		r.args = append(r.args, valueOf(a))
	}
	typ, entities := st.Table, config.Entities()
	if len(entities) > 0 {
		at := slices.IndexFunc(entities, func(e binary.Entity) bool {
			return strings.EqualFold(e.Table, st.Table) || strings.EqualFold(simpleName(e.ValueType), st.Table)
		})
		if at < 0 {
			return nil, fmt.Errorf("Table %q not found", st.Table)
		}
		typ = simpleName(entities[at].ValueType)
		for field, alias := range entities[at].Aliases {
			r.ids[strings.ToUpper(alias)] = binary.ID(field)
		}
		r.name(&entities[at])
	}
	r.typeID = binary.ID(typ)
	if t := types(r.typeID); t != nil {
		for _, f := range t.Fields {
			name := strings.ToUpper(f.Name)
			if r.ids[name] = f.ID; r.parts[name] == "" {
				r.fields = append(r.fields, name)
			}
		}
	} else if code, ok := simple[strings.ToUpper(typ)]; ok {
		r.code = int(code)
	} else if len(entities) == 0 {
		return nil, fmt.Errorf("Table %q not found", st.Table)
	}
	r.cells = r.fields
	if st.columns != nil {
		r.cells = nil
		for _, c := range st.columns {
			walk(c.node, r.check)
			if f, ok := c.node.(*field); ok {
				r.cells = append(r.cells, f.name)
			}
		}
	}
	for _, o := range st.order {
		walk(o.node, r.check)
	}
	walk(st.where, r.check)
	return r, r.err
}

// name notes the columns of a table that are the whole key or the whole value.
func (r *Run) name(e *binary.Entity) {
	for column, part := range map[string]string{e.KeyField: "_KEY", e.ValueField: "_VAL"} {
		if column != "" {
			r.parts[strings.ToUpper(column)] = part
		}
	}
	for _, f := range e.Fields {
		if name := strings.ToUpper(f.Name); r.parts[name] != "" {
			r.fields = append(r.fields, name)
		}
	}
}

// check sets an error for fields that the type does not have.
func (r *Run) check(n node) {
	f, ok := n.(*field)
	if !ok || r.err != nil || strings.EqualFold(f.name, "_KEY") || strings.EqualFold(f.name, "_VAL") {
		return
	}
	if _, known := r.ids[strings.ToUpper(f.name)]; !known && r.parts[strings.ToUpper(f.name)] == "" {
		r.err = fmt.Errorf("Column %q not found", f.name)
	}
}

// simpleName is the name of a type without its package or outer class.
func simpleName(name string) string { return name[strings.LastIndexAny(name, ".+")+1:] }

// Add adds a key with its value to the result if it matches. It returns false if no more keys are needed.
func (r *Run) Add(key, value []byte) (more bool) {
	row := &row{run: r, key: key, value: value}
	if !row.typed() {
		return true
	}
	if r.st.where != nil && r.st.where.eval(row) != truth(true) {
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
	for _, name := range r.cells {
		res.cells = append(res.cells, bytes.Clone(row.field(name)))
	}
	r.rows = append(r.rows, res)
	enough := len(r.st.order) == 0 && r.st.limit >= 0 && len(r.rows)-r.st.offset >= r.st.limit
	return r.err == nil && !enough
}

// typed reports whether the value is of the table's type.
func (r *row) typed() bool {
	if r.run.code >= 0 {
		return len(r.value) > 0 && int(r.value[0]) == r.run.code
	}
	o, err := binary.ParseObject(r.value)
	return err == nil && o.TypeID == r.run.typeID
}

// field returns a field as an object; nil if the value does not have it.
func (r *row) field(name string) []byte {
	if part := r.run.parts[strings.ToUpper(name)]; part != "" {
		name = part
	}
	switch {
	case strings.EqualFold(name, "_KEY"):
		return r.key
	case strings.EqualFold(name, "_VAL"):
		return r.value
	}
	o, err := binary.ParseObject(r.value)
	if err != nil {
		return nil
	}
	v, err := o.Field(r.run.types.Schemas(), r.run.ids[strings.ToUpper(name)])
	if err != nil && r.run.err == nil {
		r.run.err = err
	}
	if v, err = binary.Unwrap(v); err != nil {
		return nil
	}
	return v
}

// Columns returns the names of the columns of the result, in upper case unless they were quoted.
func (r *Run) Columns() []string {
	if r.st.columns == nil {
		return r.fields
	}
	names := make([]string, len(r.st.columns))
	for i, c := range r.st.columns {
		names[i] = c.name
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
		for j, cell := range row.cells {
			if cell == nil {
				row.cells[j] = binary.AppendNull(nil)
			}
		}
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
