package session

import (
	"log/slog"
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/migrate"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/psync"
	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/internal/testhook"
	"github.com/atomredis/atomredis/persist"
)

// Shared is what all sessions of one server share. The server makes it with New, sets its parts, and has it reach every
// session. The parts are concrete, because sessions use them for every command.
type Shared struct {
	// The server sets what follows before the first session that needs it, and then leaves it.

	Host     Host
	Log      *slog.Logger
	Config   *config.Config
	Keyspace *engine.Keyspace
	Table    *command.Table
	Foreign  []*command.Command // those that only doors have
	Users    *acl.Users
	Scripts  *scripts.Scripts
	Services []command.Service // by their IDs
	// ServiceEvents are the classes of events that any of them hears.
	ServiceEvents engine.EventClass
	Storage       *persist.Storage // nil if the data is in memory only
	Followed      *psync.Followers
	Replica       *psync.Replica
	Cluster       *cluster.Node       // nil if cluster mode is off
	Shards        *shards.Shards      // nil unless the server belongs to a group
	Migrations    *migrate.Migrations // likewise
	Slow          func(SlowCommand)   // called for each command in the slow log; may be nil
	Relieve       func()              // see resp.Parser.Many
	Hook          *testhook.Hook      // nil but in tests

	// Sessions and the server use what follows.

	Tracking     *tracking.Table
	PubSub       pubsub.Hub
	Clients      Register
	Pause        Pause
	ReplyBuffers ReplyBuffers
	Timing       Timing
	Limits       Limits
	Counters     Counters
	CommandStats stats.Commands
	CommandLogs  [stats.LogKinds]stats.CommandLog
	Latency      stats.Latency

	// Restricted says that the state of the storage, or of the replica, keeps some commands from running; see
	// Host.Restriction.
	Restricted atomic.Bool
	// Tiered says that values leave memory when it is full.
	Tiered atomic.Bool
	// Following says that another server leads the group: only what the group agrees on changes anything. It changes under a
	// guard over everything.
	Following atomic.Bool
	// Forwards is replicated-proxy: a follower forwards commands that only the leader can execute.
	Forwards atomic.Bool
	// DoorEvents are an engine.EventClass: what clients of doors can hear of.
	DoorEvents atomic.Uint32
	// SampleDue is when Host.Sample is to be called, in ms since 1970.
	SampleDue atomic.Int64
	// Ending is set before scripts are stopped: no client may see a command refused for that, and a later one done.
	Ending atomic.Bool

	monitors   monitors
	offloads   offloads
	handlers   handlers // of custom commands
	unreadable unreadable
	tickBase   time.Time
}

// Host is what the server does for its sessions, beside what commands need of it. Its methods may be called from any
// goroutine.
type Host interface {
	command.Host
	// Restriction returns the error that the state of the storage, or of the replica, has for a command, "" if it may run.
	// writes says that it may change something; flags are those of the command, or of the transaction that it executes.
	Restriction(cmd *command.Command, flags command.Flag, writes bool) command.Error
	// MasterAddr returns where clients reach the server whose data this one has; ok is false if there is none.
	MasterAddr() (host string, port int, ok bool)
	// Elsewhere returns the error that names the server of a slot which this one does not serve. reads says that the command
	// only reads and that the client has sent READONLY, so that a follower serves it too.
	Elsewhere(slot int, reads bool) command.Error
	// NewForwarder returns a connection for the client to the leader of the group.
	NewForwarder(s *Session) Forwarder
	// MakeRoom evicts keys until data and clients are within maxmemory, or for as long as one command may. No guard may be
	// held.
	MakeRoom(now int64) Room
	// Sample notes how much there is to do, and when it is to be called next: Shared.SampleDue.
	Sample(now int64)
	// MaxClients returns how many clients there may be.
	MaxClients() int64
}

// Limits are settings that sessions read for every command, in bytes. 0 is none.
type Limits struct {
	Memory  atomic.Int64 // maxmemory
	Clients atomic.Int64 // maxmemory-clients
	Output  atomic.Int64 // OutputLimits.LeastHard
}

// Counters are those of INFO that sessions count. Those that grow with every command are kept elsewhere.
type Counters struct {
	BytesIn          atomic.Int64
	Expands, Shrinks atomic.Int64 // of clients' reply buffers
	Errors           stats.Errors
	Blocked          atomic.Int64              // a gauge
	InputTooLong     atomic.Int64              // clients that were closed because of what they had sent
	OutputTooLong    atomic.Int64              // and because of what they had not read
	Evicted          atomic.Int64              // clients that were disconnected because of maxmemory-clients
	TierWaits        atomic.Int64              // how often sessions waited for values
	Denied           [acl.Reasons]atomic.Int64 // what clients were not allowed
}

// Reset sets the counters to zero.
func (c *Counters) Reset() {
	c.Errors.Reset()
	for _, n := range []*atomic.Int64{&c.BytesIn, &c.Expands, &c.Shrinks, &c.InputTooLong, &c.OutputTooLong, &c.Evicted, &c.TierWaits} {
		n.Store(0)
	}
	for i := range c.Denied {
		c.Denied[i].Store(0)
	}
}

// New returns what the sessions of a new server share, without the parts that the server sets.
func New() *Shared {
	sh := &Shared{tickBase: time.Now()}
	sh.Tracking = tracking.New((*trackers)(sh))
	sh.handlers.number = serverNumbers.Add(1)
	return sh
}

// AwaitOffloaded waits for offloaded commands that still run. There are no sessions any more.
func (sh *Shared) AwaitOffloaded() { sh.offloads.close() }

// Ticks returns a monotonic time in ns. It is what commands are timed with: cheaper than the Clock, and never injected.
func (sh *Shared) Ticks() int64 { return int64(time.Since(sh.tickBase)) }

// MaxBulk is the longest string in bytes: proto-max-bulk-len, and so that an int can count its bits.
func (sh *Shared) MaxBulk() int { return min(sh.Config.Get().Clients.ProtoMaxBulkLen, math.MaxInt/8) }

// follows reports whether the data changes only as another server says.
func (sh *Shared) follows() bool { return sh.Replica.Following() || sh.Following.Load() }

// sample has the server note how much there is to do, about once a second.
func (sh *Shared) sample(now int64) {
	if now >= sh.SampleDue.Load() {
		sh.Host.Sample(now)
	}
}

// epoch is the journal's Epoch; without storage nothing is ever taken back.
func (sh *Shared) epoch() uint64 {
	if sh.Storage == nil {
		return 0
	}
	return sh.Storage.Epoch()
}

// UsedMemory returns how many bytes are in use by data and clients: what maxmemory is compared with, and what INFO and
// MEMORY STATS show, so that both speak of the same. What the process takes beside them is no part of it: garbage, the
// journal, the store, and what waits for replicas. Replies that are lent count once for all clients, and
// not at all as long as they are the value of a key, which counts itself.
func (sh *Shared) UsedMemory() int64 {
	return sh.Keyspace.UsedMemory() + sh.Keyspace.LentMemory() + sh.Clients.Memory() - sh.Clients.lent.Load()
}

// logPanic logs a panic of a handler: a bug, or a stored value that cannot be read.
func (sh *Shared) logPanic(cmd *command.Command, p any) {
	if e, ok := p.(*engine.LoadError); ok {
		if sh.unreadable.first(e.Key, sh.Keyspace.Now()) {
			sh.Log.Error("cannot read a stored value", "command", cmd.Name, "error", e)
		}
		return
	}
	sh.Log.Error("a command handler panicked", "command", cmd.Name, "panic", p, "stack", string(debug.Stack()))
}
