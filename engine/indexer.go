package engine

// Indexer keeps indexes over the values of keys. All its methods are called under a guard. It must not change keys.
type Indexer interface {
	// Update is called at the end of a guard with the keys of database 0 that were changed, created or removed under it, some
	// perhaps more than once. The guard holds their shards.
	Update(g *Guard, keys []string)
	// Emptied is called when a database was emptied. The guard holds all shards.
	Emptied(g *Guard, db int)
	// Exchanged is called when database 0 has got the keys of another one. The guard holds all shards.
	Exchanged(g *Guard)
}

// SetIndexer has all further changes be indexed; nil ends that. The caller holds all shards, or nothing else runs yet.
func (ks *Keyspace) SetIndexer(x Indexer) { ks.indexer = x }

// Index has what was changed under the guard until now be indexed at once, so that the guard's own commands find it.
func (g *Guard) Index() {
	for len(g.toIndex) > 0 { // a key may be found to have expired meanwhile
		keys := g.toIndex
		g.toIndex = nil
		if g.ks.indexer != nil {
			g.ks.indexer.Update(g, keys)
		}
	}
}

// mustIndex notes that a key has changed.
func (g *Guard) mustIndex(db int, key string) {
	if db != 0 {
		return
	}
	if n := len(g.toIndex); n == 0 || g.toIndex[n-1] != key {
		g.toIndex = append(g.toIndex, key)
	}
}

// RemoveExpired removes some of the keys and fields whose time has come, so that nothing is found that readers no longer see. It
// reports whether there may be more.
func (g *Guard) RemoveExpired() (more bool) {
	for i := range g.ks.shards {
		more = g.Holds(1<<i) && g.removeDue(&g.ks.shards[i]) || more
	}
	return more
}
