package engine

// Watch is the version of a key that at least one client watches. The key's shard protects it.
type Watch struct {
	dbKey
	shard   uint8
	version uint64
	refs    int
}

// Watch starts to watch a key and returns its watch and present version; each call needs an Unwatch.
func (g *Guard) Watch(db int, key []byte) (w *Watch, version uint64) {
	g.Peek(db, key) // a key that has expired already counts as missing from the start
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

// Unchanged reports whether the key is still as it was when Watch returned version.
func (g *Guard) Unchanged(w *Watch, version uint64) bool {
	g.PeekString(w.db, w.key) // expiry since then is a change
	return !g.Touched(w, version)
}

// Touched reports whether it is certain that the key has changed since Watch returned version, without a look at the
// key: one that has expired, and is still there, has not been touched.
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
