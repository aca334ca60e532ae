package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/command"
	commands "github.com/atomredis/atomredis/internal/commands/replication"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/psync"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// The methods of the server that package internal/replication/psync needs, and those that commands need for it.

// errReplicaOfInCluster is returned by New.
var errReplicaOfInCluster = errors.New("replicaof directive not allowed in cluster mode")

// startReplication starts both ends of replication. The keyspace, the storage and the exporter must exist.
func (srv *Server) startReplication() {
	o := psync.Options{Config: srv.config, Log: srv.log, Keyspace: srv.ks, FS: srv.fs, Exporter: srv.exporter,
		Master: (*masterHost)(srv), Replica: (*replicaHost)(srv)}
	if st := srv.storage.Storage; st != nil {
		o.Storage = st
	}
	psync.Start(&srv.followed, &srv.replica, o)
}

// masterHost is the server as psync.MasterHost.
type masterHost Server

// Hold implements psync.MasterHost.
func (m *masterHost) Hold(fn func(g *engine.Guard)) error { return (*Server)(m).underAll(fn) }

// RepeatKept implements psync.MasterHost. A Redis without the query engine refuses a file with indexes, and the
// master cannot tell whether the follower has it. But a follower ignores unknown commands.
func (m *masterHost) RepeatKept() error {
	srv := (*Server)(m)
	return srv.underAll(func(g *engine.Guard) {
		if srv.Follows() || m.FollowsLeader() {
			return
		}
		p := resp.Parser{MaxBulk: resp.AnyBulk}
		for rest := srv.kept(); len(rest) > 0; {
			args, n, err := p.Next(rest, nil)
			if err != nil || len(args) == 0 {
				return
			}
			if rest = rest[n:]; !command.EqualFold(args[0], "changes") { // the stream does not have it
				g.Log(0, args)
			}
		}
	})
}

// SpoolDir implements psync.MasterHost.
func (m *masterHost) SpoolDir() string { return (*Server)(m).spoolDir() }

// ScarceChanged implements psync.MasterHost.
func (m *masterHost) ScarceChanged() { (*Server)(m).restrict() }

// FollowsLeader implements psync.MasterHost.
func (m *masterHost) FollowsLeader() bool { return m.group.following.Load() }

// TellLeader implements psync.MasterHost.
func (m *masterHost) TellLeader() {
	leader := m.group.members.Status().Leader
	if leader == "" {
		return
	}
	if conn, err := m.group.dial(leader, peer.Stream, peers.Timeout); err == nil {
		conn.Close()
	}
}

// Position implements psync.MasterHost.
func (m *masterHost) Position() uint64 {
	if node := m.group.node(); node != nil {
		return node.Appended()
	}
	return 0
}

// Entry implements psync.MasterHost.
func (m *masterHost) Entry(position uint64) uint64 {
	if node := m.group.node(); node != nil {
		return node.EntryAt(position)
	}
	return 0
}

// Holders implements psync.MasterHost.
func (m *masterHost) Holders(entry uint64) int64 {
	if node := m.group.node(); node != nil {
		return int64(node.Holders(entry))
	}
	return 0
}

// Committers implements psync.MasterHost.
func (m *masterHost) Committers() int64 {
	if node := m.group.node(); node != nil {
		return int64(node.Committers())
	}
	return 0
}

// WritesPaused implements psync.MasterHost.
func (m *masterHost) WritesPaused(now int64) bool { return m.sessions.Pause.Running(now) }

// HoldWrites implements psync.MasterHost.
func (m *masterHost) HoldWrites(held bool) { m.sessions.Pause.Hold(held) }

// replicaHost is the server as psync.ReplicaHost.
type replicaHost Server

// BecameReplica implements psync.ReplicaHost.
func (r *replicaHost) BecameReplica() {
	srv := (*Server)(r)
	srv.restrict()
	srv.scoreForRole()
	srv.withdrawWriters()
}

// BecameMaster implements psync.ReplicaHost.
func (r *replicaHost) BecameMaster() {
	srv := (*Server)(r)
	srv.restrict()
	srv.scoreForRole()
	srv.eviction.Schedule(0)
	srv.servicesLoaded()
}

// withdrawWriters ends the waits of blocked clients whose commands write, and makes services drop their clients'
// state: from now on only the master changes data. The guard holds everything.
func (srv *Server) withdrawWriters() {
	for _, s := range srv.services {
		s.Following()
	}
	srv.sessions.Clients.WithdrawWriters()
}

// Dial implements psync.ReplicaHost.
func (r *replicaHost) Dial(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error) {
	return r.tls.Dial(ctx, addr, timeout, r.config.Get().TLS.Replication)
}

// MakeRoom implements psync.ReplicaHost.
func (r *replicaHost) MakeRoom() {
	if r.sessions.Limits.Memory.Load() != 0 {
		r.eviction.MakeRoom(r.ks.Now())
	}
}

// StorageFailure implements psync.ReplicaHost.
func (r *replicaHost) StorageFailure() error {
	if f := (*Server)(r).storageFailure(); f != nil {
		return f
	}
	return nil
}

// RDBLimits implements psync.ReplicaHost.
func (r *replicaHost) RDBLimits() *rdb.Limits { return (*Server)(r).RDBLimits() }

// SpoolDir implements psync.ReplicaHost.
func (r *replicaHost) SpoolDir() string { return (*Server)(r).spoolDir() }

// spoolDir returns the directory for the RDB files of full synchronizations.
func (srv *Server) spoolDir() string {
	if set := srv.config.Get(); set.Durable() && srv.ownFiles {
		return set.Files.Dir
	}
	return os.TempDir()
}

// NewExecutor implements psync.ReplicaHost.
func (r *replicaHost) NewExecutor(by psync.Executing) psync.Executor {
	srv := (*Server)(r)
	return &masterExecutor{srv.sessions.NewExecutor(by), srv}
}

// masterExecutor executes the commands of a master, and loads its data.
type masterExecutor struct {
	session.Executor
	srv *Server
}

// Replace implements psync.Executor.
func (x *masterExecutor) Replace(ctx context.Context, file io.Reader, done func()) error {
	return x.srv.fill(ctx, file, x.Replayer, func([]byte) { done() })
}

// fill replaces the data by that of an RDB file, in which functions come before keys. At its end it calls done with the note
// of a history, if the file has one.
func (srv *Server) fill(ctx context.Context, file io.Reader, by *session.Replayer, done func(history []byte)) error {
	srv.followed.Drop()
	var history []byte
	about := func(aux rdb.Aux) error {
		switch {
		case aux.Name == auxHistory:
			history = []byte(aux.Value)
		case aux.Name == auxRecord && srv.shards != nil:
			return srv.shards.Apply([]byte(aux.Value))
		}
		return nil
	}
	return srv.importer.Replace(ctx, file, by, about, func() { done(history) })
}

// Followers implements replication.Host.
func (srv *Server) Followers() (list []replication.Follower, offset int64) {
	list, offset = srv.followed.Status()
	others, index := srv.group.members.Followers()
	return append(others, list...), max(offset, index)
}

// Master implements replication.Host.
func (srv *Server) Master() (link replication.Link, ok bool) {
	if link, ok := srv.group.members.Link(); ok {
		return link, true
	}
	return srv.replica.Status()
}

// Group implements replication.Host.
func (srv *Server) Group() (g replication.Group, ok bool) { return srv.group.members.Group() }

// HasStream implements replication.Host.
func (srv *Server) HasStream(copyOnly bool) bool {
	return !srv.group.members.Witness() && srv.followed.HasStream(copyOnly)
}

// Follow implements replication.Host.
func (srv *Server) Follow(g *engine.Guard, host string, port int) { srv.replica.Follow(g, host, port) }

// Lead implements replication.Host.
func (srv *Server) Lead(g *engine.Guard) { srv.replica.Lead(g) }

// Recall implements replication.Host.
func (srv *Server) Recall(words [][]byte, db int) error { return srv.followed.Recall(words, db) }

// Acked implements replication.Host.
func (srv *Server) Acked(written replication.Written, synced bool) int64 {
	return srv.followed.Acked(written, synced)
}

// AwaitAcked implements replication.Host.
func (srv *Server) AwaitAcked(client commands.Client, written replication.Written, n int64, synced bool, finish func(acked int64)) {
	srv.followed.AwaitAcked(client.(*session.Session).Follower(), written, n, synced, finish)
}

// Failover implements replication.Host.
func (srv *Server) Failover(host string, port int64, force bool, timeout int64) {
	srv.followed.Failover(host, port, force, timeout)
}

// FailingOver implements replication.Host.
func (srv *Server) FailingOver() bool { return srv.followed.FailingOver() }

// AbortFailover implements replication.Host.
func (srv *Server) AbortFailover() { srv.followed.AbortFailover() }

// TakeOver implements replication.Host.
func (srv *Server) TakeOver(id string) command.Error {
	e, err := srv.followed.TakeOver(id)
	if err != nil && e == "" {
		e = command.ErrLoading
	}
	return e
}
