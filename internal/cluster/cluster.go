// Package cluster is cluster mode (cluster-enabled yes): The server is the only node of a cluster and has all slots at first,
// or it belongs to a group that shares a journal, which is a shard. Cluster clients work as with a cluster of many
// nodes, and get the same errors. The commands are in internal/commands/cluster.
package cluster

import (
	"net/netip"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/config"
)

// Node is the server as a node of a cluster. Its names never change.
type Node struct {
	ID string
	// Run is a new name for each start of the server.
	Run string
	// Stats is the cost of commands by slot; nil unless cluster-slot-stats-enabled has one that needs it.
	Stats atomic.Pointer[SlotStats]
	// Counted is the config.SlotStats of cluster-slot-stats-enabled.
	Counted atomic.Uint32
	// free has the slots that a single node has unassigned, nil if it has all slots. A group stores its slots in its journal.
	free atomic.Pointer[SlotSet]
}

// Serves reports whether the node, as the only one of its cluster, has a slot.
func (n *Node) Serves(slot int) bool {
	free := n.free.Load()
	return free == nil || !free.Has(slot)
}

// Slots returns the slots that the node has as the only one of its cluster.
func (n *Node) Slots() SlotSet {
	free := n.free.Load()
	if free == nil {
		return AllSlots
	}
	return AllSlots.Without(free)
}

// Assign makes the only node of a cluster have free slots. If it has one of them already, nothing changes, and busy is the
// first such slot.
func (n *Node) Assign(slots SlotSet) (busy int, ok bool) {
	for {
		old, own := n.free.Load(), n.Slots()
		if both := own.Both(&slots); !both.Empty() {
			return both.Ranges()[0].First, false
		}
		var free *SlotSet
		if own = own.Union(&slots); own != AllSlots {
			rest := AllSlots.Without(&own)
			free = &rest
		}
		if n.free.CompareAndSwap(old, free) {
			return 0, true
		}
	}
}

// Unassign makes the only node of a cluster give up slots. If it does not have one of them, nothing changes, and missing is
// the first such slot.
func (n *Node) Unassign(slots SlotSet) (missing int, ok bool) {
	for {
		old := n.free.Load()
		free := slots
		if old != nil {
			if both := old.Both(&slots); !both.Empty() {
				return both.Ranges()[0].First, false
			}
			free = old.Union(&slots)
		}
		if n.free.CompareAndSwap(old, &free) {
			return 0, true
		}
	}
}

// Announcement is the node's address as a client gets it.
type Announcement struct {
	IP, Hostname string // "" if unknown
	// Port and TLSPort are 0 if nothing listens there.
	Port, TLSPort, BusPort int
	// TLS says that the client has connected to TLSPort.
	TLS       bool
	Preferred config.ClusterEndpoint
}

// Announce returns the announcement for a client that has connected to the address local. The settings override
// parts of local. The port in local decides whether the client uses TLS.
func Announce(set *config.Settings, local string) Announcement {
	o := &set.Cluster
	a := Announcement{Hostname: o.AnnounceHostname, Port: set.Network.Port, TLSPort: set.TLS.Port, BusPort: o.AnnounceBusPort,
		Preferred: o.PreferredEndpoint}
	if addr, err := netip.ParseAddrPort(local); err == nil {
		a.IP = addr.Addr().Unmap().WithZone("").String()
		if a.TLS = set.TLS.Port != 0 && int(addr.Port()) == set.TLS.Port; !a.TLS {
			a.Port = int(addr.Port())
		}
	}
	if o.AnnounceIP != "" {
		a.IP = o.AnnounceIP
	}
	if o.AnnouncePort != 0 {
		a.Port = o.AnnouncePort
	}
	if o.AnnounceTLSPort != 0 && a.TLSPort != 0 {
		a.TLSPort = o.AnnounceTLSPort
	}
	return a
}

// ClientPort is the port for clients that use TLS as this client does.
func (a *Announcement) ClientPort() int {
	if a.TLS {
		return a.TLSPort
	}
	return a.Port
}

// Endpoint is the host that clients should connect to; "" is the address that they already use.
func (a *Announcement) Endpoint() string {
	switch {
	case a.Preferred == config.EndpointIP:
		return a.IP
	case a.Preferred == config.EndpointUnknown:
		return ""
	case a.Hostname == "":
		return "?" // cluster-announce-hostname is not set
	}
	return a.Hostname
}
