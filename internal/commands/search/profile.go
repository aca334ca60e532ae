package search

import (
	"errors"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/resp"
)

// profiling has the measurements of FT.PROFILE.
type profiling struct {
	limited bool // children of unions are counted, not shown
	clock   bool // times are shown
	began   time.Time
	parsed  time.Time
	planned time.Time
}

// profiled has the arguments of FT.PROFILE.
type profiled struct {
	kind string // SEARCH, AGGREGATE or HYBRID, in lower case
	rest [][]byte
	q    *request.Request // nil for HYBRID
}

// errProfiledCursor refuses WITHCURSOR.
var errProfiledCursor = errors.New("FT.PROFILE does not support cursor")

// readProfile reads the arguments up to the query.
func readProfile(c *command.Ctx) (p *profiling, of profiled, err error) {
	rest := c.Args[2:]
	for _, kind := range []string{"search", "aggregate", "hybrid"} {
		if command.EqualFold(rest[0], kind) {
			of.kind = kind
		}
	}
	if of.kind == "" {
		return nil, of, errors.New("No `SEARCH`, `AGGREGATE`, or `HYBRID` provided")
	}
	p = &profiling{began: time.Now(), clock: c.Host.Directive("search-_print-profile-clock") == "yes"}
	rest = rest[1:]
	if command.EqualFold(rest[0], "limited") {
		p.limited, rest = true, rest[1:]
	}
	if len(rest) == 0 || !command.EqualFold(rest[0], "query") {
		return nil, of, errors.New("The QUERY keyword is expected")
	}
	of.rest = rest[1:]
	return p, of, nil
}

// read reads the query.
func (of *profiled) read(c *command.Ctx, p *profiling) (err error) {
	read := request.Aggregate
	switch of.kind {
	case "hybrid":
		p.parsed = time.Now()
		return nil
	case "search":
		read = request.Search
	}
	of.q, err = read(words(of.rest), settingsOf(c.Host))
	if err == nil && of.q.Cursor != nil {
		err = errProfiledCursor
	}
	p.parsed = time.Now()
	return err
}

// profile is FT.PROFILE.
func profile(c *command.Ctx) {
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	p, of, err := readProfile(c)
	if err != nil {
		fail(c, err)
		return
	}
	if err := of.read(c, p); err != nil {
		fail(c, err)
		return
	}
	if spread(c, func(f *fan) { f.profile(x, p, of) }) {
		return
	}
	start := len(c.W.Buf)
	switch of.kind {
	case "hybrid":
		err = profileHybrid(c, x, p, of.rest)
	case "search":
		err = profileSearch(c, x, p, of.q)
	default:
		err = profileAggregate(c, x, p, of.q)
	}
	if err != nil {
		c.W.Truncate(start)
		fail(c, err)
	}
}

// beginResults writes the beginning of the reply, up to the results.
func beginResults(w *resp.Writer) {
	if w.Proto >= 3 {
		w.Map(2)
		w.Simple("Results")
	} else {
		w.Array(2)
	}
}

func profileSearch(c *command.Ctx, x *catalog.Index, p *profiling, q *request.Request) error {
	r, err := newRun(c, x, q, true)
	if err != nil {
		return err
	}
	c.LongQuery(r.work())
	p.planned = time.Now()
	found, _, err := r.rows(page(c.Host, q))
	if err != nil {
		return err
	}
	r.warned()
	beginResults(c.W)
	found.reply(c.W, q)
	writeProfiles(c.W, p.shard(c, r, r.stages()))
	return nil
}

func profileAggregate(c *command.Ctx, x *catalog.Index, p *profiling, q *request.Request) error {
	a, err := newRowsRun(c, x, q, true)
	if err != nil {
		return err
	}
	c.LongQuery(a.work())
	p.planned = time.Now()
	a.pipeline.Start(a, a, a.interrupt)
	beginResults(c.W)
	if _, err := a.reply(-1); err != nil {
		return err
	}
	writeProfiles(c.W, p.shard(c, a.run, a.stages()))
	return nil
}

// spent has the durations and counts of an execution of FT.SEARCH.
type spent struct {
	found          time.Duration // to find the hits, with the iterators and the scorer
	loaded, marked time.Duration
	hits, rows     int
}

// stages returns the steps of FT.SEARCH after the iterators. As in pipelines, the last request to a step does not count
// as a row.
func (r *run) stages() []aggregate.Stage {
	q, total := r.q, r.plan.Total()
	read, scored := r.plan.Spent()
	offset, num := page(r.c.Host, q)
	stages := r.sourceStages(aggregate.Stage{Type: "Index", Time: read, Rows: total}, scored, len(q.Arrange().Keys) == 0 && !q.Plan.CountOnly)
	sorted := r.spent.found - read - scored
	if num == 0 {
		return append(stages, aggregate.Stage{Type: "Counter", Time: sorted, Rows: 1})
	}
	hits := r.spent.hits
	if offset > 0 && hits == offset+num {
		hits-- // the page is full, so there is no last request
	}
	stages = append(stages, aggregate.Stage{Type: "Sorter", Time: sorted, Rows: hits})
	if offset > 0 {
		stages = append(stages, aggregate.Stage{Type: "Pager/Limiter", Rows: r.spent.rows})
	}
	if !q.NoContent {
		stages = append(stages, aggregate.Stage{Type: "Loader", Time: r.spent.loaded, Rows: r.spent.rows})
	}
	if !q.Summary.Empty() {
		stages = append(stages, aggregate.Stage{Type: "Highlighter", Time: r.spent.marked, Rows: r.spent.rows})
	}
	return stages
}

// sourceStages returns the steps that process the matches of the iterators.
func (r *run) sourceStages(index aggregate.Stage, scored time.Duration, scores bool) []aggregate.Stage {
	stages := []aggregate.Stage{index}
	if len(r.plan.Yields()) > 0 {
		stages = append(stages, aggregate.Stage{Type: "Metrics Applier", Rows: index.Rows})
	}
	if scores || r.q.WithScores || r.q.AddScores {
		stages = append(stages, aggregate.Stage{Type: "Scorer", Time: scored, Rows: index.Rows})
		if r.scorer == plan.BM25STDNorm {
			stages = append(stages, aggregate.Stage{Type: "Score Max Normalizer", Rows: index.Rows})
		}
	}
	return stages
}

// stages returns the steps of FT.AGGREGATE.
func (a *rowsRun) stages() []aggregate.Stage {
	stages := a.pipeline.Stages()
	_, scored := a.plan.Spent()
	index := stages[0]
	index.Time -= scored
	return append(a.sourceStages(index, scored, false), stages[1:]...)
}

// writeProfiles writes the measurements of the shards.
func writeProfiles(w *resp.Writer, shards ...string) {
	if w.Proto >= 3 {
		w.Simple("Profile")
	}
	all := newPairs(w)
	all.name("Shards").Array(len(shards))
	for _, shard := range shards {
		w.Raw([]byte(shard))
	}
	all.name("Coordinator").Map(0)
	all.end()
}

// shard returns this shard's measurements, as encoded for clients.
func (p *profiling) shard(c *command.Ctx, r *run, steps []aggregate.Stage) string {
	w := &resp.Writer{Proto: c.W.Proto}
	one := newPairs(w)
	if id := shardID(c.Host); id != "" {
		one.simple("Shard ID", id)
	}
	p.writeTimes(one, time.Now())
	writeWarning(one, r.warnings())
	one.name("Iterators profile")
	p.writeIterator(w, r.plan.Profile())
	p.writeStages(one, steps)
	one.end()
	return string(w.Buf)
}

// writeTimes writes how long a query has taken, up to an instant.
func (p *profiling) writeTimes(one *pairs, now time.Time) {
	p.double(one, "Total profile time", now.Sub(p.began))
	p.double(one, "Parsing time", p.parsed.Sub(p.began))
	p.double(one, "Workers queue time", 0) // there are no worker threads
	p.double(one, "Pipeline creation time", p.planned.Sub(p.parsed))
}

// double writes a time, unless search-_print-profile-clock is off.
func (p *profiling) double(to *pairs, name string, d time.Duration) {
	if p.clock {
		to.double(name, milliseconds(d))
	}
}

// writeWarning writes the warnings, or None.
func writeWarning(to *pairs, warnings []string) {
	if len(warnings) == 0 {
		warnings = []string{"None"}
	}
	w := to.name("Warning")
	w.Array(len(warnings))
	for _, text := range warnings {
		w.Simple(text)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// writeIterator writes an iterator with those below it.
func (p *profiling) writeIterator(w *resp.Writer, n plan.Profile) {
	node := newPairs(w)
	node.simple("Type", n.Type)
	if n.Query != "" {
		node.simple("Query type", n.Query)
	}
	if n.Term != "" {
		node.simple("Term", n.Term)
	}
	if n.Field != "" {
		node.simple("Field", n.Field)
	}
	p.double(node, "Time", n.Time)
	node.int("Number of reading operations", int64(n.Reads))
	if n.List {
		node.int("Estimated number of matches", int64(n.Size))
	}
	if n.Mode != "" {
		node.simple("Vector search mode", n.Mode)
	}
	switch {
	case len(n.Children) == 0:
	case p.limited && n.Type == "UNION" && n.Query != "UNION":
		node.simple("Child iterators", "The number of iterators in the union is "+strconv.Itoa(len(n.Children)))
	case n.Type == "NOT" || n.Type == "OPTIONAL" || n.Type == "VECTOR":
		node.name("Child iterator")
		p.writeIterator(w, n.Children[0])
	default:
		node.name("Child iterators").Array(len(n.Children))
		for _, child := range n.Children {
			p.writeIterator(w, child)
		}
	}
	node.end()
}
