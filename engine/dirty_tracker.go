package engine

// DirtyTracker records which keys differ from a copy that was made of them. It gets all changes, also the bookkeeping that
// Observer does not get, under the guard that makes the change: it must be quick and must not use the keyspace.
type DirtyTracker interface {
	// Touched is called when a key was changed, created or removed; expired says that it was removed by its deadline. The
	// key is valid during the call only.
	Touched(db int, key string, expired bool)
	// Emptied is called when the keys of databases were removed all at once, or exchanged.
	Emptied()
}

// SetDirtyTracker passes all further changes to t; nil ends that. The guard must hold all shards.
func (g *Guard) SetDirtyTracker(t DirtyTracker) { g.ks.dirtyTracker = t }
