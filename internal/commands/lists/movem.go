package lists

import (
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has LMOVEM and BLMOVEM, which move several elements.

// manyMove holds the options of such a command.
type manyMove struct {
	from, to Side
	count    int64 // the largest number of elements
	exactly  bool  // count elements or none
	oneByOne bool  // elements move one after the other, so equal ends reverse their order
	options  [][]byte
}

// readManyMove reads the arguments except the timeout; the options begin at argument options. If they are wrong, it
// writes an error and ok is false.
func readManyMove(c *command.Ctx, options int) (m manyMove, ok bool) {
	if m.from, m.to, ok = moveSides(c); !ok {
		return m, false
	}
	m.count, m.options = 1, c.Args[options:]
	if len(m.options) == 0 {
		return m, true
	}
	m.exactly = command.EqualFold(m.options[0], "exactly")
	if len(m.options) != 3 || !m.exactly && !command.EqualFold(m.options[0], "count") {
		c.Err(command.ErrSyntax)
		return m, false
	}
	m.oneByOne = command.EqualFold(m.options[2], "obo")
	if !m.oneByOne && !command.EqualFold(m.options[2], "bulk") {
		c.Err(command.ErrSyntax)
		return m, false
	}
	m.count, ok = c.IntIn(m.options[1], 1, math.MaxInt64, command.ErrCountPositive)
	return m, ok
}

// enough reports whether a list, nil if it is missing, has enough elements to move.
func (m *manyMove) enough(src *engine.Entry) bool {
	return src != nil && (!m.exactly || int64(src.Count()) >= m.count)
}

// move moves elements of src, the list in argument 1, which has enough, to the list in argument 2, which may be the
// same. It replies with the elements in their new order, or with an error if the destination is no list.
func (m *manyMove) move(c *command.Ctx, src *engine.Entry) {
	dst, ok := c.WriteAs(c.Args[2], engine.List)
	if !ok {
		return
	}
	n := int(min(m.count, int64(src.Count())))
	var taken, added *lists.List
	if dst == src {
		taken = listToMove(src, m.from, m.to, n)
		added = taken
	} else {
		taken = m.from.list(src, n+1)
		if dst != nil {
			added = m.to.list(dst, 1)
		}
	}
	moved := make([][]byte, n) // in list order
	for i := range moved {
		at := i
		if m.from == Right {
			at = n - 1 - i
		}
		moved[at] = append([]byte(nil), m.from.Peek(taken)...)
		m.from.drop(taken)
	}
	if m.oneByOne && m.from == m.to {
		slices.Reverse(moved)
	}
	if dst == nil {
		added = lists.New(c.Host.ListLimit())
		dst = c.G.Create(c.DB, c.Args[2], added)
	}
	for i := range moved {
		if m.to == Left {
			i = n - 1 - i
		}
		m.to.Push(added, moved[i])
	}
	c.W.Array(n)
	for _, v := range moved {
		c.W.Bulk(v)
	}
	Grown(c, dst, m.to.PushEvent())
	if dst == src {
		c.G.Notify(engine.EventList, m.from.PopEvent(), c.DB, src.Key())
	} else {
		Removed(c, src, m.from.PopEvent())
	}
	words := [][]byte{[]byte("LMOVEM"), c.Args[1], c.Args[2], m.from.word(), m.to.word()}
	c.Journal(append(words, m.options...)...)
}

func cmdLmovem(c *command.Ctx) {
	m, ok := readManyMove(c, 5)
	if !ok {
		return
	}
	src, ok := c.WriteAs(c.Args[1], engine.List)
	switch {
	case !ok:
	case m.enough(src):
		m.move(c, src)
	default:
		if src == nil {
			c.G.NotifyEmpty(c.DB, c.Args[1])
		}
		c.W.NullArray()
	}
}

func cmdBlmovem(c *command.Ctx) {
	m, ok := readManyMove(c, 6)
	if !ok {
		return
	}
	timeout, ok := c.Timeout(c.Args[5])
	if !ok {
		return
	}
	src, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if m.enough(src) {
		m.move(c, src)
		return
	}
	if src == nil {
		c.G.NotifyEmpty(c.DB, c.Args[1])
	}
	c.Block(command.Block{
		Keys:    c.Args[1:2],
		Shards:  c.Host.Keyspace().ShardOf(c.Args[2]),
		Timeout: timeout,
		Empty:   (*resp.Writer).NullArray,
		Try: func(c *command.Ctx, key []byte) bool {
			src := c.G.Write(c.DB, key)
			if src == nil || src.Type() != engine.List {
				return false
			}
			m, ok := readManyMove(c, 6) // from the client's own copy of the arguments
			if ok = ok && m.enough(src); ok {
				m.move(c, src)
			}
			return ok
		},
	})
}
