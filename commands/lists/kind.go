package lists

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
)

// What commands on keys of any type must know of lists. Small ones are listpacks since Redis 7.2; here they keep
// their older name, which Redis's own test suite of 7.0 asks for everywhere.
func init() {
	command.RegisterKind(engine.List, command.Kind{
		Number:   1,
		Encoding: func(*engine.Entry) string { return "quicklist" },
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
