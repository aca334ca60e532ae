package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
)

// SavedLen returns how many bytes Redis takes for a value in an RDB file, behind its type and key, 0 if it has no form
// for such a value. Unlike our own files Redis's have small collections, and the nodes of lists, as packed strings.
// compress says whether strings are compressed, limit is the size of a list's nodes.
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

// counter counts what is written.
type counter int

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}
