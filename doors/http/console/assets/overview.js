// The overview: the activity of the server as plots and numbers.
import { h, count, whole, size, micros, duration, facts, table, swap, isError, problem } from "./lib.js";
import { plot } from "./plot.js";
import { history, series } from "./history.js";

const percent = (v) => v.toFixed(v < 99 || v === 100 ? 0 : 1) + " %";
const rate = (v) => size(v) + "/s";

export default {
  title: "Overview",
  mount(root) {
    const figures = [
      ["ops", plot("Commands per second", [["commands/s", count]])],
      ["p50 p99 p999", plot("Latency of commands", [["p50", micros], ["p99", micros], ["p99.9", micros]], { fill: false })],
      ["used rss peak", plot("Memory", [["data", size], ["resident", size], ["peak of data", size]])],
      ["hits misses", plot("Reads of keys per second", [["hits", count], ["misses", count]])],
      ["in out", plot("Network", [["in", rate], ["out", rate]])],
      ["clients blocked", plot("Clients", [["connected", count], ["blocked", count]])],
      ["journal unsynced debt",
        plot("Journal and store", [["journal since checkpoint", size], ["not yet synced", size], ["to be compacted", size]])],
      ["expired evicted", plot("Keys that went, per second", [["expired", count], ["evicted", count]])],
      ["left came", plot("Values that left memory and came back, per second", [["left", count], ["came back", count]])],
    ];
    const tiles = h("div", { class: "tiles" });
    const about = h("div", { class: "columns" });
    let commands = table([], []);
    root.append(tiles, h("div", { class: "plots" }, figures.map(([, f]) => f)), h("h2", null, "Commands"), commands,
      h("h2", null, "Server"), about);

    function update() {
      const i = history.info, now = history.now;
      for (const [names, figure] of figures) if (history.at.length) figure.set(series(...names.split(" ")));
      if (!i) return;
      let keys = 0;
      for (const name in i) if (/^db\d+$/.test(name)) keys += Number(/keys=(\d+)/.exec(i[name])?.[1] || 0);
      const tile = (name, value, more) => h("div", { class: "tile" }, h("b", null, value), h("span", null, name),
        more && h("small", null, more));
      tiles.replaceChildren(
        tile("commands/s", now ? count(now.ops) : "…", count(Number(i.total_commands_processed)) + " in all"),
        tile("p99", now ? micros(now.p99) : "…", now ? "p50 " + micros(now.p50) : ""),
        tile("keys", whole(keys), count(Number(i.expired_keys)) + " expired, " + count(Number(i.evicted_keys)) + " evicted"),
        tile("memory", size(i.used_memory),
          Number(i.maxmemory) ? percent((100 * i.used_memory) / i.maxmemory) + " of " + size(i.maxmemory) : "no limit"),
        tile("hit rate", ratio(i), now?.rate != null ? "now " + percent(now.rate) : ""),
        tile("clients", whole(i.connected_clients), i.blocked_clients + " blocked, limit " + count(Number(i.maxclients))),
        tile("checkpoint", Number(i.rdb_bgsave_in_progress) ? progress(i) : i.rdb_last_bgsave_status,
          Number(i.rdb_last_save_time) ? duration(Date.now() / 1000 - i.rdb_last_save_time) + " ago" : ""),
        tile("journal", i.aof_last_write_status,
          i.journal_since_checkpoint ? size(i.journal_since_checkpoint) + " to repeat" : "none"));
      commands = swap(commands, table([
        ["command", (c) => c.name.replace("|", " ")],
        ["per second", (c) => (c.rate ? count(c.rate) : ""), "n"],
        ["p50", (c) => (c.p50 === null ? "" : micros(c.p50)), "n"], ["p99", (c) => (c.p99 === null ? "" : micros(c.p99)), "n"],
        ["slowest ever", (c) => micros(c.max), "n"], ["calls", (c) => whole(c.total), "n"],
        ["mean", (c) => micros(Number(/usec_per_call=([\d.]+)/.exec(i["cmdstat_" + c.name])?.[1])), "n"],
        ["failed", (c) => stat(i["cmdstat_" + c.name], "failed_calls"), "n"],
          ["rejected", (c) => stat(i["cmdstat_" + c.name], "rejected_calls"), "n"],
      ], history.commands.slice(0, 60), { empty: "no command yet" }));
      about.replaceChildren(
        facts([["version", "atomredis " + i.atomredis_version + " (Redis " + i.redis_version + ")"],
          ["up", duration(Number(i.uptime_in_seconds))],
          ["system", i.os + ", " + i.go_version], ["process", i.process_id + ", port " + i.tcp_port],
            ["configuration", i.config_file || "none"], ["role", role(i)]]),
        facts([["data", size(i.used_memory_dataset) + " (" + i.used_memory_dataset_perc + ")"],
          ["overhead", size(i.used_memory_overhead)],
          ["of clients", size(i.mem_clients_normal)], ["of replicas", size(i.mem_clients_slaves)],
            ["scripts", size(i.used_memory_vm_total)],
          ["values that left memory", whole(i.tier_unloaded_values)],
            ["came back", whole(i.tier_loaded_values) + ", clients waited " + whole(i.tier_waits) + " times"],
          ["resident", size(i.used_memory_rss) + ", " + i.mem_fragmentation_ratio + " of the data"], ["policy", i.maxmemory_policy]]),
        facts([["store on disk", i.store_disk ? size(i.store_disk) : "none"], ["tables", i.store_tables || "–"],
          ["read amplification", i.store_read_amplification || "–"], ["cache of the store", cache(i)],
          ["changes since checkpoint", whole(i.rdb_changes_since_last_save)], ["checkpoints", whole(i.rdb_saves)],
            ["last one took", Number(i.rdb_last_bgsave_time_sec) >= 0 ? i.rdb_last_bgsave_time_sec + " s" : "–"]]),
        facts([["connections", whole(i.total_connections_received)], ["rejected", whole(i.rejected_connections)],
          ["read", size(i.total_net_input_bytes)],
          ["written", size(i.total_net_output_bytes)], ["errors", whole(i.total_error_replies)],
            ["denied by the ACL", whole(Number(i.acl_access_denied_cmd) + Number(i.acl_access_denied_key))],
          ["processor", duration(Number(i.used_cpu_sys) + Number(i.used_cpu_user))]]));
    }
    update();
    return {
      on: { overview(sample) {
        if (isError(sample) || isError(sample.info)) tiles.replaceChildren(problem(isError(sample) ? sample : sample.info));
        else update();
      } },
      end: () => figures.forEach(([, f]) => f.end()),
    };
  },
};

const stat = (text, name) => { const n = new RegExp("\\b" + name + "=(\\d+)").exec(text)?.[1]; return n && n !== "0" ? whole(n) : ""; };

function ratio(i) {
  const hits = Number(i.keyspace_hits), all = hits + Number(i.keyspace_misses);
  return all ? percent((100 * hits) / all) : "–";
}

function cache(i) {
  const hits = Number(i.store_cache_hits), all = hits + Number(i.store_cache_misses);
  return i.store_cache ? size(i.store_cache) + (all ? ", " + percent((100 * hits) / all) + " hits" : "") : "–";
}

function progress(i) {
  const total = Number(i.current_save_keys_total);
  return total ? percent((100 * i.current_save_keys_processed) / total) : "running";
}

const role = (i) => (i.role === "master" ? "master of " + i.connected_slaves
  : "replica of " + i.master_host + ":" + i.master_port + ", link " + i.master_link_status);
