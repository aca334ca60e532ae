package server

import (
	"errors"
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
	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// This file has the methods of the server as the node of a cluster; see package cluster.

// startCluster makes the server the node of a cluster if cluster mode is on.
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

// followCosts applies changes of the settings about logs, latency and slots to the measurement of commands.
func (srv *Server) followCosts() {
	srv.config.Follow(srv.sessions.Timing.Set, "slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold",
		"latency-tracking", "cluster-slot-stats-enabled", "commandlog-request-larger-than", "commandlog-large-request-max-len",
		"commandlog-reply-larger-than", "commandlog-large-reply-max-len")
	srv.config.Follow(srv.countSlots, "cluster-slot-stats-enabled")
}

// countSlots begins or ends, as the settings say, to count the cost of commands for each slot.
func (srv *Server) countSlots(set *config.Settings) {
	n, want := srv.cluster, set.Cluster.SlotStats
	if n == nil {
		return
	}
	had := config.SlotStats(n.Counted.Swap(uint32(want)))
	switch {
	case !want.OfCommands():
		n.Stats.Store(nil)
	case !had.OfCommands():
		n.Stats.Store(new(cluster.SlotStats))
	}
	if (had^want)&config.SlotMemory != 0 {
		srv.ks.CountSlotMemory(want&config.SlotMemory != 0)
	}
}

// Node implements cluster.Host.
func (srv *Server) Node() *cluster.Node { return srv.cluster }

// ClusterView implements cluster.Host.
func (srv *Server) ClusterView(local string) *cluster.View {
	set := srv.config.Get()
	own := cluster.ShardView{ID: srv.clusterShard}
	if srv.shards == nil {
		own.Slots = srv.cluster.Slots()
		own.Members = []cluster.Member{{ID: srv.cluster.ID, Announcement: cluster.Announce(set, local),
			Myself: true, Leads: true, Online: true}}
		return &cluster.View{Shards: []cluster.ShardView{own}}
	}
	st := srv.shards.Now()
	own.ID, own.Slots, own.Members = st.ID, st.Owners.SlotsOf(st.ID), srv.group.members.Cluster(set, func() string { return srv.clientAddr(set) })
	for _, c := range st.Record.Claims {
		own.Epoch = max(own.Epoch, c.Epoch)
	}
	return &cluster.View{Shards: append([]cluster.ShardView{own}, srv.shards.View(st)...)}
}

// SlotsGone implements cluster.Host.
func (srv *Server) SlotsGone(slots *cluster.SlotSet) { srv.sessions.SlotsLost(slots) }

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
	return clusterShards{srv.shards, srv.migrations, srv}
}

// clusterShards implements clustercommands.Shards.
type clusterShards struct {
	*shards.Shards
	*migrate.Migrations
	srv *Server
}

// errElects is the error of CLUSTER FAILOVER without a leader.
var errElects = errors.New("the shard has no leader, and elects one by itself")

// TakeLead implements clustercommands.Shards.
func (s clusterShards) TakeLead() error {
	err := s.srv.ChangeGroup(quorum.Transfer, s.srv.group.members.Status().Addr)
	if errors.Is(err, quorum.ErrNotLeader) {
		return errElects
	}
	return err
}

// Links implements clustercommands.Shards.
func (s clusterShards) Links() (list []cluster.Link) {
	node := s.srv.group.node()
	if node == nil { // the server starts
		return nil
	}
	for _, l := range node.Links() {
		list = append(list, cluster.Link{Node: shards.Name("node", l.Addr), Dialled: l.Dialled, Since: l.Since})
	}
	return list
}

func movedTo(slot int, addr string) command.Error {
	return command.Error("MOVED " + strconv.Itoa(slot) + " " + addr)
}

// Mode returns the server's mode as clients see it.
func (srv *Server) Mode() string {
	if srv.cluster != nil {
		return "cluster"
	}
	return "standalone"
}
