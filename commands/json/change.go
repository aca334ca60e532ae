package json

import (
	"math"
	"math/big"
	"strconv"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
)

// changer is a command that changes each value that a path selects, if it is of a kind, and tells what became of it.
type changer struct {
	kind  documents.Kind
	what  string // is wanted, for an error
	event string
	// copied are arguments that are copied for each value.
	copied [][]byte
	// check returns an error for a value that cannot be changed so; it may be nil.
	check func(at *documents.Place, v documents.Value) command.Error
	// do changes a value, and returns what is told of it, nil if that is null.
	do func(d *documents.Document, at *documents.Place, v documents.Value) (told func(), changed bool)
}

// selectedIn returns the entry of the first argument, and what a path selects in its document. If there is none, or the
// path selects too much, an error is written and ok is false.
func selectedIn(c *command.Ctx, p *path.Path) (e *engine.Entry, matches []path.Match, ok bool) {
	if e, ok = c.WriteAs(c.Args[1], engine.JSON); !ok {
		return nil, nil, false
	}
	if e == nil {
		c.Err(errNoDocument)
		return nil, nil, false
	}
	matches, err := p.Matches(e.JSON().Root())
	if err != nil {
		failed(c, err)
		return nil, nil, false
	}
	return e, matches, true
}

// run carries the command out. Values are changed from the last to the first, so that places do not move before it is
// their turn.
func (ch *changer) run(c *command.Ctx, p *path.Path) {
	e, matches, ok := selectedIn(c, p)
	if !ok {
		return
	}
	d := e.JSON()
	for _, arg := range ch.copied {
		if !fitsTimes(c, len(matches), arg) {
			return
		}
	}
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
	for i := len(matches) - 1; i >= 0; i-- {
		v, ok := d.Find(matches[i].Place)
		if !ok || v.Kind() != ch.kind {
			continue
		}
		last = max(last, i)
		var changed bool
		told[i], changed = ch.do(d, matches[i].Place, v)
		any = any || changed
	}
	if any {
		c.G.Changed(e, engine.EventModule, ch.event)
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
		c.Err(missingOr(p, ch.what))
	default:
		tell(last)
	}
}

// parsedAll returns the values of arguments that are JSON. If one is none an error is written and ok is false.
func parsedAll(c *command.Ctx, args [][]byte) (vals []documents.Value, ok bool) {
	for _, arg := range args {
		v, ok := parsed(c, arg)
		if !ok {
			return nil, false
		}
		vals = append(vals, v)
	}
	return vals, true
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
		insert(c, p, c.Args[3:], "json.arrappend", func(n int64) (int64, bool) { return n, true })
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
	insert(c, p, c.Args[4:], "json.arrinsert", func(n int64) (int64, bool) {
		if index < 0 {
			return index + n, index >= -n
		}
		return index, index <= n
	})
}

// insert inserts values into arrays at what place says for their length.
func insert(c *command.Ctx, p *path.Path, args [][]byte, event string, place func(n int64) (int64, bool)) {
	vals, ok := parsedAll(c, args)
	if !ok {
		return
	}
	deepest := 0
	for _, v := range vals {
		deepest = max(deepest, v.Depth())
	}
	changer := changer{kind: documents.Array, what: "an array", event: event, copied: args,
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
			d.Insert(at, int(i), cloned(vals)...)
			return func() { c.W.Int(int64(v.Len())) }, true
		}}
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
	changer := changer{kind: documents.Array, what: "an array", event: "json.arrtrim",
		do: func(d *documents.Document, at *documents.Place, v documents.Value) (func(), bool) {
			n := int64(v.Len())
			from, to := clamped(start, n), n
			if stop < 0 {
				to = max(stop+n, -1) + 1
			} else if stop < n {
				to = stop + 1
			}
			if from >= to {
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
		if x, ok = expansionOf(c, c.Args[3]); !ok {
			return
		}
		at = 4
	}
	if !atMost(c, at+2) {
		return
	}
	p, ok := selecting(c, at)
	if !ok {
		return
	}
	index := int64(-1)
	if len(c.Args) > at+1 {
		if index, ok = c.Int(c.Args[at+1]); !ok {
			return
		}
	}
	changer := changer{kind: documents.Array, what: "an array", event: "json.arrpop",
		do: func(d *documents.Document, at *documents.Place, v documents.Value) (func(), bool) {
			n := int64(v.Len())
			if n == 0 {
				return nil, false
			}
			i := int(min(clamped(index, n), n-1))
			popped := v.At(i)
			d.Remove(at.Element(i))
			return func() { x.reply(c.W, popped) }, true
		}}
	changer.run(c, p)
}

func cmdStrAppend(c *command.Ctx) {
	if !atMost(c, 4) {
		return
	}
	last := len(c.Args) - 1
	at := 2
	if last == 2 {
		at = len(c.Args) // there is no path
	}
	p, ok := selecting(c, at)
	if !ok {
		return
	}
	more, ok := parsed(c, c.Args[last])
	if !ok {
		return
	}
	if more.Kind() != documents.String {
		c.Err(expected(documents.String, more))
		return
	}
	changer := changer{kind: documents.String, what: "a string", event: "json.strappend", copied: c.Args[last:],
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
	changer := changer{kind: documents.Boolean, what: "a bool", event: "json.toggle",
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

func cmdNumIncrBy(c *command.Ctx) {
	calculate(c, "json.numincrby", (*big.Int).Add, func(a, b float64) float64 { return a + b })
}

func cmdNumMultBy(c *command.Ctx) {
	calculate(c, "json.nummultby", (*big.Int).Mul, func(a, b float64) float64 { return a * b })
}

func cmdNumPowBy(c *command.Ctx) { calculate(c, "json.numpowby", power, math.Pow) }

// power is a power of integers; nil if that is no int64 or no integer.
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
	if z.Exp(base, exponent, nil); !z.IsInt64() {
		return nil
	}
	return z
}

// calculate changes numbers. Integers stay integers.
func calculate(c *command.Ctx, event string, ints func(z, x, y *big.Int) *big.Int, floats func(x, y float64) float64) {
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
	results := make([]documents.Value, len(matches))
	last := -1
	for i, m := range matches {
		if !m.Value.IsNumber() {
			continue
		}
		last = i
		if m.Value.Kind() == documents.Integer && by.Kind() == documents.Integer {
			z := ints(new(big.Int), bigInt(m.Value), bigInt(by))
			switch {
			case z != nil && z.IsInt64():
				results[i] = documents.Int(z.Int64())
			case z != nil && z.IsUint64():
				results[i] = documents.Uint(z.Uint64())
			default:
				c.Err(errOverflow)
				return
			}
			continue
		}
		f := floats(m.Value.Float(), by.Float())
		if math.IsInf(f, 0) || math.IsNaN(f) {
			c.Err(errNoNumber)
			return
		}
		results[i] = whole(f)
	}
	if p.Legacy && last < 0 {
		c.Err(command.Error("ERR Path '" + printed(p.Fixed) + "' does not exist or does not contains a number"))
		return
	}
	if last >= 0 {
		for i, m := range matches {
			if m.Value.IsNumber() {
				d.Replace(m.Place, results[i])
				c.Journal(setWord, c.Args[1], path.AppendPlace(nil, m.Place), results[i].AppendJSON(nil, documents.Layout{}))
			}
		}
		c.G.Changed(e, engine.EventModule, event)
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
}

// whole returns a result, as an integer if it is one that doubles have exactly.
func whole(f float64) documents.Value {
	const exact = 1 << 53
	if f == math.Trunc(f) && math.Abs(f) <= exact {
		return documents.Int(int64(f))
	}
	return documents.Double(f)
}

func bigInt(v documents.Value) *big.Int {
	if u, ok := v.Uint(); ok {
		return new(big.Int).SetUint64(u)
	}
	i, _ := v.Int()
	return big.NewInt(i)
}
