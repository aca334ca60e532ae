package psync

import (
	"github.com/atomredis/atomredis/internal/replication"
)

// WAIT and WAITAOF wait for acknowledgements: the offset up to which a follower has executed the stream, and the one up to
// which it is on its disk.

// ackWaiter waits until n followers have acknowledged an offset.
type ackWaiter struct {
	offset, n int64
	synced    bool // on their disks
	finish    func()
}

// Wrote returns the offset of the stream after all changes of a client; changes is the result of Guard.Changes.
func (f *Followers) Wrote(of *Follower, changes int) int64 {
	if changes != of.changes {
		of.changes, of.wrote = changes, f.Present().Offset
	}
	return of.wrote
}

// Acked returns how many followers have executed the stream up to an offset or, with synced, have that on their disks.
func (f *Followers) Acked(offset int64, synced bool) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countAcked(offset, synced)
}

// countAcked is Acked with mu locked.
func (f *Followers) countAcked(offset int64, synced bool) (n int64) {
	for _, d := range f.list {
		at := d.acked.Load()
		if synced {
			at = d.synced.Load()
		}
		if d.state == replication.FollowerOnline && at >= offset {
			n++
		}
	}
	return n
}

// AwaitAcked asks followers for acknowledgements, and calls finish once Acked is n. A client has one such wait at a time.
func (f *Followers) AwaitAcked(of *Follower, offset, n int64, synced bool, finish func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiters == nil {
		f.waiters = map[*Follower]ackWaiter{}
	}
	of.awaits = true
	f.waiters[of] = ackWaiter{offset, n, synced, finish}
	// A GETACK at the end of the stream is enough for all waiters. While writes are paused the stream must not grow.
	if f.makes() && len(f.list) > 0 && f.asked != f.history.Offset &&
		!f.host.WritesPaused(f.ks.Now()) {
		f.insert(encodeWords("REPLCONF", "GETACK", "*"))
		f.asked = f.history.Offset
	}
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

// heard finishes the waits that an acknowledgement has fulfilled, and continues a failover.
func (f *Followers) heard() {
	f.mu.Lock()
	var done []func()
	for of, w := range f.waiters {
		if f.countAcked(w.offset, w.synced) >= w.n {
			done = append(done, w.finish)
			delete(f.waiters, of)
		}
	}
	failing := f.failing.state == waitingForSync
	f.mu.Unlock()
	for _, finish := range done {
		finish()
	}
	if failing {
		f.continueFailover(false)
	}
}
