package hashes

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/internal/elements"
)

// This file has the commands on the deadlines of fields; package elements has the handlers for hashes and sets.

var hashExpireCommands = []*command.Command{
	{Name: "hexpire", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets the time to live of fields in seconds",
		Syntax:     "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHexpire},
	{Name: "hexpireat", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when fields expire, as a Unix time in seconds",
		Syntax:     "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHexpireat},
	{Name: "hexpiretime", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast,
		ACL:        command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns when fields expire, as a Unix time in seconds",
		Syntax:     "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHexpiretime},
	{Name: "hgetdel", Group: "hash", Since: "8.0.0", Arity: -5, Flags: command.Write | command.Fast, ACL: command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary:    "Returns the values of fields and deletes the fields",
		Syntax:     "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHgetdel},
	{Name: "hgetex", Group: "hash", Since: "8.0.0", Arity: -5, Flags: command.Write | command.Fast, ACL: command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary:    "Returns the values of fields and sets their time to live",
		Syntax:     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHgetex},
	{Name: "hpersist", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.Write | command.Fast, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Removes the time to live of fields", Syntax: "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpersist},
	{Name: "hpexpire", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets the time to live of fields in milliseconds",
		Syntax:     "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpexpire},
	{Name: "hpexpireat", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when fields expire, as a Unix time in milliseconds",
		Syntax:     "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpexpireat},
	{Name: "hpexpiretime", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast,
		ACL:        command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns when fields expire, as a Unix time in milliseconds",
		Syntax:     "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpexpiretime},
	{Name: "hpttl", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the time to live of fields in milliseconds", Syntax: "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpttl},
	{Name: "hsetex", Group: "hash", Since: "8.0.0", Arity: -6, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Sets the values of fields and their time to live",
		Syntax: "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] " +
			"FIELDS numfields field value [field value ...]",
		Complexity: "O(N), where N is the number of fields to set", Do: cmdHsetex},
	{Name: "httl", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the time to live of fields in seconds", Syntax: "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHttl},
}

// fields describes fields for package elements.
var fields = elements.New(elements.Kind{
	Type: engine.Hash, Word: "field", Prefix: "h", Remove: "hdel",
	Of: func(_ *command.Ctx, e *engine.Entry, list [][]byte, step int) elements.Value {
		return e.Elements(list, step).Hash()
	},
})

// Words of journalled commands on fields.
var (
	hsetWord = []byte("HSET")
	hdelWord = []byte("HDEL")
)

// journalFields journals the values and deadlines of fields. pairs are fields and values in turn.
func journalFields(c *command.Ctx, h *hashes.Hash, pairs [][]byte) {
	if !c.G.Journals() {
		return
	}
	c.Journal(append([][]byte{hsetWord, c.Args[1]}, pairs...)...)
	for i := 0; i < len(pairs); i += 2 {
		if at, ok := h.Deadline(pairs[i]); ok && at != 0 {
			fields.JournalDeadline(c, at, pairs[i])
		}
	}
}

func cmdHexpire(c *command.Ctx)    { fields.Expire(c, command.InSeconds) }
func cmdHexpireat(c *command.Ctx)  { fields.Expire(c, command.AtSeconds) }
func cmdHpexpire(c *command.Ctx)   { fields.Expire(c, command.InMillis) }
func cmdHpexpireat(c *command.Ctx) { fields.Expire(c, command.AtMillis) }

func cmdHexpiretime(c *command.Ctx)  { fields.Times(c, command.AtSeconds) }
func cmdHpexpiretime(c *command.Ctx) { fields.Times(c, command.AtMillis) }
func cmdHttl(c *command.Ctx)         { fields.Times(c, command.InSeconds) }
func cmdHpttl(c *command.Ctx)        { fields.Times(c, command.InMillis) }

func cmdHpersist(c *command.Ctx) { fields.Persist(c) }

func cmdHgetdel(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	names, ok := fields.Named(c)
	if !ok {
		return
	}
	h := new(hashes.Hash)
	if e != nil {
		h = e.Elements(names, 1).Hash()
	}
	deleted := [][]byte{hdelWord, c.Args[1]}
	c.W.Array(len(names))
	for _, field := range names {
		hget(c, h, field)
		if h.Delete(field) {
			deleted = append(deleted, field)
		}
	}
	if len(deleted) > 2 {
		c.Journal(deleted...)
		fields.Removed(c, e, deleted[2:])
	}
}

func cmdHgetex(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	x, ok := fields.ReadOptions(c, 1, true, elements.ErrTimesOrPersist)
	if !ok {
		return
	}
	if x.Flags&(elements.KeepTTL|elements.IfMissing|elements.IfExisting) != 0 {
		c.Err(elements.ErrUnknownArgument)
		return
	}
	h := new(hashes.Hash)
	if e != nil {
		h = e.Elements(x.Names, 1).Hash()
	}
	done := fields.Changes()
	c.W.Array(len(x.Names))
	for _, field := range x.Names {
		hget(c, h, field)
		switch {
		case x.Flags&elements.Expires != 0:
			done.Expire(c, h, field, x.At, command.ExpireConditions{})
		case x.Flags&elements.Persists != 0:
			done.Persist(h, field)
		}
	}
	if x.Flags&elements.Persists != 0 {
		done.TellPersisted(c, e)
		done.JournalPersisted(c)
	} else {
		done.Tell(c, e, x.At)
	}
}

func cmdHsetex(c *command.Ctx) {
	x, ok := fields.ReadOptions(c, 2, true, elements.ErrTimesOrKeepTTL)
	if !ok {
		return
	}
	if x.Flags&elements.Persists != 0 {
		c.Err(elements.ErrUnknownArgument)
		return
	}
	pairs := x.Names
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	var h *hashes.Hash
	if e != nil {
		h = e.Elements(pairs, 2).Hash()
	}
	if !x.Meets(2, func(field []byte) bool { return h != nil && h.Has(field) }) {
		c.W.Int(0)
		return
	}
	e, h = orNew(c, e, h)
	lim := c.Host.HashLimits()
	for i := 0; i < len(pairs); i += 2 {
		if x.Flags&(elements.KeepTTL|elements.Expires) != 0 {
			h.Update(pairs[i], pairs[i+1], lim)
		} else {
			h.Set(pairs[i], pairs[i+1], lim)
		}
	}
	c.G.ChangedFields(e, "hset", pairs, 2)
	if x.Flags&elements.Expires != 0 {
		c.Journal(append([][]byte{hsetWord, c.Args[1]}, pairs...)...)
		done := fields.Changes()
		for i := 0; i < len(pairs); i += 2 {
			done.Expire(c, h, pairs[i], x.At, command.ExpireConditions{})
		}
		done.Tell(c, e, x.At)
	} else {
		journalFields(c, h, pairs)
	}
	c.W.Int(1)
}
