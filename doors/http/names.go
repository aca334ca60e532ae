package http

import dto "github.com/prometheus/client_model/go"

// metric describes a metric: its name, and the factor that converts it to seconds, bytes or a ratio. Names are those of
// redis_exporter for the same quantities in these units.
type metric struct {
	name, help string
	kind       dto.MetricType
	scale      float64
}

func gauge(name, help string) metric   { return metric{name, help, dto.MetricType_GAUGE, 1} }
func counter(name, help string) metric { return metric{name, help, dto.MetricType_COUNTER, 1} }

// in returns the metric with the given scale.
func (m metric) in(scale float64) metric {
	m.scale = scale
	return m
}

const (
	micro, milli = 1e-6, 1e-3
)

// fields has the numeric fields of INFO, except those that only mean something in Redis.
var fields = map[string]metric{
	"uptime_in_seconds": gauge("redis_uptime_in_seconds", "How long the server has run."),
	"io_threads_active": gauge("redis_io_threads_active", "The server has several event loops."),

	"connected_clients":              gauge("redis_connected_clients", "Clients, without followers."),
	"maxclients":                     gauge("redis_config_maxclients", "The limit of clients."),
	"client_recent_max_input_buffer": gauge("redis_client_recent_max_input_buffer_bytes", "The largest recent input buffer."),
	"client_recent_max_output_buffer": gauge("redis_client_recent_max_output_buffer_bytes",
		"The most that waited of late for one client to read it."),
	"blocked_clients":              gauge("redis_blocked_clients", "Clients that wait in a command."),
	"tracking_clients":             gauge("redis_tracking_clients", "Clients with client-side caching."),
	"pubsub_clients":               gauge("redis_pubsub_clients", "Clients with subscriptions."),
	"watching_clients":             gauge("redis_watching_clients", "Clients that watch keys."),
	"clients_in_timeout_table":     gauge("redis_clients_in_timeout_table", "Blocked clients with a timeout."),
	"total_watched_keys":           gauge("redis_watched_keys", "Keys that are watched."),
	"total_blocking_keys":          gauge("redis_blocking_keys", "Keys that clients wait for."),
	"total_blocking_keys_on_nokey": gauge("redis_blocking_keys_on_nokey", "Keys that clients wait for and whose removal wakes them."),

	"used_memory":                   gauge("redis_memory_used_bytes", "Memory in use."),
	"used_memory_rss":               gauge("redis_memory_used_rss_bytes", "Memory of the process."),
	"used_memory_peak_time":         gauge("redis_memory_used_peak_timestamp_seconds", "When the peak was measured."),
	"used_memory_peak":              gauge("redis_memory_used_peak_bytes", "The peak of memory in use."),
	"used_memory_overhead":          gauge("redis_memory_used_overhead_bytes", "Memory in use for anything but data."),
	"used_memory_startup":           gauge("redis_memory_used_startup_bytes", "Memory that was in use after the start."),
	"used_memory_dataset":           gauge("redis_memory_used_dataset_bytes", "Memory in use for data."),
	"used_memory_vm_eval":           gauge("redis_memory_used_vm_eval_bytes", "Memory of interpreters of EVAL."),
	"used_memory_vm_functions":      gauge("redis_memory_used_vm_functions_bytes", "Memory of interpreters of functions."),
	"used_memory_scripts":           gauge("redis_memory_used_scripts_bytes", "Memory of scripts and functions."),
	"used_memory_functions":         gauge("redis_memory_used_functions_bytes", "Memory of functions."),
	"mem_clients_normal":            gauge("redis_mem_clients_normal_bytes", "Memory of clients."),
	"mem_clients_slaves":            gauge("redis_mem_clients_slaves_bytes", "Memory of followers."),
	"mem_total_replication_buffers": gauge("redis_mem_total_replication_buffers_bytes", "Memory of output for followers."),
	"mem_aof_buffer":                gauge("redis_mem_aof_buffer_bytes", "Memory of records that wait for the journal."),
	"mem_not_counted_for_evict":     gauge("redis_mem_not_counted_for_eviction_bytes", "Memory that does not count towards maxmemory."),
	"mem_fragmentation_ratio":       gauge("redis_mem_fragmentation_ratio", "Memory of the process to memory in use."),
	"allocator_active":              gauge("redis_allocator_active_bytes", "Memory of the heap, garbage included."),
	"allocator_resident":            gauge("redis_allocator_resident_bytes", "Memory that the allocator has from the system."),
	"maxmemory":                     gauge("redis_memory_max_bytes", "The limit of memory; 0 means none."),
	"total_system_memory":           gauge("redis_total_system_memory_bytes", "Memory of the machine."),
	"number_of_cached_scripts":      gauge("redis_number_of_cached_scripts", "Cached scripts."),
	"number_of_functions":           gauge("redis_number_of_functions", "Functions."),
	"number_of_libraries":           gauge("redis_number_of_libraries", "Libraries of functions."),
	"gc_cycles":                     counter("atomredis_gc_cycles_total", "Garbage collections."),

	"loading":                     gauge("redis_loading_dump_file", "Data is being loaded."),
	"loading_loaded_keys":         gauge("atomredis_loading_loaded_keys", "Keys that were loaded."),
	"loading_total_keys":          gauge("atomredis_loading_all_keys", "Keys to load."),
	"loading_eta_seconds":         gauge("atomredis_loading_left_seconds", "The remaining time of loading."),
	"rdb_changes_since_last_save": gauge("redis_rdb_changes_since_last_save", "Changes since the last checkpoint."),
	"rdb_bgsave_in_progress":      gauge("redis_rdb_bgsave_in_progress", "A checkpoint is being made."),
	"rdb_last_save_time":          gauge("redis_rdb_last_save_timestamp_seconds", "When the last checkpoint was made."),
	"rdb_last_bgsave_time_sec":    gauge("redis_rdb_last_bgsave_duration_seconds", "How long the last checkpoint took; -1 if there was none."),
	"rdb_current_bgsave_time_sec": gauge("redis_rdb_current_bgsave_duration_seconds",
		"How long the present checkpoint has taken; -1 if there is none."),
	"rdb_saves":                         counter("redis_rdb_saves_total", "Checkpoints."),
	"current_save_keys_processed":       gauge("redis_current_save_keys_processed", "Changed keys that the present checkpoint has written."),
	"current_save_keys_total":           gauge("redis_current_save_keys", "Changed keys that the present checkpoint writes."),
	"aof_enabled":                       gauge("redis_aof_enabled", "There is a journal."),
	"aof_rewrite_in_progress":           gauge("redis_aof_rewrite_in_progress", "A checkpoint shortens the journal."),
	"aof_current_size":                  gauge("redis_aof_current_size_bytes", "The length of the journal."),
	"aof_base_size":                     gauge("redis_aof_base_size_bytes", "The length of the journal after the last checkpoint."),
	"aof_buffer_length":                 gauge("redis_aof_buffer_length_bytes", "Bytes that wait for the journal."),
	"aof_rewrites_consecutive_failures": gauge("atomredis_checkpoint_failures", "Failed checkpoints since the last successful one."),
	"aof_delayed_fsync":                 counter("redis_aof_delayed_fsync_total", "Writes that the disk delayed."),

	"changes_readers": gauge("atomredis_changes_readers", "Reads of changes that are under way or wait."),
	"changes_sent":    counter("atomredis_changes_sent_total", "Changes that were read."),
	"changes_groups":  gauge("atomredis_changes_groups", "Groups of consumers of changes."),
	"changes_lag": gauge("atomredis_changes_lag",
		"How far the last group of consumers is behind: in bytes of the journal, in a group of servers in entries of its log."),
	"changes_lag_unknown": gauge("atomredis_changes_lag_unknown",
		"Groups of consumers that are not in the journal, or not any more, so that they do not count for the lag."),
	"changes_retained": gauge("atomredis_changes_retained_bytes", "The part of the journal that is kept only for readers of changes."),

	"archive_reached": gauge("atomredis_archive_reached_timestamp_seconds",
		"Up to when the archive is complete; 0 if that is not known."),
	"archive_base_time":   gauge("atomredis_archive_base_timestamp_seconds", "When the last base was made; 0 if that is not known."),
	"archive_lag_seconds": gauge("atomredis_archive_lag_seconds", "The age of the oldest change that is not in the archive."),
	"archive_lag": gauge("atomredis_archive_lag",
		"What is not in the archive: in bytes of the journal, in a group of servers in entries of its log; -1 if that is not known."),
	"archive_bases":    counter("atomredis_archive_bases_total", "Copies of all data that were archived."),
	"archive_pieces":   counter("atomredis_archive_pieces_total", "Pieces of the journal that were archived."),
	"archive_bytes":    counter("atomredis_archive_bytes_total", "Bytes that were archived."),
	"archive_failures": counter("atomredis_archive_failures_total", "Failed attempts to reach the archive."),
	"archive_gaps":     counter("atomredis_archive_gaps_total", "How often the journal did not continue what was in the archive."),

	"journal_since_checkpoint": gauge("atomredis_journal_since_checkpoint_bytes", "The growth of the journal since the last checkpoint."),
	"journal_unsynced":         gauge("atomredis_journal_unsynced_bytes", "The part of the journal that is not synced."),
	"store_disk":               gauge("atomredis_store_disk_bytes", "The size of the files of the store."),
	"store_tables":             gauge("atomredis_store_tables", "Tables of the store."),
	"store_memtables":          gauge("atomredis_store_memtables_bytes", "The size of memory tables."),
	"store_cache":              gauge("atomredis_store_cache_bytes", "The size of cached blocks of tables."),
	"store_cache_hits":         counter("atomredis_store_cache_hits_total", "Blocks that were read from memory."),
	"store_cache_misses":       counter("atomredis_store_cache_misses_total", "Blocks that were read from the disk."),
	"store_filter_hits":        counter("atomredis_store_filter_hits_total", "Reads of tables that a filter made unnecessary."),
	"store_filter_misses":      counter("atomredis_store_filter_misses_total", "Reads of tables despite a filter."),
	"store_flushes":            counter("atomredis_store_flushes_total", "Flushes of memory tables."),
	"store_flushed":            counter("atomredis_store_flushed_bytes_total", "Bytes written by flushes."),
	"store_compactions":        counter("atomredis_store_compactions_total", "Compactions of tables."),
	"store_compacted":          counter("atomredis_store_compacted_bytes_total", "Bytes written by compactions."),
	"store_compaction_debt":    gauge("atomredis_store_compaction_debt_bytes", "Bytes that compactions must still rewrite."),
	"store_read_amplification": gauge("atomredis_store_read_amplification", "Tables that a read examines at worst."),

	"total_connections_received":  counter("redis_connections_received_total", "Connections that were accepted."),
	"total_commands_processed":    counter("redis_commands_processed_total", "Commands that were executed."),
	"rejected_connections":        counter("redis_rejected_connections_total", "Connections refused because of maxclients."),
	"total_net_input_bytes":       counter("redis_net_input_bytes_total", "Received bytes."),
	"total_net_output_bytes":      counter("redis_net_output_bytes_total", "Sent bytes."),
	"total_net_repl_input_bytes":  counter("redis_net_repl_input_bytes_total", "Bytes received from a master."),
	"total_net_repl_output_bytes": counter("redis_net_repl_output_bytes_total", "Bytes sent to followers."),
	"instantaneous_ops_per_sec":   gauge("redis_instantaneous_ops_per_second", "Recent commands per second."),
	"sync_full":                   counter("redis_replica_resyncs_full_total", "Full synchronizations of followers."),
	"sync_partial_ok":             counter("redis_replica_partial_resync_accepted_total", "Partial synchronizations of followers."),
	"sync_partial_err":            counter("redis_replica_partial_resync_denied_total", "Refused partial synchronizations of followers."),
	"blessed_keys":                gauge("redis_blessed_keys", "Keys that are never evicted."),
	"evicted_keys":                counter("redis_evicted_keys_total", "Keys evicted because of maxmemory."),
	"tier_unloaded_values":        counter("atomredis_tier_unloaded_values_total", "Values that left memory because of maxmemory."),
	"tier_loaded_values":          counter("atomredis_tier_loaded_values_total", "Values that were read from the store as a whole."),
	"tier_loaded_parts":           counter("atomredis_tier_loaded_parts_total", "Parts of values that were read from the store alone."),
	"tier_waits":                  counter("atomredis_tier_waits_total", "How often clients waited for values."),
	"evicted_clients":             counter("redis_evicted_clients_total", "Clients disconnected because of maxmemory-clients."),
	"evicted_scripts":             counter("redis_evicted_scripts_total", "Scripts evicted from the cache."),
	"total_eviction_exceeded_time": counter("redis_eviction_exceeded_time_seconds_total",
		"How long more memory was in use than maxmemory.").in(milli),
	"expired_keys":        counter("redis_expired_keys_total", "Expired keys."),
	"expired_keys_active": counter("redis_expired_keys_active_total", "Expired keys that were removed without an access."),
	"expired_subkeys":     counter("redis_expired_subkeys_total", "Expired fields of hashes and members of sets."),
	"expired_subkeys_active": counter("redis_expired_subkeys_active_total",
		"Expired fields of hashes and members of sets that were removed without an access."),
	"slowlog_commands_count":       counter("redis_slowlog_commands_total", "Commands that were written to the slow log."),
	"slowlog_commands_time_ms_sum": counter("redis_slowlog_commands_duration_seconds_total", "How long they took.").in(milli),
	"slowlog_commands_time_ms_max": gauge("redis_slowlog_command_longest_seconds", "How long the longest of them took.").in(milli),
	"keyspace_hits":                counter("redis_keyspace_hits_total", "Reads of existing keys."),
	"keyspace_misses":              counter("redis_keyspace_misses_total", "Reads of missing keys."),
	"pubsub_channels":              gauge("redis_pubsub_channels", "Channels that have subscribers."),
	"pubsub_patterns":              gauge("redis_pubsub_patterns", "Patterns that have subscribers."),
	"pubsubshard_channels":         gauge("redis_pubsubshard_channels", "Shard channels that have subscribers."),
	"tracking_total_keys":          gauge("redis_tracking_keys", "Keys that clients cache."),
	"tracking_total_items":         gauge("redis_tracking_items", "Keys that clients cache, counted for each client."),
	"tracking_total_prefixes":      gauge("redis_tracking_prefixes", "Prefixes whose changes clients receive."),
	"unexpected_error_replies":     counter("redis_unexpected_error_replies_total", "Unexpected error replies, such as those to commands of a master."),
	"total_error_replies":          counter("redis_error_replies_total", "Error replies."),
	"acl_access_denied_auth":       counter("redis_acl_access_denied_auth_total", "Wrong passwords."),
	"acl_access_denied_cmd":        counter("redis_acl_access_denied_cmd_total", "Commands that users may not call."),
	"acl_access_denied_key":        counter("redis_acl_access_denied_key_total", "Keys that users may not use."),
	"acl_access_denied_channel":    counter("redis_acl_access_denied_channel_total", "Channels that users may not use."),
	"acl_access_denied_tls_cert":   counter("redis_acl_access_denied_tls_cert_total", "Certificates without a user."),
	"acl_access_denied_db":         counter("redis_acl_access_denied_db_total", "Databases that users may not use."),
	"total_reads_processed":        counter("redis_reads_processed_total", "Reads from connections."),
	"total_writes_processed":       counter("redis_writes_processed_total", "Writes to connections."),
	"io_threaded_reads_processed":  counter("redis_io_threaded_reads_processed_total", "Reads by other event loops than the first."),
	"io_threaded_writes_processed": counter("redis_io_threaded_writes_processed_total", "Writes by other event loops than the first."),
	"eventloop_cycles_with_clients_processing": counter("redis_eventloop_cycles_with_input_total",
		"Rounds of event loops in which clients sent something."),
	"eventloop_cycles":       counter("redis_eventloop_cycles_total", "Turns of event loops."),
	"eventloop_duration_sum": counter("redis_eventloop_duration_seconds_total", "The duration of turns of event loops.").in(micro),
	"eventloop_duration_cmd_sum": counter("redis_eventloop_commands_duration_seconds_total",
		"How long commands took in event loops.").in(micro),
	"reply_buffer_shrinks": counter("redis_reply_buffer_shrinks_total", "Reply buffers that became smaller."),
	"reply_buffer_expands": counter("redis_reply_buffer_expands_total", "Reply buffers that became larger."),
	"client_query_buffer_limit_disconnections": counter("redis_client_query_buffer_limit_disconnections_total",
		"Clients that were disconnected because they sent too much at once."),
	"client_output_buffer_limit_disconnections": counter("redis_client_output_buffer_limit_disconnections_total",
		"Clients that were disconnected because they did not read."),

	"connected_slaves":               gauge("redis_connected_slaves", "Followers."),
	"master_repl_offset":             gauge("redis_master_repl_offset", "The offset of the stream for followers."),
	"repl_backlog_active":            gauge("redis_repl_backlog_is_active", "The backlog for returning followers exists."),
	"repl_backlog_size":              gauge("redis_replication_backlog_bytes", "The size limit of the backlog."),
	"repl_backlog_histlen":           gauge("redis_repl_backlog_history_bytes", "The size of the backlog."),
	"repl_backlog_first_byte_offset": gauge("redis_repl_backlog_first_byte_offset", "The offset of the first byte of the backlog."),
	"slave_repl_offset":              gauge("redis_slave_repl_offset", "The server's offset in its master's stream."),
	"raft_term":                      gauge("atomredis_raft_term", "The term of the group's leader."),
	"raft_commit_index":              gauge("atomredis_raft_commit_index", "The last entry on which the group has agreed."),
	"raft_applied_index":             gauge("atomredis_raft_applied_index", "The last entry that is in the server's data."),
	"raft_has_leader":                gauge("atomredis_raft_has_leader", "The server knows a leader of its group."),
	"raft_leads":                     gauge("atomredis_raft_leads", "The server leads its group."),
	"raft_failed":                    gauge("atomredis_raft_failed", "The server takes no part in its group any more."),
	"raft_voters":                    gauge("atomredis_raft_voters", "Servers of the group that count for majorities."),
	"raft_voters_online":             gauge("atomredis_raft_voters_online", "Those of them that have answered recently."),
	"raft_learners":                  gauge("atomredis_raft_learners", "Servers of the group that do not count for majorities."),
	"raft_critical_zones":            gauge("atomredis_raft_critical_zones", "Zones without which no majority would be left."),
	"raft_log_bytes":                 gauge("atomredis_raft_log_bytes", "The length of the group's journal."),
	"slave_priority":                 gauge("redis_slave_priority", "The priority of a follower."),
	"master_last_io_seconds_ago":     gauge("redis_master_last_io_seconds_ago", "How long the master has been silent."),
	"master_sync_in_progress":        gauge("redis_master_sync_in_progress", "The master's data is being loaded."),

	"used_cpu_sys":           counter("redis_cpu_sys_seconds_total", "Processor time in the system."),
	"used_cpu_user":          counter("redis_cpu_user_seconds_total", "Processor time in user mode."),
	"used_cpu_sys_children":  counter("redis_cpu_sys_children_seconds_total", "Processor time of children in the system."),
	"used_cpu_user_children": counter("redis_cpu_user_children_seconds_total", "Processor time of children in user mode."),

	"cluster_enabled": gauge("redis_cluster_enabled", "The server is a node of a cluster."),
	"cluster_rebalance_load": gauge("atomredis_cluster_rebalance_load",
		"What the shard had when shards were compared last, in units of cluster-rebalance-by."),
	"cluster_rebalance_part":     gauge("atomredis_cluster_rebalance_part", "What each shard is to have, in the same units."),
	"cluster_rebalance_left_out": gauge("atomredis_cluster_rebalance_left_out", "Shards that did not answer then."),
	"cluster_rebalance_batches":  counter("atomredis_cluster_rebalance_batches_total", "Batches of slots that the shard has taken."),
	"cluster_rebalance_slots":    counter("atomredis_cluster_rebalance_slots_total", "Slots in these batches."),
	"cluster_rebalance_last_time": gauge("atomredis_cluster_rebalance_last_timestamp_seconds",
		"When the last batch was complete; 0 without one."),
}

// flag is a metric that is 1 if a field has a value.
type flag struct {
	metric
	value string
}

// flags has the fields of INFO that are words.
var flags = map[string]flag{
	"rdb_last_bgsave_status":    {gauge("redis_rdb_last_bgsave_status", "The last checkpoint succeeded."), "ok"},
	"aof_last_bgrewrite_status": {gauge("redis_aof_last_bgrewrite_status", "The last shortening of the journal succeeded."), "ok"},
	"aof_last_write_status":     {gauge("redis_aof_last_write_status", "The journal can be written."), "ok"},
	"master_link_status":        {gauge("redis_master_link_up", "The link to the master is up."), "up"},
}

// doorFields has the fields that every door has.
var doorFields = map[string]metric{
	"connections":          gauge("atomredis_door_connections", "Connections to a door."),
	"connections_received": counter("atomredis_door_connections_received_total", "Connections that a door has accepted."),
	"connections_rejected": counter("atomredis_door_connections_rejected_total", "Connections that a door has refused."),
	"clients":              gauge("atomredis_door_clients", "Clients of a door."),
	"commands":             counter("atomredis_door_commands_total", "Commands from a door."),
	"input_bytes":          counter("atomredis_door_input_bytes_total", "Bytes that a door has received."),
	"output_bytes":         counter("atomredis_door_output_bytes_total", "Bytes that a door has sent."),
}

// databaseFields has the parts of a database's field in INFO.
var databaseFields = map[string]metric{
	"keys":      gauge("redis_db_keys", "Keys of a database."),
	"expires":   gauge("redis_db_keys_expiring", "Keys of a database that expire."),
	"subexpiry": gauge("redis_db_sub_keys_expiring", "Hashes and sets of a database with fields or members that expire."),
	"avg_ttl":   gauge("redis_db_avg_ttl_seconds", "The average time to live of keys that expire.").in(milli),
}

// memberFields has the parts of the field of a server of the group in INFO.
var memberFields = map[string]metric{
	"voter":  gauge("atomredis_raft_member_voter", "A server of the group counts for majorities."),
	"online": gauge("atomredis_raft_member_online", "A server of the group has answered recently."),
	"lag":    gauge("atomredis_raft_member_lag_entries", "How many entries a server of the group is behind."),
}

// followerFields has the parts of a follower's field in INFO.
var followerFields = map[string]metric{
	"offset": gauge("redis_connected_slave_offset_bytes", "The offset that a follower has acknowledged."),
	"lag":    gauge("redis_connected_slave_lag_seconds", "The time since a follower's last acknowledgement."),
}
