package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/resp"
)

// Options describe an index as a whole. The zero value is an index of hashes in English.
type Options struct {
	// JSON stores documents as JSON documents; the default is hashes.
	JSON bool
	// Prefix begins the keys of documents; the ID follows. The default is the name of the index and a colon.
	Prefix string
	// Language is the language of the texts, such as "german". The default is English.
	Language string
	// StopWords are words that are not indexed. nil means some English words, such as "the"; an empty slice means none.
	StopWords []string
	// Filter is an expression over the fields. Documents for which it is false are not indexed.
	Filter string
}

// Index is an index of documents that are values of T, a struct. It can be used by several goroutines if its Doer can.
type Index[T any] struct {
	db     Doer
	name   string
	o      Options
	schema *schema
	stop   *text.Stopwords
	alone  bool // no other client runs commands between those of db
}

// Open returns the index of a name. If the index does not exist, Open creates it, and the server indexes existing
// documents too. If it exists, it must agree with the struct and the options. Open adds fields that only the struct
// has, ignores fields that only the index has, and returns a DifferenceError for all other differences.
func Open[T any](ctx context.Context, db Doer, name string, o Options) (*Index[T], error) {
	s, err := schemaOf(reflect.TypeFor[T](), o.JSON)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.fields, func(f *field) bool { return f.typ != "" }) {
		return nil, fmt.Errorf("search: %s has no field with a type in its search tag", reflect.TypeFor[T]())
	}
	o.Prefix = cmp.Or(o.Prefix, name+":")
	o.Language = strings.ToLower(cmp.Or(o.Language, "english"))
	x := &Index[T]{db: db, name: name, o: o, schema: s, stop: text.English}
	if o.StopWords != nil {
		x.stop = text.NewStopwords(o.StopWords...)
	}
	return x, x.open(ctx)
}

// openAttempts limits how often open starts again because other clients create, drop or alter the index.
const openAttempts = 5

// open creates the index or adds the fields that it lacks.
func (x *Index[T]) open(ctx context.Context) (err error) {
	for range openAttempts {
		_, err = do(ctx, x.db, x.create())
		if reply := resp.Error(""); err == nil || !errors.As(err, &reply) || !strings.Contains(strings.ToLower(reply.Error()), "already exists") {
			return err
		}
		var missing []*field
		if missing, err = x.compare(ctx); err == nil && len(missing) > 0 {
			_, err = do(ctx, x.db, x.alter(missing))
		}
		if reply := resp.Error(""); !errors.As(err, &reply) ||
			!errors.Is(err, ErrNoIndex) && !strings.Contains(reply.Error(), "Duplicate field") {
			return err
		}
	}
	return err
}

// create returns the command that creates the index.
func (x *Index[T]) create() []any {
	kind := "HASH"
	if x.o.JSON {
		kind = "JSON"
	}
	args := []any{"FT.CREATE", x.name, "ON", kind, "PREFIX", 1, x.o.Prefix, "LANGUAGE", x.o.Language}
	if x.o.Filter != "" {
		args = append(args, "FILTER", x.o.Filter)
	}
	if x.o.StopWords != nil {
		args = append(args, "STOPWORDS", len(x.o.StopWords))
		for _, w := range x.o.StopWords {
			args = append(args, w)
		}
	}
	args = append(args, "SCHEMA")
	for f := range x.schema.indexed {
		args = f.args(args, x.o.JSON)
	}
	return args
}

// alter returns the command that adds fields.
func (x *Index[T]) alter(fields []*field) []any {
	args := []any{"FT.ALTER", x.name, "SCHEMA", "ADD"}
	for _, f := range fields {
		args = f.args(args, x.o.JSON)
	}
	return args
}

// compare returns the fields that an existing index lacks, and a DifferenceError for what cannot be added.
func (x *Index[T]) compare(ctx context.Context) (missing []*field, err error) {
	info, err := x.info(ctx)
	if err != nil {
		return nil, err
	}
	d := &DifferenceError{Index: x.name}
	differs := func(what, is, want string) {
		if is != want {
			d.Differences = append(d.Differences, fmt.Sprintf("%s: %s, not %s", what, cmp.Or(is, "none"), cmp.Or(want, "none")))
		}
	}
	definition, err := info["index_definition"].Map()
	if err != nil {
		return nil, err
	}
	kind := "HASH"
	if x.o.JSON {
		kind = "JSON"
	}
	differs("documents", textOf(definition["key_type"]), kind)
	prefixes, _ := definition["prefixes"].Texts()
	differs("prefix", fmt.Sprintf("%q", prefixes), fmt.Sprintf("%q", []string{x.o.Prefix}))
	differs("language", cmp.Or(textOf(definition["default_language"]), "english"), x.o.Language)
	differs("filter", textOf(definition["filter"]), x.o.Filter)
	words := "the usual ones"
	if list, ok := info["stopwords_list"]; ok {
		custom, _ := list.Texts()
		slices.Sort(custom)
		words = fmt.Sprintf("%q", custom)
	}
	want := "the usual ones"
	if x.o.StopWords != nil {
		want = fmt.Sprintf("%q", slices.Sorted(slices.Values(x.stop.Words())))
	}
	differs("words that are not indexed", words, want)
	attributes, err := info["attributes"].Slice()
	if err != nil {
		return nil, err
	}
	exist := map[string]map[string]resp.Reply{}
	for _, a := range attributes {
		m, err := a.Map()
		if err != nil {
			return nil, err
		}
		exist[textOf(m["attribute"])] = m
	}
	for f := range x.schema.indexed {
		if a := exist[f.name]; a == nil {
			missing = append(missing, f)
		} else {
			f.compare(a, x.o.JSON, func(what, is, want string) { differs("field "+f.name+what, is, want) })
		}
	}
	if d.Differences != nil {
		return nil, d
	}
	return missing, nil
}

// compare reports how a field of an index differs.
func (f *field) compare(a map[string]resp.Reply, json bool, differs func(what, is, want string)) {
	if is := textOf(a["type"]); is != f.typ {
		differs("", is, f.typ)
		return
	}
	differs(" is at", textOf(a["identifier"]), f.identifier(json))
	switch f.typ {
	case textType:
		weight, _ := a["WEIGHT"].Float()
		differs(", weight", number(weight), number(f.weight))
	case tagType:
		differs(", separator", fmt.Sprintf("%q", textOf(a["SEPARATOR"])), fmt.Sprintf("%q", f.separator))
	case geoShapeType:
		want := "SPHERICAL"
		if slices.Contains(f.flags, "FLAT") {
			want = "FLAT"
		}
		differs(", coordinates", textOf(a["coord_system"]), want)
	case vectorType:
		differs(", algorithm", textOf(a["algorithm"]), f.algorithm)
		differs(", elements", textOf(a["data_type"]), f.element)
		differs(", dimension", textOf(a["dim"]), strconv.Itoa(f.dim))
		differs(", metric", textOf(a["distance_metric"]), f.metric)
		for i := 0; i+1 < len(f.vectorOptions); i += 2 {
			key := f.vectorOptions[i]
			if is, ok := a[cmp.Or(map[string]string{"EF_CONSTRUCTION": "ef_construction"}[key], key)]; ok {
				differs(", "+strings.ToLower(key), textOf(is), f.vectorOptions[i+1])
			}
		}
	}
	is, _ := a["flags"].Texts()
	want := slices.DeleteFunc(slices.Clone(f.flags), func(w string) bool { return w == "FLAT" })
	// Values that are sorted unchanged have UNF implicitly.
	unfolded := func(w string) bool { return w == "UNF" }
	if f.typ != textType && f.typ != tagType || json || slices.Contains(want, "CASESENSITIVE") {
		is, want = slices.DeleteFunc(is, unfolded), slices.DeleteFunc(want, unfolded)
	}
	slices.Sort(is)
	slices.Sort(want)
	differs(", options", strings.ToLower(strings.Join(is, " ")), strings.ToLower(strings.Join(want, " ")))
}

// textOf returns a reply as text, "" if it is none.
func textOf(r resp.Reply) string {
	s, _ := r.Text()
	return s
}

// info returns the reply of FT.INFO.
func (x *Index[T]) info(ctx context.Context) (map[string]resp.Reply, error) {
	r, err := do(ctx, x.db, []any{"FT.INFO", x.name})
	if err != nil {
		return nil, err
	}
	return r.Map()
}

// Name returns the name of the index.
func (x *Index[T]) Name() string { return x.name }

// Key returns the key of the document with an ID.
func (x *Index[T]) Key(id string) string { return x.o.Prefix + id }

// Within returns the index for the handler of a custom command; its operations are a part of that command.
func (x *Index[T]) Within(c Caller) *Index[T] {
	other := *x
	other.db = DoFunc(func(_ context.Context, args ...any) (resp.Reply, error) { return c.Call(args...) })
	other.alone = true
	return &other
}

// Info is the state of an index.
type Info struct {
	Documents   int64
	Indexing    bool    // the server still indexes older documents
	Progress    float64 // progress of Indexing, from 0 to 1
	Failures    int64   // values, written by other clients, that could not be indexed
	LastFailure string
	LastKey     string // the document of LastFailure
	Bytes       int64  // memory of the index, without the documents
}

// Info returns the state of the index.
func (x *Index[T]) Info(ctx context.Context) (Info, error) {
	m, err := x.info(ctx)
	if err != nil {
		return Info{}, err
	}
	var i Info
	i.Documents, _ = m["num_docs"].Int()
	i.Failures, _ = m["hash_indexing_failures"].Int()
	indexing, _ := m["indexing"].Int()
	i.Indexing = indexing != 0
	i.Progress, _ = m["percent_indexed"].Float()
	size, _ := m["total_index_memory_sz_mb"].Float()
	i.Bytes = int64(size * (1 << 20))
	if failures, err := m["Index Errors"].Map(); err == nil && i.Failures > 0 {
		i.LastFailure, i.LastKey = textOf(failures["last indexing error"]), textOf(failures["last indexing error key"])
	}
	return i, nil
}

// Drop removes the index and keeps its documents.
func (x *Index[T]) Drop(ctx context.Context) error {
	_, err := do(ctx, x.db, []any{"FT.DROPINDEX", x.name})
	return err
}

// DropAll removes the index and its documents.
func (x *Index[T]) DropAll(ctx context.Context) error {
	_, err := do(ctx, x.db, []any{"FT.DROPINDEX", x.name, "DD"})
	return err
}

// Put stores a document. It removes fields that v has no value for, but keeps fields of a hash that the struct does not
// have. If a value cannot be indexed, such as a vector of another dimension, Put returns an error and stores nothing.
func (x *Index[T]) Put(ctx context.Context, id string, v T) error {
	set, remove, err := x.put(id, v)
	if err != nil {
		return err
	}
	if remove != nil && !x.alone {
		_, err = do(ctx, x.db, replace(set, remove))
		return err
	}
	if remove != nil {
		if _, err = do(ctx, x.db, remove); err != nil {
			return err
		}
	}
	_, err = do(ctx, x.db, set)
	return err
}

// replaceScript removes fields of a hash and sets others in one atomic step. ARGV: the number of fields to remove,
// their names, then the names and values to set.
const replaceScript = `local n = tonumber(ARGV[1])
for i = 2, n + 1 do redis.call('HDEL', KEYS[1], ARGV[i]) end
for i = n + 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end`

// replace merges an HSET and an HDEL of the same hash into one command.
func replace(set, remove []any) []any {
	args := append([]any{"EVAL", replaceScript, 1, set[1], len(remove) - 2}, remove[2:]...)
	return append(args, set[2:]...)
}

// put returns the command that stores a document, and the command to run before it that removes fields without a value;
// remove is nil if there are none.
func (x *Index[T]) put(id string, v T) (set, remove []any, err error) {
	has, absent, err := x.schema.encode(reflect.ValueOf(v))
	if err != nil {
		return nil, nil, err
	}
	key := x.Key(id)
	if x.o.JSON {
		b := []byte{'{'}
		for i, v := range has {
			if i > 0 {
				b = append(b, ',')
			}
			name, err := v.field.quoted(v.field.name)
			if err != nil {
				return nil, nil, err
			}
			b = append(append(append(b, name...), ':'), v.text...)
		}
		return []any{"JSON.SET", key, "$", append(b, '}')}, nil, nil
	}
	if len(has) == 0 {
		return nil, nil, errors.New("search: a hash needs a field, and the document has none")
	}
	set = []any{"HSET", key}
	for _, v := range has {
		set = append(set, v.field.name, v.text)
	}
	if len(absent) > 0 {
		remove = []any{"HDEL", key}
		for _, f := range absent {
			remove = append(remove, f.name)
		}
	}
	return set, remove, nil
}

// Get returns the document with an ID, or ErrNotFound.
func (x *Index[T]) Get(ctx context.Context, id string) (T, error) {
	r, err := do(ctx, x.db, x.get(id))
	if err != nil {
		var none T
		return none, err
	}
	return x.document(r)
}

// get returns the command that reads a document.
func (x *Index[T]) get(id string) []any {
	if x.o.JSON {
		return []any{"JSON.GET", x.Key(id)}
	}
	return []any{"HGETALL", x.Key(id)}
}

// document decodes the reply to get.
func (x *Index[T]) document(r resp.Reply) (v T, err error) {
	if x.o.JSON {
		text, err := r.Bytes()
		if errors.Is(err, resp.ErrNull) {
			return v, ErrNotFound
		} else if err != nil {
			return v, err
		}
		return v, x.decodeJSON(&v, text)
	}
	m, err := r.Map()
	if err != nil {
		return v, err
	}
	if len(m) == 0 {
		return v, ErrNotFound
	}
	return v, x.decodeHash(&v, m)
}

// Delete removes documents and returns how many it has removed.
func (x *Index[T]) Delete(ctx context.Context, ids ...string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	r, err := do(ctx, x.db, x.del(ids))
	if err != nil {
		return 0, err
	}
	n, err := r.Int()
	return int(n), err
}

// del returns the command that removes documents.
func (x *Index[T]) del(ids []string) []any {
	args := []any{"DEL"}
	for _, id := range ids {
		args = append(args, x.Key(id))
	}
	return args
}
