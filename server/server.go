package server

import (
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/changes"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/forward"
	"github.com/atomredis/atomredis/internal/cluster/migrate"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/command"
	migratecommand "github.com/atomredis/atomredis/internal/commands/migrate"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/doors"
	"github.com/atomredis/atomredis/internal/eviction"
	"github.com/atomredis/atomredis/internal/listeners"
	"github.com/atomredis/atomredis/internal/process"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/psync"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/internal/testhook"
	"github.com/atomredis/atomredis/internal/tlsconfig"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/persist/disk"
)

// Server is a running Redis server. Its methods may be called from any goroutine.
type Server struct {
	config   *config.Config
	log      *slog.Logger
	progress transfer.Progress // Options.Progress
	ks       *engine.Keyspace
	table    *command.Table
	sessions *session.Shared // the shared state of the sessions

	runID    string
	started  time.Time
	maxFiles int64 // how many files the process may open; 0 if that is not known
	ownFiles bool  // data is stored in the system's files
	fs       disk.FS

	followed     psync.Followers
	migrateConns migratecommand.Conns
	replica      psync.Replica
	group        group
	forwards     *forward.Connections // nil unless the server belongs to a group
	broadcast    *peers.Broadcast     // nil unless the server belongs to a group
	rates        stats.Rates
	peakMemory   stats.Peak
	scripts      *scripts.Scripts
	eviction     *eviction.Eviction
	storage      storageState
	exporter     *transfer.Exporter
	importer     *transfer.Importer
	dump         *transfer.Dump
	backups      *transfer.Backups
	changes      *changes.Feed
	archived     archived
	users        *acl.Users
	services     []command.Service // by their IDs
	hotKeys      servercommands.HotKeys
	stats        serverStats

	loops      transport.Loops       // for listeners that are sockets; nil if there are none
	goroutines *transport.Goroutines // for all other listeners, and connections that are handed over
	direct     *session.Directs      // for the program that the server is part of
	carriers   []carrier             // loops, goroutines, direct and forwards
	tls        *tlsconfig.TLS
	listeners  *listeners.Listeners
	doors      *doors.Doors
	supervised config.Supervision

	cluster      *cluster.Node       // nil if cluster mode is off
	clusterShard string              // the name of its shard
	shards       *shards.Shards      // nil unless the server belongs to a group
	migrations   *migrate.Migrations // likewise

	skipChecksums atomic.Bool // of RESTORE's payloads and RDB files; DEBUG sets it

	closing sync.Once
	done    chan struct{}
	err     error
}

// serverStats are the counters of INFO that are neither the engine's nor the sessions'. Those that grow with every command
// are kept elsewhere.
type serverStats struct {
	connections, rejected atomic.Int64
	goroutines            transport.Counters
	loops                 []transport.Counters // of each event loop
	loopsBefore           atomic.Int64         // processor time of event loops before the last ResetStats, in ns
	restored              atomic.Int64         // payloads of RESTORE that were checked
}

// Options are the parts of a server that a program, unlike redis.conf, can choose.
type Options struct {
	// Clock gives the time; nil is the system's.
	Clock engine.Clock
	// Goroutines serves every client with goroutines of its own even if event loops are available. A server without
	// listeners always does so.
	Goroutines bool
	// Listeners are served in addition to those of the configuration. The server closes them.
	Listeners []net.Listener
	// FS is where data is stored; nil is the system's files.
	FS disk.FS
	// Supervised is the service manager that is notified when the server is ready, for INFO.
	Supervised config.Supervision
	// Import is the path of an RDB file, an append-only file or a directory of a Redis, which Start reads into the
	// data directory; that must have no data (ErrNotEmpty). If it is "" and the data directory has only files of a
	// Redis, the server reads those.
	Import string
	// Restore is what Start begins with in place of Import.
	Restore archive.Source
	// Stopped means that the data may be that of a stopped server of a group. It is read then, and nothing is stored.
	Stopped bool
	// RDBFile gives the server an RDB file, as if dir and dbfilename were set: SAVE and similar commands write it,
	// and a server without storage reads it at start.
	RDBFile bool
	// SpareProcessors means that GOMAXPROCS exceeds the need of the rest of the program by the number of event loops
	// (io-threads). Then a loop keeps its processor while it waits, up to ten milliseconds, which makes it faster.
	// The scheduler must be able to preempt goroutines (not GODEBUG=asyncpreemptoff=1).
	SpareProcessors bool
	// Progress is called repeatedly during long tasks (start, import, export, checkpoint) with the amount done, the
	// total (0 if unknown) and the unit (B for bytes); at the end done is the total. Any goroutine calls it. If it
	// is nil, the progress is logged.
	Progress func(step, unit string, done, total int64)
	// Slow is called for each command that is added to the slow log, by the client's goroutine, which it must not
	// delay. It may be nil.
	Slow func(session.SlowCommand)
	// Group connects the server with the others of its group, if it belongs to one.
	Group GroupNetwork
	// Doors are listeners of doors, by the doors' names, in place of those that the configuration names. The server closes
	// them.
	Doors map[string]net.Listener
	// Hook has the failures that package atomredistest causes; nil otherwise. With it every client is served with
	// goroutines of its own.
	Hook *testhook.Hook
}

// New prepares a server with the given configuration; Start makes it listen. log must not be nil.
func New(conf *config.Config, log *slog.Logger, o Options) (*Server, error) {
	set := conf.Get()
	srv := &Server{
		config: conf, log: log, progress: o.Progress,
		table:    command.NewTable(),
		runID:    replication.NewID(),
		sessions: session.New(),
		done:     make(chan struct{}),

		ownFiles: o.FS == nil,
		fs:       o.FS,

		supervised: o.Supervised,
		listeners:  listeners.New(conf, log, o.Listeners),
	}
	sh := srv.sessions
	sh.Host, sh.Log, sh.Config, sh.Table = srv, log, conf, srv.table
	sh.Followed, sh.Replica = &srv.followed, &srv.replica
	sh.Slow, sh.Relieve = o.Slow, srv.relieve
	srv.group.following = &sh.Following
	if srv.fs == nil {
		srv.fs = disk.System
	}
	srv.storage.importFile, srv.storage.restore, srv.storage.stopped = o.Import, o.Restore, o.Stopped
	srv.group.srv, srv.group.network = srv, o.Group
	srv.startCluster(set)
	sh.Cluster = srv.cluster
	err := checkGroup(set)
	if err == nil && set.Replication.ReplicaOf.Host != "" && set.Cluster.Enabled {
		err = errReplicaOfInCluster
	}
	if err == nil {
		err = checkArchive(set)
	}
	if err == nil {
		err = srv.openStorage(set)
	}
	if err != nil {
		srv.listeners.Close()
		return nil, err
	}
	var source engine.Source
	if srv.storage.Storage != nil {
		source = srv.storage.Source()
	}
	eo := engine.Options{Shards: shardCount(set.Threads.Shards, o.Goroutines || !srv.listeners.Wanted() || set.Threads.Loops > 1),
		Databases: set.DatabaseCount(), Clock: o.Clock, Observer: sh.Observer(), Source: source, LockedFor: sh.Held}
	if srv.cluster != nil {
		eo.Slots, eo.SlotOf = cluster.Slots, cluster.SlotOf
	}
	srv.ks = engine.New(eo)
	sh.Keyspace, sh.Storage = srv.ks, srv.storage.Storage
	srv.tls = tlsconfig.New(conf, srv.ks.Clock(), log)
	srv.eviction = eviction.New(sh, srv.replayed)
	srv.direct = session.NewDirects(sh)
	srv.doors = doors.New(doors.Options{Sessions: sh, Direct: srv.direct, Listeners: srv.listeners, TLS: srv.tls,
		Transport: srv.TransportHost(), Host: (*doorsHost)(srv), Given: o.Doors})
	if set.Raft.Addr != "" {
		srv.startShards(set)
	}
	srv.ks.SetListLimit(set.Types.List)
	srv.countSlots(set)
	srv.startHook(o.Hook)
	srv.started = srv.ks.Clock().Now()
	srv.startTransfer(o.RDBFile)
	srv.changes = changes.New(changes.Options{Records: srv.records, Table: srv.table, FS: srv.fs, Write: srv.exporter.AOFAt,
		Dir: func() string { return srv.config.Get().Files.Dir }, Lazy: srv.lazyJournal})
	srv.startArchive()
	srv.startReplication()
	srv.startServices()
	srv.maxFiles, _ = process.FileLimit()
	if n := srv.MaxClients(); n < int64(set.Network.MaxClients) {
		log.Warn("the limit of open files allows fewer clients than configured", "maxclients", set.Network.MaxClients, "possible", n)
	}
	sh.CommandStats = stats.NewCommands(srv.table.Count + command.MaxCustom)
	sh.Timing.Set(set)
	srv.eviction.Apply(set)
	sh.ReplyBuffers.PeakAge.Store(servercommands.DefaultReplyBufferPeakAge)
	srv.startScripts()
	sh.Scripts, sh.Foreign = srv.scripts, doors.Commands(srv.table)
	err = srv.table.Rename(set.Commands.Renamed)
	if err == nil {
		srv.users, err = acl.NewUsers(srv.table, sh.Foreign, conf, log, sh)
		sh.Users = srv.users
	}
	if err == nil {
		err = srv.startTransports(o, set.Threads.Loops)
	}
	if err != nil {
		srv.Discard()
		return nil, err
	}
	srv.followOOMScore() // after everything that can fail
	srv.tls.Follow()
	srv.attachListeners()
	srv.doors.Follow()
	srv.followStorage()
	srv.followArchive()
	srv.eviction.Follow()
	srv.followCosts()
	srv.followKeyspace()
	conf.OnRewrite(srv.users.Lines)
	return srv, nil
}

// shardCount returns the number of shards for the setting 0, which lets the server choose: one if there is only one
// event loop, and as many as the machine can use if clients are served in parallel.
func shardCount(setting int, parallel bool) int {
	if setting > 0 {
		return setting
	}
	n := 1
	for parallel && n < engine.MaxShards && runtime.GOMAXPROCS(0) > 2 && n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return n
}

// Start listens on the configured addresses, reads the stored data, and serves clients in the background. Clients that
// connect before the data is read wait for up to listeners.DefaultGrace, and then get LOADING.
func (srv *Server) Start() error {
	err := srv.loadFile(srv.config.Get())
	if err == nil {
		err = srv.tls.Load(srv.config.Get())
	}
	if err == nil {
		err = srv.listeners.Open()
	}
	if err == nil {
		err = srv.doors.Open()
	}
	if err == nil {
		accept := srv.listeners.AcceptSoon()
		if err = srv.recoverData(); err == nil {
			err = accept()
		}
	}
	if err != nil {
		srv.Discard()
		return err
	}
	srv.tls.Watch()
	srv.followed.Count()
	srv.scoreForRole()
	srv.replica.FollowConfigured()
	srv.hearEvents(srv.config.Get())
	srv.eviction.Schedule(0)
	srv.doors.Serve()
	if srv.storage.Storage != nil {
		srv.servicesLoaded()
	}
	if err := srv.startGroup(); err != nil {
		srv.Discard()
		return err
	}
	return nil
}

// Addrs returns the addresses on which the server listens.
func (srv *Server) Addrs() []net.Addr { return srv.listeners.Addrs() }

// Done is closed when the server has stopped, because of Close or a client's SHUTDOWN.
func (srv *Server) Done() <-chan struct{} { return srv.done }

// Close disconnects all clients, makes everything durable and stops the server. It returns when all goroutines of
// the server have ended.
func (srv *Server) Close() error { return srv.close(true) }

// Abandon is Close without saving the data: changes that are not in the journal are lost.
func (srv *Server) Abandon() error { return srv.close(false) }

// close is Close; without save only the journal, if there is one, has the latest changes.
func (srv *Server) close(save bool) error {
	return srv.end(func() error {
		srv.followed.LeaveBacklog()
		err := srv.closeStorage(save)
		if err != nil {
			srv.followed.DropBacklog()
		}
		return err
	})
}

// Discard closes a server that has failed to start or to import. It ends all goroutines and listeners, and removes a
// data directory that was made for the server.
func (srv *Server) Discard() { _ = srv.end(srv.abandonStorage) }

// end stops everything; it calls closeStorage last.
func (srv *Server) end(closeStorage func() error) error {
	srv.closing.Do(func() {
		var errs []error
		srv.sessions.Ending.Store(true)
		errs = append(errs, srv.listeners.Close())
		srv.doors.StopListening()
		srv.tls.Close()
		srv.scripts.Stop()
		srv.replica.Close()
		srv.group.leave()
		srv.followed.Stop()
		srv.backups.Close()
		srv.changes.Close()
		srv.archived.Stop()
		srv.doors.Close() // while their clients exist
		for _, c := range srv.carriers {
			c.Close()
		}
		srv.followed.Wait()
		srv.sessions.AwaitOffloaded()
		srv.migrateConns.Close()
		srv.closeServices()
		srv.eviction.Close()
		srv.archived.Close()
		srv.ks.Close()
		srv.scripts.Close()
		errs = append(errs, closeStorage())
		srv.err = errors.Join(errs...)
		close(srv.done)
	})
	<-srv.done
	return srv.err
}

// Keyspace returns the server's data.
func (srv *Server) Keyspace() *engine.Keyspace { return srv.ks }

// ResetStats sets the counters of INFO to zero.
func (srv *Server) ResetStats() {
	for s := range srv.sessions.CommandStats.All() {
		s.Reset()
	}
	srv.sessions.Counters.Reset()
	for _, c := range []*atomic.Int64{&srv.stats.connections, &srv.stats.rejected, &srv.doors.Sent,
		&srv.replica.Received, &srv.replica.Unexpected, &srv.followed.Sent, &srv.followed.Copies, &srv.followed.Partial,
		&srv.followed.NoPartial, &srv.stats.restored} {
		c.Store(0)
	}
	srv.stats.goroutines.Reset()
	for i := range srv.stats.loops {
		srv.stats.loops[i].Reset()
	}
	srv.stats.loopsBefore.Add(int64(srv.loopTime()))
	srv.eviction.ResetStats()
	srv.ks.ResetStats()
}

// MaxBulk is the greatest length of a string in bytes: proto-max-bulk-len, or less so that an int can count its
// bits.
func (srv *Server) MaxBulk() int { return srv.sessions.MaxBulk() }

// HashLimits are the limits of hashes in their small form.
func (srv *Server) HashLimits() hashes.Limits { return srv.config.Get().Types.Hash }

// SetLimits are the limits of sets in their small forms.
func (srv *Server) SetLimits() sets.Limits { return srv.config.Get().Types.Set }

// ZSetLimits are the limits of sorted sets in their small form.
func (srv *Server) ZSetLimits() zsets.Limits { return srv.config.Get().Types.ZSet }

// ListLimit is the limit of a list's nodes.
func (srv *Server) ListLimit() lists.Limit { return srv.config.Get().Types.List }

// StreamLimits are the limits of a stream's blocks.
func (srv *Server) StreamLimits() streams.Limits { return srv.config.Get().Types.Stream }
