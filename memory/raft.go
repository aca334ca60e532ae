package memory

import (
	"net"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/server"
)

// Raft makes a server one of a group that shares what it has: what is acknowledged is on the disks of a majority, and if
// the one that leads fails another one does.
type Raft struct {
	// Addr is where the others reach this server, a host and a port. It is its name in the group, for ever.
	Addr string
	// Peers are the addresses of all servers that form the group, this one among them; the same for each.
	Peers []string
	// Listener takes the connections of the others, and the server closes it; nil is TCP at Addr.
	Listener net.Listener
	// Dial connects to another one; nil is TCP.
	Dial func(addr string, timeout time.Duration) (net.Conn, error)
}

// own returns the directives that it stands for.
func (r *Raft) own() []ownOption {
	peers := strings.Join(r.Peers, ",")
	return []ownOption{
		{"Raft.Addr", "raft-addr", r.Addr, func(s *config.Settings) string { return s.Raft.Addr }},
		{"Raft.Peers", "raft-peers", peers, func(s *config.Settings) string { return strings.Join(s.Raft.Peers, ",") }},
	}
}

// network returns how the server reaches the others.
func (r *Raft) network() server.GroupNetwork {
	if r == nil {
		return server.GroupNetwork{}
	}
	return server.GroupNetwork{Listener: r.Listener, Dial: r.Dial}
}
