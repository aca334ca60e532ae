package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// Tiering: values leave memory when it is full, and stay in the store; their keys stay in memory. Among a few random
// values, the ones unused for the longest time (or used least often) leave first. Values that have changed since the
// last checkpoint cannot leave before the next one.
//
// Each shard lists the entries whose values may leave, so that these are found even if most values have left. A flag
// says whether an entry is in the list; entries without a value in memory are dropped from it when they are drawn.
// fetch.go brings values back.

// leastLeaving is the fewest bytes that unloading a value must free.
const leastLeaving = 64

// SetTier makes values leave memory when it is short, before keys are evicted, or ends that. Without a Source all stay.
// It visits every key.
func (ks *Keyspace) SetTier(on bool) {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	on = on && ks.source != nil
	if on == ks.tiering {
		return
	}
	ks.tiering = on
	for i := range ks.shards {
		s := &ks.shards[i]
		s.resident = entryList{}
		for db := range s.dbs {
			for p := range s.dbs[db].dict.All() {
				if (*p).flags &^= flagResident; on {
					ks.enlist(*p)
				}
			}
		}
	}
}

// enlist adds an entry, whose value was loaded or changed, to the list of those that may leave, if there is a list.
func (ks *Keyspace) enlist(e *Entry) {
	if e.flags&flagResident == 0 && e.frees() >= leastLeaving {
		e.flags |= flagResident
		ks.shards[e.shard].resident.add(e)
	}
}

// unlistFlushed drops the entries of emptied databases from the lists.
func (g *Guard) unlistFlushed() {
	for i := range g.ks.shards {
		l := &g.ks.shards[i].resident
		for n := 0; n < l.len(); {
			if at := l.at(n); g.ks.spaces[(*at).space].dropped != 0 {
				l.drop(at)
			} else {
				n++
			}
		}
	}
}

// frees returns about how many bytes unloading the entry's value frees.
func (e *Entry) frees() int {
	switch {
	case e.flags&flagUnloaded != 0:
		return e.unloaded().bytesRead()
	case e.typ == String && e.obj == nil:
		return int(e.strLen)
	}
	return e.size() - int(unsafe.Sizeof(*e)) - int(e.keyLen)
}

// Unload removes an entry's value from memory if it equals the stored one, and reports whether it did. The next use
// loads it again. If only parts of the value are in memory, they are removed.
func (g *Guard) Unload(e *Entry) bool {
	if e.flags&flagUnloaded != 0 && e.unloaded().bytesRead() == 0 || g.leaves(e) != leavesNow {
		return false
	}
	defer g.ks.resized(e, e.size())
	switch {
	case e.flags&flagUnloaded != 0:
		// A new stand-in, so that a read under way for the old one is not taken for this one.
		e.setUnloaded(g.ks.standIn(e.parts(), e.fieldParts(), e.storedCount()))
		return true
	case e.flags&flagParts != 0 && e.typ == String:
		e.setUnloaded(g.ks.standIn(e.parts(), 0, e.textLength()))
	case e.flags&flagParts != 0:
		e.setUnloaded(g.ks.standIn(e.parts(), e.fieldParts(), e.storedCount()))
	case e.flags&flagExternal != 0:
		e.setUnloaded(g.ks.blob)
	default:
		e.setUnloaded(g.ks.inHead)
	}
	e.trim()
	return true
}

// leaving says whether and when a value can leave memory.
type leaving uint8

const (
	leavesNow      leaving = iota
	leavesStored           // after a checkpoint has stored it
	leavesSnapshot         // after a snapshot has read it: the snapshot's view of the store may lack it
	leavesNever
)

// flagsStoring mark entries that a checkpoint has read: their state will be in the store when it ends. The two flags
// alternate, so that one left by an earlier checkpoint means nothing to the next.
const flagsStoring = flagStoring | flagStoringToo

func (g *Guard) leaves(e *Entry) leaving {
	ks := g.ks
	if ks.frozenMark == 0 {
		e.flags &^= flagsStoring
	}
	switch {
	case ks.source == nil:
		return leavesNever
	case e.flags&(flagOdd|flagEven|ks.storingMark) != 0, e.flags&flagStored == 0:
		return leavesStored
	case ks.waitsFor(e):
		return leavesSnapshot
	}
	for _, t := range e.tracked() {
		if t.log != nil && !t.log.Clean() {
			return leavesStored
		}
	}
	return leavesNow
}

const (
	leavingSamples = 32 // drawn entries, of which the best leavingShare-th part leaves
	leavingShare   = 4
	leavingSmall   = 4096 // bytes up to which drawn values leave even if not needed: drawing again costs more
	leavingTurn    = 16   // values that leave under one lock
	leavingDraws   = 16   // unsuccessful draws in a shard before the next shard's turn
)

// unload makes values leave a shard while more returns true, up to leavingTurn of them. It returns how many have left.
func (v *evictor) unload(ks *Keyspace, at int, now int64, more func() bool) (left int) {
	var g Guard
	g.Lock(ks, 1<<at, now)
	defer g.Unlock()
	if ks.replaying {
		return 0
	}
	list := &ks.shards[at].resident
	for vain := 0; vain < leavingDraws && left < leavingTurn && list.len() > 0; {
		before, need := left, true
		for _, d := range v.drawResident(&g, list) {
			if !need && d.entry.frees() > leavingSmall || !g.Unload(d.entry) {
				continue
			}
			ks.shards[at].stats.Unloaded++
			left++
			need = need && more()
		}
		if !need {
			break
		}
		if vain++; left > before {
			vain = 0
		}
	}
	clear(v.residents)
	return left
}

// drawResident draws some entries from a list, and returns the best candidates for leaving, none if none can leave.
func (v *evictor) drawResident(g *Guard, list *entryList) []resident {
	v.residents = v.residents[:0]
	n := min(leavingSamples, list.len())
	for range n {
		if list.len() == 0 {
			break
		}
		at := list.at(rand.IntN(list.len()))
		e := *at
		if e.flags&flagRemoved != 0 || g.ks.spaces[e.space].dropped != 0 || e.frees() < leastLeaving {
			e.flags &^= flagResident
			list.drop(at)
			continue
		}
		switch g.leaves(e) {
		case leavesStored:
			v.unstored = true
		case leavesSnapshot:
			v.unread = true
		case leavesNow:
			v.residents = append(v.residents, resident{e, v.disuse(g, e)})
		}
	}
	slices.SortFunc(v.residents, func(a, b resident) int { return cmp.Compare(b.disuse, a.disuse) })
	return v.residents[:min(max(n/leavingShare, 1), len(v.residents))]
}

// resident is an entry whose value may leave memory, and a measure of how long or how rarely it was used.
type resident struct {
	entry  *Entry
	disuse uint64
}

// relieve makes values leave memory until more returns false, and reports whether it reached that. If not, unstored and
// unread say whether some can leave later.
func (v *evictor) relieve(ks *Keyspace, now int64, more func() bool) bool {
	v.unstored, v.unread = false, false
	need := true
	still := func() bool {
		need = more()
		return need
	}
	at := rand.IntN(len(ks.shards))
	for without := 0; without < len(ks.shards) && need; at = (at + 1) % len(ks.shards) {
		if v.unload(ks, at, now, still) > 0 {
			without = 0
		} else {
			without++
		}
	}
	return !need
}
