package server

import (
	commands "github.com/atomredis/atomredis/commands/replication"
	"github.com/atomredis/atomredis/replication"
)

// What WAIT and WAITAOF wait for: followers say how far they have executed the stream, and how much of that is on
// their disks.

// ackWaiter waits until n followers have executed the stream up to an offset.
type ackWaiter struct {
	offset, n int64
	synced    bool // it must be on their disks
	finish    func()
}

// Wrote implements replication.Client.
func (s *Session) Wrote() int64 {
	f := &s.follower
	if n := s.guard.Changes(); n != f.changes {
		f.changes, f.wrote = n, s.srv.followed.present().Offset
	}
	return f.wrote
}

// Acked implements replication.Host.
func (srv *Server) Acked(offset int64, synced bool) int64 {
	f := &srv.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countAcked(offset, synced)
}

// countAcked is Acked with mu locked.
func (f *followers) countAcked(offset int64, synced bool) (n int64) {
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

// AwaitAcked implements replication.Host.
func (srv *Server) AwaitAcked(client commands.Client, offset, n int64, synced bool, finish func()) {
	f, s := &srv.followed, client.(*Session)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiters == nil {
		f.waiters = map[*Session]ackWaiter{}
	}
	s.follower.awaits = true
	f.waiters[s] = ackWaiter{offset, n, synced, finish}
	// Who has heard the last question will answer it. Nothing is asked while the stream must not go on.
	if f.makes() && len(f.list) > 0 && f.asked != f.history.Offset &&
		!srv.pause.running(srv.ks.Now()) {
		f.insert(encodeWords("REPLCONF", "GETACK", "*"))
		f.asked = f.history.Offset
	}
}

// forgetWaiter ends the wait of a client that goes.
func (f *followers) forgetWaiter(s *Session) {
	if !s.follower.awaits {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiters, s)
}

// heard looks for whom a follower's answer is enough.
func (f *followers) heard() {
	f.mu.Lock()
	var done []func()
	for s, w := range f.waiters {
		if f.countAcked(w.offset, w.synced) >= w.n {
			done = append(done, w.finish)
			delete(f.waiters, s)
		}
	}
	failing := f.failing.state == waitingForSync
	f.mu.Unlock()
	for _, finish := range done {
		finish()
	}
	if failing {
		f.srv.continueFailover(false)
	}
}
