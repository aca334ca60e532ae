package sets

import (
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/internal/elements"
)

// This file has the commands on the deadlines of members; package elements has the handlers for hashes and sets.

func init() { command.Register(setExpireCommands) }

var setExpireCommands = []*command.Command{
	{Name: "saddex", Group: "set", Since: "8.12.0", Arity: -5, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatSet, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Adds members and sets their time to live",
		Syntax: "key [MNX | MXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] " +
			"MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members to add", Do: cmdSaddex},
	{Name: "sexpire", Group: "set", Since: "8.12.0", Arity: -6, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets the time to live of members in seconds",
		Syntax:     "key seconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSexpire},
	{Name: "sexpireat", Group: "set", Since: "8.12.0", Arity: -6, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when members expire, as a Unix time in seconds",
		Syntax:     "key unix-time-seconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSexpireat},
	{Name: "sexpiretime", Group: "set", Since: "8.12.0", Arity: -5, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns when members expire, as a Unix time in seconds", Syntax: "key MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSexpiretime},
	{Name: "spersist", Group: "set", Since: "8.12.0", Arity: -5, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Removes the time to live of members", Syntax: "key MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSpersist},
	{Name: "spexpire", Group: "set", Since: "8.12.0", Arity: -6, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets the time to live of members in milliseconds",
		Syntax:     "key milliseconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSpexpire},
	{Name: "spexpireat", Group: "set", Since: "8.12.0", Arity: -6, Flags: command.Write | command.Fast, ACL: command.CatSet,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when members expire, as a Unix time in milliseconds",
		Syntax:     "key unix-time-milliseconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSpexpireat},
	{Name: "spexpiretime", Group: "set", Since: "8.12.0", Arity: -5, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns when members expire, as a Unix time in milliseconds",
		Syntax:     "key MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSpexpiretime},
	{Name: "spttl", Group: "set", Since: "8.12.0", Arity: -5, Flags: command.ReadOnly | command.Fast, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the time to live of members in milliseconds", Syntax: "key MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSpttl},
	{Name: "sttl", Group: "set", Since: "8.12.0", Arity: -5, Flags: command.ReadOnly | command.Fast, ACL: command.CatSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the time to live of members in seconds", Syntax: "key MEMBERS nummembers member [member ...]",
		Complexity: "O(N), where N is the number of members named", Do: cmdSttl},
}

// members describes members for package elements.
var members = elements.New(elements.Kind{
	Type: engine.Set, Word: "member", Prefix: "s", Remove: "srem",
	Of: func(c *command.Ctx, e *engine.Entry, list [][]byte, step int) elements.Value {
		return &expiringSet{e.Elements(list, step).Set(), c.Host.SetLimits()}
	},
})

// expiringSet is a set as an elements.Value.
type expiringSet struct {
	*sets.Set
	limits sets.Limits
}

func (s *expiringSet) SetDeadline(member []byte, at int64) bool {
	return s.Set.SetDeadline(member, at, s.limits)
}
func (s *expiringSet) Delete(member []byte) bool { return s.Remove(member) }

func cmdSexpire(c *command.Ctx)    { members.Expire(c, command.InSeconds) }
func cmdSexpireat(c *command.Ctx)  { members.Expire(c, command.AtSeconds) }
func cmdSpexpire(c *command.Ctx)   { members.Expire(c, command.InMillis) }
func cmdSpexpireat(c *command.Ctx) { members.Expire(c, command.AtMillis) }

func cmdSexpiretime(c *command.Ctx)  { members.Times(c, command.AtSeconds) }
func cmdSpexpiretime(c *command.Ctx) { members.Times(c, command.AtMillis) }
func cmdSttl(c *command.Ctx)         { members.Times(c, command.InSeconds) }
func cmdSpttl(c *command.Ctx)        { members.Times(c, command.InMillis) }

func cmdSpersist(c *command.Ctx) { members.Persist(c) }

func cmdSaddex(c *command.Ctx) {
	x, ok := members.ReadOptions(c, 1, false, elements.ErrTimesOrKeepTTL)
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Set)
	if !ok {
		return
	}
	var s *sets.Set
	if e != nil {
		s = e.Elements(x.Names, 1).Set()
	}
	if !x.Meets(1, s.Contains) {
		c.W.Int(0)
		return
	}
	c.W.Int(1)
	expires := x.Flags&elements.Expires != 0
	over := expires && c.Over(x.At) // then members are removed, and none is added
	switch {
	case e != nil:
	case over:
		return
	default:
		e = c.G.Create(c.DB, c.Args[1], new(sets.Set))
		s = e.Set()
	}
	v, done := &expiringSet{s, c.Host.SetLimits()}, members.Changes()
	for _, member := range x.Names {
		if !over {
			s.Add(member, v.limits)
		}
		switch {
		case expires:
			done.Expire(c, v, member, x.At, command.ExpireConditions{})
		case x.Flags&elements.KeepTTL == 0:
			v.SetDeadline(member, 0)
		}
	}
	if over {
		done.Tell(c, e, x.At)
		return
	}
	c.G.ChangedFields(e, "sadd", x.Names, 1)
	if expires {
		done.TellExpiring(c, e)
		c.Journal(members.AppendList([][]byte{saddexWord, c.Args[1], pxatWord, strconv.AppendInt(nil, x.At, 10)}, x.Names)...)
	}
}

// Words of the command that SADDEX with a deadline is journalled as.
var (
	saddexWord = []byte("SADDEX")
	pxatWord   = []byte("PXAT")
)
