package engine

// Indexer maintains indexes over the values of keys. All its methods are called under a guard. It must not change keys.
type Indexer interface {
	// Update is called at the end of a guard with the keys of database 0 that were changed, created or removed under
	// it, perhaps with repetitions. The guard holds their shards.
	Update(g *Guard, keys []string)
	// Emptied is called when a database was emptied. The guard holds all shards.
	Emptied(g *Guard, db int)
	// Exchanged is called when database 0 has swapped its keys with another one. The guard holds all shards.
	Exchanged(g *Guard)
}

// SetIndexer makes x index all further changes; nil ends that. The caller holds all shards, or nothing else runs yet.
func (ks *Keyspace) SetIndexer(x Indexer) { ks.indexer = x }

// Index indexes all changes made under the guard so far, so that the guard's own commands find them.
func (g *Guard) Index() {
	for len(g.toIndex) > 0 { // updates may find expired keys
		keys := g.toIndex
		g.toIndex = nil
		if g.ks.indexer != nil {
			g.ks.indexer.Update(g, keys)
		}
	}
}

// mustIndex adds a changed key to the keys to be indexed.
func (g *Guard) mustIndex(db int, key string) {
	if db != 0 {
		return
	}
	if n := len(g.toIndex); n == 0 || g.toIndex[n-1] != key {
		g.toIndex = append(g.toIndex, key)
	}
}

// RemoveExpired removes some expired keys and fields, so that searches do not find what readers no longer see; none while
// a journal is repeated, which says what expired. more: there may be more. stay: some stay until another server removes them.
func (g *Guard) RemoveExpired() (more, stay bool) {
	for i := range g.ks.shards {
		if g.Holds(1<<i) && !g.ks.replaying && !g.IgnoresDeadlines() {
			m, s := g.removeDue(&g.ks.shards[i])
			more, stay = more || m, stay || s
		}
	}
	return more, stay
}
