package aggregate

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/expr"
	"github.com/atomredis/atomredis/internal/search/query"
)

// Options is what a pipeline needs beside its steps. A limit of zero is no limit.
type Options struct {
	Schema Schema

	// Yields are names that the query itself gives, before all others: __score, the distances of vectors.
	Yields []string

	// ForceLoad has LOAD read documents even if the sort values have the original: those of JSON documents lack values that
	// dialects before 3 return.
	ForceLoad bool

	// Prefixed requires the @ of names in the arguments of REDUCE.
	Prefixed bool

	MaxRows   int // of the result, and of the rows that a SORTBY keeps
	MaxGroups int // of a GROUPBY
	MaxMemory int // of groups and sorted rows, in bytes, approximately

	// Rand chooses the samples of RANDOM_SAMPLE; nil is a random seed.
	Rand *rand.Rand
}

// stage is a step that can run. open starts it; up yields its input.
type stage interface {
	open(p *Pipeline, up operator) operator
	String() string // its name in profiles
}

// Build resolves the names of a plan.
func Build(plan *Plan, o Options) (*Pipeline, error) {
	if o.MaxRows <= 0 {
		o.MaxRows = math.MaxInt
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	root := newScope(o.Schema)
	root.force = o.ForceLoad
	p := &Pipeline{options: o, root: root, last: root, cut: -1}
	for _, name := range o.Yields {
		c, err := root.make(name, false)
		if err != nil {
			return nil, err
		}
		root.inputs = append(root.inputs, c.Column)
	}
	for i, step := range plan.Steps {
		var err error
		switch step := step.(type) {
		case *Load:
			err = p.buildLoad(step, plan.Steps[i+1:])
		case *Apply:
			err = p.buildApply(step)
		case *Filter:
			err = p.buildFilter(step)
		case *Group:
			err = p.buildGroup(step)
		case *Arrange:
			err = p.buildArrange(step, plan)
		}
		if err != nil {
			return nil, err
		}
	}
	p.push(p.deferred...)
	switch {
	case plan.CountOnly && !plan.has(isArrange):
		p.pushCut(countStage{})
	case plan.Whole && !plan.CountOnly:
		p.pushCut(&wholeStage{budget: &budget{max: p.options.MaxMemory}})
	case plan.depletes() && !slices.ContainsFunc(p.stages, isDepleter):
		p.pushDepleter()
	}
	return p, nil
}

// has reports whether a step has a property.
func (p *Plan) has(is func(Step) bool) bool { return slices.ContainsFunc(p.Steps, is) }

func isDepleter(s stage) bool {
	_, ok := s.(*depleteStage)
	return ok
}

func isArrange(s Step) bool {
	_, ok := s.(*Arrange)
	return ok
}

// Gathers reports whether a step reads all rows before the first one comes: a GROUPBY, or a SORTBY with keys.
func (p *Plan) Gathers() bool {
	return p.has(func(s Step) bool {
		switch s := s.(type) {
		case *Group:
			return true
		case *Arrange:
			return len(s.Keys) > 0
		}
		return false
	})
}

// depletes reports whether some rows are only read to count them.
func (p *Plan) depletes() bool { return p.CountAll && !p.CountOnly && !p.Gathers() }

// pushDepleter adds a stage at which rows are counted.
func (p *Pipeline) pushDepleter() *depleteStage {
	d := new(depleteStage)
	p.push(d)
	return d
}

// push adds stages.
func (p *Pipeline) push(stages ...stage) { p.stages = append(p.stages, stages...) }

// pushCut adds a stage at which the parts of shards are merged; the first such stage is the cut.
func (p *Pipeline) pushCut(s stage) {
	if p.cut < 0 {
		p.cut = len(p.stages)
	}
	p.push(s)
}

// settle adds the deferred loads.
func (p *Pipeline) settle() {
	p.push(p.deferred...)
	p.deferred = nil
}

// pushLoad adds a load if it loads anything.
func (p *Pipeline) pushLoad(l *loadStage) {
	if len(l.columns) > 0 {
		p.push(l)
	}
}

// buildLoad adds a LOAD. A SORTBY or LIMIT that follows goes first if it does not need what is loaded: so only rows of the
// result are loaded.
func (p *Pipeline) buildLoad(load *Load, next []Step) error {
	if p.last != p.root {
		return args.Errorf(query.Invalid, "LOAD cannot be applied after projectors or reducers")
	}
	p.settle()
	stage := &loadStage{all: load.All}
	for _, f := range load.Fields {
		if c, ok := p.root.load(f.Name, f.Path); ok {
			stage.columns = append(stage.columns, c.Column)
		}
	}
	switch {
	case load.All:
		p.root.all = stage
		p.push(stage)
	case len(stage.columns) == 0:
	case len(next) > 0 && stage.mayWait(next[0]):
		p.deferred = append(p.deferred, stage)
	default:
		p.push(stage)
	}
	return nil
}

// mayWait reports whether a step can go before the load.
func (l *loadStage) mayWait(next Step) bool {
	a, ok := next.(*Arrange)
	if !ok {
		return false
	}
	for _, key := range a.Keys {
		for _, c := range l.columns {
			if c.Name == key.Name {
				return false
			}
		}
	}
	return true
}

// parse parses an expression and binds its names.
func (p *Pipeline) parse(text string) (*expr.Expr, error) {
	p.settle()
	e, err := expr.Parse(text)
	if err != nil {
		return nil, err
	}
	p.terms = p.terms || e.UsesTerms()
	return e, e.Bind(p.last.slot)
}

func (p *Pipeline) buildApply(apply *Apply) error {
	e, err := p.parse(apply.Expr)
	if err != nil {
		return err
	}
	c, err := p.last.make(apply.As, true)
	if err != nil {
		return err
	}
	p.push(&applyStage{e, c.Slot})
	return nil
}

func (p *Pipeline) buildFilter(filter *Filter) error {
	e, err := p.parse(filter.Expr)
	if err != nil {
		return err
	}
	p.push(&filterStage{e})
	return nil
}

func (p *Pipeline) buildGroup(g *Group) error {
	p.settle()
	load := &loadStage{}
	from, to := p.last, newScope(nil)
	stage := &groupStage{budget: &budget{max: p.options.MaxMemory}, max: p.options.MaxGroups}
	for _, name := range g.By {
		c, ok := from.find(name, load)
		if !ok {
			return args.Errorf(query.NoProperty, "No such property `%s`", name)
		}
		stage.by = append(stage.by, c.Slot)
		if _, err := to.make(name, false); err != nil {
			return err
		}
	}
	for _, reduce := range g.Reduce {
		b := reducerBuilder{
			Reader: args.New(reduce.Args...), name: reduce.Name, scope: from, load: load, budget: stage.budget, options: &p.options,
		}
		r, err := b.build()
		if err != nil {
			return err
		}
		if _, err := to.make(reduce.Alias, false); err != nil {
			return err
		}
		stage.reducers = append(stage.reducers, r)
	}
	p.pushLoad(load)
	p.pushCut(stage)
	p.last = to
	return nil
}

func (p *Pipeline) buildArrange(a *Arrange, plan *Plan) error {
	if plan.CountOnly {
		p.pushCut(countStage{})
		p.deferred = nil // no later step sees their values
		return nil
	}
	most := DefaultLimit
	if a.Num > 0 {
		most = a.Offset + min(a.Num, math.MaxInt-a.Offset)
	}
	most = min(most, p.options.MaxRows)
	sorted := len(a.Keys) > 0 // SORTBY 0 sorts nothing
	if sorted {
		load := &loadStage{}
		stage := &sortStage{most: most, budget: &budget{max: p.options.MaxMemory}}
		for _, key := range a.Keys {
			c, ok := p.last.find(key.Name, load)
			if !ok {
				return args.Errorf(query.NoProperty, "Property `%s` not loaded nor in schema", key.Name)
			}
			stage.keys = append(stage.keys, sortKey{c.Slot, key.Desc})
		}
		p.pushLoad(load)
		p.pushCut(stage)
	}
	if a.Offset > 0 || a.Num > 0 && !sorted {
		page := &pageStage{offset: a.Offset, num: a.Num}
		if plan.depletes() {
			page.depleter = p.pushDepleter()
		}
		p.pushCut(page)
	}
	p.settle()
	return nil
}
