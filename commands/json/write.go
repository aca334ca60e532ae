package json

import (
	"math"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
)

// change is what setting a value does to a document.
type change struct {
	replaced []*documents.Place // values that are there
	parents  []*documents.Place // objects that get a member
	name     string             // of the member
}

// none reports whether there is nothing to do.
func (ch *change) none() bool { return ch.count() == 0 }

// count returns how many places change.
func (ch *change) count() int { return len(ch.replaced) + len(ch.parents) }

// deepest returns the depth of the lowest place.
func (ch *change) deepest() (n int) {
	for _, p := range ch.replaced {
		n = max(n, p.Depth())
	}
	for _, p := range ch.parents {
		n = max(n, p.Depth()+1)
	}
	return n
}

// condition says whether a value is set only if there is none, or only if there is one.
type condition int

const (
	always condition = iota
	ifNone
	ifSome
)

// plan returns what setting a value changes in a document. If that is an error it is written and ok is false.
func plan(c *command.Ctx, d *documents.Document, p *path.Path, cond condition) (ch change, ok bool) {
	matches, err := p.Matches(d.Root())
	if err != nil {
		failed(c, err)
		return ch, false
	}
	if len(matches) > 0 {
		if cond != ifNone {
			for _, m := range matches {
				ch.replaced = append(ch.replaced, m.Place)
			}
		}
		return ch, true
	}
	if cond == ifSome {
		return ch, true
	}
	if !p.Static() {
		c.Err(errStaticPath)
		return ch, false
	}
	parent, name, isName := p.Parent()
	if matches, err = parent.Matches(d.Root()); err != nil {
		failed(c, err)
		return ch, false
	}
	for _, m := range matches {
		switch kind := m.Value.Kind(); {
		case isName && kind == documents.Object:
			ch.parents, ch.name = append(ch.parents, m.Place), name
		case !isName && kind == documents.Array:
			c.Err(errBounds)
			return ch, false
		}
	}
	return ch, true
}

// fits writes an error and is false if a value would lie too deep in a document.
func fits(c *command.Ctx, at int, v documents.Value) bool {
	if at+v.Depth() > documents.MaxDepth {
		c.Err(errTooDeep)
		return false
	}
	return true
}

// set puts a value in the places of a plan.
func (ch *change) set(d *documents.Document, v documents.Value) {
	left := ch.count()
	next := func() documents.Value {
		if left--; left == 0 {
			return v // which nobody else needs
		}
		return v.Clone()
	}
	for _, p := range ch.replaced {
		d.Replace(p, next())
	}
	for _, p := range ch.parents {
		d.SetMember(p, ch.name, next())
	}
}

func cmdSet(c *command.Ctx) {
	cond, float := always, (*floatType)(nil)
	for o := c.Options(4); o.Next(); {
		switch {
		case o.Is("nx") && cond == always:
			cond = ifNone
		case o.Is("xx") && cond == always:
			cond = ifSome
		case o.Is("fpha") && o.More() && float == nil:
			word := o.Arg()
			for i := range floatTypes {
				if command.EqualFold(word, floatTypes[i].word) {
					float = &floatTypes[i]
				}
			}
			if float == nil {
				c.Err(command.ErrSyntax)
				return
			}
		case o.Is("format") && o.More():
			if !textFormat(c, o.Arg()) {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	v, ok := parsed(c, c.Args[3])
	if !ok {
		return
	}
	if float != nil {
		if v, ok = float.in(v); !ok {
			c.Err(command.Error("value out of range for " + float.name))
			return
		}
	}
	e, ok := c.WriteAs(c.Args[1], engine.JSON)
	if !ok {
		return
	}
	if e == nil {
		switch {
		case cond == ifSome:
			c.W.Null()
		case !p.IsRoot():
			c.Err(errNotAtRoot)
		default:
			c.G.Changed(c.G.Create(c.DB, c.Args[1], documents.New(v)), engine.EventModule, "json.set")
			c.W.OK()
		}
		return
	}
	ch, ok := plan(c, e.JSON(), p, cond)
	switch {
	case !ok:
	case ch.none():
		c.W.Null()
	case fits(c, ch.deepest(), v) && fitsTimes(c, ch.count(), c.Args[3]):
		ch.set(e.JSON(), v)
		c.G.Changed(e, engine.EventModule, "json.set")
		c.W.OK()
	}
}

// textFormat writes an error and is false if the argument of FORMAT is not that of JSON texts.
func textFormat(c *command.Ctx, arg []byte) bool {
	switch {
	case command.EqualFold(arg, "string"), command.EqualFold(arg, "json"):
		return true
	case command.EqualFold(arg, "bson"):
		c.Err(errBSON)
	default:
		c.Err(command.ErrSyntax)
	}
	return false
}

// floatType is a type that FPHA names for the numbers of an array.
type floatType struct {
	word, name string
	// rounded returns the nearest number that the type has; it is infinite if that is beyond all.
	rounded func(f float64) float64
}

var floatTypes = []floatType{
	{"bf16", "BF16", func(f float64) float64 { return roundFloat(f, 8, 127) }},
	{"fp16", "F16", func(f float64) float64 { return roundFloat(f, 11, 15) }},
	{"fp32", "F32", func(f float64) float64 { return float64(float32(f)) }},
	{"fp64", "F64", func(f float64) float64 { return f }},
}

// roundFloat rounds, to even, to a type whose mantissas have so many bits, and whose largest exponent is maxExponent.
func roundFloat(f float64, bits, maxExponent int) float64 {
	if f == 0 {
		return f
	}
	_, exponent := math.Frexp(f) // f is less than 2 to the power of it
	last := max(exponent, 2-maxExponent) - bits
	f = math.Ldexp(math.RoundToEven(math.Ldexp(f, -last)), last)
	if math.Abs(f) >= math.Ldexp(1, maxExponent+1) {
		return math.Inf(1)
	}
	return f
}

// in returns a value whose arrays of numbers, if they have one that is no integer, have numbers of the type alone. ok
// is false if one of them is out of its range.
func (t *floatType) in(v documents.Value) (_ documents.Value, ok bool) {
	kind := v.Kind()
	if kind != documents.Array && kind != documents.Object {
		return v, true
	}
	var names []string
	vals := make([]documents.Value, 0, v.Len())
	numbers, doubles := true, false
	ok = true
	v.Elements(func(_ int, name string, element documents.Value) bool {
		numbers = numbers && element.IsNumber()
		doubles = doubles || element.Kind() == documents.Number
		if element, ok = t.in(element); ok {
			names, vals = append(names, name), append(vals, element)
		}
		return ok
	})
	if kind == documents.Object {
		return documents.NewObject(names, vals), ok
	}
	for i := range vals {
		if !numbers || !doubles {
			break
		}
		f := t.rounded(vals[i].Float())
		if math.IsInf(f, 0) {
			return v, false
		}
		vals[i] = documents.Double(f)
	}
	return documents.NewArray(vals...), ok
}

func cmdMset(c *command.Ctx) {
	args := c.Args[1:]
	if len(args)%3 != 0 {
		atMost(c, 0)
		return
	}
	type triplet struct {
		path  *path.Path
		value documents.Value
		entry *engine.Entry
		ch    change
	}
	all := make([]triplet, len(args)/3)
	var ok bool
	for i := range all {
		if all[i].path, ok = selecting(c, 3*i+2); !ok {
			return
		}
		if all[i].value, ok = parsed(c, args[3*i+2]); !ok {
			return
		}
	}
	for i := range all {
		t := &all[i]
		if t.entry, ok = c.ReadToWriteAs(args[3*i], engine.JSON); !ok {
			return
		}
		if t.entry == nil {
			if !t.path.IsRoot() {
				c.Err(errNotAtRoot)
				return
			}
			continue
		}
		if t.ch, ok = plan(c, t.entry.JSON(), t.path, always); !ok || !fits(c, t.ch.deepest(), t.value) ||
			!fitsTimes(c, t.ch.count(), args[3*i+2]) {
			return
		}
	}
	for i := range all {
		t := &all[i]
		e := c.G.Write(c.DB, args[3*i])
		switch {
		case e == nil:
			e = c.G.Create(c.DB, args[3*i], documents.New(t.value))
		case t.entry == nil: // another one of the command has made the key
			e.JSON().Replace(nil, t.value)
		case t.ch.none():
			continue
		default:
			t.ch.set(e.JSON(), t.value)
		}
		c.G.Changed(e, engine.EventModule, "json.mset")
	}
	c.W.OK()
}

func cmdMerge(c *command.Ctx) {
	for o := c.Options(4); o.Next(); {
		if !o.Is("format") || !o.More() {
			c.Err(command.ErrSyntax)
			return
		}
		if !textFormat(c, o.Arg()) {
			return
		}
	}
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	patch, ok := parsed(c, c.Args[3])
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.JSON)
	if !ok {
		return
	}
	if e == nil {
		if !p.IsRoot() {
			c.Err(errNotAtRoot)
			return
		}
		c.G.Changed(c.G.Create(c.DB, c.Args[1], documents.New(withoutNulls(patch))), engine.EventModule, "json.merge")
		c.W.OK()
		return
	}
	ch, ok := plan(c, e.JSON(), p, always)
	switch {
	case !ok || !fits(c, ch.deepest(), patch) || !fitsTimes(c, ch.count(), c.Args[3]):
		return
	case ch.none():
		c.W.Null()
		return
	}
	for _, at := range ch.replaced {
		if patch.Kind() == documents.Null && at != nil {
			e.JSON().Remove(at)
		} else {
			merge(e.JSON(), at, patch)
		}
	}
	for _, at := range ch.parents {
		if patch.Kind() != documents.Null {
			e.JSON().SetMember(at, ch.name, withoutNulls(patch))
		}
	}
	c.G.Changed(e, engine.EventModule, "json.merge")
	c.W.OK()
}

// merge changes what is at a place by a JSON merge patch, of which it keeps nothing.
func merge(d *documents.Document, at *documents.Place, patch documents.Value) {
	v, ok := d.Find(at)
	if !ok {
		return
	}
	if patch.Kind() != documents.Object || v.Kind() != documents.Object {
		d.Replace(at, withoutNulls(patch))
		return
	}
	patch.Elements(func(_ int, name string, element documents.Value) bool {
		v, _ := d.Find(at)
		_, has := v.Get(name)
		switch {
		case element.Kind() == documents.Null && has:
			d.Remove(at.Member(name))
		case element.Kind() == documents.Null:
		case has:
			merge(d, at.Member(name), element)
		default:
			d.SetMember(at, name, withoutNulls(element))
		}
		return true
	})
}

// withoutNulls returns a copy of a patch as it stands where nothing was: objects without the members that are null.
func withoutNulls(patch documents.Value) documents.Value {
	if patch.Kind() != documents.Object {
		return patch.Clone()
	}
	var names []string
	var vals []documents.Value
	patch.Elements(func(_ int, name string, element documents.Value) bool {
		if element.Kind() != documents.Null {
			names, vals = append(names, name), append(vals, withoutNulls(element))
		}
		return true
	})
	return documents.NewObject(names, vals)
}

func cmdDel(c *command.Ctx) {
	if !atMost(c, 3) {
		return
	}
	e, matches, ok := toChange(c)
	if !ok {
		return
	}
	at := make([]*documents.Place, len(matches))
	for i, m := range matches {
		at[i] = m.Place
	}
	n := 0
	for _, at := range documents.Sort(at) {
		if at == nil {
			c.G.Remove(e, engine.EventModule, "json.del")
			c.W.Int(1)
			return
		}
		if e.JSON().Remove(at) {
			n++
		}
	}
	if n > 0 {
		c.G.Changed(e, engine.EventModule, "json.del")
	}
	c.W.Int(int64(n))
}

// toChange returns the document of a command with a key and perhaps a path, and what the path selects, none if there is
// no such key. If that is an error it is written and ok is false.
func toChange(c *command.Ctx) (e *engine.Entry, matches []path.Match, ok bool) {
	p, ok := selecting(c, 2)
	if !ok {
		return nil, nil, false
	}
	if e, ok = c.WriteAs(c.Args[1], engine.JSON); !ok || e == nil {
		return nil, nil, ok
	}
	matches, err := p.Matches(e.JSON().Root())
	if err != nil {
		failed(c, err)
		return nil, nil, false
	}
	return e, matches, true
}

func cmdClear(c *command.Ctx) {
	if !atMost(c, 3) {
		return
	}
	e, matches, ok := toChange(c)
	if !ok {
		return
	}
	if e == nil {
		c.Err(errNoDocument)
		return
	}
	n := 0
	for _, m := range matches {
		v, ok := e.JSON().Find(m.Place)
		if !ok { // it was in another one
			continue
		}
		empty := documents.Int(0)
		switch kind := v.Kind(); {
		case kind == documents.Array && v.Len() > 0:
			empty = documents.NewArray()
		case kind == documents.Object && v.Len() > 0:
			empty = documents.NewObject(nil, nil)
		case v.IsNumber() && v.Float() != 0:
		default:
			continue
		}
		e.JSON().Replace(m.Place, empty)
		n++
	}
	if n > 0 {
		c.G.Changed(e, engine.EventModule, "json.clear")
	}
	c.W.Int(int64(n))
}
