package engine

// Reset returns a keyspace with a Source to its stored state and drops all later changes; the journal must be repeated
// next, as after Restore. No checkpoint may be under way. Replies that show dropped changes must not be sent any more.
// The guard must hold all shards.
func (g *Guard) Reset(s StoredState) error {
	ks := g.ks
	if len(s.Spaces) > ks.databases {
		return ErrTooFewDatabases
	}
	g.Flush(-1)
	ks.journal = nil
	g.record = g.record[:0]
	ks.droppedSpaces = nil
	// Numbers given out since are not reused, because their data may still be being read.
	ks.nextSpace = max(ks.nextSpace, s.NextSpace)
	ks.nextParts.Store(max(ks.nextParts.Load(), s.NextParts))
	for db := range ks.databases {
		ks.spaces[ks.current[db]].dropped = ks.epochs.Current // even if it was empty
		if db < len(s.Spaces) {
			ks.addSpace(db, s.Spaces[db])
		} else {
			ks.newSpace(db)
		}
	}
	for i := range ks.shards {
		s := &ks.shards[i]
		s.dirty, s.removed, s.dropped, s.resident = entryList{}, nil, nil, entryList{}
		s.lost = map[spaceKey]struct{}{}
	}
	ks.fetching = len(s.Spaces) > 0
	ks.resets++
	ks.replaying = true
	return nil
}
