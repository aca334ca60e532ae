package zsets

import (
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands that move members from one sorted set to another.

func init() { command.Register(zmoveCommands) }

var zmoveCommands = []*command.Command{
	{Name: "bzmove", Group: "sorted_set", Since: "8.12.0", Arity: -5, ACL: command.CatSortedSet,
		Flags:      command.Write | command.DenyOOM | command.Blocking,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves members at an end of one sorted set to another, and can wait for them",
		Syntax:     "source destination <MIN | MAX> timeout [COUNT count]",
		Complexity: zmoveComplexity, Do: cmdBzmove},
	{Name: "zmove", Group: "sorted_set", Since: "8.12.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves members at an end of one sorted set, or in a range of scores, to another",
		Syntax:     "source destination <MIN | MAX | BYSCORE score-min score-max> [COUNT count]",
		Complexity: zmoveComplexity, Do: cmdZmove},
	{Name: "zmovemember", Group: "sorted_set", Since: "8.12.0", Arity: -6, Flags: command.Write | command.DenyOOM,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE] i2+r0/1/0[RW,INSERT]"),
		Summary:    "Moves members of one sorted set to another",
		Syntax:     "source destination [NX | XX] MEMBERS num-members member [member ...]",
		Complexity: zmoveComplexity, Do: cmdZmovemember},
}

const zmoveComplexity = "O(K*(log(N)+log(M))), where K is the number of members to move, and N and M are the sizes of the sorted sets"

// selection is the choice of the members that ZMOVE moves.
type selection struct {
	end     zend
	byScore bool
	scores  zsets.ScoreRange
	count   int // the most members to move; -1 is all, in a range
	single  bool
}

// readSelection reads the words from argument 3 on. If they are wrong, it writes an error and ok is false. waiting says that
// a timeout follows the end, and that there is no range.
func readSelection(c *command.Ctx, waiting bool) (s selection, timeout int64, ok bool) {
	s.count, s.single = 1, true
	o := c.Options(3)
	o.Next()
	switch {
	case o.Is("min"):
	case o.Is("max"):
		s.end = highest
	case !waiting && o.Is("byscore") && o.Left() >= 2:
		r := zrange{by: byScore}
		if !r.readBounds(c, o.Arg(), o.Arg()) {
			return s, 0, false
		}
		s.byScore, s.scores, s.count, s.single = true, r.scores, -1, false
	default:
		c.Err(command.ErrSyntax)
		return s, 0, false
	}
	var timeoutArg []byte
	if waiting {
		timeoutArg = o.Arg()
	}
	for counted := false; o.Next(); counted = true {
		if counted || !o.Is("count") || !o.More() {
			c.Err(command.ErrSyntax)
			return s, 0, false
		}
		n, ok := c.IntIn(o.Arg(), 1, math.MaxInt64, command.ErrCountPositive)
		if !ok {
			return s, 0, false
		}
		s.count, s.single = command.AsInt(n), false
	}
	if waiting {
		if timeout, ok = c.Timeout(timeoutArg); !ok {
			return s, 0, false
		}
	}
	return s, timeout, true
}

// scored is a member with its score.
type scored struct {
	member []byte
	score  float64
}

// pick returns the selected members of a sorted set.
func (s *selection) pick(z *zsets.ZSet) (picked []scored) {
	take := func(member []byte, score float64) bool {
		picked = append(picked, scored{slices.Clone(member), score})
		return true
	}
	switch n := min(s.count, z.Len()); {
	case s.byScore:
		z.RangeByScore(s.scores, false, 0, s.count, take)
	default:
		z.RangeByRank(0, n-1, s.end == highest, take)
	}
	return picked
}

// event returns the name of the event of the sorted set that loses members.
func (s *selection) event() string {
	switch {
	case s.byScore:
		return "zrem"
	case s.end == highest:
		return "zpopmax"
	}
	return "zpopmin"
}

func cmdZmove(c *command.Ctx) {
	s, _, ok := readSelection(c, false)
	if !ok {
		return
	}
	src, ok := c.WriteAs(c.Args[1], engine.ZSet)
	switch {
	case !ok:
	case src == nil:
		c.W.NullArray()
	default:
		s.move(c, src)
	}
}

// move moves the selected members from a sorted set to that of the key argument 2, and reports whether there were any.
func (s *selection) move(c *command.Ctx, src *engine.Entry) bool {
	dst, ok := c.WriteAs(c.Args[2], engine.ZSet)
	switch {
	case !ok:
		return false
	case dst == src:
		c.W.NullArray()
		return false
	}
	picked := s.pick(src.ZSet())
	if len(picked) == 0 {
		c.W.NullArray()
		return false
	}
	var to *zsets.ZSet
	if dst != nil {
		to = dst.ZSet() // loaded before any change, because loading may fail
	}
	out := members(c, true)
	out.pairs = out.pairs && !s.single
	moveMembers(c, src, src.ZSet(), dst, to, picked, s.event(), out)
	return true
}

// moveMembers moves members from one sorted set to another, which is nil if its key, argument 2, is missing. It reports
// and replies.
func moveMembers(c *command.Ctx, src *engine.Entry, from *zsets.ZSet, dst *engine.Entry, to *zsets.ZSet, picked []scored,
	event string, out zsetReply) {
	for _, m := range picked {
		from.Remove(m.member)
	}
	zremoved(c, src, len(picked), event)
	if dst == nil {
		to = zsets.New()
		dst = c.G.Create(c.DB, c.Args[2], to)
	}
	c.W.Array(out.length(len(picked)))
	lim := c.Host.ZSetLimits()
	for _, m := range picked {
		to.Set(m.member, m.score, lim)
		out.add(m.member, m.score)
	}
	c.G.Changed(dst, engine.EventZSet, "zadd")
}

func cmdBzmove(c *command.Ctx) {
	s, timeout, ok := readSelection(c, true)
	if !ok {
		return
	}
	src, ok := c.WriteAs(c.Args[1], engine.ZSet)
	switch {
	case !ok:
		return
	case src != nil:
		s.moveWaited(c, src)
		return
	case c.NoBlock || string(c.Args[1]) == string(c.Args[2]):
		c.W.NullArray()
		return
	}
	c.Block(command.Block{
		Keys:    c.Args[1:2],
		Shards:  c.Host.Keyspace().ShardOf(c.Args[2]),
		Timeout: timeout,
		Empty:   (*resp.Writer).NullArray,
		Try: func(c *command.Ctx, key []byte) bool {
			src := c.G.Write(c.DB, key)
			if src == nil || src.Type() != engine.ZSet {
				return false
			}
			s.moveWaited(c, src)
			return true
		},
	})
}

// moveWaited is move for a command that may have waited. It is journalled in the form that does not wait.
func (s *selection) moveWaited(c *command.Ctx, src *engine.Entry) {
	if !s.move(c, src) {
		return
	}
	end := "MIN"
	if s.end == highest {
		end = "MAX"
	}
	var scratch [20]byte
	c.Journal([]byte("ZMOVE"), c.Args[1], c.Args[2], []byte(end), []byte("COUNT"), strconv.AppendInt(scratch[:0], int64(s.count), 10))
}

const errNumMembers command.Error = "ERR num-members should be greater than 0"

func cmdZmovemember(c *command.Ctx) {
	var names [][]byte
	var nx, xx bool
	for o := c.Options(3); o.Next(); {
		switch {
		case names == nil && o.Is("members") && o.Left() >= 2:
			n, ok := c.IntIn(o.Arg(), 1, math.MaxInt64, errNumMembers)
			if !ok {
				return
			}
			if n > int64(o.Left()) {
				c.Err(command.ErrSyntax)
				return
			}
			names = o.Take(int(n))
		case !xx && o.Is("nx"):
			nx = true
		case !nx && o.Is("xx"):
			xx = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if names == nil {
		c.Err(command.ErrSyntax)
		return
	}
	src, ok := c.WriteAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if src == nil {
		c.W.NullArray()
		return
	}
	dst, ok := c.WriteAs(c.Args[2], engine.ZSet)
	switch {
	case !ok:
		return
	case dst == src:
		c.W.NullArray()
		return
	}
	from, to := src.Elements(names, 1).ZSet(), (*zsets.ZSet)(nil)
	if dst != nil {
		to = dst.Elements(names, 1).ZSet()
	}
	var picked []scored
	seen := make(map[string]struct{}, len(names))
	for _, name := range names {
		score, ok := from.Score(name)
		if _, twice := seen[string(name)]; twice || !ok {
			continue
		}
		seen[string(name)] = struct{}{}
		if nx || xx {
			there := false
			if to != nil {
				_, there = to.Score(name)
			}
			if there != xx {
				continue
			}
		}
		picked = append(picked, scored{name, score})
	}
	if len(picked) == 0 {
		c.W.NullArray()
		return
	}
	moveMembers(c, src, from, dst, to, picked, "zrem", members(c, true))
}
