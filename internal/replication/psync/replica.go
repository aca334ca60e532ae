package psync

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/persist/rdb"
)

// The replica's end: a goroutine, the link, connects to the master, receives a full synchronization, and executes the
// master's commands in their order, each command or transaction under one guard. They are journalled like commands of
// clients, so that a replica is as durable as a master. While a full synchronization replaces the data, clients get LOADING.
// After a broken connection or a restart the link asks for a partial synchronization (PSYNC).

// ReplicaHost is what Replica needs of the server.
type ReplicaHost interface {
	// BecameReplica is called when the server begins to follow a master, or changes its master. BecameMaster is called when
	// it stops. A guard over everything is held.
	BecameReplica()
	BecameMaster()
	// Dial connects to the master.
	Dial(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error)
	// NewExecutor returns an Executor that reports to by.
	NewExecutor(by Executing) Executor
	// MakeRoom evicts keys while maxmemory is exceeded.
	MakeRoom()
	// StorageFailure returns the error of the storage, nil if it works.
	StorageFailure() error
	// RDBLimits returns the limits of values in an RDB file.
	RDBLimits() *rdb.Limits
	// SpoolDir returns the directory for temporary files.
	SpoolDir() string
}

// Executor executes the commands of a master, without a user and without limits.
type Executor interface {
	// Execute executes commands under one guard, the first in database db. A command that fails does not stop the others.
	// It does nothing, and returns the error of ctx, if ctx has ended when it has the guard.
	Execute(ctx context.Context, db int, unit [][][]byte) error
	// Replace replaces the data by that of an RDB file. At its end it calls done, while the guard is held.
	Replace(ctx context.Context, file io.Reader, done func()) error
}

// Executing gets the reports of an Executor.
type Executing interface {
	// Refused is called with a command that has failed.
	Refused(args [][]byte, why string)
	// Executed is called at the end of Execute, while g is held; db is the database of the next command.
	Executed(g *engine.Guard, db int)
}

// Storage is what the package needs of the storage; persist.Storage implements it.
type Storage interface {
	engine.Journal
	HasJournal() bool
	// Appended and Durable are positions in the journal: its end, and the end of the part on the disk.
	Appended() uint64
	Durable() uint64
	// Replace calls fill, which replaces the data in memory, and then stores all of it at once. Save stores all data.
	Replace(fill func() error) error
	Save() error
}

// Replica is the server as a replica. Before Start only Following, Loading, SetLoading, JournalSynced and the counters may be
// used.
type Replica struct {
	// Received counts the bytes received from masters, and Unexpected their commands that have failed.
	Received, Unexpected atomic.Int64

	// MaxPause is the longest pause between two attempts to connect. Only tests change it.
	MaxPause time.Duration

	current atomic.Pointer[link] // nil on a master; changes only under a guard over everything
	loading atomic.Bool          // a full synchronization replaces the data

	host      ReplicaHost
	config    *config.Config
	log       *slog.Logger
	ks        *engine.Keyspace
	storage   Storage // nil if the data is in memory only
	followers *Followers

	mu     sync.Mutex      // protects what follows
	ended  <-chan struct{} // closed when the latest link has ended; nil if there was none
	closed bool
}

func (r *Replica) start(o *Options, f *Followers) {
	r.host, r.config, r.log, r.ks, r.storage, r.followers = o.Replica, o.Config, o.Log, o.Keyspace, o.Storage, f
	r.MaxPause = maxLinkPause
}

// Following reports whether the server follows a master.
func (r *Replica) Following() bool { return r.current.Load() != nil }

// Loading reports whether a full synchronization replaces the data.
func (r *Replica) Loading() bool { return r.loading.Load() }

// SetLoading sets what Loading returns; a group replaces data too.
func (r *Replica) SetLoading(loading bool) { r.loading.Store(loading) }

// Status returns the state of the link; ok is false on a master.
func (r *Replica) Status() (st replication.Link, ok bool) {
	if l := r.current.Load(); l != nil {
		return l.status(), true
	}
	return st, false
}

// Down reports whether the server is a replica whose link is not up.
func (r *Replica) Down() bool {
	st, ok := r.Status()
	return ok && st.State != replication.LinkConnected
}

// JournalSynced is called when more of the journal is on the disk: the master may wait for an acknowledgement.
func (r *Replica) JournalSynced() {
	if l := r.current.Load(); l != nil {
		l.journalSynced()
	}
}

// Follow makes the server a replica (REPLICAOF). The guard holds everything.
func (r *Replica) Follow(g *engine.Guard, host string, port int) { r.follow(g, host, port, false) }

// follow is Follow. handing says that the link sends PSYNC with FAILOVER: the other server is not a master yet.
func (r *Replica) follow(g *engine.Guard, host string, port int, handing bool) {
	r.config.SetReplicaOf(host, port)
	r.startFollowing(g, host, port, handing)
}

// startFollowing replaces the link, if there is one, by a link to host and port. The guard holds everything.
func (r *Replica) startFollowing(g *engine.Guard, host string, port int, handing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if old := r.current.Load(); old != nil {
		old.stop()
	}
	l := &link{r: r, addrs: addresses{given: net.JoinHostPort(host, strconv.Itoa(port))}, nudge: make(chan struct{}, 1),
		handing: handing}
	l.executor = r.host.NewExecutor(l)
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.now = replication.Link{Host: host, Port: port, Offset: r.followers.relayed(g), Down: time.Now()}
	before, ended := r.ended, make(chan struct{})
	r.ended = ended
	r.current.Store(l)
	g.SetReplica(true)
	r.host.BecameReplica()
	go func() {
		defer close(ended)
		defer l.stop()
		if before != nil {
			<-before
		}
		l.run()
	}()
}

// FollowConfigured makes the server a replica if its configuration has replicaof.
func (r *Replica) FollowConfigured() {
	of := r.config.Get().Replication.ReplicaOf
	if of.Host == "" {
		return
	}
	var g engine.Guard
	g.Lock(r.ks, engine.AllShards, r.ks.Now())
	defer g.Unlock()
	r.startFollowing(&g, of.Host, of.Port, false)
}

// Lead makes a replica a master, with the data that it has. The guard holds everything.
func (r *Replica) Lead(g *engine.Guard) {
	r.current.Load().stop()
	r.current.Store(nil)
	r.followers.Led(g)
	g.SetReplica(false)
	r.host.BecameMaster()
	r.config.SetReplicaOf("", 0)
}

// Close ends the link. The server remains a replica.
func (r *Replica) Close() {
	r.mu.Lock()
	r.closed = true
	ended := r.ended
	r.mu.Unlock()
	if l := r.current.Load(); l != nil {
		l.stop()
	}
	if ended != nil {
		<-ended
	}
}
