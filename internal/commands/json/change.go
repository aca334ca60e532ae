package json

import (
	"math"
	"math/big"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// changer is a command that changes each value of some kind that a path selects, and replies with the results.
type changer struct {
	kind  documents.Kind
	what  string // the expected value, for an error
	event string
	// copied are arguments that are copied for each value.
	copied [][]byte
	// check returns an error for a value that the command cannot change; it may be nil.
	check func(at *documents.Place, v documents.Value) command.Error
	// do changes a value, and returns a function that writes its part of the reply, nil for null.
	do func(d *documents.Document, at *documents.Place, v documents.Value) (told func(), changed bool)
	// seed is the value that the command starts from where the path leads to nothing and objects on the path are
	// created; nil if it creates none. The command adds depth levels to the seed.
	seed  *documents.Value
	depth int
	// moves says that a change may move the elements behind it: later elements are changed before earlier ones, and inner
	// ones before their containers.
	moves bool
}

// selectedIn returns the entry of the first argument, and the values that a path selects in its document. If the key
// is missing, or the path selects too much, it writes an error and ok is false.
func selectedIn(c *command.Ctx, p *path.Path) (e *engine.Entry, matches []path.Match, ok bool) {
	if e, ok = toWrite(c, c.Args[1]); !ok {
		return nil, nil, false
	}
	if e == nil {
		c.Err(errNoDocument)
		return nil, nil, false
	}
	matches, err := matchesIn(c, e.JSON(), p)
	if err != nil {
		failed(c, err)
		return nil, nil, false
	}
	return e, matches, true
}

// run executes the command.
func (ch *changer) run(c *command.Ctx, p *path.Path) {
	e, matches, ok := selectedIn(c, p)
	if !ok {
		return
	}
	d := e.JSON()
	grown, ok := growth(c, d, p, matches, ch.seed, ch.depth)
	if !ok {
		return
	}
	size := 0
	for _, arg := range ch.copied {
		if !fitsTimes(c, len(matches)+grown.count(), arg) {
			return
		}
		size += len(arg)
	}
	longPlaces(c, d, len(matches)+grown.count(), size)
	matches = grown.grow(d, matches, ch.seed)
	if ch.check != nil {
		for _, m := range matches {
			if m.Value.Kind() != ch.kind {
				continue
			}
			if err := ch.check(m.Place, m.Value); err != "" {
				c.Err(err)
				return
			}
		}
	}
	told := make([]func(), len(matches))
	last, any := -1, false
	for _, k := range ch.order(matches) {
		v, ok := d.Find(matches[k].Place)
		if !ok || v.Kind() != ch.kind {
			continue
		}
		last = k
		var changed bool
		told[k], changed = ch.do(d, matches[k].Place, v)
		any = any || changed
	}
	tell := func(i int) {
		if told[i] == nil {
			c.W.Null()
		} else {
			told[i]()
		}
	}
	switch {
	case !p.Legacy:
		c.W.Array(len(told))
		for i := range told {
			tell(i)
		}
	case last < 0:
		c.Err(missingOr(ch.what))
	default:
		tell(last)
	}
	if any {
		finish(c, e, ch.event, false, engine.Record{})
	}
}

// growth plans a place for a seed where a path selects nothing; the plan is empty if none is needed. If the place
// would be too deep, it writes an error and ok is false.
func growth(c *command.Ctx, d *documents.Document, p *path.Path, matches []path.Match, seed *documents.Value, depth int) (ch change, ok bool) {
	if seed == nil || len(matches) > 0 || !p.Static() || !makesPaths(c) {
		return change{}, true
	}
	if _, _, isName := p.Parent(); !isName {
		return change{}, true
	}
	if ch, ok = plan(c, d, p, nil, always); !ok {
		return change{}, false
	}
	for _, at := range ch.parents {
		if at.Depth()+len(ch.names)+depth > documents.MaxDepth {
			c.Err(errTooDeep)
			return change{}, false
		}
	}
	return ch, true
}

// grow puts a seed in the place that growth has planned, and returns it with the other matches.
func (ch *change) grow(d *documents.Document, matches []path.Match, seed *documents.Value) []path.Match {
	for _, at := range ch.parents {
		create(d, at, ch.names, seed.Clone())
		for _, name := range ch.names {
			at = at.Member(name)
		}
		matches = append(matches, path.Match{Value: *seed, Place: at})
	}
	return matches
}

// order returns the order in which values are changed.
func (ch *changer) order(matches []path.Match) []int {
	if ch.moves && len(matches) > 1 {
		return documents.Order(placesOf(matches))
	}
	order := make([]int, len(matches))
	for i := range order {
		order[i] = i
	}
	return order
}

// placesOf returns the places of matches.
func placesOf(matches []path.Match) []*documents.Place {
	at := make([]*documents.Place, len(matches))
	for i, m := range matches {
		at[i] = m.Place
	}
	return at
}

func cloned(vals []documents.Value) []documents.Value {
	clones := make([]documents.Value, len(vals))
	for i, v := range vals {
		clones[i] = v.Clone()
	}
	return clones
}

func cmdArrAppend(c *command.Ctx) {
	if p, ok := selecting(c, 2); ok {
		insert(c, p, c.Args[3:], "json.arrappend", false, true, func(n int64) (int64, bool) { return n, true })
	}
}

func cmdArrInsert(c *command.Ctx) {
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	index, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	insert(c, p, c.Args[4:], "json.arrinsert", true, index == 0, func(n int64) (int64, bool) {
		if index < 0 {
			return index + n, index >= -n
		}
		return index, index <= n
	})
}

// insert inserts values into arrays, at the index that place returns for an array's length. makes says that a
// missing array may be created.
func insert(c *command.Ctx, p *path.Path, args [][]byte, event string, moves, makes bool, place func(n int64) (int64, bool)) {
	vals, ok := parsedAll(c, args, documents.Parse, !p.Static())
	if !ok {
		return
	}
	deepest := 0
	for _, v := range vals {
		deepest = max(deepest, v.Depth())
	}
	changer := changer{kind: documents.Array, what: "not an array", event: event, copied: args, moves: moves,
		check: func(at *documents.Place, v documents.Value) command.Error {
			if _, ok := place(int64(v.Len())); !ok {
				return errBounds
			}
			if at.Depth()+1+deepest > documents.MaxDepth {
				return errTooDeep
			}
			return ""
		},
		do: func(d *documents.Document, at *documents.Place, v documents.Value) (func(), bool) {
			i, _ := place(int64(v.Len()))
			n := int64(v.Len() + len(vals))
			d.Insert(at, int(i), cloned(vals)...)
			return func() { c.W.Int(n) }, true
		}}
	if empty := documents.NewArray(); makes {
		changer.seed, changer.depth = &empty, 1+deepest
	}
	changer.run(c, p)
}

func cmdArrTrim(c *command.Ctx) {
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	start, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	stop, ok := c.Int(c.Args[4])
	if !ok {
		return
	}
	changer := changer{kind: documents.Array, what: "not an array", event: "json.arrtrim", moves: true,
		do: func(d *documents.Document, at *documents.Place, v documents.Value) (func(), bool) {
			n := int64(v.Len())
			from, to := fromEnd(start, n), clamped(stop, n)+1
			if from >= to || n == 0 {
				from, to = 0, 0
			}
			d.RemoveRange(at, int(to), int(n))
			d.RemoveRange(at, 0, int(from))
			return func() { c.W.Int(to - from) }, to-from < n
		}}
	changer.run(c, p)
}

func cmdArrPop(c *command.Ctx) {
	at, x := 2, asStrings
	if len(c.Args) > 3 && command.EqualFold(c.Args[2], "format") {
		var ok bool
		if x, ok = expansionOf(c.Args[3], "STRINGS"); !ok {
			c.Err(errReplyForm)
			return
		}
		if c.W.Proto != 3 {
			c.Err(errFormat)
			return
		}
		at = 4
	}
	p, ok := selecting(c, at)
	if !ok {
		return
	}
	if p.Legacy && x != asStrings {
		c.Err(errLegacyForm)
		return
	}
	index := int64(-1)
	if len(c.Args) > at+1 {
		if i, ok := resp.ParseInt(c.Args[at+1]); ok { // an invalid number is ignored
			index = i
		}
	}
	changer := changer{kind: documents.Array, what: "not an array", event: "json.arrpop", moves: true,
		do: func(d *documents.Document, at *documents.Place, v documents.Value) (func(), bool) {
			n := int64(v.Len())
			if n == 0 {
				return nil, false
			}
			i := int(clamped(index, n))
			popped := v.At(i)
			d.Remove(at.Element(i))
			return func() { x.reply(c.W, popped) }, true
		}}
	changer.run(c, p)
}

func cmdStrAppend(c *command.Ctx) {
	at, text := 2, 3
	if len(c.Args) == 3 { // without a path
		at, text = 3, 2
	}
	p, ok := selecting(c, at)
	if !ok {
		return
	}
	more, ok := parsedAs(c, c.Args[text], documents.Parse, !p.Static())
	if !ok {
		return
	}
	if more.Kind() != documents.String {
		c.Err(expected(documents.String))
		return
	}
	empty := documents.Text("")
	changer := changer{kind: documents.String, what: "not a string", event: "json.strappend", copied: c.Args[text : text+1],
		seed: &empty,
		check: func(_ *documents.Place, v documents.Value) command.Error {
			if len(v.Text())+len(more.Text()) > c.Host.MaxBulk() && !c.Origin.In(command.Accepted) {
				return command.ErrStringTooLong
			}
			return ""
		},
		do: func(d *documents.Document, at *documents.Place, v documents.Value) (func(), bool) {
			text := v.Text() + more.Text()
			d.Replace(at, documents.Text(text))
			return func() { c.W.Int(int64(len(text))) }, true
		}}
	changer.run(c, p)
}

func cmdToggle(c *command.Ctx) {
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	changer := changer{kind: documents.Boolean, what: "not a bool", event: "json.toggle",
		do: func(d *documents.Document, at *documents.Place, v documents.Value) (func(), bool) {
			now := !v.Bool()
			d.Replace(at, documents.Bool(now))
			return func() {
				switch {
				case p.Legacy:
					c.W.BulkString(strconv.FormatBool(now))
				case now:
					c.W.Int(1)
				default:
					c.W.Int(0)
				}
			}, true
		}}
	changer.run(c, p)
}

// arithmetic is a command that computes with numbers.
type arithmetic struct {
	event string
	// ints returns an integer result; nil if the result is no integer or far too large.
	ints   func(z, x, y *big.Int) *big.Int
	floats func(x, y float64) float64
	// small returns an int64 result; ok is false if the result is not an int64. small may be nil.
	small func(x, y int64) (z int64, ok bool)
	// seed is the seed of the changer.
	seed *documents.Value
	// inexact says that results may differ between processors. So the results are journalled, not the command.
	inexact bool
}

func cmdNumIncrBy(c *command.Ctx) {
	zero := documents.Int(0)
	(&arithmetic{event: "json.numincrby", seed: &zero, ints: (*big.Int).Add, floats: func(a, b float64) float64 { return a + b },
		small: documents.AddInts}).run(c)
}

func cmdNumMultBy(c *command.Ctx) {
	(&arithmetic{event: "json.nummultby", ints: (*big.Int).Mul, floats: func(a, b float64) float64 { return a * b },
		small: documents.MultiplyInts}).run(c)
}

func cmdNumPowBy(c *command.Ctx) {
	(&arithmetic{event: "json.numpowby", ints: power, floats: math.Pow, inexact: true}).run(c)
}

// power computes a power of integers.
func power(z, base, exponent *big.Int) *big.Int {
	switch {
	case exponent.Sign() < 0:
		return nil
	case base.IsInt64() && base.Int64() >= -1 && base.Int64() <= 1:
		if base.Sign() < 0 && exponent.Bit(0) == 0 {
			return z.SetInt64(1)
		}
		if exponent.Sign() == 0 {
			return z.SetInt64(1)
		}
		return z.Set(base)
	case exponent.Cmp(big.NewInt(64)) > 0:
		return nil
	}
	return z.Exp(base, exponent, nil)
}

// run executes the command. If a result is not a number, nothing changes.
func (a *arithmetic) run(c *command.Ctx) {
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	by, err := documents.ParseNumber(c.Args[3])
	if err != nil {
		failed(c, err)
		return
	}
	e, matches, ok := selectedIn(c, p)
	if !ok {
		return
	}
	d := e.JSON()
	grown, ok := growth(c, d, p, matches, a.seed, 0)
	if !ok {
		return
	}
	longPlaces(c, d, len(matches), 0)
	matches = grown.grow(d, matches, a.seed)
	results := make([]documents.Value, len(matches))
	last, inexact := -1, false
	var record engine.Record
	beside := siblings{d: d}
	var changed twice
	if !p.Distinct() {
		changed = twice{}
	}
	for i, m := range matches {
		if !m.Value.IsNumber() {
			continue
		}
		last = i
		var err command.Error
		beside.at = m.Place
		if results[i], err = a.result(changed.value(m), by, &beside); err != "" {
			c.Err(err)
			return
		}
		changed.note(m, results[i])
		inexact = inexact || a.inexact && results[i].Kind() == documents.Number
	}
	if p.Legacy && last < 0 && c.W.Proto != 3 {
		c.Err(missingOr("does not contains a number"))
		return
	}
	if last >= 0 {
		batch := d.Batch()
		for i, m := range matches {
			switch {
			case !m.Value.IsNumber():
				continue
			case changed != nil:
				d.Replace(m.Place, results[i])
			default:
				batch.Replace(m.Place, results[i])
			}
			if inexact {
				record.Add(setWord, c.Args[1], path.AppendPlace(nil, m.Place), results[i].AppendJSON(nil, documents.Layout{}))
			}
		}
		batch.Do()
	}
	switch {
	case c.W.Proto == 3:
		c.W.Array(len(results))
		for _, v := range results {
			scalar(c.W, v)
		}
	case p.Legacy:
		c.W.Bulk(results[last].AppendJSON(nil, documents.Layout{}))
	default:
		c.W.Bulk(documents.NewArray(results...).AppendJSON(nil, documents.Layout{}))
	}
	if last >= 0 {
		finish(c, e, a.event, false, record)
	}
}

// twice has the new values by their paths, for a path that may select a value twice; otherwise it is nil.
type twice map[string]documents.Value

// value returns the present value of a match.
func (t twice) value(m path.Match) documents.Value {
	if t != nil {
		if v, ok := t[string(path.AppendPlace(nil, m.Place))]; ok {
			return v
		}
	}
	return m.Value
}

func (t twice) note(m path.Match, v documents.Value) {
	if t != nil {
		t[string(path.AppendPlace(nil, m.Place))] = v
	}
}

// result computes the new value of a number. Integers stay integers if they fit into an int64, or, among integers of
// an array, into a uint64. All other results are doubles.
func (a *arithmetic) result(v, by documents.Value, s *siblings) (documents.Value, command.Error) {
	_, isInt := v.Int()
	_, byInt := by.Int()
	ints := v.Kind() == documents.Integer && by.Kind() == documents.Integer
	if isInt && byInt && a.small != nil {
		x, _ := v.Int()
		y, _ := by.Int()
		if z, ok := a.small(x, y); ok {
			return documents.Int(z), ""
		}
	}
	if isInt && byInt || ints && s.all(documents.Integer) {
		z := a.ints(new(big.Int), bigInt(v), bigInt(by))
		switch {
		case z != nil && z.IsInt64():
			return documents.Int(z.Int64()), ""
		case z != nil && z.IsUint64() && s.all(documents.Integer):
			return documents.Uint(z.Uint64()), ""
		}
		return v, errOverflow
	}
	f := a.floats(v.Float(), by.Float())
	if !math.IsInf(f, 0) && !math.IsNaN(f) {
		if typed, ok := documents.Typed(f, v.FloatType()); ok {
			return typed, ""
		}
		return documents.Double(f), "" // the type of the array is too small for it
	}
	if v.Kind() == documents.Number && s.all(documents.Number) {
		return v, errOverflow
	}
	return v, errNoNumber
}

// siblings describes the other elements of the array that a value is in, if it is in one.
type siblings struct {
	d     *documents.Document
	at    *documents.Place // of the value
	array *documents.Place // the array that known describes
	known map[documents.Kind]bool
}

// all reports whether the value is an element of an array, and all elements are of a kind. Integers beyond int64
// count as the kind of the others only if the first element is one of them and none is negative.
func (s *siblings) all(kind documents.Kind) bool {
	if s.at == nil || s.at.Index < 0 {
		return false
	}
	if s.known == nil || s.array != s.at.Up {
		s.array, s.known = s.at.Up, map[documents.Kind]bool{}
	}
	ok, known := s.known[kind]
	if !known {
		var array documents.Value
		array, ok = s.d.Find(s.at.Up)
		unsigned := false
		array.Elements(func(i int, _ string, v documents.Value) bool {
			_, beyond := v.Uint()
			unsigned = unsigned || i == 0 && beyond
			ok = v.Kind() == kind && (unsigned && v.Float() >= 0 || !unsigned && !beyond)
			return ok
		})
		s.known[kind] = ok
	}
	return ok
}

func bigInt(v documents.Value) *big.Int {
	if u, ok := v.Uint(); ok {
		return new(big.Int).SetUint64(u)
	}
	i, _ := v.Int()
	return big.NewInt(i)
}
