package search

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/search/text"
)

// Query selects documents. It is immutable and may be used by several goroutines. The zero value finds nothing. Errors
// in it, such as an unknown field, are returned when it is executed.
type Query struct {
	node node
}

// node is a part of a query.
type node interface {
	// render returns the part as an operand, "" if it has no words.
	render(r *renderer) (string, error)
}

// renderer makes the text of a query and its parameters.
type renderer struct {
	schema    *schema
	stopwords *text.Stopwords
	language  text.Language
	params    []any // names and values
	distance  bool  // a part of the query yields the distance of its vectors
	nearest   int   // k of KNN, 0 without KNN
}

// nodeFunc is a function as a node.
type nodeFunc func(r *renderer) (string, error)

func (f nodeFunc) render(r *renderer) (string, error) { return f(r) }

// distanceName is the name of a vector's distance in replies.
const distanceName = "__distance"

// everything is the query of all documents.
const everything = "*"

// query returns the text of a whole query.
func (r *renderer) query(q Query) (string, error) {
	switch n := q.node.(type) {
	case nil:
		return "", nil
	case nearest:
		return n.query(r)
	default:
		return n.render(r)
	}
}

// param adds a parameter and returns its reference for the query.
func (r *renderer) param(value any) string {
	name := "_" + strconv.Itoa(len(r.params)/2)
	r.params = append(r.params, name, value)
	return "$" + name
}

// field returns the field of a name, which must have one of the types.
func (r *renderer) field(name string, types ...string) (*field, error) {
	f := r.schema.byName[name]
	switch {
	case f == nil:
		return nil, fmt.Errorf("search: there is no field %q", name)
	case !slices.Contains(types, f.typ):
		return nil, fmt.Errorf("search: field %q is not of type %s", name, strings.ToLower(strings.Join(types, " or ")))
	}
	return f, nil
}

// modifier returns the text that limits a query to some fields, "" for all.
func (r *renderer) modifier(fields []string) (string, error) {
	if len(fields) == 0 {
		return "", nil
	}
	names := make([]string, len(fields))
	for i, name := range fields {
		if _, err := r.field(name, textType); err != nil {
			return "", err
		}
		names[i] = escape(name)
	}
	return "@" + strings.Join(names, "|") + ":", nil
}

// escape returns a name for a query: with a backslash before every character that is not part of a word.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < 0x80 && c != '_' && !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// words splits a text into words as the index does.
func (r *renderer) words(s string) (list []string) {
	t := text.Tokenizer{Stopwords: r.stopwords, Language: r.language}
	for t.Start([]byte(s), 0); t.Next(); {
		list = append(list, string(t.Token.Text))
	}
	return list
}

// word returns a word as a parameter. The server takes backslashes out of it.
func (r *renderer) word(w string) string { return r.param(strings.ReplaceAll(w, `\`, `\\`)) }

// All finds all documents.
func All() Query {
	return Query{nodeFunc(func(*renderer) (string, error) { return everything, nil })}
}

// Text finds documents that have all words of a text, in any order, in the named fields, or in any field of type text
// if none is named. Words are stemmed in the index's language, punctuation separates them, and stop words are ignored.
// A text of stop words alone has no effect beside other queries, and finds nothing on its own.
func Text(s string, fields ...string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		list := r.words(s)
		for i, w := range list {
			list[i] = r.word(w)
		}
		return r.inFields(strings.Join(list, " "), fields)
	})}
}

// inFields limits a query text to some fields.
func (r *renderer) inFields(s string, fields []string) (string, error) {
	modifier, err := r.modifier(fields)
	if s == "" || err != nil {
		return "", err
	}
	return "(" + modifier + "(" + s + "))", nil
}

// Phrase finds documents in which the exact words of a text follow each other. Stop words are ignored, also between the
// others.
func Phrase(s string, fields ...string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		list := r.words(s)
		if len(list) == 0 {
			return r.inFields("", fields)
		}
		for i, w := range list {
			list[i] = escape(w)
		}
		// The blank separates a backslash at the end of the last word from the quote.
		return r.inFields(`"`+strings.Join(list, " ")+` "`, fields)
	})}
}

// Prefix is Text for search while typing: the last word may be the beginning of a word. A beginning of a single byte
// finds nothing, unless search-min-prefix allows it.
func Prefix(s string, fields ...string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		all := renderer{language: r.language} // the beginning of a word may look like a stop word
		list := all.words(s)
		for i, w := range list {
			switch {
			case i == len(list)-1:
				list[i] = r.word(w) + "*"
			case r.stopwords.HasString(w):
				list[i] = ""
			default:
				list[i] = r.word(w)
			}
		}
		list = slices.DeleteFunc(list, func(w string) bool { return w == "" })
		return r.inFields(strings.Join(list, " "), fields)
	})}
}

// Fuzzy finds documents with words that are similar to those of a text: up to distance characters, 1 to 3, are changed,
// added or missing.
func Fuzzy(s string, distance int, fields ...string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		if distance < 1 || distance > 3 {
			return "", fmt.Errorf("search: the distance of Fuzzy is 1, 2 or 3, not %d", distance)
		}
		list := r.words(s)
		around := strings.Repeat("%", distance)
		for i, w := range list {
			list[i] = around + r.word(w) + around
		}
		return r.inFields(strings.Join(list, " "), fields)
	})}
}

// Tag finds documents that have one of the tags in a field. It ignores blanks around a tag, and the case unless the
// field is case-sensitive.
func Tag(field string, tags ...string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) { return r.tags(field, tags, "") })}
}

// TagPrefix finds documents that have a tag with this prefix in a field.
func TagPrefix(field, prefix string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) { return r.tags(field, []string{prefix}, "*") })}
}

func (r *renderer) tags(field string, tags []string, behind string) (string, error) {
	f, err := r.field(field, tagType)
	if err != nil {
		return "", err
	}
	if len(tags) == 0 {
		return "", fmt.Errorf("search: the query for field %q has no tag", field)
	}
	list := make([]string, len(tags))
	for i, tag := range tags {
		list[i] = r.param(strings.ReplaceAll(strings.Trim(tag, " \t\r\n\v\f"), `\`, `\\`)) + behind // escapes count in tags
	}
	return "(@" + escape(f.name) + ":{" + strings.Join(list, "|") + "})", nil
}

// Number is a type of number for ranges.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Range finds documents with a number from min to max, both included.
func Range[N Number](field string, min, max N) Query {
	return bounds(field, "", bound(min), "", bound(max))
}

// Equal finds documents with the number n.
func Equal[N Number](field string, n N) Query { return bounds(field, "", bound(n), "", bound(n)) }

// AtLeast finds documents with a number of min or more.
func AtLeast[N Number](field string, min N) Query { return bounds(field, "", bound(min), "", "+inf") }

// AtMost finds documents with a number of max or less.
func AtMost[N Number](field string, max N) Query { return bounds(field, "", "-inf", "", bound(max)) }

// Above finds documents with a number of more than min.
func Above[N Number](field string, min N) Query { return bounds(field, "(", bound(min), "", "+inf") }

// Below finds documents with a number of less than max.
func Below[N Number](field string, max N) Query { return bounds(field, "", "-inf", "(", bound(max)) }

// Between finds documents with a time from from (included) to to (excluded). A zero time means no limit.
func Between(field string, from, to time.Time) Query {
	least, most := "-inf", "+inf"
	if !from.IsZero() {
		least = seconds(from)
	}
	if !to.IsZero() {
		most = seconds(to)
	}
	return bounds(field, "", least, "(", most)
}

// bound returns a number of any type as text.
func bound[N Number](n N) string { return scalar(reflect.ValueOf(n)) }

// bounds returns a range. The text "(" before an end excludes it, "" includes it.
func bounds(field, before, min, before2, max string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		f, err := r.field(field, numericType)
		if err != nil {
			return "", err
		}
		ends := [2]string{min, max}
		for i, end := range ends {
			n, err := strconv.ParseFloat(end, 64)
			if err != nil || math.IsNaN(n) {
				return "", fmt.Errorf("search: a range of field %q ends at %s", field, end)
			}
			ends[i] = strings.TrimPrefix(strings.ToLower(end), "+")
		}
		return "(@" + escape(f.name) + ":[" + before + ends[0] + " " + before2 + ends[1] + "])", nil
	})}
}

// Distance is a distance on the earth, in meters.
type Distance float64

// Units of Distance, for use as in 5*search.Kilometer.
const (
	Meter     Distance = 1
	Kilometer Distance = 1000
	Mile      Distance = 1609.34
	Foot      Distance = 0.3048
)

// Near finds documents with a point within a radius around a point.
func Near(field string, at Point, radius Distance) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		f, err := r.field(field, geoType)
		if err != nil {
			return "", err
		}
		if !(math.Abs(at.Lon) <= 180 && math.Abs(at.Lat) <= 90 && radius > 0 && radius < math.MaxFloat64) {
			return "", fmt.Errorf("search: field %q cannot be near %s within %g m", field, at, float64(radius))
		}
		return fmt.Sprintf("(@%s:[%s %s %s m])", escape(f.name), number(at.Lon), number(at.Lat), number(float64(radius))), nil
	})}
}

// Shape is a relation between the shape of a document and that of a query.
type Shape string

// Relations of a document's shape to the query's shape.
const (
	Within     Shape = "WITHIN"     // lies inside the query's
	Contains   Shape = "CONTAINS"   // contains the query's
	Intersects Shape = "INTERSECTS" // shares a point with the query's
	Disjoint   Shape = "DISJOINT"   // shares none
)

// Shapes finds documents whose shape has the relation is to the shape wkt, in WKT.
func Shapes(field string, is Shape, wkt string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		f, err := r.field(field, geoShapeType)
		if err != nil {
			return "", err
		}
		if !slices.Contains([]Shape{Within, Contains, Intersects, Disjoint}, is) {
			return "", fmt.Errorf("search: %q is not a relation of shapes", is)
		}
		return "(@" + escape(f.name) + ":[" + string(is) + " " + r.param(wkt) + "])", nil
	})}
}

// Missing finds documents without a field. The field needs the option missing.
func Missing(field string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		f, err := r.field(field, textType, tagType, numericType, geoType, geoShapeType, vectorType)
		if err != nil {
			return "", err
		}
		return "(ismissing(@" + escape(f.name) + "))", nil
	})}
}

// Element is the type of a vector's elements.
type Element interface {
	float32 | float64 | int8 | uint8
}

// vector returns a reference to a vector, which it adds as a parameter.
func vector[E Element](r *renderer, f *field, v []E) (string, error) {
	of := reflect.MakeSlice(f.goType, len(v), len(v))
	for i := range v {
		of.Index(i).Set(reflect.ValueOf(v[i]).Convert(f.goType.Elem()))
	}
	b, err := f.vector(of)
	if err != nil {
		return "", fmt.Errorf("search: field %s: %w", f.name, err)
	}
	return r.param(b), nil
}

// nearest is a query for the nearest vectors. It cannot be a part of another query.
type nearest struct {
	query func(r *renderer) (string, error)
}

func (nearest) render(*renderer) (string, error) {
	return "", errors.New("search: KNN cannot be a part of another query: give it its filters")
}

// KNN finds the k documents whose vectors are nearest to v, the nearest first, among those that all filters find. It
// sets Hit.Distance.
func KNN[E Element](field string, k int, v []E, filters ...Query) Query {
	return Query{nearest{func(r *renderer) (string, error) {
		f, err := r.field(field, vectorType)
		if err != nil {
			return "", err
		}
		if k < 1 {
			return "", fmt.Errorf("search: KNN of %d documents", k)
		}
		filter, err := And(filters...).node.render(r)
		if err != nil {
			return "", err
		}
		if filter == "" {
			filter = everything
		}
		p, err := vector(r, f, v)
		r.distance, r.nearest = true, k
		return fmt.Sprintf("%s=>[KNN %d @%s %s AS %s]", filter, k, escape(f.name), p, distanceName), err
	}}}
}

// Similar finds documents whose vectors are within a distance of v. Hit.Distance is that of the query's first Similar.
func Similar[E Element](field string, v []E, distance float64) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		f, err := r.field(field, vectorType)
		if err != nil {
			return "", err
		}
		if !(distance >= 0 && distance < math.MaxFloat64) {
			return "", fmt.Errorf("search: field %q has no vectors within %g", field, distance)
		}
		p, err := vector(r, f, v)
		q := fmt.Sprintf("(@%s:[VECTOR_RANGE %s %s])", escape(f.name), number(distance), p)
		if !r.distance {
			r.distance = true
			q = fmt.Sprintf("(%s=>{$yield_distance_as: %s})", q, distanceName)
		}
		return q, err
	})}
}

// list is a conjunction or a disjunction.
type list struct {
	or    bool
	parts []node
}

// And finds documents that all of the queries find.
func And(queries ...Query) Query { return join(false, queries) }

// Or finds documents that at least one of the queries finds.
func Or(queries ...Query) Query { return join(true, queries) }

// And finds documents that q and all others find.
func (q Query) And(others ...Query) Query { return join(false, append([]Query{q}, others...)) }

// Or finds documents that q or at least one of the others finds.
func (q Query) Or(others ...Query) Query { return join(true, append([]Query{q}, others...)) }

// join makes one list of queries, and flattens lists of the same kind.
func join(or bool, queries []Query) Query {
	l := list{or: or}
	for _, q := range queries {
		if inner, ok := q.node.(list); ok && inner.or == or {
			l.parts = append(l.parts, inner.parts...)
		} else if q.node != nil {
			l.parts = append(l.parts, q.node)
		}
	}
	return Query{l}
}

func (l list) render(r *renderer) (string, error) {
	var parts []string
	all := false
	for _, n := range l.parts {
		part, err := n.render(r)
		if err != nil {
			return "", err
		}
		if part == everything {
			all = true
		} else if part != "" {
			parts = append(parts, part)
		}
	}
	switch {
	case all && (l.or || len(parts) == 0):
		return everything, nil
	case len(parts) < 2:
		return strings.Join(parts, ""), nil
	case l.or:
		return "(" + strings.Join(parts, "|") + ")", nil
	}
	return "(" + strings.Join(parts, " ") + ")", nil
}

// Not finds documents that q does not find.
func Not(q Query) Query { return around(q, "(-", ")") }

// Optional finds all documents, and raises the scores of those that q finds.
func Optional(q Query) Query { return around(q, "(~", ")") }

// Boost finds the same documents and multiplies the query's part of their scores by weight, which must not be negative.
func (q Query) Boost(weight float64) Query {
	if !(weight >= 0 && weight < math.MaxFloat64) {
		return Query{nodeFunc(func(*renderer) (string, error) { return "", fmt.Errorf("search: a weight of %g", weight) })}
	}
	return around(q, "(", "=>{$weight: "+number(weight)+"})")
}

// around returns a query between two texts.
func around(q Query, before, behind string) Query {
	return Query{nodeFunc(func(r *renderer) (string, error) {
		if q.node == nil {
			return "", nil
		}
		part, err := q.node.render(r)
		switch {
		case part == "" || err != nil:
			return "", err
		case part == everything:
			return "", errors.New("search: All cannot be negated, optional or boosted")
		}
		return before + part + behind, nil
	})}
}

// Params are values that a Raw query refers to as $name. They may be strings, []byte, numbers and vectors.
type Params map[string]any

// Raw is a query in the query language (dialect 2), for queries that the other functions cannot express. Put text that
// users enter into params.
func Raw(query string, params Params) Query {
	return Query{raw{query, params}}
}

type raw struct {
	query  string
	params Params
}

func (q raw) render(r *renderer) (string, error) {
	for name, value := range q.params {
		for i := 0; i < len(r.params); i += 2 {
			if r.params[i] == name {
				return "", fmt.Errorf("search: the query has two parameters %q", name)
			}
		}
		switch v := reflect.ValueOf(value); {
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
			f := &field{dim: v.Len()}
			switch v.Type().Elem().Kind() {
			case reflect.Float32, reflect.Float64, reflect.Int8:
			default:
				return "", fmt.Errorf("search: parameter %q is of type %T", name, value)
			}
			value, _ = f.vector(v)
		}
		r.params = append(r.params, name, value)
	}
	if q.query == everything || strings.TrimSpace(q.query) == "" || strings.Contains(q.query, "=>[") {
		return q.query, nil
	}
	return "(" + q.query + ")", nil
}
