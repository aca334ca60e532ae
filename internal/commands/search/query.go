package search

import (
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/resp"
)

// found returns the index of a query, or answers that there is none.
func found(c *command.Ctx) *catalog.Index {
	x := catalogOf(c).Lookup(string(c.Args[1]))
	if x == nil {
		c.Err("No such index " + command.Error(c.Args[1]))
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
	settle(c)
	return x
}

// uses notes that a query is in a dialect.
func uses(c *command.Ctx, x *catalog.Index, dialect int) {
	x.Dialect[dialect].Store(true)
	serviceOf(c.Host).counters.dialects[dialect].Store(true)
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
	uses(c, x, q.Dialect)
	r, err := newRun(c, x, q, false)
	if err == nil {
		c.LongQuery(r.work())
	}
	for attempt := 1; err == nil; attempt++ {
		var rows []row
		var current bool
		if rows, current, err = r.rows(); err != nil {
			break
		}
		if current || attempt == maxAttempts {
			r.reply(rows)
			return
		}
		err = r.prepare()
	}
	fail(c, err)
}

// row is a result of FT.SEARCH.
type row struct {
	plan.Hit
	explanation plan.Explanation
	matched     []plan.Matched
	fields      []field
	gone        bool // the document went before it could be loaded
}

// field is a field of a row.
type field struct {
	name  string
	value value.Value
}

// defaultRows is how many results there are without LIMIT.
const defaultRows = 10

// What a row costs, in documents that are looked at.
const (
	loadWork = 8  // to read its fields, and to write them
	markWork = 40 // to look for words in its texts
)

// limit returns which rows are wanted.
func (r *run) limit() (offset, num int) {
	num = defaultRows
	if l := r.q.Arrange(); l.Limited {
		offset, num = l.Offset, l.Num
	}
	return offset, max(0, min(num, int(integer(r.c.Host, "search-max-search-results"))-offset))
}

// work returns about how many documents FT.SEARCH looks at.
func (r *run) work() int {
	offset, num := r.limit()
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

// stopRows is how many rows are loaded between two looks at the clock.
const stopRows = 16

// rows runs the query. current is false if a document has changed while it ran.
func (r *run) rows() (rows []row, current bool, err error) {
	q := r.q
	limit := q.Arrange()
	offset, num := r.limit()
	sorted := len(limit.Keys) > 0
	var order plan.Order
	if sorted && num > 0 {
		if order, err = r.order(limit.Keys[0].Name, limit.Keys[0].Desc); err != nil {
			return nil, false, err
		}
	}
	var hits []plan.Hit
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
	hits = hits[min(offset, len(hits)):]
	rows = make([]row, len(hits))
	at := map[uint64]int{}
	for i, h := range hits {
		rows[i].Hit = h
		at[h.ID] = i
	}
	loads, marks := !q.NoContent, !q.Summary.Empty()
	if len(hits) > 0 && (q.WithScores && sorted || q.ExplainScore || loads && (marks || len(r.plan.Yields()) > 0)) {
		r.plan.Visit(hits, func(h *plan.Hit) {
			o := &rows[at[h.ID]]
			if q.WithScores {
				o.Score = r.plan.Score()
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
	if loads {
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
			same := r.load(o.ID, o.Doc, func(e *engine.Entry) {
				if o.gone = e == nil; !o.gone {
					r.fill(o, e, columns, limit.Keys)
				}
			})
			current = current && same
			if marks {
				r.mark(o)
			}
		}
	}
	return rows, current, nil
}

// fill reads the fields of a row. Without RETURN the field of SORTBY comes first.
func (r *run) fill(o *row, e *engine.Entry, columns []column, keys []aggregate.Key) {
	if r.q.HasReturn {
		for _, c := range columns {
			if v := r.loader.value(e, o.Doc, c); !v.IsAbsent() {
				o.fields = append(o.fields, field{c.name, v})
			}
		}
		return
	}
	first := ""
	if len(keys) > 0 {
		c := r.loader.column(keys[0].Name, keys[0].Name)
		if c.field != nil {
			// What all fields come with is the text of a hash, not the value that it is sorted by.
			if v := r.loader.raw(e, c.path); !v.IsAbsent() {
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
func (r *run) reply(rows []row) {
	w, q := r.c.W, r.q
	r.warned()
	if w.Proto >= 3 {
		r.replyMap(rows)
		return
	}
	mark, n := w.Defer(), 0
	add := func() *resp.Writer {
		n++
		return w
	}
	add().Int(int64(r.plan.Total()))
	for i := range rows {
		o := &rows[i]
		add().BulkString(o.Doc.Key())
		if q.WithScores {
			r.writeScore(add(), o)
		}
		if q.WithRawIDs {
			add().Int(int64(o.ID))
		}
		if q.WithPayloads {
			writePayload(add(), o.Doc)
		}
		if q.WithSortKeys {
			writeSortKey(add(), o.Key)
		}
		if q.NoContent {
			continue
		}
		if o.gone {
			add().NullArray()
			continue
		}
		add().Array(2 * len(o.fields))
		r.writeFields(o)
	}
	w.EndArray(mark, n)
}

// replyMap writes the rows for RESP3.
func (r *run) replyMap(rows []row) {
	w, q := r.c.W, r.q
	warnings := r.warnings()
	w.Map(5)
	w.Simple("attributes")
	w.Array(0)
	w.Simple("format")
	if r.loader.expand {
		w.Simple("EXPAND")
	} else {
		w.Simple("STRING")
	}
	w.Simple("results")
	w.Array(len(rows))
	for i := range rows {
		o := &rows[i]
		p := newPairs(w)
		p.name("id").BulkString(o.Doc.Key())
		if q.WithScores {
			r.writeScore(p.name("score"), o)
		}
		if q.WithRawIDs {
			p.name("rawid").Int(int64(o.ID))
		}
		if q.WithPayloads {
			writePayload(p.name("payload"), o.Doc)
		}
		if q.WithSortKeys {
			writeSortKey(p.name("sortkey"), o.Key)
		}
		if !q.NoContent {
			if p.name("extra_attributes"); o.gone {
				w.Null()
			} else {
				w.Map(len(o.fields))
				r.writeFields(o)
			}
		}
		p.name("values").Array(0)
		p.end()
	}
	w.Simple("total_results")
	w.Int(int64(r.plan.Total()))
	w.Simple("warning")
	w.Array(len(warnings))
	for _, text := range warnings {
		w.Simple(text)
	}
}

// writeFields writes the names and values of a row.
func (r *run) writeFields(o *row) {
	for _, f := range o.fields {
		r.c.W.BulkString(f.name)
		writeValue(r.c.W, f.value, r.loader.expand)
	}
}

// writeScore writes a score, with the way to it if that is asked for.
func (r *run) writeScore(w *resp.Writer, o *row) {
	if !r.q.ExplainScore {
		w.Double(o.Score)
		return
	}
	w.Array(2)
	w.Double(o.Score)
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

func writePayload(w *resp.Writer, d *docs.Doc) {
	if p, ok := d.Payload(); ok && p != "" {
		w.BulkString(p)
	} else {
		w.Null()
	}
}

// writeSortKey writes what a row was sorted by.
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

// writeValue writes a value of a row. Numbers are texts; only FORMAT EXPAND has them as they are.
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
