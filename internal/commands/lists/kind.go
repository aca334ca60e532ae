package lists

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Registers lists for commands on keys of any type.
func init() {
	command.RegisterKind(engine.List, command.Kind{
		Number:   1,
		Encoding: func(e *engine.Entry) string { return e.List().Encoding() },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			c := r.Collection("RPUSH", key)
			e.List().Range(0, e.List().Len()-1, func(v []byte) bool {
				c.Add(v)
				return true
			})
			c.End()
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			e.List().Range(0, e.List().Len()-1, func(v []byte) bool {
				d.Mix(v)
				return true
			})
		},
	})
}
