package pathhash

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/pathhash"
	"github.com/atomredis/atomredis/internal/command"
)

func cmdSet(c *command.Ctx) {
	exists, missing := false, false
	g := group{path: c.Args[2]}
	o := c.Options(3)
	o.Next()
	switch {
	case o.Is("fnx"):
		missing = true
		o.Next()
	case o.Is("fxx"):
		exists = true
		o.Next()
	}
	var ok bool
	if g.args, ok = fieldArgs(c, &o, 2); !ok {
		return
	}
	if o.More() {
		c.Err(command.ErrSyntax)
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.PathHash)
	if !ok {
		return
	}
	if exists || missing {
		for i := 0; i < len(g.args); i += 2 {
			if hasField(e, g.path, g.args[i]) != exists {
				c.W.Null()
				return
			}
		}
	}
	set(c, e, []group{g}, "phset")
}

// hasField reports whether a path has a field; e is nil if there is no key.
func hasField(e *engine.Entry, path, field []byte) bool {
	if e == nil {
		return false
	}
	h := e.PathHash().Get(path)
	return h != nil && h.Has(field)
}

func cmdMset(c *command.Ctx) {
	list, ok := groups(c, 2)
	if !ok {
		return
	}
	if e, ok := c.WriteAs(c.Args[1], engine.PathHash); ok {
		set(c, e, list, "phmset")
	}
}

// set sets fields; e is nil if there is no key.
func set(c *command.Ctx, e *engine.Entry, list []group, event string) {
	if e == nil {
		e = c.G.Create(c.DB, c.Args[1], pathhash.New())
	}
	t := e.PathHash()
	for _, g := range list {
		for i := 0; i < len(g.args); i += 2 {
			t.Set(g.path, g.args[i], g.args[i+1])
		}
	}
	c.G.Changed(e, engine.EventPathHash, event)
	c.W.OK()
}

func cmdDel(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.PathHash)
	if !ok {
		return
	}
	n := 0
	switch fields := c.Args[3:]; {
	case e == nil:
	case len(fields) == 0:
		if e.PathHash().Delete(c.Args[2]) {
			n = 1
		}
	default:
		for _, field := range fields {
			if e.PathHash().DeleteField(c.Args[2], field) {
				n++
			}
		}
	}
	removed(c, e, n, "phdel")
}

func cmdDelPrefix(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.PathHash)
	if !ok {
		return
	}
	n := 0
	if e != nil {
		n = e.PathHash().DeletePrefix(c.Args[2])
	}
	removed(c, e, n, "phdelprefix")
}

// removed ends a command that has removed n fields or paths, and removes the key if no path is left.
func removed(c *command.Ctx, e *engine.Entry, n int, event string) {
	if n > 0 {
		c.G.Changed(e, engine.EventPathHash, event)
		if e.PathHash().Len() == 0 {
			c.G.Remove(e, engine.EventGeneric, "del")
		}
	}
	c.W.Int(int64(n))
}
