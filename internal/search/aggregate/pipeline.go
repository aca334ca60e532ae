package aggregate

import (
	"time"

	"github.com/atomredis/atomredis/internal/search/value"
)

// Row is a row. Steps change it in place, so what Next returns is valid until the next call.
type Row struct {
	Doc    uint64        // the document's number in its index, by which equal rows are ordered; 0 behind a GROUPBY
	Ref    any           // data of the source and the loader
	Terms  []string      // the terms of the query that the document matched, if Pipeline.UsesTerms
	Values []value.Value // by slot
}

// Get returns the value in a slot.
func (r *Row) Get(slot int) value.Value {
	if slot < len(r.Values) {
		return r.Values[slot]
	}
	return value.Value{}
}

// Set puts a value in a slot.
func (r *Row) Set(slot int, v value.Value) {
	for slot >= len(r.Values) {
		r.Values = append(r.Values, value.Value{})
	}
	r.Values[slot] = v
}

// MatchedTerms returns at most n terms of the query that the document matched.
func (r *Row) MatchedTerms(n int) []string { return r.Terms[:min(n, len(r.Terms))] }

// reset empties the row and gives it slots.
func (r *Row) reset(slots int) {
	clear(r.Values)
	if cap(r.Values) < slots {
		r.Values = make([]value.Value, slots)
	}
	*r = Row{Values: r.Values[:slots]}
}

// Source yields the documents that a query found.
type Source interface {
	// Next fills an empty row: Doc, Ref, Terms and the slots of Pipeline.Inputs. It returns false at the end. A SORTBY keeps
	// Ref and Terms after the next call.
	Next(r *Row) (bool, error)
}

// Loader reads the documents of rows.
type Loader interface {
	// Load puts fields of the row's document in their slots; fields that it lacks are left out. A field of the schema has the
	// kind that its type says: NUMERIC is a number. It returns false if the document is gone, and the row is dropped.
	Load(r *Row, fields []Column) (bool, error)
	// LoadAll calls put for all fields of the row's document. Values of NUMERIC fields are numbers, with their text as the form
	// that is shown, so that they sort as numbers.
	LoadAll(r *Row, put func(name string, v value.Value)) (bool, error)
}

// Interrupt is called from time to time. If stop is true, the source yields no more rows, and the rows so far are
// the result; an error ends the pipeline.
type Interrupt func() (stop bool, err error)

// Pipeline is a plan for one execution. It is not safe for concurrent use.
type Pipeline struct {
	options    Options
	root, last *scope
	stages     []stage
	cut        int     // the first stage that shards leave to the coordinator; -1 if there is none
	deferred   []stage // loads that wait for a SORTBY or LIMIT
	terms      bool

	loader    Loader
	interrupt Interrupt
	asked     int // rows since the last call of interrupt
	stopped   bool
	end       operator
	row       Row
	rows      int // that Next has returned
	total     int // see Total

	shardEnd bool // the shard has sent all rows

	profile []*timed
	clock   func() time.Time
}

// operator yields rows. It fills a row that it has emptied itself, and returns false at the end.
type operator interface {
	next(r *Row) (bool, error)
}

// Inputs returns the columns that the source fills: first the names of Options.Yields, whose Field is "", then
// values of SORTABLE fields. A source sets no other slots.
func (p *Pipeline) Inputs() []Column { return p.root.inputs }

// UsesTerms reports whether the source fills Row.Terms.
func (p *Pipeline) UsesTerms() bool { return p.terms }

// Loads reports whether a Loader is needed.
func (p *Pipeline) Loads() bool {
	for _, s := range p.stages {
		if _, ok := s.(*loadStage); ok {
			return true
		}
	}
	return false
}

// Loaded returns all columns that a Loader must load; all reports whether it must also load all fields.
func (p *Pipeline) Loaded() (columns []Column, all bool) {
	for _, s := range p.stages {
		if l, ok := s.(*loadStage); ok {
			columns = append(columns, l.columns...)
			all = all || l.all
		}
	}
	return columns, all
}

// Columns returns the columns of the result, in order. A row may lack some of them. With LOAD * their number grows
// as rows come.
func (p *Pipeline) Columns() []Column {
	columns := make([]Column, len(p.last.columns))
	for i, c := range p.last.columns {
		columns[i] = c.Column
	}
	return columns
}

// Profile makes Start measure the time of each step with a clock.
func (p *Pipeline) Profile(clock func() time.Time) { p.clock = clock }

// Start begins the pipeline.
func (p *Pipeline) Start(s Source, l Loader, interrupt Interrupt) {
	p.begin(l, interrupt)
	p.end = p.open(p.stages, p.measure("Index", &scan{p, s}, nil))
}

func (p *Pipeline) begin(l Loader, interrupt Interrupt) {
	p.loader, p.interrupt = l, interrupt
	if interrupt == nil {
		p.interrupt = func() (bool, error) { return false, nil }
	}
}

// open begins stages behind an operator.
func (p *Pipeline) open(stages []stage, up operator) operator {
	for _, s := range stages {
		up = p.measure(s.String(), s.open(p, up), up)
	}
	return up
}

// Next returns the next row of the result, nil at the end.
func (p *Pipeline) Next() (*Row, error) {
	if p.rows == p.options.MaxRows {
		return nil, nil
	}
	ok, err := p.end.next(&p.row)
	if err != nil || !ok {
		return nil, err
	}
	p.rows++
	return &p.row, nil
}

// Total returns the number of rows since Recount: the groups of a GROUPBY, otherwise the rows of the source that no
// step has dropped. It grows while rows come, unless a SORTBY, a GROUPBY or WITHCOUNT reads all of them first.
func (p *Pipeline) Total() int { return p.total }

// Recount makes Total start at 0 again.
func (p *Pipeline) Recount() { p.total = 0 }

// dropped counts a row that was in the total and is not in the result.
func (p *Pipeline) dropped() { p.total = max(0, p.total-1) }

// Stopped reports whether Interrupt has cut the result short.
func (p *Pipeline) Stopped() bool { return p.stopped }

// ask calls Interrupt, but not for every row.
func (p *Pipeline) ask() error {
	const often = 100
	if p.asked++; p.asked < often {
		return nil
	}
	p.asked = 0
	stop, err := p.interrupt()
	p.stopped = p.stopped || stop
	return err
}

// scan yields the rows of the source.
type scan struct {
	p      *Pipeline
	source Source
}

func (s *scan) next(r *Row) (bool, error) {
	if err := s.p.ask(); err != nil || s.p.stopped {
		return false, err
	}
	r.reset(s.p.root.width)
	ok, err := s.source.Next(r)
	if ok {
		s.p.total++
	}
	return ok, err
}

// Stage is the measurement of a step, for FT.PROFILE.
type Stage struct {
	Type string
	Time time.Duration // without the steps before it
	Rows int           // number of requests for a row, without the last, which usually finds the end
}

// Stages returns the measurements of the steps, from the source on, if Profile was called.
func (p *Pipeline) Stages() []Stage {
	var stages []Stage
	for _, t := range p.profile {
		stage := Stage{Type: t.name, Time: t.time, Rows: max(0, t.calls-1)}
		if _, ok := t.operator.(*counting); ok {
			stage.Rows = 1 // the row with the number
		}
		if up, ok := t.up.(*timed); ok {
			stage.Time -= up.time
		}
		stages = append(stages, stage)
	}
	return stages
}

// timed measures an operator, including all operators before it.
type timed struct {
	operator
	up    operator
	name  string
	clock func() time.Time
	time  time.Duration
	calls int
}

// measure wraps an operator in a timed, if Profile was called.
func (p *Pipeline) measure(name string, op, up operator) operator {
	if p.clock == nil {
		return op
	}
	t := &timed{operator: op, up: up, name: name, clock: p.clock}
	p.profile = append(p.profile, t)
	return t
}

func (t *timed) next(r *Row) (bool, error) {
	t.calls++
	defer t.since(t.clock())
	return t.operator.next(r)
}

// since adds the time since an instant.
func (t *timed) since(start time.Time) { t.time += t.clock().Sub(start) }

// budget limits the memory of a stage.
type budget struct{ used, max int }

// take counts bytes.
func (b *budget) take(n int) { b.used += n }

// spent reports whether the memory is used up.
func (b *budget) spent() bool { return b.max > 0 && b.used > b.max }
