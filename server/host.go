package server

import (
	"log/slog"

	"github.com/atomredis/atomredis/commands/migrate"

	"github.com/atomredis/atomredis/command"
	servercommands "github.com/atomredis/atomredis/commands/server"
	"github.com/atomredis/atomredis/commands/transactions"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/stats"
)

// This file is what commands see of the server and of the client; see Host and Client.

// What the commands of each package need.
var (
	_ migrate.Host          = (*Server)(nil)
	_ servercommands.Host   = (*Server)(nil)
	_ servercommands.Client = (*Session)(nil)
	_ transactions.Client   = (*Session)(nil)
)

// serverOf returns the server of a command.
func serverOf(c *command.Ctx) *Server { return c.Host.(*Server) }

// sessionOf returns the client of a command that has one.
func sessionOf(c *command.Ctx) *Session { return c.Client.(*Session) }

// Service implements Host.
func (srv *Server) Service(id command.ServiceID) command.Service { return srv.services[id] }

// Follows implements Host.
func (srv *Server) Follows() bool { return srv.replica.link() != nil }

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

// Writable implements Host. A transaction that has begun to write goes on although the disk fails meanwhile.
func (srv *Server) Writable(g *engine.Guard) bool {
	return !srv.restricted.Load() || g.FromMaster || g.Logged()
}

// HyperLogLogSparse implements Host.
func (srv *Server) HyperLogLogSparse() int { return srv.config.Get().HyperLogLogSparse }

// RDBLimits implements Host.
func (srv *Server) RDBLimits() *rdb.Limits {
	set := srv.config.Get()
	return &rdb.Limits{
		Hash: set.Hash, Set: set.Set, ZSet: set.ZSet, List: set.List, Stream: set.Stream,
		SkipChecksum: srv.skipChecksums.Load(),
	}
}

// PayloadChecked implements Host.
func (srv *Server) PayloadChecked() { srv.stats.restored.Add(1) }

// Table returns the command table.
func (srv *Server) Table() *command.Table { return srv.table }

// Config returns the configuration.
func (srv *Server) Config() *config.Config { return srv.config }

// Slowlog returns the log of slow commands.
func (srv *Server) Slowlog() *stats.Slowlog { return &srv.slowlog }

// Latency returns the latency monitor.
func (srv *Server) Latency() *stats.Latency { return &srv.latency }

// CommandStats returns the counters of commands.
func (srv *Server) CommandStats() *stats.Commands { return &srv.commandStats }

// Migrations implements migrate.Host.
func (srv *Server) Migrations() *migrate.Conns { return &srv.migrations }
