package path

import (
	"errors"

	"github.com/atomredis/atomredis/engine/documents"
)

// Limits on the cost of evaluating a path.
const (
	// MaxSteps is how many values may be visited in the largest documents, and MaxResults how many results a path may
	// have.
	MaxSteps   = 1 << 25
	MaxResults = 1 << 23
	// smallSteps is how many values may be visited in small documents.
	smallSteps = 1 << 22
	// longSteps is how many visited values take long enough to delay other clients.
	longSteps = 1 << 15
)

// Errors of paths that cost too much.
var (
	ErrSteps   = errors.New("ERR evaluating the path takes too many steps for this document")
	ErrResults = errors.New("ERR the path has too many results: limit is 8388608")
)

// Values returns the values that the path selects or computes in a document. If that turns out to take long, it calls
// long once, unless nil.
func (p *Path) Values(root documents.Value, long func()) ([]documents.Value, error) {
	e := newEvaluator(root, long)
	vals := e.operand(p.expr, root)
	return vals, e.err
}

// First returns the first value that the path selects or computes in a document; ok is false if there is none. See
// Values for long.
func (p *Path) First(root documents.Value, long func()) (v documents.Value, ok bool, err error) {
	e := newEvaluator(root, long)
	q, isQuery := p.expr.(*query)
	if !isQuery {
		vals := e.operand(p.expr, root)
		if len(vals) > 0 {
			v, ok = vals[0], true
		}
		return v, ok, e.err
	}
	e.walk(q.segments, root, nil, func(found documents.Value, _ *documents.Place) bool {
		v, ok = found, true
		return false
	})
	return v, ok, e.err
}

// Match is a selected value and its place.
type Match struct {
	Value documents.Value
	Place *documents.Place
}

// Matches returns the values that a path, which must not be a projection, selects in a document. See Values for long.
func (p *Path) Matches(root documents.Value, long func()) ([]Match, error) {
	e := newEvaluator(root, long)
	e.places = true
	var matches []Match
	e.walk(p.expr.(*query).segments, root, nil, func(v documents.Value, at *documents.Place) bool {
		matches = append(matches, Match{v, at})
		return e.results(len(matches))
	})
	return matches, e.err
}

// evaluator evaluates one path in one document.
type evaluator struct {
	root    documents.Value
	current documents.Value // the value that a filter examines
	places  bool            // whether places are wanted
	steps   int             // steps left
	alarm   int             // number of steps left at which spend calls spent
	long    func()          // see Values
	err     error           // ends the evaluation
	known   map[*query][]documents.Value
	regexes map[string]*pattern
}

// newEvaluator returns an evaluator whose limit allows a few visits of every value of the document.
func newEvaluator(root documents.Value, long func()) evaluator {
	e := evaluator{root: root, steps: min(smallSteps+root.Memory(), MaxSteps), long: long}
	if long != nil {
		e.alarm = e.steps - longSteps
	}
	return e
}

// spend counts steps, and returns false if there were too many.
func (e *evaluator) spend(n int) bool {
	if e.steps -= n; e.steps < e.alarm {
		e.spent()
	}
	return e.err == nil
}

// spent is called when fewer steps than alarm are left.
func (e *evaluator) spent() {
	if e.alarm > 0 {
		e.alarm = 0
		e.long()
	}
	if e.steps < 0 && e.err == nil {
		e.err = ErrSteps
	}
}

// results returns false if n results are too many.
func (e *evaluator) results(n int) bool {
	if n > MaxResults && e.err == nil {
		e.err = ErrResults
	}
	return e.err == nil
}

// The kinds of selectors.
const (
	all = iota
	byName
	byIndex
	bySlice
	byFilter
)

// selector is one of the selectors in brackets.
type selector struct {
	kind           int
	name           string
	from, to, step int // of a slice; an index is from
	hasFrom, hasTo bool
	filter         expr
}

// segment is a step of a path: its selectors apply to a value, or to it and all that it contains.
type segment struct {
	descend   bool
	selectors []selector
}

// found receives a value to which a path leads; it returns false to end the walk.
type found func(v documents.Value, at *documents.Place) bool

// walk calls emit with the values that the rest of a path selects from v. It returns false if emit did.
func (e *evaluator) walk(rest []segment, v documents.Value, at *documents.Place, emit found) bool {
	if !e.spend(1) {
		return false
	}
	if len(rest) == 0 {
		return emit(v, at)
	}
	if rest[0].descend {
		return e.descend(rest, v, at, emit)
	}
	for i := range rest[0].selectors {
		if !e.choose(&rest[0].selectors[i], rest[1:], v, at, emit) {
			return false
		}
	}
	return true
}

// descend is walk for a recursive step, which applies to v and all its descendants.
func (e *evaluator) descend(rest []segment, v documents.Value, at *documents.Place, emit found) bool {
	if !e.spend(1) {
		return false
	}
	for i := range rest[0].selectors {
		if !e.choose(&rest[0].selectors[i], rest[1:], v, at, emit) {
			return false
		}
	}
	return e.elements(v, at, func(element documents.Value, at *documents.Place) bool {
		return e.descend(rest, element, at, emit)
	})
}

// elements calls emit with the elements or members of v, until emit returns false.
func (e *evaluator) elements(v documents.Value, at *documents.Place, emit found) bool {
	object, more := v.Kind() == documents.Object, true
	v.Elements(func(i int, name string, element documents.Value) bool {
		more = emit(element, e.place(at, object, i, name))
		return more
	})
	return more
}

// place returns the place of an element, if places are wanted.
func (e *evaluator) place(at *documents.Place, object bool, i int, name string) *documents.Place {
	switch {
	case !e.places:
		return nil
	case object:
		return at.Member(name)
	}
	return at.Element(i)
}

// choose calls emit with the values that a selector and the rest of a path select from v.
func (e *evaluator) choose(s *selector, rest []segment, v documents.Value, at *documents.Place, emit found) bool {
	n := v.Len()
	switch kind := v.Kind(); {
	case n == 0:
	case s.kind == all:
		return e.elements(v, at, func(element documents.Value, at *documents.Place) bool {
			return e.walk(rest, element, at, emit)
		})
	case s.kind == byFilter:
		return e.elements(v, at, func(element documents.Value, at *documents.Place) bool {
			if e.holds(s.filter, element) {
				return e.walk(rest, element, at, emit)
			}
			return e.spend(1)
		})
	case kind == documents.Object && s.kind == byName:
		if element, ok := v.Get(s.name); ok {
			return e.walk(rest, element, e.place(at, true, 0, s.name), emit)
		}
	case kind == documents.Array && s.kind == byIndex:
		i := s.from
		if i < 0 {
			i += n
		}
		if 0 <= i && i < n {
			return e.walk(rest, v.At(i), e.place(at, false, i, ""), emit)
		}
	case kind == documents.Array && s.kind == bySlice:
		return e.slice(s, rest, v, at, emit)
	}
	return e.err == nil
}

// slice is choose for a slice of an array.
func (e *evaluator) slice(s *selector, rest []segment, v documents.Value, at *documents.Place, emit found) bool {
	n, from, to := v.Len(), s.from, s.to
	low, high := 0, n // the limits of from and to
	if s.step < 0 {
		low, high = -1, n-1
	}
	clamp := func(i int, given bool, otherwise int) int {
		if !given {
			return otherwise
		}
		if i < 0 {
			i = max(i, -n-1) + n
		}
		return min(max(i, low), high)
	}
	visit := func(i int, element documents.Value) bool {
		return e.walk(rest, element, e.place(at, false, i, ""), emit)
	}
	switch more := true; {
	case s.step > 0:
		from, to = clamp(from, s.hasFrom, 0), clamp(to, s.hasTo, n)
		if from >= to {
			break
		}
		v.ElementsFrom(from, func(i int, _ string, element documents.Value) bool {
			if i < to && (i-from)%s.step == 0 {
				more = visit(i, element)
			}
			return more && i < to
		})
		return more
	case s.step < 0:
		from, to = clamp(from, s.hasFrom, n-1), clamp(to, s.hasTo, -1)
		v.Backward(from, func(i int, element documents.Value) bool {
			if i > to && (from-i)%-s.step == 0 {
				more = visit(i, element)
			}
			return more && i > to
		})
		return more
	}
	return true
}
