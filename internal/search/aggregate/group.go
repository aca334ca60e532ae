package aggregate

import (
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// groupStage is GROUPBY. Groups have numbers, and each reducer has the state of all groups by number.
type groupStage struct {
	by       []int // the slots of the keys
	reducers []reducer
	budget   *budget
	max      int // largest number of groups; 0 is no limit
}

func (*groupStage) String() string { return "Grouper" }

func (g *groupStage) open(p *Pipeline, up operator) operator {
	return &grouping{groupStage: g, p: p, up: up, texts: map[string]int{}, others: map[string]int{}}
}

// grouping runs a groupStage. The first call of next reads all rows.
type grouping struct {
	*groupStage
	p     *Pipeline
	up    operator
	parts *merging      // in place of up, for parts of shards
	keys  []value.Value // len(by) of each group

	// The numbers of groups: by the text of the only key, else by the bytes of all keys.
	texts, others map[string]int

	n     int
	done  bool
	at    int
	buf   []byte
	chain []value.Value // the keys of the current row
}

// next yields the groups in the order in which their first rows came.
func (g *grouping) next(r *Row) (bool, error) {
	if !g.done {
		read := g.consume
		if g.parts != nil {
			read = func(*Row) error { return g.mergeGroups() }
		}
		if err := read(r); err != nil {
			return false, err
		}
	}
	if g.at == g.n {
		return false, nil
	}
	r.reset(len(g.by) + len(g.reducers))
	copy(r.Values, g.key(g.at))
	for i, reducer := range g.reducers {
		r.Values[len(g.by)+i] = reducer.result(g.at)
	}
	g.at++
	return true, nil
}

// key returns the keys of a group.
func (g *grouping) key(i int) []value.Value { return g.keys[i*len(g.by) : (i+1)*len(g.by)] }

// consume adds all rows to their groups.
func (g *grouping) consume(r *Row) error {
	g.chain = make([]value.Value, len(g.by))
	for {
		ok, err := g.up.next(r)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := g.add(r, 0); err != nil {
			return err
		}
	}
	g.finish()
	return nil
}

// finish ends the reading of rows.
func (g *grouping) finish() {
	g.done = true
	g.p.total = g.n
}

// add chooses the keys from the i-th on and adds the row to their group. An array is a group for each of its elements.
func (g *grouping) add(r *Row, i int) error {
	for ; i < len(g.by); i++ {
		v := r.Get(g.by[i])
		switch {
		case v.IsNull(), v.Kind() == value.Array && v.Len() == 0:
			v = value.Nil
		case v.Kind() == value.Array:
			for _, item := range v.Items() {
				g.chain[i] = item
				if err := g.add(r, i+1); err != nil || g.p.stopped {
					return err
				}
			}
			return nil
		}
		g.chain[i] = v
	}
	group, err := g.group()
	if err != nil {
		return err
	}
	for _, reducer := range g.reducers {
		reducer.add(group, r)
	}
	if g.budget.spent() {
		return g.tooLarge()
	}
	return g.p.ask()
}

func (g *grouping) tooLarge() error {
	return args.Errorf(query.LimitExceeded, "Aggregate GROUPBY exceeded the memory limit of %d bytes", g.budget.max)
}

// group returns the number of the group of the current keys, a new one if there is none.
func (g *grouping) group() (int, error) {
	if len(g.chain) == 1 && g.chain[0].Kind() == value.String {
		text := g.chain[0].Text()
		if i, ok := g.texts[text]; ok {
			return i, nil
		}
		g.texts[text] = g.n
		return g.grow(len(text))
	}
	g.buf = g.buf[:0]
	for _, v := range g.chain {
		g.buf = v.AppendKey(g.buf)
	}
	if i, ok := g.others[string(g.buf)]; ok {
		return i, nil
	}
	g.others[string(g.buf)] = g.n
	return g.grow(len(g.buf))
}

// grow adds a group.
func (g *grouping) grow(keyBytes int) (int, error) {
	if g.max > 0 && g.n == g.max {
		return 0, args.Errorf(query.LimitExceeded, "Aggregate GROUPBY exceeded MAX_AGGREGATE_GROUPS limit of %d groups", g.max)
	}
	g.keys = append(g.keys, g.chain...)
	g.budget.take(80 + 2*keyBytes + 40*len(g.by))
	for _, reducer := range g.reducers {
		reducer.grow()
	}
	g.n++
	return g.n - 1, nil
}
