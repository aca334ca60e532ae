// Package sets has the commands on sets.
package sets

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hyperloglog"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(setCommands) }

var setCommands = []*command.Command{
	{Name: "sadd", Group: "set", Since: "1.0.0", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatSet, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"), Element: 2,
		Summary: "Adds members",
		Syntax:  "key member [member ...]", Complexity: "O(N), where N is the number of members to add", Do: cmdSadd},
	{Name: "scard", Group: "set", Since: "1.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RO]"),
		Summary: "Counts the members of a set", Syntax: "key", Complexity: "O(1)", Do: cmdScard},
	{Name: "sdiff", Group: "set", Since: "1.0.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+r-1/1/0[RO,ACCESS]"),
		Summary: "Computes the difference of sets", Syntax: "key [key ...]",
		Complexity: "O(N), where N is the number of members in all sets", Do: cmdSdiff},
	{Name: "sdiffcard", Group: "set", Since: "8.10.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary: "Counts the members of a difference of sets", Syntax: "numkeys key [key ...] [LIMIT limit]",
		Complexity: "O(N), where N is the number of members of all sets", Do: cmdSdiffcard},
	{Name: "sdiffstore", Group: "set", Since: "1.0.0", Arity: -3, Flags: command.Write | command.DenyOOM,
		ACL:        command.CatSet,
		Keys:       command.Keys("i1+r0/1/0[OW,UPDATE] i2+r-1/1/0[RO,ACCESS]"),
		Summary:    "Stores the difference of sets",
		Syntax:     "destination key [key ...]",
		Complexity: "O(N), where N is the number of members in all sets", Do: cmdSdiffstore},
	{Name: "sinter", Group: "set", Since: "1.0.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+r-1/1/0[RO,ACCESS]"),
		Summary: "Computes the intersection of sets", Syntax: "key [key ...]",
		Complexity: "O(N*K), where N is the size of the smallest set and K the number of sets", Do: cmdSinter},
	{Name: "sintercard", Group: "set", Since: "7.0.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary: "Counts the members of an intersection of sets", Syntax: "numkeys key [key ...] [LIMIT limit]",
		Complexity: "O(N*K), where N is the size of the smallest set and K the number of sets", Do: cmdSintercard},
	{Name: "sinterstore", Group: "set", Since: "1.0.0", Arity: -3, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[OW,UPDATE] i2+r-1/1/0[RO,ACCESS]"),
		Summary: "Stores the intersection of sets", Syntax: "destination key [key ...]",
		Complexity: "O(N*K), where N is the size of the smallest set and K the number of sets", Do: cmdSinterstore},
	{Name: "sismember", Group: "set", Since: "1.0.0", Arity: 3, Flags: command.ReadOnly | command.Fast,
		ACL:  command.CatSet,
		Keys: command.Keys("i1+r0/1/0[RO]"), Element: 2,
		Summary: "Checks whether a set has a member", Syntax: "key member", Complexity: "O(1)", Do: cmdSismember},
	{Name: "smembers", Group: "set", Since: "1.0.0", Arity: 2, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns all members",
		Syntax:  "key", Complexity: "O(N), where N is the size of the set", Do: cmdSmembers},
	{Name: "smismember", Group: "set", Since: "6.2.0", Arity: -3, Flags: command.ReadOnly | command.Fast,
		ACL:  command.CatSet,
		Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"), Element: 2,
		Summary: "Checks which of several members a set has", Syntax: "key member [member ...]",
		Complexity: "O(N), where N is the number of members asked for", Do: cmdSmismember},
	{Name: "smove", Group: "set", Since: "1.0.0", Arity: 4, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary: "Moves a member to another set",
		Syntax:  "source destination member", Complexity: "O(1)", Do: cmdSmove},
	{Name: "spop", Group: "set", Since: "1.0.0", Arity: -2, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns random members", Syntax: "key [count]",
		Complexity: "O(N), where N is the number of members removed", Do: cmdSpop},
	{Name: "srandmember", Group: "set", Since: "1.0.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns random members", Syntax: "key [count]",
		Complexity: "O(N), where N is the number of members returned", Do: cmdSrandmember},
	{Name: "srem", Group: "set", Since: "1.0.0", Arity: -3, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys: command.Keys("i1+r0/1/0[RW,DELETE]"), Element: 2,
		Summary: "Removes members", Syntax: "key member [member ...]",
		Complexity: "O(N), where N is the number of members to remove", Do: cmdSrem},
	{Name: "sscan", Group: "set", Since: "2.8.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Iterates over the members of a set", Syntax: "key cursor [MATCH pattern] [COUNT count]",
		Complexity: "O(1) for every call, O(N) for a complete walk, where N is the size of the set", Do: cmdSscan, InSteps: true},
	{Name: "sunion", Group: "set", Since: "1.0.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+r-1/1/0[RO,ACCESS]"),
		Summary: "Computes the union of sets", Syntax: "key [key ...]",
		Complexity: "O(N), where N is the number of members in all sets", Do: cmdSunion},
	{Name: "sunioncard", Group: "set", Since: "8.10.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSet,
		Keys:    command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary: "Counts the members of a union of sets", Syntax: "numkeys key [key ...] [APPROX] [LIMIT limit]",
		Complexity: "O(N), where N is the number of members of all sets", Do: cmdSunioncard},
	{Name: "sunionstore", Group: "set", Since: "1.0.0", Arity: -3, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[OW,UPDATE] i2+r-1/1/0[RO,ACCESS]"),
		Summary: "Stores the union of sets", Syntax: "destination key [key ...]",
		Complexity: "O(N), where N is the number of members in all sets", Do: cmdSunionstore},
}

// readSet returns the set under a key, nil for a missing key; a nil set reads as an empty one. If the key is of
// another type, it writes an error and ok is false.
func readSet(c *command.Ctx, key []byte) (s *sets.Set, ok bool) {
	e, ok := c.ReadAs(key, engine.Set)
	if e == nil {
		return nil, ok
	}
	return e.Set(), true
}

// readMembers is readSet for argument 1 and a command that uses only these members.
func readMembers(c *command.Ctx, members [][]byte) (s *sets.Set, ok bool) {
	e, ok := c.ReadAs(c.Args[1], engine.Set)
	if e == nil {
		return nil, ok
	}
	return e.Elements(members, 1).Set(), true
}

// readSets is readSet for several keys.
func readSets(c *command.Ctx, keys [][]byte) (operands []*sets.Set, ok bool) {
	operands = make([]*sets.Set, len(keys))
	for i, key := range keys {
		if operands[i], ok = readSet(c, key); !ok {
			return nil, false
		}
	}
	return operands, true
}

func cmdSadd(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Set)
	if !ok {
		return
	}
	if e == nil {
		e = c.G.Create(c.DB, c.Args[1], new(sets.Set))
	}
	added, lim := 0, c.Host.SetLimits()
	s := e.Elements(c.Args[2:], 1).Set()
	for _, member := range c.Args[2:] {
		if s.Add(member, lim) {
			added++
		}
	}
	if added > 0 {
		c.G.Changed(e, engine.EventSet, "sadd")
	}
	c.W.Int(int64(added))
}

func cmdScard(c *command.Ctx) { c.ReplyCount(c.Args[1], engine.Set) }

// setOperation is a combination of sets.
type setOperation struct {
	// each calls add once with each member of the combination.
	each    func(operands []*sets.Set, lim sets.Limits, add func(member []byte))
	through func(operands []*sets.Set) int // as for long
}

var (
	difference   = setOperation{setDifference, ofFirst}
	intersection = setOperation{setIntersection, ofSmallest}
	union        = setOperation{setUnion, ofAll}
)

// long calls Ctx.Long for a combination of sets. through returns how many members it looks up in each set.
func long(c *command.Ctx, operands []*sets.Set, through func(operands []*sets.Set) int) {
	sum := 0
	for _, s := range operands {
		sum += s.Len()
	}
	if sum >= command.LongFrom {
		c.Long(min(through(operands)*len(operands), sum), sum)
	}
}

func ofAll([]*sets.Set) int            { return math.MaxInt32 }
func ofFirst(operands []*sets.Set) int { return operands[0].Len() }
func ofSmallest(operands []*sets.Set) int {
	n := math.MaxInt32
	for _, s := range operands {
		n = min(n, s.Len())
	}
	return n
}

func setDifference(operands []*sets.Set, _ sets.Limits, add func(member []byte)) {
	sets.Difference(operands, 0, add)
}

func setIntersection(operands []*sets.Set, _ sets.Limits, add func(member []byte)) {
	sets.Intersect(operands, 0, add)
}

func setUnion(operands []*sets.Set, lim sets.Limits, add func(member []byte)) {
	for member := range sets.Union(operands, lim).All() {
		add(member)
	}
}

func cmdSdiff(c *command.Ctx)       { combine(c, difference) }
func cmdSdiffstore(c *command.Ctx)  { combineStore(c, difference, "sdiffstore") }
func cmdSinter(c *command.Ctx)      { combine(c, intersection) }
func cmdSinterstore(c *command.Ctx) { combineStore(c, intersection, "sinterstore") }
func cmdSunion(c *command.Ctx)      { combine(c, union) }
func cmdSunionstore(c *command.Ctx) { combineStore(c, union, "sunionstore") }

// combine replies with the result of an operation.
func combine(c *command.Ctx, op setOperation) {
	operands, ok := readSets(c, c.Args[1:])
	if !ok {
		return
	}
	long(c, operands, op.through)
	mark, n := c.W.Defer(), 0
	op.each(operands, c.Host.SetLimits(), func(member []byte) {
		c.W.Bulk(member)
		n++
	})
	c.W.EndSet(mark, n)
}

// combineStore replaces the value under key argument 1 by the result of an operation, and replies with its size. An
// empty result removes the key.
func combineStore(c *command.Ctx, op setOperation, event string) {
	operands, ok := readSets(c, c.Args[2:])
	if !ok {
		return
	}
	long(c, operands, op.through)
	result := command.Result(c, func() *sets.Set {
		s, lim := new(sets.Set), c.Host.SetLimits()
		op.each(operands, lim, func(member []byte) { s.Add(member, lim) })
		return s
	})
	n := result.Len()
	e := c.G.Write(c.DB, c.Args[1])
	switch {
	case n == 0 && e != nil:
		c.G.Remove(e, engine.EventGeneric, "del")
	case n == 0:
	case e != nil:
		c.G.OverwriteCollection(e, result)
		c.G.Changed(e, engine.EventSet, event)
	default:
		c.G.Changed(c.G.Create(c.DB, c.Args[1], result), engine.EventSet, event)
	}
	c.W.Int(int64(n))
}

// cardOptions are the options of commands that count.
type cardOptions struct {
	limit  int // 0 is none
	approx bool
}

// readCard reads the number of sets, the sets and the options of a command that counts; mayGuess says that APPROX is
// one of them, through is as for long. If they are wrong, it writes an error and ok is false.
func readCard(c *command.Ctx, mayGuess bool, through func([]*sets.Set) int) (operands []*sets.Set, options cardOptions, ok bool) {
	numKeys, ok := c.IntIn(c.Args[1], 1, math.MaxInt64, command.ErrNumKeys)
	if !ok {
		return nil, options, false
	}
	if numKeys > int64(len(c.Args)-2) {
		c.Err(command.ErrNumKeysRange)
		return nil, options, false
	}
	behind := 2 + int(numKeys)
	for o := c.Options(behind); o.Next(); {
		switch {
		case mayGuess && o.Is("approx"):
			options.approx = true
		case o.Is("limit") && o.More():
			limit, ok := c.IntIn(o.Arg(), 0, math.MaxInt64, command.ErrNegativeLimit)
			if !ok {
				return nil, options, false
			}
			options.limit = command.AsInt(limit)
		default:
			c.Err(command.ErrSyntax)
			return nil, options, false
		}
	}
	if operands, ok = readSets(c, c.Args[2:behind]); ok {
		long(c, operands, through)
	}
	return operands, options, ok
}

func cmdSintercard(c *command.Ctx) {
	if operands, o, ok := readCard(c, false, ofSmallest); ok {
		n := 0
		sets.Intersect(operands, o.limit, func([]byte) { n++ })
		c.W.Int(int64(n))
	}
}

func cmdSdiffcard(c *command.Ctx) {
	if operands, o, ok := readCard(c, false, ofFirst); ok {
		n := 0
		sets.Difference(operands, o.limit, func([]byte) { n++ })
		c.W.Int(int64(n))
	}
}

func cmdSunioncard(c *command.Ctx) {
	operands, o, ok := readCard(c, true, ofAll)
	switch {
	case !ok:
	case o.approx:
		n := int64(approximateUnion(operands))
		if o.limit > 0 {
			n = min(n, int64(o.limit))
		}
		c.W.Int(n)
	default:
		c.W.Int(int64(sets.CountUnion(operands, o.limit, c.Host.SetLimits())))
	}
}

// approximateUnion estimates the number of members of the union of sets.
func approximateUnion(operands []*sets.Set) uint64 {
	var registers hyperloglog.Registers
	for _, s := range operands {
		for member := range s.All() {
			registers.Add(member)
		}
	}
	return registers.Count()
}

func cmdSismember(c *command.Ctx) {
	if s, ok := readMembers(c, c.Args[2:3]); ok {
		isMember(c, s, c.Args[2])
	}
}

// isMember replies with 1 if the set has the member, otherwise with 0.
func isMember(c *command.Ctx, s *sets.Set, member []byte) {
	if s.Contains(member) {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
}

func cmdSmembers(c *command.Ctx) {
	s, ok := readSet(c, c.Args[1])
	if !ok {
		return
	}
	c.Long(s.Len(), s.Len())
	c.W.Set(s.Len())
	for member := range s.All() {
		c.W.Bulk(member)
	}
}

func cmdSmismember(c *command.Ctx) {
	s, ok := readMembers(c, c.Args[2:])
	if !ok {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		isMember(c, s, member)
	}
}

func cmdSmove(c *command.Ctx) {
	member := c.Args[3]
	src := c.G.Write(c.DB, c.Args[1])
	if src == nil { // the destination may be of any type
		c.W.Int(0)
		return
	}
	dst := c.G.Write(c.DB, c.Args[2])
	if src.Type() != engine.Set || dst != nil && dst.Type() != engine.Set {
		c.Err(command.ErrWrongType)
		return
	}
	if src == dst {
		isMember(c, src.Elements(c.Args[3:], 1).Set(), member)
		return
	}
	var to *sets.Set
	if dst != nil {
		to = dst.Elements(c.Args[3:], 1).Set() // loaded before any change, because loading may fail
	}
	if !src.Elements(c.Args[3:], 1).Set().Remove(member) {
		c.W.Int(0)
		return
	}
	setShrunk(c, src, "srem")
	if dst == nil {
		to = new(sets.Set)
		dst = c.G.Create(c.DB, c.Args[2], to)
	}
	if to.Add(member, c.Host.SetLimits()) {
		c.G.Changed(dst, engine.EventSet, "sadd")
	} else if at, _ := to.Deadline(member); at != 0 { // a moved member does not expire
		to.SetDeadline(member, 0, c.Host.SetLimits())
		c.G.ChangedFields(dst, "spersist", c.Args[3:], 1)
	}
	c.W.Int(1)
}

// setShrunk reports that members were removed from a set, and removes the key if none is left.
func setShrunk(c *command.Ctx, e *engine.Entry, event string) {
	c.G.Changed(e, engine.EventSet, event)
	if e.Count() == 0 {
		c.G.Remove(e, engine.EventGeneric, "del")
	}
}

func cmdSpop(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Err(command.ErrSyntax)
		return
	}
	count, counted := int64(1), len(c.Args) == 3
	if counted {
		var ok bool
		if count, ok = c.IntIn(c.Args[2], 0, math.MaxInt64, command.ErrNotPositive); !ok {
			return
		}
	}
	e, ok := c.WriteAs(c.Args[1], engine.Set)
	switch {
	case !ok:
		return
	case e == nil && !counted:
		c.W.Null()
		return
	case e == nil || count == 0:
		c.W.Set(0)
		return
	}
	n := int(min(count, int64(e.Set().Len())))
	if counted {
		c.W.Set(n)
	}
	if n == e.Set().Len() { // removing them one by one would cost more
		for member := range e.Set().All() {
			c.W.Bulk(member)
		}
		c.G.Changed(e, engine.EventSet, "spop")
		c.G.Remove(e, engine.EventGeneric, "del")
		c.JournalDelete(c.Args[1])
		return
	}
	if n == 1 {
		var scratch [64]byte
		member, _ := e.Set().Pop(scratch[:0])
		c.W.Bulk(member)
		c.Journal([]byte("SREM"), c.Args[1], member)
	} else {
		removed := append(make([][]byte, 0, n+2), []byte("SREM"), c.Args[1])
		for range n {
			member, _ := e.Set().Pop(nil) // in new memory, because it is journalled later
			c.W.Bulk(member)
			removed = append(removed, member)
		}
		c.Journal(removed...)
	}
	c.G.Changed(e, engine.EventSet, "spop")
}

func cmdSrandmember(c *command.Ctx) {
	switch len(c.Args) {
	case 2:
		s, ok := readSet(c, c.Args[1])
		switch {
		case !ok:
		case s.Len() == 0:
			c.W.Null()
		default:
			s.Random(1, c.W.Bulk)
		}
		return
	case 3:
	default:
		c.Err(command.ErrSyntax)
		return
	}
	count, ok := c.OppositeInt(c.Args[2])
	if !ok {
		return
	}
	s, ok := readSet(c, c.Args[1])
	switch {
	case !ok:
	case s.Len() == 0 || count == 0:
		c.W.Array(0)
	case count < 0:
		c.Repeat(count, c.W.Array, func(n int, room func() bool) {
			s.Random(n, func(member []byte) {
				if room() {
					c.W.Bulk(member)
				}
			})
		})
	default:
		n := int(min(count, int64(s.Len())))
		c.W.Array(n)
		s.Sample(n, c.W.Bulk)
	}
}

func cmdSrem(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Set)
	if !ok {
		return
	}
	removed := 0
	if e != nil {
		s := e.Elements(c.Args[2:], 1).Set()
		for _, member := range c.Args[2:] {
			if s.Remove(member) {
				removed++
			}
		}
	}
	if removed > 0 {
		setShrunk(c, e, "srem")
	}
	c.W.Int(int64(removed))
}

func cmdSscan(c *command.Ctx) {
	e, o, ok := c.ScanCollection(engine.Set, 0)
	if !ok {
		return
	}
	var found resp.Writer
	n := 0
	visit := func(member []byte) {
		if o.Match(member) {
			found.Bulk(member)
			n++
		}
	}
	next := c.ScanValue(e, &o, &found, func(e *engine.Entry, cursor uint64, count int) uint64 {
		return e.Set().Scan(cursor, count, visit)
	})
	c.ScanReply(next, n, &found)
}
