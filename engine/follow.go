package engine

// Follower is told what is journalled, and passes it on to the journal: so that both have it in the same order.
type Follower interface {
	// Follow is as Append is for a Journal; journal is nil if there is none.
	Follow(now int64, commands []byte, journal Journal)
}

// tee is the journal of a keyspace that has a follower.
type tee struct {
	journal  Journal // nil if there is none
	follower Follower
}

// Append implements Journal.
func (t *tee) Append(now int64, commands []byte) { t.follower.Follow(now, commands, t.journal) }

// Follow has everything that is done from now on told to f; nil ends that. The guard must hold all shards.
func (g *Guard) Follow(f Follower) {
	if !g.Holds(AllShards) {
		panic("engine: Follow without all shards")
	}
	journal := g.ks.journal
	if t, ok := journal.(*tee); ok {
		journal = t.journal
	}
	if f == nil {
		g.ks.journal = journal
		return
	}
	g.ks.journal = &tee{journal, f}
}
