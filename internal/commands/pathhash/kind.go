package pathhash

import (
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Registers path hashes for commands on keys of any type.
func init() {
	command.RegisterKind(engine.PathHash, command.Kind{
		Number:   9,
		Encoding: func(*engine.Entry) string { return "pathhash" },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			for path, h := range e.PathHash().Ascend(nil) {
				head := [][]byte{[]byte("PHSET"), key, path, []byte("FIELDS"), nil}
				args := head
				flush := func() {
					args[4] = strconv.AppendInt(nil, int64(len(args)-len(head))/2, 10)
					r.Command(args...)
					args = head
				}
				for field, value := range h.All() {
					if args = append(args[:len(args):len(args)], field, value); len(args) >= len(head)+2*command.RebuildElements {
						flush()
					}
				}
				if len(args) > len(head) {
					flush()
				}
			}
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			for path, h := range e.PathHash().Ascend(nil) {
				d.Mix(path)
				for field, value := range h.All() {
					d.Pair(append(append(strconv.AppendInt(nil, int64(len(path)), 10), path...), field...), value)
				}
			}
		},
	})
}
