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

// Shared is what all sessions of one server share. The server makes it with New, sets its parts, and passes it to
// every session. The parts are concrete, because sessions use them for every command.
type Shared struct {
	// The server sets the following fields before the first session that needs them, and does not change them later.

	Host     Host
	Log      *slog.Logger
	Config   *config.Config
	Keyspace *engine.Keyspace
	Table    *command.Table
	Foreign  []*command.Command // commands that only doors have
	Users    *acl.Users
	Scripts  *scripts.Scripts
	Services []command.Service // by their IDs
	// ServiceEvents are the classes of events that any service receives.
	ServiceEvents engine.EventClass
	Storage       *persist.Storage // nil if the data is in memory only
	Followed      *psync.Followers
	Replica       *psync.Replica
	Cluster       *cluster.Node       // nil if cluster mode is off
	Shards        *shards.Shards      // nil unless the server belongs to a group
	Migrations    *migrate.Migrations // likewise
	Slow          func(SlowCommand)   // called for each command in the slow log; may be nil
	Relieve       func()              // see resp.Parser.Many
	Hook          *testhook.Hook      // nil except in tests

	// Sessions and the server use the following fields.

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

	// Restricted is set while the state of the storage, or of the replica, forbids some commands; see
	// Host.Restriction.
	Restricted atomic.Bool
	// Tiered is set if values leave memory when it is full.
	Tiered atomic.Bool
	// Following is set while another server leads the group: only committed entries change anything. It changes
	// under a guard over everything.
	Following atomic.Bool
	// Forwards is replicated-proxy: a follower forwards commands that only the leader can execute.
	Forwards atomic.Bool
	// DoorEvents is an engine.EventClass: the events that clients of doors can receive.
	DoorEvents atomic.Uint32
	// SampleDue is the time of the next call of Host.Sample, in ms since 1970.
	SampleDue atomic.Int64
	// Ending is set before scripts are stopped, so that no client sees a command refused for that reason and a later
	// one executed.
	Ending atomic.Bool

	monitors   monitors
	offloads   offloads
	handlers   handlers // of custom commands
	unreadable unreadable
	tickBase   time.Time
}

// Host is the interface of the server to its sessions, including the methods that commands use. Its methods may be
// called from any goroutine.
type Host interface {
	command.Host
	// Restriction returns the error for a command that the state of the storage, or of the replica, forbids; "" if
	// it may run. writes is set if the command may change something; flags are those of the command, or of the
	// transaction that it executes.
	Restriction(cmd *command.Command, flags command.Flag, writes bool) command.Error
	// MasterAddr returns the address at which clients reach this server's master or leader; ok is false if there is
	// none.
	MasterAddr() (host string, port int, ok bool)
	// Elsewhere returns the error that names the server of a slot which this one does not serve. reads is set if the
	// command only reads and the client has sent READONLY, so that a follower serves it too.
	Elsewhere(slot int, reads bool) command.Error
	// NewForwarder returns a connection for the client to the leader of the group, or of another shard with an ID.
	NewForwarder(s *Session, shard string) Forwarder
	// MakeRoom evicts keys until data and clients are within maxmemory, or until the time limit of one command. No
	// guard may be held.
	MakeRoom(now int64) Room
	// Sample records the current load, and sets Shared.SampleDue, the time of its next call.
	Sample(now int64)
	// MaxClients returns how many clients there may be.
	MaxClients() int64
}

// Limits are settings that sessions read for every command, in bytes. 0 means no limit.
type Limits struct {
	Memory  atomic.Int64 // maxmemory
	Clients atomic.Int64 // maxmemory-clients
	Output  atomic.Int64 // OutputLimits.LeastHard
}

// Counters are the counters of INFO that sessions change. Those that grow with every command are kept elsewhere.
type Counters struct {
	BytesIn          atomic.Int64
	Expands, Shrinks atomic.Int64 // of clients' reply buffers
	Errors           stats.Errors
	Blocked          atomic.Int64              // a gauge
	InputTooLong     atomic.Int64              // clients that were closed because their input was too long
	OutputTooLong    atomic.Int64              // and because their unread output was too long
	Evicted          atomic.Int64              // clients that were disconnected because of maxmemory-clients
	TierWaits        atomic.Int64              // how often sessions waited for values
	Denied           [acl.Reasons]atomic.Int64 // refused commands, by the reason
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

// New returns the Shared of a new server, without the parts that the server sets.
func New() *Shared {
	sh := &Shared{tickBase: time.Now()}
	sh.Tracking = tracking.New((*trackers)(sh))
	sh.handlers.number = serverNumbers.Add(1)
	return sh
}

// AwaitOffloaded waits for offloaded commands that still run. There are no sessions any more.
func (sh *Shared) AwaitOffloaded() { sh.offloads.close() }

// Ticks returns a monotonic time in ns for measuring commands. It is cheaper than the Clock, and tests cannot
// replace it.
func (sh *Shared) Ticks() int64 { return int64(time.Since(sh.tickBase)) }

// MaxBulk is the greatest length of a string in bytes: proto-max-bulk-len, or less so that an int can count its
// bits.
func (sh *Shared) MaxBulk() int { return min(sh.Config.Get().Clients.ProtoMaxBulkLen, math.MaxInt/8) }

// follows reports whether only another server's commands change the data.
func (sh *Shared) follows() bool { return sh.Replica.Following() || sh.Following.Load() }

// sample makes the server record its load, about once a second.
func (sh *Shared) sample(now int64) {
	if now >= sh.SampleDue.Load() {
		sh.Host.Sample(now)
	}
}

// epoch is the journal's Epoch; without storage no change is ever undone.
func (sh *Shared) epoch() uint64 {
	if sh.Storage == nil {
		return 0
	}
	return sh.Storage.Epoch()
}

// UsedMemory returns how many bytes data and clients use. maxmemory limits this number, and INFO and MEMORY STATS
// show it. It does not include garbage, the journal, the store and the output for replicas. A lent value counts once
// for all clients, and not at all while it is the value of a key, which is counted as data.
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
