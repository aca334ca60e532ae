package json

import (
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// reader describes how a command replies about the values that its path selects.
type reader struct {
	// one writes the reply for a value; it returns false if the value has none.
	one func(c *command.Ctx, v documents.Value) bool
	// noKey is the error for a missing key, unless the path is a legacy one.
	noKey command.Error
	// noPath and noKind are the errors for a legacy path that leads nowhere, or to a value of the wrong kind. If
	// noPath is empty, the reply is null.
	noPath, noKind command.Error
}

// tell executes a command with a key and an optional path.
func (r *reader) tell(c *command.Ctx) {
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
			c.Err(r.noKey)
		}
		return
	}
	if p.Legacy {
		v, found, err := p.First(d.Root(), longer(c))
		switch {
		case err != nil:
			failed(c, err)
		case !found && r.noPath != "":
			c.Err(r.noPath)
		case !found:
			c.W.Null()
		case !r.one(c, v):
			c.Err(r.noKind)
		}
		return
	}
	vals, err := p.Values(d.Root(), longer(c))
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
		one:    lengthOf(documents.Array),
		noKey:  errNoDocument,
		noPath: errNoPath,
		noKind: missingOr("not an array"),
	}
	objectLengths = reader{
		one:    lengthOf(documents.Object),
		noKey:  missingOr("not an object"),
		noKind: expected(documents.Object),
	}
	stringLengths = reader{
		one: func(c *command.Ctx, v documents.Value) bool {
			if v.Kind() != documents.String {
				return false
			}
			c.W.Int(int64(len(v.Text())))
			return true
		},
		noKey:  errNoDocument,
		noPath: errNoPath,
		noKind: expected(documents.String),
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
		noKey:  errNoDocument,
		noKind: missingOr("not an object"),
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
		if vals, err = p.Values(d.Root(), longer(c)); err != nil {
			failed(c, err)
			return
		}
	}
	if c.W.Proto == 3 { // RESP3 has one more array around the reply
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

// expansion is the form of values in RESP3.
type expansion int

const (
	asStrings expansion = iota // all as JSON
	expandOne                  // arrays and objects as JSON
	expandAll
)

// expansionOf parses the argument of FORMAT; plain is the command's word for plain JSON.
func expansionOf(arg []byte, plain string) (x expansion, ok bool) {
	switch string(arg) {
	case plain:
		return asStrings, true
	case "EXPAND1":
		return expandOne, true
	case "EXPAND":
		return expandAll, true
	}
	return 0, false
}

// reply writes a value in that form.
func (x expansion) reply(w *resp.Writer, v documents.Value) {
	kind := v.Kind()
	isContainer := kind == documents.Array || kind == documents.Object
	switch {
	case x == asStrings, x == expandOne && isContainer:
		w.Bulk(v.AppendJSON(nil, documents.Layout{}))
		return
	case !isContainer:
		scalar(w, v)
		return
	case kind == documents.Object:
		w.Map(v.Len())
	default:
		w.Array(v.Len())
	}
	v.Elements(func(_ int, name string, element documents.Value) bool {
		if kind == documents.Object {
			w.BulkString(name)
		}
		x.reply(w, element)
		return true
	})
}

// longer returns the function to call when finding values takes long.
func longer(c *command.Ctx) func() {
	return func() { c.Long(command.LongFrom, command.LongFrom) }
}

// longValues must be called before a walk through whole values.
func longValues(c *command.Ctx, results ...[]documents.Value) {
	n := textLen(results) / elementSize
	c.Long(n, n)
}

// textLen estimates the length of values as JSON.
func textLen(results [][]documents.Value) (n int) {
	for _, vals := range results {
		for _, v := range vals {
			n += v.Memory()
		}
	}
	return n + n/4
}

// elementSize is how many bytes of a document take as long as an element of another value.
const elementSize = 16

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
		w.Double(v.Float())
	} else {
		w.Double(v.Float())
	}
}

func cmdGet(c *command.Ctx) {
	var l documents.Layout
	var paths []string
	x := asStrings
	for o := c.Options(2); o.Next(); {
		var ok bool
		switch {
		case o.Is("noescape"): // an option of the first version, which escaped other characters
		case !o.Is("indent") && !o.Is("newline") && !o.Is("space") && !o.Is("format"):
			paths = append(paths, string(o.Word()))
		case o.Is("format") && c.W.Proto != 3 && len(paths) == 0:
			c.Err(errFormat)
			return
		case !o.More():
			wrongArgs(c)
			return
		case o.Is("indent"):
			l.Indent = string(o.Arg())
		case o.Is("newline"):
			l.Newline = string(o.Arg())
		case o.Is("space"):
			l.Space = string(o.Arg())
		default:
			if x, ok = expansionOf(o.Arg(), "STRING"); !ok {
				c.Err(errReplyForm)
				return
			}
		}
	}
	if c.W.Proto != 3 {
		x = asStrings
	}
	d, ok := document(c, c.Args[1])
	switch {
	case !ok:
	case d == nil:
		c.W.Null()
	case x != asStrings:
		expand(c, d, paths, x)
	default:
		print(c, d, paths, l)
	}
}

// parsedPaths parses texts as paths and drops duplicates; err is the error of the first invalid one. Without a text
// it returns the legacy root.
func parsedPaths(texts []string) (paths []*path.Path, err error) {
	if len(texts) == 0 {
		return []*path.Path{path.LegacyRoot}, nil
	}
	for _, text := range texts {
		p, e := path.Parse(text)
		if e != nil {
			if err == nil {
				err = e
			}
			continue
		}
		if !slices.ContainsFunc(paths, func(q *path.Path) bool { return q.Text == p.Text }) {
			paths = append(paths, p)
		}
	}
	return paths, err
}

// expand replies with the values of each path, as values of RESP3.
func expand(c *command.Ctx, d *documents.Document, texts []string, x expansion) {
	paths, err := parsedPaths(texts)
	if err != nil {
		failed(c, err)
		return
	}
	results := make([][]documents.Value, len(paths))
	for i, p := range paths {
		if results[i], err = p.Values(d.Root(), longer(c)); err != nil {
			failed(c, err)
			return
		}
		if !fitsReply(c, results[i]) {
			return
		}
	}
	longValues(c, results...)
	c.W.Array(len(paths))
	for _, vals := range results {
		c.W.Array(len(vals))
		for _, v := range vals {
			x.reply(c.W, v)
		}
	}
}

// print replies with the values of the paths as JSON. If there are several paths, it skips invalid ones.
func print(c *command.Ctx, d *documents.Document, texts []string, l documents.Layout) {
	paths, err := parsedPaths(texts)
	if err != nil && len(texts) < 2 {
		failed(c, err)
		return
	}
	legacy := !slices.ContainsFunc(paths, func(p *path.Path) bool { return !p.Legacy })
	results := make([][]documents.Value, len(paths))
	for i, p := range paths {
		if results[i], err = selected(c, p, d.Root(), legacy); err != nil {
			failed(c, err)
			return
		}
		if legacy && len(results[i]) == 0 && !p.IsProjection() {
			c.Err(errNoPath)
			return
		}
	}
	longValues(c, results...)
	reply(c, paths, results, legacy, len(texts) > 1, l)
}

// selected returns the values of a path, or only the first one if first is set. For a projection it returns all
// computed values.
func selected(c *command.Ctx, p *path.Path, root documents.Value, first bool) ([]documents.Value, error) {
	if !first || p.IsProjection() {
		return p.Values(root, longer(c))
	}
	v, ok, err := p.First(root, longer(c))
	if !ok {
		return nil, err
	}
	return []documents.Value{v}, err
}

// reply writes the results of paths as one JSON text, or an error if the text is too long.
func reply(c *command.Ctx, paths []*path.Path, results [][]documents.Value, legacy, named bool, l documents.Layout) {
	l.Limit = c.Host.MaxBulk()
	one := func(dst []byte, i, level int) []byte {
		if legacy && !paths[i].IsProjection() {
			return results[i][0].AppendNested(dst, l, level)
		}
		return documents.NewArray(results[i]...).AppendNested(dst, l, level)
	}
	dst := make([]byte, 0, textLen(results))
	if !named {
		bounded(c, one(dst, 0, 0), l)
		return
	}
	dst = append(dst, '{')
	for i, p := range paths {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.AppendBreak(dst, 1)
		dst = append(append(documents.AppendQuoted(dst, p.Text), ':'), l.Space...)
		if dst = one(dst, i, 1); l.Full(dst) {
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
	p, parseErr := path.Parse(string(c.Args[last]))
	c.LongKeys(last - 1)
	size := 0
	c.W.Array(last - 1)
	for i := 1; i < last; i++ {
		c.WarmKeys(i, 1)
		e := c.Read(c.Args[i])
		if e == nil || e.Type() != engine.JSON || parseErr != nil {
			c.W.Null()
			continue
		}
		vals, err := selected(c, p, e.JSON().Root(), p.Legacy)
		if err != nil || p.Legacy && len(vals) == 0 && !p.IsProjection() {
			c.W.Null()
			continue
		}
		size += textLen([][]documents.Value{vals})
		c.Long(size/elementSize, size/elementSize)
		reply(c, []*path.Path{p}, [][]documents.Value{vals}, p.Legacy, false, documents.Layout{})
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
	want, ok := parsed(c, c.Args[3])
	if !ok {
		return
	}
	if d == nil {
		c.Err(errNoPath)
		return
	}
	vals, err := selected(c, p, d.Root(), p.Legacy)
	longValues(c, vals)
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
		c.Err(errNoPath)
	case vals[0].Kind() != documents.Array:
		c.Err(expected(documents.Array))
	default:
		c.W.Int(int64(indexOf(vals[0], want, bounds[0], bounds[1])))
	}
}

// indexOf returns the index of the first element equal to want, from start up to but not including stop, or -1.
// Negative bounds count from the end, a start after the end is the last element, and a stop of 0 is the end.
func indexOf(array, want documents.Value, start, stop int64) int {
	n := int64(array.Len())
	if stop == 0 {
		stop = n
	}
	start, stop = clamped(start, n), fromEnd(stop, n)
	found := -1
	if start >= stop {
		return found
	}
	array.ElementsFrom(int(start), func(i int, _ string, element documents.Value) bool {
		if int64(i) >= stop {
			return false
		}
		if documents.Same(element, want) {
			found = i
		}
		return found < 0
	})
	return found
}

// fromEnd converts a client's index into n elements, which may count from the end, to one from 0 to n.
func fromEnd(i, n int64) int64 {
	if i < 0 {
		i = max(i, -n) + n
	}
	return min(i, n)
}

// clamped is fromEnd, but at most the last element.
func clamped(i, n int64) int64 { return max(min(fromEnd(i, n), n-1), 0) }

func cmdResp(c *command.Ctx) {
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
	vals, err := selected(c, p, d.Root(), p.Legacy)
	longValues(c, vals)
	switch {
	case err != nil:
		failed(c, err)
	case p.Legacy && !p.IsProjection() && len(vals) == 0:
		c.Err(errNoPath)
	case p.Legacy && !p.IsProjection():
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
	case documents.Number, documents.Integer:
		if i, ok := v.Int(); ok {
			w.Int(i)
		} else if w.Proto == 3 {
			w.Double(v.Float())
		} else {
			w.Bulk(strconv.AppendFloat(nil, v.Float(), 'g', 17, 64))
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
		if vals, err = selected(c, p, d.Root(), p.Legacy); err != nil {
			failed(c, err)
			return
		}
	}
	if p.Legacy {
		switch {
		case d == nil:
			c.W.Int(0)
		case len(vals) == 0:
			c.Err(errNoPath)
		default:
			c.W.Int(int64(vals[0].Memory()))
		}
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
