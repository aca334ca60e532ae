package search

import (
	"math/rand/v2"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
)

const errNotPermitted command.Error = "NOPERM User does not have the required permissions to query the index"

// mayUse reports whether the client's user may read all keys that an index can have, because the index shows their
// values.
func mayUse(c *command.Ctx, x *catalog.Index) bool {
	if c.Client == nil || c.Client.MayReadAll(c.Cmd, c.Args) {
		return true
	}
	prefixes := x.Definition().Prefixes
	if len(prefixes) == 0 {
		return false // all keys
	}
	for _, prefix := range prefixes {
		if !readsPrefix(c, prefix) {
			return false
		}
	}
	return true
}

// readsPrefix reports whether the client's user may read all keys that begin with a prefix. It tries the prefix
// alone, and the prefix with an unlikely text before each possible last byte: a pattern that matches all of these
// ends with a star.
func readsPrefix(c *command.Ctx, prefix string) bool {
	if !c.Client.MayRead(c.Cmd, []byte(prefix), 0) {
		return false
	}
	key := []byte(prefix)
	for range 12 {
		key = append(key, byte(rand.IntN(256)))
	}
	key = append(key, 0)
	for last := range 256 {
		key[len(key)-1] = byte(last)
		if !c.Client.MayRead(c.Cmd, key, 0) {
			return false
		}
	}
	return true
}
