package memory

import (
	"context"
	"iter"
)

// keysAtOnce is the COUNT of each SCAN that Keys sends.
const keysAtOnce = 512

// Keys returns an iterator over the names of the keys that match a pattern of KEYS, "*" for all, in no order (SCAN).
// Commands run between its steps: a key that exists throughout comes at least once, one that appears or goes meanwhile
// may come or not. The loop may delete and write keys. An error, of ctx or ErrClosed, comes as the last step.
func (db *DB) Keys(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for cursor := "0"; ; {
			reply, err := db.Do(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", keysAtOnce)
			var keys []string
			if err == nil {
				cursor, keys, err = scanned(reply)
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range keys {
				if !yield(key, nil) {
					return
				}
			}
			if cursor == "0" {
				return
			}
		}
	}
}

// scanned reads the reply to SCAN.
func scanned(reply Reply) (cursor string, keys []string, err error) {
	parts, err := reply.Slice()
	if err != nil {
		return "", nil, err
	}
	if err = parts[0].Scan(&cursor); err == nil {
		err = parts[1].Scan(&keys)
	}
	return cursor, keys, err
}
