package server

// The table of configuration directives, from which CONFIG GET and SET, redis.conf and command-line options all follow.

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/resp"
)

// directive is one entry of the table.
type directive struct {
	name, alias string
	initial     string
	// startOnly directives cannot be changed while the server runs.
	startOnly bool
	// protected directives are changed at run time only by clients that enable-protected-configs allows it.
	protected bool
	// sameAllowed says that such a directive accepts the value that it has: those that Redis does not have do, because programs that know Redis's set
	// everything else to what CONFIG GET shows.
	sameAllowed bool
	// many says that the value may be several words (or none); all others are exactly one.
	many bool
	// accumulates says that in files, and on the command line, a further line adds to the value instead of replacing it.
	accumulates bool
	// hidden directives are found by CONFIG GET under their whole name only.
	hidden bool
	// noEffect says that nothing depends on the directive; see Config.WithoutEffect.
	noEffect bool
	// parse reads the value into s, which it changes only if it returns nil.
	parse func(s *Settings, words []string) error
	// show returns the value as CONFIG GET does.
	show func(s *Settings) string
}

// Errors that do not depend on the value. They follow "ERR CONFIG SET failed (…) - ", or the name of a file and a line.
var (
	errUnknownDirective   = errors.New("Bad directive or wrong number of arguments")
	errWordCount          = errors.New("wrong number of arguments")
	errImmutable          = errors.New("can't set immutable config")
	errProtected          = errors.New("can't set protected config")
	errDuplicate          = errors.New("duplicate parameter")
	errNotNumber          = errors.New("argument couldn't be parsed into an integer")
	errNotMemory          = errors.New("argument must be a memory value")
	errPercentage         = errors.New("percentage argument must be less or equal to 100")
	errNotMemoryOrPercent = errors.New("argument must be a memory or percent value")
	errNotYesNo           = errors.New("argument must be 'yes' or 'no'")
	errNotOctal           = errors.New("argument couldn't be parsed as an octal number")
	errEventClass         = errors.New("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
	errShards             = errors.New("argument must be 0 or a power of two up to 64")
	errTooManyBind        = errors.New("Too many bind addresses specified.")
	errSave               = errors.New("Invalid save parameters")
	errOutputWords        = errors.New("Wrong number of arguments in buffer limit configuration.")
	errOutputClass        = errors.New("Invalid client class specified in buffer limit configuration.")
	errReplicaPort        = errors.New("Invalid master port")
	errPercentile         = errors.New("Invalid latency-tracking-info-percentiles parameters")
	errPercentileRange    = errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
	errOutputLimit        = errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
)

// defaultDir is where data is stored unless the configuration says otherwise.
const defaultDir = "./data"

// directives is the table.
var directives = slices.Concat([]*directive{
	// Where clients come in.
	{name: "bind", initial: "127.0.0.1 -::1", many: true, parse: parseBind,
		show: func(s *Settings) string { return strings.Join(s.Bind, " ") }},
	number("port", "6379", 0, 65535, func(s *Settings) *int { return &s.Port }),
	text("unixsocket", "", func(s *Settings) *string { return &s.UnixSocket }).atStart(),
	{name: "unixsocketperm", initial: "0", startOnly: true, parse: parsePerm,
		show: func(s *Settings) string { return strconv.FormatUint(uint64(s.UnixSocketPerm), 8) }},
	number("tcp-backlog", "511", 0, math.MaxInt32, func(s *Settings) *int { return &s.TCPBacklog }).atStart(),
	number("tcp-keepalive", "300", 0, math.MaxInt32, func(s *Settings) *int { return &s.TCPKeepAlive }),
	number("timeout", "0", 0, math.MaxInt32, func(s *Settings) *int { return &s.Timeout }),
	number("maxclients", "10000", 1, math.MaxUint32, func(s *Settings) *int { return &s.MaxClients }),
	yesNo("protected-mode", "yes", func(s *Settings) *bool { return &s.ProtectedMode }),
	text("requirepass", "", func(s *Settings) *string { return &s.RequirePass }),
	text("aclfile", "", func(s *Settings) *string { return &s.ACLFile }).atStart(),
	number("acllog-max-len", "128", 0, math.MaxInt, func(s *Settings) *int { return &s.ACLLogMaxLen }),
	choice("acl-pubsub-default", "resetchannels", func(s *Settings) *bool { return &s.ACLPubSubDefault },
		option[bool]{"allchannels", true}, option[bool]{"resetchannels", false}),

	// The process.
	number("databases", "16", 1, math.MaxInt32, func(s *Settings) *int { return &s.Databases }).atStart(),
	{name: "shards", initial: "0", startOnly: true, sameAllowed: true, parse: parseShards,
		show: func(s *Settings) string { return strconv.Itoa(s.Shards) }},
	number("io-threads", "1", 1, 128, func(s *Settings) *int { return &s.IOThreads }).atStart(),
	yesNo("io-uring", "yes", func(s *Settings) *bool { return &s.IOUring }).atStart().unlessSame(),
	{name: "dir", initial: defaultDir, startOnly: true, parse: parseDir, show: func(s *Settings) string { return s.Dir }},
	fileName("dbfilename", "dump.rdb", "just a filename", func(s *Settings) *string { return &s.DBFilename }).protect(),
	notEmpty(fileName("appendfilename", "appendonly.aof", "just a filename", func(s *Settings) *string { return &s.AppendFilename })).atStart(),
	notEmpty(fileName("appenddirname", "appendonlydir", "just a dirname", func(s *Settings) *string { return &s.AppendDirname })).atStart(),
	text("pidfile", "", func(s *Settings) *string { return &s.PidFile }).atStart(),
	text("logfile", "", func(s *Settings) *string { return &s.LogFile }).atStart(),
	choice("loglevel", "notice", func(s *Settings) *slog.Level { return &s.LogLevel },
		option[slog.Level]{"debug", slog.LevelDebug}, option[slog.Level]{"verbose", LevelVerbose},
		option[slog.Level]{"notice", slog.LevelInfo}, option[slog.Level]{"warning", slog.LevelWarn},
		option[slog.Level]{"nothing", LevelNothing}),
	access("enable-debug-command", func(s *Settings) *Access { return &s.EnableDebugCommand }),
	access("enable-protected-configs", func(s *Settings) *Access { return &s.EnableProtectedConfigs }),

	// For tests.
	number("key-load-delay", "0", math.MinInt32, math.MaxInt32, func(s *Settings) *persist.KeyDelay { return &s.KeyLoadDelay }).hide(),
	number("rdb-key-save-delay", "0", math.MinInt32, math.MaxInt32, func(s *Settings) *persist.KeyDelay { return &s.KeySaveDelay }).hide(),

	// The server as a replica.
	{name: "replicaof", alias: "slaveof", initial: "", startOnly: true, many: true, parse: parseReplicaOf, show: showReplicaOf},
	text("masterauth", "", func(s *Settings) *string { return &s.MasterAuth }),
	text("masteruser", "", func(s *Settings) *string { return &s.MasterUser }),
	number("repl-timeout", "60", 1, math.MaxInt32, func(s *Settings) *int { return &s.ReplTimeout }),
	number("repl-ping-replica-period", "10", 1, math.MaxInt32, func(s *Settings) *int { return &s.ReplPingReplicaPeriod }).also("repl-ping-slave-period"),
	yesNo("replica-serve-stale-data", "yes", func(s *Settings) *bool { return &s.ReplicaServeStaleData }).also("slave-serve-stale-data"),

	// What is stored, and when.
	{name: "save", initial: "3600 1 300 100 60 10000", many: true, accumulates: true, parse: parseSave, show: showSave},
	yesNo("appendonly", "yes", func(s *Settings) *bool { return &s.AppendOnly }), // see configChanged
	choice("appendfsync", "everysec", func(s *Settings) *journal.Policy { return &s.AppendFsync }, fsyncPolicies...),
	memory("checkpoint-size", "256mb", 1<<20, func(s *Settings) *int { return &s.CheckpointSize }),
	yesNo("stop-writes-on-bgsave-error", "yes", func(s *Settings) *bool { return &s.StopWritesOnBgsaveError }),

	// Limits on clients.
	memory("proto-max-bulk-len", "512mb", 1<<20, func(s *Settings) *int { return &s.ProtoMaxBulkLen }),
	memory("client-query-buffer-limit", "1gb", 1<<20, func(s *Settings) *int { return &s.QueryBufferLimit }),
	{name: "client-output-buffer-limit", initial: "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60", many: true,
		parse: parseOutputLimits, show: showOutputLimits},
	yesNo("pressure-role-recovery", "yes", func(s *Settings) *bool { return &s.PressureRoleRecovery }).atStart().unlessSame(),
	number("busy-reply-threshold", "5000", 0, math.MaxInt64/int64(time.Millisecond), func(s *Settings) *int { return &s.BusyReplyThreshold }).also("lua-time-limit"),
	memory("script-memory-limit", "1gb", 0, func(s *Settings) *int { return &s.ScriptMemoryLimit }),
	{name: "maxmemory-clients", initial: "0", parse: parseMaxMemoryClients, show: showMaxMemoryClients},
	number("tracking-table-max-keys", "1000000", 0, math.MaxInt, func(s *Settings) *int { return &s.TrackingTableMaxKeys }),

	// Limits on data.
	memory("maxmemory", "0", 0, func(s *Settings) *int { return &s.MaxMemory }),
	choice("maxmemory-policy", "noeviction", func(s *Settings) *engine.EvictionPolicy { return &s.Eviction.Policy },
		option[engine.EvictionPolicy]{"volatile-lru", engine.VolatileLRU}, option[engine.EvictionPolicy]{"volatile-lfu", engine.VolatileLFU},
		option[engine.EvictionPolicy]{"volatile-random", engine.VolatileRandom}, option[engine.EvictionPolicy]{"volatile-ttl", engine.VolatileTTL},
		option[engine.EvictionPolicy]{"allkeys-lru", engine.AllKeysLRU}, option[engine.EvictionPolicy]{"allkeys-lfu", engine.AllKeysLFU},
		option[engine.EvictionPolicy]{"allkeys-random", engine.AllKeysRandom}, option[engine.EvictionPolicy]{"noeviction", engine.NoEviction}),
	number("maxmemory-samples", "5", 1, math.MaxInt32, func(s *Settings) *int { return &s.Eviction.Samples }),
	number("maxmemory-eviction-tenacity", "10", 0, 100, func(s *Settings) *int { return &s.EvictionTenacity }),
	number("lfu-log-factor", "10", 0, math.MaxInt32, func(s *Settings) *int { return &s.Eviction.LogFactor }),
	number("lfu-decay-time", "1", 0, math.MaxInt32, func(s *Settings) *int { return &s.Eviction.DecayMinutes }),

	// What is measured.
	number("slowlog-log-slower-than", "10000", -1, math.MaxInt64, func(s *Settings) *int { return &s.SlowlogLogSlowerThan }),
	number("slowlog-max-len", "128", 0, math.MaxInt64, func(s *Settings) *int { return &s.SlowlogMaxLen }),
	number("latency-monitor-threshold", "0", 0, math.MaxInt64, func(s *Settings) *int { return &s.LatencyMonitorThreshold }),
	yesNo("latency-tracking", "yes", func(s *Settings) *bool { return &s.LatencyTracking }),
	{name: "latency-tracking-info-percentiles", initial: "50 99 99.9", many: true, parse: parsePercentiles, show: showPercentiles},

	// Data.
	{name: "notify-keyspace-events", initial: `""`, parse: parseEvents,
		show: func(s *Settings) string { return s.NotifyKeyspaceEvents.String() }},
	number("hash-max-listpack-entries", "512", 0, math.MaxInt, func(s *Settings) *int { return &s.Hash.Entries }).also("hash-max-ziplist-entries"),
	memory("hash-max-listpack-value", "64", 0, func(s *Settings) *int { return &s.Hash.Value }).also("hash-max-ziplist-value"),
	number("list-max-listpack-size", "-2", math.MinInt32, math.MaxInt32, func(s *Settings) *lists.Limit { return &s.List }).also("list-max-ziplist-size"),
	number("list-compress-depth", "0", 0, math.MaxInt32, func(s *Settings) *int { return &s.ListCompressDepth }).withoutEffect(),
	number("set-max-intset-entries", "512", 0, math.MaxInt, func(s *Settings) *int { return &s.Set.IntsetEntries }),
	number("set-max-listpack-entries", "128", 0, math.MaxInt, func(s *Settings) *int { return &s.Set.ListpackEntries }),
	memory("set-max-listpack-value", "64", 0, func(s *Settings) *int { return &s.Set.ListpackValue }),
	number("zset-max-listpack-entries", "128", 0, math.MaxInt, func(s *Settings) *int { return &s.ZSet.Entries }).also("zset-max-ziplist-entries"),
	memory("zset-max-listpack-value", "64", 0, func(s *Settings) *int { return &s.ZSet.Value }).also("zset-max-ziplist-value"),
	memory("hll-sparse-max-bytes", "3000", 0, func(s *Settings) *int { return &s.HyperLogLogSparse }),
	memory("stream-node-max-bytes", "4kb", 0, func(s *Settings) *int { return &s.Stream.Bytes }),
	number("stream-node-max-entries", "100", 0, math.MaxInt, func(s *Settings) *int { return &s.Stream.Entries }),
}, tlsDirectives(), clusterDirectives(), fixedDirectives())

// fixedDirectives are those that have one value only, because the server lacks the rest. A configuration file written for
// Redis may contain them with that value. For the first group it is simply true; what the second group is about does not
// exist here, so that they mean nothing.
func fixedDirectives() []*directive {
	const (
		files       = "data is stored in the directory dir by the journal and Pebble"
		replication = "replicas get a whole copy, and nothing is configured of them"
		cluster     = "a cluster has one node, which is connected to no others"
		ciphers     = "crypto/tls chooses the ciphers"
		outgoing    = "the server opens no TLS connections"
		sessions    = "clients keep their own session tickets"
		service     = "run the server under a service manager instead"
	)
	var list []*directive
	for _, f := range []struct{ name, alias, value, why string }{
		{"daemonize", "", "no", service},
		{"supervised", "", "no", service},
		{"replica-read-only", "slave-read-only", "yes", "a replica has what its master has"},
		{"tls-replication", "", "no", outgoing},
		{"tls-cluster", "", "no", cluster},
		{"tls-key-file-pass", "", "", "keys must not be encrypted"},
		{"tls-ciphers", "", "", ciphers},
		{"tls-ciphersuites", "", "", ciphers},
		{"tls-dh-params-file", "", "", ciphers},
		{"tls-client-cert-file", "", "", outgoing},
		{"tls-client-key-file", "", "", outgoing},
		{"tls-client-key-file-pass", "", "", outgoing},
		{"enable-module-command", "", "no", "there are no modules"},
		{"syslog-enabled", "", "no", "the log goes to standard output or a file"},
		{"oom-score-adj", "", "no", "the process's OOM score is left alone"},
		{"activedefrag", "", "no", "the garbage collector manages memory"},
		{"always-show-logo", "", "no", "there is no logo"},
		{"io-threads-do-reads", "", "no", "event loops read always; see io-threads"},
		{"bind-source-addr", "", "", "the system chooses the address"},
	} {
		list = append(list, fixed(f.name, f.alias, f.value, f.why))
	}
	for _, f := range []struct{ name, alias, value, why string }{
		{"tls-prefer-server-ciphers", "", "no", ciphers},
		{"tls-session-caching", "", "yes", sessions},
		{"tls-session-cache-size", "", "20480", sessions},
		{"tls-session-cache-timeout", "", "300", sessions},
		{"set-proc-title", "", "yes", "the process title is left alone"},
		{"proc-title-template", "", "{title} {listen-addr} {server-mode}", "the process title is left alone"},
		{"rdbcompression", "", "yes", files},
		{"rdbchecksum", "", "yes", files},
		{"sanitize-dump-payload", "", "no", files},
		{"rdb-del-sync-files", "", "no", files},
		{"rdb-save-incremental-fsync", "", "yes", files},
		{"no-appendfsync-on-rewrite", "", "no", files},
		{"auto-aof-rewrite-percentage", "", "100", files},
		{"auto-aof-rewrite-min-size", "", "64mb", files},
		{"aof-load-truncated", "", "yes", files},
		{"aof-use-rdb-preamble", "", "yes", files},
		{"aof-timestamp-enabled", "", "no", files},
		{"aof-rewrite-incremental-fsync", "", "yes", files},
		{"replica-priority", "slave-priority", "100", replication},
		{"replica-lazy-flush", "slave-lazy-flush", "no", replication},
		{"replica-ignore-maxmemory", "slave-ignore-maxmemory", "yes", replication},
		{"repl-diskless-sync", "", "yes", replication},
		{"repl-diskless-sync-delay", "", "5", replication},
		{"repl-diskless-sync-max-replicas", "", "0", replication},
		{"repl-diskless-load", "", "disabled", replication},
		{"repl-disable-tcp-nodelay", "", "no", replication},
		{"repl-backlog-size", "", "1mb", replication},
		{"repl-backlog-ttl", "", "3600", replication},
		{"min-replicas-to-write", "min-slaves-to-write", "0", replication},
		{"min-replicas-max-lag", "min-slaves-max-lag", "10", replication},
		{"lazyfree-lazy-eviction", "", "no", "the garbage collector frees memory"},
		{"lazyfree-lazy-expire", "", "no", "the garbage collector frees memory"},
		{"lazyfree-lazy-server-del", "", "no", "the garbage collector frees memory"},
		{"lazyfree-lazy-user-del", "", "no", "the garbage collector frees memory"},
		{"lazyfree-lazy-user-flush", "", "no", "the garbage collector frees memory"},
		{"jemalloc-bg-thread", "", "yes", "the garbage collector frees memory"},
		{"activerehashing", "", "yes", "tables grow without idle-time work"},
		{"active-expire-effort", "", "1", "keys are removed exactly when they expire"},
		{"hz", "", "10", "keys are removed exactly when they expire"},
		{"dynamic-hz", "", "yes", "keys are removed exactly when they expire"},
		{"oom-score-adj-values", "", "0 200 800", "the process's OOM score is left alone"},
		{"disable-thp", "", "yes", "the Go runtime decides on huge pages"},
		{"crash-log-enabled", "", "yes", "the Go runtime reports crashes"},
		{"crash-memcheck-enabled", "", "yes", "the Go runtime reports crashes"},
		{"shutdown-timeout", "", "10", replication},
	} {
		d := fixed(f.name, f.alias, f.value, f.why)
		d.noEffect = true
		list = append(list, d)
	}
	for _, name := range []string{"daemonize", "supervised", "enable-module-command", "syslog-enabled", "always-show-logo",
		"io-threads-do-reads", "set-proc-title", "rdbchecksum", "disable-thp"} {
		list[slices.IndexFunc(list, func(d *directive) bool { return d.name == name })].startOnly = true
	}
	return list
}

// directiveNames holds every name and alias, sorted.
var directiveNames = func() (list []named) {
	for _, d := range directives {
		list = append(list, named{d.name, d})
		if d.alias != "" {
			list = append(list, named{d.alias, d})
		}
	}
	slices.SortFunc(list, func(a, b named) int { return strings.Compare(a.name, b.name) })
	return list
}()

// named is a name under which a directive is known.
type named struct {
	name string
	d    *directive
}

// directiveNamed returns the directive of that name or alias, in whatever case, or nil.
func directiveNamed(name string) *directive {
	i, ok := slices.BinarySearchFunc(directiveNames, strings.ToLower(name), func(n named, name string) int {
		return strings.Compare(n.name, name)
	})
	if !ok {
		return nil
	}
	return directiveNames[i].d
}

// set parses a value into s.
func (d *directive) set(s *Settings, words []string) error {
	if !d.many && len(words) != 1 {
		return errWordCount
	}
	return d.parse(s, words)
}

// words splits a value that came as one string.
func (d *directive) words(value string) []string {
	if !d.many {
		return []string{value}
	}
	return strings.Fields(value)
}

// splitWords splits a default of the table.
func splitWords(line string) []string {
	args, _ := resp.SplitArgs([]byte(line), nil)
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	return words
}

// also gives the directive a second name.
func (d *directive) also(alias string) *directive {
	d.alias = alias
	return d
}

// atStart makes the directive one that cannot be changed while the server runs.
func (d *directive) atStart() *directive {
	d.startOnly = true
	return d
}

// hide makes the directive one that patterns of CONFIG GET do not find.
func (d *directive) hide() *directive {
	d.hidden = true
	return d
}

// unlessSame makes the directive accept the value that it has.
func (d *directive) unlessSame() *directive {
	d.sameAllowed = true
	return d
}

// protect makes the directive one that a client needs a permission to change.
func (d *directive) protect() *directive {
	d.protected = true
	return d
}

// withoutEffect notes that nothing depends on the directive.
func (d *directive) withoutEffect() *directive {
	d.noEffect = true
	return d
}

// number is a directive whose value is an integer between min and max.
func number[T ~int](name, initial string, min, max int64, field func(*Settings) *T) *directive {
	return &directive{name: name, initial: initial,
		parse: func(s *Settings, words []string) error {
			n, ok := resp.ParseInt([]byte(words[0]))
			if !ok {
				return errNotNumber
			}
			if n < min || n > max {
				return rangeError(min, max)
			}
			*field(s) = T(n)
			return nil
		},
		show: func(s *Settings) string { return strconv.Itoa(int(*field(s))) },
	}
}

// memory is a directive whose value is a size of at least min bytes, with a unit or without.
func memory(name, initial string, min int64, field func(*Settings) *int) *directive {
	return &directive{name: name, initial: initial,
		parse: func(s *Settings, words []string) error {
			n, ok := parseMemory(words[0])
			if !ok {
				return errNotMemory
			}
			if n < min {
				return rangeError(min, math.MaxInt64)
			}
			*field(s) = int(n)
			return nil
		},
		show: func(s *Settings) string { return strconv.Itoa(*field(s)) },
	}
}

// text is a directive whose value is any string.
func text(name, initial string, field func(*Settings) *string) *directive {
	return &directive{name: name, initial: strconv.Quote(initial),
		parse: func(s *Settings, words []string) error {
			*field(s) = words[0]
			return nil
		},
		show: func(s *Settings) string { return *field(s) },
	}
}

// fileName is a text that names a file, or a directory, in another directory.
func fileName(name, initial, what string, field func(*Settings) *string) *directive {
	return checked(text(name, initial, field), func(value string) error {
		if strings.ContainsAny(value, `/\\`) {
			return errors.New(name + " can't be a path, " + what)
		}
		return nil
	})
}

// notEmpty makes a directive refuse the empty text.
func notEmpty(d *directive) *directive {
	return checked(d, func(value string) error {
		if value == "" {
			return errors.New(d.name + " can't be empty")
		}
		return nil
	})
}

// checked makes a directive of one word refuse what does not pass a check.
func checked(d *directive, check func(word string) error) *directive {
	parse := d.parse
	d.parse = func(s *Settings, words []string) error {
		if err := check(words[0]); err != nil {
			return err
		}
		return parse(s, words)
	}
	return d
}

// access is a directive that says which clients may do something dangerous.
func access(name string, field func(*Settings) *Access) *directive {
	return choice(name, "no", field, option[Access]{"no", AccessNo}, option[Access]{"yes", AccessYes}, option[Access]{"local", AccessLocal}).atStart()
}

// yesNo is a directive that is yes or no.
func yesNo(name, initial string, field func(*Settings) *bool) *directive {
	return &directive{name: name, initial: initial,
		parse: func(s *Settings, words []string) error {
			switch strings.ToLower(words[0]) {
			case "yes":
				*field(s) = true
			case "no":
				*field(s) = false
			default:
				return errNotYesNo
			}
			return nil
		},
		show: func(s *Settings) string {
			if *field(s) {
				return "yes"
			}
			return "no"
		},
	}
}

// option is one value that a choice may have.
type option[T comparable] struct {
	name  string
	value T
}

// choice is a directive whose value is one of several words.
func choice[T comparable](name, initial string, field func(*Settings) *T, options ...option[T]) *directive {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.name
	}
	unknown := errors.New("argument(s) must be one of the following: " + strings.Join(names, ", "))
	return &directive{name: name, initial: initial,
		parse: func(s *Settings, words []string) error {
			for _, o := range options {
				if strings.EqualFold(o.name, words[0]) {
					*field(s) = o.value
					return nil
				}
			}
			return unknown
		},
		show: func(s *Settings) string {
			for _, o := range options {
				if o.value == *field(s) {
					return o.name
				}
			}
			return ""
		},
	}
}

// fixed is a directive that accepts one value only.
func fixed(name, alias, value, why string) *directive {
	refused := fmt.Errorf("only '%s' is supported: %s", value, why)
	size, isSize := parseMemory(value)
	shown := value
	if isSize {
		shown = strconv.FormatInt(size, 10)
	}
	return &directive{name: name, alias: alias, initial: value, many: true,
		parse: func(_ *Settings, words []string) error {
			given := strings.Join(words, " ")
			if n, ok := parseMemory(given); isSize && ok && n == size {
				return nil
			}
			if !strings.EqualFold(given, value) {
				return refused
			}
			return nil
		},
		show: func(*Settings) string { return shown },
	}
}

func rangeError(min, max int64) error {
	return fmt.Errorf("argument must be between %d and %d inclusive", min, max)
}

// parseMemory reads a size: a number of bytes, or of the units k m g (powers of 1000) or kb mb gb (powers of 1024).
func parseMemory(s string) (bytes int64, ok bool) {
	digits := strings.TrimRight(s, "bkmgBKMG")
	unit := int64(1)
	switch strings.ToLower(s[len(digits):]) {
	case "", "b":
	case "k":
		unit = 1000
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1000 * 1000
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1000 * 1000 * 1000
	case "gb":
		unit = 1 << 30
	default:
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, false
	}
	return int64(n) * unit, true
}

// parseMaxMemoryClients reads a size in bytes or a percentage, which is kept as a negative number.
func parseMaxMemoryClients(s *Settings, words []string) error {
	digits, percent := strings.CutSuffix(words[0], "%")
	if !percent {
		n, ok := parseMemory(words[0])
		if !ok {
			return errNotMemoryOrPercent
		}
		s.MaxMemoryClients = int(n)
		return nil
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return errNotMemoryOrPercent
	}
	if n > 100 {
		return errPercentage
	}
	s.MaxMemoryClients = -int(n)
	return nil
}

func showMaxMemoryClients(s *Settings) string {
	if s.MaxMemoryClients < 0 {
		return strconv.Itoa(-s.MaxMemoryClients) + "%"
	}
	return strconv.Itoa(s.MaxMemoryClients)
}

// maxBind is how many addresses bind may have.
const maxBind = 16

func parseBind(s *Settings, words []string) error {
	addresses := strings.Fields(strings.Join(words, " "))
	if len(addresses) > maxBind {
		return errTooManyBind
	}
	s.Bind = addresses
	return nil
}

func parseDir(s *Settings, words []string) error {
	dir, err := filepath.Abs(words[0])
	if err != nil {
		return err
	}
	s.Dir = dir
	return nil
}

// parseSave reads pairs of seconds and changes. Nothing, or one empty word, is no save point at all.
func parseSave(s *Settings, words []string) error {
	if len(words) == 1 {
		words = strings.Fields(words[0])
	}
	if len(words)%2 != 0 {
		return errSave
	}
	var points []persist.SavePoint
	for pair := range slices.Chunk(words, 2) {
		seconds, ok1 := resp.ParseInt([]byte(pair[0]))
		changes, ok2 := resp.ParseInt([]byte(pair[1]))
		if !ok1 || !ok2 || seconds < 1 || changes < 0 || seconds > math.MaxInt32 || changes > math.MaxInt32 {
			return errSave
		}
		points = append(points, persist.SavePoint{Seconds: int(seconds), Changes: int(changes)})
	}
	s.Save = points
	return nil
}

func showSave(s *Settings) string {
	words := make([]string, len(s.Save))
	for i, p := range s.Save {
		words[i] = fmt.Sprintf("%d %d", p.Seconds, p.Changes)
	}
	return strings.Join(words, " ")
}

func parsePercentiles(s *Settings, words []string) error {
	var percentiles []float64
	for _, w := range words {
		if w == "" && len(words) == 1 {
			break
		}
		p, ok := resp.ParseFloat([]byte(w))
		if !ok {
			return errPercentile
		}
		if p < 0 || p > 100 {
			return errPercentileRange
		}
		percentiles = append(percentiles, p)
	}
	s.LatencyPercentiles = percentiles
	return nil
}

func showPercentiles(s *Settings) string {
	words := make([]string, len(s.LatencyPercentiles))
	for i, p := range s.LatencyPercentiles {
		words[i] = percentileText(p)
	}
	return strings.Join(words, " ")
}

// percentileText returns a percentile with at most six decimals.
func percentileText(p float64) string {
	text := strings.TrimRight(strconv.FormatFloat(p, 'f', 6, 64), "0")
	return strings.TrimSuffix(text, ".")
}

func parsePerm(s *Settings, words []string) error {
	perm, err := strconv.ParseUint(words[0], 8, 32)
	if err != nil {
		return errNotOctal
	}
	if perm > 0o777 {
		return fmt.Errorf("argument must be between %o and %o inclusive", 0, 0o777)
	}
	s.UnixSocketPerm = os.FileMode(perm)
	return nil
}

func parseShards(s *Settings, words []string) error {
	n, ok := resp.ParseInt([]byte(words[0]))
	if !ok {
		return errNotNumber
	}
	if n < 0 || n > engine.MaxShards || bits.OnesCount64(uint64(n)) > 1 {
		return errShards
	}
	s.Shards = int(n)
	return nil
}

func parseEvents(s *Settings, words []string) error {
	classes, ok := engine.ParseEventClasses(words[0])
	if !ok {
		return errEventClass
	}
	s.NotifyKeyspaceEvents = classes
	return nil
}

// parseOutputLimits reads groups of class, hard limit, soft limit and soft seconds. Classes that are not named keep theirs.
func parseOutputLimits(s *Settings, words []string) error {
	if len(words)%4 != 0 {
		return errOutputWords
	}
	limits := s.OutputLimits
	for group := range slices.Chunk(words, 4) {
		limit := limits.class(strings.ToLower(group[0]))
		if limit == nil {
			return errOutputClass
		}
		hard, ok1 := parseMemory(group[1])
		soft, ok2 := parseMemory(group[2])
		seconds, err := strconv.ParseUint(group[3], 10, 31)
		if !ok1 || !ok2 || err != nil {
			return errOutputLimit
		}
		*limit = OutputLimit{Hard: hard, Soft: soft, SoftSeconds: int(seconds)}
	}
	s.OutputLimits = limits
	return nil
}

// class returns the limit of a class, nil if there is no such class.
func (l *OutputLimits) class(name string) *OutputLimit {
	switch name {
	case "normal":
		return &l.Normal
	case "replica", "slave":
		return &l.Replica
	case "pubsub":
		return &l.PubSub
	}
	return nil
}

func showOutputLimits(s *Settings) string {
	l := &s.OutputLimits
	return fmt.Sprintf("normal %d %d %d slave %d %d %d pubsub %d %d %d", l.Normal.Hard, l.Normal.Soft, l.Normal.SoftSeconds,
		l.Replica.Hard, l.Replica.Soft, l.Replica.SoftSeconds, l.PubSub.Hard, l.PubSub.Soft, l.PubSub.SoftSeconds)
}
