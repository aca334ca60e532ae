package engine

// Follower gets the journal's records and passes them on to the journal, so that both have the same order.
type Follower interface {
	// Follow is like Append of a Journal; journal is nil if there is none.
	Follow(now int64, commands []byte, journal Journal)
	// Tell gives it commands that change nothing and are not journalled. They are valid during the call only.
	Tell(commands []byte)
}

// tee is the journal of a keyspace that has a follower.
type tee struct {
	journal  Journal // nil if there is none
	follower Follower
}

// Append implements Journal.
func (t *tee) Append(now int64, commands []byte) { t.follower.Follow(now, commands, t.journal) }

// Tell passes a command that changes nothing to the follower, if any, after the guard's record. It does not keep args.
func (g *Guard) Tell(args [][]byte) {
	if _, ok := g.ks.journal.(*tee); ok {
		g.told = appendCommand(g.told, args)
	}
}

func (g *Guard) tell() {
	if t, ok := g.ks.journal.(*tee); ok {
		t.follower.Tell(g.told)
	}
	g.told = nil
}

// Follow passes all further changes to f; nil ends that. The guard must hold all shards.
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
