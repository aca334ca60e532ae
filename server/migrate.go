package server

import (
	"context"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/migrate"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
)

// What package internal/cluster/migrate needs of the server, and what commands need of it.

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
	srv := (*Server)(h)
	for srv.eviction.limit.Load() != 0 {
		room := srv.makeRoom(srv.ks.Now())
		if room == roomNowhere {
			return migrate.ErrNoMemory
		}
		if room != roomLater || srv.excess() < 1 {
			return nil
		}
		select {
		case <-time.After(tierPause * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Tiered implements migrate.Host.
func (h *migrateHost) Tiered() bool { return h.tiered.Load() }

// InvalidateCaches implements migrate.Host.
func (h *migrateHost) InvalidateCaches() { h.tracking.InvalidateAll(nil) }

// WithdrawBlocked implements migrate.Host.
func (h *migrateHost) WithdrawBlocked(slots *cluster.SlotSet) (list []migrate.Blocked) {
	for _, s := range h.clients.all() {
		if w := s.snapshot().wait; w != nil && slots.Has(w.slot) && w.waiter.Withdraw() {
			list = append(list, withdrawn{s, w})
			s.post(mailHeld)
		}
	}
	return list
}

// withdrawn is a session that was blocked, as migrate.Blocked.
type withdrawn struct {
	s *Session
	w *wait
}

// Undone implements migrate.Blocked.
func (c withdrawn) Undone() bool { return c.w.left.Load() }

// Resume implements migrate.Blocked.
func (c withdrawn) Resume() { c.s.post(mailMoved) }

// heldClient is a session as migrate.Waiting.
type heldClient Session

// Resume implements migrate.Waiting.
func (c *heldClient) Resume() { (*Session)(c).post(mailResume) }

// MayFlush implements command.Host.
func (srv *Server) MayFlush() command.Error {
	if srv.migrations != nil && !srv.migrations.MayFlush() {
		return errTryAgain
	}
	return ""
}
