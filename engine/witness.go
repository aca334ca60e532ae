package engine

// Witness hears of all that makes a key differ from a copy of it, bookkeeping included of which Observer hears nothing. It
// is called under the guard that makes the change, so it must be quick and must not use the keyspace.
type Witness interface {
	// Touched is called when a key has changed, has come or has gone; expired says that its time had come. The key is valid
	// during the call only.
	Touched(db int, key string, expired bool)
	// Emptied is called when the keys of databases were removed all at once, or exchanged.
	Emptied()
}

// SetWitness has somebody hear of changes from now on; nil is nobody. The guard must hold all shards.
func (g *Guard) SetWitness(w Witness) { g.ks.witness = w }
