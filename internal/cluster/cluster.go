// Package cluster is cluster mode (cluster-enabled yes): The server is the only node of a cluster and has all slots,
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
	// Stats is the cost of commands by slot; nil unless cluster-slot-stats-enabled is on.
	Stats atomic.Pointer[SlotStats]
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
