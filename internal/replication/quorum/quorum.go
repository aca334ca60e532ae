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
	// Addr is where the server's peers reach it, a host and a port. It is also its name in the group, for ever.
	Addr string
	// Peers are the addresses of the servers that form the group together if none has anything yet, this one among them.
	// Later they are where the group is looked for.
	Peers []string
	// Listener takes the connections of the peers, and the node closes it; nil is TCP at Addr. Dial connects to one.
	Listener net.Listener
	Dial     func(addr string, timeout time.Duration) (net.Conn, error)
	// Connections is how many connections of peers there may be at the same time; 0 is no limit. Beyond that the one that
	// has been silent for longest is closed.
	Connections int
	// TLS is for the connections that peers open; nil is plain text. Dial encrypts those that it opens itself.
	TLS *tls.Config
	// Timeout is for how long a leader may be silent before another is elected: from it on to twice as
	// long. It must be the same on all servers.
	Timeout time.Duration
	// Quorum has replies wait until a majority has confirmed the leader, instead of a lease.
	Quorum bool
	// Serve takes a connection that another server has opened with Node.Dial, which is closed when it returns; nil refuses
	// all.
	Serve func(*peer.Conn)
	// Client is the address for clients that peers learn, a host and a port.
	Client string
	// Sentinel is where clients of Redis Sentinel reach it, "" if they do not.
	Sentinel string
	// FS and Dir are the place of the log and of files with copies. State is the group's state in the store, nil if the data
	// belonged to no group.
	FS    disk.FS
	Dir   string
	State []byte
	// SegmentSize is how long a segment of the log is, in bytes; 0 means 64 MiB.
	SegmentSize int64
	// HasData says that the server had data before it belonged to a group. Of the servers that form one only one may.
	HasData bool
	// Log takes what happens; it must not be nil.
	Log *slog.Logger
	// Waited is journal.Options.Waited.
	Waited func(forWhat journal.Wait, took time.Duration)
}

// Node is a server's part in the group: its journal, as persist.Options.Group wants it. Open makes it, Start has it take
// part.
type Node interface {
	journal.Journal
	// Start has the node take part in the group, as soon as it is known that it may.
	Start(m Machine) error
	// Leave ends that. Afterwards nothing of the Machine is called, and connections of Dial are closed.
	Leave()
	// Status returns how the node and its group are.
	Status() Status
	// LastContact is when a follower has last heard of the leader.
	LastContact() time.Time
	// Dial connects to another server, whose Options.Serve gets the connection.
	Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error)
	// Detach says that a connection that Options.Serve has been given counts elsewhere from now on, as that of a client.
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
	// Voter says that the server counts for majorities; otherwise it is still getting the data.
	Voter bool
	// Client is where clients reach it, "" if that is not known, and Sentinel where clients of Redis Sentinel do, "" also
	// if they do not.
	Client, Sentinel string
	// Online says that it has answered lately.
	Online bool
	// Index is the entry that it has done last.
	Index uint64
}

// Status is how a node and its group are.
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

// ErrNotLeader is returned by what only a leader can do.
var ErrNotLeader = errors.New("this server does not lead its group")

// ErrNone is why a group cannot be joined in a program that has none.
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
