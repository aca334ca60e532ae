package shards

import (
	"context"
	"slices"
	"time"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// This file has the methods for commands that ask all shards.

// Leads reports whether the server leads its shard.
func (h *Shards) Leads() bool { return h.host.Leads() }

// Dial connects to a server of another shard.
func (h *Shards) Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error) {
	return h.node.Dial(addr, purpose, timeout)
}

// Servers returns the addresses of another shard's servers, the last known leader first.
func (h *Shards) Servers(id string) []string {
	o := h.Record().Other(id)
	if o == nil {
		return nil
	}
	h.mu.Lock()
	leader := h.seen[id].Leader
	h.mu.Unlock()
	return leaderFirst(o.Addrs, leader)
}

// leaderFirst returns addresses with the leader's first.
func leaderFirst(addrs []string, leader string) []string {
	addrs = slices.Clone(addrs)
	slices.SortStableFunc(addrs, func(x, y string) int {
		switch {
		case x == leader && y != leader:
			return -1
		case y == leader && x != leader:
			return 1
		}
		return 0
	})
	return addrs
}

// Confirm waits until the server's present state is committed. It then knows that it was the leader when it was
// called.
func (h *Shards) Confirm(ctx context.Context) error {
	epoch := h.node.Epoch()
	if h.node.WaitPosition() == 0 || !h.host.Leads() {
		return ErrNotLeading
	}
	if err := h.node.Sync(ctx); err != nil {
		return err
	}
	if h.node.Epoch() != epoch || !h.host.Leads() {
		return ErrTakenBack
	}
	return nil
}
