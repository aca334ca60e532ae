package raftlog

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/persist/journal"
)

const (
	recentEntries = 4096     // last entries kept in memory
	recentSize    = 16 << 20 // limit of their bytes, except for the last one
	aheadEntries  = 512      // entries read at once
	// bytes read at once: a longer entry ends the block
	aheadSize   = journal.LongRecord
	aheadBlocks = 4 // readers whose blocks are kept
)

// recent is a ring of the last entries.
type recent struct {
	slots       []raft.Log // by index modulo the number of slots
	first, next uint64     // indexes of the first entry, and after the last one
	size        int
}

func (r *recent) slot(index uint64) *raft.Log { return &r.slots[index%recentEntries] }

func (r *recent) get(index uint64) (e raft.Log, ok bool) {
	if index < r.first || index >= r.next {
		return raft.Log{}, false
	}
	return *r.slot(index), true
}

func (r *recent) add(e *raft.Log) {
	if r.slots == nil {
		r.slots = make([]raft.Log, recentEntries)
	}
	if e.Index != r.next {
		r.cut(r.first)
		r.first, r.next = e.Index, e.Index
	}
	r.size += sizeOf(e)
	for r.first < r.next && (r.size > recentSize || r.next-r.first == recentEntries) {
		r.drop(r.first)
		r.first++
	}
	*r.slot(e.Index) = *e
	r.next++
}

// cut drops the entries from an index on.
func (r *recent) cut(index uint64) {
	for r.next > max(index, r.first) {
		r.next--
		r.drop(r.next)
	}
}

func (r *recent) drop(index uint64) {
	e := r.slot(index)
	r.size -= sizeOf(e)
	*e = raft.Log{}
}

func sizeOf(e *raft.Log) int { return len(e.Data) + len(e.Extensions) }

// ahead has entries that were read together with requested ones, in blocks of consecutive entries.
type ahead struct {
	blocks [aheadBlocks][]raft.Log
	next   int // the block to be replaced
}

func (a *ahead) get(index uint64) (e raft.Log, ok bool) {
	for _, b := range a.blocks {
		if len(b) > 0 && index >= b[0].Index && index-b[0].Index < uint64(len(b)) {
			return b[index-b[0].Index], true
		}
	}
	return raft.Log{}, false
}

func (a *ahead) add(block []raft.Log) {
	a.blocks[a.next] = block
	a.next = (a.next + 1) % aheadBlocks
}

// GetLog reads an entry. The error is raft.ErrLogNotFound if it does not exist.
func (l *Log) GetLog(index uint64, e *raft.Log) error {
	l.mu.RLock()
	lsn, ok := l.find(index)
	cuts, found := l.cuts, false
	if ok {
		if *e, found = l.recent.get(index); !found {
			*e, found = l.ahead.get(index)
		}
	}
	l.mu.RUnlock()
	if !ok {
		return raft.ErrLogNotFound
	}
	if found {
		return nil
	}
	entries, err := l.readAhead(index, lsn)
	if err != nil {
		return err
	}
	*e = entries[0]
	if n := len(entries) - 1; sizeOf(&entries[n]) >= journal.LongRecord {
		entries = entries[:n:n] // it takes too much memory
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(entries) > 0 && l.cuts == cuts {
		l.ahead.add(entries)
	}
	return nil
}

// find returns the position of an entry. The caller holds mu.
func (l *Log) find(index uint64) (lsn uint64, ok bool) {
	if len(l.lsns) == 0 || index < l.first || index > l.last() {
		return 0, false
	}
	return l.lsns[index-l.first], true
}

var errEnough = errors.New("enough has been read")

// readAhead reads the entry at an LSN and some following ones.
func (l *Log) readAhead(index, lsn uint64) (entries []raft.Log, err error) {
	err = l.scan(index, lsn, func(e *raft.Log, at uint64, record []byte) error {
		if e != nil {
			if len(record) < journal.LongRecord {
				e.Data, e.Extensions = bytes.Clone(e.Data), bytes.Clone(e.Extensions)
			}
			entries = append(entries, *e)
		}
		if len(entries) == 0 || len(entries) == aheadEntries || at+uint64(len(record))-lsn >= aheadSize {
			return errEnough
		}
		return nil
	})
	switch {
	case len(entries) > 0: // a reader of the unreadable ones will get the error
		return entries, nil
	case err == nil || err == errEnough || errors.Is(err, journal.ErrReleased):
		return nil, raft.ErrLogNotFound
	}
	return nil, fmt.Errorf("read entry %d: %w", index, err)
}

// Each calls fn with the entries from one index to another, in order. An entry and its data are valid until fn returns.
// Each stops with the first error of fn, which it returns unchanged, or with raft.ErrLogNotFound at an entry that does
// not exist, or has been cut or released meanwhile. No lock is held while fn runs.
func (l *Log) Each(from, to uint64, fn func(*raft.Log) error) error {
	if from > to {
		return nil
	}
	l.mu.RLock()
	lsn, ok := l.find(from)
	l.mu.RUnlock()
	if !ok {
		return raft.ErrLogNotFound
	}
	next := from
	var failed error
	err := l.scan(from, lsn, func(e *raft.Log, _ uint64, _ []byte) error {
		if e == nil {
			return nil
		}
		if failed = fn(e); failed != nil || e.Index == to {
			return errEnough
		}
		next++
		return nil
	})
	switch {
	case err == errEnough:
		return failed
	case err == nil || errors.Is(err, journal.ErrReleased):
		return raft.ErrLogNotFound
	}
	return fmt.Errorf("read entry %d: %w", next, err)
}

// scan calls fn with the records from an LSN on, which is the position of the entry with an index: with their
// positions, and with the entry if it continues the log, else nil.
func (l *Log) scan(index, lsn uint64, fn func(e *raft.Log, at uint64, record []byte) error) error {
	_, err := l.journal.Read(lsn, func(at uint64, now int64, record []byte) error {
		if len(record) == 0 || record[0] != kindEntry {
			return fn(nil, at, record)
		}
		e, _, err := decodeEntry(record, now)
		if err != nil {
			return err
		}
		l.mu.RLock()
		found, ok := l.find(index)
		l.mu.RUnlock()
		if !ok || found != at || e.Index != index {
			return fn(nil, at, record)
		}
		index++
		return fn(&e, at, record)
	})
	return err
}
