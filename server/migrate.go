package server

import (
	"context"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/migrate"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/persist/rdb"
)

// The methods of the server that package internal/cluster/migrate needs, and those that commands need for it.

// migrateHost is the server as migrate.Host.
type migrateHost Server

// Leads implements migrate.Host.
func (h *migrateHost) Leads() bool { return !h.group.following.Load() }

// View implements migrate.Host.
func (h *migrateHost) View() *cluster.View { return (*Server)(h).ClusterView("") }

// RDBLimits implements migrate.Host.
func (h *migrateHost) RDBLimits() *rdb.Limits { return (*Server)(h).RDBLimits() }

// AwaitRoom implements migrate.Host.
func (h *migrateHost) AwaitRoom(ctx context.Context) error {
	ok, err := h.eviction.AwaitRoom(ctx)
	if err == nil && !ok {
		return migrate.ErrNoMemory
	}
	return err
}

// Tiered implements migrate.Host.
func (h *migrateHost) Tiered() bool { return h.sessions.Tiered.Load() }

// InvalidateCaches implements migrate.Host.
func (h *migrateHost) InvalidateCaches() { h.sessions.Tracking.InvalidateAll(nil) }

// WithdrawBlocked implements migrate.Host.
func (h *migrateHost) WithdrawBlocked(slots *cluster.SlotSet) []migrate.Blocked {
	return h.sessions.Clients.WithdrawBlocked(slots)
}

// MayFlush implements command.Host.
func (srv *Server) MayFlush() command.Error {
	if srv.migrations != nil && !srv.migrations.MayFlush() {
		return session.ErrTryAgain
	}
	return ""
}
