package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/resp"
)

// Hit is a document that a query has found.
type Hit[T any] struct {
	ID         string
	Score      float64           // relevance; 0 with SortBy, unless WithScores is given
	Distance   float64           // distance of its vector from that of KNN or Similar
	Value      T                 // the document
	Highlights map[string]string // marked texts by field, with Highlight and Summarize
}

// Option changes how a query is executed.
type Option func(*request)

// request is a query with its options.
type request struct {
	limit, offset int // limit is -1 for all
	sortBy        string
	descending    bool
	scores        bool
	highlight     []string
	tags          []any
	summarize     []any
	words         []any // further arguments of the command
	language      string
}

// Limit makes a query find at most n documents.
func Limit(n int) Option { return func(r *request) { r.limit = max(n, 0) } }

// Offset skips the first n documents.
func Offset(n int) Option { return func(r *request) { r.offset = max(n, 0) } }

// SortBy sorts the documents by a field, which should be sortable. Documents without it come last.
func SortBy(field string) Option {
	return func(r *request) { r.sortBy, r.descending = field, false }
}

// SortByDesc is SortBy from the highest to the lowest.
func SortByDesc(field string) Option {
	return func(r *request) { r.sortBy, r.descending = field, true }
}

// WithScores sets Hit.Score also with SortBy.
func WithScores() Option { return func(r *request) { r.scores = true } }

// Scorer sets the function that computes scores, such as "TFIDF". The default is BM25STD.
func Scorer(name string) Option { return pass("SCORER", name) }

// Language sets the language of the query's words. The default is that of the index.
func Language(name string) Option { return func(r *request) { r.language = name } }

// Verbatim searches for the exact words, without stems and synonyms.
func Verbatim() Option { return pass("VERBATIM") }

// Slop sets how many other words may be between the words of a Text.
func Slop(n int) Option { return pass("SLOP", n) }

// InOrder requires the words of a Text in their order.
func InOrder() Option { return pass("INORDER") }

// Timeout ends a query that takes longer than d. The directive search-on-timeout decides whether the query then returns
// the documents found so far, or ErrTimeout.
func Timeout(d time.Duration) Option { return pass("TIMEOUT", max(d.Milliseconds(), 1)) }

func pass(words ...any) Option { return func(r *request) { r.words = append(r.words, words...) } }

// Highlight fills Hit.Highlights with the texts of the given fields, or of all fields of type text. Found words are
// between <b> and </b>. It works on hashes only.
func Highlight(fields ...string) Option {
	return func(r *request) { r.highlight, r.tags = append([]string{}, fields...), nil }
}

// HighlightWith is Highlight with other marks around the words.
func HighlightWith(before, behind string, fields ...string) Option {
	return func(r *request) { r.highlight, r.tags = append([]string{}, fields...), []any{"TAGS", before, behind} }
}

// Summarize shortens the texts in Hit.Highlights to parts around found words: at most so many parts, of so many words
// each. It implies Highlight, and works on the same fields.
func Summarize(parts, words int) Option {
	return func(r *request) {
		r.summarize = []any{"FRAGS", parts, "LEN", words}
		if r.highlight == nil {
			r.highlight = []string{}
		}
	}
}

// pageSize is the length of Find's first page. Each page is twice as long as the one before, up to maxPage, because the
// server searches again through all earlier documents for each page.
const (
	pageSize = 1000
	maxPage  = 32 * pageSize
)

// unmarkedPrefix begins the names of unmarked fields in a reply; the plain names have the marked texts.
const unmarkedPrefix = "\x1f"

// Find yields the documents that a query finds, the best first. An error ends the loop as its last step. Without Limit
// Find yields all documents, page by page. Documents that other clients write meanwhile may then be missing or come
// twice, and more than search-max-search-results documents are an error.
func (x *Index[T]) Find(ctx context.Context, q Query, options ...Option) iter.Seq2[Hit[T], error] {
	return func(yield func(Hit[T], error) bool) {
		r := request{limit: -1}
		for _, o := range options {
			o(&r)
		}
		page := pageSize
		for got := 0; r.limit != 0; page = min(2*page, maxPage) {
			size := page
			if r.limit > 0 {
				size = min(size, r.limit-got)
			}
			args, err := x.search(q, r, r.offset+got, size)
			var reply resp.Reply
			if err == nil {
				reply, err = do(ctx, x.db, args)
			}
			var found found
			if err == nil {
				found, err = rows(reply)
			}
			if err != nil {
				yield(Hit[T]{}, err)
				return
			}
			if !x.yield(found.rows, r, yield) {
				return
			}
			if got += size; len(found.rows) < size || got == r.limit {
				return
			}
		}
	}
}

// yield yields the documents of rows, and reports whether more are wanted.
func (x *Index[T]) yield(rows []map[string]resp.Reply, r request, yield func(Hit[T], error) bool) bool {
	for _, row := range rows {
		hit, ok, err := x.hit(row, r)
		if !ok && err == nil {
			continue
		}
		if !yield(hit, err) || err != nil {
			return false
		}
	}
	return true
}

// Hits returns the documents that a query finds, as Find does.
func (x *Index[T]) Hits(ctx context.Context, q Query, options ...Option) ([]Hit[T], error) {
	var all []Hit[T]
	for hit, err := range x.Find(ctx, q, options...) {
		if err != nil {
			return nil, err
		}
		all = append(all, hit)
	}
	return all, nil
}

// First returns the best document that a query finds, or ErrNotFound.
func (x *Index[T]) First(ctx context.Context, q Query, options ...Option) (Hit[T], error) {
	for hit, err := range x.Find(ctx, q, append(slices.Clone(options), Limit(1))...) {
		return hit, err
	}
	return Hit[T]{}, ErrNotFound
}

// Count returns how many documents a query finds.
func (x *Index[T]) Count(ctx context.Context, q Query, options ...Option) (int, error) {
	r := request{}
	for _, o := range options {
		o(&r)
	}
	args, err := x.search(q, r, 0, 0)
	if err != nil {
		return 0, err
	}
	reply, err := do(ctx, x.db, args)
	if err != nil {
		return 0, err
	}
	found, err := rows(reply)
	return found.total, err
}

// Explain returns how the server understands a query.
func (x *Index[T]) Explain(ctx context.Context, q Query) (string, error) {
	t, params, err := x.render(q, "")
	if err != nil {
		return "", err
	}
	reply, err := do(ctx, x.db, append([]any{"FT.EXPLAIN", x.name, t.text, "DIALECT", 2}, params...))
	if err != nil {
		return "", err
	}
	return reply.Text()
}

// rendered is the text of a query.
type rendered struct {
	text     string
	distance bool
	nearest  int
}

// render returns the text of a query and the arguments with its parameters.
func (x *Index[T]) render(q Query, language string) (rendered, []any, error) {
	r := renderer{schema: x.schema, stopwords: x.stop}
	r.language, _ = text.ParseLanguage(cmp.Or(language, x.o.Language)) // the server refuses others
	query, err := r.query(q)
	if err != nil {
		return rendered{}, nil, err
	}
	var params []any
	if len(r.params) > 0 {
		params = append([]any{"PARAMS", len(r.params)}, r.params...)
	}
	return rendered{query, r.distance, r.nearest}, params, nil
}

// search returns the command that executes a query.
func (x *Index[T]) search(q Query, r request, offset, size int) ([]any, error) {
	t, params, err := x.render(q, r.language)
	if err != nil {
		return nil, err
	}
	args := append([]any{"FT.SEARCH", x.name, t.text}, r.words...)
	if r.language != "" {
		args = append(args, "LANGUAGE", r.language)
	}
	if size > 0 && r.highlight != nil {
		if args, err = x.marked(args, r, t); err != nil {
			return nil, err
		}
	}
	switch {
	case r.sortBy != "":
		f := x.schema.byName[r.sortBy]
		if f == nil || f.typ == "" {
			return nil, fmt.Errorf("search: there is no field %q to sort by", r.sortBy)
		}
		args = append(args, "SORTBY", r.sortBy, map[bool]string{false: "ASC", true: "DESC"}[r.descending])
	case t.nearest > 0:
		args = append(args, "SORTBY", distanceName, "ASC")
	}
	if size > 0 && (r.scores || r.sortBy == "" && t.nearest == 0) {
		args = append(args, "WITHSCORES")
	}
	return append(append(args, "LIMIT", offset, size, "DIALECT", 2), params...), nil
}

// marked appends the options of Highlight and Summarize. In the reply the fields of the struct have marks under their
// own names, and none under names with unmarkedPrefix.
func (x *Index[T]) marked(args []any, r request, t rendered) ([]any, error) {
	marks := r.highlight
	if len(marks) == 0 {
		for f := range x.schema.indexed {
			if f.typ == textType {
				marks = append(marks, f.name)
			}
		}
	}
	var marked []any
	for _, name := range marks {
		if f := x.schema.byName[name]; f == nil || f.typ != textType {
			return nil, fmt.Errorf("search: there is no field %q of type text to highlight", name)
		}
		marked = append(marked, name)
	}
	returned := slices.Clone(marked)
	for _, f := range x.schema.fields {
		returned = append(returned, f.name, "AS", unmarkedPrefix+f.name)
	}
	if t.distance {
		returned = append(returned, distanceName)
	}
	args = append(append(args, "RETURN", len(returned)), returned...)
	if r.summarize != nil {
		args = append(append(append(args, "SUMMARIZE", "FIELDS", len(marked)), marked...), r.summarize...)
	}
	args = append(append(args, "HIGHLIGHT", "FIELDS", len(marked)), marked...)
	return append(args, r.tags...), nil
}

// found is the reply of FT.SEARCH and FT.AGGREGATE.
type found struct {
	total int
	rows  []map[string]resp.Reply
}

// rows reads the rows of a reply.
func rows(reply resp.Reply) (found, error) {
	m, err := reply.Map()
	if err != nil {
		return found{}, err
	}
	total, err := m["total_results"].Int()
	if err != nil {
		return found{}, err
	}
	list, err := m["results"].Slice()
	if err != nil {
		return found{}, err
	}
	f := found{int(total), make([]map[string]resp.Reply, len(list))}
	for i, row := range list {
		if f.rows[i], err = row.Map(); err != nil {
			return found{}, err
		}
	}
	return f, nil
}

// hit returns a found document; ok is false if the document is gone.
func (x *Index[T]) hit(row map[string]resp.Reply, r request) (hit Hit[T], ok bool, err error) {
	values, ok := row["extra_attributes"]
	if !ok || values.IsNull() {
		return hit, false, nil
	}
	m, err := values.Map()
	if err != nil {
		return hit, false, err
	}
	id, err := row["id"].Text()
	if err != nil {
		return hit, false, err
	}
	hit.ID = strings.TrimPrefix(id, x.o.Prefix)
	if score, ok := row["score"]; ok {
		if hit.Score, err = score.Float(); err != nil {
			return hit, false, err
		}
	}
	if distance, ok := m[distanceName]; ok {
		if hit.Distance, err = distance.Float(); err != nil {
			return hit, false, err
		}
	}
	if r.highlight != nil {
		plain := map[string]resp.Reply{}
		hit.Highlights = map[string]string{}
		for name, value := range m {
			if own, ok := strings.CutPrefix(name, unmarkedPrefix); ok {
				plain[own] = value
			} else if name != distanceName {
				hit.Highlights[name] = textOf(value)
			}
		}
		m = plain
	}
	if x.o.JSON {
		var text []byte
		if text, err = m["$"].Bytes(); err == nil {
			err = x.decodeJSON(&hit.Value, text)
		}
	} else {
		err = x.decodeHash(&hit.Value, m)
	}
	return hit, err == nil, err
}

// decodeHash sets a document from the fields of a hash.
func (x *Index[T]) decodeHash(v *T, m map[string]resp.Reply) error {
	return x.schema.decode(reflect.ValueOf(v).Elem(), false, func(name string) (string, bool) {
		s, err := m[name].Text()
		return s, err == nil
	})
}

// decodeJSON sets a document from JSON.
func (x *Index[T]) decodeJSON(v *T, text []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("search: the document is not an object: %w", err)
	}
	return x.schema.decode(reflect.ValueOf(v).Elem(), true, func(name string) (string, bool) {
		s, ok := m[name]
		return string(s), ok
	})
}
