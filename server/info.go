package server

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/command"
	changescommands "github.com/atomredis/atomredis/internal/commands/changes"
	"github.com/atomredis/atomredis/internal/commands/search"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/internal/version"
)

// This file makes the sections of INFO.

var infoSections = []servercommands.InfoSection{
	{Name: "Server", Write: infoServer},
	{Name: "Clients", Write: infoClients},
	{Name: "Memory", Write: infoMemory},
	{Name: "Persistence", Write: infoPersistence},
	{Name: "Store", Extra: true, Write: infoStore},
	{Name: "Threads", Write: infoThreads},
	{Name: "Stats", Write: infoStats},
	{Name: "Replication", Write: infoReplication},
	{Name: "CPU", Write: infoCPU},
	{Name: "Hotkeys", Write: servercommands.WriteHotKeys},
	{Name: "Modules", Write: infoModules},
	{Name: "Commandstats", Extra: true, Write: infoCommandStats},
	{Name: "Errorstats", Write: infoErrorStats},
	{Name: "Latencystats", Extra: true, Write: infoLatencyStats},
	{Name: "Cluster", Write: infoCluster},
	{Name: "Keyspace", Write: infoKeyspace},
	{Name: "Keysizes", Named: true, Write: servercommands.WriteKeySizes},
}

// InfoSections implements servercommands.Host.
func (srv *Server) InfoSections() []servercommands.InfoSection {
	return slices.Concat(infoSections, search.InfoSections(srv), srv.doors.InfoSections())
}

func infoModules(b *servercommands.InfoText, _ *command.Ctx) {
	for _, m := range version.Modules {
		b.Text("module", fmt.Sprintf("name=%s,ver=%d,api=1,filters=0,usedby=[%s],using=[%s],options=[%s]",
			m.Name, m.Number, m.UsedBy, m.Using, m.Options))
	}
}

// Memory implements servercommands.Host.
func (srv *Server) Memory(now int64) servercommands.Memory {
	u := srv.scripts.Usage()
	m := servercommands.Memory{Memory: stats.ReadMemory(), Used: srv.UsedMemory(),
		JournalBuffer: srv.dump.Status().JournalBuffer,
		Scripts:       u.ScriptSources, Functions: u.LibrarySources}
	m.Peak, m.PeakAt = srv.peakMemory.See(m.Used, now)
	clients := srv.sessions.Clients.Measure(now)
	m.Clients, m.Followers, m.Streamed = clients.Normal, clients.Followers, clients.Streamed
	return m
}

func infoServer(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	now := srv.ks.Clock().Now()
	uptime := max(int64(now.Sub(srv.started).Seconds()), 0)
	executable, err := os.Executable()
	if err != nil {
		executable = ""
	}
	io := "epoll"
	if srv.loops == nil {
		io = "goroutines"
	}
	build := readBuild()
	hz := srv.config.Value("hz") // no task runs with this frequency here
	b.Text("redis_version", version.Redis)
	b.Text("redis_git_sha1", build.revision)
	b.Flag("redis_git_dirty", build.dirty)
	b.Text("redis_build_id", build.id)
	b.Text("atomredis_version", version.Number)
	b.Text("redis_mode", srv.Mode())
	b.Text("os", runtime.GOOS+" "+runtime.GOARCH)
	b.Number("arch_bits", strconv.IntSize)
	b.Text("monotonic_clock", "Go runtime")
	b.Text("go_version", runtime.Version())
	b.Text("multiplexing_api", io)
	b.Text("atomicvar_api", "sync/atomic")
	b.Text("gcc_version", "0.0.0") // as of any other compiler
	b.Number("process_id", int64(os.Getpid()))
	b.Text("process_supervised", srv.supervised.String())
	b.Text("run_id", srv.runID)
	b.Number("tcp_port", int64(srv.config.Get().TcpPort()))
	b.Number("server_time_usec", now.UnixMicro())
	b.Number("uptime_in_seconds", uptime)
	b.Number("uptime_in_days", uptime/(24*60*60))
	b.Text("hz", hz)
	b.Text("configured_hz", hz)
	b.Number("lru_clock", now.Unix()&(1<<24-1))
	b.Text("executable", filepath.Clean(executable))
	b.Text("config_file", srv.config.File())
	b.Flag("io_threads_active", srv.config.Get().Threads.Loops > 1)
	b.Flag("io_uring_active", srv.loops != nil && srv.loops.Together())
	for i, l := range srv.listeners.Shown() {
		b.Text("listener"+strconv.Itoa(i), l)
	}
}

// build describes the source of the executable.
type build struct {
	revision string // the beginning of the commit's hash; zeros if it is not known
	dirty    bool   // there were changes after the commit
	id       string // differs between executables with different code or settings
}

// readBuild returns the build of this executable.
var readBuild = sync.OnceValue(func() build {
	b := build{revision: "00000000"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= len(b.revision):
			b.revision = s.Value[:len(b.revision)]
		case s.Key == "vcs.modified":
			b.dirty = s.Value == "true"
		}
	}
	hash := fnv.New64a()
	hash.Write([]byte(info.String()))
	b.id = hex.EncodeToString(hash.Sum(nil))
	return b
})

func infoClients(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	tracking, _, _, _ := srv.sessions.Tracking.Size()
	b.Number("connected_clients", srv.sessions.Clients.Len())
	b.Number("cluster_connections", 0)
	b.Number("maxclients", srv.MaxClients())
	srv.sessions.Clients.Measure(c.Now()) // it also updates the measured peaks
	input, output := srv.sessions.Clients.Largest(c.Now())
	b.Number("client_recent_max_input_buffer", input)
	b.Number("client_recent_max_output_buffer", output)
	b.Number("blocked_clients", srv.sessions.Counters.Blocked.Load()+int64(srv.sessions.Pause.Held(&srv.sessions.Clients, c.Now())))
	b.Number("tracking_clients", int64(tracking))
	watching, subscribed, timed := srv.sessions.Clients.Occupied()
	b.Number("pubsub_clients", int64(subscribed))
	b.Number("watching_clients", int64(watching))
	b.Number("clients_in_timeout_table", int64(timed))
	watched, awaited, awaitedGone := c.G.Remembered()
	b.Number("total_watched_keys", int64(watched))
	b.Number("total_blocking_keys", int64(awaited))
	b.Number("total_blocking_keys_on_nokey", int64(awaitedGone))
}

// infoPersistence writes the fields of the storage: Redis's fields of snapshots for checkpoints, and those of the
// AOF for the journal.
func infoPersistence(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	st := srv.dump.Status()
	now := srv.ks.Clock().Now()
	lastStatus := "ok"
	if st.LastErr != nil {
		lastStatus = "err"
	}
	running := int64(-1)
	if st.Checkpoint {
		running = int64(now.Sub(st.Began).Seconds())
	}
	took := int64(-1)
	if st.Checkpoints > 0 {
		took = int64(st.Took.Seconds())
	}
	loaded := srv.importer.Loaded()
	if loaded == nil {
		loaded = &transfer.Loaded{Keys: st.LoadedKeys}
	}
	b.Flag("loading", st.Loading || srv.replica.Loading())
	b.Zeros("async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age")
	saved, toSave := int64(0), int64(0)
	if st.Checkpoint {
		saved, toSave = int64(st.Written), int64(st.Total)
	}
	b.Text("current_fork_perc", strconv.FormatFloat(100*stats.Ratio(saved, toSave), 'f', 2, 64))
	b.Number("current_save_keys_processed", saved)
	b.Number("current_save_keys_total", toSave)
	if st.Loading {
		elapsed, part := now.Sub(st.LoadBegan).Seconds(), stats.Ratio(int64(st.LoadedKeys), int64(st.LoadTotal))
		left := 1.0 // Redis's value before it knows
		if elapsed >= 1 && part > 0 {
			left = elapsed/part - elapsed
		}
		b.Number("loading_start_time", st.LoadBegan.Unix())
		b.Number("loading_total_bytes", st.LoadBytes)
		b.Number("loading_rdb_used_mem", 0)
		b.Number("loading_loaded_bytes", int64(part*float64(st.LoadBytes)))
		b.Text("loading_loaded_perc", strconv.FormatFloat(100*part, 'f', 2, 64))
		b.Number("loading_eta_seconds", int64(left))
		b.Number("loading_loaded_keys", int64(st.LoadedKeys))
		b.Number("loading_total_keys", int64(st.LoadTotal))
	}
	b.Number("rdb_changes_since_last_save", c.G.Stats().Changes-st.Changes)
	b.Flag("rdb_bgsave_in_progress", st.Checkpoint)
	b.Number("rdb_last_save_time", st.Saved.Unix())
	b.Text("rdb_last_bgsave_status", lastStatus)
	b.Number("rdb_last_bgsave_time_sec", took)
	b.Number("rdb_current_bgsave_time_sec", running)
	b.Number("rdb_saves", int64(st.Checkpoints))
	b.Number("rdb_saves_consecutive_failures", int64(st.Failed))
	b.Number("rdb_last_cow_size", 0)
	b.Number("rdb_last_load_keys_expired", int64(loaded.Expired))
	b.Number("rdb_last_load_keys_loaded", int64(loaded.Keys))
	b.Flag("aof_enabled", st.Journal)
	b.Flag("aof_rewrite_in_progress", st.Checkpoint)
	b.Number("aof_rewrite_scheduled", 0)
	b.Number("aof_last_rewrite_time_sec", took)
	b.Number("aof_current_rewrite_time_sec", running)
	b.Text("aof_last_bgrewrite_status", lastStatus)
	rewrites, failures := 0, 0
	if st.Journal {
		rewrites, failures = st.Checkpoints, st.Failed
	}
	b.Number("aof_rewrites", int64(rewrites))
	b.Number("aof_rewrites_consecutive_failures", int64(failures))
	writeStatus := "ok"
	if srv.storage.Storage != nil {
		if f := srv.storage.Err(); f != nil && f.Journal {
			writeStatus = "err"
		}
	}
	b.Text("aof_last_write_status", writeStatus)
	b.Zeros("aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
	if st.Journal {
		b.Number("aof_current_size", st.JournalSize)
		b.Number("aof_base_size", st.JournalSize-st.JournalSince)
		b.Number("aof_buffer_length", st.JournalBuffer)
		b.Flag("aof_pending_bio_fsync", st.Unsynced > st.JournalBuffer)
		b.Zeros("aof_pending_rewrite", "aof_delayed_fsync")
		read := srv.changes.Stats()
		b.Number("changes_readers", read.Active)
		b.Number("changes_sent", read.Sent)
		b.Number("changes_retained", st.Retained)
		lag, unknown, groups := changescommands.Lag(srv)
		b.Number("changes_groups", int64(groups))
		b.Number("changes_lag", lag)
		b.Number("changes_lag_unknown", int64(unknown))
		srv.infoArchive(b)
	}
	if st.Checkpoint {
		b.Number("checkpoint_keys_written", int64(st.Written))
		b.Number("checkpoint_keys_total", int64(st.Total))
	}
	for _, err := range []error{st.Failure, st.LastErr} {
		if err != nil {
			b.Text("storage_last_error", command.OneLine(err.Error()))
			break
		}
	}
}

func infoStats(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	srv.Sample(c.Now())
	rate := srv.rates.Last()
	s, n := &srv.stats, &srv.sessions.Counters
	b.Number("total_connections_received", s.connections.Load())
	commands := srv.sessions.CommandStats.Totals()
	b.Number("total_commands_processed", commands.Calls)
	b.Number("instantaneous_ops_per_sec", rate.Commands)
	b.Number("total_net_input_bytes", srv.bytesIn())
	b.Number("total_net_output_bytes", srv.bytesOut())
	b.Number("total_net_repl_input_bytes", srv.replica.Received.Load())
	b.Number("total_net_repl_output_bytes", srv.followed.Sent.Load())
	b.Text("instantaneous_input_kbps", strconv.FormatFloat(rate.In, 'f', 2, 64))
	b.Text("instantaneous_output_kbps", strconv.FormatFloat(rate.Out, 'f', 2, 64))
	b.Text("instantaneous_input_repl_kbps", strconv.FormatFloat(rate.ReplIn, 'f', 2, 64))
	b.Text("instantaneous_output_repl_kbps", strconv.FormatFloat(rate.ReplOut, 'f', 2, 64))
	b.Number("rejected_connections", s.rejected.Load())
	b.Number("sync_full", srv.followed.Copies.Load())
	b.Number("sync_partial_ok", srv.followed.Partial.Load())
	b.Number("sync_partial_err", srv.followed.NoPartial.Load())
	k := c.G.Stats()
	b.Number("evicted_keys", k.Evicted)
	blessed := 0
	for db := range srv.ks.Databases() {
		blessed += c.G.DBStats(db).Blessed
	}
	b.Number("blessed_keys", int64(blessed))
	b.Number("tier_unloaded_values", k.Unloaded)
	b.Number("tier_loaded_values", k.Loaded)
	b.Number("tier_loaded_parts", k.LoadedParts)
	b.Number("tier_waits", n.TierWaits.Load())
	b.Number("evicted_clients", n.Evicted.Load())
	b.Zeros("evicted_scripts")
	current, total := srv.eviction.Exceeded()
	b.Number("total_eviction_exceeded_time", total/1e6)
	b.Number("current_eviction_exceeded_time", current/1e6)
	b.Number("expired_subkeys", k.ExpiredFields)
	b.Number("expired_subkeys_active", k.ExpiredFieldsActively)
	b.Number("expired_keys", k.Expired)
	b.Number("expired_keys_active", k.ExpiredActively)
	b.Text("expired_stale_perc", "0.00") // keys are removed at their deadline
	b.Number("expired_time_cap_reached_count", 0)
	b.Number("expire_cycle_cpu_milliseconds", k.ExpiryNanos/1e6)
	b.Number("keyspace_hits", k.Hits)
	b.Number("keyspace_misses", k.Misses)
	b.Zeros("hash_templates", "hash_template_keys") // hashes share no names of fields
	b.Number("pubsub_channels", int64(srv.sessions.PubSub.Len(pubsub.Channel)))
	b.Number("pubsub_patterns", int64(srv.sessions.PubSub.Len(pubsub.Pattern)))
	b.Number("pubsubshard_channels", int64(srv.sessions.PubSub.Len(pubsub.ShardChannel)))
	b.Zeros("latest_fork_usec", "total_forks")
	b.Number("migrate_cached_sockets", int64(srv.migrateConns.Len()))
	b.Zeros("slave_expires_tracked_keys", "active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits",
		"active_defrag_key_misses", "total_active_defrag_time", "current_active_defrag_time")
	_, keys, readers, prefixes := srv.sessions.Tracking.Size()
	b.Number("tracking_total_keys", int64(keys))
	b.Number("tracking_total_items", int64(readers))
	b.Number("tracking_total_prefixes", int64(prefixes))
	b.Number("unexpected_error_replies", srv.replica.Unexpected.Load())
	b.Number("total_error_replies", n.Errors.Replies())
	b.Number("dump_payload_sanitizations", s.restored.Load())
	b.Number("client_query_buffer_limit_disconnections", n.InputTooLong.Load())
	b.Number("client_output_buffer_limit_disconnections", n.OutputTooLong.Load())
	b.Number("acl_access_denied_auth", n.Denied[acl.DeniedAuth].Load())
	b.Number("acl_access_denied_cmd", n.Denied[acl.DeniedCommand].Load())
	b.Number("acl_access_denied_key", n.Denied[acl.DeniedKey].Load())
	b.Number("acl_access_denied_channel", n.Denied[acl.DeniedChannel].Load())
	b.Number("acl_access_denied_tls_cert", n.Denied[acl.DeniedCertificate].Load())
	b.Number("acl_access_denied_db", n.Denied[acl.DeniedDatabase].Load())
	loops := transport.Sum(s.loops)
	reads, writes := loops.Reads, loops.Writes
	allReads := reads + s.goroutines.Reads.Load()
	b.Number("total_reads_processed", allReads)
	b.Number("total_writes_processed", writes+s.goroutines.Writes.Load())
	if srv.config.Get().Threads.Loops == 1 {
		reads, writes = 0, 0 // a single event loop is not an I/O thread
	}
	b.Number("io_threaded_reads_processed", reads)
	b.Number("io_threaded_writes_processed", writes)
	b.Zeros("io_threaded_total_prefetch_batches", "io_threaded_total_prefetch_entries")
	// A batch is what one read brought.
	b.Number("total_client_processing_events", allReads)
	b.Number("commands_per_parse_batch_sum", commands.Calls)
	b.Number("commands_per_parse_batch_cnt", allReads)
	b.Ratio("commands_per_parse_batch_avg", commands.Calls, max(allReads, 1))
	b.Number("slowlog_commands_count", commands.Slow.Calls)
	b.Milliseconds("slowlog_commands_time_ms_sum", commands.Slow.Total)
	b.Milliseconds("slowlog_commands_time_ms_max", commands.Slow.Longest)
	b.Number("reply_buffer_shrinks", n.Shrinks.Load())
	b.Number("reply_buffer_expands", n.Expands.Load())
	b.Number("eventloop_cycles", loops.Rounds)
	b.Number("eventloop_cycles_with_clients_processing", loops.Busy)
	b.Number("eventloop_duration_sum", srv.loopTime().Microseconds())
	b.Number("eventloop_duration_cmd_sum", commands.Took.Microseconds())
	b.Number("instantaneous_eventloop_cycles_per_sec", rate.Rounds)
	b.Number("instantaneous_eventloop_duration_usec", rate.RoundMicros)
}

// infoThreads writes what each event loop does. Clients with goroutines of their own are the first one's.
func infoThreads(b *servercommands.InfoText, c *command.Ctx) {
	s := &serverOf(c).stats
	for i := range s.loops {
		l := &s.loops[i]
		clients, reads, writes := l.Clients.Load(), l.Reads.Load(), l.Writes.Load()
		if i == 0 {
			clients, reads, writes = clients+s.goroutines.Clients.Load(), reads+s.goroutines.Reads.Load(), writes+s.goroutines.Writes.Load()
		}
		b.Text("io_thread_"+strconv.Itoa(i), fmt.Sprintf("clients=%d,reads=%d,writes=%d", clients, reads, writes))
	}
}

func infoCluster(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	b.Flag("cluster_enabled", srv.cluster != nil)
	if srv.cluster != nil && srv.migrations != nil {
		srv.migrations.Info(b.Text, b.Number)
	}
}

func infoKeyspace(b *servercommands.InfoText, c *command.Ctx) {
	for db := range serverOf(c).ks.Databases() {
		if s := c.G.DBStats(db); s.Keys > 0 {
			fmt.Fprintf(b, "db%d:keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d\r\n", db, s.Keys, s.Expires, s.AvgTTL,
				s.FieldExpires)
		}
	}
}
