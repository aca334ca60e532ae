package raftlog

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/journal"
)

// machine is a state machine that records what was applied.
type machine struct {
	mu      sync.Mutex
	applied []string
}

func (m *machine) Apply(e *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = append(m.applied, string(e.Data))
	return nil
}

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return machineSnapshot(slices.Clone(m.applied)), nil
}

func (m *machine) Restore(r io.ReadCloser) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = nil
	for {
		var s string
		if _, err := fmt.Fscanln(r, &s); err != nil {
			return r.Close()
		}
		m.applied = append(m.applied, s)
	}
}

func (m *machine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.applied)
}

type machineSnapshot []string

func (s machineSnapshot) Persist(sink raft.SnapshotSink) error {
	for _, line := range s {
		if _, err := fmt.Fprintln(sink, line); err != nil {
			return err
		}
	}
	return sink.Close()
}

func (machineSnapshot) Release() {}

// node is a Raft node. Its log, its snapshots and its address outlive it.
type node struct {
	fs        *crashfs.FS
	snapshots *raft.InmemSnapshotStore
	start     journal.Start
	address   raft.ServerAddress

	*machine
	log       *Log
	raft      *raft.Raft
	transport *raft.InmemTransport
}

func (n *node) begin(t *testing.T, nodes []*node) {
	n.log = open(t, Options{FS: n.fs, Start: n.start, SegmentSize: 20_000})
	n.machine = new(machine)
	_, n.transport = raft.NewInmemTransport(n.address)
	for _, other := range nodes {
		if other.transport != nil {
			n.transport.Connect(other.address, other.transport)
			other.transport.Connect(n.address, n.transport)
		}
	}
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.address)
	c.CommitTimeout = 5 * time.Millisecond
	c.TrailingLogs = 1
	c.LogOutput = io.Discard
	var err error
	n.raft, err = raft.NewRaft(c, n.machine, n.log, n.log, n.snapshots, n.transport)
	require.NoError(t, err)
}

func (n *node) end(t *testing.T) {
	require.NoError(t, n.raft.Shutdown().Error())
	require.NoError(t, n.log.Close())
	require.NoError(t, n.transport.Close())
}

// release makes the log drop what a snapshot has.
func (n *node) release(t *testing.T) {
	require.NoError(t, n.raft.Snapshot().Error())
	metas, err := n.snapshots.List()
	require.NoError(t, err)
	n.start, err = n.log.Anchor(metas[0].Index + 1)
	require.NoError(t, err)
	require.NoError(t, n.log.Release(n.start))
}

func leaderOf(t *testing.T, nodes []*node) *node {
	var leader *node
	require.Eventually(t, func() bool {
		for _, n := range nodes {
			if n.raft.State() == raft.Leader && n.raft.VerifyLeader().Error() == nil {
				leader = n
				return true
			}
		}
		return false
	}, 30*time.Second, 5*time.Millisecond)
	return leader
}

// Three nodes elect a leader and apply a thousand entries. One is restarted and catches up from the leader's log file;
// another loses power and gets a snapshot, because the leader no longer has the entries that it lacks.
func TestThreeNodes(t *testing.T) {
	nodes := make([]*node, 3)
	var servers raft.Configuration
	for i := range nodes {
		address := raft.ServerAddress(fmt.Sprint("node", i))
		nodes[i] = &node{fs: newFS(t), snapshots: raft.NewInmemSnapshotStore(), address: address}
		servers.Servers = append(servers.Servers, raft.Server{ID: raft.ServerID(address), Address: address})
	}
	for _, n := range nodes {
		n.begin(t, nodes)
		require.NoError(t, n.raft.BootstrapCluster(servers).Error())
	}
	var acknowledged []string
	apply := func(nodes []*node, n int) {
		t.Helper()
		for last := len(acknowledged) + n; len(acknowledged) < last; {
			leader := leaderOf(t, nodes)
			var futures []raft.ApplyFuture
			for i := len(acknowledged); i < last; i++ {
				futures = append(futures, leader.raft.Apply(fmt.Appendf(nil, "entry%d", i), 30*time.Second))
			}
			for _, f := range futures { // a slow machine may lose its leader
				if f.Error() != nil {
					break
				}
				acknowledged = append(acknowledged, fmt.Sprintf("entry%d", len(acknowledged)))
			}
		}
	}
	same := func() {
		t.Helper()
		apply(nodes, 1) // commits the earlier entries
		require.Eventually(t, func() bool {
			return nodes[0].count() == nodes[1].count() && nodes[0].count() == nodes[2].count() &&
				nodes[0].count() >= len(acknowledged)
		}, 30*time.Second, 5*time.Millisecond)
		applied := map[string]bool{}
		for _, s := range nodes[0].applied {
			applied[s] = true
		}
		for _, s := range acknowledged {
			require.True(t, applied[s], s)
		}
		require.Equal(t, nodes[0].applied, nodes[1].applied)
		require.Equal(t, nodes[0].applied, nodes[2].applied)
	}
	follower := func() (f *node, others []*node) {
		leader := leaderOf(t, nodes)
		i := slices.IndexFunc(nodes, func(n *node) bool { return n != leader })
		return nodes[i], slices.Concat(nodes[:i], nodes[i+1:])
	}

	apply(nodes, 1000)
	same()

	f, others := follower()
	f.end(t)
	apply(others, 500)
	for _, n := range others {
		n.log.mu.Lock()
		n.log.recent = recent{}
		n.log.mu.Unlock()
	}
	f.begin(t, others)
	same()

	f, others = follower()
	f.end(t)
	lacks := f.count()
	f.fs = f.fs.CrashClone(crashfs.CloneCfg{})
	apply(others, 1000)
	for _, n := range others {
		n.release(t)
		first, err := n.log.FirstIndex()
		require.NoError(t, err)
		require.Greater(t, first, uint64(lacks))
	}
	f.begin(t, others)
	same()
	apply(nodes, 100)
	same()
	require.Eventually(t, func() bool {
		first, err := f.log.FirstIndex()
		return err == nil && first > uint64(lacks)
	}, 30*time.Second, 5*time.Millisecond, "what was before the snapshot is gone")
	for _, n := range nodes {
		n.end(t)
	}
}
