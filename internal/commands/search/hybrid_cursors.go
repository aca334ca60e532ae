package search

import (
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
)

// FT.HYBRID WITHCURSOR does not fuse the results: it replies with a cursor for each search. Rows have the key, the
// score in that search, and the fields of LOAD.

// cursors replies with the cursors.
func (h *hybridRun) cursors() error {
	text, err := h.cursor(h.text, false)
	if err != nil {
		return err
	}
	near, err := h.cursor(h.near, true)
	if err != nil {
		h.run.x.Cursors.Take(text) // no client will know it
		return err
	}
	p := newPairs(h.c.W)
	p.int("SEARCH", text)
	p.int("VSIM", near)
	warnings := h.found()
	p.name("warnings").Array(len(warnings))
	for _, text := range warnings {
		p.w.Simple(text)
	}
	p.end()
	return nil
}

// cursor keeps the rows of what one search has found, and returns the number of their cursor.
func (h *hybridRun) cursor(found []candidate, near bool) (int64, error) {
	a, err := h.listed(found, near)
	if err != nil {
		return 0, err
	}
	cursor, err := a.newCursor()
	if err != nil {
		return 0, err
	}
	return a.keep(cursor, 0), nil
}

// listed returns the rows of what one search has found.
func (h *hybridRun) listed(found []candidate, near bool) (*rowsRun, error) {
	r, of := h.run, h.run.plan
	if near {
		of = h.vectors
	}
	a := &rowsRun{run: &run{c: r.c, x: r.x, q: r.q, scorer: r.scorer, def: r.def, plan: of.Result(), loader: r.loader, deadline: r.deadline}}
	var plan aggregate.Plan
	for _, step := range h.q.Plan.Steps {
		if load, ok := step.(*aggregate.Load); ok {
			plan.Steps = append(plan.Steps, load)
		}
	}
	var err error
	a.pipeline, err = aggregate.Build(&plan, aggregate.Options{Schema: aggregateSchema{r.def, r.q.Dialect},
		Yields: []string{request.KeyName, scoreName}, ForceLoad: r.def.Source == schema.JSON})
	if err == nil {
		a.pipeline.Start(&list{a, found, near}, a, a.interrupt)
	}
	return a, err
}

// list is the source of these rows.
type list struct {
	a    *rowsRun
	left []candidate
	near bool
}

// Next implements aggregate.Source.
func (l *list) Next(r *aggregate.Row) (bool, error) {
	if len(l.left) == 0 {
		return false, nil
	}
	o := l.left[0]
	l.left = l.left[1:]
	r.Doc, r.Ref = o.id, o.doc
	for _, in := range l.a.pipeline.Inputs() {
		switch {
		case in.Field != "":
			if f, ok := l.a.def.Lookup(in.Field); ok && f.Sortable {
				r.Set(in.Slot, sortValue(o.doc.Sort(f.SortIndex)))
			}
		case in.Name == request.KeyName:
			r.Set(in.Slot, value.Str(o.key))
		case l.near:
			r.Set(in.Slot, value.Num(o.vector.score))
		default:
			r.Set(in.Slot, value.Num(o.text.score))
		}
	}
	return true, nil
}
