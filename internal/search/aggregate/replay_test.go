package aggregate_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// world has hashes and indexes, and a simple search for the transcripts of aggregations.
type world struct {
	docs    []*doc
	indexes map[string]*index
	cursors map[int]*aggregate.Pipeline
	resp3   bool
}

// doc is a hash.
type doc struct {
	key    string
	names  []string
	fields map[string]string
}

// index is an index.
type index struct {
	prefix string
	fields map[string]field
}

// field is a field of an index.
type field struct {
	kind     string
	sortable bool
}

func (x *index) Field(name string) (aggregate.Field, bool) {
	f, ok := x.fields[name]
	return aggregate.Field{Path: name, Sortable: f.sortable, Exact: f.kind == "NUMERIC"}, ok
}

// create makes the index of an FT.CREATE.
func (w *world) create(words []string) {
	x := &index{fields: map[string]field{}}
	if i := slices.Index(words, "PREFIX"); i >= 0 {
		x.prefix = words[i+2]
	}
	rest := words[slices.Index(words, "SCHEMA")+1:]
	for len(rest) > 1 {
		name, f := rest[0], field{kind: rest[1]}
		rest = rest[2:]
		if f.kind == "VECTOR" {
			n, _ := strconv.Atoi(rest[1])
			rest = rest[2+n:]
		}
		if len(rest) > 0 && rest[0] == "SORTABLE" {
			f.sortable = true
			rest = rest[1:]
		}
		x.fields[name] = f
	}
	w.indexes[words[1]] = x
}

// hset adds a hash.
func (w *world) hset(words []string) {
	d := &doc{key: words[1], fields: map[string]string{}}
	for i := 2; i+1 < len(words); i += 2 {
		d.names = append(d.names, words[i])
		d.fields[words[i]] = words[i+1]
	}
	w.docs = append(w.docs, d)
}

// found is a document that matches, with its distance.
type found struct {
	*doc
	number   uint64
	distance float64
}

// search answers the queries of the transcripts.
func (w *world) search(x *index, q *request.Request) (hits []found, terms []string, yield string) {
	text := q.Query
	for name, v := range q.Params {
		text = strings.ReplaceAll(text, "$"+name, v)
	}
	matches := func(*doc) bool { return true }
	switch word, rest, _ := strings.Cut(strings.TrimPrefix(text, "@"), ":"); {
	case strings.HasPrefix(text, "*=>[KNN"), strings.Contains(text, "VECTOR_RANGE"):
		yield = "d"
		for i, d := range w.docs {
			if v, ok := d.fields["v"]; ok {
				hits = append(hits, found{d, uint64(i + 1), distance(v, q.Params["q"])})
			}
		}
		if strings.HasPrefix(text, "*") {
			slices.SortFunc(hits, func(a, b found) int { return int(a.distance - b.distance) })
			hits = hits[:2]
		}
		return hits, nil, yield
	case text == "*":
	case strings.HasPrefix(rest, "["):
		ends := strings.Fields(strings.Trim(rest, "[]"))
		least, _ := value.ParseNumber(ends[0])
		most, _ := value.ParseNumber(ends[1])
		matches = func(d *doc) bool {
			f, ok := value.ParseNumber(d.fields[word])
			return ok && f >= least && f <= most
		}
	case strings.HasPrefix(rest, "{"):
		tags := strings.Split(strings.Trim(rest, "{}"), "|")
		matches = func(d *doc) bool { return slices.Contains(tags, d.fields[word]) }
	default:
		if rest != "" {
			text = rest
		}
		terms = strings.Split(text, "|")
		if !q.Verbatim {
			for i, term := range terms {
				terms[i] = strings.TrimSuffix(term, "s")
			}
		}
		matches = func(d *doc) bool {
			words := strings.Fields(strings.ToLower(d.fields["title"] + " " + d.fields["msg"]))
			return slices.ContainsFunc(terms, func(term string) bool { return slices.Contains(words, term) })
		}
	}
	for i, d := range w.docs {
		if strings.HasPrefix(d.key, x.prefix) && matches(d) && (!q.HasInKeys || slices.Contains(q.InKeys, d.key)) {
			hits = append(hits, found{doc: d, number: uint64(i + 1)})
		}
	}
	return hits, terms, ""
}

// distance is L2 of two vectors.
func distance(a, b string) (sum float64) {
	for i := 0; i+4 <= len(a) && i+4 <= len(b); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32([]byte(a[i:])))
		y := math.Float32frombits(binary.LittleEndian.Uint32([]byte(b[i:])))
		sum += float64((x - y) * (x - y))
	}
	return sum
}

// source is a Source and a Loader.
type source struct {
	index  *index
	inputs []aggregate.Column
	hits   []found
	terms  []string
	score  float64
	at     int
}

func (s *source) Next(r *aggregate.Row) (bool, error) {
	if s.at == len(s.hits) {
		return false, nil
	}
	hit := s.hits[s.at]
	s.at++
	r.Doc, r.Ref, r.Terms = hit.number, hit.doc, s.terms
	for _, c := range s.inputs {
		switch {
		case c.Name == "__score":
			r.Set(c.Slot, value.Num(s.score))
		case c.Field == "":
			r.Set(c.Slot, value.Num(hit.distance))
		default:
			if v := s.value(hit.doc, c.Field); v.Kind() == value.String {
				r.Set(c.Slot, value.Str(text.Fold(v.Text())))
			} else {
				r.Set(c.Slot, v)
			}
		}
	}
	return true, nil
}

// value is the value of a document's field.
func (s *source) value(d *doc, name string) value.Value {
	v, ok := d.fields[name]
	switch {
	case name == "__key":
		return value.Str(d.key)
	case !ok:
		return value.Value{}
	case s.index.fields[name].kind == "NUMERIC":
		f, _ := value.ParseNumber(v)
		return value.Num(f)
	}
	return value.Str(v)
}

func (s *source) Load(r *aggregate.Row, fields []aggregate.Column) (bool, error) {
	for _, c := range fields {
		if v := s.value(r.Ref.(*doc), c.Path); !v.IsAbsent() {
			r.Set(c.Slot, v)
		}
	}
	return true, nil
}

func (s *source) LoadAll(r *aggregate.Row, put func(string, value.Value)) (bool, error) {
	d := r.Ref.(*doc)
	for _, name := range d.names {
		v := s.value(d, name)
		if v.Kind() == value.Number {
			v = v.WithForms(value.Str(d.fields[name]), value.Value{})
		}
		put(name, v)
	}
	return true, nil
}

// pipeline begins an FT.AGGREGATE.
func (w *world) pipeline(x *index, q *request.Request, start starter) (*aggregate.Pipeline, error) {
	hits, terms, yield := w.search(x, q)
	o := aggregate.Options{Schema: x, Rand: random()}
	if yield != "" {
		o.Yields = append(o.Yields, yield)
	}
	if q.AddScores {
		o.Yields = append(o.Yields, "__score")
	}
	build := func() (*aggregate.Pipeline, error) { return aggregate.Build(&q.Plan, o) }
	return start(build, &source{index: x, hits: hits, terms: terms, score: 1})
}

// starter builds and begins a pipeline over the hits of a source.
type starter func(build func() (*aggregate.Pipeline, error), s *source) (*aggregate.Pipeline, error)

// whole runs a pipeline on one server.
func whole(build func() (*aggregate.Pipeline, error), s *source) (*aggregate.Pipeline, error) {
	p, err := build()
	if err != nil {
		return nil, err
	}
	s.inputs = p.Inputs()
	p.Start(s, s, nil)
	return p, nil
}

// sharded runs a pipeline on three shards and a server that merges their parts.
func sharded(build func() (*aggregate.Pipeline, error), s *source) (*aggregate.Pipeline, error) {
	const shards = 3
	var parts [][]byte
	for i := range shards {
		p, err := build()
		if err != nil {
			return nil, err
		}
		n := len(s.hits)
		part := *s
		part.hits, part.inputs = s.hits[i*n/shards:(i+1)*n/shards], p.Inputs()
		p.StartShard(&part, &part, nil)
		for more := true; more; {
			var b []byte
			if b, more, err = p.Part(nil, 2); err != nil {
				return nil, err
			}
			parts = append(parts, b)
		}
	}
	p, err := build()
	if err != nil {
		return nil, err
	}
	p.StartMerge(func() ([]byte, error) {
		if len(parts) == 0 {
			return nil, nil
		}
		part := parts[0]
		parts = parts[1:]
		return part, nil
	}, nil)
	return p, nil
}

// reply is a reply of the server.
func bulk(s string) transcript.Value { return transcript.Value{Kind: transcript.Bulk, Text: s} }

func (w *world) printed(v value.Value) transcript.Value {
	switch v = v.Shown(false); v.Kind() {
	case value.Null:
		if w.resp3 {
			return transcript.Value{Kind: transcript.Null}
		}
		return transcript.Value{Kind: transcript.Bulk, Null: true}
	case value.Array:
		list := transcript.Value{Kind: transcript.Array}
		for _, item := range v.Items() {
			list.Elems = append(list.Elems, w.printed(item))
		}
		return list
	}
	return bulk(v.ToText())
}

// read returns n rows of a pipeline; 0 is all. It reports whether there may be more.
func (w *world) read(p *aggregate.Pipeline, n int) (transcript.Value, bool, error) {
	var rows []transcript.Value
	more := true
	for more && (n == 0 || len(rows) < n) {
		r, err := p.Next()
		if err != nil {
			return transcript.Value{}, false, err
		}
		if more = r != nil; !more {
			break
		}
		row := transcript.Value{Kind: transcript.Array}
		for _, c := range p.Columns() {
			if v := r.Get(c.Slot); !v.IsAbsent() {
				row.Elems = append(row.Elems, bulk(c.Name), w.printed(v))
			}
		}
		if w.resp3 {
			row.Kind = transcript.Map
			row = transcript.Value{Kind: transcript.Map, Elems: []transcript.Value{simple("extra_attributes"), row, simple("values"), {Kind: transcript.Array}}}
		}
		rows = append(rows, row)
	}
	total := transcript.Value{Kind: transcript.Integer, Text: strconv.Itoa(p.Total())}
	list := transcript.Value{Kind: transcript.Array, Elems: rows}
	if !w.resp3 {
		list.Elems = append([]transcript.Value{total}, rows...)
		return list, more, nil
	}
	return transcript.Value{Kind: transcript.Map, Elems: []transcript.Value{
		simple("attributes"), {Kind: transcript.Array}, simple("format"), simple("STRING"), simple("results"), list,
		simple("total_results"), total, simple("warning"), {Kind: transcript.Array},
	}}, more, nil
}

func simple(s string) transcript.Value { return transcript.Value{Kind: transcript.Simple, Text: s} }

// page returns rows and the number of a cursor for those that are left.
func (w *world) page(p *aggregate.Pipeline, n int) (transcript.Value, error) {
	rows, more, err := w.read(p, n)
	if err != nil {
		return rows, err
	}
	id := 0
	if more {
		id = len(w.cursors) + 1000
		w.cursors[id] = p
	}
	return transcript.Value{Kind: transcript.Array, Elems: []transcript.Value{rows, {Kind: transcript.Integer, Text: strconv.Itoa(id)}}}, nil
}

// notOurs are errors of other packages.
var notOurs = regexp.MustCompile(`^(ERR |NOPERM|SEARCH_(INDEX_NOT_FOUND|SYNTAX Unknown field|SYNTAX Syntax error at offset 1 near x|VALUE_BAD EXPAND format|LIMIT_OVER INDEX_CURSOR_LIMIT))`)

// replay answers the FT.AGGREGATE commands of a transcript.
func replay(t *testing.T, file string, start starter, skip ...string) (answered int) {
	script, err := transcript.ParseFile(file)
	require.NoError(t, err)
	w := &world{}
	vars := map[string]string{}
	queued := false
	for _, step := range script.Steps {
		var words []string
		for _, a := range step.Args {
			words = append(words, a.Text)
			if name, ok := strings.CutPrefix(a.Text, "${"); ok && !a.Quoted {
				words[len(words)-1] = vars[strings.TrimSuffix(name, "}")]
			}
		}
		if len(words) == 0 || len(step.Newest()) == 0 || slices.Contains(skip, step.Source) {
			continue
		}
		var got transcript.Value
		var err error
		switch command := strings.ToUpper(words[0]); command {
		case "FLUSHALL":
			*w = world{indexes: map[string]*index{}, cursors: map[int]*aggregate.Pipeline{}}
			continue
		case "HELLO":
			w.resp3 = words[1] == "3"
			continue
		case "MULTI", "EXEC":
			queued = command == "MULTI"
			continue
		case "FT.CREATE":
			w.create(words)
			continue
		case "FT.ALIASADD":
			w.indexes[words[1]] = w.indexes[words[2]]
			continue
		case "HSET":
			w.hset(words)
			continue
		case "FT.AGGREGATE":
			if len(words) < 3 || queued || w.indexes[words[1]] == nil || notOurs.MatchString(step.Newest()[0].Text) || step.Newest()[0].Any ||
				slices.Contains(words, "ADDSCORES") && !slices.Contains(words, "SCORER") {
				continue
			}
			var q *request.Request
			var p *aggregate.Pipeline
			if q, err = request.Aggregate(words[2:], request.Config{Dialect: 1, MaxSearch: 1e6, MaxAggregate: math.MaxInt32}); err == nil {
				p, err = w.pipeline(w.indexes[words[1]], q, start)
			}
			switch {
			case err != nil:
			case q.Cursor != nil:
				got, err = w.page(p, q.Cursor.Count)
			default:
				got, _, err = w.read(p, 0)
			}
		case "FT.CURSOR":
			if len(words) < 4 || words[1] != "READ" || step.Newest()[0].Kind != '[' && step.Newest()[0].Kind != '*' {
				continue
			}
			id, _ := strconv.Atoi(words[3])
			n := 1000
			if len(words) == 6 {
				if n, _ = strconv.Atoi(words[5]); n == 0 {
					n = 1
				}
			} else if len(words) == 5 || w.cursors[id] != nil {
				n = w.chunk(step)
			}
			if w.cursors[id] == nil {
				continue
			}
			got, err = w.page(w.cursors[id], n)
		default:
			continue
		}
		message := fmt.Sprintf("%s:%d %s", filepath.Base(file), step.Line, step.Source)
		if err != nil {
			require.True(t, errors.As(err, new(*query.Error)), message)
			got = transcript.Value{Kind: transcript.Error, Text: err.Error()}
		}
		if !step.Newest()[0].Matches(got, vars) {
			t.Errorf("%s\nwant %s\ngot  %s", message, step.Newest()[0].String(), got.String())
		}
		answered++
	}
	return answered
}

// chunk is the number of rows of a cursor's page: as many as the transcript shows, or more for the last page.
func (w *world) chunk(step *transcript.Step) int {
	rows := step.Newest()[0].Elems[0].Elems
	n := len(rows) - 1
	if w.resp3 {
		n = len(rows[5].Elems)
	}
	if last := step.Newest()[0].Elems[1]; last.Text == "0" && last.Capture == "" {
		n++
	}
	return max(n, 1)
}

// transcripts returns the transcripts of aggregations and cursors.
func transcripts(t *testing.T) (files []string) {
	for _, name := range []string{"search_aggregate*", "search_cursor"} {
		found, err := filepath.Glob("../../../conformance/testdata/search/" + name + ".txt")
		require.NoError(t, err)
		require.NotEmpty(t, found)
		files = append(files, found...)
	}
	return files
}

func TestTranscripts(t *testing.T) {
	files := transcripts(t)
	answered := 0
	for _, file := range files {
		answered += replay(t, file, whole, ofParts)
	}
	require.Equal(t, 331, answered)
}

// ofParts is a command that asks which parts of the query have matched. The documents here are found without its tree.
const ofParts = `> FT.AGGREGATE shop "(hammer|@title:hammer) hammer" VERBATIM LOAD 1 @__key APPLY matched_terms() AS r`

// onOneServer is a command whose result depends on the order of documents, which shards do not share.
const onOneServer = "> FT.AGGREGATE shop * LOAD * SORTBY 2 @title DESC LIMIT 0 2"

// The transcripts are the same for three shards.
func TestTranscriptsOnShards(t *testing.T) {
	files := transcripts(t)
	for _, file := range files {
		replay(t, file, sharded, onOneServer, ofParts)
	}
}
