package hashes

import (
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Registers hashes for commands on keys of any type. Redis knows HPEXPIREAT from 7.4 on.
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
			for field, at := range e.Hash().Deadlines() {
				r.Command(hpexpireatWord, key, strconv.AppendInt(nil, at, 10), fieldsWord, []byte("1"), field)
			}
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			for field, value := range e.Hash().All() {
				d.Pair(field, value)
			}
		},
	})
}
