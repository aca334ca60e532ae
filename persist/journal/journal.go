package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/persist/disk"
)

// Policy says when to sync appended records (appendfsync).
type Policy int

// Always syncs as soon as possible, EverySec often enough that at most the last second can be lost, and No leaves
// syncing to the operating system.
const (
	Always Policy = iota
	EverySec
	No
)

const (
	defaultSegmentSize = 64 << 20
	maxBuffered        = 64 << 20         // limit of bytes waiting to be written
	eagerSize          = 1 << 20          // waiting bytes at which writing begins at once
	minBuffer          = 64 << 10         // initial size of a buffer, in bytes
	maxSpare           = 4 << 20          // longest buffer kept although a shorter one would do, in bytes
	kickDelay          = time.Millisecond // Always: how long a batch waits for a Kick
	writeInterval      = 5 * time.Millisecond
	minInline          = 4 << 10          // not Always: fewest waiting bytes for a write by Commit
	inlineLimit        = time.Millisecond // not Always: permitted duration of a write by Commit
	// after a longer write, Commit does not write for this multiple of its duration
	slowPauses   = 200
	syncInterval = 700 * time.Millisecond // EverySec: leaves the rest of the second for the sync
	lagLimit     = time.Second            // EverySec: older records must not be lost
)

// LongRecord is the length in bytes from which Append keeps commands instead of copying them.
const LongRecord = 1 << 20

// ErrClosed is returned by Sync and Resume of a closed journal.
var ErrClosed = errors.New("the journal is closed")

// ErrReleased is returned by Read if the journal no longer has the first requested records.
var ErrReleased = errors.New("the journal no longer has records that old")

// Options say where a journal is and how it works.
type Options struct {
	FS     disk.FS
	Dir    string // must exist
	Policy Policy
	// Seed is Start.Seed for the first Read.
	Seed uint32
	// SegmentSize is the length in bytes at which a segment ends. 0 means 64 MiB.
	SegmentSize int64
	// Retention is what Retain sets.
	Retention Retention
	// Log receives problems. It may be nil.
	Log *slog.Logger
	// Now is the clock for EverySec. nil means time.Now.
	Now func() time.Time
	// Notify is called, by a goroutine of the journal or in Commit, without locks, after Durable has advanced, or Err
	// or the policy has changed. It may be nil.
	Notify func()
	// Waited gets the time that clients had to wait for the disk: for a write or a sync under Always, and for a sync
	// under EverySec that took longer than a second. It is called without locks that others wait for, and may be nil.
	Waited func(forWhat Wait, took time.Duration)
	// Delay returns the delay before each write, for tests. It may be nil.
	Delay func() time.Duration
}

// Wait is a disk operation that clients wait for.
type Wait uint8

// The kinds of Wait.
const (
	WaitWrite Wait = iota // Always: a write
	WaitSync              // Always: a sync
	WaitLag               // EverySec: a sync
)

// Journal is a log of the changes of a keyspace. Appended records become durable after a while; Durable returns up to
// which position, and Sync waits for them. Its methods may be called from any goroutine. File is the journal in the
// segments of a directory.
type Journal interface {
	// Append adds a record of the commands that were executed at time now, in ms since 1970. It does not keep commands,
	// unless they have LongRecord bytes or more: then they are not copied, and must not change any more. Append does no
	// I/O, but waits if too much is unwritten. Records appended after a failure are dropped: see Err.
	Append(now int64, commands []byte)
	// Appended returns the LSN after the last record.
	Appended() uint64
	// Buffered returns the number of bytes waiting in memory to be written.
	Buffered() int64
	// Durable returns the LSN before which everything is synced, or is in a checkpoint. It is less than Appended while
	// the journal has failed.
	Durable() uint64
	// WaitPosition returns the LSN that Told must reach before a reply may show the changes until now, 0 if it need not
	// wait. While the journal has failed it returns 0: replies that show later changes, or were waiting, must not be
	// sent at all.
	WaitPosition() uint64
	// Told returns the LSN up to which replies may show changes.
	Told() uint64
	// Sync returns after everything appended is synced, or with the reason why it cannot be.
	Sync(ctx context.Context) error
	// Kick starts writing the appended records, and under Always syncing them, without further delay.
	Kick()
	// Commit writes the appended records before it returns, and under Always makes them durable, unless another
	// goroutine is doing so. In that case, Commit acts like Kick under Always and otherwise does nothing. Under the
	// other policies it also does nothing for a small amount, or while writing might wait for the disk.
	Commit()
	// SetPolicy changes the policy of syncing.
	SetPolicy(p Policy)
	// Err returns why the journal has failed, nil if it has not. Until Resume, appended records are dropped, and
	// nothing becomes durable.
	Err() error
	// FailedNext returns the LSN at which a failed journal will continue, beyond all LSNs ever handed out. The caller
	// calls it under a guard over the whole keyspace, makes a checkpoint of everything as of then, and calls Resume
	// after the checkpoint is durable. Records appended meanwhile are kept.
	FailedNext() uint64
	// Resume makes a failed journal continue at the LSN that FailedNext last returned, and removes older records. If it
	// fails, the caller must start again with FailedNext.
	Resume() error
	// Rotate makes the next record the first that a later Release keeps, and returns its LSN. It does no I/O itself.
	Rotate() uint64
	// Release removes segments with only records before an LSN, which a checkpoint has. It waits for a Rotate under
	// way.
	Release(before uint64) error
	// Anchor returns the note with which a checkpoint finds the journal again. The checkpoint has everything before
	// lsn, which Rotate returned. Anchor waits until the records before lsn are settled, and fails if they never will
	// be: then the checkpoint must not become the stored state.
	Anchor(lsn uint64) (Anchor, error)
	// Hold stops the journal of a group's follower from executing its records, until release is called. A checkpoint or
	// snapshot that begins meanwhile shows the keyspace between two records.
	Hold() (release func())
	// Epoch returns a number that changes when appended records have been taken back: their clients must not get
	// replies.
	Epoch() uint64
	// Lost reports whether an LSN from WaitPosition will never be reached, because its records have been taken back.
	Lost(lsn uint64) bool
	// Size returns the total length in bytes of what the journal keeps, without Retained.
	Size() int64
	// Places returns the place before the oldest record that readers can have, and the one after the last durable record.
	Places() (oldest, end Place, err error)
	// End returns the second one. Once any place was asked for it does no I/O.
	End() (Place, error)
	// Follow returns a reader of the records after a place. The error is ErrReleased if some of them are not kept any more,
	// and ErrForeign if the place does not belong to the journal.
	Follow(from Place) (Reader, error)
	// Here is called under a guard over everything. settle waits until all records until now are durable, and returns the
	// place after them. It is nil if the keyspace has only a part of an entry of the group's log.
	Here() (settle func(ctx context.Context) (Place, error))
	// Break separates the records: no reader can go on from before it to after it. The data has changed in between without
	// records. The caller makes a checkpoint next.
	Break(now int64)
	// Retain sets what Release keeps for readers.
	Retain(r Retention)
	// Retained returns the length in bytes of what is kept only for readers.
	Retained() int64
	// Close makes everything durable and ends the journal's goroutines. It returns the journal's failure, if any.
	// Records appended later are dropped.
	Close() error
}

// Anchor is the store's note of where its journal continues.
type Anchor struct {
	// Start is the position from which to read the journal.
	Start Start
	// Group is the state of a group of servers at that position, encoded by its journal; nil without a group.
	Group []byte
}

// File is the Journal in the segments of a directory.
type File struct {
	o         Options
	maxBuffer int // maxBuffered, except in tests
	maxRecord int // longest commands of a record, in bytes
	prepare   int // prepareSize, except in tests
	reserve   int // reserveSize, except in tests

	appended atomic.Uint64 // LSN after the last record; written under mu
	durable  atomic.Uint64 // LSN before which everything is synced; written under mu
	// when the first unsynced record was appended, or earlier, in ns since 1970; 0 if there is none
	dirty   atomic.Int64
	policy  atomic.Int32
	failure atomic.Pointer[error] // nil unless failed; written under mu

	wake    chan struct{} // receives something once due is set
	timer   *time.Timer   // sets due
	syncs   chan syncRequest
	running sync.WaitGroup

	admin  sync.Mutex  // held by recover, Release, Resume and Close; taken before mu
	opened atomic.Bool // recover was successful; written under admin
	keying sync.Mutex
	key    []byte     // see placeKey; protected by keying
	turn   sync.Mutex // held while doing the writer's work; taken before mu

	// Protected by turn.
	slowUntil time.Time // not Always: when Commit may write again
	reserved  bool      // the reserve exists
	noReserve bool      // it cannot be made

	mu        sync.Mutex
	changed   *sync.Cond // on mu; signals changes of the fields below
	buf       []byte     // records waiting to be written; with long, they end at appended
	long      []byte     // the commands of the last record in buf, if it is long
	spare     []byte     // an empty buffer to swap with buf
	cuts      []uint64   // offsets in buf where new segments begin
	marked    uint64     // position that the last mark had, or less
	due       bool       // the writer has something to do
	paused    bool       // the timer will set due within writeInterval
	committed bool       // Commit has written since the timer was last set
	busy      bool       // the writer uses the fields below
	syncing   bool       // the syncer has a request
	rotate    bool       // some cuts are still to be made
	announce  bool       // Notify must be called
	unlogged  bool       // the failure has not been logged
	closed    bool
	wantSync  uint64 // LSN that Sync waits for
	exhausted error  // why the reserve was used: the journal fails with it after buf is written
	holding   bool   // failed, and records from resumeAt on are kept in buf
	resumeAt  uint64
	segments  []segment // all there are; the last one is file
	needed    uint64    // LSN from which on records are needed to recover
	severed   uint64    // the first segment from this LSN on does not continue the one before it: see Break; 0 if none
	retention Retention

	// Owned by the writer while it is busy, otherwise protected by mu.
	file      disk.File
	positions *positionsFile // nil if there was no room to begin a segment yet
	seed      uint32
	size      int64     // of the present segment: offset of the next record
	prepared  int64     // length of file, or less if writing zeros failed; it has zeros from size on
	written   uint64    // LSN up to which everything is written
	writtenAt time.Time // unwritten records were appended later than this
	batchAt   time.Time // when the last batch was written; zero if there was none
	noRoom    bool      // writing zeros has failed since
	notedAt   time.Time // Always: when positions last got the synced position
	lastSync  time.Time // when the last sync began
}

// Open opens the journal in a directory. It does no I/O: call Read next.
func Open(o Options) *File {
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegmentSize
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notify == nil {
		o.Notify = func() {}
	}
	if o.Delay == nil {
		o.Delay = func() time.Duration { return 0 }
	}
	if o.Waited == nil {
		o.Waited = func(Wait, time.Duration) {}
	}
	o.Log = orDiscard(o.Log)
	j := &File{
		o: o, maxBuffer: maxBuffered, maxRecord: maxPayload - minPayload, prepare: prepareSize, reserve: reserveSize,
		wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour), syncs: make(chan syncRequest, 1),
	}
	j.timer.Stop()
	j.changed = sync.NewCond(&j.mu)
	j.policy.Store(int32(o.Policy))
	j.retention = o.Retention
	return j
}

// Read calls fn with the durable records that begin at LSN from or later, in order, with their LSN and the arguments of
// Append. commands is valid until fn returns, or for good if it has LongRecord bytes or more. Read returns the LSN
// after the last record, or from if that is later. It stops with the first error of fn, which it returns unchanged, or
// with ErrReleased if some of the records are no longer kept.
//
// A newly opened journal must be read once before anything else, from the position up to which a checkpoint has
// everything. This removes an unsynced end that a crash has left. The error is a *DamageError if synced data is missing
// or wrong; then nothing is changed, and the journal can only be closed.
func (j *File) Read(from uint64, fn func(lsn uint64, now int64, commands []byte) error) (next uint64, err error) {
	if !j.opened.Load() {
		j.admin.Lock()
		defer j.admin.Unlock()
		return j.recover(from, fn)
	}
	j.mu.Lock()
	end, segments := j.durable.Load(), slices.Clone(j.segments)
	j.mu.Unlock() // fn may take long; concurrent removals are detected below
	next, err = readDurable(j.o.FS, j.o.Dir, segments, from, end, fn)
	if errors.As(err, new(*DamageError)) && j.released(next) {
		err = ErrReleased // a file being removed may already be shorter
	}
	return next, err
}

// released reports whether records at an LSN are no longer kept.
func (j *File) released(lsn uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.segments) > 0 && lsn < j.segments[0].start
}

// recover reads the segments of the directory and begins a new one after them. The caller holds admin.
func (j *File) recover(from uint64, fn func(lsn uint64, now int64, commands []byte) error) (next uint64, err error) {
	report, kept, segments, err := replayed(j.o.FS, j.o.Dir, Start{from, j.o.Seed}, j.o.Log, j.retained, fn)
	if err != nil {
		return report.End, err
	}
	if n := len(segments); n > 0 && segments[n-1].end() < from {
		if err := remove(j.o.FS, j.o.Dir, slices.Concat(kept, segments)); err != nil {
			return report.End, err
		}
		kept, segments = nil, nil
	}
	var file disk.File
	var s segment
	if err = j.keepReserve(); err == nil {
		file, s, err = j.firstSegment(segments, from)
	}
	if err == nil {
		err = j.begun(file, s.start, s.seed)
	}
	if err != nil && !disk.Full(err) {
		return report.End, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.o.Now()
	j.lastSync, j.writtenAt, j.needed = now, now, from
	before := uint32(0)
	if n := len(segments); n > 0 {
		before = segments[n-1].seed
	}
	segments = slices.Concat(kept, segments)
	if err == nil {
		if n := len(segments); n > 0 && segments[n-1].start == s.start {
			before = segments[n-1].before
			segments = segments[:n-1] // the new one replaces it
		}
		j.segments, j.marked = segments, s.start
		j.appended.Store(s.start)
		j.begin(file, segment{start: s.start, seed: s.seed, before: before})
	} else {
		// This is like a failure just after the last write.
		j.segments, j.marked, j.written = segments, report.End, report.End
		j.appended.Store(report.End)
		j.durable.Store(report.End)
		j.fail(err)
	}
	j.opened.Store(true)
	j.running.Add(2)
	go j.runWriter()
	go j.runSyncer()
	return report.End, nil
}

// begun notes a new segment in the file of positions; if that fails, it closes file.
func (j *File) begun(file disk.File, start uint64, seed uint32) (err error) {
	if j.positions == nil {
		j.positions, err = openPositions(j.o.FS, j.o.Dir)
	}
	if err == nil {
		err = j.positions.begun(start, seed)
	}
	if err != nil {
		file.Close()
	}
	return err
}

// firstSegment returns the segment in which a journal continues that has these segments; without any, it continues at
// from.
func (j *File) firstSegment(segments []segment, from uint64) (disk.File, segment, error) {
	start, before := from, uint32(0)
	if n := len(segments); n > 0 {
		// Every segment is synced before the next one is created.
		last := segments[n-1]
		known, err := readPositions(j.o.FS, j.o.Dir)
		if err == nil {
			err = syncSegment(j.o.FS, j.o.Dir, last, known.synced)
		}
		if err != nil {
			return nil, segment{}, err
		}
		if start, before = last.end(), last.seed; start == last.start {
			file, err := openForWriting(j.o.FS, j.o.Dir, start) // empty, and perhaps already noted
			return file, last, err
		}
	}
	file, seed, err := create(j.o.FS, j.o.Dir, start, before)
	return file, segment{start: start, seed: seed}, err
}

// begin continues in a new, empty segment. Everything before it is durable. The caller holds mu, or is the only user of
// j.
func (j *File) begin(file disk.File, s segment) {
	j.file, j.seed, j.size, j.prepared, j.written = file, s.seed, headerSize, headerSize, s.start
	s.size = headerSize
	j.segments = append(j.segments, s)
	j.durable.Store(s.start)
}

// Append implements Journal.
func (j *File) Append(now int64, commands []byte) { j.AppendParts(now, nil, commands) }

// AppendParts is Append for commands in two parts: head is always copied, and body is treated as Append treats
// commands. It returns the LSN of the record, which is meaningless if the record was dropped.
func (j *File) AppendParts(now int64, head, body []byte) (lsn uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(now, head, body)
}

// append is AppendParts for a caller that holds mu.
func (j *File) append(now int64, head, body []byte) (lsn uint64) {
	commands := len(head) + len(body)
	n := recordHeader + minPayload + commands
	for j.failure.Load() == nil && !j.closed && (j.exhausted != nil || len(j.buf) > 0 && j.full(n)) {
		j.wakeWriter()
		j.changed.Wait()
	}
	if j.closed {
		return 0
	}
	if j.failure.Load() != nil {
		if !j.holding {
			return 0
		}
		if j.full(n) || commands > j.maxRecord {
			j.drop()
			return 0
		}
	} else if commands > j.maxRecord {
		j.fail(fmt.Errorf("record of %d bytes is too long", commands))
		return 0
	}
	before := len(j.buf)
	if before == 0 {
		j.beginBatch()
	}
	if len(body) >= LongRecord {
		n -= len(body)
		j.long, body = body, nil
	}
	if len(j.buf)+n > cap(j.buf) {
		j.buf = slices.Grow(j.buf, max(n, cap(j.buf), minBuffer)) // doubles, to limit copying
	}
	at := len(j.buf)
	j.buf = append(appendRecord(j.buf, now, commands, head), body...)
	lsn = j.appended.Load() + uint64(at-before)
	j.appended.Add(uint64(len(j.buf) + len(j.long) - before))
	if before < eagerSize && len(j.buf)+len(j.long) >= eagerSize {
		j.wakeWriter()
	}
	return lsn
}

// full reports whether a record of n bytes must wait until the writer has taken the buffer. Nothing may follow a long
// record. The caller holds mu.
func (j *File) full(n int) bool { return j.long != nil || len(j.buf)+n > j.maxBuffer }

// beginBatch prepares for the first record in the buffer. The caller holds mu.
func (j *File) beginBatch() {
	if d := j.durable.Load(); d > j.marked {
		j.buf = appendMark(j.buf)
		j.marked = d
	}
	if j.dirty.Load() == 0 {
		j.dirty.Store(j.o.Now().UnixNano())
	}
	switch {
	case Policy(j.policy.Load()) == Always:
		j.timer.Reset(kickDelay)
	case !j.paused:
		j.paused = true
		j.timer.Reset(writeInterval)
	}
}

// wakeWriter makes the writer take the buffer. The caller holds mu.
func (j *File) wakeWriter() {
	j.due = true
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Appended implements Journal.
func (j *File) Appended() uint64 { return j.appended.Load() }

// Buffered implements Journal.
func (j *File) Buffered() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int64(len(j.buf) + len(j.long))
}

// Durable implements Journal.
func (j *File) Durable() uint64 { return j.durable.Load() }

// WaitPosition implements Journal.
func (j *File) WaitPosition() uint64 {
	if !j.waited() || j.Err() != nil {
		return 0
	}
	if lsn := j.Appended(); lsn > j.Durable() {
		return lsn
	}
	return 0
}

// Told implements Journal.
func (j *File) Told() uint64 {
	if !j.waited() && j.Err() == nil { // in this order: a failed journal does not lag
		return math.MaxUint64
	}
	return j.Durable()
}

// waited reports whether replies must wait until their changes are durable: under EverySec only while a change older
// than a second is not durable.
func (j *File) waited() bool {
	switch Policy(j.policy.Load()) {
	case Always:
		return true
	case EverySec:
		return j.lagging()
	}
	return false
}

// lagging reports whether the policy is EverySec and a record older than a second is not synced, although the journal
// has not failed.
func (j *File) lagging() bool {
	dirty := j.dirty.Load()
	return dirty != 0 && Policy(j.policy.Load()) == EverySec && j.failure.Load() == nil &&
		j.o.Now().UnixNano()-dirty > int64(lagLimit)
}

// Kick implements Journal.
func (j *File) Kick() {
	j.mu.Lock()
	if len(j.buf) > 0 {
		j.wakeWriter()
	}
	j.mu.Unlock()
}

// SetPolicy implements Journal.
func (j *File) SetPolicy(p Policy) {
	j.mu.Lock()
	j.policy.Store(int32(p))
	j.announce = true // waiting clients may not need to wait any more
	j.wakeWriter()
	j.mu.Unlock()
}

// Sync implements Journal.
func (j *File) Sync(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		j.mu.Lock()
		j.changed.Broadcast()
		j.mu.Unlock()
	})()
	j.mu.Lock()
	defer j.mu.Unlock()
	lsn := j.appended.Load()
	for j.durable.Load() < lsn {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case j.failure.Load() != nil:
			return *j.failure.Load()
		case j.closed:
			return ErrClosed
		}
		if j.wantSync < lsn {
			j.wantSync = lsn
			j.wakeWriter()
		}
		j.changed.Wait()
	}
	return nil
}

// Err implements Journal.
func (j *File) Err() error {
	if err := j.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes the journal fail, unless it already has. The caller holds mu.
func (j *File) fail(err error) {
	if j.failure.Load() != nil {
		return
	}
	j.failure.Store(&err)
	j.exhausted = nil
	// This position is never synced. Otherwise a caller whose record was perhaps dropped would learn that everything is
	// durable.
	j.appended.Add(1)
	j.drop()
	j.announce, j.unlogged = true, true
	j.changed.Broadcast()
	j.wakeWriter()
}

// drop discards the unwritten records. The caller holds mu.
func (j *File) drop() {
	j.buf, j.long, j.cuts, j.rotate, j.holding = j.buf[:0], nil, nil, false, false
}

// FailedNext implements Journal.
func (j *File) FailedNext() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failure.Load() != nil {
		j.drop()
		j.holding, j.resumeAt = true, j.appended.Load()
	}
	return j.appended.Load()
}

// Resume implements Journal.
func (j *File) Resume() error {
	j.admin.Lock()
	defer j.admin.Unlock()
	j.mu.Lock()
	for j.busy || j.syncing {
		j.changed.Wait()
	}
	err := j.resumable()
	start := j.resumeAt
	if err == nil && j.file != nil {
		j.file.Close() // an error of Close no longer matters
		j.file = nil
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}

	// Older segments are no longer needed and take room.
	if err := j.removeAll(); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	j.turn.Lock()
	j.noReserve = false
	err = j.keepReserve()
	j.turn.Unlock()
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	file, seed, err := create(j.o.FS, j.o.Dir, start, 0)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if err := j.begun(file, start, seed); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	j.mu.Lock()
	if err := j.resumable(); err != nil || j.resumeAt != start {
		j.mu.Unlock()
		file.Close()
		return errors.Join(errNotKept, err)
	}
	j.begin(file, segment{start: start, seed: seed})
	j.needed, j.severed = start, 0
	j.marked, j.holding = start, false
	j.failure.Store(nil)
	j.dirty.Store(0)
	j.writtenAt = j.o.Now()
	if len(j.buf) > 0 {
		j.dirty.Store(j.writtenAt.UnixNano())
	}
	j.announce = true
	j.changed.Broadcast()
	j.wakeWriter()
	j.mu.Unlock()
	return nil
}

// removeAll removes all segments. The caller holds admin.
func (j *File) removeAll() error {
	segments, _, err := list(j.o.FS, j.o.Dir)
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.segments = nil
	j.mu.Unlock()
	return remove(j.o.FS, j.o.Dir, segments)
}

var errNotKept = errors.New("resume: the journal has no position at which to continue")

// resumable returns nil if the journal has failed and has kept all records since FailedNext. The caller holds mu.
func (j *File) resumable() error {
	switch {
	case j.closed:
		return ErrClosed
	case j.failure.Load() == nil || !j.holding:
		return errNotKept
	}
	return nil
}

// Rotate implements Journal.
func (j *File) Rotate() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	lsn := j.appended.Load()
	if j.failure.Load() == nil && !j.closed {
		j.cuts = append(j.cuts, lsn)
		j.rotate = true
		j.wakeWriter()
	}
	return lsn
}

// Anchor implements Journal. The seed is 0 if the journal has failed.
func (j *File) Anchor(lsn uint64) (Anchor, error) {
	start, _ := j.Segment(lsn)
	return Anchor{Start: Start{lsn, start.Seed}}, nil
}

// Hold implements Journal.
func (j *File) Hold() (release func()) { return func() {} }

// Epoch implements Journal.
func (j *File) Epoch() uint64 { return 0 }

// Lost implements Journal.
func (j *File) Lost(uint64) bool { return false }

// Segment returns the start of the segment with an LSN, for reading from there. It waits for a Rotate under way. ok is
// false if the segment is no longer kept or the journal has failed.
func (j *File) Segment(lsn uint64) (start Start, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.rotate && !j.closed {
		j.changed.Wait()
	}
	if j.failure.Load() != nil || j.closed || len(j.segments) == 0 {
		return Start{}, false
	}
	s := j.segments[obsolete(j.segments, lsn)]
	if s.start > lsn {
		return Start{}, false
	}
	return Start{LSN: s.start, Seed: s.seed}, true
}

// Release implements Journal.
func (j *File) Release(before uint64) error {
	j.admin.Lock()
	defer j.admin.Unlock()
	j.mu.Lock()
	for j.rotate && !j.closed {
		j.changed.Wait()
	}
	j.mu.Unlock()
	return j.removeBefore(before)
}

// removeBefore removes segments with only records before an LSN. The caller holds admin.
func (j *File) removeBefore(before uint64) error {
	segments, _, err := list(j.o.FS, j.o.Dir)
	if err != nil {
		return err
	}
	j.mu.Lock()
	unneeded := obsolete(segments, before)
	if len(segments) > 0 && len(j.segments) > 0 {
		from := obsolete(segments, j.segments[j.unbroken()].start)
		unneeded = max(j.retention.spared(segments, unneeded, j.o.Now().UnixMilli()), min(unneeded, from))
		j.segments = j.segments[obsolete(j.segments, segments[unneeded].start):] // before the removal: see Read
	}
	j.needed = max(j.needed, before)
	j.mu.Unlock()
	return remove(j.o.FS, j.o.Dir, segments[:unneeded])
}

// Size implements Journal.
func (j *File) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return sizeOf(j.segments[obsolete(j.segments, j.needed):])
}

// Close implements Journal.
func (j *File) Close() error {
	j.admin.Lock()
	defer j.admin.Unlock()
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		j.changed.Broadcast()
		j.wakeWriter()
	}
	j.mu.Unlock()
	j.running.Wait()
	return j.Err()
}
