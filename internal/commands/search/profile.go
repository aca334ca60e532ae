package search

import (
	"slices"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/resp"
)

// profiling is what FT.PROFILE measures of a query.
type profiling struct {
	limited  bool // children of unions are counted, not shown
	began    time.Time
	parsed   time.Time
	planned  time.Time
	answered time.Time
}

// profile is FT.PROFILE.
func profile(c *command.Ctx) {
	rest := c.Args[2:]
	search, hybrid := command.EqualFold(rest[0], "search"), command.EqualFold(rest[0], "hybrid")
	if !search && !hybrid && !command.EqualFold(rest[0], "aggregate") {
		c.Err("No `SEARCH`, `AGGREGATE`, or `HYBRID` provided")
		return
	}
	p := &profiling{began: time.Now()}
	rest = rest[1:]
	if command.EqualFold(rest[0], "limited") {
		p.limited, rest = true, rest[1:]
	}
	if len(rest) == 0 || !command.EqualFold(rest[0], "query") {
		c.Err("The QUERY keyword is expected")
		return
	}
	rest = rest[1:]
	if hybrid {
		profileHybrid(c, p, rest)
		return
	}
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	read := request.Aggregate
	if search {
		read = request.Search
	}
	q, err := read(words(rest), settingsOf(c.Host))
	if err == nil && q.Cursor != nil {
		c.Err("FT.PROFILE does not support cursor")
		return
	}
	if err != nil {
		fail(c, err)
		return
	}
	p.parsed = time.Now()
	start := len(c.W.Buf)
	results := func() {
		if c.W.Proto >= 3 {
			c.W.Map(2)
			c.W.Simple("Results")
		} else {
			c.W.Array(2)
		}
	}
	var r *run
	var steps []aggregate.Stage
	if search {
		if r, err = newRun(c, x, q, true); err == nil {
			c.LongQuery(r.work())
			p.planned = time.Now()
			var rows []row
			if rows, _, err = r.rows(); err == nil {
				results()
				r.reply(rows)
			}
		}
		steps = searchStages(q)
	} else {
		var a *rowsRun
		if a, err = newRowsRun(c, x, q, true); err == nil {
			c.LongQuery(a.work())
			p.planned = time.Now()
			r = a.run
			results()
			before := len(c.W.Buf)
			if a.reply(-1); c.W.Buf[before] == '-' {
				failure := slices.Clone(c.W.Buf[before:])
				c.W.Truncate(start)
				c.W.Raw(failure)
				return
			}
			steps = a.pipeline.Stages()
		}
	}
	if err != nil {
		c.W.Truncate(start)
		fail(c, err)
		return
	}
	p.answered = time.Now()
	p.write(c.W, r, steps)
}

// searchStages returns the steps of FT.SEARCH behind the iterators, which are not measured one by one.
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

// write writes what was measured.
func (p *profiling) write(w *resp.Writer, r *run, steps []aggregate.Stage) {
	if w.Proto >= 3 {
		w.Simple("Profile")
	}
	all := newPairs(w)
	all.name("Shards").Array(1)
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
	all.name("Coordinator").Map(0)
	all.end()
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
