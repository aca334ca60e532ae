package engine

// tee gives what is journalled to two takers.
type tee struct {
	journal  Journal // nil if there is none
	follower Journal
}

// Append implements Journal.
func (t *tee) Append(now int64, commands []byte) {
	if t.journal != nil {
		t.journal.Append(now, commands)
	}
	t.follower.Append(now, commands)
}

// Follow has everything that is done from now on told to f too, as to the journal; nil ends that. The guard must hold
// all shards.
func (g *Guard) Follow(f Journal) {
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
