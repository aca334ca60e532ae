package memory

import (
	"net"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/server"
)

// Raft makes a server a member of a group that replicates its data: acknowledged changes are on the disks of a
// majority, and another member takes over when the leader fails.
type Raft struct {
	// Addr is the host and port at which the other members reach this server. It is the member's permanent name in the
	// group.
	Addr string
	// Peers are the addresses of all members, including this one; the same list for each.
	Peers []string
	// Listener accepts the connections of other members; the server closes it. nil listens on TCP at Addr.
	Listener net.Listener
	// Dial connects to the member at addr; nil uses TCP.
	Dial func(addr string, timeout time.Duration) (net.Conn, error)
}

// own returns the directives that Raft sets.
func (r *Raft) own() []ownOption {
	peers := strings.Join(r.Peers, ",")
	return []ownOption{
		{"Raft.Addr", "raft-addr", r.Addr, func(s *config.Settings) string { return s.Raft.Addr }},
		{"Raft.Peers", "raft-peers", peers, func(s *config.Settings) string { return strings.Join(s.Raft.Peers, ",") }},
	}
}

// network returns the connections to other members.
func (r *Raft) network() server.GroupNetwork {
	if r == nil {
		return server.GroupNetwork{}
	}
	return server.GroupNetwork{Listener: r.Listener, Dial: r.Dial}
}
