package rdb

import "github.com/atomredis/atomredis/engine"

// Create adds an entry with a value from Restore under a key that must not exist. The caller reports the change.
func Create(g *engine.Guard, db int, key []byte, value any) *engine.Entry {
	if text, ok := value.([]byte); ok {
		return g.CreateString(db, key, text)
	}
	return g.Create(db, key, value)
}
