package search

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/search/suggest"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Dictionaries of suggestions are values of keys: FT.SUGADD and its relatives use no index.

func init() {
	command.RegisterKind(engine.Suggestions, command.Kind{
		Number:   5, // shared by all values of modules
		Encoding: func(*engine.Entry) string { return "raw" },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			if payload, err := rdb.Dump(e); err == nil { // cannot fail: every dictionary can be dumped
				r.Command([]byte("RESTORE"), key, []byte("0"), payload)
			}
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			s := e.Suggestions()
			var data []byte
			for c, more := (delta.Cursor{}), true; more; {
				c, more = s.Walk(c, 64, func(name string) {
					data, _ = s.AppendPart(append(data[:0], name...), name)
					d.Mix(data)
				})
			}
		},
	})
	register([]*command.Command{
		{Name: "ft.sugadd", Group: "search", Since: "1.0.0", Arity: -4, Flags: grows, ACL: command.CatSearch | command.CatWrite,
			Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
			Summary: "Adds a suggestion to a dictionary", Syntax: "key string score [INCR] [PAYLOAD payload]", Complexity: "O(log(N))", Do: sugAdd},
		{Name: "ft.sugdel", Group: "search", Since: "1.0.0", Arity: 3, Flags: writes, ACL: command.CatSearch | command.CatWrite,
			Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
			Summary: "Deletes a suggestion from a dictionary", Syntax: "key string", Complexity: "O(log(N))", Do: sugDel},
		{Name: "ft.sugget", Group: "search", Since: "1.0.0", Arity: -3, Flags: reads, ACL: command.CatSearch | command.CatRead,
			Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
			Summary: "Returns the best suggestions for the beginning of a text", Syntax: "key prefix [FUZZY] [WITHSCORES] [WITHPAYLOADS] [MAX max]",
			Complexity: "O(N), where N is the number of suggestions that begin like it", Do: sugGet},
		{Name: "ft.suglen", Group: "search", Since: "1.0.0", Arity: 2, Flags: reads, ACL: command.CatSearch | command.CatRead,
			Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
			Summary: "Counts the suggestions of a dictionary", Syntax: "key", Complexity: "O(1)", Do: sugLen},
	})
}

// sugAdd is FT.SUGADD.
func sugAdd(c *command.Ctx) {
	if len(c.Args) > 7 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	score, err := strconv.ParseFloat(string(c.Args[3]), 64)
	if err != nil || math.IsNaN(score) {
		c.Err("ERR invalid score")
		return
	}
	incr := false
	var payload []byte
	for r := args.New(words(c.Args[4:])...); !r.Done(); {
		switch {
		case r.Match("INCR"):
			incr = true
		case r.Match("PAYLOAD"):
			p, bad := r.Text()
			if bad != args.None {
				c.Err("Invalid payload: " + command.Error(bad.String()))
				return
			}
			payload = []byte(p)
		default:
			word, _ := r.Next()
			c.Err("Unknown argument `" + command.Error(word) + "`")
			return
		}
	}
	e, ok := c.WriteAs(c.Args[1], engine.Suggestions)
	if !ok {
		return
	}
	var d *suggest.Dict
	if e == nil {
		d = suggest.New()
	} else {
		d = e.Suggestions()
	}
	_, changed := d.Add(c.Args[2], score, incr, payload)
	if changed {
		if e == nil {
			e = c.G.Create(c.DB, c.Args[1], d)
		}
		c.G.Changed(e, engine.EventNone, "")
	}
	c.W.Int(int64(d.Len()))
}

// sugDel is FT.SUGDEL. It removes a dictionary without suggestions.
func sugDel(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Suggestions)
	if !ok {
		return
	}
	if e == nil || !e.Suggestions().Delete(c.Args[2]) {
		c.W.Int(0)
		return
	}
	c.G.Changed(e, engine.EventNone, "")
	if e.Suggestions().Len() == 0 {
		c.G.Remove(e, engine.EventGeneric, "del")
	}
	c.W.Int(1)
}

// sugLen is FT.SUGLEN.
func sugLen(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.Suggestions)
	switch {
	case !ok:
	case e == nil:
		c.W.Int(0)
	default:
		c.W.Int(int64(e.Suggestions().Len()))
	}
}

// sugGet is FT.SUGGET.
func sugGet(c *command.Ctx) {
	q := suggest.Query{Prefix: string(c.Args[2]), Max: 5}
	scores, payloads := false, false
	for r := args.New(words(c.Args[3:])...); !r.Done(); {
		switch {
		case r.Match("FUZZY"):
			q.Fuzzy = true
		case r.Match("WITHSCORES"):
			scores = true
		case r.Match("WITHPAYLOADS"):
			payloads = true
		case r.Match("TRIM"):
			q.Trim = true
		case r.Match("OPTIMIZE"):
		case r.Match("MAX"):
			n, bad := r.Int(1, math.MaxInt32)
			if bad != args.None {
				c.Err(coded(query.BadArguments, "MAX: "+bad.String()))
				return
			}
			q.Max = int(n)
		default:
			word, _ := r.Next()
			c.Err(coded(query.BadArguments, "Unrecognized argument: "+string(word)))
			return
		}
	}
	e, ok := c.ReadAs(c.Args[1], engine.Suggestions)
	if !ok {
		return
	}
	if e == nil {
		c.W.Array(0)
		return
	}
	best, ok := e.Suggestions().Find(q)
	if !ok {
		c.Err("Invalid query")
		return
	}
	mark, n := c.W.Defer(), 0
	for _, s := range best {
		c.W.BulkString(s.Text)
		n++
		if scores {
			c.W.Double(float64(s.Score))
			n++
		}
		if payloads {
			if s.Payload == "" {
				c.W.Null()
			} else {
				c.W.BulkString(s.Payload)
			}
			n++
		}
	}
	c.W.EndArray(mark, n)
}
