package engine

import (
	"math/bits"
	"sync/atomic"
)

// TryLock is Lock, but fails if one of the shards is held. It reports whether the guard has them.
func (g *Guard) TryLock(ks *Keyspace, shards uint64, now int64) bool {
	shards &= ks.all
	for m := shards; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros64(m); !ks.shards[i].mu.TryLock() {
			ks.unlock(shards & (1<<i - 1))
			return false
		}
	}
	g.ks, g.locked, g.now = ks, shards, now
	return true
}

// LockUnless is Lock until stop is closed, and reports whether the guard has the shards. If a shard is never released,
// the caller must close stop.
func (g *Guard) LockUnless(stop <-chan struct{}, ks *Keyspace, shards uint64, now int64) bool {
	if g.TryLock(ks, shards, now) {
		return true
	}
	shards &= ks.all
	var decided atomic.Bool // set by the side that decides: shards locked, or attempt abandoned
	locked := make(chan struct{})
	go func() {
		ks.lock(shards)
		if decided.Swap(true) {
			ks.unlock(shards)
			return
		}
		close(locked)
	}()
	select {
	case <-locked:
	case <-stop:
		if !decided.Swap(true) {
			return false
		}
		<-locked
	}
	g.ks, g.locked, g.now = ks, shards, now
	return true
}

// lock locks shards.
func (ks *Keyspace) lock(shards uint64) {
	for m := shards; m != 0; m &= m - 1 {
		ks.shards[bits.TrailingZeros64(m)].mu.Lock()
	}
}

// unlock unlocks shards.
func (ks *Keyspace) unlock(shards uint64) {
	for m := shards; m != 0; m &= m - 1 {
		ks.shards[bits.TrailingZeros64(m)].mu.Unlock()
	}
}
