package search

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
)

// maxAggregateMemory limits the groups and the sorted rows of one command, in bytes.
const maxAggregateMemory = 1 << 30

// rowsRun is an FT.AGGREGATE. A cursor may read its rows in pieces.
type rowsRun struct {
	*run
	pipeline *aggregate.Pipeline
	scores   bool
	from     *shardRows // other shards' rows too; nil if there are none
}

// aggregateCommand is FT.AGGREGATE.
func aggregateCommand(c *command.Ctx) {
	x := found(c)
	if x == nil {
		return
	}
	q, err := request.Aggregate(words(c.Args[2:]), settingsOf(c.Host))
	if err != nil {
		fail(c, err)
		return
	}
	if spread(c, func(f *fan) { f.aggregate(x, q) }) {
		return
	}
	a, err := newRowsRun(c, x, q, false)
	if err == nil {
		uses(x, q.Dialect)
		if q.Cursor == nil || a.q.Plan.Gathers() {
			c.LongQuery(a.work())
		} else {
			c.LongQuery(a.pageWork(cmp.Or(q.Cursor.Count, defaultCursorCount)))
		}
		a.pipeline.Start(a, a, a.interrupt)
		if q.Cursor == nil {
			_, err = a.reply(-1)
		} else {
			err = a.open()
		}
	}
	if err != nil {
		fail(c, err)
	}
}

// newRowsRun makes the plan and the pipeline of a request, without starting them.
func newRowsRun(c *command.Ctx, x *catalog.Index, q *request.Request, profiled bool) (*rowsRun, error) {
	r, err := newRun(c, x, q, profiled)
	if err != nil {
		return nil, err
	}
	a := &rowsRun{run: r, scores: q.AddScores}
	return a, a.build(r.plan.Yields())
}

// build makes the pipeline. yields are the names that the query adds to rows.
func (a *rowsRun) build(yields []string) (err error) {
	c, q, r := a.c, a.q, a.run
	if q.AddScores {
		yields = append([]string{scoreName}, yields...)
	}
	most := int(integer(c.Host, "search-max-aggregate-results"))
	q.Plan.CountOnly = q.Plan.CountOnly || most == 0
	a.pipeline, err = aggregate.Build(&q.Plan, aggregate.Options{Schema: aggregateSchema{r.def, q.Dialect}, Yields: yields,
		ForceLoad: r.def.Source == schema.JSON, MaxRows: most,
		MaxGroups: int(integer(c.Host, "search-max-aggregate-groups")), MaxMemory: maxAggregateMemory})
	if err == nil && r.profiled {
		a.pipeline.Profile(time.Now)
	}
	return err
}

// The cost of a row in a pipeline, as a number of visited documents: in the source, and in each step.
const stepWork = 4

// work estimates the cost of all rows, as a number of visited documents.
func (a *rowsRun) work() int {
	n, rows := a.plan.Work(), a.plan.Estimate()
	if a.first() {
		l := a.q.Arrange()
		rows = min(rows, l.Offset+l.Num)
		n = min(n, rows)
	}
	return n + rows*a.rowWork()
}

// first reports whether the rows are the first that the plan finds.
func (a *rowsRun) first() bool {
	l := a.q.Arrange()
	return l.Limited && l.Num > 0 && !a.q.Plan.Gathers() && !a.q.Plan.CountAll && !a.filters()
}

// rowWork returns the cost of one row.
func (a *rowsRun) rowWork() int {
	n := stepWork * (1 + len(a.q.Plan.Steps))
	if a.pipeline.Loads() {
		n += loadWork
	}
	return n
}

// filters reports whether the pipeline drops rows.
func (a *rowsRun) filters() bool {
	return slices.ContainsFunc(a.q.Plan.Steps, func(s aggregate.Step) bool {
		_, ok := s.(*aggregate.Filter)
		return ok
	})
}

// pageWork estimates the cost of the next rows of a cursor, as a number of visited documents.
func (a *rowsRun) pageWork(rows int) int {
	if a.from != nil {
		return 0 // the shards do the work
	}
	if a.filters() && !a.q.Plan.Gathers() {
		rows = max(rows, a.plan.Estimate())
	}
	return rows * a.rowWork()
}

// scoreName is the name of the score in rows.
const scoreName = "__score"

// aggregateSchema is the definition of an index as pipelines see it.
type aggregateSchema struct {
	def     *schema.Definition
	dialect int
}

// Field implements aggregate.Schema.
func (s aggregateSchema) Field(name string) (aggregate.Field, bool) {
	f, ok := s.def.Lookup(name)
	if !ok {
		return aggregate.Field{}, false
	}
	sortable := f.Sortable && (s.def.Source == schema.Hash || s.dialect < 3) // from dialect 3 on, a field has all values of a path
	return aggregate.Field{Path: f.Path, Sortable: sortable, Exact: f.Unfolded || f.Kind == query.NumericKind}, true
}

// interrupt implements aggregate.Interrupt.
func (a *rowsRun) interrupt() (stop bool, err error) {
	if stop = a.stop(); stop {
		a.cut = true
		err = a.timeout()
	}
	return stop, err
}

// Next implements aggregate.Source.
func (a *rowsRun) Next(r *aggregate.Row) (bool, error) {
	if !a.plan.Next() {
		return false, a.timedOut()
	}
	d := a.plan.Doc()
	r.Doc, r.Ref = a.plan.ID(), d
	for _, in := range a.pipeline.Inputs() {
		switch {
		case in.Field != "":
			if f, ok := a.def.Lookup(in.Field); ok && f.Sortable {
				r.Set(in.Slot, sortValue(d.Sort(f.SortIndex)))
			}
		case in.Name == scoreName && a.scores:
			r.Set(in.Slot, value.Num(a.plan.Score()))
		default:
			if distance, ok := a.plan.Distance(in.Name); ok {
				r.Set(in.Slot, value.Num(distance))
			}
		}
	}
	if a.pipeline.UsesTerms() {
		r.Terms = a.plan.Terms()
	}
	return true, nil
}

// Load implements aggregate.Loader.
func (a *rowsRun) Load(r *aggregate.Row, fields []aggregate.Column) (bool, error) {
	d := r.Ref.(*docs.Doc)
	if a.known(r, d, fields) {
		return true, nil
	}
	kept := false
	a.load(r.Doc, d, func(e *engine.Entry) {
		if kept = e != nil; !kept {
			return
		}
		for _, f := range fields {
			if v := a.loader.stored(e, d, a.columnOf(f)); !v.IsAbsent() {
				r.Set(f.Slot, v)
			}
		}
	})
	return kept, nil
}

// known loads fields without reading the row's document. It reports false if it must be read.
func (a *rowsRun) known(r *aggregate.Row, d *docs.Doc, fields []aggregate.Column) bool {
	for _, f := range fields {
		v, ok := a.loader.known(r.Doc, d, a.columnOf(f))
		if !ok {
			return false
		}
		r.Set(f.Slot, v)
	}
	return true
}

// columnOf returns the column to load for a column of the pipeline.
func (a *rowsRun) columnOf(f aggregate.Column) column {
	c := column{name: f.Name, path: f.Path}
	if f.Field != "" {
		c.field, _ = a.def.Lookup(f.Field)
	}
	return c
}

// LoadAll implements aggregate.Loader.
func (a *rowsRun) LoadAll(r *aggregate.Row, put func(name string, v value.Value)) (bool, error) {
	d := r.Ref.(*docs.Doc)
	kept := false
	a.load(r.Doc, d, func(e *engine.Entry) {
		if kept = e != nil; kept {
			a.loader.all(e, func(name string, v value.Value) { put(name, a.loader.typed(name, v)) })
		}
	})
	return kept, nil
}

// warnings returns the warnings of the reply.
func (a *rowsRun) warnings() []string {
	if a.from != nil {
		list := a.from.warnings
		if a.cut && !slices.Contains(list, timeoutWarning) {
			list = append(slices.Clip(list), timeoutWarning)
		}
		return list
	}
	return a.run.warnings()
}

// reply writes the remaining rows, or the next most of them. It reports whether there may be more. On an error it
// writes nothing.
func (a *rowsRun) reply(most int) (more bool, err error) {
	w := a.c.W
	start := len(w.Buf)
	if w.Proto < 3 {
		mark := w.Defer()
		w.Int(0) // replaced when the total is known, after the rows
		place := len(w.Buf)
		n, total, err := a.rows(most)
		if err != nil {
			w.Truncate(start)
			return false, err
		}
		a.warned()
		rows := append([]byte(nil), w.Buf[place:]...)
		w.Truncate(place - len(":0\r\n"))
		w.Int(int64(total))
		w.Raw(rows)
		w.EndArray(mark, n+1)
		a.recount()
		return most >= 0 && n == most, nil
	}
	w.Map(5)
	w.Simple("attributes")
	w.Array(0)
	w.Simple("format")
	if a.loader.expand {
		w.Simple("EXPAND")
	} else {
		w.Simple("STRING")
	}
	w.Simple("results")
	mark := w.Defer()
	n, _, err := a.rows(most)
	if err != nil {
		w.Truncate(start)
		return false, err
	}
	a.warned()
	w.EndArray(mark, n)
	w.Simple("total_results")
	w.Int(int64(a.pipeline.Total()))
	a.recount()
	w.Simple("warning")
	warnings := a.warnings()
	w.Array(len(warnings))
	for _, text := range warnings {
		w.Simple(text)
	}
	return most >= 0 && n == most, nil
}

// recount begins the total of the next read of a cursor. With WITHCOUNT each read has the total of the result.
func (a *rowsRun) recount() {
	if !a.q.Plan.CountAll {
		a.pipeline.Recount()
	}
}

// rows writes up to most rows, or all if most is negative. It returns their number, and the total that precedes them in
// RESP2: the total of the whole result if the query counts all rows or must fail at its timeout, otherwise the total
// known at the first row.
func (a *rowsRun) rows(most int) (n, total int, err error) {
	w := a.c.W
	waits := a.q.Plan.CountAll || a.c.Host.Directive("search-on-timeout") == "fail"
	for most < 0 || n < most {
		row, err := a.pipeline.Next()
		if err != nil {
			return n, total, err
		}
		if n == 0 || waits {
			total = a.pipeline.Total()
		}
		if row == nil {
			break
		}
		n++
		if w.Proto >= 3 {
			w.Map(2)
			w.Simple("extra_attributes")
		}
		mark, fields := w.Defer(), 0
		for _, c := range a.pipeline.Columns() {
			if v := row.Get(c.Slot); !v.IsAbsent() {
				w.BulkString(c.Name)
				writeValue(w, v, a.loader.expand)
				fields++
			}
		}
		w.EndMap(mark, fields)
		if w.Proto >= 3 {
			w.Simple("values")
			w.Array(0)
		}
	}
	return n, total, nil
}

// open replies with the first rows and a cursor.
func (a *rowsRun) open() error {
	cursor, err := a.newCursor()
	if err != nil {
		return err
	}
	if a.from != nil {
		cursor.End = a.from.close
	}
	return a.page(cursor, 0)
}

// newCursor makes a cursor for a query. It fails if the index has reached its limit.
func (a *rowsRun) newCursor() (*catalog.Cursor, error) {
	c, q := a.c, a.q
	longest := integer(c.Host, "search-cursor-max-idle")
	cursor := &catalog.Cursor{Rest: a, Count: q.Cursor.Count, Idle: int64(q.Cursor.MaxIdle)}
	if cursor.Count == 0 {
		cursor.Count = defaultCursorCount
	}
	if cursor.Idle == 0 || cursor.Idle > longest {
		cursor.Idle = longest
	}
	limit := int(integer(c.Host, "search-index-cursor-limit"))
	a.x.Cursors.Expire(c.Host.Keyspace().Now())
	if a.x.Cursors.Len() >= limit {
		return nil, args.Errorf(query.LimitExceeded, "INDEX_CURSOR_LIMIT of %d has been reached for an index", limit)
	}
	return cursor, nil
}

// keep keeps a cursor until it is read again, under a number that it returns: id, or a new one if that is 0.
func (a *rowsRun) keep(cursor *catalog.Cursor, id int64) int64 {
	c := a.c
	now := c.Host.Keyspace().Now()
	cursor.Until = now + cursor.Idle
	for id == 0 || !a.x.Cursors.Add(id, cursor) {
		id = 1 + rand.Int64N(1<<53-1) // clients may read it as a double
	}
	if cursor.End != nil { // other shards wait
		c.Host.Keyspace().Clock().AfterFunc(time.Duration(cursor.Idle+1)*time.Millisecond, func() { a.x.Cursors.Expire(now + cursor.Idle + 1) })
	}
	a.c = nil
	return id
}

// defaultCursorCount is the default number of rows of a read.
const defaultCursorCount = 1000

// page replies with the next rows and the cursor, which ends with the last row. id is 0 for a new cursor. On an
// error it writes nothing, and the cursor has ended.
func (a *rowsRun) page(cursor *catalog.Cursor, id int64) error {
	c := a.c
	start := len(c.W.Buf)
	c.W.Array(2)
	more, err := a.reply(cursor.Count)
	if err != nil || !more {
		cursor.Close()
		if err != nil {
			c.W.Truncate(start)
		} else {
			c.W.Int(0)
		}
		return err
	}
	c.W.Int(a.keep(cursor, id))
	return nil
}

// errTimeout is the error of a query that fails at its timeout.
var errTimeout = args.Errorf(query.Timeout, "Timeout limit was reached")

// cursorCommand returns a handler of FT.CURSOR, which calls do with the index and the number of the cursor.
func cursorCommand(do func(c *command.Ctx, x *catalog.Index, id int64)) func(*command.Ctx) {
	return func(c *command.Ctx) {
		x := find(c, c.Args[2])
		if x == nil {
			return
		}
		id, err := strconv.ParseInt(string(c.Args[3]), 10, 64)
		if err != nil {
			c.Err("Bad cursor ID")
			return
		}
		x.Cursors.Expire(c.Host.Keyspace().Now())
		do(c, x, id)
	}
}

// cursorRead is FT.CURSOR READ.
func cursorRead(c *command.Ctx, x *catalog.Index, id int64) {
	count := 0
	if len(c.Args) > 4 {
		if !command.EqualFold(c.Args[4], "count") {
			c.Err("Unknown argument `" + command.Error(c.Args[4]) + "`")
			return
		}
		if len(c.Args) > 5 {
			n, err := strconv.ParseInt(string(c.Args[5]), 10, 32)
			if err != nil || n < 0 {
				c.Err("Bad value for COUNT: `" + command.Error(c.Args[5]) + "`")
				return
			}
			count = int(n)
		}
	}
	if spread(c, func(f *fan) { cursorNext(f.c, x, id, count) }) {
		return
	}
	work := 0
	x.Cursors.Look(id, func(cursor *catalog.Cursor) { work = cursor.Rest.(*rowsRun).pageWork(cmp.Or(count, cursor.Count)) })
	c.LongQuery(work)
	cursorNext(c, x, id, count)
}

// cursorNext replies with the next rows of a cursor: count rows, or the cursor's own number if count is 0.
func cursorNext(c *command.Ctx, x *catalog.Index, id int64, count int) {
	cursor := x.Cursors.Take(id)
	if cursor == nil {
		c.Err("Cursor not found, id: " + command.Error(strconv.FormatInt(id, 10)))
		return
	}
	if count > 0 {
		cursor.Count = count // for this read and later ones
	}
	a := cursor.Rest.(*rowsRun)
	a.resume(c)
	if err := a.page(cursor, id); err != nil {
		fail(c, err)
	}
}

// cursorDel is FT.CURSOR DEL.
func cursorDel(c *command.Ctx, x *catalog.Index, id int64) {
	cursor := x.Cursors.Take(id)
	if cursor == nil {
		c.Err("Cursor does not exist")
		return
	}
	cursor.Close()
	c.W.OK()
}

// cursorGC is FT.CURSOR GC. Expired cursors are removed at each access, so there is nothing to collect.
func cursorGC(c *command.Ctx, _ *catalog.Index, _ int64) { c.W.Int(-1) }
