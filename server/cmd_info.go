package server

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/scripting"
	"github.com/atomredis/atomredis/server/acl"
)

func init() { command.Register(serverCommands) }

// serverCommands tell about the server as a whole, and stop it.
var serverCommands = []*command.Command{
	// WholeKeyspace lets INFO read the counters of all shards.
	{Name: "info", Group: "server", Since: "1.0.0", Arity: -1,
		Flags:   command.Loading | command.Stale | command.WholeKeyspace,
		ACL:     command.CatDangerous,
		Summary: "Shows state and statistics of the server",
		Syntax:  "[section [section ...]]", Complexity: "O(1)", Do: cmdInfo},
	{Name: "debug", Group: "server", Since: "1.0.0", Arity: -2,
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.Protected | command.WholeKeyspace,
		Summary: "Inspects and disturbs the server, for tests",
		Syntax:  "subcommand [arg [arg ...]]", Complexity: "Depends on the argument",
		Allowed: debugAllowed, CallableNow: debugFromScript, Do: cmdDebug},
	memoryCommand, moduleCommand,
	{Name: "monitor", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
		Summary: "Streams all commands as they are executed", Complexity: "O(1)",
		Stateful: true, Do: cmdMonitor},
	{Name: "shutdown", Group: "server", Since: "1.0.0", Arity: -1,
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
		Summary: "Stops the server", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
		Complexity: "O(N), where N is the number of clients", Do: cmdShutdown},
}

// infoSection is one part of INFO.
type infoSection struct {
	name  string
	extra bool // shown only when asked for, or with everything
	write func(b *infoText, c *command.Ctx)
}

var infoSections = []infoSection{
	{"Server", false, (*infoText).server},
	{"Clients", false, (*infoText).clients},
	{"Memory", false, (*infoText).memory},
	{"Persistence", false, (*infoText).persistence},
	{"Stats", false, (*infoText).stats},
	{"Replication", false, (*infoText).replication},
	{"CPU", false, (*infoText).cpu},
	{"Modules", false, func(*infoText, *command.Ctx) {}},
	{"Commandstats", true, (*infoText).commandStats},
	{"Errorstats", false, (*infoText).errorStats},
	{"Latencystats", true, (*infoText).latencyStats},
	{"Cluster", false, (*infoText).cluster},
	{"Keyspace", false, (*infoText).keyspace},
}

func cmdInfo(c *command.Ctx) {
	var b infoText
	for _, s := range infoSections {
		if s.wanted(c.Args[1:]) {
			b.section(s.name)
			s.write(&b, c)
		}
	}
	b.doors(c, c.Args[1:])
	c.W.Verbatim("txt", b.String())
}

// wanted reports whether the section is among those asked for.
func (s *infoSection) wanted(words [][]byte) bool {
	if len(words) == 0 {
		return !s.extra
	}
	return slices.ContainsFunc(words, func(w []byte) bool {
		switch name := command.Lower(w); name {
		case "default":
			return !s.extra
		case "all", "everything":
			return true
		default:
			return name == strings.ToLower(s.name)
		}
	})
}

// infoText is the reply of INFO as it grows.
type infoText struct{ strings.Builder }

func (b *infoText) section(name string) {
	if b.Len() > 0 {
		b.WriteString("\r\n")
	}
	b.WriteString("# " + name + "\r\n")
}

func (b *infoText) text(name, value string) { b.WriteString(name + ":" + value + "\r\n") }

func (b *infoText) number(name string, n int64) { b.text(name, strconv.FormatInt(n, 10)) }

// zeros writes numbers of what there is none of here.
func (b *infoText) zeros(names ...string) {
	for _, name := range names {
		b.number(name, 0)
	}
}

func (b *infoText) flag(name string, set bool) {
	if set {
		b.number(name, 1)
	} else {
		b.number(name, 0)
	}
}

// bytes writes a size as a number and for people.
func (b *infoText) bytes(name string, n int64) {
	b.number(name, n)
	b.text(name+"_human", humanBytes(n))
}

// humanBytes returns a size as 12B, 1.50K, 2.00M, …
func humanBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + "B"
	}
	f := float64(n) / 1024
	for _, unit := range "KMGT" {
		if f < 1024 {
			return fmt.Sprintf("%.2f%c", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.2fP", f)
}

func (b *infoText) server(c *command.Ctx) {
	srv := serverOf(c)
	now := srv.ks.Clock().Now()
	uptime := max(int64(now.Sub(srv.started).Seconds()), 0)
	executable, err := os.Executable()
	if err != nil {
		executable = ""
	}
	io := "epoll"
	if _, ok := srv.transport.(*goroutines); ok {
		io = "goroutines"
	}
	build := readBuild()
	hz := srv.config.Value("hz") // nothing runs so often here
	b.text("redis_version", version.Redis)
	b.text("redis_git_sha1", build.revision)
	b.flag("redis_git_dirty", build.dirty)
	b.text("redis_build_id", build.id)
	b.text("atomredis_version", version.Number)
	b.text("redis_mode", srv.mode())
	b.text("os", runtime.GOOS+" "+runtime.GOARCH)
	b.number("arch_bits", strconv.IntSize)
	b.text("monotonic_clock", "Go runtime")
	b.text("go_version", runtime.Version())
	b.text("multiplexing_api", io)
	b.text("atomicvar_api", "sync/atomic")
	b.text("gcc_version", "0.0.0") // as of any other compiler
	b.number("process_id", int64(os.Getpid()))
	b.text("process_supervised", srv.supervised.String())
	b.text("run_id", srv.runID)
	b.number("tcp_port", int64(srv.config.Get().TcpPort()))
	b.number("server_time_usec", now.UnixMicro())
	b.number("uptime_in_seconds", uptime)
	b.number("uptime_in_days", uptime/(24*60*60))
	b.text("hz", hz)
	b.text("configured_hz", hz)
	b.number("lru_clock", now.Unix()&(1<<24-1))
	b.text("executable", filepath.Clean(executable))
	b.text("config_file", srv.config.File())
	b.flag("io_threads_active", srv.config.Get().IOThreads > 1)
	b.flag("io_uring_active", srv.callsTogether.Load())
	for i, l := range srv.listeners.shown() {
		b.text("listener"+strconv.Itoa(i), l)
	}
}

// build is what the executable was made of.
type build struct {
	revision string // the beginning of the commit's hash; zeros if it is not known
	dirty    bool   // the commit is not all
	id       string // differs between executables of other code or other settings
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

func (b *infoText) clients(c *command.Ctx) {
	srv := serverOf(c)
	tracking, _, _, _ := srv.tracking.size()
	b.number("connected_clients", srv.clients.count.Load())
	b.number("cluster_connections", 0)
	b.number("maxclients", srv.maxClients())
	srv.clients.sizes(c.Now()) // which notes what there is now
	input, output := srv.clients.peaks.largest(c.Now())
	b.number("client_recent_max_input_buffer", input)
	b.number("client_recent_max_output_buffer", output)
	b.number("blocked_clients", srv.stats.blocked.Load()+int64(srv.pause.held(&srv.clients, c.Now())))
	b.number("tracking_clients", int64(tracking))
	watching, subscribed, timed := srv.clients.occupied()
	b.number("pubsub_clients", int64(subscribed))
	b.number("watching_clients", int64(watching))
	b.number("clients_in_timeout_table", int64(timed))
	watched, awaited, awaitedGone := c.G.Remembered()
	b.number("total_watched_keys", int64(watched))
	b.number("total_blocking_keys", int64(awaited))
	b.number("total_blocking_keys_on_nokey", int64(awaitedGone))
}

// memory tells where the memory is. The data set is what is left of the heap after a start and the clients have had
// theirs.
func (b *infoText) memory(c *command.Ctx) {
	srv := serverOf(c)
	m := readMemory()
	srv.memory.see(m.heap)
	startup, clients := srv.memory.startup, srv.clients.sizes(c.Now())
	overhead := startup + clients.normal + clients.followers
	dataset := max(m.heap-overhead, 0)
	b.bytes("used_memory", m.heap)
	if rss, ok := residentBytes(); ok {
		b.bytes("used_memory_rss", rss)
		b.ratio("rss_overhead_ratio", rss, m.mapped)
		b.number("rss_overhead_bytes", rss-m.mapped)
		b.ratio("mem_fragmentation_ratio", rss, m.heap)
		b.number("mem_fragmentation_bytes", rss-m.heap)
	}
	peak := srv.memory.peak.Load()
	b.bytes("used_memory_peak", peak)
	b.text("used_memory_peak_perc", percent(m.heap, peak))
	b.number("used_memory_overhead", overhead)
	b.number("used_memory_startup", startup)
	b.number("used_memory_dataset", dataset)
	b.text("used_memory_dataset_perc", percent(dataset, m.heap-startup))
	b.number("mem_clients_normal", clients.normal)
	b.number("mem_clients_slaves", clients.followers)
	b.number("mem_total_replication_buffers", clients.streamed)
	b.number("mem_aof_buffer", srv.storageStatus().JournalBuffer)
	b.scriptMemory(srv)
	active := m.heap + m.idle
	b.number("allocator_allocated", m.heap)
	b.number("allocator_active", active)
	b.number("allocator_resident", m.mapped)
	b.ratio("allocator_frag_ratio", active, m.heap)
	b.number("allocator_frag_bytes", m.idle)
	b.ratio("allocator_rss_ratio", m.mapped, active)
	b.number("allocator_rss_bytes", m.mapped-active)
	if total, ok := systemMemory(); ok {
		b.bytes("total_system_memory", total)
	}
	b.bytes("maxmemory", srv.eviction.limit.Load())
	b.text("maxmemory_policy", srv.config.Value("maxmemory-policy"))
	notCounted := int64(0)
	if srv.eviction.limit.Load() != 0 {
		notCounted = max(m.heap-srv.usedMemory(), 0)
	}
	b.number("mem_not_counted_for_evict", notCounted)
	b.zeros("mem_replication_backlog", "mem_cluster_links", "mem_overhead_db_hashtable_rehashing", "active_defrag_running",
		"lazyfree_pending_objects", "lazyfreed_objects")
	b.text("mem_allocator", "go")
	b.number("gc_cycles", m.collections)
}

// scriptMemory tells what scripts and functions take: the virtual machines, and the sources that are kept.
func (b *infoText) scriptMemory(srv *Server) {
	eval, functions := int64(srv.scripts.engine.VMs())*scripting.VMBytes,
		int64(srv.scripts.functions.VMs())*scripting.VMBytes
	cached, loaded := srv.cachedScriptBytes(), srv.cachedFunctionBytes()
	libraries, count := srv.scripts.functions.Count()
	b.bytes("used_memory_lua", eval)
	b.number("used_memory_vm_eval", eval)
	b.number("used_memory_scripts_eval", cached)
	b.number("number_of_cached_scripts", int64(srv.scripts.engine.Len()))
	b.number("number_of_functions", int64(count))
	b.number("number_of_libraries", int64(libraries))
	b.number("used_memory_vm_functions", functions)
	b.bytes("used_memory_vm_total", eval+functions)
	b.number("used_memory_functions", loaded)
	b.bytes("used_memory_scripts", cached+loaded)
}

// ratio writes a ratio of two sizes.
func (b *infoText) ratio(name string, part, of int64) {
	b.text(name, strconv.FormatFloat(ratio(part, of), 'f', 2, 64))
}

func percent(part, whole int64) string {
	if whole <= 0 {
		whole = 1
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 2, 64) + "%"
}

// persistence tells of the storage: checkpoints in the words that Redis has for snapshots, the journal in those that
// it has for the AOF.
func (b *infoText) persistence(c *command.Ctx) {
	srv := serverOf(c)
	st := srv.storageStatus()
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
	loaded := srv.stats.loaded.Load()
	if loaded == nil {
		loaded = &loadedKeys{keys: st.LoadedKeys}
	}
	b.flag("loading", st.Loading || srv.replica.loading.Load())
	b.zeros("async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age")
	saved, toSave := int64(0), int64(0)
	if st.Checkpoint {
		saved, toSave = int64(st.Written), int64(st.Total)
	}
	b.text("current_fork_perc", strconv.FormatFloat(100*ratio(saved, toSave), 'f', 2, 64))
	b.number("current_save_keys_processed", saved)
	b.number("current_save_keys_total", toSave)
	if st.Loading {
		elapsed, part := now.Sub(st.LoadBegan).Seconds(), ratio(int64(st.LoadedKeys), int64(st.LoadTotal))
		left := 1.0 // as Redis says before it can tell
		if elapsed >= 1 && part > 0 {
			left = elapsed/part - elapsed
		}
		b.number("loading_start_time", st.LoadBegan.Unix())
		b.number("loading_total_bytes", st.LoadBytes)
		b.number("loading_rdb_used_mem", 0)
		b.number("loading_loaded_bytes", int64(part*float64(st.LoadBytes)))
		b.text("loading_loaded_perc", strconv.FormatFloat(100*part, 'f', 2, 64))
		b.number("loading_eta_seconds", int64(left))
		b.number("loading_loaded_keys", int64(st.LoadedKeys))
		b.number("loading_total_keys", int64(st.LoadTotal))
	}
	b.number("rdb_changes_since_last_save", c.G.Stats().Changes-st.Changes)
	b.flag("rdb_bgsave_in_progress", st.Checkpoint)
	b.number("rdb_last_save_time", srv.lastSave(st).Unix())
	b.text("rdb_last_bgsave_status", lastStatus)
	b.number("rdb_last_bgsave_time_sec", took)
	b.number("rdb_current_bgsave_time_sec", running)
	b.number("rdb_saves", int64(st.Checkpoints))
	b.number("rdb_last_cow_size", 0)
	b.number("rdb_last_load_keys_expired", int64(loaded.expired))
	b.number("rdb_last_load_keys_loaded", int64(loaded.keys))
	b.flag("aof_enabled", st.Journal)
	b.flag("aof_rewrite_in_progress", st.Checkpoint)
	b.number("aof_rewrite_scheduled", 0)
	b.number("aof_last_rewrite_time_sec", took)
	b.number("aof_current_rewrite_time_sec", running)
	b.text("aof_last_bgrewrite_status", lastStatus)
	rewrites, failures := 0, 0
	if st.Journal {
		rewrites, failures = st.Checkpoints, st.Failed
	}
	b.number("aof_rewrites", int64(rewrites))
	b.number("aof_rewrites_consecutive_failures", int64(failures))
	writeStatus := "ok"
	if srv.storage.Storage != nil {
		if f := srv.storage.Err(); f != nil && f.Journal {
			writeStatus = "err"
		}
	}
	b.text("aof_last_write_status", writeStatus)
	b.zeros("aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
	if st.Journal {
		b.number("aof_current_size", st.JournalSize)
		b.number("aof_base_size", st.JournalSize-st.JournalSince)
		b.number("aof_buffer_length", st.JournalBuffer)
		b.flag("aof_pending_bio_fsync", st.Unsynced > st.JournalBuffer)
		b.zeros("aof_pending_rewrite", "aof_delayed_fsync")
	}
	if st.Checkpoint {
		b.number("checkpoint_keys_written", int64(st.Written))
		b.number("checkpoint_keys_total", int64(st.Total))
	}
	for _, err := range []error{st.Failure, st.LastErr} {
		if err != nil {
			b.text("storage_last_error", command.OneLine(err.Error()))
			break
		}
	}
}

func (b *infoText) stats(c *command.Ctx) {
	srv := serverOf(c)
	srv.rates.sample(srv, c.Now())
	rate := srv.rates.throughput()
	s := &srv.stats
	b.number("total_connections_received", s.connections.Load())
	b.number("total_commands_processed", srv.commandCalls())
	b.number("instantaneous_ops_per_sec", rate.commands)
	b.number("total_net_input_bytes", s.bytesIn.Load())
	b.number("total_net_output_bytes", s.bytesOut.Load())
	b.number("total_net_repl_input_bytes", s.replIn.Load())
	b.number("total_net_repl_output_bytes", s.replOut.Load())
	b.text("instantaneous_input_kbps", strconv.FormatFloat(rate.in, 'f', 2, 64))
	b.text("instantaneous_output_kbps", strconv.FormatFloat(rate.out, 'f', 2, 64))
	b.text("instantaneous_input_repl_kbps", strconv.FormatFloat(rate.replIn, 'f', 2, 64))
	b.text("instantaneous_output_repl_kbps", strconv.FormatFloat(rate.replOut, 'f', 2, 64))
	b.number("rejected_connections", s.rejected.Load())
	b.number("sync_full", s.copies.Load())
	b.number("sync_partial_ok", 0)
	b.number("sync_partial_err", s.noPartial.Load())
	k := c.G.Stats()
	b.number("evicted_keys", k.Evicted)
	b.number("evicted_clients", srv.eviction.clients.Load())
	b.zeros("evicted_scripts")
	current, total := srv.eviction.exceeded(srv.ticks())
	b.number("total_eviction_exceeded_time", total/1e6)
	b.number("current_eviction_exceeded_time", current/1e6)
	b.number("expired_subkeys", k.ExpiredFields)
	b.number("expired_keys", k.Expired)
	b.text("expired_stale_perc", "0.00") // keys are removed at their deadline
	b.number("expired_time_cap_reached_count", 0)
	b.number("expire_cycle_cpu_milliseconds", k.ExpiryNanos/1e6)
	b.number("keyspace_hits", k.Hits)
	b.number("keyspace_misses", k.Misses)
	channels, patterns, shards := srv.pubsub.sizes()
	b.number("pubsub_channels", int64(channels))
	b.number("pubsub_patterns", int64(patterns))
	b.number("pubsubshard_channels", int64(shards))
	b.zeros("latest_fork_usec", "total_forks")
	b.number("migrate_cached_sockets", int64(srv.migrations.Len()))
	b.zeros("slave_expires_tracked_keys", "active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits",
		"active_defrag_key_misses", "total_active_defrag_time", "current_active_defrag_time")
	_, keys, readers, prefixes := srv.tracking.size()
	b.number("tracking_total_keys", int64(keys))
	b.number("tracking_total_items", int64(readers))
	b.number("tracking_total_prefixes", int64(prefixes))
	b.number("unexpected_error_replies", s.unexpected.Load())
	b.number("total_error_replies", s.errors.Replies())
	b.number("dump_payload_sanitizations", s.restored.Load())
	b.number("client_query_buffer_limit_disconnections", s.inputTooLong.Load())
	b.number("client_output_buffer_limit_disconnections", s.outputTooLong.Load())
	b.number("acl_access_denied_auth", s.denied[acl.DeniedAuth].Load())
	b.number("acl_access_denied_cmd", s.denied[acl.DeniedCommand].Load())
	b.number("acl_access_denied_key", s.denied[acl.DeniedKey].Load())
	b.number("acl_access_denied_channel", s.denied[acl.DeniedChannel].Load())
	reads, writes := s.loopReads.Load(), s.loopWrites.Load()
	b.number("total_reads_processed", reads+s.reads.Load())
	b.number("total_writes_processed", writes+s.writes.Load())
	if srv.config.Get().IOThreads == 1 {
		reads, writes = 0, 0 // one event loop is no I/O thread
	}
	b.number("io_threaded_reads_processed", reads)
	b.number("io_threaded_writes_processed", writes)
	b.number("reply_buffer_shrinks", s.shrinks.Load())
	b.number("reply_buffer_expands", s.expands.Load())
	b.number("eventloop_cycles", s.rounds.Load())
	b.number("eventloop_duration_sum", srv.loopTime().Microseconds())
	b.number("eventloop_duration_cmd_sum", srv.commandTime().Microseconds())
	b.number("instantaneous_eventloop_cycles_per_sec", rate.rounds)
	b.number("instantaneous_eventloop_duration_usec", rate.roundMicros)
}

// sizes returns the numbers of channels, patterns and shard channels with subscribers.
func (h *hub) sizes() (channels, patterns, shards int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.channels), len(h.patterns), len(h.shards)
}

// cpu tells of event loops as of the main thread; without any the main thread is the process.
func (b *infoText) cpu(c *command.Ctx) {
	system, user, ok := cpuSeconds()
	if !ok {
		return
	}
	b.seconds("used_cpu_sys", system)
	b.seconds("used_cpu_user", user)
	b.seconds("used_cpu_sys_children", 0)
	b.seconds("used_cpu_user_children", 0)
	if t, ok := serverOf(c).transport.(threaded); ok {
		times := t.processorTimes()
		system, user = times.system.Seconds(), times.user.Seconds()
	}
	b.seconds("used_cpu_sys_main_thread", system)
	b.seconds("used_cpu_user_main_thread", user)
}

func (b *infoText) seconds(name string, s float64) { b.text(name, strconv.FormatFloat(s, 'f', 6, 64)) }

func (b *infoText) commandStats(c *command.Ctx) {
	srv := serverOf(c)
	var all []*command.Command
	for _, cmd := range srv.table.Commands() {
		all = append(append(all, cmd), cmd.Subs...)
	}
	slices.SortFunc(all, func(x, y *command.Command) int { return cmp.Compare(x.Name, y.Name) })
	for _, cmd := range all {
		s := srv.commandStats.Seen(cmd)
		calls, rejected, failed := s.Calls.Load(), s.Rejected.Load(), s.Failed.Load()
		if calls == 0 && rejected == 0 && failed == 0 {
			continue
		}
		usec := float64(s.Nanos.Load()) / 1000
		perCall := 0.0
		if calls > 0 {
			perCall = usec / float64(calls)
		}
		fmt.Fprintf(b, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d\r\n",
			cmd.Name, calls, int64(usec), perCall, rejected, failed)
	}
}

func (b *infoText) errorStats(c *command.Ctx) {
	serverOf(c).stats.errors.Each(func(code string, n int64) { fmt.Fprintf(b, "errorstat_%s:count=%d\r\n", code, n) })
}

func (b *infoText) latencyStats(c *command.Ctx) {
	srv := serverOf(c)
	percentiles := srv.config.Get().LatencyPercentiles
	for cmd := range srv.table.All {
		h := srv.commandStats.Seen(cmd).Histogram()
		if h == nil {
			continue
		}
		parts := make([]string, len(percentiles))
		for i, p := range percentiles {
			parts[i] = fmt.Sprintf("p%s=%.3f", config.PercentileText(p), float64(h.Percentile(p))/1000)
		}
		b.text("latency_percentiles_usec_"+cmd.Name, strings.Join(parts, ","))
	}
}

func (b *infoText) cluster(c *command.Ctx) { b.flag("cluster_enabled", serverOf(c).cluster != nil) }

func (b *infoText) keyspace(c *command.Ctx) {
	for db := range serverOf(c).ks.Databases() {
		if s := c.G.DBStats(db); s.Keys > 0 {
			fmt.Fprintf(b, "db%d:keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d\r\n", db, s.Keys, s.Expires, s.AvgTTL,
				s.FieldExpires)
		}
	}
}

// newRunID returns a number by which this run of the server can be told from all others.
func newRunID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
