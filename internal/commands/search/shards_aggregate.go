package search

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// FT.AGGREGATE on several shards. Each shard runs the pipeline up to its first GROUPBY, SORTBY or LIMIT; the
// coordinator runs the rest on their rows. With a cursor the shards wait between its reads, each on its connection.

// aggregateView is the body of a shard's view.
type aggregateView struct {
	Yields []string // the names that the query adds to rows
}

// aggregate replies to FT.AGGREGATE.
func (f *fan) aggregate(x *catalog.Index, q *request.Request) {
	if q.Cursor == nil {
		f.whole(askAggregate, q.Timeout, func(answers []fanout.Answer) error {
			a, err := f.rows(x, q, answers)
			if err == nil {
				_, err = a.reply(-1)
			}
			return err
		})
		return
	}
	answers, err := f.gather(askAggregate, q.Timeout)
	if err == nil {
		var a *rowsRun
		if a, err = f.rows(x, q, answers); err == nil {
			err = a.open()
		}
		if err != nil {
			fanout.CloseAll(answers)
		}
	}
	if err != nil {
		f.fail(err)
	}
}

// rows begins the coordinator's part of the pipeline.
func (f *fan) rows(x *catalog.Index, q *request.Request, answers []fanout.Answer) (*rowsRun, error) {
	r := &run{c: f.c, x: x, q: q, def: x.Definition()}
	r.loader = loader{def: r.def, dialect: q.Dialect, expand: q.Format == request.ExpandFormat}
	a := &rowsRun{run: r, scores: q.AddScores, from: &shardRows{answers: answers, warnings: f.warnings()}}
	var view aggregateView
	if len(answers) == 0 || json.Unmarshal(answers[0].View().Body, &view) != nil {
		return nil, peer.ErrFrame
	}
	if err := a.build(view.Yields); err != nil {
		return nil, err
	}
	if err := fanout.KeepNearest(answers); err != nil {
		return nil, err
	}
	for _, answer := range answers {
		if err := answer.Want(); err != nil {
			return nil, err
		}
	}
	r.begin()
	a.pipeline.StartMerge(a.from.next, a.interrupt)
	return a, nil
}

// shardRows are the parts of all shards, one shard after the other.
type shardRows struct {
	answers  []fanout.Answer // those that are not finished
	warnings []string
	profiles []string // measurements of the shards
}

// next implements aggregate.Parts. A shard makes its next part while this one is merged.
func (p *shardRows) next() ([]byte, error) {
	if len(p.answers) == 0 {
		return nil, nil
	}
	part, more, err := p.answers[0].Part()
	if err != nil {
		return nil, err
	}
	if !more {
		p.answers[0].Close()
		p.answers = p.answers[1:]
	} else if err := p.answers[0].Want(); err != nil {
		return nil, err
	}
	head, rest, err := value.Decode(part)
	if err != nil || head.Kind() != value.Array || head.Len() < 2 {
		return nil, peer.ErrFrame
	}
	p.profiles = append(p.profiles, texts(head.Items()[1])...)
	for _, text := range texts(head.Items()[0]) {
		if !slices.Contains(p.warnings, text) {
			p.warnings = append(p.warnings, text)
		}
	}
	return rest, nil
}

// close ends the unfinished answers.
func (p *shardRows) close() {
	fanout.CloseAll(p.answers)
	p.answers = nil
}

// rowsPart is the answer of one shard.
type rowsPart struct {
	s    *service
	a    *rowsRun
	view *fanout.View
	p    *profiling // nil unless measured
}

// partRows is the largest number of rows or groups in a part.
const partRows = 1000

// answerAggregate begins FT.AGGREGATE on this shard.
func (s *service) answerAggregate(c *command.Ctx, x *catalog.Index) (fanout.Answer, error) {
	q, err := request.Aggregate(words(c.Args[2:]), settingsOf(c.Host))
	if err != nil {
		return nil, fanout.Refused(err.Error())
	}
	uses(x, q.Dialect)
	return s.beginAggregate(c, x, q, nil)
}

// beginAggregate begins a pipeline. It is measured unless p is nil.
func (s *service) beginAggregate(c *command.Ctx, x *catalog.Index, q *request.Request, p *profiling) (fanout.Answer, error) {
	var a *rowsRun
	_, view, err := s.newPart(func() (*run, error) {
		var err error
		if a, err = newRowsRun(c, x, q, p != nil); err != nil {
			return nil, err
		}
		return a.run, nil
	})
	if err != nil {
		return nil, err
	}
	if view.Body, err = json.Marshal(aggregateView{a.plan.Yields()}); err != nil {
		return nil, err
	}
	if p != nil {
		p.planned = time.Now()
	}
	a.pipeline.StartShard(a, a, a.interrupt)
	return &rowsPart{s, a, view, p}, nil
}

func (p *rowsPart) View() *fanout.View { return p.view }
func (p *rowsPart) Want() error        { return nil }
func (p *rowsPart) Close()             {}

// Keep implements fanout.Answer.
func (p *rowsPart) Keep(n int) error {
	p.a.plan.KeepNearest(n)
	return nil
}

// Part implements fanout.Answer: warnings, measurements, and a part of the pipeline; only the last part has
// measurements. Rows that a cursor has returned cannot be taken back if slots move, so all its rows are those of the
// first view.
func (p *rowsPart) Part() (part []byte, more bool, err error) {
	if p.a.q.Cursor != nil {
		p.a.begin() // each read has its own time
	}
	body, more, err := p.a.pipeline.Part(nil, partRows)
	switch {
	case err != nil:
		return nil, false, fanout.Refused(err.Error())
	case more:
		return append(rowsHead(nil, nil), body...), true, nil
	case p.a.q.Cursor == nil && !p.s.still(p.view):
		return nil, false, fanout.ErrAgain
	}
	var profiles []string
	if p.p != nil {
		profiles = []string{p.p.shard(p.a.c, p.a.run, p.a.stages())}
	}
	return append(rowsHead(p.a.run.warnings(), profiles), body...), false, nil
}

// rowsHead returns the warnings and measurements before a part.
func rowsHead(warnings, profiles []string) []byte {
	return value.List([]value.Value{value.Strings(warnings), value.Strings(profiles)}).Append(nil)
}
