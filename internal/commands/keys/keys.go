// Package keys has the commands on keys of any type, and on whole databases.
package keys

import (
	"iter"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(genericCommands) }

var genericCommands = []*command.Command{
	{Name: "copy", Group: "generic", Since: "6.2.0", Arity: -3, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS] i2+r0/1/0[OW,UPDATE]"),
		Summary: "Copies a key, with its time to live", Syntax: "source destination [DB destination-db] [REPLACE]",
		Complexity: "O(N), where N is the number of elements of the value", Databases: copyDatabase, Do: cmdCopy},
	{Name: "del", Group: "generic", Since: "1.0.0", Arity: -2, Flags: command.Write, ACL: command.CatKeyspace,
		Keys:    command.Keys("i1+r-1/1/0[RM,DELETE]"),
		Summary: "Deletes keys",
		Syntax:  "key [key ...]", Complexity: "O(N), where N is the number of keys", Do: cmdDel},
	{Name: "exists", Group: "generic", Since: "1.0.0", Arity: -2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r-1/1/0[RO]"),
		Summary: "Counts how many of the keys exist",
		Syntax:  "key [key ...]", Complexity: "O(N), where N is the number of keys", Do: cmdExists},
	{Name: "keys", Group: "generic", Since: "1.0.0", Arity: 2,
		Flags:   command.ReadOnly | command.WholeKeyspace | command.AllKeys,
		ACL:     command.CatKeyspace | command.CatDangerous,
		Summary: "Lists all keys that match a pattern", Syntax: "pattern",
		Complexity: "O(N), where N is the number of keys in the database", Do: cmdKeys},
	{Name: "move", Group: "generic", Since: "1.0.0", Arity: 3, Flags: command.Write | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Moves a key to another database", Syntax: "key db", Complexity: "O(1)",
		Databases: func([][]byte) []int { return []int{2} }, Do: cmdMove},
	objectCommand,
	{Name: "randomkey", Group: "generic", Since: "1.0.0", Arity: 1,
		Flags:   command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:     command.CatKeyspace,
		Summary: "Returns a random key of the database", Complexity: "O(1)", Do: cmdRandomkey},
	{Name: "rename", Group: "generic", Since: "1.0.0", Arity: 3, Flags: command.Write | command.FollowsKeys,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[OW,UPDATE]"),
		Summary: "Renames a key, replacing any key of the new name",
		Syntax:  "key newkey", Complexity: "O(1)", Do: cmdRename},
	{Name: "renamenx", Group: "generic", Since: "1.0.0", Arity: 3,
		Flags:   command.Write | command.Fast | command.FollowsKeys,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[OW,INSERT]"),
		Summary: "Renames a key if the new name is free", Syntax: "key newkey", Complexity: "O(1)", Do: cmdRenamenx},
	{Name: "scan", Group: "generic", Since: "2.8.0", Arity: -2,
		Flags:   command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:     command.CatKeyspace,
		Summary: "Iterates over the keys of the database", Syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
		Complexity: "O(1) for every call, O(N) for a whole walk, where N is the number of keys in the database", Do: cmdScan, InSteps: true},
	{Name: "touch", Group: "generic", Since: "3.2.1", Arity: -2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r-1/1/0[RO]"),
		Summary: "Updates the access time of keys and counts those that exist", Syntax: "key [key ...]",
		Complexity: "O(N), where N is the number of keys", Do: cmdTouch},
	{Name: "type", Group: "generic", Since: "1.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RO]"),
		Summary: "Returns the type of a value", Syntax: "key", Complexity: "O(1)", Do: cmdType},
	{Name: "unlink", Group: "generic", Since: "4.0.0", Arity: -2, Flags: command.Write | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r-1/1/0[RM,DELETE]"),
		Summary: "Deletes keys and frees their memory in the background", Syntax: "key [key ...]",
		Complexity: "O(N), where N is the number of keys", Do: cmdDel},
}

const (
	errMoveInCluster command.Error = "ERR MOVE is not allowed in cluster mode"
	errCopyInCluster command.Error = "ERR Copying to another database is not allowed in cluster mode"
	errIntRange      command.Error = "ERR value is out of range, value must between -2147483648 and 2147483647"
)

// copyDatabase returns the index of the database that COPY names.
func copyDatabase(args [][]byte) (indices []int) {
	for o := command.OptionsIn(args[min(3, len(args)):]); o.Next(); {
		if o.Is("db") && o.More() {
			o.Arg()
			indices = append(indices, len(args)-o.Left()-1)
		}
	}
	return indices
}

func cmdCopy(c *command.Ctx) {
	src, dst := c.Args[1], c.Args[2]
	db, replace := c.DB, false
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("replace"):
			replace = true
		case o.Is("db") && o.More():
			var ok bool
			if db, ok = database(c, o.Arg()); !ok {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if db != 0 && c.ClusterMode() && c.Databases() == 1 {
		c.Err(errCopyInCluster)
		return
	}
	if db == c.DB && string(src) == string(dst) {
		c.Err(command.ErrSameObject)
		return
	}
	e := c.Read(src)
	if e == nil {
		c.W.Int(0)
		return
	}
	e.Load()
	long(c, e)
	value := command.Result(c, func() *engine.Value {
		if c.Offload != nil {
			return e.TakeValue()
		}
		return e.CopyValue()
	})
	old := c.G.Write(db, dst)
	if old != nil {
		if !replace {
			c.W.Int(0)
			return
		}
		c.G.Remove(old, engine.EventNone, "")
	}
	copied := c.G.Copy(e, value, db, dst)
	c.G.Changed(copied, engine.EventGeneric, "copy_to")
	if old != nil {
		c.G.Overwritten(copied, old.Type(), copied.Type())
	}
	c.W.Int(1)
}

// long calls Ctx.Long for a walk through the value of an entry.
func long(c *command.Ctx, e *engine.Entry) {
	if e.Type() == engine.String {
		c.LongBytes(len(e.Bytes()))
		return
	}
	n := e.MemoryUsage() / elementSize
	c.Long(n, n)
}

// elementSize is about how many bytes an element takes.
const elementSize = 32

// database reads the number of a database; if it is invalid, it writes an error and ok is false.
func database(c *command.Ctx, arg []byte) (db int, ok bool) {
	n, ok := c.Int(arg)
	limit := c.Databases()
	if limit == 1 && c.ClusterMode() {
		limit = c.Host.Keyspace().Databases() // larger numbers get another error
	}
	switch {
	case !ok:
		return 0, false
	case n < math.MinInt32 || n > math.MaxInt32:
		c.Err(errIntRange)
		return 0, false
	case n < 0 || n >= int64(limit):
		c.Err(command.ErrDBRange)
		return 0, false
	}
	return int(n), true
}

func cmdDel(c *command.Ctx) {
	n := int64(0)
	for i := 1; i < len(c.Args); i++ {
		c.WarmKeys(i, 1)
		if e := c.G.Write(c.DB, c.Args[i]); e != nil {
			c.G.Remove(e, engine.EventGeneric, "del")
			n++
		}
	}
	c.W.Int(n)
}

func cmdExists(c *command.Ctx) { countExisting(c, false) }
func cmdTouch(c *command.Ctx)  { countExisting(c, true) }

// countExisting replies how many of the keys in the arguments exist.
func countExisting(c *command.Ctx, touch bool) {
	c.LongKeys(len(c.Args) - 1)
	n := int64(0)
	for i := 1; i < len(c.Args); i++ {
		c.WarmKeys(i, 1)
		if c.Look(c.Args[i], touch) != nil {
			n++
		}
	}
	c.W.Int(n)
}

func cmdKeys(c *command.Ctx) {
	o := command.ScanOptions{Pattern: c.Args[1]}
	if string(o.Pattern) == "*" {
		o.Pattern = nil
	}
	c.Long(c.G.Len(c.DB), c.G.Len(c.DB))
	var scratch []byte
	foreign := c.Host.Foreign()
	mark, n := c.W.Defer(), 0
	for key := range allKeys(c) {
		scratch = append(scratch[:0], key...)
		if o.Match(scratch) && (foreign == nil || !foreign(scratch)) {
			c.W.Bulk(scratch)
			n++
		}
	}
	c.W.EndArray(mark, n)
}

// allKeys iterates over the names of all keys of the database.
func allKeys(c *command.Ctx) iter.Seq[string] {
	if c.Offload != nil {
		return c.Offload.Keys
	}
	return func(yield func(string) bool) {
		c.G.Each(c.DB, func(e *engine.Entry) bool { return yield(e.Key()) })
	}
}

func cmdMove(c *command.Ctx) {
	if c.ClusterMode() && c.Databases() == 1 {
		c.Err(errMoveInCluster)
		return
	}
	key := c.Args[1]
	db, ok := database(c, c.Args[2])
	if !ok {
		return
	}
	if db == c.DB {
		c.Err(command.ErrSameObject)
		return
	}
	e := c.G.Write(c.DB, key)
	if e == nil || c.G.Write(db, key) != nil {
		c.W.Int(0)
		return
	}
	moved := c.G.Move(e, db, key)
	c.G.Vanished(c.DB, key, engine.EventGeneric, "move_from")
	c.G.Changed(moved, engine.EventGeneric, "move_to")
	c.W.Int(1)
}

func cmdRandomkey(c *command.Ctx) {
	if e := randomKey(c); e != nil {
		c.W.BulkString(e.Key())
	} else {
		c.W.Null()
	}
}

// randomTries is how often a random key is drawn if clients must not see some keys.
const randomTries = 100

// randomKey returns a random key that the client may see, nil if there is none.
func randomKey(c *command.Ctx) (found *engine.Entry) {
	foreign := c.Host.Foreign()
	if foreign == nil {
		return c.G.RandomKey(c.DB)
	}
	for range randomTries {
		if e := c.G.RandomKey(c.DB); e == nil || !foreign([]byte(e.Key())) {
			return e
		}
	}
	c.G.Each(c.DB, func(e *engine.Entry) bool { // few keys are visible
		if !foreign([]byte(e.Key())) {
			found = e
		}
		return found == nil
	})
	return found
}

func cmdRename(c *command.Ctx) {
	if _, ok := rename(c, true); ok {
		c.W.OK()
	}
}

func cmdRenamenx(c *command.Ctx) {
	switch renamed, ok := rename(c, false); {
	case !ok:
	case renamed:
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

// rename gives the key argument 1 the name argument 2, unless that key exists and replace is false. If the key to
// rename is missing, it writes an error and ok is false.
func rename(c *command.Ctx, replace bool) (renamed, ok bool) {
	from, to := c.Args[1], c.Args[2]
	e := c.G.Write(c.DB, from)
	if e == nil {
		c.Err(command.ErrNoKey)
		return false, false
	}
	if string(from) == string(to) {
		return false, true
	}
	e.LoadWhole()
	if !c.HoldsLinks(e) {
		return false, false
	}
	old := c.G.Write(c.DB, to)
	if old != nil {
		if !replace {
			return false, true
		}
		c.G.Remove(old, engine.EventNone, "")
	}
	moved := c.G.Move(e, c.DB, to)
	c.G.Vanished(c.DB, from, engine.EventGeneric, "rename_from")
	c.Renamed(moved, string(from))
	c.G.Changed(moved, engine.EventGeneric, "rename_to")
	if old != nil {
		c.G.Overwritten(moved, old.Type(), moved.Type())
	}
	return true, true
}

func cmdScan(c *command.Ctx) {
	o, ok := c.ScanOptions(1, command.ScanType)
	if !ok {
		return
	}
	// An unknown type is no error: no key has it.
	typ, known := engine.ParseType(string(o.TypeName))
	scanKeys(c, &o, func(e *engine.Entry) bool { return o.TypeName == nil || known && e.Type() == typ })
}

// scanKeys replies with the keys of a step through the database that wanted and the pattern accept.
func scanKeys(c *command.Ctx, o *command.ScanOptions, wanted func(e *engine.Entry) bool) {
	var found resp.Writer
	var scratch []byte
	n := 0
	foreign := c.Host.Foreign()
	visit := func(e *engine.Entry) {
		if !wanted(e) {
			return
		}
		scratch = append(scratch[:0], e.Key()...)
		if foreign == nil || !foreign(scratch) {
			found.Bulk(scratch)
			n++
		}
	}
	match := o.Matcher()
	next := c.ScanSteps(o, c.G.Len(c.DB), &found, func(cursor uint64, count int) uint64 {
		return c.G.Scan(c.DB, cursor, count, match, visit)
	})
	c.ScanReply(next, n, &found)
}

func cmdType(c *command.Ctx) {
	if e := c.Look(c.Args[1], false); e != nil {
		c.W.Simple(e.Type().String())
	} else {
		c.W.Simple("none")
	}
}
