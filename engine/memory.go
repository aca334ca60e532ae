package engine

// The memory that the data takes. It is counted, not measured: the runtime's figures include garbage and everything
// else in the process. Every data structure knows its present size, so a guard records the sizes of entries that it may
// change, and compares them at its end.

// maxKeptPending is the capacity of the largest list of entries that a guard keeps for reuse.
const maxKeptPending = 1024

// UsedMemory returns how many bytes the data takes, including its tables. Changes count from the end of their guard.
func (ks *Keyspace) UsedMemory() int64 { return ks.used.Load() }

// tableSize returns how many bytes the table of a database takes without its entries, including its index by slot.
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

// countedLater is an entry to be counted at the end of the guard, and the size with which it is counted until then.
// entry is nil if its database was emptied meanwhile.
type countedLater struct {
	entry *Entry
	size  int
}

// recount schedules an entry, whose size is about to change, to be counted at the end of the guard.
func (g *Guard) recount(e *Entry) {
	if e.counted() {
		g.countLater(e, e.size())
	}
}

// countLater schedules an entry, now counted with size bytes, to be counted at the end of the guard.
func (g *Guard) countLater(e *Entry, size int) {
	e.flags |= flagUncounted
	g.pending = append(g.pending, countedLater{e, size})
}

// uncount removes an entry that leaves its database from the count, or lets the end of the guard do so if the entry is
// scheduled.
func (g *Guard) uncount(e *Entry) {
	if e.counted() {
		g.grew(g.database(e), -e.size())
	}
	e.leaveCount()
}

// counted reports whether the count includes the entry with its present size.
func (e *Entry) counted() bool { return e.flags&(flagUncounted|flagGone) == 0 }

// leaveCount marks an entry as never to be counted again.
func (e *Entry) leaveCount() { e.flags = e.flags&^flagUncounted | flagGone }

// database returns the part of the entry's database in its shard.
func (g *Guard) database(e *Entry) *database { return &g.ks.shards[e.shard].dbs[g.DB(e)] }

// grew adds n bytes to the memory of a database.
func (g *Guard) grew(d *database, n int) {
	d.used += n
	g.growth += n
}

// count recounts the guard's changed entries, and updates the totals.
func (g *Guard) count() {
	for _, p := range g.pending {
		if p.entry == nil {
			continue
		}
		size := 0
		if p.entry.flags&flagGone == 0 {
			p.entry.flags &^= flagUncounted
			size = p.entry.size()
		}
		if size != p.size {
			g.grew(g.database(p.entry), size-p.size)
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

// uncountFlushed drops the scheduled entries of databases first to last, which are about to be emptied: the count loses
// all their memory.
func (g *Guard) uncountFlushed(first, last int) {
	for i, p := range g.pending {
		if p.entry == nil {
			continue
		}
		if db := g.DB(p.entry); db >= first && db <= last {
			p.entry.leaveCount()
			g.pending[i].entry = nil
		}
	}
}

// resized corrects the count after an entry was loaded or unloaded, which can happen on any lookup. was is its previous
// size.
func (ks *Keyspace) resized(e *Entry, was int) {
	if e.counted() {
		n := e.size() - was
		ks.shards[e.shard].dbs[ks.spaces[e.space].db].used += n
		ks.used.Add(int64(n))
	}
}
