// Package json has the commands on JSON documents.
package json

import (
	"fmt"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(jsonCommands) }

const (
	reads  = command.ReadOnly | command.Module
	writes = command.Write | command.Module

	linear = "O(N), where N is the size of the values that the path selects, or of all that it looks at"
	places = "O(N), where N is the number of values that the path looks at"
)

var jsonCommands = []*command.Command{
	{Name: "json.arrappend", Group: "json", Since: "1.0.0", Arity: -3, Flags: writes | command.DenyOOM,
		ACL: command.CatJSON, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Appends values to JSON arrays", Syntax: "key path json [json ...]",
		Complexity: "O(1) for each value and array", Do: changing(cmdArrAppend)},
	{Name: "json.arrindex", Group: "json", Since: "1.0.0", Arity: -4, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Finds a value in JSON arrays", Syntax: "key path json-value [start [stop]]",
		Complexity: "O(N), where N is the size of the arrays", Do: cmdArrIndex},
	{Name: "json.arrinsert", Group: "json", Since: "1.0.0", Arity: -5, Flags: writes | command.DenyOOM,
		ACL: command.CatJSON, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Inserts values into JSON arrays", Syntax: "key path index json [json ...]",
		Complexity: "O(N), where N is the number of pages of the array", Do: changing(cmdArrInsert)},
	{Name: "json.arrlen", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Counts the elements of JSON arrays", Syntax: "key [path]", Complexity: places, Do: cmdArrLen},
	{Name: "json.arrpop", Group: "json", Since: "1.0.0", Arity: -2, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns an element of JSON arrays",
		Syntax:  "key [FORMAT <STRINGS | EXPAND1 | EXPAND>] [path [index]]", Complexity: places, Do: changing(cmdArrPop)},
	{Name: "json.arrtrim", Group: "json", Since: "1.0.0", Arity: 5, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes all but a range of the elements of JSON arrays", Syntax: "key path start stop",
		Complexity: "O(N), where N is the number of elements removed", Do: changing(cmdArrTrim)},
	{Name: "json.clear", Group: "json", Since: "2.0.0", Arity: -2, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Empties JSON arrays and objects, and sets numbers to 0", Syntax: "key [path]",
		Complexity: linear, Do: changing(cmdClear)},
	{Name: "json.debug", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, Summary: "Looks into JSON documents",
		Complexity: "Depends on the sub-command", ACL: command.CatJSON, Subs: []*command.Command{
			{Name: "json.debug|help", Group: "json", Since: "1.0.0", Arity: 2, Flags: reads, ACL: command.CatJSON,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdDebugHelp},
			{Name: "json.debug|memory", Group: "json", Since: "1.0.0", Arity: -3, Flags: reads,
				ACL: command.CatJSON, Keys: command.Keys("i2+r0/1/0[RO,ACCESS]"),
				Summary: "Tells how many bytes of memory JSON values take", Syntax: "key [path]", Complexity: places,
				Do: cmdDebugMemory},
		}},
	{Name: "json.del", Group: "json", Since: "1.0.0", Arity: -2, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes JSON values", Syntax: "key [path]", Complexity: linear, Do: changing(cmdDel)},
	{Name: "json.forget", Group: "json", Since: "1.0.0", Arity: -2, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes JSON values", Syntax: "key [path]", Complexity: linear, Do: changing(cmdDel)},
	{Name: "json.get", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns JSON values",
		Syntax: "key [INDENT indent] [NEWLINE newline] [SPACE space] [FORMAT <STRING | EXPAND1 | EXPAND>] " +
			"[path [path ...]]",
		Complexity: linear, Do: cmdGet},
	{Name: "json.merge", Group: "json", Since: "2.6.0", Arity: -4, Flags: writes | command.DenyOOM,
		ACL: command.CatJSON, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Merges a value into JSON values", Syntax: "key path json [FORMAT <STRING | JSON | BSON>]",
		Complexity: "O(N), where N is the size of what changes", Do: changing(cmdMerge)},
	{Name: "json.mget", Group: "json", Since: "1.0.0", Arity: -3, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r-2/1/0[RO,ACCESS]"),
		Summary: "Returns JSON values of several keys", Syntax: "key [key ...] path", Complexity: linear, Do: cmdMget},
	{Name: "json.mset", Group: "json", Since: "2.6.0", Arity: -4, Flags: writes | command.DenyOOM,
		ACL: command.CatJSON, Keys: command.Keys("i1+r-1/3/0[RW,UPDATE]"),
		Summary: "Sets JSON values of several keys", Syntax: "key path json [key path json ...]",
		Complexity: "O(N), where N is the size of the values", Do: changing(cmdMset)},
	{Name: "json.numincrby", Group: "json", Since: "1.0.0", Arity: 4, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Adds to JSON numbers", Syntax: "key path number", Complexity: places, Do: changing(cmdNumIncrBy)},
	{Name: "json.nummultby", Group: "json", Since: "1.0.0", Arity: 4, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Multiplies JSON numbers", Syntax: "key path number", Complexity: places, Do: changing(cmdNumMultBy)},
	{Name: "json.numpowby", Group: "json", Since: "1.0.0", Arity: 4, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Raises JSON numbers to a power", Syntax: "key path number", Complexity: places, Do: changing(cmdNumPowBy)},
	{Name: "json.objkeys", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Lists the names of the members of JSON objects", Syntax: "key [path]", Complexity: linear,
		Do: cmdObjKeys},
	{Name: "json.objlen", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Counts the members of JSON objects", Syntax: "key [path]", Complexity: places, Do: cmdObjLen},
	{Name: "json.resp", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns JSON values as replies", Syntax: "key [path]", Complexity: linear, Do: cmdResp,
		Deprecated: "2.6", Instead: "`JSON.GET`"},
	{Name: "json.set", Group: "json", Since: "1.0.0", Arity: -4, Flags: writes | command.DenyOOM,
		ACL: command.CatJSON, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Sets JSON values",
		Syntax: "key path json [<NX | XX>] [FPHA <BF16 | FP16 | FP32 | FP64>] " +
			"[FORMAT <STRING | JSON | BSON>]",
		Complexity: "O(N), where N is the size of the value, for each place that the path selects", Do: changing(cmdSet)},
	{Name: "json.strappend", Group: "json", Since: "1.0.0", Arity: -3, Flags: writes | command.DenyOOM,
		ACL: command.CatJSON, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Appends to JSON strings", Syntax: "key [path] json-string",
		Complexity: "O(N), where N is the length of the strings", Do: changing(cmdStrAppend)},
	{Name: "json.strlen", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the lengths of JSON strings in bytes", Syntax: "key [path]", Complexity: places,
		Do: cmdStrLen},
	{Name: "json.toggle", Group: "json", Since: "2.0.0", Arity: 3, Flags: writes, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Turns JSON booleans into their opposites", Syntax: "key path", Complexity: places, Do: changing(cmdToggle)},
	{Name: "json.type", Group: "json", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatJSON,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the types of JSON values", Syntax: "key [path]", Complexity: places, Do: cmdType},
}

// Errors of these commands.
const (
	errNoDocument command.Error = "ERR could not perform this operation on a key that doesn't exist"
	errKind       command.Error = "Existing key has wrong Redis type"
	errNotAtRoot  command.Error = "ERR new objects must be created at the root"
	errStaticPath command.Error = "Err wrong static path"
	errRange      command.Error = "ERR array index out of range"
	errBounds     command.Error = "ERR index out of bounds"
	errProjection command.Error = "ERR computed/projection expressions are only supported by JSON.GET/JSON.MGET/JSON.RESP"
	errOverflow   command.Error = "ERR numeric overflow"
	errNoNumber   command.Error = "ERR result is not a number"
	errTooDeep    command.Error = "ERR recursion limit exceeded"
	errFormat     command.Error = "ERR FORMAT argument is not supported on RESP2"
	errReplyForm  command.Error = "ERR wrong reply format"
	errSetForm    command.Error = "ERR wrong format"
	errLegacyForm command.Error = "Legacy paths are supported only with FORMAT STRINGS"
	errFloatType  command.Error = "ERR invalid FPHA type"
	errTooLarge   command.Error = "ERR the result would be longer than proto-max-bulk-len"
	errNoPath     command.Error = "ERR Path does not exist"
	errWrongArgs  command.Error = "ERR wrong number of arguments for '%s' command"
)

// missingOr returns the error for a legacy path that leads to no value of the expected kind.
func missingOr(what string) command.Error { return errNoPath + command.Error(" or "+what) }

// expected returns the error for a value of another kind.
func expected(want documents.Kind) command.Error {
	return command.Error("WRONGTYPE wrong type of path value - expected " + want.String())
}

// printed returns a text as it can stand in an error.
func printed(s string) string {
	const most = 256
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}

// failed writes an error of a parser or of an evaluation.
func failed(c *command.Ctx, err error) { c.Err(command.Error(printed(err.Error()))) }

// document returns the document under the key that the command reads, nil if there is none. If the key is of another
// type, it writes an error and ok is false.
func document(c *command.Ctx, key []byte) (d *documents.Document, ok bool) {
	e := c.Read(key)
	switch {
	case e == nil:
		return nil, true
	case e.Type() != engine.JSON:
		c.Err(errKind)
		return nil, false
	}
	return e.JSON(), true
}

// toWrite returns the entry of the key that the command writes, nil if there is none. If the key is of another type,
// it writes an error and ok is false.
func toWrite(c *command.Ctx, key []byte) (e *engine.Entry, ok bool) {
	e = c.G.Write(c.DB, key)
	if e != nil && e.Type() != engine.JSON {
		c.Err(errKind)
		return nil, false
	}
	return e, true
}

// pathAt returns the path in argument i, or the legacy root without that argument. If the path is invalid, it writes
// an error and ok is false.
func pathAt(c *command.Ctx, i int) (p *path.Path, ok bool) {
	if i >= len(c.Args) {
		return path.LegacyRoot, true
	}
	p, err := path.Parse(string(c.Args[i]))
	if err != nil {
		failed(c, err)
		return nil, false
	}
	return p, true
}

// selecting is pathAt for a command that cannot use a projection.
func selecting(c *command.Ctx, i int) (p *path.Path, ok bool) {
	if p, ok = pathAt(c, i); ok && p.IsProjection() {
		c.Err(errProjection)
		return nil, false
	}
	return p, ok
}

// parsed returns the value of an argument that is JSON. If it is invalid, it writes an error and ok is false.
func parsed(c *command.Ctx, arg []byte) (v documents.Value, ok bool) {
	return parsedAs(c, arg, documents.Parse, false)
}

// parsedAs is parsed for another format. inPlace is as in parsedAll.
func parsedAs(c *command.Ctx, arg []byte, parse func([]byte) (documents.Value, error), inPlace bool) (v documents.Value, ok bool) {
	if isShort(len(arg)) {
		v, err := parse(arg)
		if err != nil {
			failed(c, err)
		}
		return v, err == nil
	}
	vals, ok := parsedAll(c, [][]byte{arg}, parse, inPlace)
	if !ok {
		return v, false
	}
	return vals[0], true
}

// isShort reports whether n bytes can be parsed in a short time.
func isShort(n int) bool { return n/elementSize < command.LongFrom }

// parsedAll parses arguments. It parses long ones in an offloaded call, and with inPlace the command uses them there
// too. If one cannot be parsed, it writes the error and returns false.
func parsedAll(c *command.Ctx, args [][]byte, parse func([]byte) (documents.Value, error), inPlace bool) (vals []documents.Value, ok bool) {
	type result struct {
		vals []documents.Value
		err  error
	}
	n := 0
	for _, arg := range args {
		n += len(arg)
	}
	all := func() (r result) {
		for _, arg := range args {
			v, err := parse(arg)
			if err != nil {
				return result{err: err}
			}
			v.Depth() // computes the depth, which the value stores
			r.vals = append(r.vals, v)
		}
		return r
	}
	if inPlace {
		c.LongChange(n/elementSize, n/elementSize)
	}
	var r result
	if inPlace || isShort(n) || onCopies(c) {
		r = all()
	} else {
		c.Long(n/elementSize, n/elementSize)
		r = command.Result(c, all)
	}
	if r.err != nil {
		failed(c, r.err)
	}
	return r.vals, r.err == nil
}

// fitsTimes writes an error and returns false if n copies of a text would be too large.
func fitsTimes(c *command.Ctx, n int, text []byte) bool {
	if n > 1 && len(text) > c.Host.MaxBulk()/n && !c.Origin.In(command.Accepted) {
		c.Err(errTooLarge)
		return false
	}
	return true
}

// fitsReply writes an error and returns false if values, which may contain each other, are too large together.
func fitsReply(c *command.Ctx, vals []documents.Value) bool {
	left := expansionRoom * c.Host.MaxBulk()
	for _, v := range vals {
		if left -= v.Memory(); left < 0 {
			c.Err(errTooLarge)
			return false
		}
	}
	return true
}

// expansionRoom is the limit of the values in a reply, as a multiple of the longest string.
const expansionRoom = 2

// atMost writes an error and returns false if the command has more than n arguments.
func atMost(c *command.Ctx, n int) bool {
	if len(c.Args) > n {
		wrongArgs(c)
		return false
	}
	return true
}

// wrongArgs writes the error for too few or too many arguments.
func wrongArgs(c *command.Ctx) { c.Err(command.Error(fmt.Sprintf(string(errWrongArgs), c.Cmd.Name))) }
