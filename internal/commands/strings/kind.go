package strings

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file describes strings for commands on keys of any type.

func init() {
	command.RegisterKind(engine.String, command.Kind{
		Number:   0,
		Encoding: encoding,
		Rebuild:  func(r *command.Rebuilder, key []byte, e *engine.Entry) { r.Command(setWord, key, e.Bytes()) },
		Digest:   func(d *command.Digest, e *engine.Entry) { d.Mix(e.Bytes()) },
	})
}

// encoding returns Redis's name for the representation of such a string.
func encoding(e *engine.Entry) string {
	v := e.Bytes()
	switch form := e.StringForm(); {
	case form == engine.FormPlain && isInteger(v):
		return "int"
	case form == engine.FormRaw || len(v) > maxEmbedded:
		return "raw"
	default:
		return "embstr"
	}
}

// maxEmbedded is the length in bytes of the longest string that Redis allocates together with its header.
const maxEmbedded = 44

func isInteger(v []byte) bool {
	_, ok := resp.ParseInt(v)
	return ok
}
