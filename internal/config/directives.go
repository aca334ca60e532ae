package config

// The table of configuration directives. CONFIG GET and SET, redis.conf and command-line options are derived from
// it.

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/nearest"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/journal"
)

// defaultDir is the default directory of the data.
const defaultDir = "./data"

// directives returns the table. No kind of door can be registered afterwards.
var directives = sync.OnceValue(func() []*directive {
	return slices.Concat(directiveTable, tlsDirectives, clusterDirectives(), doorDirectives(), registeredDirectives(), unusedDirectives())
})

// directiveTable has the directives that are in no other table.
var directiveTable = []*directive{
	// Listeners.
	{name: "bind", initial: "127.0.0.1 -::1", many: true, parse: parseBind,
		show: func(s *Settings) string { return strings.Join(s.Network.Bind, " ") }},
	number("port", "6379", 0, 65535, func(s *Settings) *int { return &s.Network.Port }),
	text("unixsocket", "", func(s *Settings) *string { return &s.Network.UnixSocket }).atStart(),
	{name: "unixsocketperm", initial: "0", startOnly: true, parse: parsePerm,
		show: func(s *Settings) string { return strconv.FormatUint(uint64(s.Network.UnixSocketPerm), 8) }},
	text("unixsocketgroup", "", func(s *Settings) *string { return &s.Network.UnixSocketGroup }).atStart().quietly(),
	number("tcp-backlog", "511", 0, math.MaxInt32, func(s *Settings) *int { return &s.Network.TCPBacklog }).atStart(),
	number("tcp-keepalive", "300", 0, math.MaxInt32, func(s *Settings) *int { return &s.Network.TCPKeepAlive }),
	number("timeout", "0", 0, math.MaxInt32, func(s *Settings) *int { return &s.Network.Timeout }),
	number("door-maxclients", "0", 0, math.MaxUint32, func(s *Settings) *int { return &s.Network.DoorMaxClients }).ours(),
	number("door-first-request", "30", 0, math.MaxInt32, func(s *Settings) *int { return &s.Network.DoorFirstRequest }).ours(),
	number("maxclients", "10000", 1, math.MaxUint32, func(s *Settings) *int { return &s.Network.MaxClients }),
	yesNo("protected-mode", "yes", func(s *Settings) *bool { return &s.Network.ProtectedMode }),
	text("requirepass", "", func(s *Settings) *string { return &s.ACL.RequirePass }),
	text("aclfile", "", func(s *Settings) *string { return &s.ACL.File }).atStart(),
	number("acllog-max-len", "128", 0, math.MaxInt64, func(s *Settings) *int { return &s.ACL.LogMaxLen }),
	choice("acl-pubsub-default", "resetchannels", func(s *Settings) *bool { return &s.ACL.PubSubDefault },
		option[bool]{"allchannels", true}, option[bool]{"resetchannels", false}),

	// The process.
	number("databases", "16", 1, math.MaxInt32, func(s *Settings) *int { return &s.Databases }).atStart(),
	{name: "shards", initial: "0", startOnly: true, sameAllowed: true, later: true, parse: parseShards,
		show: func(s *Settings) string { return strconv.Itoa(s.Threads.Shards) }},
	number("io-threads", "1", 1, 128, func(s *Settings) *int { return &s.Threads.Loops }).atStart(),
	yesNo("io-uring", "yes", func(s *Settings) *bool { return &s.Threads.IOUring }).atStart().unlessSame().ours(),
	{name: "dir", initial: defaultDir, protected: true, parse: parseDir, show: func(s *Settings) string { return s.Files.Dir }},
	fileName("dbfilename", "dump.rdb", "just a filename", func(s *Settings) *string { return &s.Files.DBFilename }).protect(),
	notEmpty(fileName("appendfilename", "appendonly.aof", "just a filename",
		func(s *Settings) *string { return &s.Files.AppendFilename })).atStart(),
	notEmpty(fileName("appenddirname", "appendonlydir", "just a dirname",
		func(s *Settings) *string { return &s.Files.AppendDirname })).atStart(),
	notEmpty(fileName("backupdirname", "backupdir", "just a dirname",
		func(s *Settings) *string { return &s.Files.BackupDirname })).ours(),
	number("backup-sealed-ttl", "0", 0, math.MaxInt32, func(s *Settings) *int { return &s.Files.BackupSealedTTL }).ours(),
	text("pidfile", "", func(s *Settings) *string { return &s.Process.PidFile }).atStart(),
	text("logfile", "", func(s *Settings) *string { return &s.Log.File }).atStart(),
	yesNo("syslog-enabled", "no", func(s *Settings) *bool { return &s.Log.SyslogEnabled }).atStart(),
	text("syslog-ident", "redis", func(s *Settings) *string { return &s.Log.SyslogIdent }).atStart(),
	choice("syslog-facility", "local0", func(s *Settings) *SyslogFacility { return &s.Log.SyslogFacility },
		syslogFacilities()...).atStart(),
	yesNo("daemonize", "no", func(s *Settings) *bool { return &s.Process.Daemonize }).atStart(),
	choice("supervised", "no", func(s *Settings) *Supervision { return &s.Process.Supervised },
		option[Supervision]{"upstart", SupervisedUpstart},
		option[Supervision]{"systemd", SupervisedSystemd}, option[Supervision]{"auto", SupervisedAuto},
		option[Supervision]{"no", SupervisedNo}).atStart(),
	choice("oom-score-adj", "no", func(s *Settings) *OOMScore { return &s.Process.OOMScoreAdj },
		option[OOMScore]{"no", OOMScoreNo},
		option[OOMScore]{"yes", OOMScoreYes}, option[OOMScore]{"relative", OOMScoreRelative},
		option[OOMScore]{"absolute", OOMScoreAbsolute}),
	{name: "oom-score-adj-values", initial: "0 200 800", many: true, parse: parseOOMScores, show: showOOMScores},
	{name: "shutdown-on-sigint", initial: "default", many: true,
		parse: func(s *Settings, words []string) error { return s.Process.ShutdownOnSigint.parse(words) },
		show:  func(s *Settings) string { return s.Process.ShutdownOnSigint.String() }},
	{name: "shutdown-on-sigterm", initial: "default", many: true,
		parse: func(s *Settings, words []string) error { return s.Process.ShutdownOnSigterm.parse(words) },
		show:  func(s *Settings) string { return s.Process.ShutdownOnSigterm.String() }},
	choice("loglevel", "notice", func(s *Settings) *slog.Level { return &s.Log.Level },
		option[slog.Level]{"debug", slog.LevelDebug}, option[slog.Level]{"verbose", LevelVerbose},
		option[slog.Level]{"notice", slog.LevelInfo}, option[slog.Level]{"warning", slog.LevelWarn},
		option[slog.Level]{"nothing", LevelNothing}),
	choice("log-format", "logfmt", func(s *Settings) *LogFormat { return &s.Log.Format },
		option[LogFormat]{"logfmt", LogLogfmt}, option[LogFormat]{"json", LogJSON}, option[LogFormat]{"text", LogText},
		option[LogFormat]{"legacy", LogLegacy}).quietly(),
	choice("log-timestamp-format", "legacy", func(s *Settings) *LogTimestamps { return &s.Log.Timestamps },
		option[LogTimestamps]{"legacy", TimestampsLegacy}, option[LogTimestamps]{"iso8601", TimestampsISO8601},
		option[LogTimestamps]{"milliseconds", TimestampsMilliseconds}).quietly(),
	yesNo("aof-load-truncated", "yes", func(s *Settings) *bool { return &s.Files.AOFLoadTruncated }),
	yesNo("import-skip-unsupported", "no", func(s *Settings) *bool { return &s.Files.SkipUnsupported }).ours(),
	access("enable-debug-command", func(s *Settings) *Access { return &s.Commands.EnableDebug }),
	access("enable-module-command", func(s *Settings) *Access { return &s.Commands.EnableModule }),
	access("enable-protected-configs", func(s *Settings) *Access { return &s.Commands.EnableProtectedConfigs }),

	// For tests.
	number("key-load-delay", "0", math.MinInt32, math.MaxInt32,
		func(s *Settings) *persist.KeyDelay { return &s.Persistence.KeyLoadDelay }).hide(),
	number("rdb-key-save-delay", "0", math.MinInt32, math.MaxInt32,
		func(s *Settings) *persist.KeyDelay { return &s.Persistence.KeySaveDelay }).hide(),

	// The server as a replica.
	{name: "replicaof", aliases: []string{"slaveof"}, initial: "", startOnly: true, many: true,
		noneLine: "replicaof no one", parse: parseReplicaOf, show: showReplicaOf},
	text("masterauth", "", func(s *Settings) *string { return &s.Replication.MasterAuth }).foreign("primaryauth"),
	text("masteruser", "", func(s *Settings) *string { return &s.Replication.MasterUser }).foreign("primaryuser"),
	number("repl-timeout", "60", 1, math.MaxInt32, func(s *Settings) *int { return &s.Replication.Timeout }),
	number("repl-ping-replica-period", "10", 1, math.MaxInt32,
		func(s *Settings) *int { return &s.Replication.PingPeriod }).also("repl-ping-slave-period"),
	yesNo("replica-serve-stale-data", "yes", func(s *Settings) *bool { return &s.Replication.ServeStaleData }).also("slave-serve-stale-data"),
	yesNo("replica-read-only", "yes", func(s *Settings) *bool { return &s.Replication.ReadOnly }).also("slave-read-only"),
	yesNo("replica-ignore-disk-write-errors", "no", func(s *Settings) *bool { return &s.Replication.IgnoreDiskErrors }),
	yesNo("replica-ignore-maxmemory", "yes", func(s *Settings) *bool { return &s.Replication.IgnoreMaxMemory }).also("slave-ignore-maxmemory"),
	number("replica-priority", "100", 0, math.MaxInt32,
		func(s *Settings) *int { return &s.Replication.Priority }).also("slave-priority"),
	yesNo("replica-announced", "yes", func(s *Settings) *bool { return &s.Replication.Announced }),
	text("replica-announce-ip", "", func(s *Settings) *string { return &s.Replication.AnnounceIP }).also("slave-announce-ip"),
	number("replica-announce-port", "0", 0, 65535,
		func(s *Settings) *int { return &s.Replication.AnnouncePort }).also("slave-announce-port"),
	text("bind-source-addr", "", func(s *Settings) *string { return &s.Network.BindSourceAddr }),

	// The server as one of a group that shares a journal.
	text("raft-addr", "", func(s *Settings) *string { return &s.Raft.Addr }).atStart().unlessSame().ours(),
	(&directive{name: "raft-peers", initial: "", many: true, parse: parseRaftPeers, show: showRaftPeers}).atStart().unlessSame().ours(),
	number("raft-timeout", "700", 50, 60_000, func(s *Settings) *int { return &s.Raft.Timeout }).atStart().unlessSame().ours(),
	choice("replicated-reads", "lease", func(s *Settings) *bool { return &s.Raft.Quorum },
		option[bool]{"lease", false}, option[bool]{"quorum", true}).atStart().unlessSame().ours(),
	duration("replica-max-lag", "10", func(s *Settings) *time.Duration { return &s.Raft.MaxLag }).ours(),
	yesNo("replicated-proxy", "no", func(s *Settings) *bool { return &s.Raft.Proxy }).ours(),
	text("raft-secret", "", func(s *Settings) *string { return &s.Raft.Secret }).ours(),
	choice("raft-join", "learner", func(s *Settings) *bool { return &s.Raft.Join },
		option[bool]{"learner", false}, option[bool]{"auto", true}).ours(),
	yesNo("raft-witness", "no", func(s *Settings) *bool { return &s.Raft.Witness }).atStart().unlessSame().ours(),
	(&directive{name: "raft-zone", initial: `""`, parse: parseZone, show: func(s *Settings) string { return s.Raft.Zone }}).ours(),
	(&directive{name: "raft-leader-zones", initial: "", many: true, parse: parseLeaderZones, show: showLeaderZones}).ours(),

	// The server as a master.
	{name: "repl-backlog-size", initial: "1mb", parse: parseBacklogSize,
		show: func(s *Settings) string { return strconv.Itoa(s.Replication.BacklogSize) }},
	number("repl-backlog-ttl", "3600", 0, math.MaxInt64, func(s *Settings) *int { return &s.Replication.BacklogTTL }),
	number("min-replicas-to-write", "0", 0, math.MaxInt32,
		func(s *Settings) *int { return &s.Replication.MinReplicas }).also("min-slaves-to-write"),
	number("min-replicas-max-lag", "10", 0, math.MaxInt32,
		func(s *Settings) *int { return &s.Replication.MinReplicasMaxLag }).also("min-slaves-max-lag"),

	// Storage.
	{name: "save", initial: "3600 1 300 100 60 10000", many: true, accumulates: true, parse: parseSave, show: showSave},
	yesNo("appendonly", "yes", func(s *Settings) *bool { return &s.Persistence.AppendOnly }), // see followStorage in package server
	choice("appendfsync", "everysec", func(s *Settings) *journal.Policy { return &s.Persistence.AppendFsync }, fsyncPolicies...),
	memory("checkpoint-size", "256mb", 1<<20, func(s *Settings) *int { return &s.Persistence.CheckpointSize }).ours(),
	memory("changes-retention", "0", 0, func(s *Settings) *int { return &s.Persistence.ChangesRetention }).ours(),
	duration("changes-retention-time", "0", func(s *Settings) *time.Duration { return &s.Persistence.ChangesRetentionTime }).ours(),
	text("archive", "", func(s *Settings) *string { return &s.Persistence.Archive }).ours().protect().unlessSame(),
	positive(duration("archive-interval", "10", func(s *Settings) *time.Duration { return &s.Persistence.ArchiveInterval })).ours(),
	positive(duration("archive-base-interval", "86400",
		func(s *Settings) *time.Duration { return &s.Persistence.ArchiveBaseInterval })).ours(),
	duration("archive-retention", "0", func(s *Settings) *time.Duration { return &s.Persistence.ArchiveRetention }).ours(),
	memory("archive-journal-limit", "1gb", 1<<20, func(s *Settings) *int { return &s.Persistence.ArchiveJournalLimit }).ours(),
	yesNo("stop-writes-on-bgsave-error", "yes", func(s *Settings) *bool { return &s.Persistence.StopWritesOnBgsaveError }),

	// Limits on clients.
	memory("proto-max-bulk-len", "512mb", 1<<20, func(s *Settings) *int { return &s.Clients.ProtoMaxBulkLen }),
	memory("client-query-buffer-limit", "1gb", 1<<20, func(s *Settings) *int { return &s.Clients.QueryBufferLimit }),
	{name: "client-output-buffer-limit", initial: "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60", many: true,
		parse: parseOutputLimits, show: showOutputLimits},
	number("busy-reply-threshold", "5000", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Scripts.BusyReplyThreshold }).also("lua-time-limit"),
	memory("script-memory-limit", "1gb", 0, func(s *Settings) *int { return &s.Scripts.MemoryLimit }).ours(),
	{name: "maxmemory-clients", initial: "0", parse: parseMaxMemoryClients, show: showMaxMemoryClients},
	number("tracking-table-max-keys", "1000000", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Clients.TrackingTableMaxKeys }),

	// Limits on data.
	memory("maxmemory", "0", 0, func(s *Settings) *int { return &s.Memory.Max }),
	choice("maxmemory-policy", "noeviction", func(s *Settings) *engine.EvictionPolicy { return &s.Memory.Eviction.Policy },
		option[engine.EvictionPolicy]{"volatile-lru", engine.VolatileLRU},
		option[engine.EvictionPolicy]{"volatile-lfu", engine.VolatileLFU},
		option[engine.EvictionPolicy]{"volatile-random", engine.VolatileRandom},
		option[engine.EvictionPolicy]{"volatile-ttl", engine.VolatileTTL},
		option[engine.EvictionPolicy]{"allkeys-lru", engine.AllKeysLRU},
		option[engine.EvictionPolicy]{"allkeys-lfu", engine.AllKeysLFU},
		option[engine.EvictionPolicy]{"allkeys-random", engine.AllKeysRandom},
		option[engine.EvictionPolicy]{"volatile-lrm", engine.VolatileLRM},
		option[engine.EvictionPolicy]{"allkeys-lrm", engine.AllKeysLRM},
		option[engine.EvictionPolicy]{"tier", engine.Tier},
		option[engine.EvictionPolicy]{"noeviction", engine.NoEviction}),
	yesNo("tier", "no", func(s *Settings) *bool { return &s.Memory.Eviction.Tier }).ours(),
	number("maxmemory-samples", "5", 1, 64, func(s *Settings) *int { return &s.Memory.Eviction.Samples }),
	number("maxmemory-eviction-tenacity", "10", 0, 100, func(s *Settings) *int { return &s.Memory.EvictionTenacity }),
	number("lfu-log-factor", "10", 0, math.MaxInt32, func(s *Settings) *int { return &s.Memory.Eviction.LogFactor }),
	number("lfu-decay-time", "1", 0, math.MaxInt32, func(s *Settings) *int { return &s.Memory.Eviction.DecayMinutes }),

	yesNo("import-mode", "no", func(s *Settings) *bool { return &s.Clients.ImportMode }).ours(),

	// Measuring.
	number("slowlog-log-slower-than", "10000", -1, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.SlowlogLogSlowerThan }).foreign("commandlog-execution-slower-than"),
	number("slowlog-max-len", "128", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.SlowlogMaxLen }).foreign("commandlog-slow-execution-max-len"),
	number("slowlog-entry-max-argc", "32", 2, math.MaxInt32,
		func(s *Settings) *int { return &s.Monitoring.SlowlogEntryMaxArgc }).ours(),
	number("slowlog-entry-max-string-len", "128", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.SlowlogEntryMaxStringLen }).ours(),
	number("commandlog-request-larger-than", "1048576", -1, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.CommandlogRequestLargerThan }).ours(),
	number("commandlog-large-request-max-len", "128", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.CommandlogLargeRequestMaxLen }).ours(),
	number("commandlog-reply-larger-than", "1048576", -1, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.CommandlogReplyLargerThan }).ours(),
	number("commandlog-large-reply-max-len", "128", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.CommandlogLargeReplyMaxLen }).ours(),
	number("latency-monitor-threshold", "0", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Monitoring.LatencyMonitorThreshold }),
	yesNo("latency-tracking", "yes", func(s *Settings) *bool { return &s.Monitoring.LatencyTracking }),
	{name: "latency-tracking-info-percentiles", initial: "50 99 99.9", many: true, parse: parsePercentiles,
		show: showPercentiles},

	// Data.
	{name: "notify-keyspace-events", initial: `""`, parse: parseEvents,
		show: func(s *Settings) string { return s.Clients.NotifyKeyspaceEvents.String() }},
	number("hash-max-listpack-entries", "512", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Types.Hash.Entries }).also("hash-max-ziplist-entries").foreign("hash-max-zipmap-entries"),
	memory("hash-max-listpack-value", "64", 0, func(s *Settings) *int { return &s.Types.Hash.Value }).
		also("hash-max-ziplist-value").foreign("hash-max-zipmap-value"),
	number("list-max-listpack-size", "-2", math.MinInt32, math.MaxInt32,
		func(s *Settings) *lists.Limit { return &s.Types.List }).also("list-max-ziplist-size"),
	number("set-max-intset-entries", "512", 0, math.MaxInt64, func(s *Settings) *int { return &s.Types.Set.IntsetEntries }),
	number("set-max-listpack-entries", "128", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Types.Set.ListpackEntries }).ours(),
	memory("set-max-listpack-value", "64", 0, func(s *Settings) *int { return &s.Types.Set.ListpackValue }).ours(),
	number("zset-max-listpack-entries", "128", 0, math.MaxInt64,
		func(s *Settings) *int { return &s.Types.ZSet.Entries }).also("zset-max-ziplist-entries"),
	memory("zset-max-listpack-value", "64", 0, func(s *Settings) *int { return &s.Types.ZSet.Value }).also("zset-max-ziplist-value"),
	memory("hll-sparse-max-bytes", "3000", 0, func(s *Settings) *int { return &s.Types.HyperLogLogSparse }),
	memory("stream-node-max-bytes", "4kb", 0, func(s *Settings) *int { return &s.Types.Stream.Bytes }),
	number("stream-node-max-entries", "100", 0, math.MaxInt64, func(s *Settings) *int { return &s.Types.Stream.Entries }),
	number("stream-idmp-duration", "100", 1, streams.MaxDuration,
		func(s *Settings) *int { return &s.Types.Producers.Duration }).ours(),
	number("stream-idmp-maxsize", "100", 1, streams.MaxSize, func(s *Settings) *int { return &s.Types.Producers.MaxSize }).ours(),
}

// directiveNames returns every name and alias, sorted.
var directiveNames = sync.OnceValue(func() (list []named) {
	for _, d := range directives() {
		list = append(list, named{d.name, d, false})
		for _, alias := range d.aliases {
			list = append(list, named{alias, d, false})
		}
		for _, other := range d.others {
			list = append(list, named{other, d, true})
		}
	}
	slices.SortFunc(list, func(a, b named) int { return strings.Compare(a.name, b.name) })
	return list
})

// named is a name of a directive.
type named struct {
	name    string
	d       *directive
	foreign bool // the name is one of directive.others
}

// unknown returns the error for a name that is neither a directive nor one of others, which are allowed in its
// place.
func unknown(name string, others ...string) error {
	names := others
	for _, n := range directiveNames() {
		names = append(names, n.name)
	}
	return fmt.Errorf("%w%s", ErrUnknownDirective, nearest.Question(name, names))
}

// directiveNamed returns the directive of that name or alias, in any case, or nil.
func directiveNamed(name string) *directive {
	names := directiveNames()
	i, ok := slices.BinarySearchFunc(names, strings.ToLower(name), func(n named, name string) int {
		return strings.Compare(n.name, name)
	})
	if !ok {
		return nil
	}
	return names[i].d
}
