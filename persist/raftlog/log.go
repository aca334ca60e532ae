package raftlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

const defaultSegmentSize = 64 << 20

// Options say where a log is and how it works.
type Options struct {
	FS disk.FS
	// Dir must exist, and the log must be the only user of its parent: a file beside Dir says what must exist.
	Dir string
	// Start is the last checkpoint's note of Anchor, the zero value if there is none.
	Start journal.Start
	// SegmentSize is the length in bytes at which a segment ends. 0 means 64 MiB.
	SegmentSize int64
	// Log receives problems. It may be nil.
	Log *slog.Logger
	// Waited gets the durations of writes and syncs. It may be nil.
	Waited func(forWhat journal.Wait, took time.Duration)
	// Delay returns the delay before each write, for tests. It may be nil.
	Delay func() time.Duration
}

// Log is a Raft node's log and stable store. Its methods may be called from any goroutine. It keeps the slices of the
// entries that it gets: these must not change any more, nor may those that it returns be changed.
type Log struct {
	o       Options
	journal *journal.File

	writing sync.Mutex // held from an append to its sync; taken before mu
	closed  bool
	staged  uint64 // commit index for the next StoreLogs, 0 if there is none
	began   uint64 // LSN after the state at the start of the present segment
	buf     []byte
	stored  []uint64 // LSNs of the entries being stored

	mu     sync.RWMutex // protects the fields below, which change only after a sync
	used   bool         // the log has ever had content
	state  state        // changed with writing held, too
	first  uint64       // index of the first entry, if any
	lsns   []uint64     // positions of the entries' records
	cuts   uint64       // number of cuts of entries
	recent recent
	ahead  ahead
}

var (
	_ raft.LogStore               = (*Log)(nil)
	_ raft.StableStore            = (*Log)(nil)
	_ raft.MonotonicLogStore      = (*Log)(nil)
	_ raft.CommitTrackingLogStore = (*Log)(nil)
)

// Open opens a log and reads all of it from o.Start on; earlier segments are removed. The error is a
// *journal.DamageError if synced data is missing or wrong; then nothing is changed.
func Open(o Options) (*Log, error) {
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegmentSize
	}
	l := &Log{
		o: o, state: state{values: map[string][]byte{}},
		journal: journal.Open(journal.Options{
			FS: o.FS, Dir: o.Dir, Policy: journal.Always, Seed: o.Start.Seed, Log: o.Log, Waited: o.Waited, Delay: o.Delay,
			SegmentSize: o.SegmentSize + 2*maxState, // never reached: see rotate
		}),
	}
	_, err := l.journal.Read(o.Start.LSN, l.replay)
	if err == nil {
		err = l.journal.Err()
	}
	l.began = l.journal.Appended()
	if err == nil && l.used {
		// The journal continues in a segment without records.
		l.appendState()
		err = l.sync()
	}
	if err != nil {
		_ = l.journal.Close()
		return nil, fmt.Errorf("open the Raft log: %w", err)
	}
	return l, nil
}

// replay applies a record.
func (l *Log) replay(lsn uint64, now int64, record []byte) (err error) {
	l.used = true
	kind := byte(0)
	if len(record) > 0 {
		kind = record[0]
	}
	switch kind {
	case kindEntry:
		var e raft.Log
		var commit uint64
		if e, commit, err = decodeEntry(record, now); err == nil {
			if err = checkEntries([]*raft.Log{&e}, l.last()); err == nil {
				l.add(e.Index, lsn, commit)
			}
		}
	case kindValue:
		var key, value []byte
		if key, value, err = decodeValue(record); err == nil {
			l.state.values[string(key)] = slices.Clone(value)
		}
	case kindState:
		l.state, err = decodeState(record)
	case kindCut:
		var index uint64
		if index, err = decodeCut(record); err == nil {
			l.cut(index)
		}
	default:
		err = errRecord
	}
	if err != nil {
		return fmt.Errorf("record at %d: %w", lsn, err)
	}
	return nil
}

// add records the position of the next entry. The caller holds mu.
func (l *Log) add(index, lsn, commit uint64) {
	if len(l.lsns) == 0 {
		l.first = index
	}
	l.lsns = append(l.lsns, lsn)
	if commit != 0 {
		l.state.commit = commit
	}
}

// cut drops the entries from an index on. The caller holds mu.
func (l *Log) cut(index uint64) {
	if len(l.lsns) > 0 {
		l.lsns = l.lsns[:min(uint64(len(l.lsns)), index-min(index, l.first))]
	}
	l.state.commit = min(l.state.commit, index-min(index, 1))
	l.cuts++
	l.recent.cut(index)
	l.ahead = ahead{}
}

// last returns the index of the last entry, 0 if there is none. The caller holds mu.
func (l *Log) last() uint64 {
	if len(l.lsns) == 0 {
		return 0
	}
	return l.first + uint64(len(l.lsns)) - 1
}

// writable returns nil if appending is possible. The caller holds writing.
func (l *Log) writable() error {
	if l.closed {
		return journal.ErrClosed
	}
	return l.journal.Err()
}

// rotate begins a new segment if the present one is full. The journal would do it later, and without the state. The
// caller holds writing.
func (l *Log) rotate() {
	if l.journal.Appended()-l.began >= uint64(l.o.SegmentSize) {
		l.journal.Rotate()
		l.appendState()
	}
}

// appendState appends the state for the start of a segment. The caller holds writing.
func (l *Log) appendState() {
	l.buf = appendState(l.buf[:0], l.state)
	l.journal.Append(0, l.buf)
	l.began = l.journal.Appended()
}

// sync makes all appended records durable. The caller holds writing.
func (l *Log) sync() error {
	l.journal.Commit()
	return l.journal.Sync(context.Background())
}

// StoreLog is StoreLogs for one entry.
func (l *Log) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

// StoreLogs appends entries, and the staged commit index. Their indexes must continue those of the log; an empty log
// accepts any first index. It returns after all are synced. An error, other than a refusal of the entries, means that
// the log has failed.
func (l *Log) StoreLogs(logs []*raft.Log) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.writable(); err != nil {
		return fmt.Errorf("store entries: %w", err)
	}
	last, _ := l.LastIndex()
	if err := checkEntries(logs, last); err != nil {
		return err
	}
	if len(logs) == 0 {
		return nil
	}
	l.stored = l.stored[:0]
	for i, e := range logs {
		l.rotate()
		commit := uint64(0)
		if i == len(logs)-1 {
			commit = l.staged // with the last one, so that it is stored only with all of them
		}
		l.buf = appendEntry(l.buf[:0], e, commit)
		l.stored = append(l.stored, l.journal.AppendParts(stamp(e), l.buf, e.Data))
	}
	if err := l.sync(); err != nil {
		return fmt.Errorf("store entries: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = true
	for i, e := range logs {
		l.add(e.Index, l.stored[i], 0)
		l.recent.add(e)
	}
	if l.staged != 0 {
		l.state.commit, l.staged = l.staged, 0
	}
	return nil
}

// DeleteRange deletes the entries from min to max. It returns after the deletion of a suffix, or of all entries, is
// durable. A prefix stays until Release, and a range in the middle is refused. Released entries are not deleted: they
// are committed, and the commit index stays.
func (l *Log) DeleteRange(min, max uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.RLock()
	first, last := l.first, l.last()
	l.mu.RUnlock()
	switch {
	case last == 0 || min > max || min > last || max < first:
		return nil
	case max < last && min > first:
		return fmt.Errorf("delete entries %d to %d: there are entries %d to %d", min, max, first, last)
	case max < last:
		return nil
	}
	err := l.writable()
	if err == nil {
		l.rotate()
		l.buf = appendCut(l.buf[:0], min)
		l.journal.Append(0, l.buf)
		err = l.sync()
	}
	if err != nil {
		return fmt.Errorf("delete entries from %d on: %w", min, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut(min)
	return nil
}

// FirstIndex returns the index of the first entry, 0 if there is none.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.lsns) == 0 {
		return 0, nil
	}
	return l.first, nil
}

// LastIndex returns the index of the last entry, 0 if there is none.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.last(), nil
}

// IsMonotonic returns true: there are no gaps between entries.
func (l *Log) IsMonotonic() bool { return true }

// StageCommitIndex makes the next StoreLogs store a commit index.
func (l *Log) StageCommitIndex(index uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.staged = index
	return nil
}

// GetCommitIndex returns the last stored commit index, or the last index if that is lower; 0 if there is none.
func (l *Log) GetCommitIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return min(l.state.commit, l.last()), nil
}

// Set stores a value, and returns after it is synced. There is room for 16 KiB of keys and values.
func (l *Log) Set(key, value []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	old, ok := l.state.values[string(key)]
	err := l.writable()
	if err == nil && ok && bytes.Equal(old, value) {
		return nil
	}
	if l.state.size()+len(key)+len(value)+pairSize > maxState {
		return fmt.Errorf("set %q: there is no room for %d bytes", key, len(value))
	}
	if err == nil {
		l.rotate()
		l.buf = appendValue(l.buf[:0], key, value)
		l.journal.Append(0, l.buf)
		err = l.sync()
	}
	if err != nil {
		return fmt.Errorf("set %q: %w", key, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = true
	l.state.values[string(key)] = slices.Clone(value)
	return nil
}

// Get returns a value, empty if it was never set.
func (l *Log) Get(key []byte) ([]byte, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.state.values[string(key)]), nil
}

// SetUint64 is Set for a number.
func (l *Log) SetUint64(key []byte, value uint64) error {
	return l.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 returns a number that SetUint64 has set, 0 if it was never set.
func (l *Log) GetUint64(key []byte) (uint64, error) {
	value, _ := l.Get(key)
	switch len(value) {
	case 0:
		return 0, nil
	case 8:
		return binary.LittleEndian.Uint64(value), nil
	}
	return 0, fmt.Errorf("the value of %q is no number", key)
}

// Before returns the index of the first of the entries before another one that are at most n, and have at most size
// bytes together.
func (l *Log) Before(index, n uint64, size int64) uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	first := index - min(n, index-min(index, 1))
	if len(l.lsns) == 0 || index <= l.first {
		return first
	}
	end, lsns := l.journal.Appended(), l.lsns
	if index <= l.last() {
		lsns = lsns[:index-l.first]
		end = l.lsns[len(lsns)]
	}
	at, _ := slices.BinarySearchFunc(lsns, uint64(size), func(lsn, size uint64) int { return cmp.Compare(size, end-lsn) })
	return max(first, l.first+uint64(at))
}

// Anchor returns the beginning of a segment, from which the log can be opened with the stable values and all entries
// from index keep on. It is valid until a later position is released.
func (l *Log) Anchor(keep uint64) (journal.Start, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.writable(); err != nil {
		return journal.Start{}, fmt.Errorf("anchor of entry %d: %w", keep, err)
	}
	l.mu.RLock()
	lsn := l.journal.Appended()
	if len(l.lsns) > 0 && keep <= l.last() {
		lsn = l.lsns[max(keep, l.first)-l.first]
	}
	l.mu.RUnlock()
	start, ok := l.journal.Segment(lsn)
	if !ok {
		return journal.Start{}, fmt.Errorf("anchor of entry %d: %w", keep, errNoSegment)
	}
	return start, nil
}

var errNoSegment = errors.New("no segment begins there")

// Release removes the segments before a position that Anchor has returned and a checkpoint has noted durably, with the
// entries in them.
func (l *Log) Release(s journal.Start) error {
	if start, ok := l.journal.Segment(s.LSN); !ok || start != s {
		return fmt.Errorf("release what is before %d: %w", s.LSN, errNoSegment)
	}
	l.mu.Lock()
	n, _ := slices.BinarySearch(l.lsns, s.LSN)
	l.first += uint64(n)
	l.lsns = slices.Clone(l.lsns[n:]) // frees the memory of the others
	l.mu.Unlock()
	if err := l.journal.Release(s.LSN); err != nil {
		return fmt.Errorf("release what is before %d: %w", s.LSN, err)
	}
	return nil
}

// Size returns the length of all segments, in bytes.
func (l *Log) Size() int64 { return l.journal.Size() }

// Err returns why the log has failed, nil if it has not. After a failure nothing can be stored until it is reopened.
func (l *Log) Err() error { return l.journal.Err() }

// Empty reports whether the log never had an entry or a stable value.
func (l *Log) Empty() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return !l.used
}

// Close ends the log. It returns the log's failure, if any.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.closed = true
	return l.journal.Close()
}
