package lsm

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler lets one compaction run at a time. Unlike Pebble's own it does not retry a failed one at once and
// endlessly, but waits a while, and starts none after the store has failed.
type scheduler struct {
	fence *fence
	db    pebble.DBForCompaction // set before all other calls

	mu       sync.Mutex // never held during calls of db
	running  bool       // a compaction has permission, or is being offered it
	refused  bool       // one was refused permission since the last offer
	paused   bool
	closed   bool
	timer    *time.Timer
	offering sync.WaitGroup
}

// compactionRetry is the delay between a failure and the next compaction.
const compactionRetry = 5 * time.Second

// Register is called by Pebble when it opens.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister is called by Pebble when it closes. Afterwards db is not called any more.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.offering.Wait()
}

// free reports whether a compaction may begin.
func (s *scheduler) free() bool { return !s.running && !s.paused && !s.closed && s.fence.Err() == nil }

// TrySchedule gives Pebble permission for a compaction, or returns false; then Pebble waits for an offer.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.free() {
		s.refused = true
		return false, nil
	}
	s.running = true
	return true, s
}

// offer gives permission to a waiting compaction, if there is one.
func (s *scheduler) offer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.free() {
		s.running, s.refused = true, false
		s.offering.Add(1)
		s.mu.Unlock()
		waiting, _ := s.db.GetWaitingCompaction()
		taken := waiting && s.db.Schedule(s)
		s.mu.Lock()
		s.offering.Done()
		if taken {
			return
		}
		s.running = false
		if !s.refused {
			return
		}
	}
}

// pause delays compactions after one has failed.
func (s *scheduler) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused || s.closed {
		return
	}
	s.paused = true
	s.timer = time.AfterFunc(compactionRetry, func() {
		s.mu.Lock()
		s.paused = false
		s.mu.Unlock()
		s.offer()
	})
}

// Done is called by Pebble when the permitted compaction has ended.
func (s *scheduler) Done() {
	s.mu.Lock()
	s.running = false
	s.mu.Unlock()
	s.offer()
}

// UpdateGetAllowedWithoutPermission, Started, MeasureCPU and CumulativeStats are for schedulers that weigh costs.
func (s *scheduler) UpdateGetAllowedWithoutPermission()                {}
func (s *scheduler) Started()                                          {}
func (s *scheduler) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (s *scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}
