package http

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// untold matches the numbers of INFO that are not metrics: constants of atomredis, and duplicates of other fields.
var untold = regexp.MustCompile(`^(` + strings.Join([]string{
	"redis_git_.*", "redis_build_id", "run_id", "master_replid2?", "arch_bits",
	"process_id", "tcp_port", "server_time_usec", "uptime_in_days", "hz", "configured_hz",
	"lru_clock", "io_uring_active", "cluster_connections", "rss_overhead_.*", "mem_fragmentation_bytes", "used_memory_lua",
	"used_memory_scripts_eval", "used_memory_vm_total", "allocator_allocated", "allocator_frag_.*", "allocator_rss_.*",
	"mem_replication_backlog", "mem_replica_full_sync_buffer", "mem_cluster_.*", "allocator_muzzy", ".*hash_template.*",
	"io_threaded_total_prefetch_.*", "total_client_processing_events", "commands_per_parse_batch_.*", "rdb_saves_consecutive_failures",
	"mem_overhead_db_hashtable_rehashing", "active_defrag_.*", "lazyfree.*",
	"async_loading", "current_cow_.*", "current_fork_.*", "rdb_last_cow_size", "rdb_last_load_.*", "aof_rewrite_scheduled",
	"aof_last_rewrite_time_sec", "aof_current_rewrite_time_sec", "aof_rewrites", "aof_last_cow_size", "module_fork_.*", "aof_pending_.*",
	"instantaneous_(input|output|eventloop)_.*", "current_eviction_exceeded_time", "expired_stale_perc",
	"expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds", "latest_fork_usec", "total_forks", "migrate_cached_sockets",
	"slave_expires_tracked_keys", "total_active_defrag_time", "current_active_defrag_time", "dump_payload_sanitizations",
	"cluster_rebalance_last_slots", "second_repl_offset", "used_cpu_.*_main_thread", "search_.*",
}, "|") + `)$`)

func TestEveryNumberOfInfoIsAMetric(t *testing.T) {
	db, err := atomredis.Open(atomredis.Options{Dir: t.TempDir(), Config: map[string]string{"door-http": "127.0.0.1:0",
		"archive": t.TempDir()}})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	reply, err := db.Do(t.Context(), "INFO", "everything")
	require.NoError(t, err)
	text, err := reply.Text()
	require.NoError(t, err)
	raft := freeport.Addr(t)
	shard, err := atomredis.Open(atomredis.Options{Dir: t.TempDir(), Config: map[string]string{"raft-addr": raft, "raft-peers": raft,
		"cluster-enabled": "yes"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, shard.Close()) }()
	reply, err = shard.Do(t.Context(), "INFO", "cluster")
	require.NoError(t, err)
	clustered, err := reply.Text()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, f := range append(fieldsOf(text), fieldsOf(clustered)...) {
		seen[f.name] = true
		if _, err := strconv.ParseFloat(f.value, 64); err != nil || f.section == "Door_http" {
			continue
		}
		_, told := fields[f.name]
		require.NotEqual(t, told, untold.MatchString(f.name), f.name)
	}
	for name := range flags {
		require.True(t, seen[name] || strings.HasPrefix(name, "master_"), name)
	}
	for name := range fields {
		require.True(t, seen[name] || strings.HasPrefix(name, "master_") || strings.HasPrefix(name, "slave_") ||
			strings.HasPrefix(name, "loading_") || strings.HasPrefix(name, "raft_"), name)
	}
}
