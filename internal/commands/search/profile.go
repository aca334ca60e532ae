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
	limited  bool // children of unions are counted, not shown
	began    time.Time
	parsed   time.Time
	planned  time.Time
	answered time.Time
}

// profiled has the arguments of FT.PROFILE.
type profiled struct {
	kind string // SEARCH, AGGREGATE or HYBRID, in lower case
	rest [][]byte
	q    *request.Request // nil for HYBRID
}

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
	p = &profiling{began: time.Now()}
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
		err = errors.New("FT.PROFILE does not support cursor")
	}
	p.parsed = time.Now()
	return err
}

// profile is FT.PROFILE.
func profile(c *command.Ctx) {
	p, of, err := readProfile(c)
	if err != nil {
		fail(c, err)
		return
	}
	x := find(c, c.Args[1])
	if x == nil {
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
	writeProfiles(c.W, p.shard(c.W.Proto, r, searchStages(q)))
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
	writeProfiles(c.W, p.shard(c.W.Proto, a.run, a.pipeline.Stages()))
	return nil
}

// searchStages returns the steps of FT.SEARCH after the iterators, which are not measured one by one.
func searchStages(q *request.Request) []aggregate.Stage {
	stages := []aggregate.Stage{{Type: "Index"}}
	if len(q.Arrange().Keys) == 0 {
		stages = append(stages, aggregate.Stage{Type: "Scorer"})
	}
	stages = append(stages, aggregate.Stage{Type: "Sorter"})
	if !q.NoContent {
		stages = append(stages, aggregate.Stage{Type: "Loader"})
	}
	if !q.Summary.Empty() {
		stages = append(stages, aggregate.Stage{Type: "Highlighter"})
	}
	return stages
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
func (p *profiling) shard(proto int, r *run, steps []aggregate.Stage) string {
	p.answered = time.Now()
	w := &resp.Writer{Proto: proto}
	one := newPairs(w)
	one.double("Total profile time", milliseconds(p.answered.Sub(p.began)))
	one.double("Parsing time", milliseconds(p.parsed.Sub(p.began)))
	one.double("Pipeline creation time", milliseconds(p.planned.Sub(p.parsed)))
	one.double("Total GIL time", 0)
	if warnings := r.warnings(); len(warnings) > 0 {
		one.simple("Warning", warnings[0])
	} else {
		one.simple("Warning", "None")
	}
	one.name("Iterators profile")
	p.writeIterator(w, r.plan.Profile())
	writeStages(one, steps)
	one.end()
	return string(w.Buf)
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
	if n.Mode != "" {
		node.simple("Vector search mode", n.Mode)
	}
	node.double("Time", milliseconds(n.Time))
	node.int("Counter", int64(n.Reads))
	if n.Leaf {
		node.int("Size", int64(n.Size))
	}
	switch {
	case len(n.Children) == 0:
	case p.limited && n.Type == "UNION":
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
