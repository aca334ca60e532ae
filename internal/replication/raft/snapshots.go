package raft

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/persist/disk"
)

// snapshots is Raft's store of snapshots: the stored state, of which a copy is made when a server needs one, and
// copies from a leader.
type snapshots struct {
	n *Node

	mu       sync.Mutex
	made     int
	received map[string]*consensus.SnapshotMeta
	opened   *consensus.SnapshotMeta // the last copy that was opened; Restore reads it
}

const (
	storedID   = "stored"
	copySuffix = ".copy"
)

var errSnapshots = errors.New("checkpoints take the place of Raft's snapshots")

func meta(id string, s state) *consensus.SnapshotMeta {
	return &consensus.SnapshotMeta{Version: consensus.SnapshotVersionMax, ID: id, Index: s.index, Term: s.term,
		Configuration: s.config, ConfigurationIndex: s.configIndex}
}

// List implements consensus.SnapshotStore.
func (s *snapshots) List() ([]*consensus.SnapshotMeta, error) {
	s.n.proposals.mu.Lock()
	stored := s.n.stored
	s.n.proposals.mu.Unlock()
	if stored.index == 0 {
		return nil, nil
	}
	return []*consensus.SnapshotMeta{meta(storedID, stored)}, nil
}

func (s *snapshots) path(id string) string { return s.n.o.FS.PathJoin(s.n.o.Dir, id+copySuffix) }

// Open implements consensus.SnapshotStore.
func (s *snapshots) Open(id string) (*consensus.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	m := s.received[id]
	if m != nil {
		s.opened = m
	}
	s.made++
	name := "made-" + strconv.Itoa(s.made)
	s.mu.Unlock()
	if m == nil {
		var err error
		if m, err = s.makeCopy(name); err != nil {
			return nil, nil, errors.Join(err, s.remove(name))
		}
		id = name
	}
	file, err := s.n.o.FS.Open(s.path(id))
	if err != nil {
		return nil, nil, err
	}
	return m, &copyReader{file, s, id}, nil
}

// remove removes a copy, if there is one.
func (s *snapshots) remove(id string) error {
	err := s.n.o.FS.Remove(s.path(id))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// copyReader reads a copy. Closing it removes the copy.
type copyReader struct {
	disk.File
	s  *snapshots
	id string
}

func (r *copyReader) Close() error { return errors.Join(r.File.Close(), r.s.remove(r.id)) }

// makeCopy writes the keyspace to a file, and returns its description once its content is committed.
func (s *snapshots) makeCopy(name string) (*consensus.SnapshotMeta, error) {
	file, err := s.n.o.FS.Create(s.path(name))
	if err != nil {
		return nil, err
	}
	var c *cut
	err = s.n.machine.Copy(file, func() { c = s.n.proposals.cut() })
	if err == nil && c == nil {
		err = errors.New("the keyspace has only a part of an entry")
	}
	var at state
	if err == nil {
		at, err = s.n.await(c)
	}
	var info os.FileInfo
	if err == nil {
		info, err = file.Stat()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("a copy for a server of the group: %w", err)
	}
	m := meta(name, at)
	m.Size = info.Size()
	s.n.o.Log.Info("a copy for a server of the group has been made", "bytes", m.Size, "index", m.Index)
	return m, nil
}

// Create implements consensus.SnapshotStore, for a copy from a leader.
func (s *snapshots) Create(_ consensus.SnapshotVersion, index, term uint64, c consensus.Configuration,
	configIndex uint64, _ consensus.Transport) (consensus.SnapshotSink, error) {
	s.mu.Lock()
	s.made++
	id := "received-" + strconv.Itoa(s.made)
	s.mu.Unlock()
	file, err := s.n.o.FS.Create(s.path(id))
	if err != nil {
		return nil, err
	}
	return &sink{File: file, s: s, meta: meta(id, state{index: index, term: term, config: c, configIndex: configIndex})},
		nil
}

// sink receives a copy.
type sink struct {
	disk.File
	s    *snapshots
	meta *consensus.SnapshotMeta
	size int64
}

// Write implements io.Writer.
func (k *sink) Write(b []byte) (int, error) {
	n, err := k.File.Write(b)
	k.size += int64(n)
	return n, err
}

// ID implements consensus.SnapshotSink.
func (k *sink) ID() string { return k.meta.ID }

// Cancel implements consensus.SnapshotSink.
func (k *sink) Cancel() error { return errors.Join(k.File.Close(), k.s.remove(k.meta.ID)) }

// Close implements consensus.SnapshotSink: the copy is complete.
func (k *sink) Close() error {
	if err := k.File.Close(); err != nil {
		return err
	}
	k.meta.Size = k.size
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if k.s.received == nil {
		k.s.received = map[string]*consensus.SnapshotMeta{}
	}
	clear(k.s.received)
	k.s.received[k.meta.ID] = k.meta
	return nil
}

// Snapshot implements consensus.FSM.
func (f *fsm) Snapshot() (consensus.FSMSnapshot, error) { return nil, errSnapshots }

// Restore implements consensus.FSM.
func (f *fsm) Restore(r io.ReadCloser) error {
	n := (*Node)(f)
	defer r.Close()
	if n.leading.Load() {
		if err := n.follow(); err != nil {
			return err
		}
	}
	n.snapshots.mu.Lock()
	m := n.snapshots.opened
	n.snapshots.mu.Unlock()
	n.entered()
	var from io.Reader = r
	if n.o.Witness {
		var err error
		if from, err = n.nothing(); err != nil {
			return err
		}
	}
	err := n.machine.Replace(from, func() {
		n.applied = state{index: m.Index, term: m.Term, config: m.Configuration, configIndex: m.ConfigurationIndex}
		n.proposals.done(0, n.applied)
		n.executed.Store(m.Index)
	})
	if err != nil {
		return err
	}
	n.held.Lock()
	n.lost = false
	n.held.Unlock()
	n.machine.Told()
	return nil
}

var _ consensus.SnapshotStore = (*snapshots)(nil)
