package vectors

import (
	"math"
	"math/rand/v2"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/vectors"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

const (
	errNoKey  command.Error = "ERR key does not exist"
	errOption command.Error = "ERR invalid option"
	errNoInt  command.Error = "ERR COUNT value is not an integer"
	errBound  command.Error = "ERR min or max not valid string range item"
)

// uid is the ID of every set in VINFO: sets are not numbered.
const uid = 1

func cmdCard(c *command.Ctx) {
	if s, ok := set(c); ok {
		n := 0
		if s != nil {
			n = s.Len()
		}
		c.W.Int(int64(n))
	}
}

func cmdDim(c *command.Ctx) {
	switch s, ok := set(c); {
	case !ok:
	case s == nil:
		c.Err(errNoKey)
	default:
		c.W.Int(int64(s.Dim()))
	}
}

func cmdEmb(c *command.Ctx) {
	raw := len(c.Args) > 3
	for _, arg := range c.Args[3:] {
		if !command.EqualFold(arg, "raw") {
			c.Err(errOption)
			return
		}
	}
	s, id, ok := member(c)
	switch {
	case !ok:
	case s == nil:
		c.W.Null()
	case raw:
		n := 3
		if s.Quant() == vectors.Q8 {
			n++
		}
		components, norm, unit := s.AppendRaw(nil, id)
		c.W.Array(n)
		c.W.Simple(s.Quant().String())
		c.W.Bulk(components)
		c.W.Double(float64(norm))
		if n > 3 {
			c.W.Double(float64(unit))
		}
	default:
		v := s.AppendVector(nil, id)
		c.W.Array(len(v))
		for _, x := range v {
			c.W.Double(float64(x))
		}
	}
}

func cmdGetAttr(c *command.Ctx) {
	switch s, id, ok := member(c); {
	case !ok:
	case s == nil:
		c.W.Null()
	default:
		writeAttributes(c.W, s, id)
	}
}

func cmdInfo(c *command.Ctx) {
	s, ok := set(c)
	switch {
	case !ok:
		return
	case s == nil:
		c.W.NullArray()
		return
	}
	w := c.W
	number := func(name string, n int64) {
		w.Simple(name)
		w.Int(n)
	}
	w.Map(9)
	w.Simple("quant-type")
	w.Simple(s.Quant().String())
	number("hnsw-m", int64(s.M()))
	number("vector-dim", int64(s.Dim()))
	input := 0
	if p := s.Projection(); p != nil {
		input = p.Input
	}
	number("projection-input-dim", int64(input))
	number("size", int64(s.Len()))
	number("max-level", int64(s.TopLevel()))
	number("attributes-count", int64(s.WithAttributes()))
	number("vset-uid", uid)
	number("hnsw-max-node-uid", int64(s.Added()))
}

func cmdIsMember(c *command.Ctx) {
	if s, _, ok := member(c); ok {
		c.W.Bool(s != nil)
	}
}

func cmdLinks(c *command.Ctx) {
	scores := len(c.Args) > 3
	if len(c.Args) > 4 || scores && !command.EqualFold(c.Args[3], "withscores") {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	s, id, ok := member(c)
	switch {
	case !ok:
		return
	case s == nil:
		c.W.Null()
		return
	}
	level := s.Level(id)
	c.W.Array(level + 1)
	for ; level >= 0; level-- {
		links := s.Links(id, level)
		if scores {
			c.W.Map(len(links))
		} else {
			c.W.Array(len(links))
		}
		for _, other := range links {
			c.W.BulkString(s.Name(other))
			if scores {
				c.W.Double(s.Score(id, other))
			}
		}
	}
}

func cmdRandMember(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if len(c.Args) == 2 {
		switch s, ok := set(c); {
		case !ok:
		case s == nil:
			c.W.Null()
		default:
			c.W.BulkString(s.Name(uint32(rand.IntN(s.Len()))))
		}
		return
	}
	count, ok := resp.ParseInt(c.Args[2])
	switch {
	case !ok:
		c.Err(errNoInt)
		return
	case count == math.MinInt64: // it cannot be negated
		c.Err(command.ErrOutOfRange)
		return
	}
	s, ok := set(c)
	switch {
	case !ok:
	case s == nil || count == 0:
		c.W.Array(0)
	case count < 0:
		c.Repeat(count, c.W.Array, func(n int, room func() bool) {
			for range n {
				if room() {
					c.W.BulkString(s.Name(uint32(rand.IntN(s.Len()))))
				}
			}
		})
	default:
		n := int(min(count, int64(s.Len())))
		c.W.Array(n)
		dict.Sample(s.Len(), n, func(i int) { c.W.BulkString(s.Name(uint32(i))) })
	}
}

// bound is an end of a range of names.
type bound struct {
	name []byte
	open bool // the range excludes the name itself
	none bool // the range has no end here
}

// parseBound reads an end of a range; none is the text for no end.
func parseBound(arg []byte, none string) (b bound, ok bool) {
	switch {
	case string(arg) == none:
		return bound{none: true}, true
	case len(arg) == 0 || arg[0] != '[' && arg[0] != '(':
		return b, false
	}
	return bound{name: arg[1:], open: arg[0] == '('}, true
}

func cmdRange(c *command.Ctx) {
	if len(c.Args) > 5 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	from, ok := parseBound(c.Args[2], "-")
	to, ok2 := parseBound(c.Args[3], "+")
	if !ok || !ok2 {
		c.Err(errBound)
		return
	}
	left := int64(-1)
	if len(c.Args) == 5 {
		if left, ok = c.Int(c.Args[4]); !ok {
			return
		}
	}
	s, ok := set(c)
	switch {
	case !ok:
		return
	case s == nil || left == 0:
		c.W.Array(0)
		return
	}
	mark, n := c.W.Defer(), 0
	s.Range(from.name, func(id uint32) bool {
		name := s.Name(id)
		if from.open && name == string(from.name) {
			return true
		}
		if !to.none && (name > string(to.name) || to.open && name == string(to.name)) {
			return false
		}
		c.W.BulkString(name)
		n++
		left--
		return left != 0
	})
	c.W.EndArray(mark, n)
}

// changed calls change with the element that a command changes, and replies whether the element exists.
func changed(c *command.Ctx, event string, change func(s *vectors.Set, id uint32)) {
	e, ok := c.WriteAs(c.Args[1], engine.VectorSet)
	if !ok {
		return
	}
	if e == nil {
		c.W.Bool(false)
		return
	}
	s := e.Vectors()
	id, found := s.Find(c.Args[2])
	if found {
		change(s, id)
		c.G.Changed(e, engine.EventModule, event)
		if s.Len() == 0 {
			c.G.Remove(e, engine.EventGeneric, "del")
		}
	}
	c.W.Bool(found)
}

func cmdRem(c *command.Ctx) { changed(c, "vrem", (*vectors.Set).Remove) }

func cmdSetAttr(c *command.Ctx) {
	changed(c, "vsetattr", func(s *vectors.Set, id uint32) { s.SetAttributes(id, c.Args[3]) })
}
