package engine

import "sync/atomic"

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
		g.entryGrew(e, -e.size())
	}
	e.leaveCount()
}

// counted reports whether the count includes the entry with its present size.
func (e *Entry) counted() bool { return e.flags&(flagUncounted|flagGone) == 0 }

// leaveCount marks an entry as never to be counted again.
func (e *Entry) leaveCount() { e.flags = e.flags&^flagUncounted | flagGone }

// database returns the part of the entry's database in its shard.
func (g *Guard) database(e *Entry) *database { return &g.ks.shards[e.shard].dbs[g.DB(e)] }

// entryGrew adds n bytes to the memory of an entry.
func (g *Guard) entryGrew(e *Entry, n int) {
	g.grew(g.database(e), n)
	g.ks.slotGrew(e, n)
}

// slotGrew adds n bytes to the memory of an entry's slot if that is counted.
func (ks *Keyspace) slotGrew(e *Entry, n int) {
	if ks.slotMemory != nil {
		ks.slotMemory[ks.slotOf(bytesOf(e.Key()))].Add(int64(n))
	}
}

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
			g.entryGrew(p.entry, size-p.size)
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
		ks.slotGrew(e, n)
	}
}

// CountSlotMemory begins to count the memory of each slot, or ends it. No guard may be held.
func (ks *Keyspace) CountSlotMemory(on bool) {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	g.countSlotMemory(on)
}

// countSlotMemory is CountSlotMemory under a guard over everything.
func (g *Guard) countSlotMemory(on bool) {
	ks := g.ks
	if ks.slotMemory = nil; !on || ks.slots == 0 {
		return
	}
	ks.slotMemory = make([]atomic.Int64, ks.slots)
	for i := range ks.shards {
		for db := range g.shard(uint8(i)).dbs {
			for p := range ks.shards[i].dbs[db].dict.All() {
				if e := *p; e.counted() {
					ks.slotGrew(e, e.size())
				}
			}
		}
	}
	for _, p := range g.pending {
		if p.entry != nil {
			ks.slotGrew(p.entry, p.size)
		}
	}
}

// SlotMemory returns how many bytes the keys and values of a slot take in memory, in all databases. It is 0 unless
// CountSlotMemory has begun to count.
func (g *Guard) SlotMemory(slot int) int64 {
	if g.ks.slotMemory == nil {
		return 0
	}
	return g.ks.slotMemory[slot].Load()
}
