package raft

import (
	"cmp"
	"maps"
	"slices"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// lasting are the purposes of connections that servers keep. The others are for one question, or for one client.
var lasting = []peer.Purpose{peer.Raft, peer.Migration, peer.Broadcast, peer.BroadcastShard, peer.Search}

// link records a connection whose hello is done, with the name of the other server, until it is closed. One without a name
// is not recorded: it is from an old server.
func (m *mux) link(c *tracked, purpose peer.Purpose, addr string, dialled bool) {
	if addr == "" || !slices.Contains(lasting, purpose) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.open[c.Conn]; open {
		m.links[c] = quorum.Link{Addr: addr, Dialled: dialled, Since: c.since}
	}
}

// Links implements quorum.Node.
func (n *Node) Links() []quorum.Link {
	m := n.connections()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	list := slices.Collect(maps.Values(m.links))
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b quorum.Link) int { return cmp.Or(cmp.Compare(a.Addr, b.Addr), a.Since.Compare(b.Since)) })
	return list
}
