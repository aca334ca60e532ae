package engine

// DirtyTracker records which keys differ from a copy. It gets all changes, also bookkeeping that Observer does not get,
// under the guard of the change: it must be quick and must not use the keyspace.
type DirtyTracker interface {
	// Touched is called when a key was changed, created or removed; expired says that its deadline removed it. The key
	// is valid during the call only.
	Touched(db int, key string, expired bool)
	// Emptied is called when all keys of databases were removed at once, or swapped.
	Emptied()
}

// SetDirtyTracker passes all further changes to t; nil ends that. The guard must hold all shards.
func (g *Guard) SetDirtyTracker(t DirtyTracker) { g.ks.dirtyTracker = t }
