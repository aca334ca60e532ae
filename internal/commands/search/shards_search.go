package search

import (
	"cmp"
	"slices"
	"time"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// FT.SEARCH on several shards. Each shard sends its sorted results up to the end of the page. Equal results are in
// the order of the shards' names, then in their shard's order: so pages do not overlap, whichever server is asked.

// search replies to FT.SEARCH.
func (f *fan) search(q *request.Request) {
	f.whole(askSearch, q.Timeout, func(answers []fanout.Answer) error {
		found, err := f.merged(q, answers)
		if err == nil {
			found.reply(f.c.W, q)
		}
		return err
	})
}

// merged returns the page of the results of all shards.
func (f *fan) merged(q *request.Request, answers []fanout.Answer) (*result, error) {
	if err := fanout.KeepNearest(answers); err != nil {
		return nil, err
	}
	parts, err := only(answers)
	if err != nil {
		return nil, err
	}
	all := &result{}
	for _, part := range parts {
		if err := all.add(part); err != nil {
			return nil, err
		}
	}
	all.sort(q)
	offset, num := page(f.c.Host, q)
	all.rows = all.rows[min(offset, len(all.rows)):]
	all.rows = all.rows[:min(num, len(all.rows))]
	all.warnings = append(all.warnings, f.warnings()...)
	return all, nil
}

// warnings returns the warning if shards have not answered.
func (f *fan) warnings() []string {
	if f.partial {
		return []string{partialWarning}
	}
	return nil
}

// sort merges the concatenated results of several shards into one order.
func (found *result) sort(q *request.Request) {
	keys := q.Arrange().Keys
	if len(keys) == 0 {
		slices.SortStableFunc(found.rows, func(a, b row) int { return cmp.Compare(b.score, a.score) })
		return
	}
	order := plan.Order{Desc: keys[0].Desc}
	slices.SortStableFunc(found.rows, func(a, b row) int { return order.Compare(&a.order, &b.order) })
}

// searchPart is the answer of one shard.
type searchPart struct {
	s    *service
	r    *run
	view *fanout.View
	most int // largest number of results
	part []byte
	p    *profiling // nil unless it is measured
}

// answerSearch runs FT.SEARCH. With KNN the coordinator first says how many of the shard's nearest documents count.
func (s *service) answerSearch(c *command.Ctx, x *catalog.Index) (fanout.Answer, error) {
	q, err := request.Search(words(c.Args[2:]), settingsOf(c.Host))
	if err != nil {
		return nil, fanout.Refused(err.Error())
	}
	uses(x, q.Dialect)
	return s.beginSearch(c, x, q, nil)
}

// beginSearch runs a query. It is measured unless p is nil.
func (s *service) beginSearch(c *command.Ctx, x *catalog.Index, q *request.Request, p *profiling) (_ fanout.Answer, err error) {
	a := &searchPart{s: s, p: p}
	if offset, num := page(c.Host, q); num > 0 {
		a.most = offset + num
	}
	for attempt := 1; ; attempt++ {
		a.r, a.view, err = s.newPart(func() (*run, error) { return newRun(c, x, q, p != nil) })
		if p != nil {
			p.planned = time.Now()
		}
		if err != nil || len(a.view.Near) > 0 {
			return a, err
		}
		found, current, err := a.r.rows(0, a.most)
		switch {
		case err != nil:
			return nil, fanout.Refused(err.Error())
		case !current && attempt < maxAttempts:
			continue
		case s.still(a.view):
			a.give(found)
			return a, nil
		case attempt == maxMoved:
			return nil, fanout.ErrAgain
		}
	}
}

// give makes the part.
func (a *searchPart) give(found *result) {
	if a.p != nil {
		found.profiles = []string{a.p.shard(a.r.c, a.r, a.r.stages())}
	}
	a.part = found.append(nil)
}

func (a *searchPart) View() *fanout.View { return a.view }
func (a *searchPart) Want() error        { return nil }
func (a *searchPart) Close()             {}

// Keep implements fanout.Answer.
func (a *searchPart) Keep(n int) error {
	a.r.plan.KeepNearest(n)
	return nil
}

// Part implements fanout.Answer.
func (a *searchPart) Part() (part []byte, more bool, err error) {
	if a.part == nil {
		found, _, err := a.r.rows(0, a.most)
		if err != nil {
			return nil, false, fanout.Refused(err.Error())
		}
		if !a.s.still(a.view) {
			return nil, false, fanout.ErrAgain
		}
		a.give(found)
	}
	return a.part, false, nil
}

// A result is sent as values: the total, the warnings, a list for each row, and measurements.

// append appends a result in the form that add reads.
func (found *result) append(b []byte) []byte {
	rows := make([]value.Value, len(found.rows))
	for i := range found.rows {
		rows[i] = found.rows[i].values()
	}
	return value.List([]value.Value{value.Num(float64(found.total)), value.Strings(found.warnings), value.List(rows),
		value.Strings(found.profiles)}).Append(b)
}

// add adds a result of another shard.
func (found *result) add(part []byte) error {
	list, err := decoded(part, 4)
	if err != nil {
		return err
	}
	found.total += int(list[0].Float())
	found.warn(texts(list[1])...)
	found.profiles = append(found.profiles, texts(list[3])...)
	for _, row := range list[2].Items() {
		o, err := rowOf(row.Items())
		if err != nil {
			return err
		}
		found.rows = append(found.rows, o)
	}
	return nil
}

// warn adds warnings, without duplicates.
func (found *result) warn(list ...string) {
	for _, text := range list {
		if !slices.Contains(found.warnings, text) {
			found.warnings = append(found.warnings, text)
		}
	}
}

// texts returns the texts of an array.
func texts(v value.Value) []string {
	var list []string
	for _, item := range v.Items() {
		list = append(list, item.Text())
	}
	return list
}

// rowValues is the number of values of a row beside its fields.
const rowValues = 7

// values returns a row as values.
func (o *row) values() value.Value {
	list := []value.Value{value.Str(o.key), value.Num(float64(o.id)), value.Num(o.score), sortValue(o.order), o.payload,
		explanationValue(o.explanation), value.Bool(o.gone)}
	for _, f := range o.fields {
		list = append(list, value.Str(f.name), f.value)
	}
	return value.List(list)
}

// rowOf converts values to a row.
func rowOf(list []value.Value) (o row, err error) {
	if len(list) < rowValues || (len(list)-rowValues)%2 != 0 {
		return o, peer.ErrFrame
	}
	o = row{key: list[0].Text(), id: uint64(list[1].Float()), score: list[2].Float(), order: orderOf(list[3]), payload: list[4],
		explanation: explanationOf(list[5]), gone: list[6].Float() != 0}
	for list = list[rowValues:]; len(list) > 0; list = list[2:] {
		o.fields = append(o.fields, field{list[0].Text(), list[1]})
	}
	return o, nil
}

// orderOf converts a value to a sort key.
func orderOf(v value.Value) docs.Value {
	switch v.Kind() {
	case value.Number:
		return docs.Value{Kind: docs.Number, Number: v.Float()}
	case value.String:
		return docs.Value{Kind: docs.Text, Text: v.Text()}
	}
	return docs.Value{}
}

// explanationValue converts an explanation to values: a text and the explanations below it.
func explanationValue(x plan.Explanation) value.Value {
	list := []value.Value{value.Str(x.Text)}
	for _, child := range x.Children {
		list = append(list, explanationValue(child))
	}
	return value.List(list)
}

// explanationOf converts values to an explanation.
func explanationOf(v value.Value) (x plan.Explanation) {
	for i, item := range v.Items() {
		if i == 0 {
			x.Text = item.Text()
		} else {
			x.Children = append(x.Children, explanationOf(item))
		}
	}
	return x
}
