package json

import (
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/resp"
)

// reader says how a command replies with what it tells of each value that its path selects.
type reader struct {
	// one replies with what is told of a value; it is false if there is nothing to tell.
	one func(c *command.Ctx, v documents.Value) bool
	// noKey is the error for a key that does not exist, if the path is no legacy one.
	noKey func(p *path.Path) command.Error
	// noPath and noKind are the errors for a legacy path that leads nowhere, or to a value of which there is nothing to
	// tell. noPath is nil if the reply is null then.
	noPath func(p *path.Path) command.Error
	noKind func(p *path.Path, v documents.Value) command.Error
}

func noDocument(*path.Path) command.Error { return errNoDocument }

// tell carries out a command that has a key and perhaps a path.
func (r *reader) tell(c *command.Ctx) {
	if !atMost(c, 3) {
		return
	}
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	d, ok := document(c, c.Args[1])
	if !ok {
		return
	}
	if d == nil {
		if p.Legacy {
			c.W.Null()
		} else {
			c.Err(r.noKey(p))
		}
		return
	}
	if p.Legacy {
		v, found, err := p.First(d.Root())
		switch {
		case err != nil:
			failed(c, err)
		case !found && r.noPath != nil:
			c.Err(r.noPath(p))
		case !found:
			c.W.Null()
		case !r.one(c, v):
			c.Err(r.noKind(p, v))
		}
		return
	}
	vals, err := p.Values(d.Root())
	if err != nil {
		failed(c, err)
		return
	}
	c.W.Array(len(vals))
	for _, v := range vals {
		if !r.one(c, v) {
			c.W.Null()
		}
	}
}

var (
	arrayLengths = reader{
		one:   lengthOf(documents.Array),
		noKey: noDocument,
		noKind: func(p *path.Path, _ documents.Value) command.Error {
			return missingOr(p, "an array")
		},
	}
	objectLengths = reader{
		one:    lengthOf(documents.Object),
		noKey:  func(p *path.Path) command.Error { return missingOr(p, "an object") },
		noKind: func(_ *path.Path, v documents.Value) command.Error { return expected(documents.Object, v) },
	}
	stringLengths = reader{
		one: func(c *command.Ctx, v documents.Value) bool {
			if v.Kind() != documents.String {
				return false
			}
			c.W.Int(int64(len(v.Text())))
			return true
		},
		noKey:  noDocument,
		noPath: missing,
		noKind: func(_ *path.Path, v documents.Value) command.Error { return expected(documents.String, v) },
	}
	objectKeys = reader{
		one: func(c *command.Ctx, v documents.Value) bool {
			if v.Kind() != documents.Object {
				return false
			}
			c.W.Array(v.Len())
			v.Elements(func(_ int, name string, _ documents.Value) bool {
				c.W.BulkString(name)
				return true
			})
			return true
		},
		noKey:  noDocument,
		noKind: func(_ *path.Path, v documents.Value) command.Error { return expected(documents.Object, v) },
	}
)

func lengthOf(kind documents.Kind) func(*command.Ctx, documents.Value) bool {
	return func(c *command.Ctx, v documents.Value) bool {
		if v.Kind() != kind {
			return false
		}
		c.W.Int(int64(v.Len()))
		return true
	}
}

func cmdArrLen(c *command.Ctx)  { arrayLengths.tell(c) }
func cmdObjLen(c *command.Ctx)  { objectLengths.tell(c) }
func cmdStrLen(c *command.Ctx)  { stringLengths.tell(c) }
func cmdObjKeys(c *command.Ctx) { objectKeys.tell(c) }

func cmdType(c *command.Ctx) {
	if !atMost(c, 3) {
		return
	}
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	d, ok := document(c, c.Args[1])
	if !ok {
		return
	}
	var vals []documents.Value
	if d != nil {
		var err error
		if vals, err = p.Values(d.Root()); err != nil {
			failed(c, err)
			return
		}
	}
	if c.W.Proto == 3 { // which has one more array around everything
		c.W.Array(1)
	}
	switch {
	case d == nil, p.Legacy && len(vals) == 0:
		c.W.Null()
	case p.Legacy:
		c.W.BulkString(vals[0].Kind().String())
	default:
		c.W.Array(len(vals))
		for _, v := range vals {
			c.W.BulkString(v.Kind().String())
		}
	}
}

// expansion says how values are given in RESP3.
type expansion int

const (
	asStrings expansion = iota
	expandOne           // what a value contains, but not what that contains
	expandAll
)

// expansionOf reads the argument of FORMAT.
func expansionOf(c *command.Ctx, arg []byte) (x expansion, ok bool) {
	switch strings.ToUpper(string(arg)) {
	case "STRING", "STRINGS":
		return asStrings, true
	case "EXPAND1":
		x = expandOne
	case "EXPAND":
		x = expandAll
	default:
		c.Err("ERR wrong value of FORMAT")
		return 0, false
	}
	if c.W.Proto != 3 {
		c.Err(errFormat)
		return 0, false
	}
	return x, true
}

// reply writes a value as an expansion has it.
func (x expansion) reply(w *resp.Writer, v documents.Value) {
	switch v.Kind() {
	case documents.Array, documents.Object:
		if x == asStrings {
			w.Bulk(v.AppendJSON(nil, documents.Layout{}))
			return
		}
		inner := x
		if x == expandOne {
			inner = asStrings
		}
		object := v.Kind() == documents.Object
		if object {
			w.Map(v.Len())
		} else {
			w.Array(v.Len())
		}
		v.Elements(func(_ int, name string, element documents.Value) bool {
			if object {
				w.BulkString(name)
			}
			if k := element.Kind(); inner == asStrings && k != documents.Array && k != documents.Object {
				scalar(w, element)
			} else {
				inner.reply(w, element)
			}
			return true
		})
		return
	}
	if x == asStrings {
		w.Bulk(v.AppendJSON(nil, documents.Layout{}))
		return
	}
	scalar(w, v)
}

// scalar writes a value that is neither an array nor an object.
func scalar(w *resp.Writer, v documents.Value) {
	switch v.Kind() {
	case documents.Null:
		w.Null()
	case documents.Boolean:
		w.Bool(v.Bool())
	case documents.String:
		w.BulkString(v.Text())
	default:
		number(w, v)
	}
}

// number writes a number.
func number(w *resp.Writer, v documents.Value) {
	if i, ok := v.Int(); ok {
		w.Int(i)
	} else if v.Kind() == documents.Integer {
		w.BigNumber(string(v.AppendJSON(nil, documents.Layout{})))
	} else {
		w.Double(v.Float())
	}
}

func cmdGet(c *command.Ctx) {
	var l documents.Layout
	var paths []*path.Path
	legacy, x := true, asStrings
	for o := c.Options(2); o.Next(); {
		switch {
		case len(paths) == 0 && o.Is("indent") && o.More():
			l.Indent = string(o.Arg())
		case len(paths) == 0 && o.Is("newline") && o.More():
			l.Newline = string(o.Arg())
		case len(paths) == 0 && o.Is("space") && o.More():
			l.Space = string(o.Arg())
		case len(paths) == 0 && o.Is("format") && o.More():
			var ok bool
			if x, ok = expansionOf(c, o.Arg()); !ok {
				return
			}
		default:
			p, err := path.Parse(string(o.Word()))
			if err != nil {
				failed(c, err)
				return
			}
			paths = append(paths, p)
			legacy = legacy && p.Legacy
		}
	}
	if len(paths) == 0 {
		p, _ := pathAt(c, len(c.Args))
		paths, legacy = []*path.Path{p}, p.Legacy
	}
	d, ok := document(c, c.Args[1])
	if !ok {
		return
	}
	if d == nil {
		c.W.Null()
		return
	}
	results := make([][]documents.Value, len(paths))
	for i, p := range paths {
		var err error
		if results[i], err = selected(p, d.Root(), legacy); err != nil {
			failed(c, err)
			return
		}
		if legacy && len(results[i]) == 0 {
			c.Err(missing(p))
			return
		}
	}
	if x != asStrings {
		for _, vals := range results {
			if !fitsReply(c, vals) {
				return
			}
		}
		c.W.Array(len(paths))
		for _, vals := range results {
			c.W.Array(len(vals))
			for _, v := range vals {
				x.reply(c.W, v)
			}
		}
		return
	}
	reply(c, paths, results, legacy, l)
}

// selected returns what a path has, the first value alone if only that is wanted.
func selected(p *path.Path, root documents.Value, first bool) ([]documents.Value, error) {
	if !first {
		return p.Values(root)
	}
	v, ok, err := p.First(root)
	if !ok {
		return nil, err
	}
	return []documents.Value{v}, err
}

// reply writes what paths have as one JSON text, or an error if that is too long.
func reply(c *command.Ctx, paths []*path.Path, results [][]documents.Value, legacy bool, l documents.Layout) {
	l.Limit = c.Host.MaxBulk()
	one := func(dst []byte, vals []documents.Value, level int) []byte {
		if legacy {
			return vals[0].AppendNested(dst, l, level)
		}
		return documents.NewArray(vals...).AppendNested(dst, l, level)
	}
	if len(paths) == 1 {
		bounded(c, one(nil, results[0], 0), l)
		return
	}
	dst := []byte{'{'}
	for i, p := range paths {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.AppendBreak(dst, 1)
		dst = append(append(documents.AppendQuoted(dst, p.Text), ':'), l.Space...)
		if dst = one(dst, results[i], 1); l.Full(dst) {
			break
		}
	}
	bounded(c, append(l.AppendBreak(dst, 0), '}'), l)
}

// bounded writes a text, or an error if it is longer than its layout allows.
func bounded(c *command.Ctx, text []byte, l documents.Layout) {
	if l.Full(text) {
		c.Err(errTooLarge)
	} else {
		c.W.Bulk(text)
	}
}

func cmdMget(c *command.Ctx) {
	last := len(c.Args) - 1
	p, ok := pathAt(c, last)
	if !ok {
		return
	}
	c.W.Array(last - 1)
	for _, key := range c.Args[1:last] {
		e := c.Read(key)
		if e == nil || e.Type() != engine.JSON {
			c.W.Null()
			continue
		}
		vals, err := selected(p, e.JSON().Root(), p.Legacy)
		if err != nil || p.Legacy && len(vals) == 0 {
			c.W.Null()
			continue
		}
		reply(c, []*path.Path{p}, [][]documents.Value{vals}, p.Legacy, documents.Layout{})
	}
}

func cmdArrIndex(c *command.Ctx) {
	if !atMost(c, 6) {
		return
	}
	p, ok := selecting(c, 2)
	if !ok {
		return
	}
	want, ok := parsed(c, c.Args[3])
	if !ok {
		return
	}
	var bounds [2]int64
	for i := range len(c.Args) - 4 {
		if bounds[i], ok = c.Int(c.Args[4+i]); !ok {
			return
		}
	}
	d, ok := document(c, c.Args[1])
	if !ok {
		return
	}
	if d == nil {
		c.Err(errNoDocument)
		return
	}
	vals, err := selected(p, d.Root(), p.Legacy)
	switch {
	case err != nil:
		failed(c, err)
	case !p.Legacy:
		c.W.Array(len(vals))
		for _, v := range vals {
			if v.Kind() != documents.Array {
				c.W.Null()
				continue
			}
			c.W.Int(int64(indexOf(v, want, bounds[0], bounds[1])))
		}
	case len(vals) == 0:
		c.Err(missing(p))
	case vals[0].Kind() != documents.Array:
		c.Err(missingOr(p, "an array"))
	default:
		c.W.Int(int64(indexOf(vals[0], want, bounds[0], bounds[1])))
	}
}

// indexOf returns the index of the first element from start to before stop that is equal to a value, -1 if there is
// none. Negative bounds count from the end, and a stop of 0 is the end.
func indexOf(array, want documents.Value, start, stop int64) int {
	n := int64(array.Len())
	if stop == 0 {
		stop = n
	}
	start, stop = clamped(start, n), clamped(stop, n)
	found := -1
	if start >= stop {
		return found
	}
	array.ElementsFrom(int(start), func(i int, _ string, element documents.Value) bool {
		if int64(i) >= stop {
			return false
		}
		if documents.Equal(element, want) {
			found = i
		}
		return found < 0
	})
	return found
}

// clamped returns an index of n elements, or n, that one of a client means.
func clamped(i, n int64) int64 {
	if i < 0 {
		i = max(i, -n) + n
	}
	return min(i, n)
}

func cmdResp(c *command.Ctx) {
	if !atMost(c, 3) {
		return
	}
	p, ok := pathAt(c, 2)
	if !ok {
		return
	}
	d, ok := document(c, c.Args[1])
	if !ok {
		return
	}
	if d == nil {
		c.W.Null()
		return
	}
	vals, err := selected(p, d.Root(), p.Legacy)
	switch {
	case err != nil:
		failed(c, err)
	case p.Legacy && len(vals) == 0:
		c.Err(missing(p))
	case p.Legacy:
		asReply(c.W, vals[0])
	case fitsReply(c, vals):
		c.W.Array(len(vals))
		for _, v := range vals {
			asReply(c.W, v)
		}
	}
}

// asReply writes a value as JSON.RESP does.
func asReply(w *resp.Writer, v documents.Value) {
	switch v.Kind() {
	case documents.Boolean:
		w.Simple(strconv.FormatBool(v.Bool()))
	case documents.Number:
		if w.Proto == 3 {
			w.Double(v.Float())
		} else {
			w.Bulk(strconv.AppendFloat(nil, v.Float(), 'g', 17, 64))
		}
	case documents.Integer:
		if i, ok := v.Int(); ok {
			w.Int(i)
		} else {
			w.Bulk(v.AppendJSON(nil, documents.Layout{}))
		}
	case documents.Array:
		w.Array(1 + v.Len())
		w.Simple("[")
		v.Elements(func(_ int, _ string, element documents.Value) bool {
			asReply(w, element)
			return true
		})
	case documents.Object:
		w.Array(1 + 2*v.Len())
		w.Simple("{")
		v.Elements(func(_ int, name string, element documents.Value) bool {
			w.BulkString(name)
			asReply(w, element)
			return true
		})
	default:
		scalar(w, v)
	}
}

func cmdDebugMemory(c *command.Ctx) {
	if !atMost(c, 4) {
		return
	}
	p, ok := selecting(c, 3)
	if !ok {
		return
	}
	d, ok := document(c, c.Args[2])
	if !ok {
		return
	}
	var vals []documents.Value
	if d != nil {
		var err error
		if vals, err = selected(p, d.Root(), p.Legacy); err != nil {
			failed(c, err)
			return
		}
	}
	if p.Legacy {
		n := 0
		if len(vals) > 0 {
			n = vals[0].Memory()
		}
		c.W.Int(int64(n))
		return
	}
	c.W.Array(len(vals))
	for _, v := range vals {
		c.W.Int(int64(v.Memory()))
	}
}

func cmdDebugHelp(c *command.Ctx) {
	command.HelpReply(c,
		"JSON.DEBUG <subcommand> [<key> [path]]. Subcommands are:",
		"MEMORY <key> [path]",
		"    Tell how many bytes of memory the values take.",
		"HELP",
		"    Print this help.")
}
