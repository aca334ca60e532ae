package server

import (
	"strconv"

	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/stats"
)

// INFO's sections of memory and of the store.

// infoMemory shows the use of memory. The memory in use is that which maxmemory limits; the memory of the process,
// with garbage, is shown as resident memory and memory of the allocator.
func infoMemory(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	m := servercommands.ReportMemory(c)
	b.Bytes("used_memory", m.Used)
	if rss, ok := stats.ResidentBytes(); ok {
		b.Bytes("used_memory_rss", rss)
		b.Ratio("rss_overhead_ratio", rss, m.Mapped)
		b.Number("rss_overhead_bytes", rss-m.Mapped)
		b.Ratio("mem_fragmentation_ratio", rss, m.Used)
		b.Number("mem_fragmentation_bytes", rss-m.Used)
	}
	b.Bytes("used_memory_peak", m.Peak)
	b.Number("used_memory_peak_time", m.PeakAt/1000)
	b.Text("used_memory_peak_perc", percent(m.Used, m.Peak))
	b.Number("used_memory_overhead", m.Overhead)
	b.Number("used_memory_startup", 0) // the memory of the start is not counted
	b.Number("used_memory_dataset", m.Dataset)
	b.Text("used_memory_dataset_perc", percent(m.Dataset, m.Used))
	b.Number("mem_clients_normal", m.Clients)
	b.Number("mem_clients_slaves", m.Followers)
	b.Number("mem_total_replication_buffers", m.Streamed)
	b.Number("mem_aof_buffer", m.JournalBuffer)
	infoScriptMemory(b, srv, m.Memory)
	active := m.Heap + m.Idle
	b.Number("allocator_allocated", m.Heap)
	b.Number("allocator_active", active)
	b.Number("allocator_resident", m.Mapped)
	b.Zeros("allocator_muzzy")
	b.Ratio("allocator_frag_ratio", active, m.Heap)
	b.Number("allocator_frag_bytes", m.Idle)
	b.Ratio("allocator_rss_ratio", m.Mapped, active)
	b.Number("allocator_rss_bytes", m.Mapped-active)
	if total, ok := stats.SystemMemory(); ok {
		b.Bytes("total_system_memory", total)
	}
	b.Bytes("maxmemory", srv.sessions.Limits.Memory.Load())
	b.Text("maxmemory_policy", srv.config.Value("maxmemory-policy"))
	b.Zeros("mem_not_counted_for_evict", "mem_replication_backlog", "mem_replica_full_sync_buffer", "mem_cluster_links",
		"mem_cluster_slot_migration_output_buffer", "mem_cluster_slot_migration_input_buffer",
		"mem_cluster_slot_migration_input_buffer_peak", "mem_overhead_db_hashtable_rehashing", "used_memory_hash_templates",
		"active_defrag_running", "lazyfree_pending_objects", "lazyfreed_objects")
	b.Text("mem_allocator", "go")
	b.Number("gc_cycles", m.Collections)
}

// infoScriptMemory shows the memory of scripts and functions: the virtual machines and the stored sources.
func infoScriptMemory(b *servercommands.InfoText, srv *Server, m servercommands.Memory) {
	u := srv.scripts.Usage()
	cached, loaded := m.Scripts, m.Functions
	b.Bytes("used_memory_lua", u.ScriptMachines)
	b.Number("used_memory_vm_eval", u.ScriptMachines)
	b.Number("used_memory_scripts_eval", cached)
	b.Number("number_of_cached_scripts", int64(u.Scripts))
	b.Number("number_of_functions", int64(u.Functions))
	b.Number("number_of_libraries", int64(u.Libraries))
	b.Number("used_memory_vm_functions", u.FunctionMachines)
	b.Bytes("used_memory_vm_total", u.ScriptMachines+u.FunctionMachines)
	b.Number("used_memory_functions", loaded)
	b.Bytes("used_memory_scripts", cached+loaded)
}

func percent(part, whole int64) string {
	if whole <= 0 {
		whole = 1
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 2, 64) + "%"
}

// infoStore shows what Redis does not have: the store that checkpoints write to, and the part of the journal that is
// not in it yet.
func infoStore(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	if srv.storage.Storage == nil {
		return
	}
	st := srv.dump.Status()
	b.Number("journal_since_checkpoint", st.JournalSince)
	b.Number("journal_unsynced", st.Unsynced)
	m := srv.storage.Metrics()
	b.Number("store_disk", m.Disk)
	b.Number("store_tables", m.Tables)
	b.Number("store_memtables", m.Memtables)
	b.Number("store_cache", m.Cache)
	b.Number("store_cache_hits", m.CacheHits)
	b.Number("store_cache_misses", m.CacheMisses)
	b.Number("store_filter_hits", m.FilterHits)
	b.Number("store_filter_misses", m.FilterMisses)
	b.Number("store_flushes", m.Flushes)
	b.Number("store_flushed", m.FlushedBytes)
	b.Number("store_compactions", m.Compactions)
	b.Number("store_compacted", m.CompactedBytes)
	b.Number("store_compaction_debt", m.Debt)
	b.Number("store_read_amplification", int64(m.ReadAmplification))
}
