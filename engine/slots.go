package engine

import "github.com/atomredis/atomredis/engine/slots"

// In a cluster keys are divided into slots, each of which can move with its keys. Options.SlotOf returns the slot of a
// key. Each database has, in each shard, an index by slot beside the table of its entries; insert and deleteAt keep
// both in agreement.

// noSlot means the entries of all slots.
const noSlot = -1

// insert adds a new entry to the table of a database.
func (ks *Keyspace) insert(d *database, e *Entry) {
	d.dict.Add(e)
	if ks.slots == 0 {
		return
	}
	if d.slots == nil {
		d.slots = slots.New(ks.slots)
	}
	d.slots.Add(ks.slotOf(bytesOf(e.Key())))
}

// deleteAt removes entry i from the table of a database.
func (ks *Keyspace) deleteAt(d *database, i int) {
	if d.slots != nil {
		last := *d.dict.At(d.dict.Len() - 1)
		d.slots.Remove(i, ks.slotOf(bytesOf((*d.dict.At(i)).Key())), ks.slotOf(bytesOf(last.Key())))
	}
	d.dict.DeleteAt(i)
}

// len returns the number of entries of a slot, or of all.
func (d *database) len(slot int) int {
	switch {
	case slot == noSlot:
		return d.dict.Len()
	case d.slots == nil:
		return 0
	}
	return d.slots.Len(slot)
}

// scan is dict.Table.Scan of the entries of a slot, or of all.
func (d *database) scan(slot int, cursor uint64, count int, fn func(e *Entry)) uint64 {
	if slot == noSlot {
		return d.dict.Scan(cursor, count, func(p **Entry) { fn(*p) })
	}
	return d.slots.Scan(slot, cursor, count, func(i int) { fn(*d.dict.At(i)) })
}

// SlotLen returns the number of keys of a slot in a database. The guard must hold all shards, as for Len and Scan.
func (g *Guard) SlotLen(db, slot int) int {
	n := 0
	for i := range g.ks.shards {
		n += g.shard(uint8(i)).dbs[db].len(slot)
	}
	return n
}

// EachOfSlot calls fn for every entry of a slot in a database, in no order, until fn returns false. fn must not change the
// keyspace.
func (g *Guard) EachOfSlot(db, slot int, fn func(e *Entry) bool) {
	for i := range g.ks.shards {
		d := &g.shard(uint8(i)).dbs[db]
		if d.slots == nil {
			continue
		}
		for n := range d.slots.All(slot) {
			if e := *d.dict.At(n); !g.gone(e) && !fn(e) {
				return
			}
		}
	}
}

// ScanSlot is Scan for the entries of a slot.
func (g *Guard) ScanSlot(db, slot int, cursor uint64, count int, match func(key string) bool, fn func(e *Entry)) uint64 {
	return g.scan(db, slot, cursor, count, match, fn)
}
