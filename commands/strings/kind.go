package strings

import (
	"math"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/resp"
)

// This file is what commands on keys of any type must know of strings.

func init() {
	command.RegisterKind(engine.String, command.Kind{
		Number:   0,
		Encoding: encoding,
		RefCount: refCount,
		Rebuild:  func(r *command.Rebuilder, key []byte, e *engine.Entry) { r.Command(setWord, key, e.Bytes()) },
		Digest:   func(d *command.Digest, e *engine.Entry) { d.Mix(e.Bytes()) },
	})
}

// refCount returns what OBJECT REFCOUNT tells: small numbers are shared.
func refCount(e *engine.Entry) int64 {
	if encoding(e) == "int" {
		if n, _ := resp.ParseInt(e.Bytes()); n >= 0 && n < sharedIntegers {
			return math.MaxInt32
		}
	}
	return 1
}

// encoding returns the name that Redis has for the representation of such a string.
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

// sharedIntegers are the numbers below which Redis has one object each, which is never freed.
const sharedIntegers = 10000

// maxEmbedded is the length in bytes of the longest string that Redis keeps in one piece with its header.
const maxEmbedded = 44

func isInteger(v []byte) bool {
	_, ok := resp.ParseInt(v)
	return ok
}
