package command

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/resp"
)

// This file has the names that Redis gives to the forms of values.

// EncodingOf returns the name that Redis 7.0 has for the representation of a value of this kind and size. Small sets
// and lists are listpacks since Redis 7.2; here they keep their older names, which Redis's own test suite of 7.0 asks
// for everywhere.
func EncodingOf(e *engine.Entry) string {
	switch e.Type() {
	case engine.String:
		return stringEncoding(e)
	case engine.List:
		return "quicklist"
	case engine.Set:
		if e.Set().Encoding() == "intset" {
			return "intset"
		}
		return "hashtable"
	case engine.ZSet:
		return e.ZSet().Encoding()
	case engine.Hash:
		return e.Hash().Encoding()
	default:
		return e.Type().String()
	}
}

// RefCount returns how many references Redis has to such a value: one, or countless for a small number.
func RefCount(e *engine.Entry) int64 {
	if e.Type() == engine.String && stringEncoding(e) == "int" {
		if n, _ := resp.ParseInt(e.Bytes()); n >= 0 && n < sharedIntegers {
			return math.MaxInt32
		}
	}
	return 1
}

func stringEncoding(e *engine.Entry) string {
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
