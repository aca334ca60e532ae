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
	tail.name("Warning").Array(1)
	if h.pipeline.Stopped() {
		w.Simple(timeoutWarning)
	} else {
		w.Simple("None")
	}
	writeStages(tail, steps)
	tail.end()
	all.end()
	if w.Proto >= 3 {
		result.end()
	} else {
		w.EndArray(result.mark, 2*result.n+1)
	}
}

// searches returns this shard's measurements, as encoded for clients.
func (p *profiling) searches(h *hybridRun) string {
	p.answered = time.Now()
	w := &resp.Writer{Proto: h.c.W.Proto}
	searches := newPairs(w)
	searches.name("SEARCH")
	p.writeSearch(w, h.plan, []aggregate.Stage{{Type: "Index"}, {Type: "Scorer"}, {Type: "Sorter"}})
	searches.name("VSIM")
	p.writeSearch(w, h.vectors, []aggregate.Stage{{Type: "Index"}, {Type: "Metrics Applier"}, {Type: "Sorter"}, {Type: "Vector Normalizer"}})
	searches.end()
	return string(w.Buf)
}

// writeSearch writes the measurements of one search.
func (p *profiling) writeSearch(w *resp.Writer, of *plan.Plan, steps []aggregate.Stage) {
	one := newPairs(w)
	one.double("Total profile time", milliseconds(p.answered.Sub(p.began)))
	one.double("Parsing time", milliseconds(p.parsed.Sub(p.began)))
	one.double("Pipeline creation time", milliseconds(p.planned.Sub(p.parsed)))
	warnings := of.Warnings()
	if of.Stopped() {
		warnings = append(warnings, timeoutWarning)
	}
	if len(warnings) == 0 {
		warnings = []string{"None"}
	}
	one.name("Warning").Array(len(warnings))
	for _, text := range warnings {
		w.Simple(text)
	}
	one.name("Iterators profile")
	p.writeIterator(w, of.Profile())
	writeStages(one, steps)
	one.end()
}

// writeStages writes the measurements of pipeline steps.
func writeStages(p *pairs, steps []aggregate.Stage) {
	w := p.name("Result processors profile")
	w.Array(len(steps))
	for _, s := range steps {
		step := newPairs(w)
		step.simple("Type", s.Type)
		step.double("Time", milliseconds(s.Time))
		step.int("Counter", int64(s.Rows))
		step.end()
	}
}
