package engine

// The memory that the data takes. It is counted and not measured: what the runtime knows of the heap contains
// garbage, and whatever else is in the process. Every data structure knows its size at any time, so that a guard
// notes how large the entries are that it is about to change, and looks again at its end, whatever was done to them.

// maxKeptPending is how many entries the list has room for that a guard keeps for the next one.
const maxKeptPending = 1024

// UsedMemory returns how many bytes the data takes, with its tables. Changes count when their guard ends.
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

// countedLater is an entry whose size the guard looks at when it ends, and the size with which it is in the count until
// then. There is no entry if its database has been emptied meanwhile.
type countedLater struct {
	entry *Entry
	size  int
}

// recount has an entry counted anew when the guard ends, because its size is about to change.
func (g *Guard) recount(e *Entry) {
	if e.counted() {
		g.countLater(e, e.size())
	}
}

// countLater has an entry counted when the guard ends that is in the count with so many bytes now.
func (g *Guard) countLater(e *Entry, size int) {
	e.flags |= flagUncounted
	g.pending = append(g.pending, countedLater{e, size})
}

// uncount takes an entry that leaves its database out of the count, at the end of the guard if it would be counted
// anew then.
func (g *Guard) uncount(e *Entry) {
	if e.counted() {
		g.grew(g.database(e), -e.size())
	}
	e.leaveCount()
}

// counted reports whether the count has an entry with the size that it has now.
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

// count counts the changed entries of the guard again, and updates the totals.
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

// uncountFlushed forgets the entries of databases that are about to be emptied, from first to last: the count loses
// all that those have.
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

// resized corrects the count after an entry, whose size was another one before, was brought into memory or taken out
// of it: that can happen to any entry that is looked at.
func (ks *Keyspace) resized(e *Entry, was int) {
	if e.counted() {
		n := e.size() - was
		ks.shards[e.shard].dbs[ks.spaces[e.space].db].used += n
		ks.used.Add(int64(n))
	}
}
