package zsets

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands on ranges of sorted sets: they read, count, store and remove the members between two
// ranks, scores or names.

// Errors about ranges.
const (
	errScoreRange    command.Error = "ERR min or max is not a float"
	errLexRange      command.Error = "ERR min or max not valid string range item"
	errLimitByRank   command.Error = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
	errScoresWithLex command.Error = "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
)

// zrange is a range of a sorted set, from the arguments of a command.
type zrange struct {
	by            zrangeBy
	reverse       bool
	start, stop   int64 // by rank; negative ones count from the end
	scores        zsets.ScoreRange
	names         zsets.LexRange // its bounds are views of the arguments
	offset, limit int            // by score and by name; a negative limit is no limit
}

// zrangeBy is the kind of a range's ends.
type zrangeBy uint8

const (
	byRank zrangeBy = iota
	byScore
	byLex
)

// readBounds reads the ends of a range. In reverse the first one is the upper end, except for ranks, which then
// count from the other end. If they are wrong, it writes an error and ok is false.
func (r *zrange) readBounds(c *command.Ctx, min, max []byte) (ok bool) {
	if r.reverse && r.by != byRank {
		min, max = max, min
	}
	switch r.by {
	case byScore:
		var minOK, maxOK bool
		r.scores.Min, r.scores.MinEx, minOK = parseScoreBound(min)
		r.scores.Max, r.scores.MaxEx, maxOK = parseScoreBound(max)
		if ok = minOK && maxOK; !ok {
			c.Err(errScoreRange)
		}
	case byLex:
		var minOK, maxOK bool
		r.names.Min, minOK = parseLexBound(min)
		r.names.Max, maxOK = parseLexBound(max)
		if ok = minOK && maxOK; !ok {
			c.Err(errLexRange)
		}
	default:
		if r.start, ok = c.Int(min); ok {
			r.stop, ok = c.Int(max)
		}
	}
	return ok
}

// parseScoreBound reads a bound of a range of scores: a number, after '(' if it is excluded.
func parseScoreBound(b []byte) (bound float64, exclusive, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		exclusive, b = true, b[1:]
	}
	if bound, ok = resp.ParseFloat(b); !ok {
		bound, ok = parseLooseFloat(b)
	}
	return bound, exclusive, ok
}

// parseLooseFloat reads a number as generously as C's strtod does, where resp.ParseFloat refuses it: empty text is
// 0, leading spaces are allowed, a zero byte ends the text, and numbers beyond the range of a double become infinite
// or 0.
func parseLooseFloat(b []byte) (float64, bool) {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 {
		return 0, true
	}
	s := strings.ToLower(strings.TrimLeft(string(b), " \t\n\v\f\r"))
	if strings.HasPrefix(strings.TrimLeft(s, "+-"), "0x") && !strings.Contains(s, "p") {
		s += "p0" // Go wants an exponent on hexadecimal numbers, C does not
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) || strings.Contains(s, "_") {
		return 0, false
	}
	return f, true
}

// parseLexBound reads a bound of a range of names. Its name is a view.
func parseLexBound(b []byte) (zsets.LexBound, bool) {
	if len(b) == 0 {
		return zsets.LexBound{}, false
	}
	switch name := b[1:]; b[0] {
	case '-':
		return zsets.LexBound{Kind: zsets.LexMin}, len(name) == 0 || name[0] == 0
	case '+':
		return zsets.LexBound{Kind: zsets.LexMax}, len(name) == 0 || name[0] == 0
	case '[':
		return zsets.LexBound{Kind: zsets.Inclusive, Member: name}, true
	case '(':
		return zsets.LexBound{Kind: zsets.Exclusive, Member: name}, true
	}
	return zsets.LexBound{}, false
}

// ranks returns the first and the last rank of a range by rank in a set of n members; first is above last if the
// range is empty.
func (r *zrange) ranks(n int) (first, last int) {
	start, stop := r.start, r.stop
	if start < 0 {
		start = max(start+int64(n), 0)
	}
	if stop < 0 {
		stop += int64(n)
	}
	stop = min(stop, int64(n-1))
	if start > stop {
		return 0, -1
	}
	return int(start), int(stop)
}

// each calls fn with the members in the range, in its order, until fn returns false.
func (r *zrange) each(z *zsets.ZSet, fn func(member []byte, score float64) bool) {
	switch r.by {
	case byScore:
		z.RangeByScore(r.scores, r.reverse, r.offset, r.limit, fn)
	case byLex:
		z.RangeByLex(r.names, r.reverse, r.offset, r.limit, fn)
	default:
		first, last := r.ranks(z.Len())
		z.RangeByRank(first, last, r.reverse, fn)
	}
}

// count returns the number of members in a range by score or by name. It ignores offset and limit.
func (r *zrange) count(z *zsets.ZSet) int {
	if r.by == byScore {
		return z.CountByScore(r.scores)
	}
	return z.CountByLex(r.names)
}

// remove removes the members in the range and returns their number. It ignores offset and limit.
func (r *zrange) remove(z *zsets.ZSet) int {
	switch r.by {
	case byScore:
		return z.RemoveRangeByScore(r.scores, nil)
	case byLex:
		return z.RemoveRangeByLex(r.names, nil)
	}
	first, last := r.ranks(z.Len())
	return z.RemoveRangeByRank(first, last, nil)
}

func cmdZcount(c *command.Ctx)    { zcount(c, byScore) }
func cmdZlexcount(c *command.Ctx) { zcount(c, byLex) }

func zcount(c *command.Ctx, by zrangeBy) {
	r := zrange{by: by}
	if !r.readBounds(c, c.Args[2], c.Args[3]) {
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	switch {
	case !ok:
	case e == nil:
		c.W.Int(0)
	default:
		c.W.Int(int64(r.count(e.ZSet())))
	}
}

func cmdZrange(c *command.Ctx)           { zrangeReply(c, zrange{}, true) }
func cmdZrangebylex(c *command.Ctx)      { zrangeReply(c, zrange{by: byLex}, false) }
func cmdZrangebyscore(c *command.Ctx)    { zrangeReply(c, zrange{by: byScore}, false) }
func cmdZrevrange(c *command.Ctx)        { zrangeReply(c, zrange{reverse: true}, false) }
func cmdZrevrangebylex(c *command.Ctx)   { zrangeReply(c, zrange{by: byLex, reverse: true}, false) }
func cmdZrevrangebyscore(c *command.Ctx) { zrangeReply(c, zrange{by: byScore, reverse: true}, false) }

// zrangeReply replies with a range. free says that the kind and the direction of the range are options of the
// command.
func zrangeReply(c *command.Ctx, r zrange, free bool) {
	withScores, ok := r.readArgs(c, 2, free, false)
	if !ok {
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if e == nil {
		c.W.Array(0)
		return
	}
	r.long(c, e.ZSet())
	out, n := members(c, withScores), 0
	mark := c.W.Defer()
	r.each(e.ZSet(), func(member []byte, score float64) bool {
		n++
		return out.add(member, score)
	})
	c.W.EndArray(mark, out.length(n))
}

// long calls Ctx.Long for a walk through the range.
func (r *zrange) long(c *command.Ctx, z *zsets.ZSet) {
	if z.Len() < command.LongFrom {
		return
	}
	n := 0
	if r.by == byRank {
		first, last := r.ranks(z.Len())
		n = last - first + 1
	} else if n = r.count(z); r.limit >= 0 {
		n = min(n, r.limit)
	}
	c.Long(n, z.Len())
}

// readArgs reads a range from argument at on: its ends and the options after them. If they are wrong, it writes an
// error and ok is false.
func (r *zrange) readArgs(c *command.Ctx, at int, free, store bool) (withScores, ok bool) {
	turned, limited := false, false
	r.limit = -1
	for o := c.Options(at + 2); o.Next(); {
		switch {
		case !store && o.Is("withscores"):
			withScores = true
		case o.Is("limit") && o.Left() >= 2:
			offset, ok := c.Int(o.Arg())
			if !ok {
				return false, false
			}
			limit, ok := c.Int(o.Arg())
			if !ok {
				return false, false
			}
			r.offset, r.limit = command.AsInt(offset), command.AsInt(limit)
			limited = limit != -1 // in Redis a limit of -1 counts as not given
		case free && !turned && o.Is("rev"):
			r.reverse, turned = true, true
		case free && r.by == byRank && o.Is("bylex"):
			r.by = byLex
		case free && r.by == byRank && o.Is("byscore"):
			r.by = byScore
		default:
			c.Err(command.ErrSyntax)
			return false, false
		}
	}
	switch {
	case limited && r.by == byRank:
		c.Err(errLimitByRank)
		return false, false
	case withScores && r.by == byLex:
		c.Err(errScoresWithLex)
		return false, false
	}
	return withScores, r.readBounds(c, c.Args[at], c.Args[at+1])
}

func cmdZrangestore(c *command.Ctx) {
	var r zrange
	if _, ok := r.readArgs(c, 3, true, true); !ok {
		return
	}
	e, ok := c.ReadAs(c.Args[2], engine.ZSet)
	if !ok {
		return
	}
	if e != nil {
		r.long(c, e.ZSet())
	}
	Store(c, c.Args[1], command.Result(c, func() *zsets.ZSet { return r.copy(c, e) }), "zrangestore")
}

// copy returns a new sorted set with the range of e, which may be nil.
func (r *zrange) copy(c *command.Ctx, e *engine.Entry) *zsets.ZSet {
	result := zsets.New()
	if e != nil {
		lim := c.Host.ZSetLimits()
		if first, last := r.ranks(e.ZSet().Len()); r.by == byRank && last-first >= lim.Entries {
			lim = zsets.Limits{} // the result will be large, so it starts in the large form
		}
		r.each(e.ZSet(), func(member []byte, score float64) bool {
			setScore(result, member, score, lim)
			return true
		})
	}
	return result
}

// Store replaces the value under a key by a sorted set, which the key owns from now on, and replies with its size.
// An empty set removes the key.
func Store(c *command.Ctx, key []byte, result *zsets.ZSet, event string) {
	e := c.G.Write(c.DB, key)
	n := result.Len()
	switch {
	case n == 0 && e != nil:
		c.G.Remove(e, engine.EventGeneric, "del")
	case n == 0:
	case e != nil:
		c.G.OverwriteCollection(e, result)
		c.G.Changed(e, engine.EventZSet, event)
	default:
		c.G.Changed(c.G.Create(c.DB, key, result), engine.EventZSet, event)
	}
	c.W.Int(int64(n))
}

func cmdZremrangebylex(c *command.Ctx)   { zremrange(c, byLex, "zremrangebylex") }
func cmdZremrangebyrank(c *command.Ctx)  { zremrange(c, byRank, "zremrangebyrank") }
func cmdZremrangebyscore(c *command.Ctx) { zremrange(c, byScore, "zremrangebyscore") }

func zremrange(c *command.Ctx, by zrangeBy, event string) {
	r := zrange{by: by}
	if !r.readBounds(c, c.Args[2], c.Args[3]) {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	removed := 0
	if e != nil {
		removed = r.remove(e.ZSet())
		zremoved(c, e, removed, event)
	}
	c.W.Int(int64(removed))
}
