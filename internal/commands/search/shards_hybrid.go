package search

import (
	"cmp"
	"slices"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// FT.HYBRID on several shards. Each shard sends the results of its two searches, with all values of these documents
// that the pipeline needs. The coordinator merges the lists, fuses them and runs the pipeline.

// sentDoc is a document as a shard sends it.
type sentDoc struct {
	gone    bool
	inputs  []value.Value       // by their place in Pipeline.Inputs
	columns map[int]value.Value // by slot
	all     []value.Value       // names and values of all fields
}

// input returns a value of Pipeline.Inputs.
func (d *sentDoc) input(i int) value.Value {
	if i < len(d.inputs) {
		return d.inputs[i]
	}
	return value.Value{}
}

// Load implements aggregate.Loader.
func (h *hybridRun) Load(r *aggregate.Row, fields []aggregate.Column) (bool, error) {
	d, ok := r.Ref.(*sentDoc)
	if !ok {
		return h.rowsRun.Load(r, fields)
	}
	for _, f := range fields {
		if v := d.columns[f.Slot]; !v.IsAbsent() {
			r.Set(f.Slot, v)
		}
	}
	return !d.gone, nil
}

// LoadAll implements aggregate.Loader.
func (h *hybridRun) LoadAll(r *aggregate.Row, put func(name string, v value.Value)) (bool, error) {
	d, ok := r.Ref.(*sentDoc)
	if !ok {
		return h.rowsRun.LoadAll(r, put)
	}
	for i := 0; i+1 < len(d.all); i += 2 {
		put(d.all[i].Text(), d.all[i+1])
	}
	return !d.gone, nil
}

// hybrid replies to FT.HYBRID.
func (f *fan) hybrid(x *catalog.Index, began time.Time) {
	h, err := readHybrid(f.c, x, words(f.c.Args[2:]))
	if err == nil && h.q.Cursor != nil {
		err = args.Errorf(query.BadArguments, "WITHCURSOR of FT.HYBRID is not supported with several shards")
	}
	if err != nil {
		f.fail(err)
		return
	}
	f.whole(askHybrid, h.q.Timeout, func(answers []fanout.Answer) error {
		if h, err = f.fused(x, f.c.Args[2:], false, answers); err != nil {
			return err
		}
		return h.answer(began)
	})
}

// fused merges the answers of all shards, and begins the pipeline.
func (f *fan) fused(x *catalog.Index, args [][]byte, profiled bool, answers []fanout.Answer) (*hybridRun, error) {
	parts, err := only(answers)
	if err != nil {
		return nil, err
	}
	h, err := readHybrid(f.c, x, words(args))
	if err != nil {
		return nil, err
	}
	h.profiled = profiled
	if err := h.merge(parts); err != nil {
		return nil, err
	}
	h.told = append(h.told, f.warnings()...)
	return h, nil
}

// merge fuses the results of all shards, and begins the pipeline.
func (h *hybridRun) merge(parts [][]byte) error {
	if err := h.build(); err != nil {
		return err
	}
	v := &h.h.Vector
	if field, ok := h.def.Lookup(v.Field); ok && field.Vector != nil {
		h.metric = field.Vector.Metric
	}
	h.byID = map[uint64]*fused{}
	for _, part := range parts {
		if err := h.add(part); err != nil {
			return err
		}
	}
	slices.SortStableFunc(h.text, func(a, b candidate) int { return cmp.Compare(b.value, a.value) })
	slices.SortStableFunc(h.near, func(a, b candidate) int { return cmp.Compare(a.value, b.value) })
	window := h.h.Fusion.Window
	h.text = h.text[:min(window, len(h.text))]
	if !v.Range {
		window = min(window, int(v.K))
	}
	h.near = h.near[:min(window, len(h.near))]
	h.fuse()
	h.pipeline.Start(h, h, h.interrupt)
	return nil
}

// A part is the result of a shard: warnings, the documents, for each search the indices of its documents with their
// values, and measurements.

// part returns this shard's part.
func (h *hybridRun) part(profiles []string) ([]byte, error) {
	columns, all := h.pipeline.Loaded()
	var documents []value.Value
	places := map[uint64]int{}
	list := func(found []candidate) value.Value {
		var values []value.Value
		for _, o := range found {
			place, known := places[o.id]
			if !known {
				place = len(documents)
				places[o.id] = place
				documents = append(documents, h.values(o.fused, columns, all))
			}
			values = append(values, value.Num(float64(place)), value.Num(o.value))
		}
		return value.List(values)
	}
	text, near := list(h.text), list(h.near)
	return value.List([]value.Value{value.Strings(h.found()), value.List(documents), text, near,
		value.Strings(profiles)}).Append(nil), nil
}

// values returns a document with the values that the pipeline needs.
func (h *hybridRun) values(o *fused, columns []aggregate.Column, all bool) value.Value {
	var inputs, loaded, fields []value.Value
	for _, in := range h.pipeline.Inputs() {
		var v value.Value
		if f, ok := h.def.Lookup(in.Field); ok && in.Field != "" && f.Sortable {
			v = sortValue(o.doc.Sort(f.SortIndex))
		}
		inputs = append(inputs, v)
	}
	gone := false
	if len(columns) > 0 || all {
		h.load(o.id, o.doc, func(e *engine.Entry) {
			if gone = e == nil; gone {
				return
			}
			for _, f := range columns {
				loaded = append(loaded, h.loader.stored(e, o.doc, h.columnOf(f)))
			}
			if all {
				h.loader.all(e, func(name string, v value.Value) {
					fields = append(fields, value.Str(name), h.loader.typed(name, v))
				})
			}
		})
	}
	return value.List([]value.Value{value.Str(o.key), value.Bool(gone), explanationValue(o.explanation), value.List(inputs),
		value.List(loaded), value.List(fields), value.Strings(o.terms)})
}

// add adds the part of a shard.
func (h *hybridRun) add(part []byte) error {
	values, err := decoded(part, 5)
	if err != nil {
		return err
	}
	for _, text := range texts(values[0]) {
		if !slices.Contains(h.told, text) {
			h.told = append(h.told, text)
		}
	}
	h.profiles = append(h.profiles, texts(values[4])...)
	columns, _ := h.pipeline.Loaded()
	var documents []*fused
	for _, v := range values[1].Items() {
		of := v.Items()
		if len(of) < 6 {
			return peer.ErrFrame
		}
		d := &sentDoc{gone: of[1].Float() != 0, inputs: of[3].Items(), all: of[5].Items(), columns: map[int]value.Value{}}
		for i, v := range of[4].Items() {
			if i < len(columns) {
				d.columns[columns[i].Slot] = v
			}
		}
		o := &fused{id: uint64(len(h.byID) + 1), key: of[0].Text(), explanation: explanationOf(of[2]), sent: d}
		if len(of) > 6 { // older shards send no terms
			o.terms = texts(of[6])
		}
		h.byID[o.id] = o
		documents = append(documents, o)
	}
	for _, to := range []struct {
		list *[]candidate
		from []value.Value
	}{{&h.text, values[2].Items()}, {&h.near, values[3].Items()}} {
		for i := 0; i+1 < len(to.from); i += 2 {
			place := to.from[i].Float()
			if !(place >= 0 && place < float64(len(documents))) {
				return peer.ErrFrame
			}
			*to.list = append(*to.list, candidate{documents[int(place)], to.from[i+1].Float()})
		}
	}
	return nil
}

// answerHybrid runs both searches on this shard.
func (s *service) answerHybrid(c *command.Ctx, x *catalog.Index) (fanout.Answer, error) {
	return s.beginHybrid(c, x, c.Args[2:], nil)
}

// beginHybrid runs both searches. They are measured unless p is nil.
func (s *service) beginHybrid(c *command.Ctx, x *catalog.Index, args [][]byte, p *profiling) (fanout.Answer, error) {
	for range maxMoved {
		a := &given{}
		var h *hybridRun
		view, err := s.steadily(func() (err error) {
			if h, err = readHybrid(c, x, words(args)); err == nil {
				h.profiled = p != nil
				err = h.prepare()
			}
			if err == nil {
				uses(x, h.q.Dialect)
			}
			return err
		})
		if p != nil {
			p.planned = time.Now()
		}
		if err != nil {
			return nil, err
		}
		if err = h.search(); err == nil {
			var profiles []string
			if p != nil {
				profiles = []string{p.searches(h)}
			}
			a.part, err = h.part(profiles)
		}
		if err != nil {
			return nil, fanout.Refused(err.Error())
		}
		if a.view = *view; s.still(view) {
			return a, nil
		}
	}
	return nil, fanout.ErrAgain
}
