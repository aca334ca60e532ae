package zsets

import (
	"fmt"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands that combine several sorted sets: unions, intersections and differences. Operands may
// be plain sets, whose members have the score 1.

// Errors about combinations.
const (
	errWeight command.Error = "ERR weight value is not a float"
)

// zoperand is an operand: a sorted set or a plain one, nil for a missing key.
type zoperand struct {
	zset   *zsets.ZSet
	set    *sets.Set
	weight float64
	ones   bool // all scores count as 1: AGGREGATE COUNT
}

func (o *zoperand) len() int {
	if o.zset != nil {
		return o.zset.Len()
	}
	return o.set.Len()
}

// score returns the score of a member without its weight.
func (o *zoperand) score(member []byte) (float64, bool) {
	if o.zset != nil {
		score, ok := o.zset.Score(member)
		if o.ones {
			score = 1
		}
		return score, ok
	}
	return 1, o.set.Contains(member)
}

// each calls fn with the members until fn returns false. A member is valid during the call.
func (o *zoperand) each(fn func(member []byte, score float64) bool) {
	if o.zset != nil {
		counted := fn
		if o.ones {
			counted = func(member []byte, _ float64) bool { return fn(member, 1) }
		}
		o.zset.RangeByRank(0, o.zset.Len()-1, false, counted)
		return
	}
	for member := range o.set.All() {
		if !fn(member, 1) {
			return
		}
	}
}

// weigh returns a score of the operand times its weight; infinity times zero is zero.
func (o *zoperand) weigh(score float64) float64 {
	if score *= o.weight; math.IsNaN(score) {
		return 0
	}
	return score
}

// zcombination has the operands of a command and its options.
type zcombination struct {
	operands   []zoperand
	aggregate  func(a, b float64) float64
	withScores bool
	limit      int64 // of ZINTERCARD; 0 is no limit
}

// zcombinationAllow says which options a command has.
type zcombinationAllow uint8

const (
	allowWeights zcombinationAllow = 1 << iota // WEIGHTS and AGGREGATE
	allowScores                                // WITHSCORES
	allowLimit                                 // LIMIT
)

// readCombination reads the number of keys, argument at, then the keys, then the options. If they are wrong, it
// writes an error and ok is false.
func readCombination(c *command.Ctx, at int, allow zcombinationAllow) (z zcombination, ok bool) {
	n, ok := c.Int(c.Args[at])
	if !ok {
		return z, false
	}
	switch {
	case n < 1:
		c.Err(command.Error(fmt.Sprintf("ERR at least 1 input key is needed for '%s' command", c.Cmd.Name)))
		return z, false
	case n > int64(len(c.Args)-at-1):
		c.Err(command.ErrSyntax)
		return z, false
	}
	options := at + 1 + int(n)
	for _, key := range c.Args[at+1 : options] {
		operand := zoperand{weight: 1}
		if e := c.Read(key); e != nil {
			switch e.Type() {
			case engine.ZSet:
				operand.zset = e.ZSet()
			case engine.Set:
				operand.set = e.Set()
			default:
				c.Err(command.ErrWrongType)
				return z, false
			}
		}
		z.operands = append(z.operands, operand)
	}
	z.aggregate = sumScores
	return z, z.readOptions(c, options, allow)
}

// readOptions reads the options, which begin at argument from.
func (z *zcombination) readOptions(c *command.Ctx, from int, allow zcombinationAllow) bool {
	for o := c.Options(from); o.Next(); {
		switch {
		case allow&allowWeights != 0 && o.Is("weights") && o.Left() >= len(z.operands):
			for i := range z.operands {
				weight, ok := resp.ParseFloat(o.Arg())
				if !ok {
					c.Err(errWeight)
					return false
				}
				z.operands[i].weight = weight
			}
		case allow&allowWeights != 0 && o.Is("aggregate") && o.More():
			switch o.Arg(); {
			case o.Is("sum"):
				z.aggregate = sumScores
			case o.Is("min"):
				z.aggregate = minScore
			case o.Is("max"):
				z.aggregate = maxScore
			case o.Is("count"):
				z.aggregate = sumScores
			default:
				c.Err(command.ErrSyntax)
				return false
			}
			for i := range z.operands {
				z.operands[i].ones = o.Is("count")
			}
		case allow&allowScores != 0 && o.Is("withscores"):
			z.withScores = true
		case allow&allowLimit != 0 && o.Is("limit") && o.More():
			var ok bool
			if z.limit, ok = c.IntIn(o.Arg(), 0, math.MaxInt64, command.ErrNegativeLimit); !ok {
				return false
			}
		default:
			c.Err(command.ErrSyntax)
			return false
		}
	}
	return true
}

// sumScores adds scores; the sum of opposite infinities is 0.
func sumScores(a, b float64) float64 {
	if a += b; math.IsNaN(a) {
		return 0
	}
	return a
}

// minScore and maxScore keep a, which is never NaN, if b is NaN.

func minScore(a, b float64) float64 {
	if b < a {
		return b
	}
	return a
}

func maxScore(a, b float64) float64 {
	if b > a {
		return b
	}
	return a
}

// smallestFirst sorts the operands into the order of aggregation. The order is visible, because sums of doubles
// depend on it.
func (z *zcombination) smallestFirst() {
	slices.SortStableFunc(z.operands, func(a, b zoperand) int { return a.len() - b.len() })
}

// union returns the members of all operands.
func (z *zcombination) union() *zsets.ZSet {
	result := zsets.New()
	z.smallestFirst()
	for i := range z.operands {
		o := &z.operands[i]
		o.each(func(member []byte, score float64) bool {
			score = o.weigh(score)
			if before, ok := result.Score(member); ok {
				score = z.aggregate(before, score)
				if score == 0 && before == 0 {
					result.Remove(member) // a set treats 0 and -0 as equal, and would keep the old one
				}
			}
			result.Set(member, score, Unstored)
			return true
		})
	}
	return result
}

// Unstored are the limits of a set that is not the value of a key. Such a set has the large form, which is faster to
// search.
var Unstored = zsets.Limits{}

// intersection returns the members common to all operands.
func (z *zcombination) intersection() *zsets.ZSet {
	result := zsets.New()
	z.eachCommon(func(member []byte, score float64) bool {
		result.Set(member, score, Unstored)
		return true
	})
	return result
}

// eachCommon calls fn with the members common to all operands until fn returns false.
func (z *zcombination) eachCommon(fn func(member []byte, score float64) bool) {
	z.smallestFirst()
	first, others := &z.operands[0], z.operands[1:]
	first.each(func(member []byte, score float64) bool {
		score = first.weigh(score)
		for i := range others {
			value, ok := others[i].score(member)
			if !ok {
				return true
			}
			score = z.aggregate(score, value*others[i].weight)
		}
		return fn(member, score)
	})
}

// difference returns the members of the first operand that no other has. It looks up the first operand's members in
// all others, or the others' members in the first, whichever is cheaper.
func (z *zcombination) difference() *zsets.ZSet {
	first, others := &z.operands[0], z.operands[1:]
	total := 0
	for i := range others {
		total += others[i].len()
	}
	kept := func(member []byte) bool {
		for i := range others {
			if _, ok := others[i].score(member); ok {
				return false
			}
		}
		return true
	}
	if first.len()*len(others) > total {
		var gone dict.Table[dict.Text]
		for i := range others {
			others[i].each(func(member []byte, _ float64) bool {
				if _, ok := first.score(member); ok {
					if _, there, hash := gone.Find(member); there == nil {
						gone.Insert(hash, dict.NewText(member))
					}
				}
				return gone.Len() < first.len()
			})
		}
		kept = func(member []byte) bool {
			_, ok := gone.Get(member)
			return !ok
		}
	}
	result := zsets.New()
	first.each(func(member []byte, score float64) bool {
		if kept(member) {
			result.Set(member, score, Unstored)
		}
		return true
	})
	return result
}

// zoperation is a way to combine.
type zoperation uint8

const (
	zunion zoperation = iota
	zinter
	zdiff
)

// options returns the operation's options beside WITHSCORES.
func (op zoperation) options() zcombinationAllow {
	if op == zdiff {
		return 0
	}
	return allowWeights
}

// of returns the result of the operation.
func (op zoperation) of(z *zcombination) *zsets.ZSet {
	switch op {
	case zunion:
		return z.union()
	case zinter:
		return z.intersection()
	}
	return z.difference()
}

// long calls Ctx.Long for an operation.
func (z *zcombination) long(c *command.Ctx, op zoperation) {
	sum, smallest := 0, math.MaxInt32
	for i := range z.operands {
		n := z.operands[i].len()
		sum, smallest = sum+n, min(smallest, n)
	}
	if sum < command.LongFrom {
		return
	}
	n := sum
	if op == zinter {
		n = min(n, smallest*len(z.operands))
	}
	c.Long(n, sum)
}

func cmdZdiff(c *command.Ctx)       { zcombine(c, zdiff) }
func cmdZdiffstore(c *command.Ctx)  { zcombineStore(c, zdiff, "zdiffstore") }
func cmdZinter(c *command.Ctx)      { zcombine(c, zinter) }
func cmdZinterstore(c *command.Ctx) { zcombineStore(c, zinter, "zinterstore") }
func cmdZunion(c *command.Ctx)      { zcombine(c, zunion) }
func cmdZunionstore(c *command.Ctx) { zcombineStore(c, zunion, "zunionstore") }

// zcombine replies with the result of an operation.
func zcombine(c *command.Ctx, op zoperation) {
	z, ok := readCombination(c, 1, op.options()|allowScores)
	if !ok {
		return
	}
	z.long(c, op)
	result := op.of(&z)
	out := members(c, z.withScores)
	c.W.Array(out.length(result.Len()))
	result.RangeByRank(0, result.Len()-1, false, out.add)
}

// zcombineStore stores the result of an operation.
func zcombineStore(c *command.Ctx, op zoperation, event string) {
	z, ok := readCombination(c, 2, op.options())
	if !ok {
		return
	}
	z.long(c, op)
	result := command.Result(c, func() *zsets.ZSet { return Compact(op.of(&z), c.Host.ZSetLimits()) })
	Store(c, c.Args[1], result, event)
}

// Compact returns a large set in the small form if it is within the limits.
func Compact(z *zsets.ZSet, lim zsets.Limits) *zsets.ZSet {
	if z.Len() > lim.Entries {
		return z
	}
	fits := true
	z.RangeByRank(0, z.Len()-1, false, func(member []byte, _ float64) bool {
		fits = len(member) <= lim.Value
		return fits
	})
	if !fits {
		return z
	}
	small := zsets.New()
	z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
		setScore(small, member, score, lim)
		return true
	})
	return small
}

func cmdZintercard(c *command.Ctx) {
	z, ok := readCombination(c, 1, allowLimit)
	if !ok {
		return
	}
	z.long(c, zinter)
	found := int64(0)
	z.eachCommon(func([]byte, float64) bool {
		found++
		return found != z.limit
	})
	c.W.Int(found)
}
