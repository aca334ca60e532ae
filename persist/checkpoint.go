package persist

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/store"
)

// ErrInProgress is returned by Begin while a checkpoint is being made.
var ErrInProgress = errors.New("a checkpoint is in progress")

var errClosed = errors.New("the storage is closed")

// errReplacing is returned by checkpoints that would store a partial result of Replace.
var errReplacing = errors.New("the data is being replaced")

// errReadOnly is returned by checkpoints of data that is only read.
var errReadOnly = errors.New("the data of a server of a group is only read")

// interval is how often the storage checks whether a checkpoint is due.
const interval = 100 * time.Millisecond

// retryAfter is the delay between a failed checkpoint and the next attempt.
const retryAfter = 250 * time.Millisecond

// run makes checkpoints when they are due or requested.
func (s *Storage) run() {
	defer s.running.Done()
	background.Work()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case done := <-s.requests:
			done <- s.checkpoint(0)
		case <-tick.C:
			if why := s.due(time.Now()); why != "" {
				s.o.Log.Debug("checkpoint", "reason", why)
				s.checkpoint(0) // logs errors
			}
		}
	}
}

// due returns the reason for a checkpoint now, "" if there is none.
func (s *Storage) due(now time.Time) string {
	changes := s.ks.Changes()
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	if st.LastErr != nil || s.Err() != nil {
		if now.Sub(st.attempted) < retryAfter {
			return ""
		}
		return "the last one, or the journal, has failed"
	}
	if j := s.log(); j != nil && int64(j.Appended()-st.position) >= s.size.Load() {
		return "length of the journal"
	}
	changed := changes - st.Changes
	for _, p := range *s.savePoints.Load() {
		if changed >= int64(p.Changes) && changed > 0 && now.Sub(st.attempted) >= time.Duration(p.Seconds)*time.Second {
			return "save point"
		}
	}
	return ""
}

// Save makes a checkpoint and returns after it is in the store.
func (s *Storage) Save() error {
	done := make(chan error, 1)
	select {
	case s.requests <- done:
		return <-done
	case <-s.stop:
		return errClosed
	}
}

// Replace replaces the content of the keyspace by fill, while nothing else changes it. fill is not journalled; a
// checkpoint stores its result after fill returns: all of it or, if the process ends before, nothing. If fill fails,
// nothing more is stored until a later Replace succeeds. If only the checkpoint fails, it is retried like any other.
func (s *Storage) Replace(fill func() error) error {
	s.checkpointing.Lock()
	s.replacing = true
	s.checkpointing.Unlock()
	if err := fill(); err != nil {
		return err
	}
	s.breakRecords()
	s.checkpointing.Lock()
	s.replacing = false
	s.checkpointing.Unlock()
	return s.Save()
}

// Begin starts a checkpoint in the background.
func (s *Storage) Begin() error {
	s.mu.Lock()
	busy := s.status.Checkpoint
	s.mu.Unlock()
	if busy {
		return ErrInProgress
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		s.Save() // logs errors
	}()
	return nil
}

// checkpoint stores all changes. If there is no journal, position is where the next one will begin, or a later position
// if that was already chosen.
func (s *Storage) checkpoint(position uint64) error {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	switch {
	case s.readOnly:
		return errReadOnly
	case s.replacing:
		return errReplacing
	}
	if f := s.Err(); s.o.Group != nil && f != nil && f.Journal {
		return f // the group has not agreed on the changes and never will: they must not become the stored state
	}
	start := time.Now()
	s.mu.Lock()
	s.status.Checkpoint, s.status.Began = true, start
	s.atLeast = max(position, s.status.position, s.atLeast)
	position = s.atLeast
	s.mu.Unlock()

	j := s.log()
	failed := j != nil && j.Err() != nil
	release := func() {}
	if j != nil {
		release = j.Hold()
	}
	var extra []byte
	frozen := s.ks.Freeze(func() {
		switch {
		case j == nil:
		case failed:
			position = j.FailedNext()
		default:
			position = j.Rotate()
		}
		extra = s.o.Extra() // a concurrent Append may be in both extra and the journal, but not in neither
	})
	release()
	frozen.Pause = new(background.Pacer).Pause
	changes := s.ks.Changes()
	s.mu.Lock()
	s.frozen = frozen
	upToDate := s.store.Err() == nil && frozen.Empty() && position == s.status.position && bytes.Equal(extra, s.extra)
	s.mu.Unlock()

	var err error
	if !upToDate {
		err = s.write(frozen, func() (journal.Anchor, error) { return s.anchor(j, position, failed) }, start, extra)
	}
	if err == nil {
		s.extra = extra
		frozen.Done()
		if failed {
			if err = j.Resume(); err == nil {
				s.enrol(j)
			}
		} else if j != nil {
			if e := j.Release(position); e != nil {
				s.o.Log.Warn("cannot remove segments of the journal that are no longer needed", "error", e)
			}
		}
	} else {
		frozen.Abort()
	}
	now := time.Now()
	s.mu.Lock()
	s.status.Checkpoint, s.frozen = false, nil
	s.status.attempted, s.status.LastErr = now, err
	if err == nil {
		s.status.Saved, s.status.Took = start, now.Sub(start)
		s.status.Checkpoints++
		s.status.Failed = 0
		s.status.Changes, s.status.position = changes, position
	} else {
		s.status.Failed++
	}
	s.mu.Unlock()
	if err != nil {
		if s.failure.Swap(&Failure{Err: err}) == nil {
			s.o.Log.Error("a checkpoint has failed; trying again", "error", err.Error())
		}
		s.o.Notify()
		return err
	}
	if s.failure.Swap(nil) != nil || failed {
		s.o.Log.Info("changes can be made durable again")
		s.o.Notify()
	}
	s.o.Log.Debug("checkpoint done", "keys", frozen.Written(), "duration", now.Sub(start).Round(time.Millisecond))
	return nil
}

// anchor returns where the journal continues after a checkpoint. The segment that it names must exist from then on; it
// names none if the journal has failed.
func (s *Storage) anchor(j journal.Journal, position uint64, failed bool) (journal.Anchor, error) {
	if j == nil || failed {
		return journal.Anchor{Start: journal.Start{LSN: position}}, nil
	}
	return j.Anchor(position)
}

// enrol makes the store name the segment in which the journal continues, unless it already does. Without that, only the
// loss of a whole journal would go unnoticed.
func (s *Storage) enrol(j journal.Journal) {
	meta, _ := s.store.Meta()
	a, err := j.Anchor(meta.Journal)
	if err == nil && (a.Start.Seed == meta.JournalSeed || a.Start.Seed == 0) {
		return
	}
	meta.JournalSeed = a.Start.Seed
	var c store.Checkpoint
	if err == nil {
		c, err = s.store.Begin()
	}
	if err == nil {
		err = c.Commit(meta)
	}
	if err != nil {
		s.o.Log.Warn("the store cannot record which journal belongs to it", "error", err.Error())
	}
}

// write stores the frozen changes. anchor returns where the journal continues.
func (s *Storage) write(f *engine.Frozen, anchor func() (journal.Anchor, error), start time.Time, extra []byte) error {
	c, err := s.store.Begin()
	if err != nil {
		return err
	}
	if err := s.fill(c, f); err != nil {
		c.Abort()
		return err
	}
	keys := int64(f.Keys)
	if keys < 0 {
		keys = 0 // unknown: the keys are still being loaded
	}
	at, err := anchor()
	if err != nil {
		c.Abort()
		return err
	}
	err = c.Commit(store.Meta{
		Journal: at.Start.LSN, JournalSeed: at.Start.Seed, Group: at.Group, Spaces: f.Spaces, NextSpace: f.NextSpace, NextParts: f.NextParts,
		Saved: start.UnixMilli(), Keys: keys, Extra: extra,
	})
	if err == nil && s.repaired {
		if err = removeMarker(s.o.FS, s.o.Dir); err == nil {
			s.repaired = false
		}
	}
	return err
}

// fill passes all frozen changes to a checkpoint.
func (s *Storage) fill(c store.Checkpoint, f *engine.Frozen) error {
	progress := s.newProgress("writing a checkpoint", "keys", int64(f.Len()))
	defer progress.end()
	owed := time.Duration(0)
	spaces := f.DroppedSpaces
	dropBefore := func(space uint32) {
		for len(spaces) > 0 && spaces[0] < space {
			c.DropSpace(spaces[0])
			spaces = spaces[1:]
		}
	}
	err := f.Heads(
		func(img *engine.Image) error {
			progress.tell(int64(f.Written()))
			dropBefore(img.Space)
			s.saved(&owed)
			return c.PutHead(img.Space, img.Key, img.Head, img.Known, img.WasExternal)
		},
		func(space uint32, key string, wasExternal bool) error {
			dropBefore(space)
			return c.DeleteHead(space, key, wasExternal)
		})
	if err != nil {
		return err
	}
	dropBefore(^uint32(0))

	// The parts of values in emptied databases are dropped too, except those of values moved away before.
	var dropped []uint64
	for _, space := range f.DroppedSpaces {
		err := s.store.Heads(space, func(_ []byte, h engine.Head) bool {
			for _, id := range h.AllParts() {
				if !f.HasParts(id) {
					dropped = append(dropped, id)
				}
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("emptied database: %w", err)
		}
	}
	return f.Parts(dropped, c.DropParts, c.PutPart, c.DeletePart)
}
