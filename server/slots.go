package server

import (
	"github.com/atomredis/atomredis/cluster"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
)

// This file is the server as the node of a cluster; see package cluster.

const (
	errCrossSlot command.Error = "CROSSSLOT Keys in request don't hash to the same slot"
	// Also where keys of one command differ, as in Redis.
	errScriptForeign   command.Error = "ERR Script attempted to access a non local key in a cluster node"
	errScriptCrossSlot command.Error = "ERR Script attempted to access keys that do not hash to the same slot"
)

// startCluster makes the server the node of a cluster, if the configuration asks for it.
func (srv *Server) startCluster(set *config.Settings) {
	if set.Cluster.Enabled {
		srv.cluster = &cluster.Node{ID: newRunID(), ShardID: newRunID()}
		srv.countSlots(set)
	}
}

// countSlots begins or ends to count what commands cost for each slot, as the settings say.
func (srv *Server) countSlots(set *config.Settings) {
	switch {
	case srv.cluster == nil:
	case !set.Cluster.SlotStats:
		srv.cluster.Stats.Store(nil)
	case srv.cluster.Stats.Load() == nil:
		srv.cluster.Stats.Store(new(cluster.SlotStats))
	}
}

// Node implements cluster.Host.
func (srv *Server) Node() *cluster.Node { return srv.cluster }

// Mode is what clients are told that the server is.
func (srv *Server) Mode() string {
	if srv.cluster != nil {
		return "cluster"
	}
	return "standalone"
}

// oneSlot notes the slot of a transaction, and reports whether it has one at most.
func (s *Session) oneSlot(queue []queuedCommand) bool {
	s.hashSlot = cluster.NoSlot
	for _, q := range queue {
		slot, ok := cluster.SlotOfKeys(q.cmd, q.args)
		switch {
		case !ok:
			return false
		case slot == cluster.NoSlot:
		case s.hashSlot == cluster.NoSlot:
			s.hashSlot = slot
		case s.hashSlot != slot:
			return false
		}
	}
	return true
}
