// Package lists has the commands on lists. Those that pop are in pop.go.
package lists

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/internal/command"
)

const (
	errRankZero command.Error = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or " +
		"use negative to start from the end of the list"
	errCountNegative   command.Error = "ERR COUNT can't be negative"
	errMaxLenNegative  command.Error = "ERR MAXLEN can't be negative"
	listPushComplexity               = "O(1) for each element"
)

func init() { command.Register(listCommands) }

var listCommands = []*command.Command{
	{Name: "blmove", Group: "list", Since: "6.2.0", Arity: 6, Flags: command.Write | command.DenyOOM | command.Blocking,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves an element from one list to another, and can wait for one",
		Syntax:     "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
		Complexity: "O(1)", Do: cmdBlmove},
	{Name: "blmovem", Group: "list", Since: "8.10.0", Arity: -6, Flags: command.Write | command.DenyOOM | command.Blocking,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves elements from one list to another, and can wait for them",
		Syntax:     "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout [<COUNT count | EXACTLY exactly> <OBO | BULK>]",
		Complexity: "O(N), where N is the number of elements", Do: cmdBlmovem},
	{Name: "blmpop", Group: "list", Since: "7.0.0", Arity: -5, Flags: command.Write | command.Blocking,
		ACL:        command.CatList,
		Keys:       command.Keys("i2+n0/1/1[RW,ACCESS,DELETE]"),
		Summary:    "Removes and returns elements of the first list that has any, and can wait for some",
		Syntax:     "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
		Complexity: "O(N+M), where N is the number of keys and M that of the elements", Do: cmdBlmpop},
	{Name: "blpop", Group: "list", Since: "2.0.0", Arity: -3, Flags: command.Write | command.Blocking,
		ACL:        command.CatList,
		Keys:       command.Keys("i1+r-2/1/0[RW,ACCESS,DELETE]"),
		Summary:    "Removes and returns the first element of the first list that has any, and can wait for one",
		Syntax:     "key [key ...] timeout",
		Complexity: "O(N), where N is the number of keys", Do: cmdBlpop},
	{Name: "brpop", Group: "list", Since: "2.0.0", Arity: -3, Flags: command.Write | command.Blocking,
		ACL:        command.CatList,
		Keys:       command.Keys("i1+r-2/1/0[RW,ACCESS,DELETE]"),
		Summary:    "Removes and returns the last element of the first list that has any, and can wait for one",
		Syntax:     "key [key ...] timeout",
		Complexity: "O(N), where N is the number of keys", Do: cmdBrpop},
	{Name: "brpoplpush", Group: "list", Since: "2.2.0", Deprecated: "6.2.0",
		Instead: "`BLMOVE` with the `RIGHT` and `LEFT` arguments", Arity: 4,
		Flags: command.Write | command.DenyOOM | command.Blocking,
		ACL:   command.CatList, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves the last element of a list to the head of another, and can wait for one",
		Syntax:     "source destination timeout",
		Complexity: "O(1)", Do: cmdBrpoplpush},
	{Name: "lindex", Group: "list", Since: "1.0.0", Arity: 3, Flags: command.ReadOnly, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the element at an index", Syntax: "key index", Complexity: "O(log(N))", Do: cmdLindex},
	{Name: "linsert", Group: "list", Since: "2.2.0", Arity: 5, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Inserts an element before or after another", Syntax: "key <BEFORE | AFTER> pivot element",
		Complexity: "O(N), where N is the number of elements before the pivot", Do: cmdLinsert},
	{Name: "llen", Group: "list", Since: "1.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RO]"),
		Summary: "Returns the length of a list", Syntax: "key", Complexity: "O(1)", Do: cmdLlen},
	{Name: "lmove", Group: "list", Since: "6.2.0", Arity: 5, Flags: command.Write | command.DenyOOM, ACL: command.CatList,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves an element from an end of one list to an end of another",
		Syntax:     "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
		Complexity: "O(1)", Do: cmdLmove},
	{Name: "lmovem", Group: "list", Since: "8.10.0", Arity: -5, Flags: command.Write | command.DenyOOM,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves elements from an end of one list to an end of another",
		Syntax:     "source destination <LEFT | RIGHT> <LEFT | RIGHT> [<COUNT count | EXACTLY exactly> <OBO | BULK>]",
		Complexity: "O(N), where N is the number of elements", Do: cmdLmovem},
	{Name: "lmpop", Group: "list", Since: "7.0.0", Arity: -4, Flags: command.Write, ACL: command.CatList,
		Keys:       command.Keys("i1+n0/1/1[RW,ACCESS,DELETE]"),
		Summary:    "Removes and returns elements of the first list that has any",
		Syntax:     "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
		Complexity: "O(N+M), where N is the number of keys and M that of the elements", Do: cmdLmpop},
	{Name: "lpop", Group: "list", Since: "1.0.0", Arity: -2, Flags: command.Write | command.Fast, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns elements at the head of a list", Syntax: "key [count]",
		Complexity: "O(N), where N is the number of elements returned", Do: cmdLpop},
	{Name: "lpos", Group: "list", Since: "6.0.6", Arity: -3, Flags: command.ReadOnly, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Finds the indexes of a value", Syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
		Complexity: "O(N), where N is the number of elements", Do: cmdLpos},
	{Name: "lpush", Group: "list", Since: "1.0.0", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds elements at the head of a list",
		Syntax:  "key element [element ...]", Complexity: listPushComplexity, Do: cmdLpush},
	{Name: "lpushx", Group: "list", Since: "2.2.0", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds elements at the head of an existing list", Syntax: "key element [element ...]",
		Complexity: listPushComplexity, Do: cmdLpushx},
	{Name: "lrange", Group: "list", Since: "1.0.0", Arity: 4, Flags: command.ReadOnly, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the elements between two indexes", Syntax: "key start stop",
		Complexity: "O(log(N)+M), where M is the number of elements returned", Do: cmdLrange},
	{Name: "lrem", Group: "list", Since: "1.0.0", Arity: 4, Flags: command.Write, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes elements by value", Syntax: "key count element", Complexity: "O(N)", Do: cmdLrem},
	{Name: "lset", Group: "list", Since: "1.0.0", Arity: 4, Flags: command.Write | command.DenyOOM, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Sets the element at an index", Syntax: "key index element", Complexity: "O(log(N))", Do: cmdLset},
	{Name: "ltrim", Group: "list", Since: "1.0.0", Arity: 4, Flags: command.Write, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Trims a list to a range of indexes", Syntax: "key start stop",
		Complexity: "O(N), where N is the number of elements removed", Do: cmdLtrim},
	{Name: "rpop", Group: "list", Since: "1.0.0", Arity: -2, Flags: command.Write | command.Fast, ACL: command.CatList,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns elements at the tail of a list", Syntax: "key [count]",
		Complexity: "O(N), where N is the number of elements returned", Do: cmdRpop},
	{Name: "rpoplpush", Group: "list", Since: "1.2.0", Deprecated: "6.2.0",
		Instead: "`LMOVE` with the `RIGHT` and `LEFT` arguments", Arity: 3, Flags: command.Write | command.DenyOOM,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary: "Moves the last element of a list to the head of another",
		Syntax:  "source destination", Complexity: "O(1)", Do: cmdRpoplpush},
	{Name: "rpush", Group: "list", Since: "1.0.0", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds elements at the tail of a list",
		Syntax:  "key element [element ...]", Complexity: listPushComplexity, Do: cmdRpush},
	{Name: "rpushx", Group: "list", Since: "2.2.0", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatList, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds elements at the tail of an existing list", Syntax: "key element [element ...]",
		Complexity: listPushComplexity, Do: cmdRpushx},
}

// Side is an end of a list.
type Side bool

// The ends of a list.
const (
	Left  Side = false
	Right Side = true
)

func parseSide(word []byte) (s Side, ok bool) {
	switch {
	case command.EqualFold(word, "left"):
		return Left, true
	case command.EqualFold(word, "right"):
		return Right, true
	}
	return Left, false
}

// Push adds v at this end.
func (s Side) Push(l *lists.List, v []byte) {
	if s == Left {
		l.PushFront(v)
	} else {
		l.PushBack(v)
	}
}

// Peek returns the element at this end of a list that is not empty.
func (s Side) Peek(l *lists.List) []byte {
	var v []byte
	if s == Left {
		v, _ = l.Front()
	} else {
		v, _ = l.Back()
	}
	return v
}

// list returns the list of an entry for a command that uses at most n elements at this end.
func (s Side) list(e *engine.Entry, n int) *lists.List {
	if s == Left {
		return e.Ends(n, 0).List()
	}
	return e.Ends(0, n).List()
}

// listToMove returns the list of an entry for a command that takes n elements at one end and adds some at the other, or
// at the same.
func listToMove(e *engine.Entry, from, to Side, n int) *lists.List {
	n++ // one more, which stays
	switch {
	case from == to:
		return from.list(e, n)
	case from == Left:
		return e.Ends(n, 1).List()
	}
	return e.Ends(1, n).List()
}

// elements returns the list of an entry for a command that reads only elements first to last.
func elements(e *engine.Entry, first, last int) *lists.List {
	n := e.Count()
	if last < n-first {
		return e.Ends(last+1, 0).List()
	}
	return e.Ends(0, n-first).List()
}

// drop removes the element at this end.
func (s Side) drop(l *lists.List) {
	if s == Left {
		l.DropFront()
	} else {
		l.DropBack()
	}
}

// PushEvent is the keyspace event of elements that are added at this end.
func (s Side) PushEvent() string {
	if s == Left {
		return "lpush"
	}
	return "rpush"
}

// PopEvent is the keyspace event of elements that are removed at this end.
func (s Side) PopEvent() string {
	if s == Left {
		return "lpop"
	}
	return "rpop"
}

// Words of journalled commands: the two ends, and the commands that pop there.
var (
	leftWord, rightWord       = []byte("LEFT"), []byte("RIGHT")
	leftPopWord, RightPopWord = []byte("LPOP"), []byte("RPOP")
)

func (s Side) word() []byte {
	if s == Left {
		return leftWord
	}
	return rightWord
}

func (s Side) popWord() []byte {
	if s == Left {
		return leftPopWord
	}
	return RightPopWord
}

func cmdLpush(c *command.Ctx)  { push(c, Left, true) }
func cmdLpushx(c *command.Ctx) { push(c, Left, false) }
func cmdRpush(c *command.Ctx)  { push(c, Right, true) }
func cmdRpushx(c *command.Ctx) { push(c, Right, false) }

// push adds the arguments at an end of a list. If the list is missing, create says whether to create it.
func push(c *command.Ctx, s Side, create bool) {
	e, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if e == nil {
		if !create {
			c.W.Int(0)
			return
		}
		e = c.G.Create(c.DB, c.Args[1], lists.New(c.Host.ListLimit()))
	}
	l := s.list(e, 1)
	for _, v := range c.Args[2:] {
		s.Push(l, v)
	}
	c.W.Int(int64(l.Len()))
	Grown(c, e, s.PushEvent())
}

func cmdLlen(c *command.Ctx) { c.ReplyCount(c.Args[1], engine.List) }

func cmdLindex(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if e == nil {
		c.W.Null()
		return
	}
	i, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	if at := listIndex(i, e.Count()); at >= 0 {
		v, _ := elements(e, at, at).Index(at)
		c.W.Bulk(v)
	} else {
		c.W.Null()
	}
}

// listIndex converts an index that may count from the end to one from the start, -1 if it is out of range.
func listIndex(i int64, n int) int {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return -1
	}
	return int(i)
}

// listRange converts a range that may count from the end to one from the start; it is empty if start > stop.
func listRange(start, stop int64, n int) (int, int) {
	if start < 0 {
		start = max(start+int64(n), 0)
	}
	if stop < 0 {
		stop += int64(n)
	}
	stop = min(stop, int64(n)-1)
	if start > stop {
		return 0, -1
	}
	return int(start), int(stop)
}

func cmdLset(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if e == nil {
		c.Err(command.ErrNoKey)
		return
	}
	i, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	at := listIndex(i, e.Count())
	if at < 0 {
		c.Err(command.ErrIndexRange)
		return
	}
	l := elements(e, at, at)
	if !l.CanSet(at, c.Args[3]) {
		l = e.List()
	}
	l.Set(at, c.Args[3])
	c.W.OK()
	c.G.Changed(e, engine.EventList, "lset")
}

func cmdLinsert(c *command.Ctx) {
	before := command.EqualFold(c.Args[2], "before")
	if !before && !command.EqualFold(c.Args[2], "after") {
		c.Err(command.ErrSyntax)
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if e == nil {
		c.W.Int(0)
		return
	}
	insert := e.List().InsertAfter
	if before {
		insert = e.List().InsertBefore
	}
	if !insert(c.Args[3], c.Args[4]) {
		c.W.Int(-1)
		return
	}
	c.W.Int(int64(e.List().Len()))
	Grown(c, e, "linsert")
}

func cmdLrange(c *command.Ctx) {
	start, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	stop, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if e == nil {
		c.W.Array(0)
		return
	}
	from, to := listRange(start, stop, e.Count())
	if to < from {
		c.W.Array(0)
		return
	}
	c.Long(to-from+1, e.Count())
	l := elements(e, from, to)
	c.W.Array(to - from + 1)
	l.Range(from, to, func(v []byte) bool {
		c.W.Bulk(v)
		return true
	})
}

func cmdLrem(c *command.Ctx) {
	count, ok := c.OppositeInt(c.Args[2])
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	removed := 0
	if e != nil {
		removed = e.List().Remove(command.AsInt(count), c.Args[3])
	}
	c.W.Int(int64(removed))
	if removed > 0 {
		Removed(c, e, "lrem")
	}
}

func cmdLtrim(c *command.Ctx) {
	start, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	stop, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	c.W.OK()
	if e == nil {
		return
	}
	n := e.Count()
	switch from, to := listRange(start, stop, n); {
	case to < from:
		emptied(c, e, "ltrim")
		return
	case to-from < n-1:
		front, back := from, n-1-to
		if front > 0 {
			front++ // one more, which stays
		}
		if back > 0 {
			back++
		}
		e.Ends(front, back).List().Trim(from, to)
	}
	c.G.Changed(e, engine.EventList, "ltrim")
}

// Grown reports that a list has new elements. Clients may wait for a number of elements.
func Grown(c *command.Ctx, e *engine.Entry, event string) {
	c.G.Changed(e, engine.EventList, event)
	c.G.Wake(e)
}

// Removed reports that elements have left a list, and removes it if none is left.
func Removed(c *command.Ctx, e *engine.Entry, event string) {
	if e.Count() > 0 {
		c.G.Changed(e, engine.EventList, event)
		return
	}
	emptied(c, e, event)
}

// emptied removes a list without elements, and reports it.
func emptied(c *command.Ctx, e *engine.Entry, event string) {
	c.G.Notify(engine.EventList, event, c.DB, e.Key())
	c.G.Remove(e, engine.EventGeneric, "del")
}

func cmdLpos(c *command.Ctx) {
	rank, count, maxlen, list := int64(1), int64(1), int64(0), false
	for o := c.Options(3); o.Next(); {
		var ok bool
		switch {
		case o.Is("rank") && o.More():
			if rank, ok = c.OppositeInt(o.Arg()); !ok {
				return
			}
			if rank == 0 {
				c.Err(errRankZero)
				return
			}
		case o.Is("count") && o.More():
			if count, ok = c.IntIn(o.Arg(), 0, math.MaxInt64, errCountNegative); !ok {
				return
			}
			list = true
		case o.Is("maxlen") && o.More():
			if maxlen, ok = c.IntIn(o.Arg(), 0, math.MaxInt64, errMaxLenNegative); !ok {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	e, ok := c.ReadAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if !list {
		at := -1
		if e != nil {
			e.List().Pos(c.Args[2], command.AsInt(rank), 1, command.AsInt(maxlen), func(i int) { at = i })
		}
		if at < 0 {
			c.W.Null()
		} else {
			c.W.Int(int64(at))
		}
		return
	}
	mark, n := c.W.Defer(), 0
	if e != nil {
		e.List().Pos(c.Args[2], command.AsInt(rank), command.AsInt(count), command.AsInt(maxlen), func(i int) {
			c.W.Int(int64(i))
			n++
		})
	}
	c.W.EndArray(mark, n)
}
