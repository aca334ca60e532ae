package sets

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Registers sets for commands on keys of any type.
func init() {
	command.RegisterKind(engine.Set, command.Kind{
		Number:   2,
		Encoding: func(e *engine.Entry) string { return e.Elements(nil, 1).Set().Encoding() },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			c := r.Collection("SADD", key)
			for member := range e.Set().All() {
				c.Add(member)
			}
			c.End()
			members.Rebuild(r, key, e.Set().Deadlines())
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			for member := range e.Set().All() {
				d.Xor(member)
			}
		},
	})
}
