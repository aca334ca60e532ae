package raft

import (
	"io"
	"testing"
	"time"

	consensus "github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// busy is a state machine that executes nothing until it may.
type busy struct {
	began chan struct{}
	may   chan struct{}
}

func (b busy) Apply(*consensus.Log) any {
	close(b.began)
	<-b.may
	return nil
}

func (busy) Snapshot() (consensus.FSMSnapshot, error) { return nil, io.EOF }
func (busy) Restore(io.ReadCloser) error              { return io.EOF }

// A node that closes does not wait for futures that Raft has forgotten.
func TestFuturesEndWithTheNode(t *testing.T) {
	conf := consensus.DefaultConfig()
	conf.LocalID = "x:1"
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	conf.LogOutput = io.Discard
	addr, trans := consensus.NewInmemTransport("x:1")
	store, snapshots := consensus.NewInmemStore(), consensus.NewInmemSnapshotStore()
	require.NoError(t, consensus.BootstrapCluster(conf, store, store, snapshots, trans,
		consensus.Configuration{Servers: []consensus.Server{{ID: "x:1", Address: addr}}}))
	fsm := busy{make(chan struct{}), make(chan struct{})}
	r, err := consensus.NewRaft(conf, fsm, store, store, snapshots, trans)
	require.NoError(t, err)
	<-r.LeaderCh()
	r.Apply([]byte("command"), 0)
	<-fsm.began
	n := &Node{stop: make(chan struct{})}
	var futures []consensus.Future
	for range 30 { // Raft answers a random number of them, the first ones
		last := r.CommitIndex()
		futures = append(futures, r.Barrier(0))
		require.Eventually(t, func() bool { return r.CommitIndex() > last }, deadline, time.Millisecond)
	}
	ended := r.Shutdown()
	close(fsm.may)
	require.NoError(t, ended.Error())
	close(n.stop)
	for _, f := range futures[:len(futures)-1] {
		_ = n.outcome(f)
	}
	require.ErrorIs(t, n.outcome(futures[len(futures)-1]), consensus.ErrRaftShutdown)
	require.ErrorIs(t, n.outcome(r.Barrier(0)), consensus.ErrRaftShutdown, "one that is an error")
}
