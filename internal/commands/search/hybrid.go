package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
)

// FT.HYBRID runs two plans over the same view of the index, one for text and one for vectors. It fuses their best
// documents, and the best of these pass through a pipeline as in FT.AGGREGATE.

// hybridRun is an FT.HYBRID. Its embedded run has the plan for text.
type hybridRun struct {
	*rowsRun
	h       *request.Hybrid
	vectors *plan.Plan
	metric  schema.Metric
	text    []candidate // results of the text search, the best first
	near    []candidate // results of the vector search, the nearest first

	textTime, nearTime time.Duration // durations of the searches
	fused              []*fused      // the best first
	byID               map[uint64]*fused
	at                 int

	// From other shards: their warnings and measurements.
	told, profiles []string
}

// candidate is a document in the result of one search.
type candidate struct {
	*fused
	value float64 // a score, or a distance
}

// fused is a document in the result of one search or of both.
type fused struct {
	id           uint64
	key          string
	doc          *docs.Doc // nil for a document of another shard
	sent         *sentDoc  // nil with a single shard
	text, vector part
	score        float64
	explanation  plan.Explanation // of the text's score
	terms        []string         // that the text search has matched, if the pipeline uses them
}

// part is the result of one search for a document.
type part struct {
	rank  int // 1 is the best; 0 means not found
	score float64
}

// count returns a part's contribution to the fused score.
func (p part) count(f *request.Fusion, weight float64) float64 {
	switch {
	case p.rank == 0:
		return 0
	case f.Linear:
		return weight * p.score
	}
	return 1 / (f.Constant + float64(p.rank))
}

// hybridCommand is FT.HYBRID.
func hybridCommand(c *command.Ctx) {
	began := time.Now()
	x := found(c)
	if x == nil {
		return
	}
	if spread(c, func(f *fan) { f.hybrid(x, began) }) {
		return
	}
	h, err := newHybridRun(c, x, words(c.Args[2:]), false)
	if err == nil {
		err = h.answer(began)
	}
	if err != nil {
		fail(c, err)
	}
}

// answer writes the reply, or nothing if there is an error.
func (h *hybridRun) answer(began time.Time) error {
	if h.q.Cursor != nil {
		return h.cursors()
	}
	rows, err := h.rows()
	if err == nil {
		p := newPairs(h.c.W)
		h.reply(p, rows, began)
		p.end()
	}
	return err
}

// newHybridRun reads the arguments, runs both searches and begins the pipeline.
func newHybridRun(c *command.Ctx, x *catalog.Index, words []string, profiled bool) (*hybridRun, error) {
	h, err := readHybrid(c, x, words)
	if err != nil {
		return nil, err
	}
	h.profiled = profiled
	if err := h.prepare(); err != nil {
		return nil, err
	}
	uses(x, h.q.Dialect)
	c.LongQuery(h.plan.Work() + h.vectors.Work() + h.h.Fusion.Window*(loadWork+stepWork*(1+len(h.q.Plan.Steps))))
	if err := h.search(); err != nil {
		return nil, err
	}
	h.fuse()
	h.pipeline.Start(h, h, h.interrupt)
	return h, nil
}

// readHybrid reads the arguments.
func readHybrid(c *command.Ctx, x *catalog.Index, words []string) (*hybridRun, error) {
	q, err := request.ParseHybrid(words, settingsOf(c.Host))
	if err != nil {
		return nil, err
	}
	r := &run{c: c, x: x, q: &q.Request, def: x.Definition()}
	r.loader = loader{def: r.def, dialect: q.Dialect, expand: q.Format == request.ExpandFormat}
	if err := checkFormat(c, &q.Request, r.def); err != nil {
		return nil, err
	}
	if r.scorer, err = scorer(c.Host, &q.Request); err != nil {
		return nil, err
	}
	r.begin()
	return &hybridRun{rowsRun: &rowsRun{run: r}, h: q}, nil
}

// build makes the pipeline.
func (h *hybridRun) build() (err error) {
	c, q, r := h.c, h.h, h.run
	yields := []string{request.KeyName, q.ShownScore()}
	for _, name := range []string{q.SearchScore, q.Vector.Score} {
		if name != "" {
			yields = append(yields, name)
		}
	}
	h.pipeline, err = aggregate.Build(&q.Plan, aggregate.Options{Schema: aggregateSchema{r.def, q.Dialect}, Yields: append(yields, request.OrderName),
		ForceLoad: r.def.Source == schema.JSON, Prefixed: true, MaxRows: int(integer(c.Host, "search-max-search-results")),
		MaxGroups: int(integer(c.Host, "search-max-aggregate-groups")), MaxMemory: maxAggregateMemory})
	if err == nil && r.profiled {
		h.pipeline.Profile(time.Now)
	}
	return err
}

// prepare brings the index up to date, makes both plans on it, and the pipeline.
func (h *hybridRun) prepare() (err error) {
	r := h.run
	settled := settle(r.c)
	synonyms := r.x.Synonyms()
	r.x.View(func(view index.View) {
		r.view(view, settled)
		var text, vectors query.Node
		if text, err = treeOf(r.q, r.def, synonyms, view.Lookup); err != nil {
			return
		}
		if query.Any(text, isVector) {
			err = args.Errorf(query.VectorNotAllowed, "Vector expressions are not allowed in FT.HYBRID SEARCH")
			return
		}
		query.IgnoreTags(text)
		o := r.options()
		o.SortBy = nil // the order applies to the rows
		if r.plan, err = plan.New(text, view, o); err != nil {
			return
		}
		if vectors, err = h.vectorTree(view); err != nil {
			return
		}
		h.vectors, err = plan.New(vectors, view, o)
	})
	if err == nil {
		err = h.build()
	}
	return err
}

func isVector(n query.Node) bool {
	switch n.(type) {
	case *query.KNN, *query.VectorRange:
		return true
	}
	return false
}

// yield is the name under which the vector plan returns distances.
func (h *hybridRun) yield() string {
	if name := h.h.Vector.Score; name != "" {
		return name
	}
	return "__" + h.h.Vector.Field + "_score"
}

// vectorTree returns the tree of VSIM.
func (h *hybridRun) vectorTree(view index.View) (query.Node, error) {
	v := &h.h.Vector
	field, ok := h.def.Lookup(v.Field)
	switch {
	case !ok:
		return nil, args.Errorf(query.Syntax, "Unknown field `%s`", v.Field)
	case field.Kind != query.VectorKind:
		return nil, args.Errorf(query.Syntax, "Expected a VECTOR field `%s`", v.Field)
	}
	h.metric = field.Vector.Metric
	vector, ok := h.h.Params[v.Param]
	if !ok {
		return nil, args.Errorf(query.NoParameter, "Parameter not found `%s`", v.Param)
	}
	var filter query.Node
	if v.Filter != "" {
		var err error
		filter, err = treeOf(&request.Request{Query: v.Filter, Params: h.h.Params, Dialect: h.h.Dialect, Slop: -1}, h.def, h.x.Synonyms(),
			view.Lookup)
		switch {
		case err != nil:
			return nil, err
		case query.Any(filter, isVector):
			return nil, args.Errorf(query.VectorNotAllowed, "Vector expressions are not allowed in FT.HYBRID VSIM FILTER")
		case query.Any(filter, func(n query.Node) bool { return n.Of().Weight != 1 }):
			return nil, args.Errorf(query.WeightNotAllowed, "Weight attributes are not allowed in FT.HYBRID VSIM FILTER")
		}
		if _, all := filter.(*query.All); all {
			filter = nil
		}
	}
	if !v.Range {
		return query.NewKNN(&field.Field, v.K, vector, v.Options, h.yield(), filter), nil
	}
	near := query.NewVectorRange(&field.Field, v.Radius, vector, v.Options, h.yield())
	if filter == nil {
		return near, nil
	}
	return query.Filter(near, filter), nil
}

// similarity converts a distance to a score: higher is nearer. Distances of IP and COSINE are 1 minus the product.
// Redis takes the distance of IP for the product, so there nearer documents get a lower score.
func similarity(m schema.Metric, distance float64) float64 {
	if m == schema.L2 {
		return 1 / (1 + distance)
	}
	return (2 - distance) / 2
}

// search runs both searches.
func (h *hybridRun) search() error {
	window := h.h.Fusion.Window
	h.byID = map[uint64]*fused{}
	find := func(id uint64, d *docs.Doc) *fused {
		o := h.byID[id]
		if o == nil {
			o = &fused{id: id, key: d.Key(), doc: d}
			h.byID[id] = o
		}
		return o
	}
	began := time.Now()
	hits := h.plan.Top(window)
	h.textTime = time.Since(began)
	for _, hit := range hits {
		h.text = append(h.text, candidate{find(hit.ID, hit.Doc), hit.Score})
	}
	if terms := h.pipeline.UsesTerms(); (terms || h.h.ExplainScore) && len(hits) > 0 {
		h.plan.Visit(hits, func(hit *plan.Hit) {
			o := h.byID[hit.ID]
			if h.h.ExplainScore {
				o.explanation = h.plan.Explain()
			}
			if terms {
				o.terms = h.plan.Terms()
			}
		})
	}
	if err := h.timedOut(); err != nil {
		return err
	}
	began = time.Now()
	near := h.vectors.TopBy(window, plan.Order{Key: func(p *plan.Plan) docs.Value {
		distance, _ := p.Distance(h.yield())
		return docs.Value{Kind: docs.Number, Number: distance}
	}})
	h.nearTime = time.Since(began)
	if h.vectors.Stopped() {
		if err := h.timeout(); err != nil {
			return err
		}
	}
	for _, hit := range near {
		h.near = append(h.near, candidate{find(hit.ID, hit.Doc), hit.Key.Number})
	}
	return nil
}

// fuse scores the results of both searches.
func (h *hybridRun) fuse() {
	f := &h.h.Fusion
	for i, o := range h.text {
		o.text = part{i + 1, o.value}
		h.fused = append(h.fused, o.fused)
	}
	for i, o := range h.near {
		o.vector = part{i + 1, similarity(h.metric, o.value)}
		if o.text.rank == 0 {
			h.fused = append(h.fused, o.fused)
		}
	}
	for _, o := range h.fused {
		o.score = o.text.count(f, f.Alpha) + o.vector.count(f, f.Beta)
	}
	slices.SortFunc(h.fused, func(a, b *fused) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
}

// Next implements aggregate.Source.
func (h *hybridRun) Next(r *aggregate.Row) (bool, error) {
	if h.at == len(h.fused) {
		return false, nil
	}
	o := h.fused[h.at]
	h.at++
	r.Doc, r.Ref, r.Terms = o.id, o.doc, o.terms
	if o.sent != nil {
		r.Ref = o.sent
	}
	q := h.h
	for i, in := range h.pipeline.Inputs() {
		var v value.Value
		switch {
		case in.Field != "" && o.sent != nil:
			v = o.sent.input(i)
		case in.Field != "":
			if f, ok := h.def.Lookup(in.Field); ok && f.Sortable {
				v = sortValue(o.doc.Sort(f.SortIndex))
			}
		case in.Name == request.KeyName:
			v = value.Str(o.key)
		case in.Name == request.OrderName:
			v = value.Num(float64(h.at))
		case in.Name == q.ShownScore():
			v = value.Num(o.score)
		case in.Name == q.SearchScore && o.text.rank > 0:
			v = value.Num(o.text.score)
		case in.Name == q.Vector.Score && o.vector.rank > 0:
			v = value.Num(o.vector.score)
		}
		r.Set(in.Slot, v)
	}
	return true, nil
}

// hybridRow is a row of the result.
type hybridRow struct {
	fields []field
	of     *fused // nil after a GROUPBY
}

// rows returns the rows of the result. The reply needs their number before the rows.
func (h *hybridRun) rows() (rows []hybridRow, err error) {
	for {
		row, err := h.pipeline.Next()
		if err != nil || row == nil {
			return rows, err
		}
		r := hybridRow{of: h.byID[row.Doc]}
		for _, c := range h.pipeline.Columns() {
			if v := row.Get(c.Slot); !v.IsAbsent() && !h.h.Hides(c.Name) {
				r.fields = append(r.fields, field{c.Name, v})
			}
		}
		rows = append(rows, r)
	}
}

// reply writes the result into a map.
func (h *hybridRun) reply(p *pairs, rows []hybridRow, began time.Time) {
	w := h.c.W
	p.int("total_results", int64(h.pipeline.Total()))
	p.name("results").Array(len(rows))
	for _, r := range rows {
		explains := h.h.ExplainScore && r.of != nil
		if explains {
			w.Map(len(r.fields) + 1)
			w.Simple("score")
			w.Array(2)
			w.Double(r.of.score)
			writeExplanation(w, h.explain(r.of))
		} else {
			w.Map(len(r.fields))
		}
		for _, f := range r.fields {
			w.BulkString(f.name)
			writeValue(w, f.value, h.loader.expand)
		}
	}
	warnings := h.warnings()
	p.name("warnings").Array(len(warnings))
	for _, text := range warnings {
		w.Simple(text)
	}
	p.double("execution_time", milliseconds(time.Since(began)))
}

const timeoutWarning = "Timeout limit was reached"

// warnings returns the warnings of the reply.
func (h *hybridRun) warnings() []string {
	warnings := h.told
	if h.plan != nil {
		warnings = h.found()
	}
	if h.pipeline.Stopped() && !slices.ContainsFunc(warnings, func(text string) bool { return strings.HasPrefix(text, timeoutWarning) }) {
		warnings = append(warnings, timeoutWarning+" (POST PROCESSING)")
	}
	if h.capped {
		warnings = append(warnings, cappedWarning)
	}
	return warnings
}

// found returns the warnings of both searches.
func (h *hybridRun) found() (warnings []string) {
	for _, of := range []struct {
		plan  *plan.Plan
		where string
	}{{h.plan, " (SEARCH)"}, {h.vectors, " (VSIM)"}} {
		for _, text := range of.plan.Warnings() {
			warnings = append(warnings, text+of.where)
		}
		if of.plan.Stopped() {
			warnings = append(warnings, timeoutWarning+of.where)
		}
	}
	return warnings
}

// explain explains a score.
func (h *hybridRun) explain(o *fused) plan.Explanation {
	f := &h.h.Fusion
	leaf := func(format string, a ...any) plan.Explanation {
		return plan.Explanation{Text: fmt.Sprintf(format, a...)}
	}
	term := func(p part, weight float64, name string) string {
		switch {
		case p.rank == 0:
			return "0 [" + name + ": no match]"
		case f.Linear:
			return fmt.Sprintf("%.4f * %.4f", weight, p.score)
		}
		return fmt.Sprintf("1 / (constant %.2f + rank %d)", f.Constant, p.rank)
	}
	// share describes a part: its rank, or its contribution.
	share := func(p part, weight float64, name string) string {
		switch {
		case f.Linear && p.rank == 0:
			return name + " contribution = <no match>"
		case f.Linear:
			return fmt.Sprintf("%s contribution = %.4f * %.4f = %.4f", name, weight, p.score, weight*p.score)
		case p.rank == 0:
			return name + " rank = <no match>"
		}
		return fmt.Sprintf("%s rank = %d", name, p.rank)
	}
	text := leaf("%s", share(o.text, f.Alpha, "text"))
	if o.text.rank > 0 {
		scorer := leaf("Text scorer: %s", h.scorer)
		if f.Linear {
			scorer.Children = append(scorer.Children, leaf("normalized text score = %.4f", o.text.score))
		}
		scorer.Children = append(scorer.Children, o.explanation)
		text.Children = []plan.Explanation{scorer}
	}
	vector := leaf("vector branch (KNN)")
	if v := &h.h.Vector; v.Range {
		vector.Text = fmt.Sprintf("vector branch (RANGE: radius=%.4f", v.Radius)
		for _, option := range v.Options {
			if option.Name == "EPSILON" {
				vector.Text += ", epsilon=" + option.Value
			}
		}
		vector.Text += ")"
		vector.Children = append(vector.Children, leaf("matched within radius = %t", o.vector.rank > 0))
	}
	vector.Children = append(vector.Children, leaf("%s", share(o.vector, f.Beta, "vector")))
	if f.Linear && o.vector.rank > 0 {
		vector.Children = append(vector.Children, leaf("normalized vector score = %.4f", o.vector.score))
	}
	all := leaf("final score: %s + %s = %s", term(o.text, f.Alpha, "text"), term(o.vector, f.Beta, "vector"), formatG(o.score, 17))
	fusion := leaf("%s", f)
	fusion.Children = []plan.Explanation{text, vector}
	all.Children = []plan.Explanation{fusion}
	return all
}
