package aggregate

import "github.com/atomredis/atomredis/internal/search/expr"

// applyStage is APPLY.
type applyStage struct {
	expr *expr.Expr
	slot int
}

func (a *applyStage) String() string { return "Projector - " + a.expr.String() }

func (a *applyStage) open(_ *Pipeline, up operator) operator { return &applying{a, up} }

type applying struct {
	*applyStage
	up operator
}

func (a *applying) next(r *Row) (bool, error) {
	ok, err := a.up.next(r)
	if err != nil || !ok {
		return false, err
	}
	v, err := a.expr.Eval(r)
	if err != nil {
		return false, err
	}
	r.Set(a.slot, v)
	return true, nil
}

// filterStage is FILTER.
type filterStage struct{ expr *expr.Expr }

func (f *filterStage) String() string { return "Filter - " + f.expr.String() }

func (f *filterStage) open(p *Pipeline, up operator) operator { return &filtering{f, p, up} }

type filtering struct {
	*filterStage
	p  *Pipeline
	up operator
}

func (f *filtering) next(r *Row) (bool, error) {
	for {
		ok, err := f.up.next(r)
		if err != nil || !ok {
			return false, err
		}
		v, err := f.expr.Eval(r)
		if err != nil || v.Truth() {
			return err == nil, err
		}
		f.p.dropped()
	}
}
