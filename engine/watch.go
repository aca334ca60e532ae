package engine

// Watch has the version of a key that at least one client watches. The key's shard protects it.
type Watch struct {
	dbKey
	shard   uint8
	version uint64
	refs    int
}

// Watch starts to watch a key and returns its watch and present version; each call needs an Unwatch.
func (g *Guard) Watch(db int, key []byte) (w *Watch, version uint64) {
	g.Peek(db, key) // an expired key counts as missing from the start
	s := g.shardOfKey(key)
	id := dbKey{db, string(key)}
	w = s.watches[id]
	if w == nil {
		w = &Watch{dbKey: id, shard: g.ks.shardIndex(id.key)}
		s.watches[id] = w
	}
	w.refs++
	return w, w.version
}

// Unchanged reports whether the key has not changed since Watch returned version.
func (g *Guard) Unchanged(w *Watch, version uint64) bool {
	g.PeekString(w.db, w.key) // expiry since then is a change
	return !g.Touched(w, version)
}

// Touched reports whether the key has certainly changed since Watch returned version. It does not look up the key: an
// expired key that still exists does not count as touched.
func (g *Guard) Touched(w *Watch, version uint64) bool {
	g.shard(w.shard)
	return w.version != version
}

// Unwatch ends one Watch.
func (g *Guard) Unwatch(w *Watch) {
	s := g.shard(w.shard)
	if w.refs--; w.refs == 0 {
		delete(s.watches, w.dbKey)
	}
}
