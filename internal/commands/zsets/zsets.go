// Package zsets has the commands on sorted sets. This file has commands on named members; range.go has ranges,
// operations.go combines several sets, blocking.go pops at the ends.
package zsets

import (
	"math"
	"math/rand/v2"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(zsetCommands) }

var zsetCommands = []*command.Command{
	{Name: "bzmpop", Group: "sorted_set", Since: "7.0.0", Arity: -5, Flags: command.Write | command.Blocking,
		ACL: command.CatSortedSet, Keys: command.Keys("i2+n0/1/1[RW,ACCESS,DELETE]"),
		Summary:    "Removes and returns members at an end of the first sorted set that has any, and can wait for some",
		Syntax:     "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
		Complexity: "O(K)+O(M*log(N)), where K is the number of keys, M that of members removed and N the size of their set", Do: cmdBzmpop},
	{Name: "bzpopmax", Group: "sorted_set", Since: "5.0.0", Arity: -3,
		Flags: command.Write | command.Fast | command.Blocking,
		ACL:   command.CatSortedSet, Keys: command.Keys("i1+r-2/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns the highest member of the first sorted set that has any, and can wait for one",
		Syntax:  "key [key ...] timeout", Complexity: "O(log(N)), where N is the size of the sorted set", Do: cmdBzpopmax},
	{Name: "bzpopmin", Group: "sorted_set", Since: "5.0.0", Arity: -3,
		Flags: command.Write | command.Fast | command.Blocking,
		ACL:   command.CatSortedSet, Keys: command.Keys("i1+r-2/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns the lowest member of the first sorted set that has any, and can wait for one",
		Syntax:  "key [key ...] timeout", Complexity: "O(log(N)), where N is the size of the sorted set", Do: cmdBzpopmin},
	{Name: "zadd", Group: "sorted_set", Since: "1.2.0", Arity: -4, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"), Element: 3,
		Summary:    "Adds members with their scores, or changes the scores of members",
		Syntax:     "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
		Complexity: "O(log(N)) for each member, where N is the size of the sorted set", Do: cmdZadd},
	{Name: "zcard", Group: "sorted_set", Since: "1.2.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO]"),
		Summary: "Counts the members of a sorted set", Syntax: "key", Complexity: "O(1)", Do: cmdZcard},
	{Name: "zcount", Group: "sorted_set", Since: "2.0.0", Arity: 4, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Counts the members in a range of scores", Syntax: "key min max",
		Complexity: "O(log(N)), where N is the size of the sorted set", Do: cmdZcount},
	{Name: "zdiff", Group: "sorted_set", Since: "6.2.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSortedSet,
		Keys:       command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary:    "Computes the difference of sorted sets",
		Syntax:     "numkeys key [key ...] [WITHSCORES]",
		Complexity: "O(L + K*log(K)), where L is the number of members in all sets and K that of the result", Do: cmdZdiff},
	{Name: "zdiffstore", Group: "sorted_set", Since: "6.2.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[OW,UPDATE] i2+n0/1/1[RO,ACCESS]"),
		Summary:    "Stores the difference of sorted sets",
		Syntax:     "destination numkeys key [key ...]",
		Complexity: "O(L + K*log(K)), where L is the number of members in all sets and K that of the result",
		Do:         cmdZdiffstore},
	{Name: "zincrby", Group: "sorted_set", Since: "1.2.0", Arity: 4, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"), Element: 3,
		Summary: "Increments the score of a member", Syntax: "key increment member",
		Complexity: "O(log(N)), where N is the size of the sorted set", Do: cmdZincrby},
	{Name: "zinter", Group: "sorted_set", Since: "6.2.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSortedSet,
		Keys:       command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary:    "Computes the intersection of sorted sets",
		Syntax:     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>] [WITHSCORES]",
		Complexity: "O(N*K)+O(M*log(M)), where N is the size of the smallest set, K the number of sets and M the size of the result", Do: cmdZinter},
	{Name: "zintercard", Group: "sorted_set", Since: "7.0.0", Arity: -3, Flags: command.ReadOnly,
		ACL:        command.CatSortedSet,
		Keys:       command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary:    "Counts the members of an intersection of sorted sets",
		Syntax:     "numkeys key [key ...] [LIMIT limit]",
		Complexity: "O(N*K), where N is the size of the smallest set and K the number of sets", Do: cmdZintercard},
	{Name: "zinterstore", Group: "sorted_set", Since: "2.0.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[OW,UPDATE] i2+n0/1/1[RO,ACCESS]"),
		Summary:    "Stores the intersection of sorted sets",
		Syntax:     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>]",
		Complexity: "O(N*K)+O(M*log(M)), where N is the size of the smallest set, K the number of sets and M the size of the result", Do: cmdZinterstore},
	{Name: "zlexcount", Group: "sorted_set", Since: "2.8.9", Arity: 4, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Counts the members in a range of names, where all scores are the same", Syntax: "key min max",
		Complexity: "O(log(N)), where N is the size of the sorted set", Do: cmdZlexcount},
	{Name: "zmpop", Group: "sorted_set", Since: "7.0.0", Arity: -4, Flags: command.Write, ACL: command.CatSortedSet,
		Keys:       command.Keys("i1+n0/1/1[RW,ACCESS,DELETE]"),
		Summary:    "Removes and returns members at an end of the first sorted set that has any",
		Syntax:     "numkeys key [key ...] <MIN | MAX> [COUNT count]",
		Complexity: "O(K)+O(M*log(N)), where K is the number of keys, M that of members removed and N the size of their set", Do: cmdZmpop},
	{Name: "zmscore", Group: "sorted_set", Since: "6.2.0", Arity: -3, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"), Element: 2,
		Summary: "Returns the scores of members", Syntax: "key member [member ...]",
		Complexity: "O(N), where N is the number of members asked for", Do: cmdZmscore},
	{Name: "zpopmax", Group: "sorted_set", Since: "5.0.0", Arity: -2, Flags: command.Write | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns the highest members", Syntax: "key [count]",
		Complexity: "O(M*log(N)), where M is the number of members removed and N the size of the sorted set", Do: cmdZpopmax},
	{Name: "zpopmin", Group: "sorted_set", Since: "5.0.0", Arity: -2, Flags: command.Write | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary: "Removes and returns the lowest members", Syntax: "key [count]",
		Complexity: "O(M*log(N)), where M is the number of members removed and N the size of the sorted set", Do: cmdZpopmin},
	{Name: "zrandmember", Group: "sorted_set", Since: "6.2.0", Arity: -2, Flags: command.ReadOnly,
		ACL:     command.CatSortedSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns random members", Syntax: "key [count [WITHSCORES]]",
		Complexity: "O(M*log(N)), where M is the number of members returned and N the size of the sorted set",
		Do:         cmdZrandmember},
	{Name: "zrange", Group: "sorted_set", Since: "1.2.0", Arity: -4, Flags: command.ReadOnly, ACL: command.CatSortedSet,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns the members in a range of ranks, scores or names",
		Syntax:     "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members returned", Do: cmdZrange},
	{Name: "zrangebylex", Group: "sorted_set", Since: "2.8.9", Deprecated: "6.2.0",
		Instead: "`ZRANGE` with the `BYLEX` argument",
		Arity:   -4, Flags: command.ReadOnly, ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns the members in a range of names, where all scores are the same",
		Syntax:     "key min max [LIMIT offset count]",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members returned",
		Do:         cmdZrangebylex},
	{Name: "zrangebyscore", Group: "sorted_set", Since: "1.0.5", Deprecated: "6.2.0",
		Instead: "`ZRANGE` with the `BYSCORE` argument", Arity: -4, Flags: command.ReadOnly, ACL: command.CatSortedSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the members in a range of scores", Syntax: "key min max [WITHSCORES] [LIMIT offset count]",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members returned",
		Do:         cmdZrangebyscore},
	{Name: "zrangestore", Group: "sorted_set", Since: "6.2.0", Arity: -5, Flags: command.Write | command.DenyOOM,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[OW,UPDATE] i2+r0/1/0[RO,ACCESS]"),
		Summary:    "Stores the members in a range of ranks, scores or names",
		Syntax:     "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
		Complexity: "O(log(N)+M*log(M)), where N is the size of the source and M the number of members stored",
		Do:         cmdZrangestore},
	{Name: "zrank", Group: "sorted_set", Since: "2.0.0", Arity: -3, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"), Element: 2,
		Summary: "Returns the rank of a member", Syntax: "key member [WITHSCORE]",
		Complexity: "O(log(N)), where N is the size of the sorted set", Do: cmdZrank},
	{Name: "zrem", Group: "sorted_set", Since: "1.2.0", Arity: -3, Flags: command.Write | command.Fast,
		ACL:  command.CatSortedSet,
		Keys: command.Keys("i1+r0/1/0[RW,DELETE]"), Element: 2,
		Summary: "Removes members", Syntax: "key member [member ...]",
		Complexity: "O(M*log(N)), where M is the number of members removed and N the size of the sorted set", Do: cmdZrem},
	{Name: "zremrangebylex", Group: "sorted_set", Since: "2.8.9", Arity: 4, Flags: command.Write,
		ACL:     command.CatSortedSet,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes the members in a range of names, where all scores are the same", Syntax: "key min max",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members removed",
		Do:         cmdZremrangebylex},
	{Name: "zremrangebyrank", Group: "sorted_set", Since: "2.0.0", Arity: 4, Flags: command.Write,
		ACL:     command.CatSortedSet,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes the members in a range of ranks", Syntax: "key start stop",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members removed",
		Do:         cmdZremrangebyrank},
	{Name: "zremrangebyscore", Group: "sorted_set", Since: "1.2.0", Arity: 4, Flags: command.Write,
		ACL:     command.CatSortedSet,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes the members in a range of scores", Syntax: "key min max",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members removed",
		Do:         cmdZremrangebyscore},
	{Name: "zrevrange", Group: "sorted_set", Since: "1.2.0", Deprecated: "6.2.0",
		Instead: "`ZRANGE` with the `REV` argument",
		Arity:   -4, Flags: command.ReadOnly, ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the members in a range of ranks, highest first", Syntax: "key start stop [WITHSCORES]",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members returned",
		Do:         cmdZrevrange},
	{Name: "zrevrangebylex", Group: "sorted_set", Since: "2.8.9", Deprecated: "6.2.0",
		Instead: "`ZRANGE` with the `REV` and `BYLEX` arguments", Arity: -4, Flags: command.ReadOnly,
		ACL:        command.CatSortedSet,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns the members in a range of names, last first, where all scores are the same",
		Syntax:     "key max min [LIMIT offset count]",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members returned",
		Do:         cmdZrevrangebylex},
	{Name: "zrevrangebyscore", Group: "sorted_set", Since: "2.2.0", Deprecated: "6.2.0",
		Instead: "`ZRANGE` with the `REV` and `BYSCORE` arguments", Arity: -4, Flags: command.ReadOnly,
		ACL:        command.CatSortedSet,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns the members in a range of scores, highest first",
		Syntax:     "key max min [WITHSCORES] [LIMIT offset count]",
		Complexity: "O(log(N)+M), where N is the size of the sorted set and M the number of members returned",
		Do:         cmdZrevrangebyscore},
	{Name: "zrevrank", Group: "sorted_set", Since: "2.0.0", Arity: -3, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"), Element: 2,
		Summary: "Returns the rank of a member, counted from the highest", Syntax: "key member [WITHSCORE]",
		Complexity: "O(log(N)), where N is the size of the sorted set", Do: cmdZrevrank},
	{Name: "zscan", Group: "sorted_set", Since: "2.8.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSortedSet,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Iterates over the members of a sorted set", Syntax: "key cursor [MATCH pattern] [COUNT count]",
		Complexity: "O(1) for every call, O(N) for a complete walk, where N is the size of the sorted set", Do: cmdZscan, InSteps: true},
	{Name: "zscore", Group: "sorted_set", Since: "1.2.0", Arity: 3, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"), Element: 2,
		Summary: "Returns the score of a member", Syntax: "key member", Complexity: "O(1)", Do: cmdZscore},
	{Name: "zunion", Group: "sorted_set", Since: "6.2.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatSortedSet,
		Keys:       command.Keys("i1+n0/1/1[RO,ACCESS]"),
		Summary:    "Computes the union of sorted sets",
		Syntax:     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>] [WITHSCORES]",
		Complexity: "O(N)+O(M*log(M)), where N is the number of members in all sets and M the size of the result",
		Do:         cmdZunion},
	{Name: "zunionstore", Group: "sorted_set", Since: "2.0.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL: command.CatSortedSet, Keys: command.Keys("i1+r0/1/0[OW,UPDATE] i2+n0/1/1[RO,ACCESS]"),
		Summary:    "Stores the union of sorted sets",
		Syntax:     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>]",
		Complexity: "O(N)+O(M*log(M)), where N is the number of members in all sets and M the size of the result",
		Do:         cmdZunionstore},
}

// Errors of ZADD and ZRANDMEMBER.
const (
	errZaddNXandXX   command.Error = "ERR XX and NX options at the same time are not compatible"
	errZaddGTandLT   command.Error = "ERR GT, LT, and/or NX options at the same time are not compatible"
	errZaddIncrPairs command.Error = "ERR INCR option supports a single increment-element pair"
	errScoreNaN      command.Error = "ERR resulting score is not a number (NaN)"
)

// AddRule has the options of ZADD.
type AddRule struct {
	NX, XX bool // only new members, only existing members
	gt, lt bool // change scores only upward, only downward
	CH     bool // count changed members too
	incr   bool // add the score to the present one, and return the sum
}

func cmdZadd(c *command.Ctx) {
	var r AddRule
	i := 2
flags:
	for ; i < len(c.Args); i++ {
		switch w := c.Args[i]; {
		case command.EqualFold(w, "nx"):
			r.NX = true
		case command.EqualFold(w, "xx"):
			r.XX = true
		case command.EqualFold(w, "gt"):
			r.gt = true
		case command.EqualFold(w, "lt"):
			r.lt = true
		case command.EqualFold(w, "ch"):
			r.CH = true
		case command.EqualFold(w, "incr"):
			r.incr = true
		default:
			break flags
		}
	}
	pairs := c.Args[i:]
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		c.Err(command.ErrSyntax)
	case r.NX && r.XX:
		c.Err(errZaddNXandXX)
	case r.gt && r.lt || r.NX && (r.gt || r.lt):
		c.Err(errZaddGTandLT)
	case r.incr && len(pairs) > 2:
		c.Err(errZaddIncrPairs)
	default:
		zadd(c, r, pairs)
	}
}

func cmdZincrby(c *command.Ctx) { zadd(c, AddRule{incr: true}, c.Args[2:4]) }

// zadd applies the rule to pairs of score and member.
func zadd(c *command.Ctx, r AddRule, pairs [][]byte) {
	var room [16]float64
	scores := room[:0]
	for i := 0; i < len(pairs); i += 2 {
		score, ok := c.Float(pairs[i])
		if !ok {
			return
		}
		scores = append(scores, score)
	}
	AddScores(c, r, scores, pairs)
}

// AddScores applies the rule to scores and their members. args has the same number of arguments for each score, the
// last of which is the member.
func AddScores(c *command.Ctx, r AddRule, scores []float64, args [][]byte) {
	each := len(args) / len(scores)
	e, ok := c.WriteAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if e == nil {
		if r.XX {
			zaddReply(c, r, 0, 0, 0, false)
			return
		}
		// Every rule except XX adds new members, so the set will not stay empty.
		e = c.G.Create(c.DB, c.Args[1], zsets.New())
	}
	var added, changed int
	var last float64
	var done bool
	z, lim := e.Elements(args[each-1:], each).ZSet(), c.Host.ZSetLimits()
	for i, score := range scores {
		var was zaddOutcome
		switch last, was = r.apply(z, args[each*(i+1)-1], score, lim); was {
		case zaddNaN:
			c.Err(errScoreNaN)
			return // with incr there is only one pair, so nothing has changed
		case zaddAdded:
			added++
		case zaddChanged:
			changed++
		}
		done = was != zaddRefused
	}
	if added+changed > 0 {
		event := "zadd"
		if r.incr {
			event = "zincr"
		}
		c.G.Changed(e, engine.EventZSet, event)
	}
	zaddReply(c, r, added, changed, last, done)
}

func zaddReply(c *command.Ctx, r AddRule, added, changed int, last float64, done bool) {
	switch {
	case r.incr && done:
		c.W.Double(last)
	case r.incr:
		c.W.Null()
	case r.CH:
		c.W.Int(int64(added + changed))
	default:
		c.W.Int(int64(added))
	}
}

// zaddOutcome is the outcome for a member.
type zaddOutcome uint8

const (
	zaddRefused zaddOutcome = iota // the rule forbids the change
	zaddSame                       // the member already has the score
	zaddChanged
	zaddAdded
	zaddNaN // the sum is not a number
)

// apply sets the score of a member if the rule allows it, and returns the resulting score.
func (r *AddRule) apply(z *zsets.ZSet, member []byte, score float64, lim zsets.Limits) (float64, zaddOutcome) {
	if r.NX || r.XX || r.gt || r.lt || r.incr {
		old, existed := z.Score(member)
		switch {
		case !existed && r.XX, existed && r.NX:
			return 0, zaddRefused
		case existed && r.incr:
			if score += old; math.IsNaN(score) {
				return 0, zaddNaN
			}
		}
		if existed && (r.lt && score >= old || r.gt && score <= old) {
			return 0, zaddRefused
		}
	}
	switch old, existed := setScore(z, member, score, lim); {
	case !existed:
		return score, zaddAdded
	case old != score:
		return score, zaddChanged
	}
	return score, zaddSame
}

// setScore gives a member its score in a set that is, or will be, the value of a key. In such sets, small ones have
// no negative zero, but large ones do.
func setScore(z *zsets.ZSet, member []byte, score float64, lim zsets.Limits) (old float64, existed bool) {
	if score == 0 && z.Encoding() == "listpack" && z.Len() < lim.Entries && len(member) <= lim.Value {
		score = 0
	}
	return z.Set(member, score, lim)
}

func cmdZcard(c *command.Ctx) { c.ReplyCount(c.Args[1], engine.ZSet) }

func cmdZmscore(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if e != nil {
		e = e.Elements(c.Args[2:], 1)
	}
	c.W.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		zscore(c, e, member)
	}
}

func cmdZscore(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if e != nil {
		e = e.Elements(c.Args[2:3], 1)
	}
	zscore(c, e, c.Args[2])
}

// zscore replies with the score of a member of e, which may be nil.
func zscore(c *command.Ctx, e *engine.Entry, member []byte) {
	if e != nil {
		if score, ok := e.ZSet().Score(member); ok {
			c.W.Double(score)
			return
		}
	}
	c.W.Null()
}

func cmdZrandmember(c *command.Ctx) {
	if len(c.Args) == 2 {
		e, ok := c.ReadAs(c.Args[1], engine.ZSet)
		switch {
		case !ok:
		case e == nil:
			c.W.Null()
		default:
			member, _ := e.ZSet().At(rand.IntN(e.ZSet().Len()))
			c.W.Bulk(member)
		}
		return
	}
	count, ok := c.OppositeInt(c.Args[2])
	if !ok {
		return
	}
	withScores := len(c.Args) == 4 && command.EqualFold(c.Args[3], "withscores")
	switch {
	case len(c.Args) > 3 && !withScores:
		c.Err(command.ErrSyntax)
		return
	case withScores && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		c.Err(command.ErrOutOfRange)
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if e == nil || count == 0 {
		c.W.Array(0)
		return
	}
	z, out := e.ZSet(), members(c, withScores)
	n := int64(z.Len())
	switch {
	case count < 0:
		begin := func(n int) { c.W.Array(out.length(n)) }
		c.Repeat(count, begin, func(draws int, room func() bool) {
			for ; draws > 0 && room(); draws-- {
				out.add(z.At(rand.IntN(int(n))))
			}
		})
	case count >= n:
		c.W.Array(out.length(int(n)))
		z.RangeByRank(0, int(n-1), true, out.add)
	default:
		c.W.Array(out.length(int(count)))
		dict.Sample(int(n), int(count), func(i int) { out.add(z.At(i)) })
	}
}

// zsetReply writes members, with or without their scores: as pairs, or all in one list.
type zsetReply struct {
	w             *resp.Writer
	scores, pairs bool
}

// members returns the usual form of a reply: scores make pairs in RESP3 only.
func members(c *command.Ctx, withScores bool) zsetReply {
	return zsetReply{c.W, withScores, c.W.Proto == 3}
}

// length returns the length of the list of n members.
func (r zsetReply) length(n int) int {
	if r.scores && !r.pairs {
		return 2 * n
	}
	return n
}

// add writes a member; it returns true, as callbacks of walks through sets must to continue.
func (r zsetReply) add(member []byte, score float64) bool {
	if r.scores && r.pairs {
		r.w.Array(2)
	}
	r.w.Bulk(member)
	if r.scores {
		r.w.Double(score)
	}
	return true
}

func cmdZrank(c *command.Ctx)    { zrank(c, false) }
func cmdZrevrank(c *command.Ctx) { zrank(c, true) }

func zrank(c *command.Ctx, reverse bool) {
	if len(c.Args) > 4 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	withScore := len(c.Args) == 4
	if withScore && !command.EqualFold(c.Args[3], "withscore") {
		c.Err(command.ErrSyntax)
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if e != nil {
		if rank, score, ok := e.ZSet().Rank(c.Args[2]); ok {
			if reverse {
				rank = e.ZSet().Len() - 1 - rank
			}
			if withScore {
				c.W.Array(2)
			}
			c.W.Int(int64(rank))
			if withScore {
				c.W.Double(score)
			}
			return
		}
	}
	if withScore {
		c.W.NullArray()
	} else {
		c.W.Null()
	}
}

func cmdZrem(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	removed := 0
	if e != nil {
		z := e.Elements(c.Args[2:], 1).ZSet()
		for _, member := range c.Args[2:] {
			if _, ok := z.Remove(member); ok {
				removed++
			}
		}
		zremoved(c, e, removed, "zrem")
	}
	c.W.Int(int64(removed))
}

// zremoved reports that n members were removed from a sorted set, and removes the key if none is left.
func zremoved(c *command.Ctx, e *engine.Entry, n int, event string) {
	if n == 0 {
		return
	}
	c.G.Changed(e, engine.EventZSet, event)
	if e.Count() == 0 {
		c.G.Remove(e, engine.EventGeneric, "del")
	}
}

// cmdZscan writes scores as text in both protocols, as in the whole SCAN family.
func cmdZscan(c *command.Ctx) {
	e, o, ok := c.ScanCollection(engine.ZSet, 0)
	if !ok {
		return
	}
	var found resp.Writer
	var scratch [40]byte
	n := 0
	visit := func(member []byte, score float64) {
		if o.Match(member) {
			found.Bulk(member)
			found.Bulk(resp.AppendFloat(scratch[:0], score))
			n += 2
		}
	}
	next := c.ScanValue(e, &o, &found, func(e *engine.Entry, cursor uint64, count int) uint64 {
		return e.ZSet().Scan(cursor, count, visit)
	})
	c.ScanReply(next, n, &found)
}
