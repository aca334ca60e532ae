package aggregate

import (
	"cmp"
	"slices"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// sortKey is a key of SORTBY.
type sortKey struct {
	slot int
	desc bool
}

// sortStage is SORTBY: it keeps the first rows of the order.
type sortStage struct {
	keys   []sortKey
	most   int
	budget *budget
}

func (*sortStage) String() string { return "Sorter" }

func (s *sortStage) open(_ *Pipeline, up operator) operator { return &sorting{sortStage: s, up: up} }

// sorting runs a sortStage. While it has as many rows as it keeps, they are a heap with the last row of the order on top.
type sorting struct {
	*sortStage
	up   operator
	rows []kept
	seen int
	done bool
	at   int
}

// kept is a kept row, and its number in the input.
type kept struct {
	Row
	seq int
}

// compare compares rows in the order of the result. Rows without a value for a key come last in both directions. Rows that
// are otherwise equal are in the order of their documents, or of the groups they come from.
func (s *sorting) compare(a, b *kept) int {
	desc := false
	for _, key := range s.keys {
		desc = key.desc
		left, right := a.Get(key.slot), b.Get(key.slot)
		if left.IsAbsent() || right.IsAbsent() {
			if c := absentLast(left, right); c != 0 {
				return c
			}
			continue
		}
		if c := value.Order(left, right); c != 0 {
			if desc {
				return -c
			}
			return c
		}
	}
	if c := cmp.Compare(a.Doc, b.Doc); c != 0 {
		if desc {
			return -c
		}
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

func absentLast(a, b value.Value) int {
	switch {
	case a.IsAbsent() == b.IsAbsent():
		return 0
	case a.IsAbsent():
		return 1
	}
	return -1
}

func (s *sorting) next(r *Row) (bool, error) {
	if !s.done {
		if err := s.consume(r); err != nil {
			return false, err
		}
	}
	if s.at == len(s.rows) {
		return false, nil
	}
	*r = s.rows[s.at].Row
	s.rows[s.at] = kept{}
	s.at++
	return true, nil
}

// consume reads all rows and sorts those that are kept.
func (s *sorting) consume(r *Row) error {
	for {
		ok, err := s.up.next(r)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		s.add(r)
		if s.budget.spent() {
			return args.Errorf(query.LimitExceeded, "Aggregate SORTBY exceeded the memory limit of %d bytes", s.budget.max)
		}
	}
	slices.SortFunc(s.rows, func(a, b kept) int { return s.compare(&a, &b) })
	s.done = true
	return nil
}

// add keeps a row if it is one of the first so far.
func (s *sorting) add(r *Row) {
	row := kept{*r, s.seen}
	s.seen++
	if len(s.rows) < s.most {
		row.Values = slices.Clone(r.Values)
		s.budget.take(sizeOf(&row.Row))
		s.rows = append(s.rows, row)
		if len(s.rows) == s.most {
			for i := s.most/2 - 1; i >= 0; i-- {
				s.sink(i)
			}
		}
		return
	}
	if s.most == 0 || s.compare(&row, &s.rows[0]) >= 0 {
		return
	}
	s.budget.take(sizeOf(r) - sizeOf(&s.rows[0].Row))
	row.Values = append(s.rows[0].Values[:0], r.Values...)
	s.rows[0] = row
	s.sink(0)
}

// sink moves a row of the heap down to its place.
func (s *sorting) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(s.rows) {
			return
		}
		if child+1 < len(s.rows) && s.compare(&s.rows[child], &s.rows[child+1]) < 0 {
			child++
		}
		if s.compare(&s.rows[i], &s.rows[child]) >= 0 {
			return
		}
		s.rows[i], s.rows[child] = s.rows[child], s.rows[i]
		i = child
	}
}

// sizeOf estimates the memory of a row.
func sizeOf(r *Row) int {
	n := 100 + 40*len(r.Values)
	for _, v := range r.Values {
		n += v.Size()
	}
	return n
}

// depleteStage is the point where WITHCOUNT counts rows. It passes rows on as they come; a LIMIT after it also reads
// the rows beyond its page here.
type depleteStage struct{ up operator }

func (*depleteStage) String() string { return "Depleter" }

func (s *depleteStage) open(_ *Pipeline, up operator) operator {
	s.up = up
	return s
}

func (s *depleteStage) next(r *Row) (bool, error) { return s.up.next(r) }

// wholeStage reads all rows before it passes the first one on.
type wholeStage struct{ budget *budget }

func (*wholeStage) String() string { return "Depleter" }

func (s *wholeStage) open(_ *Pipeline, up operator) operator { return &holding{wholeStage: s, up: up} }

type holding struct {
	*wholeStage
	up   operator
	rows []Row
	done bool
}

func (s *holding) next(r *Row) (bool, error) {
	for !s.done {
		ok, err := s.up.next(r)
		if err != nil {
			return false, err
		}
		if s.done = !ok; s.done {
			break
		}
		row := *r
		row.Values = slices.Clone(r.Values)
		s.rows = append(s.rows, row)
		s.budget.take(sizeOf(&row))
		if s.budget.spent() {
			return false, args.Errorf(query.LimitExceeded, "Aggregate WITHCOUNT exceeded the memory limit of %d bytes", s.budget.max)
		}
	}
	if len(s.rows) == 0 {
		return false, nil
	}
	*r, s.rows[0] = s.rows[0], Row{}
	s.rows = s.rows[1:]
	return true, nil
}

// pageStage is LIMIT: it passes num rows on after offset ones; all of them if num is 0.
type pageStage struct {
	offset, num int
	// depleter is before the page if rows after the page are counted, and nil otherwise.
	depleter *depleteStage
}

func (*pageStage) String() string { return "Pager/Limiter" }

func (s *pageStage) open(_ *Pipeline, up operator) operator { return &paging{pageStage: s, up: up} }

type paging struct {
	*pageStage
	up   operator
	seen int
}

func (s *paging) next(r *Row) (bool, error) {
	for {
		if s.num > 0 && s.seen-s.offset >= s.num {
			return false, s.rest(r)
		}
		ok, err := s.up.next(r)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, nil
		}
		s.seen++
		if s.seen > s.offset {
			return true, nil
		}
	}
}

// rest counts the rows beyond the page, if countAll is set.
func (s *paging) rest(r *Row) error {
	if s.depleter == nil {
		return nil
	}
	up := s.up
	if d := s.depleter; d.up != nil { // nil where the shards have run it
		up = d.up // what is read here is none of the rows that the depleter passes on
		if t, ok := s.up.(*timed); ok {
			defer t.since(t.clock())
		}
	}
	for {
		if ok, err := up.next(r); !ok || err != nil {
			return err
		}
	}
}

// countStage is LIMIT 0 0: it counts rows and passes none on.
type countStage struct{}

func (countStage) String() string { return "Counter" }

func (countStage) open(_ *Pipeline, up operator) operator { return &counting{up} }

type counting struct{ up operator }

func (s *counting) next(r *Row) (bool, error) {
	for {
		if ok, err := s.up.next(r); !ok || err != nil {
			return false, err
		}
	}
}
