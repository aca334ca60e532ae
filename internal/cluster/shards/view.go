package shards

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
)

// View returns the other shards as CLUSTER SHARDS, SLOTS and NODES show them.
func (h *Shards) View(st *State) (list []cluster.ShardView) {
	preferred := h.o.Config.Get().Cluster.PreferredEndpoint
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range st.Record.Others {
		v := cluster.ShardView{ID: o.ID, Slots: st.Owners.SlotsOf(o.ID)}
		for _, c := range o.Claims {
			v.Epoch = max(v.Epoch, c.Epoch)
		}
		last := h.seen[o.ID]
		old := time.Since(last.at) > freshFor
		for _, m := range last.Members {
			w := cluster.Member{ID: Name("node", m.Addr), Announcement: AnnouncementAt(m.Client, m.Addr), Leads: m.Leads,
				Online: m.Online && !old, Offset: int64(m.Index)}
			w.Preferred = preferred
			v.Members = append(v.Members, w)
		}
		for _, addr := range o.Addrs {
			if len(last.Members) == 0 { // only the addresses for servers are known
				v.Members = append(v.Members, cluster.Member{ID: Name("node", addr), Announcement: AnnouncementAt("", addr)})
			}
		}
		if len(v.Members) == 0 {
			continue
		}
		LeaderFirst(v.Members)
		list = append(list, v)
	}
	return list
}

// LeaderOf returns the address of another shard's leader for clients, "" if it is unknown.
func (h *Shards) LeaderOf(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.seen[id].Members {
		if m.Leads {
			return m.Client
		}
	}
	return ""
}

// LeaderAddr returns the address of another shard's leader for servers, "" if it is unknown.
func (h *Shards) LeaderAddr(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[id].Leader
}

// LeaderWith returns the name of the leader of the shard that has the slot of a key, "" if none is known. elsewhere is false if
// that is this server's shard, and if h is nil.
func (h *Shards) LeaderWith(key string) (name string, elsewhere bool) {
	if h == nil || !h.o.Clustered {
		return "", false
	}
	now := h.Now()
	id, _ := now.Owners.Of(cluster.SlotOf([]byte(key)))
	if id == now.ID {
		return "", false
	}
	if leader := h.LeaderAddr(id); id != "" && leader != "" {
		name = Name("node", leader)
	}
	return name, true
}

// Generation returns a number that grows when slots move, and when another shard gets another leader. It is the same at all
// servers that know the same, and 0 if there are no other shards.
func (h *Shards) Generation() (n uint64) {
	r := h.Record()
	if len(r.Others) == 0 {
		return 0
	}
	n = latest(r.Claims)
	known := uint64(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range r.Others {
		n += latest(o.Claims) + h.seen[o.ID].Term
		if h.seen[o.ID].Leader == "" {
			known = 0
		}
	}
	return 2*n + known
}

// latest returns the latest epoch of claims.
func latest(claims []cluster.Claim) (epoch uint64) {
	for _, c := range claims {
		epoch = max(epoch, c.Epoch)
	}
	return epoch
}

// Name returns the constant name of a server or a shard: 40 hexadecimal digits, as in Redis.
func Name(what, of string) string {
	sum := sha1.Sum([]byte(what + " " + of))
	return hex.EncodeToString(sum[:])
}

// LeaderFirst sorts the leader of a shard before its other servers.
func LeaderFirst(list []cluster.Member) {
	slices.SortStableFunc(list, func(a, b cluster.Member) int {
		switch {
		case a.Leads == b.Leads:
			return 0
		case a.Leads:
			return -1
		}
		return 1
	})
}

// AnnouncementAt returns a server's announcement from its addresses for clients and for servers.
func AnnouncementAt(client, raft string) (a cluster.Announcement) {
	split := func(addr string) (string, int) {
		host, text, _ := net.SplitHostPort(addr)
		port, _ := strconv.Atoi(text)
		return host, port
	}
	a.IP, a.Port = split(client)
	_, a.BusPort = split(raft)
	return a
}
