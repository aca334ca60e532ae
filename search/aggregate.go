package search

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/resp"
)

// Step is a step of an aggregation. Steps are executed in the given order, each on the rows of the step before.
//
// Names of fields and expressions must come from the program, not from users. Put text that users enter into the query,
// or quote it with Quote.
type Step interface {
	// args appends the arguments of the step.
	args(dst []any) []any
}

type stepFunc func(dst []any) []any

func (f stepFunc) args(dst []any) []any { return f(dst) }

// property returns a name with a single @ before it.
func property(name string) string { return "@" + strings.TrimPrefix(name, "@") }

// properties appends the number of names and the names.
func properties(dst []any, names []string) []any {
	dst = append(dst, len(names))
	for _, name := range names {
		dst = append(dst, property(name))
	}
	return dst
}

// Load adds fields of the documents to the rows. Apply and Filter need it for fields that are not sortable.
func Load(fields ...string) Step {
	return stepFunc(func(dst []any) []any { return properties(append(dst, "LOAD"), fields) })
}

// Apply adds the value of an expression, such as "@price * 2", to the rows under the name as.
func Apply(expression, as string) Step {
	return stepFunc(func(dst []any) []any { return append(dst, "APPLY", expression, "AS", as) })
}

// Filter keeps the rows for which an expression is true.
func Filter(expression string) Step {
	return stepFunc(func(dst []any) []any { return append(dst, "FILTER", expression) })
}

// Quote returns a text as a string of an expression.
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "\\\n").Replace(s) + `"`
}

// Page keeps n rows after the first offset rows.
func Page(offset, n int) Step {
	return stepFunc(func(dst []any) []any { return append(dst, "LIMIT", offset, n) })
}

// Key is a field by which rows are sorted, and the direction.
type Key struct {
	name       string
	descending bool
}

// Asc sorts from the lowest value to the highest.
func Asc(name string) Key { return Key{name, false} }

// Desc sorts from the highest value to the lowest.
func Desc(name string) Key { return Key{name, true} }

// maxRows makes the server sort all rows.
const maxRows = 1_000_000

// OrderBy sorts the rows.
func OrderBy(keys ...Key) Step {
	return stepFunc(func(dst []any) []any {
		dst = append(dst, "SORTBY", 2*len(keys))
		for _, k := range keys {
			dst = append(dst, property(k.name), map[bool]string{false: "ASC", true: "DESC"}[k.descending])
		}
		return append(dst, "MAX", maxRows)
	})
}

// Group merges rows with the same values into one; its methods add values to the merged row.
type Group struct {
	by       []string
	reducers []any
}

// GroupBy groups rows by fields. Without fields it merges all rows into one.
func GroupBy(fields ...string) *Group { return &Group{by: fields} }

func (g *Group) args(dst []any) []any {
	return append(properties(append(dst, "GROUPBY"), g.by), g.reducers...)
}

// reduce adds a reducer.
func (g *Group) reduce(name, as string, args ...any) *Group {
	g.reducers = append(append(append(g.reducers, "REDUCE", name, len(args)), args...), "AS", as)
	return g
}

// Count adds the number of rows.
func (g *Group) Count(as string) *Group { return g.reduce("COUNT", as) }

// CountDistinct adds the number of different values of a field.
func (g *Group) CountDistinct(field, as string) *Group {
	return g.reduce("COUNT_DISTINCT", as, property(field))
}

// Sum adds the sum of a field.
func (g *Group) Sum(field, as string) *Group { return g.reduce("SUM", as, property(field)) }

// Min adds the lowest value of a field.
func (g *Group) Min(field, as string) *Group { return g.reduce("MIN", as, property(field)) }

// Max adds the highest value of a field.
func (g *Group) Max(field, as string) *Group { return g.reduce("MAX", as, property(field)) }

// Avg adds the average of a field.
func (g *Group) Avg(field, as string) *Group { return g.reduce("AVG", as, property(field)) }

// StdDev adds the standard deviation of a field.
func (g *Group) StdDev(field, as string) *Group { return g.reduce("STDDEV", as, property(field)) }

// Quantile adds a quantile of a field; that of 0.5 is the median.
func (g *Group) Quantile(field string, q float64, as string) *Group {
	return g.reduce("QUANTILE", as, property(field), number(q))
}

// List adds the list of different values of a field.
func (g *Group) List(field, as string) *Group { return g.reduce("TOLIST", as, property(field)) }

// First adds the value of field in the row that comes first in the order of by.
func (g *Group) First(field string, by Key, as string) *Group {
	return g.reduce("FIRST_VALUE", as, property(field), "BY", property(by.name), map[bool]string{false: "ASC", true: "DESC"}[by.descending])
}

// Aggregate executes steps on the documents that a query finds, and yields the resulting rows. R is a
// map[string]string, or a struct whose search tags name the values. Missing values are zero. An error ends the loop as
// its last step.
func Aggregate[R, T any](ctx context.Context, x *Index[T], q Query, steps ...Step) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		fail := func(err error) {
			var none R
			yield(none, err)
		}
		scan, err := scanner[R]()
		if err != nil {
			fail(err)
			return
		}
		args, err := x.aggregate(q, steps)
		var reply resp.Reply
		if err == nil {
			reply, err = do(ctx, x.db, args)
		}
		var found found
		if err == nil {
			found, err = rows(reply)
		}
		if err != nil {
			fail(err)
			return
		}
		for _, row := range found.rows {
			var v R
			values, err := row["extra_attributes"].Map()
			if err == nil {
				err = scan(&v, values)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// aggregate returns the command of an aggregation.
func (x *Index[T]) aggregate(q Query, steps []Step) ([]any, error) {
	t, params, err := x.render(q, "")
	if err != nil {
		return nil, err
	}
	args := append([]any{"FT.AGGREGATE", x.name, t.text, "DIALECT", 2}, params...)
	for _, s := range steps {
		args = s.args(args)
	}
	return args, nil
}

// scanner returns the function that sets an R from a row.
func scanner[R any]() (func(v *R, row map[string]resp.Reply) error, error) {
	t := reflect.TypeFor[R]()
	if t == reflect.TypeFor[map[string]string]() {
		return func(v *R, row map[string]resp.Reply) error {
			m := make(map[string]string, len(row))
			for name, value := range row {
				m[name] = textOrList(value)
			}
			reflect.ValueOf(v).Elem().Set(reflect.ValueOf(m))
			return nil
		}, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("search: rows are structs or map[string]string, not %s", t)
	}
	s, err := schemaOf(t, true) // JSON, because a row may have lists
	if err != nil {
		return nil, err
	}
	return func(v *R, row map[string]resp.Reply) error { return s.row(reflect.ValueOf(v).Elem(), row) }, nil
}

// textOrList returns a value as text; a list becomes its elements, quoted, in brackets.
func textOrList(r resp.Reply) string {
	parts, err := r.Slice()
	if err != nil {
		return textOf(r)
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = strconv.Quote(textOf(part))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// row sets a struct from the values of a row.
func (s *schema) row(v reflect.Value, row map[string]resp.Reply) error {
	for _, f := range s.fields {
		r, ok := row[f.name]
		if !ok || r.IsNull() {
			continue
		}
		fv := v.FieldByIndex(f.at)
		if f.pointer {
			fv.Set(reflect.New(f.goType))
			fv = fv.Elem()
		}
		err := f.fromRow(fv, r)
		if err != nil {
			return fmt.Errorf("search: value %s of a row: %w", f.name, err)
		}
	}
	return nil
}

// fromRow sets v from a value of a row.
func (f *field) fromRow(v reflect.Value, r resp.Reply) error {
	if v.Kind() != reflect.Slice || f.typ == vectorType {
		s, err := r.Text()
		if err != nil {
			return err
		}
		if f.typ == "" && !f.plain() {
			return errors.New("its type cannot be set")
		}
		return f.fromText(v, s)
	}
	if s, err := r.Text(); err == nil && v.Type().Elem().Kind() == reflect.String && f.separator != "" {
		return f.fromText(v, s)
	}
	return r.Scan(v.Addr().Interface())
}
