package search

import (
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/resp"
)

// profileHybrid is FT.PROFILE HYBRID; rest follows QUERY.
func profileHybrid(c *command.Ctx, x *catalog.Index, p *profiling, rest [][]byte) error {
	h, err := newHybridRun(c, x, words(rest), true)
	if err != nil {
		return err
	}
	if h.q.Cursor != nil {
		return errProfiledCursor
	}
	p.planned = time.Now()
	rows, err := h.rows()
	if err != nil {
		return err
	}
	h.writeProfiled(p, rows, p.searches(h))
	return nil
}

// writeProfiled writes the result and the measurements of the shards. They are part of the result, in RESP2 without
// a name.
func (h *hybridRun) writeProfiled(p *profiling, rows []hybridRow, shards ...string) {
	w := h.c.W
	result := newPairs(w)
	h.reply(result, rows, p.began)
	if w.Proto >= 3 {
		result.name("Profile")
	}
	all := newPairs(w)
	all.name("Shards").Array(len(shards))
	for _, shard := range shards {
		w.Raw([]byte(shard))
	}
	steps := h.pipeline.Stages()
	steps[0].Type = "Hybrid Merger"
	tail := newPairs(all.name("Coordinator"))
	var warnings []string
	if h.pipeline.Stopped() {
		warnings = []string{timeoutWarning}
	}
	writeWarning(tail, warnings)
	p.writeStages(tail, steps)
	tail.end()
	all.end()
	if w.Proto >= 3 {
		result.end()
	} else {
		w.EndArray(result.mark, 2*result.n+1)
	}
}

// searches returns this shard's measurements, as encoded for clients. Redis loads and fetches the rows of each search
// in steps of their own; here their time is in that of the others.
func (p *profiling) searches(h *hybridRun) string {
	now := time.Now()
	w := &resp.Writer{Proto: h.c.W.Proto}
	searches := newPairs(w)
	if id := shardID(h.c.Host); id != "" {
		searches.simple("Shard ID", id)
	}
	searches.name("SEARCH")
	read, scored := h.plan.Spent()
	p.writeSearch(w, now, h.plan, h.plan.Profile(), []aggregate.Stage{{Type: "Index", Time: read, Rows: h.plan.Total()},
		{Type: "Scorer", Time: scored, Rows: h.plan.Total()}, {Type: "Sorter", Time: h.textTime - read - scored, Rows: len(h.text)},
		{Type: "Loader", Rows: len(h.text)}, {Type: "Depleter", Rows: len(h.text)}})
	searches.name("VSIM")
	read, _ = h.vectors.Spent()
	near := h.vectors.Profile()
	if near.Type == plan.RangeByID { // its documents are then sorted by distance
		near.Type = plan.RangeByScore
	}
	p.writeSearch(w, now, h.vectors, near, []aggregate.Stage{{Type: "Index", Time: read, Rows: h.vectors.Total()},
		{Type: "Metrics Applier", Rows: h.vectors.Total()}, {Type: "Vector Normalizer", Time: h.nearTime - read, Rows: len(h.near)},
		{Type: "Loader", Rows: len(h.near)}, {Type: "Depleter", Rows: len(h.near)}})
	searches.end()
	return string(w.Buf)
}

// writeSearch writes the measurements of one search.
func (p *profiling) writeSearch(w *resp.Writer, now time.Time, of *plan.Plan, iterators plan.Profile, steps []aggregate.Stage) {
	one := newPairs(w)
	p.writeTimes(one, now)
	warnings := of.Warnings()
	if of.Stopped() {
		warnings = append(warnings, timeoutWarning)
	}
	writeWarning(one, warnings)
	one.name("Iterators profile")
	p.writeIterator(w, iterators)
	p.writeStages(one, steps)
	one.end()
}

// writeStages writes the measurements of pipeline steps.
func (p *profiling) writeStages(to *pairs, steps []aggregate.Stage) {
	w := to.name("Result processors profile")
	w.Array(len(steps))
	for _, s := range steps {
		step := newPairs(w)
		step.simple("Type", s.Type)
		p.double(step, "Time", s.Time)
		step.int("Results processed", int64(s.Rows))
		step.end()
	}
}
