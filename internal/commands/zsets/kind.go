package zsets

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file describes sorted sets for commands on keys of any type.

func init() {
	command.RegisterKind(engine.ZSet, command.Kind{
		Number:   3,
		Encoding: func(e *engine.Entry) string { return e.Elements(nil, 1).ZSet().Encoding() },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			c := r.Collection("ZADD", key)
			e.ZSet().RangeByRank(0, e.ZSet().Len()-1, false, func(member []byte, score float64) bool {
				c.Add(resp.AppendFloat(nil, score), member)
				return true
			})
			c.End()
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			e.ZSet().RangeByRank(0, e.ZSet().Len()-1, false, func(member []byte, score float64) bool {
				d.Pair(member, appendScore17(nil, score))
				return true
			})
		},
	})
}

// appendScore17 appends a score with 17 digits, as C prints it with %.17g.
func appendScore17(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, score, 'g', 17, 64)
}
