package journal

import (
	"fmt"
	"time"

	"github.com/atomredis/atomredis/persist/disk"
)

// The two goroutines of a journal. The writer writes, unless the caller of Commit does. Under Always it also syncs,
// because no reply is sent before that. Otherwise the syncer does, so that a slow disk does not delay handing data to
// the operating system, which keeps it if only the server dies.

// syncRequest asks the syncer to make everything up to an LSN durable, which is already written. Later records were
// appended after at.
type syncRequest struct {
	file disk.File
	lsn  uint64
	at   time.Time
}

func (j *File) runSyncer() {
	defer j.running.Done()
	for r := range j.syncs {
		start := time.Now()
		err := r.file.SyncData()
		if err == nil {
			j.positions.synced(r.lsn)
		}
		j.mu.Lock()
		j.syncing = false
		if err != nil {
			j.fail(fmt.Errorf("sync the journal: %w", err))
		} else {
			j.advance(r.lsn, r.at)
		}
		j.changed.Broadcast()
		j.wakeWriter() // to notify, and because there may be more to sync
		j.mu.Unlock()
		if took := time.Since(start); took > lagLimit && Policy(j.policy.Load()) == EverySec {
			j.o.Waited(WaitLag, took)
		}
	}
}

// advance records that everything up to an LSN is synced; later records were appended after at. The caller holds mu.
func (j *File) advance(lsn uint64, at time.Time) {
	if j.failure.Load() != nil || lsn <= j.durable.Load() {
		return
	}
	j.durable.Store(lsn)
	if j.appended.Load() == lsn {
		j.dirty.Store(0)
	} else {
		j.dirty.Store(at.UnixNano())
	}
	j.announce = true
	j.changed.Broadcast()
}

func (j *File) runWriter() {
	defer j.running.Done()
	defer j.timer.Stop()
	for {
		closing := j.awaitDue()
		j.turn.Lock()
		j.step(closing)
		if closing {
			j.finish()
		} else {
			j.prepareAhead()
			j.checkReserve()
		}
		j.turn.Unlock()
		j.tell()
		if closing {
			return
		}
	}
}

// Commit implements Journal. Writing in the caller's goroutine avoids two switches of goroutines when the caller has
// nothing else to do. If there are no more processors than busy goroutines, the writer would also delay the caller for
// as long as it takes to write all records of a writeInterval, instead of only those since the last Commit.
func (j *File) Commit() {
	always := Policy(j.policy.Load()) == Always
	j.mu.Lock()
	n := len(j.buf) + len(j.long)
	enough := n > 0 && !j.closed && (always || n >= minInline && n < eagerSize)
	j.mu.Unlock()
	if !enough {
		return
	}
	if !j.turn.TryLock() {
		if always {
			j.Kick()
		}
		return
	}
	if always {
		j.step(false)
	} else {
		j.writeInline()
	}
	j.turn.Unlock()
	j.tell()
}

// writeInline writes the appended records if that should take no longer than copying them. Otherwise it leaves them to
// the writer, because without Always nobody should wait for the disk. So no sync may be under way, since the system may
// make writers to the same file wait for it, and no segment may end here, which would have to be synced first. If a
// write nevertheless takes long, the writer does all writes for many times as long, so that a slow disk delays callers
// of Commit only for a small fraction of the time. The caller has the turn.
func (j *File) writeInline() {
	began := j.o.Now()
	j.mu.Lock()
	quick := !j.syncing && len(j.cuts) == 0 && j.size < j.o.SegmentSize && !began.Before(j.slowUntil)
	j.committed = quick
	j.mu.Unlock()
	if !quick {
		return
	}
	j.step(false)
	end := j.o.Now()
	if took := end.Sub(began); took > inlineLimit {
		j.slowUntil = end.Add(slowPauses * took)
	}
}

// awaitDue waits until there is something to do. It reports whether the journal is being closed.
func (j *File) awaitDue() (closing bool) {
	for {
		j.mu.Lock()
		due := j.due
		closing = j.closed
		j.due = false
		j.mu.Unlock()
		if due || closing {
			return closing
		}
		select {
		case <-j.wake:
		case <-j.timer.C:
			j.mu.Lock()
			if j.paused = j.committed && len(j.buf) > 0; j.paused {
				j.timer.Reset(writeInterval) // the data was appended after that, and the next Commit may take it
			} else {
				j.due = true
			}
			j.committed = false
			j.mu.Unlock()
		}
	}
}

// step writes the appended records, and syncs as the policy and Sync require.
func (j *File) step(closing bool) {
	at := j.o.Now()
	j.mu.Lock()
	if j.failure.Load() != nil {
		j.mu.Unlock()
		return
	}
	batch, long, cuts := j.buf, j.long, j.cuts
	j.buf, j.long, j.spare, j.cuts = j.spare[:0], nil, nil, nil
	j.busy = true
	always := closing || Policy(j.policy.Load()) == Always
	start := j.appended.Load() - uint64(len(batch)+len(long))
	j.changed.Broadcast()
	j.mu.Unlock()

	began := time.Now()
	if delay := j.o.Delay(); delay > 0 && len(batch) > 0 {
		time.Sleep(delay)
	}
	err := j.write(batch, long, start, cuts)
	if err == nil {
		j.writtenAt = at // even without a batch
		if len(batch) > 0 {
			j.batchAt, j.noRoom = at, false
		}
	}
	if err == nil && (always || j.usedReserve()) && j.written > j.durable.Load() {
		wrote := time.Now()
		j.o.Waited(WaitWrite, wrote.Sub(began))
		err = j.syncHere()
		j.o.Waited(WaitSync, time.Since(wrote))
		if err == nil && at.Sub(j.notedAt) >= noteInterval {
			j.notedAt = at
			j.positions.synced(j.written)
		}
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if cap(batch) <= maxSpare || len(batch) > cap(batch)/4 {
		j.spare = batch // a large buffer stays while it is needed
	}
	j.busy = false
	j.rotate = len(j.cuts) > 0
	if err == nil && j.exhausted != nil {
		if err = j.exhausted; len(j.buf) > 0 {
			err = nil
			j.wakeWriter() // records appended before the stop must still be written
		}
	}
	if err != nil {
		j.fail(err)
	}
	j.changed.Broadcast()
	if always || j.failure.Load() != nil {
		return
	}
	everySec := Policy(j.policy.Load()) == EverySec && j.written > j.durable.Load()
	elapsed := at.Sub(j.lastSync)
	if !j.syncing && (j.wantSync > j.durable.Load() || everySec && elapsed >= syncInterval) &&
		j.written > j.durable.Load() {
		j.syncing, j.lastSync = true, at
		j.syncs <- syncRequest{j.file, j.written, j.writtenAt}
	}
	if !j.paused && everySec && !j.syncing {
		j.timer.Reset(syncInterval - elapsed)
	}
}

// usedReserve reports whether the reserve was used, so that the journal is about to fail.
func (j *File) usedReserve() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.exhausted != nil
}

// write writes a batch, which begins at LSN start and ends with long. It begins a new segment at each of cuts.
func (j *File) write(batch, long []byte, start uint64, cuts []uint64) error {
	if len(batch) > 0 && j.size >= j.o.SegmentSize {
		if err := j.nextSegment(start); err != nil {
			return err
		}
	}
	for _, lsn := range cuts {
		n, end := int(lsn-start), []byte(nil)
		if n > len(batch) { // a cut is between records, so it is after the whole long one
			n, end, long = len(batch), long, nil
		}
		if err := j.writePart(batch[:n], end, start); err != nil {
			return err
		}
		if err := j.nextSegment(lsn); err != nil {
			return err
		}
		batch, start = batch[n:], lsn
	}
	return j.writePart(batch, long, start)
}

// piece is how many bytes of a long record are written at once.
const piece = 1 << 20

// writePart writes records that begin at LSN start, of which the last one continues in long, to the present segment.
func (j *File) writePart(b, long []byte, start uint64) error {
	if len(b) == 0 {
		return nil
	}
	seal(b, long, start, j.seed, j.durable.Load())
	n := len(b) + len(long)
	for at := j.size; len(b) > 0; b, long = long[:min(piece, len(long))], long[min(piece, len(long)):] {
		err := writeAt(j.file, b, at)
		if j.useReserve(err) {
			err = writeAt(j.file, b, at)
		}
		if err != nil {
			return fmt.Errorf("write the journal: %w", err)
		}
		at += int64(len(b))
	}
	j.size += int64(n)
	if j.size > j.prepared {
		j.prepared = j.size
		// Writing all of a longer batch twice takes longer than syncing it as it is.
		if zeros := min(max(j.prepare, 4*n), maxZeros*j.prepare); Policy(j.policy.Load()) == Always && n < zeros/2 {
			j.writeZeros(zeros)
		}
	}
	j.written = start + uint64(n)
	j.mu.Lock()
	j.segments[len(j.segments)-1].size = j.size
	j.mu.Unlock()
	return nil
}

// Under Always zeros are written ahead, for the next batches to overwrite. Syncing a file without growth or new blocks
// takes two thirds of the time, because the file system's metadata need not be synced.
const (
	// zeros written at once: more of them make the following sync slower
	prepareSize = 32 << 10
	// limit of that, in units of prepareSize, for long batches
	maxZeros      = 8
	preparedAhead = 128                  // limit of zeros ahead, in units of prepareSize
	quietInterval = 5 * time.Millisecond // time without a batch after which zeros are written although some are left
)

var zeros [maxZeros * prepareSize]byte

// writeZeros extends the segment by n zeros. If it fails, the next batches do without: a record then gets its own room,
// or fails the journal itself.
func (j *File) writeZeros(n int) bool {
	if writeAt(j.file, zeros[:n], j.prepared) != nil {
		return false
	}
	j.prepared += int64(n)
	return true
}

// noteInterval is how often, under Always, the file of positions gets the synced position while batches come without a
// pause. After the last of them it gets it within quietInterval.
const noteInterval = 10 * time.Millisecond

// prepareAhead uses an idle quietInterval under Always. It notes the synced position, writes and syncs zeros, and makes
// the writer come back until there are enough, so that later clients need not wait for that. The caller has the turn.
func (j *File) prepareAhead() {
	j.mu.Lock()
	enough := min(j.size+preparedAhead*int64(j.prepare), j.o.SegmentSize)
	quiet := Policy(j.policy.Load()) == Always && j.failure.Load() == nil && len(j.buf) == 0 && len(j.cuts) == 0 &&
		!j.batchAt.IsZero()
	if rest := quietInterval - j.o.Now().Sub(j.batchAt); quiet && rest > 0 {
		j.timer.Reset(rest)
		quiet = false
	}
	grow := quiet && !j.noRoom && j.prepared < enough
	j.busy = grow
	j.mu.Unlock()
	if quiet {
		j.positions.synced(j.durable.Load())
	}
	if !grow {
		return
	}
	var err error
	if j.writeZeros(j.prepare) {
		err = j.syncHere()
	} else {
		j.noRoom = true // no retry before the next batch
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy = false
	if err != nil {
		j.fail(err)
	}
	if len(j.buf) == 0 { // else the timer is already set
		j.timer.Reset(kickDelay)
	}
	j.changed.Broadcast()
}

// nextSegment begins a segment at an LSN, up to which everything is written.
func (j *File) nextSegment(lsn uint64) error {
	if j.size == headerSize {
		return nil // the present one begins there
	}
	if err := j.syncHere(); err != nil {
		return err
	}
	err := j.file.Close()
	j.file = nil
	if err != nil {
		return fmt.Errorf("close the journal: %w", err)
	}
	j.mu.Lock()
	before := j.seed
	severed := j.severed
	if severed != 0 && lsn >= severed {
		before = 0
	}
	j.mu.Unlock()
	file, seed, err := create(j.o.FS, j.o.Dir, lsn, before)
	if j.useReserve(err) {
		file, seed, err = create(j.o.FS, j.o.Dir, lsn, before)
	}
	if err == nil {
		err = j.begun(file, lsn, seed)
	}
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.begin(file, segment{start: lsn, seed: seed, before: before})
	if before == 0 && j.severed == severed { // not a later Break
		j.severed = 0
	}
	j.mu.Unlock()
	return nil
}

// syncHere makes everything written durable, in the writer's goroutine.
func (j *File) syncHere() error {
	j.mu.Lock()
	for j.syncing {
		j.changed.Wait()
	}
	err := j.Err()
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err := j.file.SyncData(); err != nil {
		return fmt.Errorf("sync the journal: %w", err)
	}
	j.mu.Lock()
	j.advance(j.written, j.writtenAt)
	j.mu.Unlock()
	return nil
}

// finish ends a journal that is being closed: with a mark, if anything is not confirmed yet, and a note of its end.
func (j *File) finish() {
	j.mu.Lock()
	for j.syncing {
		j.changed.Wait()
	}
	j.mu.Unlock()
	close(j.syncs)
	err := j.Err()
	if err == nil && j.size > headerSize && j.written > j.marked {
		lsn := j.written
		j.appended.Add(markSize)
		if err = j.writePart(appendMark(nil), nil, lsn); err == nil {
			err = j.syncHere()
		}
	}
	if j.file != nil {
		if e := j.file.Close(); err == nil && e != nil {
			err = fmt.Errorf("close the journal: %w", e)
		}
		j.file = nil
	}
	if err == nil {
		err = j.positions.closed(j.written)
	}
	if j.positions != nil {
		j.positions.close()
	}
	if err != nil {
		j.mu.Lock()
		j.fail(err)
		j.mu.Unlock()
	}
}

// tell logs a failure and calls Notify if there is news.
func (j *File) tell() {
	j.mu.Lock()
	announce, unlogged, err := j.announce, j.unlogged, j.Err()
	j.announce, j.unlogged = false, false
	j.mu.Unlock()
	if unlogged && err != nil {
		j.o.Log.Error("the journal has failed; changes are not durable until a checkpoint succeeds",
			"error", err.Error())
	}
	if announce {
		j.o.Notify()
	}
}
