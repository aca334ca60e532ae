package aggregate

import (
	"encoding/binary"

	"github.com/atomredis/atomredis/internal/search/value"
)

// In a cluster each shard runs the pipeline up to its cut, the first GROUPBY, SORTBY or LIMIT, and sends its result
// in parts: the states of groups, or rows. The coordinator merges the parts at the cut and runs the rest. All of
// them build the pipeline from the same arguments.
//
// A part begins with its kind. Groups are the values of their keys and the states of all reducers. Rows begin with
// their names; each row has a value for each name, and the matched terms if an expression uses them. Both kinds have
// a total.

// The kinds of parts.
const (
	groupPart = 'g'
	rowPart   = 'r'
)

// StartShard begins the part of the pipeline that a shard runs, whose result Part returns.
func (p *Pipeline) StartShard(s Source, l Loader, interrupt Interrupt) {
	p.begin(l, interrupt)
	stages := p.stages
	if p.cut >= 0 {
		stages = p.stages[:p.cut+1]
		if page, ok := stages[p.cut].(*pageStage); ok {
			stages = append(stages[:p.cut:p.cut], &pageStage{num: page.offset + page.num, depleter: page.depleter})
		}
		// Later steps need fields of the documents, which only this server has.
		for _, later := range p.stages[p.cut+1:] {
			if load, ok := later.(*loadStage); ok {
				stages = append(stages[:len(stages):len(stages)], load)
			}
		}
	}
	p.end = p.open(stages, p.measure("Index", &scan{p, s}, nil))
}

// Part appends the next part of a shard's result to dst, with at most rows rows or groups. It returns false if this was the last.
func (p *Pipeline) Part(dst []byte, rows int) ([]byte, bool, error) {
	if g := groupingOf(p.end); g != nil {
		return g.part(dst, rows, &p.row)
	}
	var body []byte
	columns := p.root.columns
	n := 0
	for ; n < rows; n++ {
		ok, err := p.end.next(&p.row)
		if err != nil {
			return dst, false, err
		}
		if !ok {
			p.shardEnd = true
			break
		}
		p.rows++
		columns = p.root.columns // LOAD * may have added some
		body = binary.AppendUvarint(body, uint64(len(columns)))
		for _, c := range columns {
			body = p.row.Get(c.Slot).Append(body)
		}
		if p.terms {
			body = appendValues(body, value.Strings(p.row.Terms).Items())
		}
	}
	total := 0
	if p.shardEnd {
		total = p.Total()
	}
	dst = binary.AppendUvarint(append(dst, rowPart), uint64(total))
	dst = binary.AppendUvarint(dst, uint64(len(columns)))
	for _, c := range columns {
		dst = appendText(dst, c.Name)
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	return append(dst, body...), !p.shardEnd, nil
}

// groupingOf returns the operator of a GROUPBY, nil for others.
func groupingOf(op operator) *grouping {
	if t, ok := op.(*timed); ok {
		op = t.operator
	}
	g, _ := op.(*grouping)
	return g
}

// part appends the states of groups.
func (g *grouping) part(dst []byte, most int, r *Row) ([]byte, bool, error) {
	if !g.done {
		if err := g.consume(r); err != nil {
			return dst, false, err
		}
	}
	n := min(most, g.n-g.at)
	dst = binary.AppendUvarint(append(dst, groupPart), uint64(n))
	for ; n > 0; n-- {
		for _, v := range g.key(g.at) {
			dst = v.Append(dst)
		}
		for _, reducer := range g.reducers {
			dst = reducer.encode(dst, g.at)
		}
		g.at++
	}
	return dst, g.at < g.n, nil
}

// Parts returns the next part of any shard, nil at the end. The pipeline does not keep it.
type Parts func() ([]byte, error)

// StartMerge begins the coordinator's part of the pipeline.
func (p *Pipeline) StartMerge(parts Parts, interrupt Interrupt) {
	p.begin(nil, interrupt)
	source := &merging{p: p, parts: parts}
	stages := p.stages[len(p.stages):]
	if p.cut >= 0 {
		stages = nil
		for _, s := range p.stages[p.cut:] {
			if _, ok := s.(*loadStage); !ok {
				stages = append(stages, s)
			}
		}
	}
	p.end = p.measure("Merger", source, nil)
	if len(stages) == 0 {
		return
	}
	if _, ok := stages[0].(*groupStage); ok {
		op := stages[0].open(p, nil)
		op.(*grouping).parts = source
		p.end, stages = p.measure(stages[0].String(), op, p.end), stages[1:]
	}
	p.end = p.open(stages, p.end)
}

// merging yields the rows of parts.
type merging struct {
	p       *Pipeline
	parts   Parts
	body    []byte
	columns []*column
	left    int // rows in body
	unsent  int // rows that shards have counted and not sent
}

func (m *merging) next(r *Row) (bool, error) {
	for m.left == 0 {
		if err := m.p.ask(); err != nil || m.p.stopped {
			return false, err
		}
		part, err := m.parts()
		if err != nil {
			return false, err
		}
		if part == nil {
			m.p.total += m.unsent
			m.unsent = 0
			return false, nil
		}
		if err := m.begin(part); err != nil {
			return false, err
		}
	}
	m.left--
	m.unsent--
	m.p.total++
	return true, m.row(r)
}

// begin reads the head of a part of rows.
func (m *merging) begin(part []byte) error {
	if len(part) == 0 || part[0] != rowPart {
		return errPart
	}
	total, b, err := cutInt(part[1:])
	if err != nil {
		return err
	}
	m.unsent += total
	n, b, err := cutCount(b)
	if err != nil {
		return err
	}
	m.columns = m.columns[:0]
	for range n {
		var name string
		if name, b, err = cutText(b); err != nil {
			return err
		}
		c, ok := m.p.root.byName[name]
		if !ok {
			c = m.p.root.add(name)
		}
		m.columns = append(m.columns, c)
	}
	if m.left, m.body, err = cutCount(b); err != nil {
		return err
	}
	m.body = append([]byte(nil), m.body...)
	return nil
}

// row reads a row.
func (m *merging) row(r *Row) error {
	r.reset(m.p.root.width)
	n, b, err := cutCount(m.body)
	if err != nil || n > len(m.columns) {
		return errPart
	}
	for _, c := range m.columns[:n] {
		var v value.Value
		if v, b, err = value.Decode(b); err != nil {
			return err
		}
		r.Set(c.Slot, v)
	}
	if m.p.terms {
		var terms []value.Value
		if terms, b, err = cutValues(b); err != nil {
			return err
		}
		for _, v := range terms {
			r.Terms = append(r.Terms, v.Text())
		}
	}
	m.body = b
	return nil
}

// mergeGroups adds the groups of all parts.
func (g *grouping) mergeGroups() error {
	g.chain = make([]value.Value, len(g.by))
	for {
		if err := g.p.ask(); err != nil || g.p.stopped {
			return err
		}
		part, err := g.parts.parts()
		if err != nil {
			return err
		}
		if part == nil {
			g.finish()
			return nil
		}
		if err := g.mergePart(part); err != nil {
			return err
		}
	}
}

func (g *grouping) mergePart(part []byte) error {
	if len(part) == 0 || part[0] != groupPart {
		return errPart
	}
	n, b, err := cutInt(part[1:])
	if err != nil {
		return err
	}
	if n > len(b)+1 {
		return errPart
	}
	for range n {
		for i := range g.chain {
			if g.chain[i], b, err = value.Decode(b); err != nil {
				return err
			}
		}
		group, err := g.group()
		if err != nil {
			return err
		}
		for _, reducer := range g.reducers {
			if b, err = reducer.merge(group, b); err != nil {
				return err
			}
		}
		if g.budget.spent() {
			return g.tooLarge()
		}
	}
	return nil
}
