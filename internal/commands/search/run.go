package search

import (
	"slices"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
)

// run is one execution of a query. It holds no shards: the plan has views of the index, and each row is loaded under
// a lock of its own key. If a row's document has changed since the plan was made, the query runs again; after some
// attempts the result is used anyway.
type run struct {
	c        *command.Ctx
	x        *catalog.Index
	q        *request.Request
	scorer   plan.Scorer
	def      *schema.Definition
	plan     *plan.Plan
	loader   loader
	guard    engine.Guard // for a row
	deadline time.Time    // zero: none
	capped   bool         // a directive has shortened the timeout
	profiled bool         // iterators are measured
	cut      bool         // the time was up after the hits had been found
	spent    spent        // by rows, for FT.PROFILE
}

// maxAttempts is how often a query runs if documents change meanwhile.
const maxAttempts = 3

// newRun makes the plan of a request.
func newRun(c *command.Ctx, x *catalog.Index, q *request.Request, profiled bool) (*run, error) {
	r := &run{c: c, x: x, q: q, def: x.Definition(), profiled: profiled}
	r.loader = loader{def: r.def, dialect: q.Dialect, expand: q.Format == request.ExpandFormat}
	err := checkFormat(c, q, r.def)
	if err == nil {
		err = checkSummary(q, r.def)
	}
	if err != nil {
		return nil, err
	}
	if r.scorer, err = scorer(c.Host, q); err != nil {
		return nil, err
	}
	r.begin()
	if err = r.prepare(); err == nil {
		err = checkMarked(q, r.def)
	}
	return r, err
}

// checkFormat returns the error for FORMAT EXPAND where it is not supported.
func checkFormat(c *command.Ctx, q *request.Request, def *schema.Definition) error {
	switch {
	case q.Format != request.ExpandFormat:
		return nil
	case c.W.Proto < 3:
		return args.Errorf(query.BadValue, "EXPAND format is only supported with RESP3")
	case def.Source != schema.JSON:
		return args.Errorf(query.BadValue, "EXPAND format is only supported with JSON")
	}
	return nil
}

// maxTimeout keeps deadlines within the range of time.Time.
const maxTimeout = 24 * 365 * time.Hour

// settle brings the indexes up to date: it removes expired documents, and adds the earlier writes of the command's
// transaction or script. It reports whether no expired documents are left; a replica keeps them until its master
// removes them.
func settle(c *command.Ctx) (none bool) {
	if c.G.Locked() {
		more, stay := true, false
		for more {
			more, stay = c.G.RemoveExpired()
		}
		c.G.Index()
		return !stay
	}
	ks := c.Host.Keyspace()
	var g engine.Guard
	none = true
	for i := range ks.Shards() {
		for more := true; more; {
			var stay bool
			g.Lock(ks, 1<<i, ks.Now())
			more, stay = g.RemoveExpired()
			g.Unlock()
			none = none && !stay
		}
	}
	return none
}

// prepare brings the index up to date and makes the plan on it.
func (r *run) prepare() error {
	settled := settle(r.c)
	synonyms := r.x.Synonyms()
	var err error
	r.x.View(func(v index.View) {
		r.view(v, settled)
		var tree query.Node
		tree, err = treeOf(r.q, r.def, synonyms, v.Lookup)
		if err != nil {
			return
		}
		if err = differ(query.Yields(tree)); err == nil {
			r.plan, err = plan.New(tree, v, r.options())
		}
	})
	return err
}

// view makes the run read a view of the index. settled reports whether no document of the index has expired.
func (r *run) view(v index.View, settled bool) {
	r.def = v.Definition()
	r.loader.def, r.loader.forward = r.def, nil
	if settled {
		r.loader.forward = v.Forward()
	}
}

// differ returns an error if two distances have the same name.
func differ(yields []string) error {
	for i, name := range yields {
		if slices.Contains(yields[:i], name) {
			return args.Errorf(query.Duplicate, "Property `%s` specified more than once", name)
		}
	}
	return nil
}

// options returns the options of plans.
func (r *run) options() plan.Options {
	tanh := r.q.TanhFactor
	if tanh == 0 {
		tanh = int(integer(r.c.Host, "search-bm25std-tanh-factor"))
	}
	return plan.Options{Scorer: r.scorer, TanhFactor: tanh, Payload: r.q.Payload, Slop: r.q.Slop,
		InOrder: r.q.InOrder, MinPrefix: int(integer(r.c.Host, "search-min-prefix")),
		MaxExpansions: int(integer(r.c.Host, "search-max-prefix-expansions")), SortBy: r.sortedBy(), Stop: r.stop, Long: r.c.LongQuery,
		Profile: r.profiled, UnionsLast: r.c.Host.Directive("search-_prioritize-intersect-union-children") == "yes",
		Hidden: hidden(r.c.Host)}
}

// hidden returns a function that reports whether a key belongs to another shard although it is here; nil if there
// are no such keys.
func hidden(h command.Host) func(key string) bool {
	foreign := h.Foreign()
	if foreign == nil {
		return nil
	}
	return func(key string) bool { return foreign([]byte(key)) }
}

// resume lets another command continue the query. Its timeout starts again.
func (r *run) resume(c *command.Ctx) {
	r.c = c
	r.begin()
	if !settle(c) {
		r.loader.forward = nil
	}
}

// timeoutOf returns the timeout of a query in ms, 0 for none. own is the query's TIMEOUT, nil if it has none. capped
// reports that search-_max-foreground-timeout-limit has shortened it.
func timeoutOf(h command.Host, own *int64) (ms int64, capped bool) {
	ms = integer(h, "search-timeout")
	if own != nil {
		ms = *own
	}
	limit := integer(h, "search-_max-foreground-timeout-limit")
	if limit == 0 || integer(h, "search-workers") != 0 || ms > 0 && ms <= limit {
		return ms, false
	}
	return limit, true
}

// cappedWarning is the warning of a query whose timeout was shortened.
const cappedWarning = "Query TIMEOUT exceeded the configured maximum (search-_max-foreground-timeout-limit) while " +
	"search-workers is disabled; effective timeout was capped"

// begin sets the query's deadline.
func (r *run) begin() {
	timeout, capped := timeoutOf(r.c.Host, r.q.Timeout)
	r.capped = r.capped || capped
	if r.deadline = (time.Time{}); timeout > 0 {
		r.deadline = r.now().Add(time.Duration(min(timeout, int64(maxTimeout/time.Millisecond))) * time.Millisecond)
	}
}

// stop reports whether the query is past its deadline, or its reply is no longer wanted.
func (r *run) stop() bool {
	return !r.deadline.IsZero() && r.now().After(r.deadline) || !r.c.Offload.Wanted()
}

// now returns the time by the server's clock.
func (r *run) now() time.Time { return r.c.Host.Keyspace().Clock().Now() }

// sortedBy returns the field of the index by which FT.SEARCH sorts, nil if there is none.
func (r *run) sortedBy() *query.Field {
	if keys := r.q.Arrange().Keys; len(keys) > 0 {
		f, _ := r.def.Field(keys[0].Name)
		return f
	}
	return nil
}

// timedOut returns the error for a query that was stopped, if it must fail then.
func (r *run) timedOut() error {
	if r.plan.Stopped() {
		return r.timeout()
	}
	return nil
}

// timeout returns the error of a stopped query; nil if the reply is the partial result.
func (r *run) timeout() error {
	if r.c.Host.Directive("search-on-timeout") == "fail" && !r.profiled || !r.c.Offload.Wanted() {
		return errTimeout
	}
	return nil
}

// warnings returns the warnings of the reply.
func (r *run) warnings() []string {
	list := r.plan.Warnings()
	if r.plan.Stopped() || r.cut {
		list = append(list, timeoutWarning)
	}
	if r.capped {
		list = append(list, cappedWarning)
	}
	return list
}

// locked calls do under a guard over the shard of a key.
func (r *run) locked(key string, do func(g *engine.Guard)) {
	ks := r.c.Host.Keyspace()
	shard := ks.ShardOf([]byte(key))
	if r.c.G.Locked() {
		do(r.c.G)
		return
	}
	r.guard.Lock(ks, shard, ks.Now())
	do(&r.guard)
	r.guard.Unlock()
}

// load calls do with the entry of a document of the plan; e is nil if it is gone. current reports whether the
// document is unchanged since the query found it.
func (r *run) load(id uint64, d *docs.Doc, do func(e *engine.Entry)) (current bool) {
	r.locked(d.Key(), func(g *engine.Guard) {
		r.loader.g = g
		e := r.loader.document(d.Key())
		current = e != nil && r.x.Current(d.Key()) == id
		do(e)
	})
	return current
}

// order returns the order of SORTBY.
func (r *run) order(name string, desc bool) (o plan.Order, err error) {
	o.Desc = desc
	for _, yield := range r.plan.Yields() {
		if yield == name {
			o.Key = func(p *plan.Plan) docs.Value {
				if d, ok := p.Distance(name); ok {
					return docs.Value{Kind: docs.Number, Number: d}
				}
				return docs.Value{}
			}
			return o, nil
		}
	}
	f, ok := r.def.Lookup(name)
	if !ok {
		return o, args.Errorf(query.NoProperty, "Property `%s` not loaded nor in schema", name)
	}
	if f.Sortable {
		place := f.SortIndex
		o.Key = func(p *plan.Plan) docs.Value { return p.Doc().Sort(place) }
		return o, nil
	}
	column := r.loader.column(name, name)
	o.Key = func(p *plan.Plan) docs.Value {
		v, ok := r.loader.known(p.ID(), p.Doc(), column)
		if ok {
			return loadedKey(f, v)
		}
		r.load(p.ID(), p.Doc(), func(e *engine.Entry) {
			if e != nil {
				v = r.loader.value(e, p.Doc(), column)
			}
		})
		return loadedKey(f, v)
	}
	return o, nil
}

// loadedKey returns the sort value of a field that is not SORTABLE.
func loadedKey(f *schema.Field, v value.Value) docs.Value {
	switch v.Kind() {
	case value.Number:
		return docs.Value{Kind: docs.Number, Number: v.Float()}
	case value.String:
		if f.Kind == query.NumericKind {
			if n, ok := value.ParseNumber(v.Text()); ok {
				return docs.Value{Kind: docs.Number, Number: n}
			}
		}
		return docs.Value{Kind: docs.Text, Text: v.Text()}
	}
	return docs.Value{}
}
