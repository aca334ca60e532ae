package json

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
)

var (
	setWord  = []byte("JSON.SET")
	rootPath = []byte("$")
)

// What commands on keys of any type must know of documents: those of Redis belong to a module.
func init() {
	command.RegisterKind(engine.JSON, command.Kind{
		Number:   5,
		Encoding: func(*engine.Entry) string { return "raw" },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			r.Command(setWord, key, rootPath, e.JSON().Root().AppendJSON(nil, documents.Layout{}))
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			d.Mix(e.JSON().Root().AppendJSON(nil, documents.Layout{}))
		},
	})
}
