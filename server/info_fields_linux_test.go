package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// infoFields are the fields of Redis 7.0.15 with an append-only file, and those that later versions up to 8.10 have
// added.
var infoFields = map[string]string{
	"Server": `
		redis_version redis_git_sha1 redis_git_dirty redis_build_id redis_mode os arch_bits monotonic_clock
		multiplexing_api atomicvar_api gcc_version process_id process_supervised run_id tcp_port
		server_time_usec uptime_in_seconds uptime_in_days hz configured_hz lru_clock executable config_file
		io_threads_active listener0`,
	"Clients": `
		connected_clients cluster_connections maxclients client_recent_max_input_buffer
		client_recent_max_output_buffer blocked_clients tracking_clients clients_in_timeout_table
		pubsub_clients watching_clients total_watched_keys total_blocking_keys total_blocking_keys_on_nokey`,
	"Memory": `
		used_memory used_memory_human used_memory_rss used_memory_rss_human used_memory_peak
		used_memory_peak_human used_memory_peak_perc used_memory_overhead used_memory_startup
		used_memory_dataset used_memory_dataset_perc allocator_allocated allocator_active allocator_resident
		total_system_memory total_system_memory_human used_memory_lua used_memory_vm_eval
		used_memory_lua_human used_memory_scripts_eval number_of_cached_scripts number_of_functions
		number_of_libraries used_memory_vm_functions used_memory_vm_total used_memory_vm_total_human
		used_memory_functions used_memory_scripts used_memory_scripts_human maxmemory maxmemory_human
		maxmemory_policy allocator_frag_ratio allocator_frag_bytes allocator_rss_ratio allocator_rss_bytes
		rss_overhead_ratio rss_overhead_bytes mem_fragmentation_ratio mem_fragmentation_bytes
		mem_not_counted_for_evict mem_replication_backlog mem_total_replication_buffers mem_clients_slaves
		mem_clients_normal mem_cluster_links mem_aof_buffer mem_allocator active_defrag_running
		lazyfree_pending_objects lazyfreed_objects mem_overhead_db_hashtable_rehashing used_memory_peak_time
		allocator_muzzy mem_replica_full_sync_buffer mem_cluster_slot_migration_output_buffer
		mem_cluster_slot_migration_input_buffer mem_cluster_slot_migration_input_buffer_peak
		used_memory_hash_templates`,
	"Persistence": `
		loading async_loading current_cow_peak current_cow_size current_cow_size_age current_fork_perc
		current_save_keys_processed current_save_keys_total rdb_changes_since_last_save
		rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status rdb_last_bgsave_time_sec
		rdb_current_bgsave_time_sec rdb_saves rdb_saves_consecutive_failures rdb_last_cow_size rdb_last_load_keys_expired
		rdb_last_load_keys_loaded aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled
		aof_last_rewrite_time_sec aof_current_rewrite_time_sec aof_last_bgrewrite_status aof_rewrites
		aof_rewrites_consecutive_failures aof_last_write_status aof_last_cow_size module_fork_in_progress
		module_fork_last_cow_size aof_current_size aof_base_size aof_pending_rewrite aof_buffer_length
		aof_pending_bio_fsync aof_delayed_fsync`,
	"Stats": `
		total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes
		total_net_output_bytes total_net_repl_input_bytes total_net_repl_output_bytes
		instantaneous_input_kbps instantaneous_output_kbps instantaneous_input_repl_kbps
		instantaneous_output_repl_kbps rejected_connections sync_full sync_partial_ok sync_partial_err
		expired_keys expired_stale_perc expired_time_cap_reached_count expire_cycle_cpu_milliseconds
		evicted_keys tier_unloaded_values tier_loaded_values tier_loaded_parts tier_waits
		evicted_clients total_eviction_exceeded_time current_eviction_exceeded_time
		keyspace_hits keyspace_misses pubsub_channels pubsub_patterns pubsubshard_channels latest_fork_usec
		total_forks migrate_cached_sockets slave_expires_tracked_keys active_defrag_hits
		active_defrag_misses active_defrag_key_hits active_defrag_key_misses total_active_defrag_time
		current_active_defrag_time tracking_total_keys tracking_total_items tracking_total_prefixes
		unexpected_error_replies total_error_replies dump_payload_sanitizations total_reads_processed
		total_writes_processed io_threaded_reads_processed io_threaded_writes_processed reply_buffer_shrinks
		reply_buffer_expands expired_subkeys evicted_scripts acl_access_denied_auth acl_access_denied_cmd
		acl_access_denied_key acl_access_denied_channel client_query_buffer_limit_disconnections
		client_output_buffer_limit_disconnections eventloop_cycles eventloop_duration_sum
		eventloop_duration_cmd_sum instantaneous_eventloop_cycles_per_sec
		instantaneous_eventloop_duration_usec expired_keys_active expired_subkeys_active
		acl_access_denied_tls_cert io_threaded_total_prefetch_batches io_threaded_total_prefetch_entries
		hash_templates hash_template_keys slowlog_commands_count slowlog_commands_time_ms_sum
		slowlog_commands_time_ms_max total_client_processing_events eventloop_cycles_with_clients_processing
		commands_per_parse_batch_sum commands_per_parse_batch_cnt commands_per_parse_batch_avg`,
	"Replication": `
		role connected_slaves master_failover_state master_replid master_replid2 master_repl_offset
		second_repl_offset repl_backlog_active repl_backlog_size repl_backlog_first_byte_offset
		repl_backlog_histlen`,
	"CPU": `
		used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children used_cpu_sys_main_thread
		used_cpu_user_main_thread`,
	"Cluster": `cluster_enabled`,
}

// infoSectionsOf returns the fields of a reply of INFO by section.
func infoSectionsOf(reply string) map[string]map[string]string {
	sections := map[string]map[string]string{}
	var fields map[string]string
	for line := range strings.Lines(reply) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# "); ok {
			fields = map[string]string{}
			sections[name] = fields
		} else if name, value, ok := strings.Cut(line, ":"); ok && fields != nil {
			fields[name] = value
		}
	}
	return sections
}

func TestInfoHasAllFieldsOfRedis(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		o.FS = crashfs.Mem()
		s := startTestServer(t, o, append(settings, "appendonly", "yes", "dir", "/db")...)
		got := infoSectionsOf(s.connect().do("INFO all"))
		for section, names := range infoFields {
			for _, name := range strings.Fields(names) {
				require.Contains(t, got[section], name, section)
			}
		}
		for _, section := range []string{"Modules", "Store", "Threads", "Hotkeys", "Commandstats", "Errorstats", "Latencystats",
			"Keyspace"} {
			require.Contains(t, got, section)
		}
		require.Len(t, got, len(infoFields)+8)
	})
}

func TestInfoOfAReplicaHasAllFieldsOfRedis(t *testing.T) {
	m := newScriptedMaster(t)
	s := startTestServer(t, Options{}, "appendonly", "no")
	c := s.connect()
	require.Equal(t, "+OK", c.do("REPLICAOF "+m.hostPort()))
	a := m.accept(append(introduction(0), "PSYNC ? -1=+FULLRESYNC "+oldHistory+" 0")...)
	data := rdbFile(t, "SET a 1", "SET b 1")
	a.send(fmt.Sprintf("$%d\r\n%s", len(data), data[:len(data)/2]))
	c.waitFor("INFO replication", "master_sync_read_bytes:"+strconv.Itoa(len(data)/2))
	got := infoSectionsOf(c.do("INFO replication"))["Replication"]
	for _, name := range strings.Fields(`master_host master_port master_link_status master_last_io_seconds_ago master_sync_in_progress
		slave_read_repl_offset slave_repl_offset master_sync_total_bytes master_sync_read_bytes master_sync_left_bytes master_sync_perc
		master_sync_last_io_seconds_ago master_link_down_since_seconds slave_priority slave_read_only replica_announced`) {
		require.Contains(t, got, name)
	}
	require.Equal(t, fmt.Sprintf("%.2f", 100*float64(len(data)/2)/float64(len(data))), got["master_sync_perc"])
	a.send(string(data[len(data)/2:]))
	c.waitFor("INFO persistence", "rdb_last_load_keys_loaded:2\r\n")
	c.waitFor("INFO replication", "master_link_status:up")
	read := c.infoNumber("total_net_repl_input_bytes")
	require.Greater(t, read, float64(len(data)))
	require.Greater(t, c.infoNumber("total_net_input_bytes"), read)
}

// info returns a field of INFO.
func (c *testClient) info(name string) string {
	c.t.Helper()
	for _, fields := range infoSectionsOf(c.do("INFO everything")) {
		if value, ok := fields[name]; ok {
			return value
		}
	}
	require.FailNow(c.t, "missing", name)
	return ""
}

// infoNumber returns a field of INFO that is a number.
func (c *testClient) infoNumber(name string) float64 {
	c.t.Helper()
	n, err := strconv.ParseFloat(c.info(name), 64)
	require.NoError(c.t, err)
	return n
}

func TestInfoTellsOfFollowers(t *testing.T) {
	srv, host, port := listening(t)
	c := (&testServer{srv, t}).connect()
	require.Equal(t, "0", c.info("sync_full"))
	require.Equal(t, "0", c.info("mem_clients_slaves"))
	file := newRawFollower(t, host, port).follow("eof")
	require.Equal(t, "1", c.info("sync_full"))
	require.Equal(t, "0", c.info("sync_partial_err"))
	require.GreaterOrEqual(t, c.infoNumber("total_net_repl_output_bytes"), float64(len(file)))
	require.Greater(t, c.infoNumber("total_net_output_bytes"), c.infoNumber("total_net_repl_output_bytes"))
	require.Positive(t, c.infoNumber("mem_clients_slaves"))
	again := newRawFollower(t, host, port)
	again.say("PSYNC " + oldHistory + " 7")
	require.Contains(t, again.line(), "+FULLRESYNC")
	require.Equal(t, "2", c.info("sync_full"))
	require.Equal(t, "1", c.info("sync_partial_err"))
	c.do("CONFIG RESETSTAT")
	require.Equal(t, "0", c.info("sync_full"))
	require.Equal(t, "0", c.info("sync_partial_err"))
}

func TestInfoTellsTheLargestBuffersOfLate(t *testing.T) {
	b := newHarness(t)
	s, slow := b.session(), b.session()
	peaks := func() []int64 {
		return infoNumbers(t, b, s, "client_recent_max_input_buffer", "client_recent_max_output_buffer")
	}
	require.Zero(t, peaks()[1])
	slow.Input(request("ECHO", strings.Repeat("x", 50_000)), b.ks.Now())
	slow.Input([]byte("*2\r\n$4\r\nECHO\r\n$90000\r\n"+strings.Repeat("y", 70_000)), b.ks.Now())
	now := peaks()
	require.GreaterOrEqual(t, now[0], int64(70_000))
	require.GreaterOrEqual(t, now[1], int64(50_000))
	slow.Input([]byte(strings.Repeat("y", 20_000)+"\r\n"), b.ks.Now())
	require.GreaterOrEqual(t, peaks()[1], int64(140_000))
	slow.Close()
	require.GreaterOrEqual(t, peaks()[1], int64(140_000), "it counts for a while")
	b.clock.Advance(8 * time.Second)
	require.Less(t, peaks()[1], int64(50_000))
}

func TestInfoCountsChangesOfReplyBuffers(t *testing.T) {
	b := newHarness(t)
	s, asks := b.session(), b.session()
	changes := func() string {
		return fmt.Sprint(b.sessions.Counters.Expands.Load(), " ", b.sessions.Counters.Shrinks.Load())
	}
	reply := func(size int) {
		s.Input(request("ECHO", strings.Repeat("x", size)), b.ks.Now())
		s.SetOutput(s.Output()[:0])
	}
	reply(10)
	require.Equal(t, "0 0", changes())
	reply(5000)
	reply(5000)
	require.Equal(t, "1 0", changes())
	for range 10 {
		b.clock.Advance(time.Second)
		require.False(t, s.Expired(b.ks.Now()))
	}
	require.Equal(t, "1 1", changes())
	require.Equal(t, []int64{1, 1}, infoNumbers(t, b, asks, "reply_buffer_expands", "reply_buffer_shrinks"))
}

func TestInfoCountsPayloadsThatWereChecked(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	b.feed(s, request("SET", "k", "v"))
	_, payload, _ := strings.Cut(strings.TrimSuffix(b.feed(s, request("DUMP", "k")), "\r\n"), "\r\n")
	b.feed(s, request("RESTORE", "a", "0", payload), request("RESTORE", "b", "0", payload),
		request("RESTORE", "c", "0", payload+"x"))
	require.Equal(t, int64(3), infoNumber(t, b, s, "dump_payload_sanitizations"))
	b.feed(s, request("RESTORE", "a", "0", payload))
	require.Equal(t, int64(3), infoNumber(t, b, s, "dump_payload_sanitizations"),
		"nothing is checked where a key is in the way")
	b.feed(s, request("CONFIG", "RESETSTAT"))
	require.Zero(t, infoNumber(t, b, s, "dump_payload_sanitizations"))
}

func TestInfoSumsUpTheSlowLog(t *testing.T) {
	c := startTestServer(t, Options{}, "slowlog-log-slower-than", "-1", "slowlog-max-len", "1", "enable-debug-command", "yes").connect()
	require.Equal(t, "0", c.info("slowlog_commands_count"))
	require.Equal(t, "0.00", c.info("slowlog_commands_time_ms_sum"))
	require.Equal(t, "0.00", c.info("slowlog_commands_time_ms_max"))
	c.do("CONFIG SET slowlog-log-slower-than 0")
	c.do("DEBUG SLEEP 0.002")
	c.do("DEBUG SLEEP 0.005")
	c.do("CONFIG SET slowlog-log-slower-than -1")
	c.do("SLOWLOG RESET")
	require.Equal(t, "3", c.info("slowlog_commands_count"), "CONFIG SET is the third")
	longest, sum := c.infoNumber("slowlog_commands_time_ms_max"), c.infoNumber("slowlog_commands_time_ms_sum")
	require.GreaterOrEqual(t, longest, 5.0)
	require.GreaterOrEqual(t, sum, longest+2)
	stats := c.info("cmdstat_debug")
	require.Regexp(t, `failed_calls=0,slowlog_count=2,slowlog_time_ms_sum=[0-9]+\.[0-9]{2},slowlog_time_ms_max=[0-9]+\.[0-9]{2}$`, stats)
	require.NotContains(t, c.info("cmdstat_slowlog|reset"), "slowlog_")
	c.do("CONFIG RESETSTAT")
	require.Equal(t, "0", c.info("slowlog_commands_count"))
	require.Equal(t, "0.00", c.info("slowlog_commands_time_ms_max"))
}

func TestInfoTellsHowManyKeysWereRead(t *testing.T) {
	fs := crashfs.Mem()
	putFile(t, fs, "/db/dump.rdb", rdbFile(t, "SET a 1", "SET b 2", "RPUSH l x y"))
	d, err := openDurable(t, fs, "appendonly=yes")
	require.NoError(t, err)
	require.Equal(t, "3", d.info("rdb_last_load_keys_loaded"))
	require.Equal(t, "0", d.info("rdb_last_load_keys_expired"))
	before, err := strconv.Atoi(d.info("aof_rewrites"))
	require.NoError(t, err)
	d.expect("+OK\r\n", "SET c 3")
	d.expect("+OK\r\n", "SAVE")
	require.Equal(t, strconv.Itoa(before+1), d.info("aof_rewrites"))
	require.Equal(t, "0", d.info("aof_rewrites_consecutive_failures"))
	d.end()
	d, err = openDurable(t, fs, "appendonly=yes")
	require.NoError(t, err)
	require.Equal(t, "4", d.info("rdb_last_load_keys_loaded"))
	d.end()
}

func TestInfoTellsHowFarAFileIs(t *testing.T) {
	written := func() {} // called when the file is complete, and before the save is
	fs := crashfs.Wrap(crashfs.Mem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename && strings.HasPrefix(op.Path, "/db/dump.rdb") {
			written()
		}
		return nil
	}))
	d, err := openDurable(t, fs, inMemory)
	require.NoError(t, err)
	progress := func() string {
		return strings.Join([]string{d.info("current_save_keys_processed"), d.info("current_save_keys_total"),
			d.info("current_fork_perc")}, " ")
	}
	d.do("SET a 1", "SET b 2", "SELECT 1", "SET c 3", "SELECT 0")
	require.Equal(t, "0 0 0.00", progress())
	require.True(t, d.dump.Begin())
	require.Equal(t, "0 0 0.00", progress())
	during := ""
	written = func() { during = progress() }
	require.NoError(t, d.dump.Save())
	require.Equal(t, "3 3 100.00", during)
	require.Equal(t, "0 0 0.00", progress())
	d.end()
}

func TestInfoTellsHowFarACheckpointIs(t *testing.T) {
	d, err := openDurable(t, crashfs.Mem(), "rdb-key-save-delay=10000000")
	require.NoError(t, err)
	d.do("SET a 1", "SET b 2", "SET c 3")
	d.expect("+Background saving started\r\n", "BGSAVE")
	for d.info("current_save_keys_total") != "3" {
	}
	require.Equal(t, "1", d.info("aof_rewrite_in_progress"))
	require.Less(t, d.info("current_save_keys_processed"), "4")
	d.end() // it does not wait for the delay
}

func TestInfoTellsHowFarLoadingIs(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	d.do("SET a 1", "SET b 2", "SAVE")
	d.end()
	d, err = openDurable(t, fs, "key-load-delay=2000000000")
	require.NoError(t, err)
	require.Equal(t, "1", d.info("loading"))
	require.Equal(t, "2", d.info("loading_total_keys"))
	total, err := strconv.Atoi(d.info("loading_total_bytes"))
	require.NoError(t, err)
	require.Positive(t, total)
	require.Contains(t, []string{"0", strconv.Itoa(total / 2), strconv.Itoa(total)}, d.info("loading_loaded_bytes"))
	require.Equal(t, "0", d.info("loading_rdb_used_mem"))
	require.Contains(t, []string{"0", "1"}, d.info("loading_eta_seconds"))
	require.Contains(t, []string{"0.00", "100.00"}, d.info("loading_loaded_perc"))
	began, err := strconv.ParseInt(d.info("loading_start_time"), 10, 64)
	require.NoError(t, err)
	require.InDelta(t, time.Now().Unix(), began, 60)
	d.end()
}

func TestInfoTellsOfEventLoops(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, settings...)
		c := s.connect()
		for range 100 {
			c.do("PING")
		}
		for c.infoNumber("used_cpu_sys_main_thread")+c.infoNumber("used_cpu_user_main_thread") == 0 {
		}
		require.Positive(t, c.infoNumber("eventloop_duration_cmd_sum"))
		require.GreaterOrEqual(t, c.infoNumber("total_reads_processed"), 100.0)
		if slices.Contains(settings, "io-threads") {
			require.GreaterOrEqual(t, c.infoNumber("io_threaded_reads_processed"), 100.0)
		} else {
			require.Zero(t, c.infoNumber("io_threaded_reads_processed"))
		}
		clients, reads, threads := 0, 0, 0
		for line := range strings.Lines(c.do("INFO threads")) {
			var thread, its, has int
			if n, _ := fmt.Sscanf(line, "io_thread_%d:clients=%d,reads=%d", &thread, &its, &has); n == 3 {
				require.Equal(t, threads, thread)
				clients, reads, threads = clients+its, reads+has, threads+1
			}
		}
		require.Equal(t, s.config.Get().Threads.Loops, threads)
		require.Equal(t, 1, clients)
		require.GreaterOrEqual(t, reads, 100)
		require.Zero(t, testing.AllocsPerRun(10, func() { s.loopTime() })) // it reads no file: loops ask once a second
		if s.loops == nil {
			require.Zero(t, c.infoNumber("eventloop_cycles"))
			require.Zero(t, c.infoNumber("eventloop_cycles_with_clients_processing"))
			require.Zero(t, c.infoNumber("eventloop_duration_sum"))
			return
		}
		require.GreaterOrEqual(t, c.infoNumber("eventloop_cycles"), 100.0)
		require.GreaterOrEqual(t, c.infoNumber("eventloop_cycles_with_clients_processing"), 100.0)
		before := c.infoNumber("eventloop_duration_sum")
		require.Positive(t, before)
		require.Greater(t, c.infoNumber("eventloop_duration_sum"), before)
		c.do("CONFIG RESETSTAT")
		require.Less(t, c.infoNumber("eventloop_cycles"), 20.0)
		require.Less(t, c.infoNumber("eventloop_duration_sum"),
			float64(s.loops.ProcessorTimes().Total.Microseconds()))
	})
}

func TestInfoTellsWhetherTheUseOfKeysIsMeasured(t *testing.T) {
	c := startTestServer(t, Options{}).connect()
	require.Equal(t, "# Hotkeys\r\n", c.do("INFO hotkeys"))
	for _, command := range []string{"HOTKEYS START METRICS 1 CPU", "HOTKEYS STOP"} {
		require.Equal(t, "+OK", c.do(command))
		active := strings.Contains(command, "START")
		require.Equal(t, active, c.info("hotkeys-tracking-active") == "1")
		require.Equal(t, "0", c.info("hotkeys-cmd-cpu-time"))
	}
}

func TestInfoTellsHz(t *testing.T) {
	c := startTestServer(t, Options{}).connect()
	require.Equal(t, "10", c.info("hz"))
	c.do("CONFIG SET hz 50")
	require.Equal(t, "50", c.info("configured_hz"))
}
