package server

import (
	"net"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
)

// The methods of the server that package internal/doors needs: limits, and the other servers with the same data.

// doorsHost is the server as doors.Host.
type doorsHost Server

// Refuse implements doors.Host.
func (h *doorsHost) Refuse(count int64, protected bool) string {
	return (*Server)(h).refuse(count, protected)
}

// Reject implements doors.Host.
func (h *doorsHost) Reject() { h.stats.rejected.Add(1) }

// DoorAddr returns the address on which a door listens, nil if it is not open.
func (srv *Server) DoorAddr(name string) net.Addr { return srv.doors.Addr(name) }

// CloseDoor implements skein.Host and spiderq.Host.
func (srv *Server) CloseDoor(name, directive, value string) { srv.doors.End(name, directive, value) }

// Topology implements doors.Host.
func (h *doorsHost) Topology(set *config.Settings) door.Topology {
	srv := (*Server)(h)
	if srv.group.members.Configured() {
		t := srv.group.members.Topology(set, func() door.Member {
			return door.Member{Addr: srv.clientAddr(set), Sentinel: srv.sentinelAddr(set)}
		})
		t.Shards = srv.shards.Generation()
		return t
	}
	self := door.Member{ID: srv.runID, Online: true, Voter: true, Addr: srv.clientAddr(set), Sentinel: srv.sentinelAddr(set)}
	list, offset := srv.followed.Status()
	self.Offset = offset
	var master []door.Member
	if link, follows := srv.Master(); follows {
		self.Offset = link.Offset
		master = []door.Member{{Addr: net.JoinHostPort(link.Host, strconv.Itoa(link.Port)), Master: true,
			Online: link.State == replication.LinkConnected || link.State == replication.LinkSync, Offset: link.Offset}}
	} else {
		self.Master = true
	}
	members := append([]door.Member{self}, master...)
	for _, f := range list {
		if f.Port != 0 {
			members = append(members, door.Member{Addr: net.JoinHostPort(f.Host, strconv.FormatInt(f.Port, 10)),
				Online: f.State == replication.FollowerOnline, Offset: f.Acked})
		}
	}
	return door.Topology{Members: members, Timeout: time.Duration(set.Replication.Timeout) * time.Second}
}

// Owner implements doors.Host.
func (h *doorsHost) Owner(key string, set *config.Settings) string {
	if id, elsewhere := h.shards.LeaderWith(key); elsewhere {
		return id
	}
	return h.Topology(set).Master()
}

// clientAddr returns the address for clients, which other servers announce; without the host if no directive has it.
func (srv *Server) clientAddr(set *config.Settings) string {
	port := set.AnnouncedPort()
	if set.Replication.AnnouncePort == 0 && port == 0 {
		for _, a := range srv.Addrs() { // tests listen on a port that the system chooses
			if tcp, ok := a.(*net.TCPAddr); ok {
				port = tcp.Port
			}
		}
	}
	return net.JoinHostPort(announcedHost(set), strconv.Itoa(port))
}

// announcedHost returns the host that the server announces; "" if no directive sets it.
func announcedHost(set *config.Settings) string {
	if set.Replication.AnnounceIP != "" {
		return set.Replication.AnnounceIP
	}
	host, _, _ := net.SplitHostPort(set.Raft.Addr)
	return host
}

// sentinelAddr is clientAddr for clients of Redis Sentinel; "" if the server does not serve them.
func (srv *Server) sentinelAddr(set *config.Settings) string {
	port := set.Registered["sentinel-port"]
	if port == "" || port == "0" {
		return ""
	}
	return net.JoinHostPort(announcedHost(set), port)
}
