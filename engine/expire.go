package engine

import (
	"time"
	"unsafe"
)

// expireBatch is how many keys a timer removes under one guard, so that many keys with one deadline do not hold up
// everybody else.
const expireBatch = 64

// arm makes sure that the timer of shard i fires at its earliest deadline. The shard must be locked.
func (ks *Keyspace) arm(i int, now int64) {
	s := &ks.shards[i]
	if ks.replaying {
		return
	}
	_, at, ok := s.expires.Min()
	if !ok {
		if s.timer != nil {
			ks.disarm(s)
		}
		return
	}
	// A timer that fires too early costs little and finds the right time; a deadline moved back is not worth a reset.
	if s.timer != nil && s.armed <= at || ks.closed.Load() {
		return
	}
	ks.disarm(s)
	s.armed = at
	ks.running.Add(1)
	wait := time.Duration(max(at-now, 0))
	if wait > time.Hour/time.Millisecond {
		wait = time.Hour / time.Millisecond // far deadlines must not overflow a Duration
	}
	s.timer = ks.clock.AfterFunc(wait*time.Millisecond, func() {
		defer ks.running.Done()
		ks.expireDue(i)
	})
}

func (ks *Keyspace) disarm(s *shard) {
	if s.timer != nil && s.timer.Stop() {
		ks.running.Done()
	}
	s.timer = nil
}

// expireDue removes keys of shard i whose time has come.
func (ks *Keyspace) expireDue(i int) {
	var g Guard
	s := &ks.shards[i]
	g.Lock(ks, 1<<i, ks.Now())
	s.timer = nil
	for range expireBatch {
		e, at, ok := s.expires.Min()
		if !ok || at > g.now {
			break
		}
		g.expire(e)
	}
	g.Unlock()
}

// bytesOf returns the bytes of a string, which must not be written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// stringOf returns a string that shares the bytes of b, for calls that do not keep it.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
