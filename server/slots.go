package server

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/migrate"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/command"
	clustercommands "github.com/atomredis/atomredis/internal/commands/cluster"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
)

// This file is the server as the node of a cluster; see package cluster.

const (
	errCrossSlot command.Error = "CROSSSLOT Keys in request don't hash to the same slot"
	// Also where keys of one command differ, as in Redis.
	errScriptForeign   command.Error = "ERR Script attempted to access a non local key in a cluster node"
	errScriptCrossSlot command.Error = "ERR Script attempted to access keys that do not hash to the same slot"
	errClusterDown     command.Error = "CLUSTERDOWN The cluster is down"
	errNotServed       command.Error = "CLUSTERDOWN Hash slot not served"
	errTryAgain        command.Error = "TRYAGAIN Who serves the slot is changing"
)

// startCluster makes the server the node of a cluster, if the configuration asks for it.
func (srv *Server) startCluster(set *config.Settings) {
	if !set.Cluster.Enabled {
		return
	}
	srv.cluster = &cluster.Node{ID: replication.NewID(), Run: replication.NewID()}
	srv.clusterShard = replication.NewID()
	if set.Raft.Addr != "" {
		srv.cluster.ID = shards.Name("node", set.Raft.Addr)
		peers := slices.Clone(set.Raft.Peers)
		slices.Sort(peers)
		srv.clusterShard = shards.Name("shard", strings.Join(peers, ","))
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

// ClusterView implements cluster.Host.
func (srv *Server) ClusterView(local string) *cluster.View {
	set := srv.config.Get()
	own := cluster.ShardView{ID: srv.clusterShard, Slots: cluster.AllSlots}
	if srv.shards == nil {
		own.Members = []cluster.Member{{ID: srv.cluster.ID, Announcement: cluster.Announce(set, local),
			Myself: true, Leads: true, Online: true}}
		return &cluster.View{Shards: []cluster.ShardView{own}}
	}
	st := srv.shards.Now()
	own.ID, own.Slots, own.Members = st.ID, st.Owners.SlotsOf(st.ID), srv.group.clusterMembers(set)
	for _, c := range st.Record.Claims {
		own.Epoch = max(own.Epoch, c.Epoch)
	}
	return &cluster.View{Shards: append([]cluster.ShardView{own}, srv.shards.View(st)...)}
}

// Foreign implements command.Host.
func (srv *Server) Foreign() func(key []byte) bool {
	if srv.shards == nil {
		return nil
	}
	slots := srv.shards.Now().Foreign
	if slots == nil {
		return nil
	}
	return func(key []byte) bool { return slots.Has(cluster.SlotOf(key)) }
}

// ForeignLen implements command.Host.
func (srv *Server) ForeignLen(g *engine.Guard, db int) (n int) {
	if srv.shards == nil {
		return 0
	}
	slots := srv.shards.Now().Foreign
	if slots == nil {
		return 0
	}
	for slot := range cluster.Slots {
		if slots.Has(slot) {
			n += g.SlotLen(db, slot)
		}
	}
	return n
}

// Shards implements cluster.Host.
func (srv *Server) Shards() clustercommands.Shards {
	if srv.shards == nil {
		return nil
	}
	return clusterShards{srv.shards, srv.migrations}
}

// clusterShards implements clustercommands.Shards.
type clusterShards struct {
	*shards.Shards
	*migrate.Migrations
}

// clusterMembers are the servers of the group as nodes of a cluster, the leader first. One that led last and cannot be
// reached still counts as the leader, until there is another one.
func (g *group) clusterMembers(set *config.Settings) []cluster.Member {
	st := g.status.Load()
	leader := g.lastLeader.Load()
	var list []cluster.Member
	for _, m := range st.Members {
		c := cluster.Member{ID: shards.Name("node", m.Addr), Announcement: shards.AnnouncementAt(m.Client, m.Addr),
			Myself: m.Addr == st.Addr, Online: m.Online, Offset: int64(m.Index), Leads: leader != nil && m.Addr == *leader}
		c.Preferred = set.Cluster.PreferredEndpoint
		if c.Myself {
			c.Hostname = set.Cluster.AnnounceHostname
		}
		if c.Leads && st.Leader == "" {
			c.Online = false
		}
		list = append(list, c)
	}
	if len(list) == 0 { // it has not joined yet
		list = []cluster.Member{{ID: g.srv.cluster.ID, Announcement: shards.AnnouncementAt(g.srv.clientAddr(set), st.Addr), Myself: true}}
	}
	shards.LeaderFirst(list)
	return list
}

func movedTo(slot int, addr string) command.Error {
	return command.Error("MOVED " + strconv.Itoa(slot) + " " + addr)
}

// redirects reports whether an error tells clients of clusters to try elsewhere, or later.
func redirects(e command.Error) bool {
	return strings.HasPrefix(string(e), "MOVED ") || strings.HasPrefix(string(e), "CLUSTERDOWN ") || e == errTryAgain
}

// Mode is what clients are told that the server is.
func (srv *Server) Mode() string {
	if srv.cluster != nil {
		return "cluster"
	}
	return "standalone"
}

// slotOf is cluster.SlotOfKeys. Where there are other shards it matters too which keys commands use without having them
// among their arguments.
func (srv *Server) slotOf(cmd *command.Command, args [][]byte) (slot int, ok bool) {
	slot, ok = cluster.SlotOfKeys(cmd, args)
	if cmd.DerivedKeys == nil || !ok || srv.shards == nil || len(srv.shards.Record().Others) == 0 {
		return slot, ok
	}
	cmd.DerivedKeys(args, func(key []byte) {
		switch n := cluster.SlotOf(key); {
		case slot == cluster.NoSlot:
			slot = n
		case slot != n:
			ok = false
		}
	})
	return slot, ok
}

// oneSlot notes the slot of a transaction, and reports whether it has one at most.
func (s *Session) oneSlot(queue []queuedCommand) bool {
	s.hashSlot = cluster.NoSlot
	for _, q := range queue {
		slot, ok := s.srv.slotOf(q.cmd, q.args)
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
