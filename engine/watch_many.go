package engine

import (
	"hash/maphash"
	"slices"
)

// WatchedKeys detects whether one of very many keys has changed while a command read them in steps. A table of all keys
// would take memory, and cost every writer a lookup. Instead, the hashes of all changed keys of the database are
// recorded, and compared with the keys at the end. A key with the same hash as a changed one counts as changed.
type WatchedKeys struct {
	db     int
	seed   maphash.Seed
	shards []noted
}

// noted has the changes in a shard, which protects it.
type noted struct {
	hashes []uint64
	all    bool // too many changes: all keys count as changed
}

// maxNoted is how many changes of a shard are recorded before all its keys count as changed.
const maxNoted = 65536

// WatchKeys starts to watch all keys of a database, until UnwatchKeys. The guard must hold all shards in both calls.
func (g *Guard) WatchKeys(db int) *WatchedKeys {
	w := &WatchedKeys{db: db, seed: maphash.MakeSeed(), shards: make([]noted, len(g.ks.shards))}
	g.ks.watchedKeys = append(slices.Clone(g.ks.watchedKeys), w)
	return w
}

// UnwatchKeys ends the watch of WatchKeys.
func (g *Guard) UnwatchKeys(w *WatchedKeys) {
	g.ks.watchedKeys = slices.DeleteFunc(slices.Clone(g.ks.watchedKeys), func(other *WatchedKeys) bool { return other == w })
}

// Changed reports whether one of the keys that each yields has changed between WatchKeys and UnwatchKeys, which must
// have been called.
func (w *WatchedKeys) Changed(each func(yield func(key []byte) bool)) (changed bool) {
	found := map[uint64]struct{}{}
	for i := range w.shards {
		if w.shards[i].all {
			return true
		}
		for _, h := range w.shards[i].hashes {
			found[h] = struct{}{}
		}
	}
	if len(found) == 0 {
		return false
	}
	each(func(key []byte) bool {
		_, changed = found[maphash.Bytes(w.seed, key)]
		return !changed
	})
	return changed
}

// noteChanged records the change of a key of shard i for all WatchedKeys of its database.
func (ks *Keyspace) noteChanged(i uint8, db int, key string) {
	for _, w := range ks.watchedKeys {
		if n := &w.shards[i]; w.db == db && !n.all {
			n.note(maphash.String(w.seed, key))
		}
	}
}

func (n *noted) note(hash uint64) {
	switch last := len(n.hashes) - 1; {
	case last >= 0 && n.hashes[last] == hash: // the same key changes again and again
	case last+1 == maxNoted:
		n.all, n.hashes = true, nil
	default:
		n.hashes = append(n.hashes, hash)
	}
}

// noteAllChanged records changes of all keys of a database, or of all databases if db is -1. All shards are held.
func (ks *Keyspace) noteAllChanged(db int) {
	for _, w := range ks.watchedKeys {
		if db < 0 || w.db == db {
			w.shards[0].all = true
		}
	}
}
