package hashes

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Registers hashes for commands on keys of any type.
func init() {
	command.RegisterKind(engine.Hash, command.Kind{
		Number:   4,
		Encoding: func(e *engine.Entry) string { return e.Elements(nil, 1).Hash().Encoding() },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			c := r.Collection("HSET", key)
			for field, value := range e.Hash().All() {
				c.Add(field, value)
			}
			c.End()
			fields.Rebuild(r, key, e.Hash().Deadlines())
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			for field, value := range e.Hash().All() {
				d.Pair(field, value)
			}
		},
	})
}
