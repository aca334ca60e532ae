package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
)

// SavedLen returns the size in bytes of a value in a Redis's RDB file, after its type and key, 0 if Redis has no form
// for it. Unlike ours, Redis's files have small collections, and the nodes of lists, as packed strings. compress says
// whether strings are compressed, limit is the size of a list's nodes.
func SavedLen(entry *engine.Entry, compress bool, limit lists.Limit) int {
	k, _, err := kindOf(entry)
	if err != nil {
		return 0
	}
	var n counter
	e := Encoder{w: &n, plain: !compress}
	if k.saved != nil {
		k.saved(&e, entry, limit)
	} else {
		k.write(&e, entry)
	}
	e.flush()
	return int(n)
}

// counter counts written bytes.
type counter int

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}
