// Package cluster is cluster mode (cluster-enabled yes): the server is the only node of a cluster and has all slots, or
// one of a group that shares a journal, which is a shard. Clients of clusters find what they look for, and what they
// must not do is refused as in a cluster of many nodes. The commands are in internal/commands/cluster.
package cluster

import (
	"net/netip"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/config"
)

// Node is the server as the node of a cluster. Its names are not changed.
type Node struct {
	ID string
	// Run is another name each time that the server starts.
	Run string
	// Stats are what commands cost for each slot; nil unless cluster-slot-stats-enabled is on.
	Stats atomic.Pointer[SlotStats]
}

// Announcement is where a client is told that the node is.
type Announcement struct {
	IP, Hostname string // "" if it is not known
	// Port and TLSPort are 0 if nothing listens there.
	Port, TLSPort, BusPort int
	// TLS says that the client has connected to TLSPort.
	TLS       bool
	Preferred config.ClusterEndpoint
}

// Announce returns what a client is told that has connected to the address local: that address, as far as the settings
// have nothing else to be announced. TLS is told apart by the ports that the settings have.
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

// ClientPort is the port for a client that connects as this one has.
func (a *Announcement) ClientPort() int {
	if a.TLS {
		return a.TLSPort
	}
	return a.Port
}

// Endpoint is what clients are to connect to; "" is the address that they have already.
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
