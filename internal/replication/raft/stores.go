package raft

import (
	"bytes"
	"fmt"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/persist/raftlog"
)

// stores is the log as Raft sees it. When a write fails the node gives up: the log stays failed, and a server that
// stores nothing is useless to its group.
type stores struct {
	*raftlog.Log
	n *Node
}

// StoreLog implements consensus.LogStore.
func (s stores) StoreLog(e *consensus.Log) error { return s.look(s.Log.StoreLog(e)) }

// StoreLogs implements consensus.LogStore.
func (s stores) StoreLogs(logs []*consensus.Log) error { return s.look(s.Log.StoreLogs(logs)) }

// DeleteRange implements consensus.LogStore. Raft deletes all entries, which a copy replaces, or those that contradict
// the leader's, which are never committed. If this server has executed these, it belongs to another group, such as one
// before a recovery.
func (s stores) DeleteRange(min, max uint64) error {
	first, _ := s.FirstIndex()
	if last, _ := s.LastIndex(); min > first && max >= last && min <= s.n.executed.Load() {
		err := fmt.Errorf("entry %d of the leader contradicts one that the group has agreed on: the server belongs to another "+
			"group, or to a former one; give it an empty directory", min)
		if !s.n.full.Swap(true) {
			s.n.giveUp(err)
		}
		return err
	}
	return s.look(s.Log.DeleteRange(min, max))
}

// Set implements consensus.StableStore.
func (s stores) Set(key, value []byte) error { return s.look(s.Log.Set(key, value)) }

// SetUint64 implements consensus.StableStore. It hides a failed log, because Raft panics when it cannot store its
// term. This is harmless: no vote and no entry of such a term can be stored, so none is given or acknowledged.
func (s stores) SetUint64(key []byte, value uint64) error {
	err := s.look(s.Log.SetUint64(key, value))
	if bytes.Equal(key, termKey) && s.Log.Err() != nil {
		return nil
	}
	return err
}

// termKey is where Raft stores its term.
var termKey = []byte("CurrentTerm")

// look makes the node give up if the log has failed.
func (s stores) look(err error) error {
	if err != nil && s.Log.Err() != nil && !s.n.full.Swap(true) {
		s.n.giveUp(fmt.Errorf("the journal cannot be written: %w", err))
	}
	return err
}

var (
	_ consensus.MonotonicLogStore      = stores{}
	_ consensus.CommitTrackingLogStore = stores{}
)
