package aggregate

import "github.com/atomredis/atomredis/internal/search/value"

// loadStage loads fields of documents: LOAD, or what a later step needs.
type loadStage struct {
	all     bool
	columns []Column
}

func (*loadStage) String() string { return "Loader" }

func (l *loadStage) open(p *Pipeline, up operator) operator {
	return &loading{loadStage: l, p: p, up: up}
}

// loading runs a loadStage. After a step that has read all rows, only it asks whether to stop. If that step was
// stopped, its rows are the partial result and are loaded without asking.
type loading struct {
	*loadStage
	p    *Pipeline
	up   operator
	over bool
}

func (l *loading) next(r *Row) (bool, error) {
	for !l.over {
		ok, err := l.up.next(r)
		if err != nil || !ok {
			return false, err
		}
		if !l.p.stopped {
			if err := l.p.ask(); err != nil || l.p.stopped {
				l.over = true
				return false, err
			}
		}
		kept := true
		if l.all {
			kept, err = l.p.loader.LoadAll(r, func(name string, v value.Value) { l.p.root.put(r, name, v) })
		}
		if kept && err == nil && len(l.columns) > 0 {
			kept, err = l.p.loader.Load(r, l.columns)
		}
		if err != nil {
			return false, err
		}
		if kept {
			return true, nil
		}
		l.p.dropped()
		if err := l.p.ask(); err != nil || l.p.stopped {
			return false, err
		}
	}
	return false, nil
}

// put sets a value that LOAD * has found. Names from a step keep their values, and so do fields that already have
// their original value.
func (s *scope) put(r *Row, name string, v value.Value) {
	c, ok := s.byName[name]
	if !ok {
		c = s.add(name)
	}
	if c.made || c.exact && !r.Get(c.Slot).IsAbsent() {
		return
	}
	r.Set(c.Slot, v)
}
