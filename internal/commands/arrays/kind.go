package arrays

import (
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/internal/command"
)

// Registers arrays for commands on keys of any type.
func init() {
	command.RegisterKind(engine.Array, command.Kind{
		Number:   7,
		Encoding: func(*engine.Entry) string { return "sliced-array" },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			a := e.Array()
			collection := r.Collection("ARMSET", key)
			a.Each(0, arrays.MaxIndex, func(at uint64, v []byte) bool {
				collection.Add(strconv.AppendUint(nil, at, 10), v)
				return true
			})
			collection.End()
			if next := a.Next(); next > 0 {
				r.Command([]byte("ARSEEK"), key, strconv.AppendUint(nil, next, 10))
			}
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			a := e.Array()
			a.Each(0, arrays.MaxIndex, func(at uint64, v []byte) bool {
				d.Pair(strconv.AppendUint(nil, at, 10), v)
				return true
			})
			d.Mix(strconv.AppendUint(nil, a.Next(), 10))
		},
	})
}
