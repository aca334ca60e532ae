package persist

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/store"
)

// Options say where and how a keyspace is stored.
type Options struct {
	// FS is the file system; nil is the system's.
	FS disk.FS
	// Dir is the directory. It is created, for its owner alone, if it does not exist.
	Dir string
	// NoJournal omits the journal (appendonly no): after a crash all changes since the last checkpoint are lost.
	NoJournal bool
	// Policy is when the journal is synced (appendfsync).
	Policy journal.Policy
	// CheckpointSize is the length in bytes to which the journal may grow before a checkpoint. 0 means
	// DefaultCheckpointSize.
	CheckpointSize int64
	// Retention is what the journal keeps for readers beyond what is needed to recover.
	Retention journal.Retention
	// SavePoints are further occasions for a checkpoint.
	SavePoints []SavePoint
	// Log receives events; it must not be nil.
	Log *slog.Logger
	// Notify is called, by any goroutine, whenever Durable, Told or Err may have changed. It may be nil.
	Notify func()
	// Extra returns the server's state to be stored beside the keyspace, nil if there is none. It is called while the
	// whole keyspace is locked, so that the state becomes part of the checkpoint. Restore gets the stored state back,
	// if any, before the journal is repeated. Both may be nil.
	Extra   func() []byte
	Restore func(extra []byte) error
	// Recovered is called by Recover with a guard over everything, after the keyspace is restored and before any
	// change; exact says that no known data was lost. It may be nil.
	Recovered func(g *engine.Guard, exact bool)
	// Import fills a keyspace that was never stored. Its result is not journalled but stored at once, before Recover
	// returns: all of it or, on failure, nothing. It may be nil.
	Import func() error
	// Progress is called now and then during long tasks with the amount done, the total, 0 if unknown, and the unit, B
	// for bytes; done equals the total at the end. Any goroutine calls it. If it is nil, the progress is logged.
	Progress func(step, unit string, done, total int64)
	// Waited is journal.Options.Waited.
	Waited func(forWhat journal.Wait, took time.Duration)
	// Group returns the journal that the server shares with others, in a directory of its own. It replaces the
	// directory's own journal, which is repeated once and left alone afterwards: NoJournal and Policy are ignored.
	// state is the group's part of that journal's last Anchor, nil if the data belonged to no group. A nil Group means
	// that there is no group. After an *AsideError, Abandon sets the data aside, so that the next Open begins with an empty
	// directory. See also Reset.
	Group func(fs disk.FS, dir string, state []byte) (journal.Journal, error)
	// Member is for reading the data of a stopped server of a group, without Group: it repeats the records of the shared
	// journal. Nothing is stored then.
	Member MemberFunc
}

// ErrOfGroup is returned by Recover if the data belongs to a group and Options.Group is nil.
var ErrOfGroup = errors.New("the data belongs to a group of servers that share a journal")

// DefaultCheckpointSize is the default of Options.CheckpointSize.
const DefaultCheckpointSize = 256 << 20

// SavePoint starts a checkpoint after this many changes and this many seconds since the last one, like the save
// directive of redis.conf.
type SavePoint struct{ Seconds, Changes int }

// Storage stores a keyspace. Its methods may be called from any goroutine, unless they say otherwise.
type Storage struct {
	o       Options
	store   store.Store
	journal atomic.Value // a journal.Journal; empty if there is none, or not yet
	ks      *engine.Keyspace

	policy     atomic.Int32
	loadDelay  atomic.Int64 // KeyDelay
	saveDelay  atomic.Int64 // likewise
	writeDelay atomic.Int64 // see SetWriteDelay
	savePoints atomic.Pointer[[]SavePoint]
	retention  atomic.Pointer[journal.Retention]
	size       atomic.Int64            // Options.CheckpointSize
	failure    atomic.Pointer[Failure] // of the last checkpoint
	loading    atomic.Bool             // keys are still being read
	repaired   bool                    // the marker exists; see Repair
	readOnly   bool                    // nothing is stored: see Options.Member
	aside      *AsideError             // Abandon sets the data aside; nil if not

	checkpointing sync.Mutex // held while a checkpoint is made
	extra         []byte     // as last stored; protected by checkpointing
	replacing     bool       // see Replace; protected by checkpointing
	requests      chan chan error
	stop          chan struct{}
	running       sync.WaitGroup

	mu     sync.Mutex // protects the fields below
	status Status
	frozen *engine.Frozen // of the checkpoint under way

	atLeast uint64 // lower limit of the journal's position after the next checkpoint
}

// Failure says why changes cannot be made durable.
type Failure struct {
	// Journal says that the journal has failed; otherwise the last checkpoint has.
	Journal bool
	Err     error
}

func (f *Failure) Error() string {
	if f.Journal {
		return "journal: " + f.Err.Error()
	}
	return "checkpoint: " + f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Status is a Storage's part of INFO.
type Status struct {
	// Journal says that there is a journal; JournalSize is its length in bytes, JournalSince its growth since the last
	// checkpoint, Unsynced the length of its end that may not be on the disk.
	Journal                             bool
	JournalSize, JournalSince, Unsynced int64
	// Retained is the length in bytes of what the journal keeps only for readers.
	Retained int64
	// JournalBuffer is the number of bytes waiting in memory to be written to the journal.
	JournalBuffer int64
	// Loading says that keys are still being read from the store, since LoadBegan; LoadedKeys of LoadTotal are read,
	// which take about LoadBytes on the disk.
	Loading               bool
	LoadBegan             time.Time
	LoadedKeys, LoadTotal int
	LoadBytes             int64
	// Checkpoint says that a checkpoint is being made, since Began: Written of Total changed keys are done.
	Checkpoint     bool
	Began          time.Time
	Written, Total int
	// Saved is the time of the last successful checkpoint (at start: of the one that was loaded), zero if there was
	// none. Took is how long it took, Changes the value of Keyspace.Changes at that time.
	Saved   time.Time
	Took    time.Duration
	Changes int64
	// Checkpoints counts successful ones since the start. LastErr is nil if the last one succeeded.
	Checkpoints int
	LastErr     error
	// Failed counts failures since the last success.
	Failed int
	// Failure is the result of Err.
	Failure error

	position  uint64    // LSN up to which the store has the journal
	attempted time.Time // when the last checkpoint ended, successful or not
}

// Open opens or creates the directory, which no other process may have open.
func Open(o Options) (*Storage, error) {
	if o.FS == nil {
		o.FS = disk.System
	}
	if o.CheckpointSize == 0 {
		o.CheckpointSize = DefaultCheckpointSize
	}
	if o.Notify == nil {
		o.Notify = func() {}
	}
	if o.Extra == nil {
		o.Extra = func() []byte { return nil }
	}
	st, err := store.Registered().Open(store.Options{FS: o.FS, Dir: o.Dir, Log: o.Log})
	if err != nil {
		return nil, err
	}
	o.FS = st.FS()
	s := &Storage{o: o, store: st, requests: make(chan chan error), stop: make(chan struct{})}
	s.policy.Store(int32(o.Policy))
	s.savePoints.Store(&o.SavePoints)
	s.retention.Store(&o.Retention)
	s.size.Store(o.CheckpointSize)
	return s, nil
}

// Source returns the keyspace's source of stored values.
func (s *Storage) Source() engine.Source { return s.store }

// journalDir is the directory of the journal's segments.
func journalDir(fs disk.FS, dir string) string { return fs.PathJoin(dir, journal.DirName) }

// bytesPerKey is the length of the journal, per stored key, from which all keys are loaded before it is repeated.
// Reading a key in the order of the store takes less than a tenth of looking it up, and a record has some hundred
// bytes.
const bytesPerKey = 10

// fewKeys is the number of keys that are loaded before the server serves, which takes at most some milliseconds: so a
// small data set is complete at once, also for commands that need all of it.
const fewKeys = 10_000

// journalStart returns the position from which to read the journal, according to the store.
func journalStart(m store.Meta) journal.Start {
	return journal.Start{LSN: m.Journal, Seed: m.JournalSeed}
}

// journalSize returns the length of all files in the journal's directory in bytes, 0 without the directory.
func journalSize(fs disk.FS, dir string) (int64, error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	size := int64(0)
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, nil
}

// Recover restores the stored state in ks, which is new and has Source as its source: apply repeats the commands of one
// record of the journal. From then on the changes of ks are made durable. If Recover fails the Storage can only be
// closed.
func (s *Storage) Recover(ks *engine.Keyspace, apply func(now int64, commands []byte) error) error {
	start := time.Now()
	s.ks = ks
	meta, _ := s.store.Meta()
	member := false
	if s.o.Group == nil {
		var err error
		if member, err = isMember(s.o.FS, s.o.Dir, meta); err != nil {
			return err
		}
		if member && s.o.Member == nil {
			return ErrOfGroup
		}
	}
	saved := meta.Saved != 0 // enrol stores no checkpoint
	if saved {
		s.mu.Lock()
		s.status.Saved = time.UnixMilli(meta.Saved)
		s.mu.Unlock()
	}
	if err := ks.Restore(stored(meta)); err != nil {
		return err
	}
	if s.extra = meta.Extra; len(s.extra) > 0 && s.o.Restore != nil {
		if err := s.o.Restore(s.extra); err != nil {
			return fmt.Errorf("state beside the keys: %w", err)
		}
	}
	dir := journalDir(s.o.FS, s.o.Dir)
	if !member {
		if err := disk.MakeDir(s.o.FS, dir); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	var err error
	if s.repaired, err = hasMarker(s.o.FS, s.o.Dir); err != nil {
		return err
	}
	size, err := journalSize(s.o.FS, dir)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	complete := false
	if (size > bytesPerKey*meta.Keys || meta.Keys <= fewKeys) && s.loadDelay.Load() == 0 {
		// If this fails, the keys are read again while the server serves, which reports what cannot be read.
		progress := s.newProgress("loading keys", "keys", meta.Keys)
		complete = ks.LoadDirectory(s.store.Heads, func(n int) bool {
			s.tellLoaded(n)
			progress.tell(int64(n))
			return true
		}) == nil
		progress.end()
	}
	records := 0
	progress := s.newProgress("reading the journal", "B", size)
	repeat := func(lsn uint64, now int64, commands []byte) error {
		records++
		progress.tell(int64(lsn - meta.Journal))
		err := apply(now, commands)
		if err != nil && s.repaired {
			s.o.Log.Warn("a command of the journal cannot be repeated on the repaired data", "position", lsn, "error",
				err.Error())
			return nil
		}
		if err != nil {
			return fmt.Errorf("journal record at position %d: %w", lsn, err)
		}
		return nil
	}
	var j journal.Journal // nil with NoJournal; the group's journal comes later
	end := uint64(0)
	switch {
	case meta.Group != nil: // the store already has all records of the directory's own journal
	case member: // the directory is only read
		_, err = journal.Verify(s.o.FS, dir, journalStart(meta), repeat)
	case s.o.NoJournal || s.o.Group != nil:
		var report journal.Report
		report, err = journal.Replay(s.o.FS, dir, journalStart(meta), s.o.Log, repeat)
		end = report.End
	default:
		own := journal.Open(journal.Options{FS: s.o.FS, Dir: dir, Policy: s.o.Policy, Seed: meta.JournalSeed, Log: s.o.Log,
			Notify: s.o.Notify, Retention: *s.retention.Load(),
			Waited: s.o.Waited, Delay: func() time.Duration { return time.Duration(s.writeDelay.Load()) }})
		_, err = own.Read(meta.Journal, repeat)
		j = own
	}
	progress.end()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.status.position, s.status.attempted = meta.Journal, start
	s.mu.Unlock()
	s.o.Log.Info("recovered", "keys", meta.Keys, "records", records, "duration", time.Since(start).Round(time.Millisecond))

	if j != nil {
		s.journal.Store(j)
		j.SetPolicy(journal.Policy(s.policy.Load())) // it may have changed meanwhile
		s.enrol(j)
	}
	if s.o.Import != nil && !saved && !member && records == 0 {
		if err := s.o.Import(); err != nil {
			return err
		}
		// Before anything is journalled: a journal means that the keyspace is not new. So readers had nothing to read before.
		if err := s.checkpoint(end); err != nil {
			return err
		}
	}
	if err := s.store.Err(); err != nil {
		s.failure.Store(&Failure{Err: err}) // until a checkpoint succeeds
	}
	if s.o.Group != nil {
		if j, err = s.joinGroup(end, meta.Journal); err != nil {
			return err
		}
		j.Retain(*s.retention.Load())
		s.journal.Store(j)
	} else if member {
		s.readOnly = true
		if err := s.o.Member(s.o.FS, s.o.FS.PathJoin(s.o.Dir, groupDir), meta.Group); err != nil {
			return err
		}
		s.endReplay(nil)
	} else if j == nil {
		s.endReplay(nil)
		if end > meta.Journal {
			// The journal must not be repeated once there are changes that it lacks.
			if err := s.checkpoint(end); err != nil && !disk.Full(err) {
				return err
			}
		}
	} else {
		s.endReplay(j)
	}
	if !complete {
		s.loadLater(meta)
	}
	s.running.Add(1)
	go s.run()
	return nil
}

// endReplay sends further changes to j, which may be nil.
func (s *Storage) endReplay(j engine.Journal) {
	var g engine.Guard
	g.Lock(s.ks, engine.AllShards, s.ks.Now())
	defer g.Unlock()
	g.SetJournal(j)
	if s.o.Recovered != nil {
		s.o.Recovered(&g, !s.repaired)
	}
}

// stored returns the keyspace's part of the meta record.
func stored(m store.Meta) engine.StoredState {
	return engine.StoredState{Spaces: m.Spaces, NextSpace: m.NextSpace, NextParts: m.NextParts}
}

// joinGroup opens the journal of the group. Earlier data of the directory's own journal, between position, up to which
// the store has it, and end, is stored first.
func (s *Storage) joinGroup(end, position uint64) (journal.Journal, error) {
	if end > position {
		if err := s.checkpoint(end); err != nil {
			return nil, err
		}
	}
	dir := s.o.FS.PathJoin(s.o.Dir, groupDir)
	if err := disk.MakeDir(s.o.FS, dir); err != nil {
		return nil, err
	}
	meta, _ := s.store.Meta()
	s.mu.Lock()
	s.status.position = 0 // the group's journal has its own positions
	s.mu.Unlock()
	s.policy.Store(int32(journal.Always)) // see Kick
	j, err := s.o.Group(s.o.FS, dir, meta.Group)
	errors.As(err, &s.aside)
	return j, err
}

// groupDir is the directory of a group's journal.
const groupDir = "raft"

// HasData reports whether anything is stored: keys, or state beside them.
func (s *Storage) HasData() (bool, error) {
	meta, _ := s.store.Meta()
	found := len(meta.Extra) > 0
	for _, space := range meta.Spaces {
		err := s.store.Heads(space, func([]byte, engine.Head) bool {
			found = true
			return false
		})
		if err != nil {
			return false, err
		}
	}
	return found, nil
}

// Group returns the group's state in the last checkpoint.
func (s *Storage) Group() []byte {
	meta, _ := s.store.Meta()
	return meta.Group
}

// Reset restores the stored state and drops later changes. The group's agreed records after that state, which Group
// returns, must be repeated next. at is called with a guard over everything, before anyone sees the restored state.
func (s *Storage) Reset(at func(g *engine.Guard)) error {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	meta, _ := s.store.Meta()
	var g engine.Guard
	g.Lock(s.ks, engine.AllShards, s.ks.Now())
	defer g.Unlock()
	if err := g.Reset(stored(meta)); err != nil {
		return err
	}
	if s.extra = meta.Extra; s.o.Restore != nil { // even if it is nil: the former state must go
		if err := s.o.Restore(meta.Extra); err != nil {
			return fmt.Errorf("state beside the keys: %w", err)
		}
	}
	s.mu.Lock()
	s.status.position = s.Appended()
	s.mu.Unlock()
	at(&g)
	if !g.Complete() && s.loading.CompareAndSwap(false, true) {
		s.loadLater(meta)
	}
	return nil
}

// loadLater loads the keys while the server serves.
func (s *Storage) loadLater(meta store.Meta) {
	bytes := s.store.HeadBytes()
	s.mu.Lock()
	s.status.LoadBegan, s.status.LoadTotal, s.status.LoadBytes = time.Now(), int(meta.Keys), bytes
	s.mu.Unlock()
	s.loading.Store(true)
	s.running.Add(1)
	go s.loadDirectory()
}

// tellLoaded records the number of keys read.
func (s *Storage) tellLoaded(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.LoadedKeys = n
}

// loadDirectory loads the keys.
func (s *Storage) loadDirectory() {
	defer s.running.Done()
	for {
		if err := s.loadKeys(); err != nil {
			s.o.Log.Error("cannot load all keys; commands that need all of them are still refused", "error", err.Error())
			return
		}
		s.loading.Store(false)
		if s.stopped() || s.ks.Complete() || !s.loading.CompareAndSwap(false, true) {
			break // otherwise Reset has intervened
		}
	}
	s.o.Notify()
}

func (s *Storage) loadKeys() error {
	start := time.Now()
	meta, _ := s.store.Meta()
	progress := s.newProgress("loading keys", "keys", meta.Keys)
	keys := 0
	loaded := s.loaded(&keys)
	err := s.ks.LoadDirectory(s.store.Heads, func(n int) bool {
		loaded(n)
		s.tellLoaded(n)
		progress.tell(int64(n))
		return !s.stopped()
	})
	progress.end()
	if err == nil && keys > 0 {
		s.o.Log.Info("all keys are in memory", "keys", keys, "duration", time.Since(start).Round(time.Millisecond))
	}
	return err
}

// WaitPosition returns the position in the journal that Told must reach before a client may learn of anything that
// happened until now, 0 if it need not wait.
func (s *Storage) WaitPosition() uint64 {
	if j := s.log(); j != nil {
		return j.WaitPosition()
	}
	return 0
}

// Told returns the position in the journal up to which clients may learn what has happened.
func (s *Storage) Told() uint64 {
	if j := s.log(); j != nil {
		return j.Told()
	}
	return 0
}

// Appended returns the position of the end of the journal.
func (s *Storage) Appended() uint64 {
	if j := s.log(); j != nil {
		return j.Appended()
	}
	return 0
}

// Append adds a record that does not change the keyspace. Extra may already include its effect when it is repeated
// after Restore. It does nothing if there is no journal.
func (s *Storage) Append(now int64, commands []byte) {
	if j := s.log(); j != nil {
		j.Append(now, commands)
	}
}

// Durable returns the position up to which the journal is durable.
func (s *Storage) Durable() uint64 {
	if j := s.log(); j != nil {
		return j.Durable()
	}
	return 0
}

// Epoch returns the journal's Epoch.
func (s *Storage) Epoch() uint64 {
	if j := s.log(); j != nil {
		return j.Epoch()
	}
	return 0
}

// Lost returns the journal's Lost.
func (s *Storage) Lost(lsn uint64) bool {
	j := s.log()
	return j != nil && j.Lost(lsn)
}

// HasJournal reports whether there is a journal.
func (s *Storage) HasJournal() bool { return s.log() != nil }

// Records returns the journal for readers; nil without a journal, and until it is open.
func (s *Storage) Records() journal.Journal { return s.log() }

// SetRetention changes what the journal keeps for readers.
func (s *Storage) SetRetention(r journal.Retention) {
	s.retention.Store(&r)
	if j := s.log(); j != nil {
		j.Retain(r)
	}
}

// breakRecords tells readers of the journal that the data was replaced without records.
func (s *Storage) breakRecords() {
	if j := s.log(); j != nil {
		j.Break(s.ks.Now())
	}
}

// log returns the journal, nil if there is none, or not yet.
func (s *Storage) log() journal.Journal {
	j, _ := s.journal.Load().(journal.Journal)
	return j
}

// Kick makes the journal start to write if clients wait for it.
func (s *Storage) Kick() {
	if j := s.log(); j != nil && journal.Policy(s.policy.Load()) == journal.Always && j.Appended() > j.Durable() {
		j.Kick()
	}
}

// Commit writes the journalled records, and makes them durable if clients wait for that, in the caller's goroutine if
// possible.
func (s *Storage) Commit() {
	if j := s.log(); j != nil && j.Appended() > j.Durable() {
		j.Commit()
	}
}

// SetPolicy changes when the journal is synced. A group's journal has only one policy.
func (s *Storage) SetPolicy(p journal.Policy) {
	if s.o.Group != nil {
		return
	}
	s.policy.Store(int32(p))
	if j := s.log(); j != nil {
		j.SetPolicy(p)
	}
}

// SetCheckpointSize changes the length in bytes to which the journal may grow before a checkpoint.
func (s *Storage) SetCheckpointSize(n int64) { s.size.Store(n) }

// SetSavePoints changes the occasions for checkpoints.
func (s *Storage) SetSavePoints(points []SavePoint) { s.savePoints.Store(&points) }

// Err returns a *Failure that says why changes cannot be made durable now, nil if they can. Storage keeps retrying.
func (s *Storage) Err() *Failure {
	if j := s.log(); j != nil {
		if err := j.Err(); err != nil {
			return &Failure{Journal: true, Err: err}
		}
	}
	return s.failure.Load()
}

// Loading reports whether some keys are not in memory yet.
func (s *Storage) Loading() bool { return s.loading.Load() }

// Status returns the data for INFO.
func (s *Storage) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	if j := s.log(); j != nil {
		end := j.Appended()
		st.Journal = true
		st.JournalSize, st.Retained = j.Size(), j.Retained()
		st.JournalSince = int64(end - st.position)
		st.Unsynced = int64(end - j.Durable())
		st.JournalBuffer = j.Buffered()
	}
	st.Loading = s.loading.Load()
	if f := s.frozen; f != nil {
		st.Written, st.Total = f.Written(), f.Len()
	}
	if f := s.Err(); f != nil {
		st.Failure = f
	}
	return st
}

// Metrics returns the metrics of the store.
func (s *Storage) Metrics() store.Metrics { return s.store.Metrics() }

// Close makes a last checkpoint if save is set, and closes everything. The keyspace must not be used any more. If it
// returns without an error, the journal's content is durable, even without a checkpoint.
func (s *Storage) Close(save bool) error {
	var errs []error
	s.stopWork()
	if s.ks != nil && save {
		if err := s.checkpoint(0); err != nil && err != errReplacing && err != errReadOnly && !errors.Is(err, journal.ErrClosed) {
			errs = append(errs, fmt.Errorf("last checkpoint: %w", err))
		}
	}
	errs = append(errs, s.closeJournal(), s.store.Close())
	return errors.Join(errs...)
}

// Abandon closes everything, and removes the directory as far as Open has created it: for a server that did not start.
func (s *Storage) Abandon() error {
	s.stopWork()
	err := errors.Join(s.closeJournal(), s.store.Abandon())
	if s.aside != nil && err == nil {
		if err = s.setAside(); err != nil {
			s.o.Log.Error("the damaged data cannot be set aside", "error", err.Error())
		}
	}
	return err
}

// stopped reports whether the storage is being closed.
func (s *Storage) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func (s *Storage) stopWork() {
	close(s.stop)
	s.running.Wait()
}

func (s *Storage) closeJournal() error {
	if j := s.log(); j != nil {
		return j.Close()
	}
	return nil
}

// progress reports the progress of a long task now and then.
type progress struct {
	o          *Options
	step, unit string
	total      int64 // in units; 0 if unknown
	next       time.Time
	n          int
}

const (
	progressInterval = 5 * time.Second // between lines of the log
	progressSteps    = 64              // pieces of work between two readings of the clock, which cost more than counting
)

func (s *Storage) newProgress(step, unit string, total int64) *progress {
	return &progress{o: &s.o, step: step, unit: unit, total: total, next: time.Now().Add(progressInterval)}
}

// tell counts a piece of work, and reports the amount done if it is time.
func (p *progress) tell(done int64) {
	if p.n++; p.n%progressSteps != 0 {
		return
	}
	if p.o.Progress != nil {
		total := p.total
		if done >= total {
			total = 0 // there is more than expected
		}
		p.o.Progress(p.step, p.unit, done, total)
		return
	}
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(progressInterval)
		p.o.Log.Info(p.step, "unit", p.unit, "done", done, "total", p.total)
	}
}

// end reports that all is done, or that no more will be.
func (p *progress) end() {
	if p.o.Progress != nil {
		p.o.Progress(p.step, p.unit, max(p.total, 1), max(p.total, 1))
	}
}
