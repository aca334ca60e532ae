package server

import (
	"iter"
	"log/slog"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/changes"
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/command"
	aclcommands "github.com/atomredis/atomredis/internal/commands/acl"
	changescommands "github.com/atomredis/atomredis/internal/commands/changes"
	clustercommands "github.com/atomredis/atomredis/internal/commands/cluster"
	"github.com/atomredis/atomredis/internal/commands/connection"
	"github.com/atomredis/atomredis/internal/commands/hashes"
	migratecommand "github.com/atomredis/atomredis/internal/commands/migrate"
	pubsubcommands "github.com/atomredis/atomredis/internal/commands/pubsub"
	raftcommands "github.com/atomredis/atomredis/internal/commands/raft"
	replicationcommands "github.com/atomredis/atomredis/internal/commands/replication"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/commands/transactions"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/process"
	"github.com/atomredis/atomredis/internal/protocols/perper"
	"github.com/atomredis/atomredis/internal/protocols/skein"
	"github.com/atomredis/atomredis/internal/protocols/spiderq"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/persist/rdb"
)

// This file has the methods of the server that commands use; see command.Host.

// The interfaces that the packages of commands need.
var (
	_ aclcommands.Host           = (*Server)(nil)
	_ aclcommands.Client         = (*session.Session)(nil)
	_ changescommands.Host       = (*Server)(nil)
	_ clustercommands.Host       = (*Server)(nil)
	_ clustercommands.Client     = (*session.Session)(nil)
	_ connection.Host            = (*Server)(nil)
	_ connection.Client          = (*session.Session)(nil)
	_ migratecommand.Host        = (*Server)(nil)
	_ scripts.Host               = (*Server)(nil)
	_ scripts.Client             = (*session.Session)(nil)
	_ raftcommands.Host          = (*Server)(nil)
	_ replicationcommands.Host   = (*Server)(nil)
	_ replicationcommands.Client = (*session.Session)(nil)
	_ pubsubcommands.Host        = (*Server)(nil)
	_ pubsubcommands.Client      = (*session.Session)(nil)
	_ servercommands.Host        = (*Server)(nil)
	_ servercommands.Client      = (*session.Session)(nil)
	_ perper.Host                = (*Server)(nil)
	_ skein.Host                 = (*Server)(nil)
	_ spiderq.Host               = (*Server)(nil)
	_ hashes.Client              = (*session.Session)(nil)
	_ transactions.Client        = (*session.Session)(nil)
)

// serverOf returns the server of a command.
func serverOf(c *command.Ctx) *Server { return c.Host.(*Server) }

// Service implements Host.
func (srv *Server) Service(id command.ServiceID) command.Service { return srv.services[id] }

// Follows implements Host.
func (srv *Server) Follows() bool { return srv.follows() }

// Loading implements Host.
func (srv *Server) Loading() bool { return srv.storage.Storage != nil && srv.storage.Loading() }

// Directive implements Host.
func (srv *Server) Directive(name string) string {
	return srv.config.Value(name)
}

// Log implements Host.
func (srv *Server) Log() *slog.Logger { return srv.log }

// Clustered implements Host.
func (srv *Server) Clustered() bool { return srv.cluster != nil }

// Writable implements Host. A transaction that has written something continues even if the disk fails meanwhile.
func (srv *Server) Writable(g *engine.Guard) bool {
	return !srv.sessions.Restricted.Load() || g.FromMaster || g.Logged()
}

// HyperLogLogSparse implements Host.
func (srv *Server) HyperLogLogSparse() int { return srv.config.Get().Types.HyperLogLogSparse }

// RDBLimits implements Host.
func (srv *Server) RDBLimits() *rdb.Limits {
	set := srv.config.Get()
	return &rdb.Limits{
		Hash: set.Types.Hash, Set: set.Types.Set, ZSet: set.Types.ZSet, List: set.Types.List, Stream: set.Types.Stream,
		SkipChecksum: srv.skipChecksums.Load(),
	}
}

// PayloadChecked implements Host.
func (srv *Server) PayloadChecked() { srv.stats.restored.Add(1) }

// Table returns the command table.
func (srv *Server) Table() *command.Table { return srv.table }

// Users returns the users.
func (srv *Server) Users() *acl.Users { return srv.users }

// Config returns the configuration.
func (srv *Server) Config() *config.Config { return srv.config }

// CommandLog returns a log of commands.
func (srv *Server) CommandLog(kind stats.LogKind) *stats.CommandLog {
	return &srv.sessions.CommandLogs[kind]
}

// ProcessorTime returns how many seconds of the processor the process has used.
func (srv *Server) ProcessorTime() (system, user float64) {
	system, user, _ = process.CPUSeconds()
	return system, user
}

// HotKeys returns the state of HOTKEYS.
func (srv *Server) HotKeys() *servercommands.HotKeys { return &srv.hotKeys }

// MeasureKeys begins to measure the use of keys; nil ends it.
func (srv *Server) MeasureKeys(hot *stats.HotKeys) { srv.sessions.Timing.Measure(hot) }

// Latency returns the latency monitor.
func (srv *Server) Latency() *stats.Latency { return &srv.sessions.Latency }

// CommandStats returns the counters of commands.
func (srv *Server) CommandStats() *stats.Commands { return &srv.sessions.CommandStats }

// Subscribed implements feed.Host.
func (srv *Server) Subscribed() bool { return srv.sessions.PubSub.Heard() }

// Publish implements feed.Host.
func (srv *Server) Publish(by command.Client, channel, payload []byte) {
	var subs *pubsub.Subscriptions
	if s, ok := by.(*session.Session); ok {
		subs = s.Subscriptions()
	}
	srv.sessions.PubSub.Publish(subs, channel, payload, false)
}

// Migrations implements migratecommand.Host.
func (srv *Server) Migrations() *migratecommand.Conns { return &srv.migrateConns }

// ClientCount implements servercommands.Host.
func (srv *Server) ClientCount() int64 { return srv.sessions.Clients.Len() }

// Busy implements servercommands.Host.
func (srv *Server) Busy() command.Error { return srv.scripts.Busy() }

// Stores implements servercommands.Saver.
func (srv *Server) Stores() bool { return srv.storage.Storage != nil }

// Checkpoint implements servercommands.Saver.
func (srv *Server) Checkpoint() error { return srv.storage.Begin() }

// FinishCheckpoint implements servercommands.Saver.
func (srv *Server) FinishCheckpoint() error { return srv.storage.Save() }

// Stop implements servercommands.Saver.
func (srv *Server) Stop(save bool) error { return srv.close(save) }

// DelayJournal implements servercommands.Debugger.
func (srv *Server) DelayJournal(d time.Duration) {
	if st := srv.storage.Storage; st != nil {
		st.SetWriteDelay(d)
	}
}

// ChangeReplicationID implements servercommands.Debugger.
func (srv *Server) ChangeReplicationID() {
	srv.followed.ChangeHistory(func(h *replication.History) { h.ID, h.Former = replication.NewID(), nil })
}

// SkipChecksums implements servercommands.Debugger.
func (srv *Server) SkipChecksums(skip bool) { srv.skipChecksums.Store(skip) }

// LetScriptsDebug implements servercommands.Debugger.
func (srv *Server) LetScriptsDebug(may bool) { srv.scripts.LetDebug(may) }

// ScriptsMayDebug implements servercommands.Debugger.
func (srv *Server) ScriptsMayDebug() bool { return srv.scripts.MayDebug() }

// SetReplyBufferPeakAge implements servercommands.Debugger.
func (srv *Server) SetReplyBufferPeakAge(ms int64) { srv.sessions.ReplyBuffers.PeakAge.Store(ms) }

// FixReplyBuffers implements servercommands.Debugger.
func (srv *Server) FixReplyBuffers(fixed bool) { srv.sessions.ReplyBuffers.Fixed.Store(fixed) }

// EvictsClients implements servercommands.Debugger.
func (srv *Server) EvictsClients() bool { return srv.sessions.Limits.Clients.Load() != 0 }

// Changes implements changescommands.Host.
func (srv *Server) Changes() *changes.Feed { return srv.changes }

// Role returns the server's role as clients see it.
func (srv *Server) Role() string {
	if srv.follows() {
		return "replica"
	}
	return "master"
}

// PubSub returns the hub of published messages.
func (srv *Server) PubSub() *pubsub.Hub { return &srv.sessions.PubSub }

// Clients implements connection.Host.
func (srv *Server) Clients(now int64) iter.Seq[*clients.Info] { return srv.sessions.Clients.Infos(now) }

// ClientByID implements connection.Host.
func (srv *Server) ClientByID(id, now int64) (info clients.Info, ok bool) {
	return srv.sessions.Clients.ByID(id, now)
}

// Kill implements connection.Host.
func (srv *Server) Kill(by command.Client, f *clients.Filter, now int64) (killed int) {
	return srv.sessions.Clients.Kill(by, f, now)
}

// Unblock implements connection.Host.
func (srv *Server) Unblock(id int64, withError bool) bool {
	return srv.sessions.Clients.Unblock(id, withError)
}

// Pause implements connection.Host.
func (srv *Server) Pause(now, until int64, all bool) { srv.sessions.Pause.Begin(now, until, all) }

// Unpause implements connection.Host.
func (srv *Server) Unpause() { srv.sessions.Pause.Resume() }

// EvictableClients implements servercommands.Debugger.
func (srv *Server) EvictableClients() []int64 { return srv.sessions.Clients.Evictable() }

// SessionSize implements servercommands.Debugger.
func (srv *Server) SessionSize() uintptr { return session.Size }

// MakeRoom implements session.Host.
func (srv *Server) MakeRoom(now int64) session.Room { return srv.eviction.MakeRoom(now) }

// UsedMemory implements servercommands.Host; see session.Shared.
func (srv *Server) UsedMemory() int64 { return srv.sessions.UsedMemory() }
