// Package quorum is the contract between a server and the group that shares its journal: the group's members and leader as
// the server sees them, and the methods that the group calls. Package replication/raft implements it with a consensus
// library and registers itself, so that programs without groups do not link that library.
package quorum

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

// Options describe the group.
type Options struct {
	// Addr is the server's address for its peers, a host and a port. It is also its permanent name in the group.
	Addr string
	// Peers are the addresses of the servers that form a new group, including this one. Later the group is searched
	// at these addresses.
	Peers []string
	// Listener accepts the connections of peers, and the node closes it; nil is TCP at Addr. Dial connects to a
	// peer.
	Listener net.Listener
	Dial     func(addr string, timeout time.Duration) (net.Conn, error)
	// Connections limits the connections of peers; 0 is no limit. Above the limit, the connection that has been
	// silent for longest is closed.
	Connections int
	// TLS is for the connections that peers open; nil is plain text. Dial encrypts those that it opens itself.
	TLS *tls.Config
	// Timeout is the silence of a leader after which another one is elected, within one more Timeout. It must be the
	// same on all servers.
	Timeout time.Duration
	// Quorum makes replies wait until a majority has confirmed the leader, instead of a lease.
	Quorum bool
	// Serve serves a connection that another server has opened with Node.Dial; the connection is closed when Serve
	// returns. nil refuses all connections.
	Serve func(*peer.Conn)
	// Client is the address for clients that peers learn, a host and a port.
	Client string
	// Sentinel is the address for clients of Redis Sentinel, "" without one.
	Sentinel string
	// FS and Dir are the place of the log and of files with copies. State is the group's state in the store, nil if
	// the data has never belonged to a group.
	FS    disk.FS
	Dir   string
	State []byte
	// SegmentSize is the length of a segment of the log in bytes; 0 means 64 MiB.
	SegmentSize int64
	// HasData says that the server has data from before it belonged to a group. Only one of the servers that form a
	// group may.
	HasData bool
	// Log is the server's log; it must not be nil.
	Log *slog.Logger
	// Waited is journal.Options.Waited.
	Waited func(forWhat journal.Wait, took time.Duration)
}

// Node is a server's part in the group: its journal, as persist.Options.Group needs it. Open makes it, and Start
// lets it take part.
type Node interface {
	journal.Journal
	// Start lets the node take part in the group, once it is known that it may.
	Start(m Machine) error
	// Leave ends the node's part in the group. Afterwards no method of the Machine is called, and connections of
	// Dial are closed.
	Leave()
	// Status returns the state of the node and its group.
	Status() Status
	// LastContact is the time of a follower's last contact with the leader.
	LastContact() time.Time
	// Dial connects to another server, whose Options.Serve gets the connection.
	Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error)
	// Detach stops counting a connection of Options.Serve as one of a peer; from now on it counts as a client's.
	Detach(conn *peer.Conn)
	// Add adds a server to the group: it gets a copy of the data, and votes when it has it. Remove removes a server. Transfer
	// hands the lead over to a server, to any one with "". Only the leader can do these: see ErrNotLeader.
	Add(addr string) error
	Remove(addr string) error
	Transfer(addr string) error
	// Check asks all servers of the group for their state, and returns the problems.
	Check() (problems []string)
}

// Member is a server of the group.
type Member struct {
	Addr string // its name, too
	// Voter says that the server counts for majorities; otherwise it is still copying the data.
	Voter bool
	// Client is its address for clients, "" if unknown, and Sentinel the one for clients of Redis Sentinel, "" also
	// without one.
	Client, Sentinel string
	// Online says that it has answered recently.
	Online bool
	// Index is the last entry that it has applied.
	Index uint64
}

// Status is the state of a node and its group.
type Status struct {
	Addr, State string // of this server: leader, follower, candidate, learner, joining, removed, failed
	Leader      string // its address, "" without a leader
	LeaderAt    string // where clients reach it
	Term        uint64
	Committed   uint64 // index
	Applied     uint64
	LastContact time.Time // a follower's with the leader; zero for a leader
	Members     []Member  // by address
	Err         error
}

// ErrNotLeader is the error of operations that only a leader can do.
var ErrNotLeader = errors.New("this server does not lead its group")

// ErrNone is the error of Open in a program without groups.
var ErrNone = errors.New(`this program has no groups of servers; one with import _ "github.com/atomredis/atomredis" has them`)

// Open opens the journal of the group. It exchanges nothing with peers before Start.
func Open(o Options) (Node, error) {
	if open == nil {
		return nil, ErrNone
	}
	return open(o)
}

// open is the registered implementation of Open; nil without one.
var open func(o Options) (Node, error)

// Register makes a function that of Open. Its package calls it in an init function.
func Register(f func(o Options) (Node, error)) { open = f }
