package engine

// The memory that the data takes. It is counted and not measured: what the runtime knows of the heap contains
// garbage, and whatever else is in the process. Every data structure knows its size at any time, so that a guard
// takes the entries that it is about to change out of the count and puts them back at its end, whatever was done to
// them. Nothing is counted unless CountMemory asks for it.

// maxKeptPending is how many entries the list has room for that a guard keeps for the next one.
const maxKeptPending = 1024

// CountMemory turns the counting of the memory that the data takes on or off. It looks at every key.
func (ks *Keyspace) CountMemory(on bool) {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	switch {
	case on && !ks.counting:
		ks.used.Store(ks.recount())
	case !on:
		ks.used.Store(0)
	}
	ks.counting = on
}

// recount counts the memory of all databases, whose shards must be held.
func (ks *Keyspace) recount() int64 {
	sum := 0
	for i := range ks.shards {
		s := &ks.shards[i]
		for db := range s.dbs {
			d := &s.dbs[db]
			d.used = d.tableSize()
			for p := range d.dict.All() {
				d.used += (*p).size()
			}
			sum += d.used
		}
		sum += s.indexSize()
	}
	return int64(sum)
}

// UsedMemory returns how many bytes the data takes, with the tables that lead to it, if CountMemory is on. It lags
// behind by what guards have not ended yet.
func (ks *Keyspace) UsedMemory() int64 { return ks.used.Load() }

// tableSize returns how many bytes the table of a database takes without its entries, with its index by slot.
func (d *database) tableSize() int {
	if d.dict.Len() == 0 {
		return 0
	}
	n := d.dict.MemoryUsage()
	if d.slots != nil {
		n += d.slots.MemoryUsage()
	}
	return n
}

// indexSize returns how many bytes the deadline index takes.
func (s *shard) indexSize() int {
	if s.expires.Len() == 0 {
		return 0
	}
	return s.expires.MemoryUsage()
}

// uncount takes an entry out of the count until the guard ends, because its size is about to change.
func (g *Guard) uncount(e *Entry) {
	if e.counted() {
		g.grew(g.database(e), -e.size())
		g.countLater(e)
	}
}

// countLater has an entry that is not in the count put there when the guard ends.
func (g *Guard) countLater(e *Entry) {
	e.flags |= flagUncounted
	g.pending = append(g.pending, e)
}

// uncountForGood takes an entry that leaves its database out of the count.
func (g *Guard) uncountForGood(e *Entry) {
	if e.counted() {
		g.grew(g.database(e), -e.size())
	}
	e.leaveCount()
}

// counted reports whether an entry is in the count of its database.
func (e *Entry) counted() bool { return e.flags&(flagUncounted|flagGone) == 0 }

// leaveCount notes that an entry will not be counted again.
func (e *Entry) leaveCount() { e.flags = e.flags&^flagUncounted | flagGone }

// database returns the part of the entry's database that is in its shard.
func (g *Guard) database(e *Entry) *database { return &g.ks.shards[e.shard].dbs[g.DB(e)] }

// grew notes that a database takes n bytes more.
func (g *Guard) grew(d *database, n int) {
	d.used += n
	g.growth += n
}

// count puts the entries that the guard has taken out of the count back, and tells everybody what came of it.
func (g *Guard) count() {
	for _, e := range g.pending {
		if e.flags&flagUncounted != 0 {
			e.flags &^= flagUncounted
			g.grew(g.database(e), e.size())
		}
	}
	clear(g.pending)
	if g.pending = g.pending[:0]; cap(g.pending) > maxKeptPending {
		g.pending = nil
	}
	if g.growth != 0 {
		g.ks.used.Add(int64(g.growth))
		g.growth = 0
	}
}

// uncountFlushed takes the entries of databases that are about to be emptied, from first to last, out of the count.
func (g *Guard) uncountFlushed(first, last int) {
	for _, e := range g.pending {
		if e.flags&flagUncounted != 0 {
			if db := g.DB(e); db >= first && db <= last {
				e.leaveCount()
			}
		}
	}
}

// resized corrects the count after an entry, whose size was another one before, was brought into memory or taken out
// of it: that can happen to any entry that is looked at.
func (ks *Keyspace) resized(e *Entry, was int) {
	if ks.counting && e.counted() {
		n := e.size() - was
		ks.shards[e.shard].dbs[ks.spaces[e.space].db].used += n
		ks.used.Add(int64(n))
	}
}
