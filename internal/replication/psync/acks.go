package psync

import (
	"github.com/atomredis/atomredis/internal/replication"
)

// WAIT and WAITAOF wait for acknowledgements. A follower acknowledges two offsets: up to one it has executed the stream, and up
// to the other the stream is on its disk. In a group other servers count too, once they have the entry of the group's log with
// the client's changes.

// ackWaiter waits until n servers have acknowledged a client's changes.
type ackWaiter struct {
	written replication.Written
	entry   uint64 // the entry of the group's log with the changes; 0 until it is committed
	n       int64
	synced  bool // on their disks
	finish  func(acked int64)
}

// Wrote returns the place in the stream and in the group's journal after all changes of a client. changes is the result of
// Guard.Changes. complete says that the journal has all of them.
func (f *Followers) Wrote(of *Follower, changes int, complete bool) replication.Written {
	if changes == of.changes {
		return of.wrote
	}
	now := replication.Written{Offset: f.Present().Offset, Position: f.host.Position()}
	if complete {
		of.changes, of.wrote = changes, now
	}
	return now
}

// Acked returns how many followers, and other servers of the group, have executed changes or, with synced, have them on
// their disks. A reply with this number must wait until the changes are committed.
func (f *Followers) Acked(written replication.Written, synced bool) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countAcked(&ackWaiter{written: written, synced: synced})
}

// countAcked is Acked with mu locked.
func (f *Followers) countAcked(w *ackWaiter) (n int64) {
	for _, d := range f.list {
		at := d.acked.Load()
		if w.synced {
			at = d.synced.Load()
		}
		if d.state == replication.FollowerOnline && at >= w.written.Offset {
			n++
		}
	}
	if w.entry == 0 { // once known, it is kept: later Entry may return a later entry, which fewer servers have
		w.entry = f.host.Entry(w.written.Position)
	}
	if w.entry == 0 { // the reply waits for the commit
		return n + f.host.Committers()
	}
	return n + f.host.Holders(w.entry)
}

// AwaitAcked asks followers for acknowledgements, and calls finish once Acked is n. A client has one such wait at a
// time.
func (f *Followers) AwaitAcked(of *Follower, written replication.Written, n int64, synced bool, finish func(acked int64)) {
	f.mu.Lock()
	if f.waiters == nil {
		f.waiters = map[*Follower]*ackWaiter{}
	}
	of.awaits = true
	f.waiters[of] = &ackWaiter{written: written, n: n, synced: synced, finish: finish}
	// A GETACK at the end of the stream is enough for all waiters. While writes are paused the stream must not grow.
	if f.makes() && len(f.list) > 0 && f.asked != f.history.Offset &&
		!f.host.WritesPaused(f.ks.Now()) {
		f.insert(encodeWords("REPLCONF", "GETACK", "*"))
		f.asked = f.history.Offset
	}
	f.mu.Unlock()
	f.Heard() // followers and servers of the group may have acknowledged already
}

// forgetWaiter ends the wait of a client that is closed.
func (f *Followers) forgetWaiter(of *Follower) {
	if !of.awaits {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiters, of)
}

// Heard finishes the waits that an acknowledgement has fulfilled.
func (f *Followers) Heard() {
	var done []func()
	f.mu.Lock()
	for of, w := range f.waiters {
		if acked := f.countAcked(w); acked >= w.n {
			done = append(done, func() { w.finish(acked) })
			delete(f.waiters, of)
		}
	}
	f.mu.Unlock()
	for _, finish := range done {
		finish()
	}
}

// heard acts on the acknowledgement of a follower.
func (f *Followers) heard() {
	f.Heard()
	f.mu.Lock()
	failing := f.failing.state == waitingForSync
	f.mu.Unlock()
	if failing {
		f.continueFailover(false)
	}
}
