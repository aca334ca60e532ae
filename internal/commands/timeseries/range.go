package timeseries

import (
	"math"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// width returns how many values a row of a query has.
func (q *query) width() int { return max(len(q.Aggregators), 1) }

// run runs the query on the series of an entry. With LATEST the guard holds the links.
func (q *query) run(c *command.Ctx, e *engine.Entry, rows *timeseries.Rows) command.Error {
	s := e.Series()
	var last *timeseries.Sample
	if q.latest {
		last = latest(c, e.Key(), s)
	}
	if err := s.Run(&q.Query, last, rows); err != nil {
		return command.Error("ERR TSDB: " + err.Error())
	}
	return ""
}

// cmdRange is TS.RANGE and TS.REVRANGE.
func cmdRange(c *command.Ctx, reverse bool) {
	e, ok := readSeries(c, c.Args[1])
	if !ok {
		return
	}
	q, err := parseQuery(c, c.Args[2:], 0)
	if err != "" {
		c.Err(err)
		return
	}
	q.Reverse = reverse
	if q.latest && !holdsLinks(c, e.Series()) {
		return
	}
	rows := spareRows.Get().(*timeseries.Rows)
	defer giveBack(rows)
	if err := q.run(c, e, rows); err != "" {
		c.Err(err)
		return
	}
	writeRows(c.W, rows, q.width())
}

func cmdGet(c *command.Ctx) {
	if len(c.Args) > 3 || len(c.Args) == 3 && !command.EqualFold(c.Args[2], "latest") {
		c.Err(wrongArguments(c))
		return
	}
	e, ok := readSeries(c, c.Args[1])
	if !ok {
		return
	}
	if len(c.Args) == 3 && !holdsLinks(c, e.Series()) {
		return
	}
	writeNewest(c, e, len(c.Args) == 3)
}

// writeNewest writes the newest sample of a series, or an empty array.
func writeNewest(c *command.Ctx, e *engine.Entry, withLatest bool) {
	s := e.Series()
	x, ok := s.Newest()
	if withLatest {
		if last := latest(c, e.Key(), s); last != nil {
			x, ok = *last, true
		}
	}
	if !ok {
		c.W.Array(0)
		return
	}
	writeSample(c.W, x)
}

func cmdMget(c *command.Ctx) {
	var s selection
	at := find(c.Args, 1, "filter")
	if at == 0 || at+1 == len(c.Args) {
		c.Err(wrongArguments(c))
		return
	}
	err := s.parseShown(c.Args[:at])
	if err == "" {
		s.matchers, err = parseFilter(c.Args[at+1:])
	}
	if err != "" {
		c.Err(err)
		return
	}
	last := find(c.Args[:at], 1, "latest") > 0
	found, ok := selected(c, s.matchers)
	if !ok {
		return
	}
	begin(c.W, len(found))
	for _, l := range found {
		if c.W.Proto != 3 {
			c.W.Array(3)
		}
		c.W.BulkString(l.Key)
		if c.W.Proto == 3 {
			c.W.Array(2)
		}
		s.shown.write(c.W, l.Labels)
		writeNewest(c, c.G.Read(c.DB, []byte(l.Key)), last)
	}
}

// begin begins a reply about n series: a map by their keys, in RESP2 an array.
func begin(w *resp.Writer, n int) {
	if w.Proto == 3 {
		w.Map(n)
	} else {
		w.Array(n)
	}
}

// group is series that have the same value of a label.
type group struct {
	value   string
	sources []string
	members []*timeseries.Rows
}

// mrange is TS.MRANGE and TS.MREVRANGE.
func mrange(c *command.Ctx, reverse bool) {
	var s selection
	at := find(c.Args, 1, "filter")
	by := find(c.Args, 1, "groupby")
	switch {
	case by > 0 && by < at:
		c.Err("ERR TSDB: GROUPBY should always come after filter")
		return
	case at == 0:
		c.Err("ERR TSDB: missing FILTER argument")
		return
	case at < 3:
		c.Err(wrongArguments(c))
		return
	}
	end := len(c.Args)
	if by > 0 {
		end = by
	}
	q, err := parseQuery(c, c.Args[1:at], 0)
	if err == "" {
		err = s.parseShown(c.Args[:at])
	}
	if err == "" && at+1 == end {
		err = "ERR TSDB: missing labels for filter argument"
	}
	if err == "" {
		s.matchers, err = parseFilter(c.Args[at+1 : end])
	}
	excludeEmpty := find(c.Args[:at], 1, "excludeempty") > 0
	var reducer timeseries.Aggregator
	if err == "" && by > 0 {
		excludes := excludeEmpty || find(c.Args, by+2, "excludeempty") > 0
		reducer, err = parseGroups(c, &q, c.Args[by:], excludes)
	}
	if err != "" {
		c.Err(err)
		return
	}
	q.Reverse = reverse
	found, ok := selected(c, s.matchers)
	if !ok {
		return
	}
	rows := make([]*timeseries.Rows, len(found))
	defer func() {
		for _, r := range rows {
			if r != nil {
				giveBack(r)
			}
		}
	}()
	for i, l := range found {
		rows[i] = spareRows.Get().(*timeseries.Rows)
		if err := q.run(c, c.G.Read(c.DB, []byte(l.Key)), rows[i]); err != "" {
			c.Err(err)
			return
		}
	}
	if by > 0 {
		writeGroups(c.W, &q, &s.shown, string(c.Args[by+1]), reducer, found, rows)
		return
	}
	n := len(found)
	if excludeEmpty {
		n = 0
		for _, r := range rows {
			if len(r.Times) > 0 {
				n++
			}
		}
	}
	begin(c.W, n)
	for i, l := range found {
		if excludeEmpty && len(rows[i].Times) == 0 {
			continue
		}
		if c.W.Proto != 3 {
			c.W.Array(3)
		}
		c.W.BulkString(l.Key)
		if c.W.Proto == 3 {
			c.W.Array(3)
		}
		s.shown.write(c.W, l.Labels)
		if c.W.Proto == 3 {
			c.W.Map(1)
			c.W.BulkString("aggregators")
			c.W.Array(len(q.Aggregators))
			for _, a := range q.Aggregators {
				c.W.BulkString(a.String())
			}
		}
		writeRows(c.W, rows[i], q.width())
	}
}

// parseGroups reads args, which are GROUPBY label REDUCE reducer.
func parseGroups(c *command.Ctx, q *query, args [][]byte, excludeEmpty bool) (reducer timeseries.Aggregator, err command.Error) {
	if excludeEmpty {
		return 0, "ERR TSDB: EXCLUDEEMPTY is not allowed with GROUPBY"
	}
	if len(args) != 4 || !command.EqualFold(args[2], "reduce") {
		return 0, wrongArguments(c)
	}
	reducer, ok := timeseries.ParseAggregator(string(args[3]))
	switch {
	case !ok || !reducer.Reduces():
		return 0, "ERR TSDB: Invalid reducer type"
	case len(q.Aggregators) > 1:
		return 0, "ERR TSDB: GROUPBY is not allowed when multiple aggregators are specified"
	}
	return reducer, ""
}

// writeGroups writes the rows of series reduced by the values of a label.
func writeGroups(w *resp.Writer, q *query, show *shown, label string, reducer timeseries.Aggregator,
	found []engine.Labelled, rows []*timeseries.Rows) {
	var groups []*group
	byValue := map[string]*group{}
	for i, l := range found {
		value, ok := valueOf(l.Labels, label)
		if !ok {
			continue
		}
		g := byValue[value]
		if g == nil {
			g = &group{value: value}
			byValue[value] = g
			groups = append(groups, g)
		}
		g.sources, g.members = append(g.sources, l.Key), append(g.members, rows[i])
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.value, b.value) })
	begin(w, len(groups))
	for _, g := range groups {
		name, sources := label+"="+g.value, strings.Join(g.sources, ",")
		reduced := g.reduce(q, reducer)
		own := []labels.Label{{Name: label, Value: g.value}}
		if w.Proto != 3 {
			if show.all {
				own = append(own, labels.Label{Name: "__reducer__", Value: reducer.String()},
					labels.Label{Name: "__source__", Value: sources})
			}
			w.Array(3)
			w.BulkString(name)
			show.write(w, own)
		} else {
			w.BulkString(name)
			w.Array(4)
			show.write(w, own)
			w.Map(1)
			w.BulkString("reducers")
			w.Array(1)
			w.BulkString(reducer.String())
			w.Map(1)
			w.BulkString("sources")
			w.Array(len(g.sources))
			for _, key := range g.sources {
				w.BulkString(key)
			}
		}
		writeRows(w, reduced, q.width())
	}
}

// reduce combines the rows with the same time into one row. Each row has one value.
func (g *group) reduce(q *query, reducer timeseries.Aggregator) *timeseries.Rows {
	times := g.members[0].Times
	for _, r := range g.members[1:] {
		if !slices.Equal(r.Times, times) {
			return g.merge(q, reducer)
		}
	}
	if q.Count > 0 {
		times = times[:min(len(times), q.Count)]
	}
	out := timeseries.Rows{Times: times, Values: make([]float64, len(times))}
	values := make([]float64, len(g.members))
	for i := range times {
		for m, r := range g.members {
			values[m] = r.Values[i]
		}
		out.Values[i] = reducer.Reduce(values)
	}
	return &out
}

// merge is reduce for members with different times.
func (g *group) merge(q *query, reducer timeseries.Aggregator) *timeseries.Rows {
	var out timeseries.Rows
	at := make([]int, len(g.members))
	heads := make([]int, 0, len(g.members)) // a heap of the members with rows left, the earliest next time first
	next := func(m int) int64 {
		if t := g.members[m].Times[at[m]]; q.Reverse {
			return -t
		} else {
			return t
		}
	}
	for m, r := range g.members {
		if len(r.Times) > 0 {
			heads = append(heads, m)
		}
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		sink(heads, i, next)
	}
	var values []float64
	for len(heads) > 0 && (q.Count == 0 || len(out.Times) < q.Count) {
		time := g.members[heads[0]].Times[at[heads[0]]]
		values = values[:0]
		for len(heads) > 0 {
			m := heads[0]
			r := g.members[m]
			if r.Times[at[m]] != time {
				break
			}
			values = append(values, r.Values[at[m]])
			if at[m]++; at[m] == len(r.Times) {
				heads[0] = heads[len(heads)-1]
				heads = heads[:len(heads)-1]
			}
			sink(heads, 0, next)
		}
		out.Times = append(out.Times, time)
		out.Values = append(out.Values, reducer.Reduce(values))
	}
	return &out
}

// sink moves an element of a heap down to its place. Elements with the same time are in the order of their numbers.
func sink(heap []int, i int, next func(int) int64) {
	less := func(a, b int) bool {
		if x, y := next(a), next(b); x != y {
			return x < y
		}
		return a < b
	}
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && less(heap[child+1], heap[child]) {
			child++
		}
		if !less(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// nrange is TS.NRANGE and TS.NREVRANGE.
func nrange(c *command.Ctx, reverse bool) {
	n, ok := resp.ParseInt(c.Args[1])
	if !ok || n <= 0 {
		c.Err("ERR TSDB: numkeys must be a positive integer")
		return
	}
	if n > int64(len(c.Args)-4) {
		c.Err(wrongArguments(c))
		return
	}
	keys := c.Args[2 : 2+n]
	q, err := parseQuery(c, c.Args[2+n:], int(n))
	if err != "" {
		c.Err(err)
		return
	}
	q.Reverse = reverse
	entries := make([]*engine.Entry, n)
	held := true
	for i, key := range keys {
		if entries[i], ok = readSeries(c, key); !ok {
			return
		}
		held = (!q.latest || holdsLinks(c, entries[i].Series())) && held
	}
	if !held {
		return
	}
	rows := make([]timeseries.Rows, n)
	widths, width := make([]int, n), 0
	for i, e := range entries {
		if q.each != nil {
			q.Aggregators = q.each[i]
		}
		if err := q.run(c, e, &rows[i]); err != "" {
			c.Err(err)
			return
		}
		widths[i] = q.width()
		width += widths[i]
	}
	writeJoined(c.W, &q, rows, widths, width)
}

// writeJoined writes a row for each time in any of rows, with the values of all of them.
func writeJoined(w *resp.Writer, q *query, rows []timeseries.Rows, widths []int, width int) {
	at := make([]int, len(rows))
	mark, n := w.Defer(), 0
	for ; q.Count == 0 || n < q.Count; n++ {
		time, some := int64(0), false
		for i := range rows {
			if at[i] == len(rows[i].Times) {
				continue
			}
			if t := rows[i].Times[at[i]]; !some || t < time != q.Reverse && t != time {
				time, some = t, true
			}
		}
		if !some {
			break
		}
		w.Array(2)
		w.Int(time)
		w.Array(width)
		for i := range rows {
			r := &rows[i]
			here := at[i] < len(r.Times) && r.Times[at[i]] == time
			for k := range widths[i] {
				v := math.NaN()
				if here {
					v = r.Values[at[i]*widths[i]+k]
				}
				writeValue(w, v)
			}
			if here {
				at[i]++
			}
		}
	}
	w.EndArray(mark, n)
}
