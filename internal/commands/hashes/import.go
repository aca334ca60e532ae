package hashes

import (
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/command"
)

// HIMPORT makes hashes with the same fields: a client names the fields once, and then sends only values.

// Fieldsets are the lists of fields that a client has named. The zero value is empty.
type Fieldsets struct {
	sets  map[string][]string
	bytes int
}

// maxFieldsets is how many bytes the fieldsets of a client may take.
const maxFieldsets = 16 << 20

// Errors of HIMPORT.
const (
	errFieldTwice     command.Error = "ERR duplicate field name"
	errNoFieldset     command.Error = "ERR no such fieldset"
	errValueCount     command.Error = "ERR value count does not match the number of fields"
	errFieldsetsLarge command.Error = "ERR the fieldsets of a client take at most 16 MB"
)

var importCommand = &command.Command{
	Name: "himport", Group: "hash", Since: "8.10.0", Arity: -2, ACL: command.CatHash,
	Summary: "Makes hashes with the same fields", Complexity: "Depends on the sub-command",
	Subs: []*command.Command{
		{Name: "himport|discard", Group: "hash", Since: "8.10.0", Arity: 3, ACL: command.CatHash,
			Summary: "Forgets a fieldset", Syntax: "fieldset-name", Complexity: "O(1)", Do: cmdHimportDiscard},
		{Name: "himport|discardall", Group: "hash", Since: "8.10.0", Arity: 2, ACL: command.CatHash,
			Summary: "Forgets all fieldsets", Complexity: "O(1)", Do: cmdHimportDiscardall},
		{Name: "himport|prepare", Group: "hash", Since: "8.10.0", Arity: -4, Flags: command.DenyOOM, ACL: command.CatHash,
			Summary: "Names a list of fields", Syntax: "fieldset-name field [field ...]",
			Complexity: "O(N), where N is the number of fields", Do: cmdHimportPrepare},
		{Name: "himport|set", Group: "hash", Since: "8.10.0", Arity: -5, Flags: command.Write | command.DenyOOM,
			ACL: command.CatHash, Keys: command.Keys("i2+r0/1/0[OW,UPDATE]"),
			Summary: "Makes a hash of the fields of a fieldset and of values",
			Syntax:  "key fieldset-name value [value ...]", Complexity: "O(N), where N is the number of fields",
			Do: cmdHimportSet},
	},
}

// size returns how many bytes a fieldset takes.
func size(name string, fields []string) int {
	n := len(name) + 64
	for _, field := range fields {
		n += len(field) + 16
	}
	return n
}

// forget removes a fieldset, and reports whether it existed.
func (f *Fieldsets) forget(name string) bool {
	fields, ok := f.sets[name]
	if ok {
		f.bytes -= size(name, fields)
		delete(f.sets, name)
	}
	return ok
}

func cmdHimportPrepare(c *command.Ctx) {
	f, name := clientOf(c).Fieldsets(), string(c.Args[2])
	fields, seen := make([]string, 0, len(c.Args)-3), make(map[string]bool, len(c.Args)-3)
	for _, arg := range c.Args[3:] {
		field := strings.Clone(string(arg))
		if seen[field] {
			c.Err(errFieldTwice)
			return
		}
		seen[field] = true
		fields = append(fields, field)
	}
	room := maxFieldsets - f.bytes
	if before, ok := f.sets[name]; ok {
		room += size(name, before)
	}
	if size(name, fields) > room {
		c.Err(errFieldsetsLarge)
		return
	}
	f.forget(name)
	if f.sets == nil {
		f.sets = map[string][]string{}
	}
	f.sets[name] = fields
	f.bytes += size(name, fields)
	c.W.OK()
}

func cmdHimportDiscard(c *command.Ctx) {
	n := int64(0)
	if clientOf(c).Fieldsets().forget(string(c.Args[2])) {
		n = 1
	}
	c.W.Int(n)
}

func cmdHimportDiscardall(c *command.Ctx) {
	f := clientOf(c).Fieldsets()
	c.W.Int(int64(len(f.sets)))
	*f = Fieldsets{}
}

func cmdHimportSet(c *command.Ctx) {
	key, values := c.Args[2], c.Args[4:]
	fields, ok := clientOf(c).Fieldsets().sets[string(c.Args[3])]
	switch {
	case !ok:
		c.Err(errNoFieldset)
		return
	case len(fields) != len(values):
		c.Err(errValueCount)
		return
	}
	e, ok := c.WriteAs(key, engine.Hash)
	if !ok {
		return
	}
	blessed := e != nil && e.Blessed()
	if e != nil {
		c.G.Remove(e, engine.EventNone, "")
		c.JournalDelete(key)
	}
	e = c.G.Create(c.DB, key, new(hashes.Hash))
	words := append(make([][]byte, 0, 2+2*len(fields)), []byte("HSET"), key)
	for i, field := range fields {
		e.Hash().Set([]byte(field), values[i], c.Host.HashLimits())
		words = append(words, []byte(field), values[i])
	}
	c.G.Changed(e, engine.EventHash, "hset")
	c.Journal(words...)
	c.Rebless(e, blessed)
	c.W.OK()
}
