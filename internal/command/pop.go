package command

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/resp"
)

// This file is shared by the commands that pop from lists and sorted sets.

// ErrCountPositive is the error of LMPOP and ZMPOP for a COUNT of 0 or less.
const ErrCountPositive Error = "ERR count should be greater than 0"

// MultiPopArgs are the arguments of LMPOP, ZMPOP and their blocking forms.
type MultiPopArgs struct {
	Keys    [][]byte
	Second  bool // the second of the two ends is named
	Count   int64
	Timeout int64 // in ms
}

// MultiPop reads the arguments. Argument at is the number of keys; in blocking forms the timeout precedes it, and is checked
// last, as in Redis. On an error it writes the reply and returns false.
func (c *Ctx) MultiPop(at int, blocking bool, first, second string) (m MultiPopArgs, ok bool) {
	n, ok := c.IntIn(c.Args[at], 1, math.MaxInt64, ErrNumKeys)
	if !ok {
		return m, false
	}
	if n >= int64(len(c.Args)-at-1) {
		c.Err(ErrSyntax) // no argument is left for the end
		return m, false
	}
	m.Keys = c.Args[at+1 : at+1+int(n)]
	m.Count = 1
	o := c.Options(at + 1 + int(n))
	o.Next()
	if m.Second = o.Is(second); !m.Second && !o.Is(first) {
		c.Err(ErrSyntax)
		return m, false
	}
	for counted := false; o.Next(); counted = true {
		if counted || !o.Is("count") || !o.More() {
			c.Err(ErrSyntax)
			return m, false
		}
		if m.Count, ok = c.IntIn(o.Arg(), 1, math.MaxInt64, ErrCountPositive); !ok {
			return m, false
		}
	}
	if blocking {
		m.Timeout, ok = c.Timeout(c.Args[1])
	}
	return m, ok
}

// PopFirst calls pop, which writes the reply, for the first of the keys that holds a value of the type. Without such a key
// it replies with a null array, or waits for one if wait is set. pop may run later, for another client's change: it must not
// use the Ctx or the arguments of the call that made it.
func (c *Ctx) PopFirst(typ engine.Type, keys [][]byte, timeout int64, wait bool,
	pop func(c *Ctx, key []byte, e *engine.Entry)) {
	for _, key := range keys {
		e, ok := c.WriteAs(key, typ)
		if !ok {
			return
		}
		if e != nil {
			pop(c, key, e)
			return
		}
	}
	if typ == engine.List {
		for _, key := range keys {
			c.G.NotifyEmpty(c.DB, key)
		}
	}
	if !wait {
		c.W.NullArray()
		return
	}
	c.Block(Block{
		Keys: keys, Timeout: timeout, Empty: (*resp.Writer).NullArray,
		Try: func(c *Ctx, key []byte) bool {
			e := c.G.Write(c.DB, key)
			if e == nil || e.Type() != typ {
				return false
			}
			pop(c, key, e)
			return true
		},
	})
}
