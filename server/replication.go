package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/command"
	commands "github.com/atomredis/atomredis/internal/commands/replication"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/psync"
	"github.com/atomredis/atomredis/persist/rdb"
)

// What package internal/replication/psync needs of the server, and what commands need of it.

// errReplicaOfInCluster is returned by New.
var errReplicaOfInCluster = errors.New("replicaof directive not allowed in cluster mode")

// startReplication starts both ends of replication. The keyspace, the storage and the exporter are there.
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

// SpoolDir implements psync.MasterHost.
func (m *masterHost) SpoolDir() string { return (*Server)(m).spoolDir() }

// ScarceChanged implements psync.MasterHost.
func (m *masterHost) ScarceChanged() { (*Server)(m).restrict() }

// FollowsLeader implements psync.MasterHost.
func (m *masterHost) FollowsLeader() bool { return m.group.following.Load() }

// TellLeader implements psync.MasterHost.
func (m *masterHost) TellLeader() {
	leader := m.group.status.Load().Leader
	if leader == "" {
		return
	}
	if conn, err := peers.Tell(m.group.node, leader, peers.AskStream); err == nil {
		conn.Close()
	}
}

// WritesPaused implements psync.MasterHost.
func (m *masterHost) WritesPaused(now int64) bool { return m.pause.running(now) }

// HoldWrites implements psync.MasterHost.
func (m *masterHost) HoldWrites(held bool) { m.pause.hold(held) }

// followerConn is a session as psync.Client.
type followerConn Session

// Send implements psync.Client.
func (c *followerConn) Send(b []byte) { (*Session)(c).post(0, b) }

// Close implements psync.Client.
func (c *followerConn) Close() { (*Session)(c).post(mailKill) }

// ID implements psync.Client.
func (c *followerConn) ID() int64 { return c.id }

// Addr implements psync.Client.
func (c *followerConn) Addr() string { return c.peer.Addr }

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
	srv.evictLater(0)
	srv.servicesLoaded()
}

// withdrawWriters ends the waits of blocked clients whose commands write, and makes services forget what clients have: from
// now on only the master changes data. The guard holds everything.
func (srv *Server) withdrawWriters() {
	for _, s := range srv.services {
		s.Following()
	}
	for _, s := range srv.clients.all() {
		if w := s.snapshot().wait; w != nil && w.cmd.Flags&command.Write != 0 && w.waiter.Withdraw() {
			s.post(mailRoleChanged)
		}
	}
}

// Dial implements psync.ReplicaHost.
func (r *replicaHost) Dial(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error) {
	return (*Server)(r).dial(ctx, addr, timeout, r.config.Get().TLS.Replication)
}

// MakeRoom implements psync.ReplicaHost.
func (r *replicaHost) MakeRoom() {
	if r.eviction.limit.Load() != 0 {
		(*Server)(r).makeRoom(r.ks.Now())
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
		return set.Dir
	}
	return os.TempDir()
}

// NewExecutor implements psync.ReplicaHost.
func (r *replicaHost) NewExecutor(by psync.Executing) psync.Executor {
	x := &masterExecutor{replayer: newReplayer((*Server)(r), command.FromMaster), by: by}
	x.s.guard.FromMaster = true
	return x
}

// masterExecutor executes the commands of a master.
type masterExecutor struct {
	*replayer
	by psync.Executing
}

// Execute implements psync.Executor.
func (x *masterExecutor) Execute(ctx context.Context, db int, unit [][][]byte) error {
	s := x.s
	srv := s.srv
	found := make([]*command.Command, len(unit))
	var shards uint64
	for i, args := range unit {
		cmd, _ := srv.table.LookupOriginal(args)
		if e := s.admit(command.FromMaster, cmd, nil, args); e != "" {
			x.by.Refused(args, string(e))
			continue
		}
		found[i] = cmd
		shards |= cmd.ShardsAmong(srv.ks, args)
	}
	s.now, s.db = srv.ks.Now(), db
	s.guard.Owner = &s.origin
	srv.scripts.Expect(shards)
	s.guard.Lock(srv.ks, shards, s.now)
	defer s.guard.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &s.ctx
	for i, cmd := range found {
		if cmd == nil {
			continue
		}
		s.out.Buf = s.out.Buf[:0]
		c.Cmd, c.Args, c.DB = cmd, unit[i], s.db
		s.runMonitored(c)
		if len(s.out.Buf) > 0 && s.out.Buf[0] == '-' {
			x.by.Refused(unit[i], string(bytes.TrimSpace(s.out.Buf[1:])))
		}
	}
	s.endCommands() // before the arguments are overwritten
	if s.origin.Changed() {
		srv.tracking.Broadcast(&s.origin.Changer)
	}
	s.out.Buf, s.origin.Later = s.out.Buf[:0], s.origin.Later[:0]
	x.by.Executed(&s.guard, s.db)
	return nil
}

// Replace implements psync.Executor.
func (x *masterExecutor) Replace(ctx context.Context, file io.Reader, done func()) error {
	return x.s.srv.fill(ctx, file, x.replayer, func([]byte) { done() })
}

// fill replaces the data by that of an RDB file, in which functions come before keys. At its end it calls done with the note
// of a history, if the file has one.
func (srv *Server) fill(ctx context.Context, file io.Reader, by *replayer, done func(history []byte)) error {
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
	others, index := srv.group.followers()
	return append(others, list...), max(offset, index)
}

// Master implements replication.Host.
func (srv *Server) Master() (link replication.Link, ok bool) {
	if link, ok := srv.group.link(); ok {
		return link, true
	}
	return srv.replica.Status()
}

// Group implements replication.Host.
func (srv *Server) Group() (g replication.Group, ok bool) {
	node := &srv.group
	if node.node == nil {
		return g, false
	}
	g.Leads = !node.following.Load()
	if host, port, known := node.leader(); known {
		g.Leader = net.JoinHostPort(host, strconv.Itoa(port))
	}
	for _, m := range node.status.Load().Members {
		if host, _, err := net.SplitHostPort(m.Client); err == nil && host != "" {
			g.Members = append(g.Members, m.Client)
		}
	}
	return g, true
}

// HasStream implements replication.Host.
func (srv *Server) HasStream() bool { return srv.followed.HasStream() }

// Follow implements replication.Host.
func (srv *Server) Follow(g *engine.Guard, host string, port int) { srv.replica.Follow(g, host, port) }

// Lead implements replication.Host.
func (srv *Server) Lead(g *engine.Guard) { srv.replica.Lead(g) }

// Recall implements replication.Host.
func (srv *Server) Recall(words [][]byte, db int) error { return srv.followed.Recall(words, db) }

// Acked implements replication.Host.
func (srv *Server) Acked(offset int64, synced bool) int64 { return srv.followed.Acked(offset, synced) }

// AwaitAcked implements replication.Host.
func (srv *Server) AwaitAcked(client commands.Client, offset, n int64, synced bool, finish func()) {
	srv.followed.AwaitAcked(&client.(*Session).modes.follower, offset, n, synced, finish)
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
		e = errLoading
	}
	return e
}

// Following implements replication.Client.
func (s *Session) Following() bool { return s.modes.follower.Following() }

// StartFollowing implements replication.Client.
func (s *Session) StartFollowing(announce bool) {
	s.srv.followed.StartFollowing(&s.modes.follower, (*followerConn)(s), announce)
}

// GoOn implements replication.Client.
func (s *Session) GoOn(id string, offset int64) bool {
	return s.srv.followed.GoOn(&s.modes.follower, (*followerConn)(s), id, offset)
}

// Capabilities implements replication.Client.
func (s *Session) Capabilities() *replication.Capabilities { return &s.modes.follower.Capabilities }

// Acknowledge implements replication.Client.
func (s *Session) Acknowledge(offset, synced int64) { s.modes.follower.Acknowledge(offset, synced) }

// Wrote implements replication.Client.
func (s *Session) Wrote() int64 { return s.srv.followed.Wrote(&s.modes.follower, s.guard.Changes()) }
