package search

import (
	"strconv"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/resp"
)

// found returns the index of a query. If there is none, it writes the error and returns nil.
func found(c *command.Ctx) *catalog.Index {
	x := catalogOf(c).Lookup(string(c.Args[1]))
	if x == nil {
		c.Err(noSuchIndex(c.Args[1]))
		return nil
	}
	if !mayUse(c, x) {
		c.Err(errNotPermitted)
		return nil
	}
	if c.Offload == nil {
		x.Uses.Add(1)
	}
	x.Touch(c.Host.Keyspace().Now())
	return x
}

// uses records that a query used a dialect.
func uses(x *catalog.Index, dialect int) {
	x.Dialect[dialect].Store(true)
}

// searchCommand is FT.SEARCH.
func searchCommand(c *command.Ctx) {
	x := found(c)
	if x == nil {
		return
	}
	q, err := request.Search(words(c.Args[2:]), settingsOf(c.Host))
	if err != nil {
		fail(c, err)
		return
	}
	if spread(c, func(f *fan) { f.search(q) }) {
		return
	}
	r, err := newRun(c, x, q, false)
	if err == nil {
		uses(x, q.Dialect)
		c.LongQuery(r.work())
		var found *result
		if found, err = r.attempts(page(c.Host, q)); err == nil {
			r.warned()
			found.reply(c.W, q)
			return
		}
	}
	fail(c, err)
}

// attempts runs the query, and runs it again if a document changes meanwhile.
func (r *run) attempts(offset, num int) (found *result, err error) {
	for attempt := 1; ; attempt++ {
		var current bool
		if found, current, err = r.rows(offset, num); err != nil || current || attempt == maxAttempts {
			return found, err
		}
		if err = r.prepare(); err != nil {
			return nil, err
		}
	}
}

// result is the result of FT.SEARCH.
type result struct {
	rows     []row
	total    int
	warnings []string
	profiles []string // measurements of other shards
}

// row is a result of FT.SEARCH.
type row struct {
	id          uint64
	doc         *docs.Doc // nil for a document of another shard
	key         string
	score       float64
	order       docs.Value // its sort key
	payload     value.Value
	explanation plan.Explanation
	matched     []plan.Matched
	fields      []field
	gone        bool // the document was removed before it was loaded
}

// field is a field of a row.
type field struct {
	name  string
	value value.Value
}

// defaultRows is the number of results without LIMIT.
const defaultRows = 10

// page returns the requested range of results.
func page(h command.Host, q *request.Request) (offset, num int) {
	num = defaultRows
	if limit := q.Arrange(); limit.Limited {
		offset, num = limit.Offset, limit.Num
	}
	return offset, max(0, min(num, int(integer(h, "search-max-search-results"))-offset))
}

// The cost of a row, as a number of visited documents.
const (
	loadWork = 8  // to read its fields, and to write them
	markWork = 40 // to look for words in its texts
)

// work estimates the cost of FT.SEARCH, as a number of visited documents.
func (r *run) work() int {
	offset, num := page(r.c.Host, r.q)
	if num == 0 {
		return r.plan.CountWork()
	}
	n, rows := r.plan.Work(), min(offset+num, r.plan.Estimate())
	if keys := r.q.Arrange().Keys; len(keys) > 0 {
		if f, ok := r.def.Lookup(keys[0].Name); ok && !f.Sortable {
			n += loadWork * r.plan.Estimate()
		}
	}
	n += rows
	rows = max(0, rows-offset)
	if !r.q.NoContent {
		n += loadWork * rows
	}
	if !r.q.Summary.Empty() {
		n += markWork * rows
	}
	return n
}

// stopRows is how many rows are loaded between two checks of the timeout.
const stopRows = 16

// rows runs the query and returns num results from an offset on. current is false if a document has changed while it ran.
func (r *run) rows(offset, num int) (found *result, current bool, err error) {
	q := r.q
	keys := q.Arrange().Keys
	sorted := len(keys) > 0
	var order plan.Order
	if sorted && num > 0 {
		if order, err = r.order(keys[0].Name, keys[0].Desc); err != nil {
			return nil, false, err
		}
	}
	var hits []plan.Hit
	began := time.Now()
	switch {
	case num == 0:
		r.plan.Count()
	case sorted:
		hits = r.plan.TopBy(offset+num, order)
	default:
		hits = r.plan.Top(offset + num)
	}
	if err := r.timedOut(); err != nil {
		return nil, false, err
	}
	r.spent = spent{found: time.Since(began), hits: len(hits)}
	hits = hits[min(offset, len(hits)):]
	rows := make([]row, len(hits))
	at := map[uint64]int{}
	for i, h := range hits {
		rows[i] = row{id: h.ID, doc: h.Doc, key: h.Doc.Key(), score: h.Score, order: h.Key}
		if p, ok := h.Doc.Payload(); ok && p != "" && q.WithPayloads {
			rows[i].payload = value.Str(p)
		}
		at[h.ID] = i
	}
	loads, marks := !q.NoContent, !q.Summary.Empty()
	if len(hits) > 0 && (q.WithScores && sorted || q.ExplainScore || loads && (marks || len(r.plan.Yields()) > 0)) {
		r.plan.Visit(hits, func(h *plan.Hit) {
			o := &rows[at[h.ID]]
			if q.WithScores {
				o.score = r.plan.Score()
			}
			if q.ExplainScore {
				o.explanation = r.plan.Explain()
			}
			if marks {
				o.matched = r.plan.Matched()
			}
			if loads && !q.HasReturn {
				for _, name := range r.plan.Yields() {
					if d, ok := r.plan.Distance(name); ok {
						o.fields = append(o.fields, field{name, value.Num(d)})
					}
				}
			} else if loads {
				for _, f := range q.Return {
					if d, ok := r.plan.Distance(f.Path); ok {
						o.fields = append(o.fields, field{f.Name, value.Num(d)})
					}
				}
			}
		})
	}
	current = true
	if began = time.Now(); loads {
		columns := make([]column, len(q.Return))
		for i, f := range q.Return {
			columns[i] = r.loader.column(f.Path, f.Name)
		}
		for i := range rows {
			if i%stopRows == stopRows-1 && !r.plan.Stopped() && r.stop() {
				if err := r.timeout(); err != nil {
					return nil, false, err
				}
				rows, r.cut = rows[:i], true
				break
			}
			o := &rows[i]
			same := r.load(o.id, o.doc, func(e *engine.Entry) {
				if o.gone = e == nil; !o.gone {
					r.fill(o, e, columns, keys)
				}
			})
			current = current && same
			if marks {
				marking := time.Now()
				r.mark(o)
				r.spent.marked += time.Since(marking)
			}
		}
	}
	r.spent.loaded, r.spent.rows = time.Since(began)-r.spent.marked, len(rows)
	return &result{rows: rows, total: r.plan.Total(), warnings: r.warnings()}, current, nil
}

// fill reads the fields of a row. Without RETURN the field of SORTBY comes first.
func (r *run) fill(o *row, e *engine.Entry, columns []column, keys []aggregate.Key) {
	if r.q.HasReturn {
		for _, c := range columns {
			if v := r.loader.value(e, o.doc, c); !v.IsAbsent() {
				o.fields = append(o.fields, field{c.name, v})
			}
		}
		return
	}
	first := ""
	if len(keys) > 0 {
		c := r.loader.column(keys[0].Name, keys[0].Name)
		if c.field != nil {
			// A field under its own name has its stored value; under another name it has its sort value.
			v := r.loader.raw(e, c.path)
			if c.path != c.name && r.def.Source == schema.Hash {
				v = sortValue(o.order)
			}
			if !v.IsAbsent() {
				first = c.name
				o.fields = append(o.fields, field{first, v})
			}
		}
	}
	r.loader.all(e, func(name string, v value.Value) {
		if name != first {
			o.fields = append(o.fields, field{name, v})
		}
	})
}

// reply writes the rows.
func (found *result) reply(w *resp.Writer, q *request.Request) {
	if w.Proto >= 3 {
		found.replyMap(w, q)
		return
	}
	mark, n := w.Defer(), 0
	add := func() *resp.Writer {
		n++
		return w
	}
	add().Int(int64(found.total))
	for i := range found.rows {
		o := &found.rows[i]
		add().BulkString(o.key)
		if q.WithScores {
			o.writeScore(add(), q)
		}
		if q.WithRawIDs {
			add().Int(int64(o.id))
		}
		if q.WithPayloads {
			writeValue(add(), o.payload, false)
		}
		if q.WithSortKeys {
			writeSortKey(add(), o.order)
		}
		if q.NoContent {
			continue
		}
		if o.gone {
			add().NullArray()
			continue
		}
		add().Array(2 * len(o.fields))
		o.writeFields(w, q)
	}
	w.EndArray(mark, n)
}

// replyMap writes the rows for RESP3.
func (found *result) replyMap(w *resp.Writer, q *request.Request) {
	w.Map(5)
	w.Simple("attributes")
	w.Array(0)
	w.Simple("format")
	if q.Format == request.ExpandFormat {
		w.Simple("EXPAND")
	} else {
		w.Simple("STRING")
	}
	w.Simple("results")
	w.Array(len(found.rows))
	for i := range found.rows {
		o := &found.rows[i]
		p := newPairs(w)
		p.name("id").BulkString(o.key)
		if q.WithScores {
			o.writeScore(p.name("score"), q)
		}
		if q.WithRawIDs {
			p.name("rawid").Int(int64(o.id))
		}
		if q.WithPayloads {
			writeValue(p.name("payload"), o.payload, false)
		}
		if q.WithSortKeys {
			writeSortKey(p.name("sortkey"), o.order)
		}
		if !q.NoContent {
			if p.name("extra_attributes"); o.gone {
				w.Null()
			} else {
				w.Map(len(o.fields))
				o.writeFields(w, q)
			}
		}
		p.name("values").Array(0)
		p.end()
	}
	w.Simple("total_results")
	w.Int(int64(found.total))
	w.Simple("warning")
	w.Array(len(found.warnings))
	for _, text := range found.warnings {
		w.Simple(text)
	}
}

// writeFields writes the names and values of a row.
func (o *row) writeFields(w *resp.Writer, q *request.Request) {
	for _, f := range o.fields {
		w.BulkString(f.name)
		writeValue(w, f.value, q.Format == request.ExpandFormat)
	}
}

// writeScore writes a score, with its explanation if requested.
func (o *row) writeScore(w *resp.Writer, q *request.Request) {
	if !q.ExplainScore {
		w.Double(o.score)
		return
	}
	w.Array(2)
	w.Double(o.score)
	writeExplanation(w, o.explanation)
}

func writeExplanation(w *resp.Writer, x plan.Explanation) {
	if len(x.Children) == 0 {
		w.Simple(x.Text)
		return
	}
	w.Array(2)
	w.Simple(x.Text)
	w.Array(len(x.Children))
	for _, child := range x.Children {
		writeExplanation(w, child)
	}
}

// writeSortKey writes the sort key of a row.
func writeSortKey(w *resp.Writer, v docs.Value) {
	switch v.Kind {
	case docs.Number:
		w.BulkString("#" + formatG(v.Number, 17))
	case docs.Text:
		w.BulkString("$" + v.Text)
	default:
		w.Null()
	}
}

// formatG formats a number as %.*g of C.
func formatG(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'g', digits, 64)
	return s
}

// writeValue writes a value of a row. Numbers are written as texts, except with FORMAT EXPAND.
func writeValue(w *resp.Writer, v value.Value, expand bool) {
	v = v.Shown(expand)
	switch v.Kind() {
	case value.Number:
		if expand {
			w.Double(v.Float())
		} else {
			w.Bulk(value.AppendNumber(nil, v.Float()))
		}
	case value.String:
		w.BulkString(v.Text())
	case value.Array:
		w.Array(v.Len())
		for _, item := range v.Items() {
			writeValue(w, item, expand)
		}
	case value.Map:
		w.Map(v.Len())
		for key, item := range v.Pairs() {
			writeValue(w, key, expand)
			writeValue(w, item, expand)
		}
	default:
		w.Null()
	}
}
