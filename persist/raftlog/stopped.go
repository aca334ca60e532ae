package raftlog

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/persist/journal"
)

// Found is what Read has found.
type Found struct {
	journal.Report
	Committed uint64 // a lower bound of the index up to which entries are committed
	Values    map[string][]byte
}

// Read reads a log that no process has open, and changes nothing. It calls fn with the entries, in order, which are valid
// until fn returns. Synced data that is missing or wrong is a *journal.DamageError, as for Open; then fn is not called.
func Read(o Options, fn func(*raft.Log) error) (f Found, err error) {
	l := &Log{state: state{values: map[string][]byte{}}}
	if f.Report, err = journal.Verify(o.FS, o.Dir, o.Start, l.replay); err != nil {
		return f, fmt.Errorf("read the Raft log: %w", err)
	}
	f.Values, f.Committed = l.state.values, min(l.state.commit, l.last())
	_, err = journal.Verify(o.FS, o.Dir, o.Start, func(lsn uint64, now int64, record []byte) error {
		if len(record) == 0 || record[0] != kindEntry {
			return nil
		}
		e, _, err := decodeEntry(record, now)
		if err != nil {
			return err
		}
		if at, ok := l.find(e.Index); !ok || at != lsn { // it was cut later
			return nil
		}
		return fn(&e)
	})
	return f, err
}
