package aggregate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// maxCollected is the largest number of fields in COLLECT.
const maxCollected = 1025

// collect is COLLECT: the rows of a group as maps, all or the first ones of an order.
type collect struct {
	states   []collection
	budget   *budget
	scope    *scope
	names    []value.Value // of the fields; nil for all that rows have
	slots    []int
	keys     []sortKey
	distinct bool
	offset   int
	most     int // how many rows of a group are needed, including those before the offset
}

// collection has the kept rows of a group.
type collection struct {
	rows  []collected
	known map[string]struct{} // the keys of rows, if they must differ and have no order
	seen  int
}

// collected is a row of a group.
type collected struct {
	row  value.Value
	keys []value.Value
	seq  int
}

func (b *reducerBuilder) collect() (reducer, error) {
	c := &collect{budget: b.budget, scope: b.scope}
	if !b.Match("FIELDS") {
		return nil, badCollect("FIELDS", "Required positional argument missing or out of order")
	}
	if err := b.collectFields(c); err != nil {
		return nil, err
	}
	limited := false
	for given := map[string]bool{}; !b.Done(); {
		word, _ := b.Next()
		option := strings.ToUpper(word)
		if given[option] {
			return nil, badCollect(option, "Argument specified multiple times")
		}
		given[option] = true
		var err error
		switch option {
		case "SORTBY":
			err = b.collectKeys(c)
		case "LIMIT":
			err, limited = b.collectLimit(c), true
		case "DISTINCT":
			c.distinct = true
		default:
			err = badCollect(word, "Unknown argument")
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case limited:
	case c.keys != nil:
		c.most = DefaultLimit
	default:
		c.most = b.options.MaxRows
	}
	return c, nil
}

func badCollect(argument, problem string) error {
	return args.Errorf(query.BadArguments, "Bad arguments for COLLECT: %s: %s", argument, problem)
}

// collectFields reads * or a list of names.
func (b *reducerBuilder) collectFields(c *collect) error {
	word, ok := b.Next()
	if !ok {
		return badCollect("FIELDS", args.Missing.String())
	}
	if word == "*" {
		return nil
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return args.Errorf(query.BadArguments, "Expected number of fields or `*` after FIELDS")
	}
	if n < 1 || n > maxCollected {
		return args.Errorf(query.LimitExceeded, "FIELDS count must be in [1, %d]", maxCollected)
	}
	list, bad := b.Take(n)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "Not enough arguments were provided based on argument count for FIELDS")
	}
	for word, ok := list.Next(); ok; word, ok = list.Next() {
		name, slot, err := b.prefixed(word)
		if err != nil {
			return err
		}
		c.names, c.slots = append(c.names, value.Str(name)), append(c.slots, slot)
	}
	return nil
}

// prefixed returns the name and the slot of a word with an @.
func (b *reducerBuilder) prefixed(word string) (string, int, error) {
	name, ok := strings.CutPrefix(word, "@")
	if !ok {
		return "", 0, args.Errorf(query.BadArguments, "Missing prefix: name requires '@' prefix (%s)", word)
	}
	slot, err := b.slot(name)
	return name, slot, err
}

// collectKeys reads SORTBY.
func (b *reducerBuilder) collectKeys(c *collect) error {
	n, bad := b.Count()
	switch {
	case bad != args.None:
		return badCollect("SORTBY", "Failed to parse the argument count")
	case n < 1 || n > 2*MaxSortKeys:
		return badCollect("SORTBY", "Invalid argument count")
	}
	list, bad := b.Take(n)
	if bad != args.None {
		return badCollect("SORTBY", "Not enough arguments were provided based on argument count")
	}
	for word, ok := list.Next(); ok; word, ok = list.Next() {
		_, slot, err := b.prefixed(word)
		if err != nil {
			return err
		}
		if len(c.keys) == MaxSortKeys {
			return args.Errorf(query.LimitExceeded, "SORTBY exceeds maximum of %d fields", MaxSortKeys)
		}
		desc := list.Match("DESC")
		if !desc {
			list.Match("ASC")
		}
		c.keys = append(c.keys, sortKey{slot, desc})
	}
	return nil
}

// collectLimit reads LIMIT.
func (b *reducerBuilder) collectLimit(c *collect) error {
	if b.Len() < 2 {
		return badCollect("LIMIT", "Not enough arguments were provided")
	}
	offset, bad := b.Int(0, math.MaxInt)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "LIMIT offset must be a non-negative integer")
	}
	n, bad := b.Int(1, math.MaxInt)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "LIMIT count must be a positive integer")
	}
	most := int64(b.options.MaxRows)
	switch {
	case offset > most:
		return args.Errorf(query.LimitExceeded, "LIMIT offset exceeds maximum of %d", most)
	case n > most:
		return args.Errorf(query.LimitExceeded, "LIMIT count exceeds maximum of %d", most)
	case offset > math.MaxInt-n:
		return args.Errorf(query.BadArguments, "Invalid LIMIT offset + count value")
	}
	c.offset, c.most = int(offset), int(offset+n)
	return nil
}

func (c *collect) grow() { c.states = append(c.states, collection{}) }

func (c *collect) add(group int, r *Row) {
	var keys []value.Value
	for _, key := range c.keys {
		keys = append(keys, r.Get(key.slot))
	}
	c.put(group, collected{row: c.project(r), keys: keys})
}

// project returns the row as a map of the fields that have a value.
func (c *collect) project(r *Row) value.Value {
	var pairs []value.Value
	if c.names == nil {
		for _, column := range c.scope.columns {
			if v := r.Get(column.Slot); !v.IsAbsent() {
				pairs = append(pairs, value.Str(column.Name), v)
			}
		}
	}
	for i, name := range c.names {
		if v := r.Get(c.slots[i]); !v.IsAbsent() {
			pairs = append(pairs, name, v)
		}
	}
	return value.Dict(pairs)
}

// put keeps a row, unless enough others come before it.
func (c *collect) put(group int, row collected) {
	s := &c.states[group]
	row.seq = s.seen
	s.seen++
	if c.keys == nil {
		if len(s.rows) >= c.most {
			return
		}
		if c.distinct {
			key := string(row.row.AppendKey(nil))
			if _, ok := s.known[key]; ok {
				return
			}
			if s.known == nil {
				s.known = map[string]struct{}{}
			}
			s.known[key] = struct{}{}
			c.budget.take(2 * len(key))
		}
	}
	c.budget.take(100 + row.row.Size())
	s.rows = append(s.rows, row)
	const atLeast = 64
	if c.keys != nil && len(s.rows) >= atLeast && len(s.rows)/2 >= c.most {
		c.arrange(s)
	}
}

// arrange sorts the rows of a group and drops those that cannot be in the result.
func (c *collect) arrange(s *collection) {
	if c.keys == nil {
		return
	}
	slices.SortFunc(s.rows, c.compare)
	if c.distinct {
		known := map[string]struct{}{}
		s.rows = slices.DeleteFunc(s.rows, func(row collected) bool {
			key := string(row.row.AppendKey(nil))
			_, ok := known[key]
			known[key] = struct{}{}
			return ok
		})
	}
	if len(s.rows) > c.most {
		for _, row := range s.rows[c.most:] {
			c.budget.take(-100 - row.row.Size())
		}
		clear(s.rows[c.most:])
		s.rows = s.rows[:c.most]
	}
}

func (c *collect) compare(a, b collected) int {
	for i, key := range c.keys {
		left, right := a.keys[i], b.keys[i]
		if left.IsAbsent() || right.IsAbsent() {
			if order := absentLast(left, right); order != 0 {
				return order
			}
			continue
		}
		if order := value.Order(left, right); order != 0 {
			if key.desc {
				return -order
			}
			return order
		}
	}
	return a.seq - b.seq
}

func (c *collect) result(group int) value.Value {
	s := &c.states[group]
	c.arrange(s)
	var rows []value.Value
	for _, row := range s.rows[min(c.offset, len(s.rows)):] {
		rows = append(rows, row.row)
	}
	return value.List(rows)
}

func (c *collect) encode(dst []byte, group int) []byte {
	s := &c.states[group]
	c.arrange(s)
	values := make([]value.Value, 0, len(s.rows)*(1+len(c.keys)))
	for _, row := range s.rows {
		values = append(append(values, row.row), row.keys...)
	}
	return appendValues(dst, values)
}

func (c *collect) merge(group int, b []byte) ([]byte, error) {
	values, b, err := cutValues(b)
	size := 1 + len(c.keys)
	if err != nil || len(values)%size != 0 {
		return nil, errPart
	}
	for row := range slices.Chunk(values, size) {
		c.put(group, collected{row: row[0], keys: row[1:]})
	}
	return b, nil
}
