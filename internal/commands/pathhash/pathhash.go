// Package pathhash has the commands on path hashes, which came with Valkey 9.2: fields under paths, and the search for the
// paths that are prefixes of a text. read.go and write.go have the handlers, and kind.go registers path hashes for
// commands on keys of any type.
//
// All of them read all arguments before they change anything. They are journalled unchanged, because their effect follows
// from their arguments and the value.
package pathhash

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/pathhash"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(commands) }

const (
	quick = command.ReadOnly | command.Fast
	grows = command.Write | command.DenyOOM | command.Fast

	perPath = "O(L), where L is the length of the path"
	lookups = "O(L+M), where L is the length of all paths together and M the number of fields"
	matches = "O(L+M), where L is the length of the text and M the size of the reply"
	chosen  = "[WITHVALUES | FIELDS numfields field [field ...]]"
)

var (
	read   = command.Keys("i1+r0/1/0[RO,ACCESS]")
	update = command.Keys("i1+r0/1/0[RW,UPDATE]")
	remove = command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]")
)

var commands = []*command.Command{
	{Name: "phcard", Group: "pathhash", Since: "9.2.0", Arity: 2, Flags: quick, ACL: command.CatPathHash, Keys: read,
		Summary: "Counts the paths of a path hash", Syntax: "key", Complexity: "O(1)", Do: cmdCard},
	{Name: "phdel", Group: "pathhash", Since: "9.2.0", Arity: -3, Flags: command.Write, ACL: command.CatPathHash, Keys: remove,
		Summary: "Removes fields of a path, or the path, from a path hash", Syntax: "key path [field [field ...]]",
		Complexity: "O(L+N), where L is the length of the path and N the number of fields removed", Do: cmdDel},
	{Name: "phdelprefix", Group: "pathhash", Since: "9.2.0", Arity: 3, Flags: command.Write, ACL: command.CatPathHash, Keys: remove,
		Summary: "Removes the paths of a path hash that begin with a prefix", Syntax: "key prefix",
		Complexity: "O(N), where N is the size of all that is removed", Do: cmdDelPrefix},
	{Name: "phexists", Group: "pathhash", Since: "9.2.0", Arity: 3, Flags: quick, ACL: command.CatPathHash, Keys: read,
		Summary: "Reports whether a path hash has a path", Syntax: "key path", Complexity: perPath, Do: cmdExists},
	{Name: "phget", Group: "pathhash", Since: "9.2.0", Arity: -4, Flags: quick, ACL: command.CatPathHash, Keys: read,
		Summary: "Returns fields of a path in a path hash", Syntax: "key path field [field ...]", Complexity: lookups, Do: cmdGet},
	{Name: "phgetall", Group: "pathhash", Since: "9.2.0", Arity: 3, Flags: command.ReadOnly, ACL: command.CatPathHash, Keys: read,
		Summary: "Returns all fields of a path in a path hash", Syntax: "key path",
		Complexity: "O(L+N), where L is the length of the path and N the number of its fields", Do: cmdGetAll},
	{Name: "phlongest", Group: "pathhash", Since: "9.2.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatPathHash, Keys: read,
		Summary: "Finds the longest path of a path hash that is a prefix of a text", Syntax: "key query [LENGTH] " + chosen,
		Complexity: matches, Do: cmdLongest},
	{Name: "phmget", Group: "pathhash", Since: "9.2.0", Arity: -6, Flags: quick, ACL: command.CatPathHash, Keys: read,
		Summary:    "Returns fields of several paths in a path hash",
		Syntax:     "key path FIELDS numfields field [field ...] [path FIELDS numfields field [field ...] ...]",
		Complexity: lookups, Do: cmdMget},
	{Name: "phmset", Group: "pathhash", Since: "9.2.0", Arity: -7, Flags: grows, ACL: command.CatPathHash, Keys: update,
		Summary:    "Sets fields of several paths in a path hash",
		Syntax:     "key path FIELDS numfields field value [field value ...] [path FIELDS numfields field value [field value ...] ...]",
		Complexity: lookups, Do: cmdMset},
	{Name: "phprefixes", Group: "pathhash", Since: "9.2.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatPathHash, Keys: read,
		Summary: "Finds the paths of a path hash that are prefixes of a text",
		Syntax:  "key query [LENGTHS] " + chosen + " [COUNT count] [MAXPATHLEN bytes]", Complexity: matches, Do: cmdPrefixes},
	{Name: "phscan", Group: "pathhash", Since: "9.2.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatPathHash, Keys: read,
		Summary: "Iterates over the paths of a path hash in order", Syntax: "key cursor [PREFIX prefix] [COUNT count] [WITHVALUES]",
		Complexity: "O(N) for a call, where N is the size of its reply", Do: cmdScan},
	{Name: "phset", Group: "pathhash", Since: "9.2.0", Arity: -7, Flags: grows, ACL: command.CatPathHash, Keys: update,
		Summary:    "Sets fields of a path in a path hash",
		Syntax:     "key path [FNX | FXX] FIELDS numfields field value [field value ...]",
		Complexity: lookups, Do: cmdSet},
}

// The errors for a number that is below its minimum.
const (
	errFrom0 command.Error = "ERR value is out of range, value must between 0 and 9223372036854775807"
	errFrom1 command.Error = "ERR value is out of range, value must between 1 and 9223372036854775807"
)

// number reads an argument that is at least min, 0 or 1. If it is not, it writes an error and ok is false.
func number(c *command.Ctx, arg []byte, min int64) (n int64, ok bool) {
	n, ok = resp.ParseInt(arg)
	switch {
	case !ok:
		c.Err(command.ErrNotInteger)
	case n < min && min == 0:
		c.Err(errFrom0)
	case n < min:
		c.Err(errFrom1)
	default:
		return n, true
	}
	return 0, false
}

// fieldArgs reads FIELDS, which is the present argument, its number, and step arguments for each field. If that is
// wrong, it writes an error and ok is false.
func fieldArgs(c *command.Ctx, o *command.OptionArgs, step int) (args [][]byte, ok bool) {
	if !o.Is("fields") || !o.More() {
		c.Err(command.ErrSyntax)
		return nil, false
	}
	n, ok := number(c, o.Arg(), 1)
	if !ok {
		return nil, false
	}
	if n > int64(o.Left()/step) {
		c.Err(command.ErrSyntax)
		return nil, false
	}
	return o.Take(int(n) * step), true
}

// group are the fields of a path among the arguments of a command.
type group struct {
	path []byte
	args [][]byte // fields, or fields and values
}

// groups reads the arguments of PHMGET and PHMSET.
func groups(c *command.Ctx, step int) (list []group, ok bool) {
	for o := c.Options(2); o.Next(); {
		g := group{path: o.Word()}
		if !o.Next() {
			c.Err(command.ErrSyntax)
			return nil, false
		}
		if g.args, ok = fieldArgs(c, &o, step); !ok {
			return nil, false
		}
		list = append(list, g)
	}
	return list, true
}

// none is the value of a missing key.
var none = pathhash.New()

// tree returns the path hash that a command reads, an empty one if there is no key. If the key has another type, it
// writes an error and ok is false.
func tree(c *command.Ctx) (t *pathhash.Tree, ok bool) {
	e, ok := c.ReadAs(c.Args[1], engine.PathHash)
	switch {
	case !ok:
		return nil, false
	case e == nil:
		return none, true
	}
	return e.PathHash(), true
}
