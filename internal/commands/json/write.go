package json

import (
	"errors"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/internal/command"
)

// change is a plan to set a value in a document.
type change struct {
	replaced []*documents.Place // existing values
	parents  []*documents.Place // objects that get a new member
	names    []string           // of the new member and of the objects inside it, down to the value
	failed   bool               // in at least one place
}

// count returns how many places change.
func (ch *change) count() int { return len(ch.replaced) + len(ch.parents) }

// limit drops the places that are too deep for a value.
func (ch *change) limit(v documents.Value) {
	depth := v.Depth()
	drop := func(places []*documents.Place, more int) []*documents.Place {
		kept := slices.DeleteFunc(places, func(p *documents.Place) bool { return p.Depth()+more+depth > documents.MaxDepth })
		ch.failed = ch.failed || len(kept) < len(places)
		return kept
	}
	ch.replaced, ch.parents = drop(ch.replaced, 0), drop(ch.parents, len(ch.names))
}

// condition says whether a value is set only if none exists (NX), only if one exists (XX), or merged with the
// existing one.
type condition int

const (
	always condition = iota
	ifNone
	ifSome
	toMerge
)

// plan returns the change that sets the value of an argument in a document. If it cannot be set, it writes an error
// and ok is false.
func plan(c *command.Ctx, d *documents.Document, p *path.Path, arg []byte, cond condition) (ch change, ok bool) {
	matches, err := matchesIn(c, d, p)
	if err != nil {
		failed(c, err)
		return ch, false
	}
	if n := len(matches); n > 0 {
		longPlaces(c, d, n-1, len(arg)) // the first place costs no more than parsing
		switch cond {
		case ifNone:
		case toMerge:
			ch.replaced = placesOf(matches)
		default:
			ch.replaced = documents.Outermost(placesOf(matches))
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
	for parent := p; len(matches) == 0; {
		above, name, isName := parent.Parent()
		if !isName {
			if parent == p {
				c.Err(errRange)
			}
			return ch, parent != p
		}
		if parent != p && !makesPaths(c) {
			return ch, true
		}
		parent, ch.names = above, append(ch.names, name)
		if matches, err = matchesIn(c, d, parent); err != nil {
			failed(c, err)
			return ch, false
		}
	}
	slices.Reverse(ch.names)
	for _, m := range matches {
		if m.Value.Kind() == documents.Object {
			ch.parents = append(ch.parents, m.Place)
		} else {
			ch.failed = true
		}
	}
	return ch, true
}

// planNew returns the change that creates a document; nil if the path does not create one.
func planNew(c *command.Ctx, p *path.Path) *change {
	ch := &change{parents: []*documents.Place{nil}}
	for ; !p.IsRoot(); p, _, _ = p.Parent() {
		_, name, isName := p.Parent()
		if !isName || !makesPaths(c) {
			return nil
		}
		ch.names = append(ch.names, name)
	}
	slices.Reverse(ch.names)
	return ch
}

// newDocument returns the document of planNew with a value, nil if the document would be too deep.
func (ch *change) newDocument(v documents.Value) *documents.Document {
	if len(ch.names) == 0 {
		return documents.New(v)
	}
	d := documents.New(documents.NewObject(nil, nil))
	if !ch.set(d, v) {
		return nil
	}
	return d
}

// makesPaths reports whether missing objects on a path may be created. Accepted and repeated commands were executed
// under the directive's value at that time.
func makesPaths(c *command.Ctx) bool {
	return c.Origin.In(command.Accepted) || c.Host.Directive(autoCreate) == "yes"
}

// set puts a value in the places of a plan that are not too deep for it, and reports whether it changed any.
func (ch *change) set(d *documents.Document, v documents.Value) (changed bool) {
	ch.limit(v)
	left := ch.count()
	next := func() documents.Value {
		if left--; left == 0 {
			return v // the last place takes the value itself
		}
		return v.Clone()
	}
	for _, p := range ch.replaced {
		changed = d.Replace(p, next()) || changed
	}
	for _, p := range ch.parents {
		changed = create(d, p, ch.names, next()) || changed
	}
	return changed
}

// create adds a member to an object: the first name is the member's, and the others lead to the value inside it. It
// reports whether it could.
func create(d *documents.Document, at *documents.Place, names []string, v documents.Value) (changed bool) {
	for { // an earlier change of the same command may have made some of the objects
		parent, ok := d.Find(at)
		if !ok || parent.Kind() != documents.Object {
			return false
		}
		if _, has := parent.Get(names[0]); !has || len(names) == 1 {
			break
		}
		at, names = at.Member(names[0]), names[1:]
	}
	for _, name := range slices.Backward(names[1:]) {
		v = documents.NewObject([]string{name}, []documents.Value{v})
	}
	return d.SetMember(at, names[0], v)
}

func cmdSet(c *command.Ctx) {
	cond, float, isBSON := always, (*floatType)(nil), false
	for o := c.Options(4); o.Next(); {
		switch {
		case o.Is("nx") && cond == always:
			cond = ifNone
		case o.Is("xx") && cond == always:
			cond = ifSome
		case (o.Is("fpha") || o.Is("format")) && !o.More():
			wrongArgs(c)
			return
		case o.Is("fpha"):
			if float = floatTypeOf(o.Arg()); float == nil {
				c.Err(errFloatType)
				return
			}
		case o.Is("format"):
			var ok bool
			if isBSON, ok = inputFormat(c, o.Arg()); !ok {
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
	e, ok := toWrite(c, c.Args[1])
	if !ok {
		return
	}
	v, ok := input(c, c.Args[3], isBSON, float, e != nil && !p.Static())
	if !ok {
		return
	}
	if e == nil {
		if cond == ifSome {
			c.W.Null()
		} else {
			createDocument(c, p, v)
		}
		return
	}
	ch, ok := plan(c, e.JSON(), p, c.Args[3], cond)
	if !ok || !fitsTimes(c, ch.count(), c.Args[3]) {
		return
	}
	changed := ch.set(e.JSON(), v)
	if !changed || ch.failed {
		c.W.Null()
	} else {
		c.W.OK()
	}
	if changed {
		finish(c, e, "json.set", false, engine.Record{})
	}
}

// createDocument creates the missing document of the first argument, with a value at a path, and replies.
func createDocument(c *command.Ctx, p *path.Path, v documents.Value) {
	ch := planNew(c, p)
	if ch == nil {
		c.Err(errNotAtRoot)
		return
	}
	d := ch.newDocument(v)
	if d == nil {
		c.W.Null()
		return
	}
	c.G.Changed(c.G.Create(c.DB, c.Args[1], d), engine.EventModule, c.Cmd.Name)
	c.W.OK()
}

// inputFormat reads the argument of FORMAT. If it is invalid, it writes an error and ok is false.
func inputFormat(c *command.Ctx, arg []byte) (isBSON, ok bool) {
	switch string(arg) {
	case "STRING", "JSON":
		return false, true
	case "BSON":
		return true, true
	}
	c.Err(errSetForm)
	return false, false
}

// input parses an argument in its format; if float is not nil, its arrays of numbers get that type. If the argument
// is invalid, it writes an error and ok is false. inPlace is as in parsedAll.
func input(c *command.Ctx, arg []byte, isBSON bool, float *floatType, inPlace bool) (v documents.Value, ok bool) {
	parse := documents.Parse
	if isBSON {
		parse = documents.ParseBSON
	}
	if float == nil {
		return parsedAs(c, arg, parse, inPlace)
	}
	return parsedAs(c, arg, func(arg []byte) (documents.Value, error) {
		v, err := parse(arg)
		if err != nil {
			return v, err
		}
		if v, ok = float.in(v); !ok {
			return v, errors.New("value out of range for " + float.name)
		}
		return v, nil
	}, inPlace)
}

// floatType is a type of FPHA for the numbers of an array.
type floatType struct {
	word, name string
	typ        documents.FloatType
}

// floatTypeOf returns the type that an argument names, nil if it names none.
func floatTypeOf(arg []byte) *floatType {
	for i := range floatTypes {
		if command.EqualFold(arg, floatTypes[i].word) {
			return &floatTypes[i]
		}
	}
	return nil
}

var floatTypes = []floatType{{"bf16", "BF16", documents.BFloat16}, {"fp16", "F16", documents.Float16},
	{"fp32", "F32", documents.Float32}, {"fp64", "F64", documents.Float64}}

// in returns the value with its arrays of numbers in the type. In an array with other elements, only the numbers
// before the first of these are rounded, and the array gets no type. ok is false if a number is out of the type's
// range.
func (t *floatType) in(v documents.Value) (_ documents.Value, ok bool) {
	kind := v.Kind()
	if kind != documents.Array && kind != documents.Object {
		return v, true
	}
	var names []string
	vals := make([]documents.Value, 0, v.Len())
	numbers := kind == documents.Array
	ok = true
	v.Elements(func(_ int, name string, element documents.Value) bool {
		if numbers = numbers && element.IsNumber(); numbers {
			element, ok = documents.Typed(element.Float(), t.typ)
		} else {
			element, ok = t.in(element)
		}
		names, vals = append(names, name), append(vals, element)
		return ok
	})
	if kind == documents.Object {
		return documents.NewObject(names, vals), ok
	}
	for i := range vals {
		if numbers || vals[i].FloatType() == documents.Float64 {
			break
		}
		vals[i] = documents.Double(vals[i].Float())
	}
	return documents.NewArray(vals...), ok
}

func cmdMset(c *command.Ctx) {
	args := c.Args[1:]
	if len(args)%3 != 0 {
		wrongArgs(c)
		return
	}
	type triplet struct {
		path *path.Path
		ch   change
	}
	all := make([]triplet, len(args)/3)
	texts := make([][]byte, len(all))
	var ok bool
	for i := range all {
		if all[i].path, ok = selecting(c, 3*i+2); !ok {
			return
		}
		texts[i] = args[3*i+2]
	}
	inPlace := len(all) < command.LongFrom && slices.ContainsFunc(all, func(t triplet) bool { return !t.path.Static() })
	vals, ok := parsedAll(c, texts, documents.Parse, inPlace)
	if !ok {
		return
	}
	for i := range all {
		t := &all[i]
		e := c.G.ReadToWrite(c.DB, args[3*i])
		if e != nil && e.Type() != engine.JSON {
			c.Err(errKind)
			return
		}
		switch {
		case t.path.IsRoot():
			t.ch = change{replaced: []*documents.Place{nil}}
		case e == nil:
			made := planNew(c, t.path)
			if made == nil {
				c.Err(errNotAtRoot)
				return
			}
			t.ch = *made
		default:
			if t.ch, ok = plan(c, e.JSON(), t.path, args[3*i+2], always); !ok || !fitsTimes(c, t.ch.count(), args[3*i+2]) {
				return
			}
		}
	}
	failed := false
	made := edits{event: "json.mset"}
	for i := range all {
		t := &all[i]
		e := c.G.Write(c.DB, args[3*i])
		changed := true
		if e != nil {
			changed = t.ch.set(e.JSON(), vals[i])
		} else if d := t.ch.newDocument(vals[i]); d != nil {
			e = c.G.Create(c.DB, args[3*i], d)
		} else {
			changed = false
		}
		failed = failed || !changed || t.ch.failed
		switch {
		case !changed:
		case onCopies(c):
			made.add(c, 3*i+1, e, false)
		default:
			c.G.Changed(e, engine.EventModule, made.event)
		}
	}
	if failed {
		c.W.Null()
	} else {
		c.W.OK()
	}
	if len(made.docs) > 0 {
		made.end(c)
	}
}

func cmdMerge(c *command.Ctx) {
	isBSON := false
	for o := c.Options(4); o.Next(); {
		if !o.Is("format") {
			c.Err(command.ErrSyntax)
			return
		}
		if !o.More() {
			wrongArgs(c)
			return
		}
		var ok bool
		if isBSON, ok = inputFormat(c, o.Arg()); !ok {
			return
		}
	}
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	e, ok := toWrite(c, c.Args[1])
	if !ok {
		return
	}
	patch, ok := input(c, c.Args[3], isBSON, nil, e != nil)
	if !ok {
		return
	}
	if e == nil {
		createDocument(c, p, patch)
		return
	}
	ch, ok := plan(c, e.JSON(), p, c.Args[3], toMerge)
	if !ok || !fitsTimes(c, ch.count(), c.Args[3]) {
		return
	}
	changed := false
	d := e.JSON()
	for _, at := range ch.replaced {
		if v, ok := d.Find(at); ok && mergeable(v, patch, at.Depth()) {
			merge(d, at, patch)
			changed = true
		}
	}
	if len(ch.parents) > 0 {
		changed = ch.set(d, patch) || changed
	}
	if !changed {
		c.W.Null()
		return
	}
	c.W.OK()
	finish(c, e, "json.merge", false, engine.Record{})
}

// mergeable reports whether a value at a depth stays within the depth limit after a patch.
func mergeable(v, patch documents.Value, depth int) bool {
	if patch.Kind() != documents.Object || v.Kind() != documents.Object {
		return depth+patch.Depth() <= documents.MaxDepth
	}
	ok := depth <= documents.MaxDepth
	patch.Elements(func(_ int, name string, element documents.Value) bool {
		if element.Kind() != documents.Null {
			member, _ := v.Get(name)
			ok = ok && mergeable(member, element, depth+1)
		}
		return ok
	})
	return ok
}

// merge applies a JSON merge patch to the value at a place. It keeps no part of the patch.
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

// withoutNulls returns a copy of a patch for a place without a value: its objects lose their null members.
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
	e, matches, _, ok := toChange(c)
	if !ok {
		return
	}
	if e != nil {
		longPlaces(c, e.JSON(), len(matches)-1, 0)
	}
	at := documents.Outermost(placesOf(matches))
	n := len(at)
	switch {
	case n == 0:
		c.W.Int(0)
		return
	case n == 1 && at[0] == nil:
		c.G.Remove(e, engine.EventModule, "json.del")
		c.W.Int(1)
		return
	}
	elements := 0
	for _, p := range at {
		elements += btoi(p.Index >= 0)
	}
	batch := e.JSON().Batch()
	switch elements {
	case 0:
		for _, p := range at { // in this order, because it decides the order of the other members
			batch.Remove(p)
		}
	case n:
		for _, p := range slices.Backward(at) { // so that each place is found from the one before
			batch.Remove(p)
		}
	default:
		for _, p := range at {
			e.JSON().Remove(p)
		}
	}
	batch.Do()
	c.W.Int(int64(n))
	finish(c, e, "json.del", e.JSON().Root().Len() == 0, engine.Record{})
}

// toChange returns the entry of a command with a key and an optional path, and the values that the path selects; for
// a missing key there are none. distinct says that no value occurs twice. On an error it writes the reply and
// returns false.
func toChange(c *command.Ctx) (e *engine.Entry, matches []path.Match, distinct, ok bool) {
	p, ok := selecting(c, 2)
	if !ok {
		return nil, nil, false, false
	}
	if e, ok = toWrite(c, c.Args[1]); !ok || e == nil {
		return nil, nil, false, ok
	}
	matches, err := matchesIn(c, e.JSON(), p)
	if err != nil {
		failed(c, err)
		return nil, nil, false, false
	}
	return e, matches, p.Distinct(), true
}

func cmdClear(c *command.Ctx) {
	if !atMost(c, 3) {
		return
	}
	e, matches, distinct, ok := toChange(c)
	if !ok {
		return
	}
	if e == nil {
		c.Err(errNoDocument)
		return
	}
	longPlaces(c, e.JSON(), len(matches)-1, 0)
	at := make([]*documents.Place, 0, len(matches))
	nested := false
	for _, m := range matches {
		if emptied(m.Value).Kind() != documents.Null {
			at = append(at, m.Place)
			nested = nested || !m.Value.IsNumber()
		}
	}
	if nested || !distinct {
		at = documents.Outermost(at)
	}
	batch := e.JSON().Batch()
	for _, p := range at {
		batch.Replace(p, emptied(batch.Find(p)))
	}
	batch.Do()
	c.W.Int(int64(len(at)))
	if len(at) > 0 {
		finish(c, e, "json.clear", false, engine.Record{})
	}
}

// emptied returns the value that JSON.CLEAR puts in place of v, null if it keeps v.
func emptied(v documents.Value) documents.Value {
	switch kind := v.Kind(); {
	case kind == documents.Array && v.Len() > 0:
		return documents.NewArray()
	case kind == documents.Object && v.Len() > 0:
		return documents.NewObject(nil, nil)
	case v.IsNumber() && v.Float() != 0:
		return documents.Int(0)
	}
	return documents.Value{}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
