// Package quorum is the contract between a server and the group that shares its journal: the group's members and leader as
// the server sees them, and the methods that the group calls. Package replication/raft implements it with a consensus
// library and registers itself, so that programs without groups do not link that library.
package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
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
	// Secret returns what servers prove to each other that they know; "", or nil, is nothing.
	Secret func() string
	// Protected says that connections of servers that prove nothing, neither with TLS nor with a secret, are accepted
	// only from the machines of known servers: this one, Peers, the members, and those of Known. Both may be nil.
	Protected func() bool
	Known     func() []string
	// AutoJoin says that servers that join by themselves, or have joined, count for majorities once they have all data.
	// Otherwise only Peers do, and servers that Add has named. nil is false.
	AutoJoin func() bool
	// Witness says that the server votes and has no data: it executes no entry, and never leads. It needs an empty directory
	// the first time.
	Witness bool
	// Zone returns the zone of the server, such as a data centre, "" without one. LeaderZones returns the zones whose servers
	// should lead, the most preferred first. Both may be nil.
	Zone        func() string
	LeaderZones func() []string
	// WriteProblem returns why the server refuses changes at the moment, "" if it does not. It is called once the server takes
	// part. nil never refuses.
	WriteProblem func() string
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
	// Trailing returns how many bytes of entries the log keeps that are in the store, for servers that were offline for a
	// while. nil is no limit.
	Trailing func() int64
	// HasData says that the server has data from before it belonged to a group. Only one of the servers that form a
	// group may.
	HasData bool
	// Log is the server's log; it must not be nil.
	Log *slog.Logger
	// Waited is journal.Options.Waited.
	Waited func(forWhat journal.Wait, took time.Duration)
}

// DamagedError says that the log of a server is damaged, while the others of its group have a leader: the server can begin again
// with an empty directory.
type DamagedError struct {
	Leader string // its address
	Err    error
}

func (e *DamagedError) Error() string { return e.Err.Error() }

func (e *DamagedError) Unwrap() error { return e.Err }

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
	// Elected reports whether the server was elected: it leads or is about to, unless it has just lost the lead.
	Elected() bool
	// Dial connects to another server, whose Options.Serve gets the connection.
	Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error)
	// Detach stops counting a connection of Options.Serve as one of a peer; from now on it counts as a client's.
	Detach(conn *peer.Conn)
	// Add adds a server to the group: it gets a copy of the data, and votes when it has it. With o.Learner it never votes,
	// and a voter becomes a learner if a majority of the remaining voters is online. A server that answers and belongs to
	// another group is refused. Remove removes a server. Transfer hands the lead over to a server, to any one with "". Only
	// the leader can do these: see ErrNotLeader.
	Add(addr string, o AddOptions) error
	Remove(addr string) error
	Transfer(addr string) error
	// EntryAt returns an entry of the log, as Status numbers them, that has all records before a position in it or before it; 0
	// while they are not committed.
	EntryAt(lsn uint64) uint64
	// AwaitEntry waits until the server has executed an entry.
	AwaitEntry(ctx context.Context, entry uint64) error
	// Holders returns how many other servers have an entry of the log with its data on their disks, and Committers how many
	// have each entry at least when it is committed: half of the voters, less the witnesses. Both are 0 at a follower.
	Holders(entry uint64) int
	Committers() int
	// Links returns the open connections to and from other servers, also of other shards, except those for a single question
	// or a client. They are sorted by address and time.
	Links() []Link
	// Check asks all servers of the group for their state, and returns the problems.
	Check() (problems []string)
}

// AddOptions say how a server is added.
type AddOptions struct {
	Learner bool // it stays a learner, which has all data and does not count for majorities
	Online  bool // it must run
}

// Change is a change of the group that only the leader can make: a method of Node. Other servers send it to the leader as
// this text.
type Change string

// The changes.
const (
	Add              Change = "add"
	AddOnline        Change = "add-online"
	AddLearner       Change = "add-learner"
	AddLearnerOnline Change = "add-learner-online"
	Remove           Change = "remove"
	Transfer         Change = "transfer"
)

var changes = map[Change]func(n Node, addr string) error{
	Add:              func(n Node, addr string) error { return n.Add(addr, AddOptions{}) },
	AddOnline:        func(n Node, addr string) error { return n.Add(addr, AddOptions{Online: true}) },
	AddLearner:       func(n Node, addr string) error { return n.Add(addr, AddOptions{Learner: true}) },
	AddLearnerOnline: func(n Node, addr string) error { return n.Add(addr, AddOptions{Learner: true, Online: true}) },
	Remove:           Node.Remove,
	Transfer:         Node.Transfer,
}

// Known reports whether there is such a change.
func (c Change) Known() bool { return changes[c] != nil }

// Make makes a change, which must be known, about the server with an address.
func (c Change) Make(n Node, addr string) error { return changes[c](n, addr) }

// Role is what a server is in its group. All but voters and witnesses are learners: they have all data, and do not count for
// majorities.
type Role string

// The roles.
const (
	Voter   Role = "voter"   // it counts for majorities, and may lead
	Witness Role = "witness" // it counts for majorities, and has no data
	Joining Role = "joining" // it becomes a voter once it has all data
	Learner Role = "learner" // it stays a learner
	Waiting Role = "waiting" // it has joined by itself, and waits until it is added
)

// Votes reports whether servers with this role count for majorities.
func (r Role) Votes() bool { return r == Voter || r == Witness }

// Member is a server of the group.
type Member struct {
	Addr string // its name, too
	Role Role
	// Zone is its zone, "" if it has none or is unknown.
	Zone string
	// Client is its address for clients, "" if unknown, and Sentinel the one for clients of Redis Sentinel, "" also
	// without one.
	Client, Sentinel string
	// Online says that it has answered recently.
	Online bool
	// Index is the last entry that it has applied.
	Index uint64
	// LogBytes is the length of its log, 0 if unknown.
	LogBytes int64
	// WriteProblem says why it refuses changes, "" if it does not.
	WriteProblem string
}

// CriticalZones returns the zones without which too few voters for a majority would be left, sorted. A voter without a zone
// counts as in a zone of its own, which is not returned.
func (s *Status) CriticalZones() (zones []string) {
	voters, in := 0, map[string]int{}
	for _, m := range s.Members {
		if m.Role.Votes() {
			voters++
			in[m.Zone]++
		}
	}
	for zone, n := range in {
		if zone != "" && voters-n <= voters/2 {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return zones
}

// Link is a connection to another server.
type Link struct {
	Addr    string // of the other server, its name
	Dialled bool   // this server has opened it
	Since   time.Time
}

// Status is the state of a node and its group.
type Status struct {
	Addr, State string // of this server: leader, follower, candidate, witness, learner, joining, removed, failed
	Leader      string // its address, "" without a leader
	LeaderAt    string // where clients reach it
	Term        uint64
	Committed   uint64 // index
	Applied     uint64
	LastContact time.Time // a follower's with the leader; zero for a leader
	Members     []Member  // by address
	LogBytes    int64     // length of the group's journal
	Err         error
}

// ErrNotLeader is the error of operations that only a leader can do.
var ErrNotLeader = errors.New("this server does not lead its group")

// ErrNone is the error of Open in a program without groups.
var ErrNone = errors.New(`this program has no groups of servers; one with import _ "github.com/atomredis/atomredis" has them`)

// Open opens the journal of the group. It exchanges nothing with peers before Start.
func Open(o Options) (Node, error) {
	if registered.Open == nil {
		return nil, ErrNone
	}
	return registered.Open(o)
}

// Implementation implements functions of this package.
type Implementation struct {
	Open    func(o Options) (Node, error)
	Read    func(s Stopped, do func(now int64, commands []byte) error) (Found, error)
	Recover func(r Recovery) (Found, error)
}

// registered is the program's implementation; its fields are nil without one.
var registered Implementation

// Register sets the program's implementation. Its package calls it in an init function.
func Register(i Implementation) { registered = i }
