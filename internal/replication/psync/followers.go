package psync

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/persist/disk"
)

// The master's end: which clients receive the stream, what enters it, and when it begins and ends.

// MasterHost is what Followers needs of the server. Any goroutine may call its methods.
type MasterHost interface {
	// Hold calls fn with a guard over everything. It fails while a full synchronization replaces the data.
	Hold(fn func(g *engine.Guard)) error
	// RepeatKept logs the commands that make the data outside of keys, for a follower that has not read it from its
	// copy. They change nothing at followers that have.
	RepeatKept() error
	// SpoolDir returns the directory for temporary files.
	SpoolDir() string
	// ScarceChanged is called when Followers.Scarce has changed.
	ScarceChanged()
	// FollowsLeader reports whether the server belongs to a group and does not lead it. It changes only under a guard over
	// everything.
	FollowsLeader() bool
	// TellLeader tells the leader of the group, if there is one, that this server has followers.
	TellLeader()
	// Position returns the present position in the group's journal; Entry returns an entry of its log that has all before a
	// position, 0 while that is not committed; Holders returns how many other servers have an entry, and Committers how many
	// have each entry at least when it is committed. Without a group all are 0. No lock but Followers.mu and those of a guard
	// may be needed for an answer.
	Position() uint64
	Entry(position uint64) uint64
	Holders(entry uint64) int64
	Committers() int64
	// WritesPaused reports whether CLIENT PAUSE or FAILOVER holds clients that write.
	WritesPaused(now int64) bool
	// HoldWrites(true) makes clients that write wait until HoldWrites(false).
	HoldWrites(held bool)
}

// Exporter writes the RDB files of full synchronizations; transfer.Exporter implements it.
type Exporter interface {
	Copy(ctx context.Context, w io.Writer, how transfer.Copy) error
}

// Followers has the clients that follow the server, and the stream that they receive. Before Start only Active, Scarce and
// the counters may be used.
type Followers struct {
	// Copies counts full synchronizations, Partial the partial ones, and NoPartial the requests for a partial one that was
	// impossible. Sent counts the bytes sent to followers.
	Copies, NoPartial, Partial, Sent atomic.Int64

	running sync.WaitGroup // goroutines in the background
	scarce  atomic.Bool    // there are fewer good followers than min-replicas-to-write; changes under mu
	active  atomic.Bool    // the server makes a stream, for followers or a backup; changes under a guard over everything

	host     MasterHost
	config   *config.Config
	log      *slog.Logger
	ks       *engine.Keyspace
	fs       disk.FS        // for the file of the backlog
	keeper   engine.Journal // takes the notes of the history; nil if the data is in memory only
	exporter Exporter
	replica  *Replica

	mu          sync.Mutex // protects the fields below; under it only the journal, mailboxes, the pause and the tail are locked
	history     replication.History
	changes     replication.Stream
	list        []*feed
	tail        *transfer.Tail     // of the backup that receives the stream; nil if there is none
	tailChanges replication.Stream // its stream, which begins with SELECT
	waiters     map[*Follower]*ackWaiter
	asked       int64    // the offset after the last REPLCONF GETACK
	failing     failover // the failover under way
	alone       int64    // when the last follower left, or the history continued without one, in ms since 1970
	wanted      int64    // until when other servers of the group have followers, in ms since 1970
	asking      bool     // TellLeader is running
	timer       engine.Timer
	ticks       int
	closed      bool
}

func (f *Followers) start(o *Options, r *Replica) {
	f.host, f.config, f.log, f.ks, f.fs, f.exporter, f.replica = o.Master, o.Config, o.Log, o.Keyspace, o.FS, o.Exporter, r
	if o.Storage != nil {
		f.keeper = o.Storage
	}
	f.history.End(replication.NewID())
	f.limit(o.Config.Get())
	o.Config.Follow(f.limit, "repl-backlog-size")
	o.Config.Follow(f.countFor, "min-replicas-to-write", "min-replicas-max-lag")
}

// Active reports whether the server makes a stream. It changes only under a guard over everything.
func (f *Followers) Active() bool { return f.active.Load() }

// Scarce reports whether there are fewer followers than min-replicas-to-write asks for.
func (f *Followers) Scarce() bool { return f.scarce.Load() }

// Follow implements engine.Follower. The journal and the stream have the same order: after a restart the stream is made
// again from the journal.
func (f *Followers) Follow(now int64, commands []byte, journal engine.Journal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if journal != nil {
		journal.Append(now, commands)
	}
	if f.makes() {
		f.send(f.changes.Translate(commands))
	}
	if f.tail != nil {
		f.tail.Add(f.tailChanges.Translate(commands))
	}
}

// attach registers f as the follower of the keyspace if the stream has receivers. The guard holds everything, and mu is
// locked.
func (f *Followers) attach(g *engine.Guard) {
	wanted := f.tail != nil || f.makes()
	f.active.Store(wanted)
	if wanted {
		g.Follow(f)
	} else {
		g.Follow(nil)
	}
}

// Published adds a published message to the stream, after its client's earlier changes.
func (f *Followers) Published(c *command.Ctx) {
	if !f.Active() || c.Origin.In(command.FromMaster) { // relay passes it on
		return
	}
	if c.G.Locked() {
		c.G.Tell(c.Args)
		return
	}
	f.Tell(command.AppendRequest(nil, c.Args))
}

// Tell implements engine.Follower.
func (f *Followers) Tell(commands []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.makes() {
		f.insert(commands)
	}
}

// send appends b to the history and sends it to all followers that receive the stream. mu is locked.
func (f *Followers) send(b []byte) {
	f.history.Add(b)
	for _, d := range f.list {
		if d.streaming {
			d.follow(b)
		}
	}
}

// relay appends bytes of the master to the stream; db is the database selected behind them.
func (f *Followers) relay(b []byte, db int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.send(b)
	f.changes.Resume(db)
}

// watch calls look in a second. mu is locked.
func (f *Followers) watch() {
	if f.timer == nil && !f.closed {
		f.timer = f.ks.Clock().AfterFunc(time.Second, f.look)
	}
}

// look sends signs of life: an empty line every second to followers that wait for their full synchronization, and PING every
// repl-ping-replica-period seconds into the stream. It ends the history when there has been no follower for
// repl-backlog-ttl.
func (f *Followers) look() {
	defer f.Count()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = nil
	if f.closed {
		return
	}
	for _, d := range f.list {
		if d.state == replication.FollowerWaiting {
			d.queued.Add(1)
			d.client.Send([]byte("\n"))
		}
	}
	set, now, master := f.config.Get(), f.ks.Now(), f.makes()
	f.ticks++
	switch ttl := int64(set.Replication.BacklogTTL); {
	case len(f.list) > 0 && f.host.FollowsLeader():
		if f.ticks >= tellLeaderPeriod {
			f.ticks = 0
			f.tellLeader()
		}
	case len(f.list) == 0 && !master:
		return
	case f.unwanted(now):
		if ttl > 0 && (now-max(f.alone, f.wanted))/1000 >= ttl {
			f.mu.Unlock()
			f.endHistory()
			f.mu.Lock()
			return
		}
	case f.ticks >= set.Replication.PingPeriod && master && !f.host.WritesPaused(now):
		f.ticks = 0
		f.insert(encodeWords("PING"))
	}
	f.watch()
}

// unwanted reports whether neither this server nor another one of its group has followers. mu is locked.
func (f *Followers) unwanted(now int64) bool { return len(f.list) == 0 && now >= f.wanted }

// restart makes the next command of the stream SELECT its database, and begins a history if there is none. The guard holds
// everything, and mu is locked.
func (f *Followers) restart(g *engine.Guard) {
	if !f.history.Known {
		f.history.Begin(replication.NewID(), f.history.Offset)
	}
	f.changes.Restart()
	f.note()
	f.attach(g)
}

// endHistory ends the history, unless a follower has come meanwhile.
func (f *Followers) endHistory() {
	_ = f.host.Hold(func(g *engine.Guard) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.unwanted(f.ks.Now()) && f.makes() {
			f.history.End(replication.NewID())
			f.note()
			f.attach(g)
		}
	})
}

// Stop cancels full synchronizations that are being sent, and refuses new followers.
func (f *Followers) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	for _, d := range f.list {
		d.cancel()
	}
}

// Wait returns when all goroutines have ended, after Stop.
func (f *Followers) Wait() { f.running.Wait() }

// LeadLost ends the stream and disconnects all followers, because another server of the group leads. The guard holds everything.
func (f *Followers) LeadLost() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active.Store(false)
	f.cut()
}

// Drop ends the history and disconnects all followers, before other data replaces theirs. It writes no note: the new data is
// stored with its own history.
func (f *Followers) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut()
	f.history.End(replication.NewID())
}

// cut disconnects all followers and ends a backup: the data changes without the stream. mu is locked.
func (f *Followers) cut() {
	if f.tail != nil {
		f.tail.Replaced()
	}
	f.disconnect()
}

// BeginTail implements transfer.Stream.
func (f *Followers) BeginTail(g *engine.Guard, t *transfer.Tail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tail, f.tailChanges = t, replication.Stream{}
	f.attach(g)
}

// CutTail implements transfer.Stream.
func (f *Followers) CutTail(t *transfer.Tail) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tail != t {
		return false
	}
	f.tail = nil
	return true
}

// EndTail implements transfer.Stream.
func (f *Followers) EndTail(t *transfer.Tail) {
	f.CutTail(t)
	_ = f.host.Hold(func(g *engine.Guard) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.attach(g)
	})
}

// Status returns each follower's state and the stream's offset.
func (f *Followers) Status() (list []replication.Follower, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.list {
		st := replication.Follower{Port: d.of.Capabilities.Port.Load(), State: d.state, Acked: d.acked.Load()}
		if said := d.of.Capabilities.Host.Load(); said != nil && *said != "" {
			st.Host = *said
		} else {
			st.Host, _, _ = net.SplitHostPort(d.client.Addr())
		}
		st.Lag = d.lag()
		list = append(list, st)
	}
	return list, f.history.Offset
}

// HasStream reports whether the server accepts followers now. It does not while the link to its own master is down, or
// before the leader of its group has begun a stream, unless they want only a copy.
func (f *Followers) HasStream(copyOnly bool) bool {
	if st, ok := f.replica.Status(); ok {
		return st.State == replication.LinkConnected
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return copyOnly || !f.host.FollowsLeader() || f.leaderMakes()
}

// Good returns how many followers count for min-replicas-to-write: they are online and have acknowledged within
// min-replicas-max-lag.
func (f *Followers) Good(set *config.Settings) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countGood(set)
}

// countGood is Good with mu locked.
func (f *Followers) countGood(set *config.Settings) (n int) {
	for _, d := range f.list {
		if d.state == replication.FollowerOnline && d.lag() <= int64(set.Replication.MinReplicasMaxLag) {
			n++
		}
	}
	return n
}

// Count updates Scarce.
func (f *Followers) Count() { f.countFor(f.config.Get()) }

// countFor is Count with settings that take effect now.
func (f *Followers) countFor(set *config.Settings) {
	f.mu.Lock()
	scarce := set.Replication.MinReplicas > 0 && set.Replication.MinReplicasMaxLag > 0 && f.countGood(set) < set.Replication.MinReplicas
	changed := f.scarce.Swap(scarce) != scarce
	f.mu.Unlock()
	if changed {
		f.host.ScarceChanged()
	}
}
