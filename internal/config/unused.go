package config

// This file has the directives of Redis and Valkey without an effect here: they tune machinery that this server does
// not have. They accept the same values as there, and are shown and kept, so that every configuration that works
// there is accepted.

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
)

// form parses a value and returns it as CONFIG GET shows it.
type form func(words []string) (shown string, err error)

// unused is a row of the table.
type unused struct {
	names   string // the main name and then aliases; names that Redis 7 does not have are in parentheses
	initial string
	form    form
	when    unusedFlags
}

type unusedFlags uint8

const (
	// unusedStart rows cannot be changed while the server runs.
	unusedStart unusedFlags = 1 << iota
	// unusedHidden rows are shown by CONFIG GET only under their full name.
	unusedHidden
	// unusedLater rows came after Redis 7.0.
	unusedLater
	// unusedQuiet rows do not exist in Redis 7: a pattern of CONFIG GET finds them only once they have been set.
	unusedQuiet
	// unusedWords rows may have several words, or none.
	unusedWords
)

const maxInt32, maxInt64 = math.MaxInt32, math.MaxInt64

var unusedRows = []unused{
	// The process and its memory.
	{"always-show-logo", "no", bit, unusedStart},
	{"set-proc-title", "yes", bit, unusedStart},
	{"proc-title-template", "{title} {listen-addr} {server-mode}", titleTemplate, 0},
	{"disable-thp", "yes", bit, unusedStart},
	{"crash-log-enabled", "yes", bit, 0},
	{"crash-memcheck-enabled", "yes", bit, 0},
	{"use-exit-on-panic", "no", bit, unusedHidden},
	{"lazyexpire-nested-arbitrary-keys", "yes", bit, unusedHidden | unusedLater}, // expired keys are always removed
	{"watchdog-period", "0", whole(0, maxInt32), unusedHidden},
	{"ignore-warnings", "", anything, 0},
	{"server_cpulist (server-cpulist)", "", anything, unusedStart},
	{"bio_cpulist (bio-cpulist)", "", anything, unusedStart},
	{"aof_rewrite_cpulist (aof-rewrite-cpulist)", "", anything, unusedStart},
	{"bgsave_cpulist (bgsave-cpulist)", "", anything, unusedStart},
	{"jemalloc-bg-thread", "yes", bit, 0},
	{"activedefrag", "no", bit, 0},
	{"active-defrag-ignore-bytes", "100mb", size(1), 0},
	{"active-defrag-threshold-lower", "10", whole(0, 1000), 0},
	{"active-defrag-threshold-upper", "100", whole(0, 1000), 0},
	{"active-defrag-cycle-min", "1", whole(1, 99), 0},
	{"active-defrag-cycle-max", "25", whole(1, 99), 0},
	{"active-defrag-cycle-us", "500", whole(0, 100000), unusedQuiet},
	{"active-defrag-max-scan-fields", "1000", whole(1, maxInt64), 0},
	{"lazyfree-lazy-eviction", "no", bit, 0},
	{"lazyfree-lazy-expire", "no", bit, 0},
	{"lazyfree-lazy-server-del", "no", bit, 0},
	{"lazyfree-lazy-user-del", "no", bit, 0},
	{"lazyfree-lazy-user-flush", "no", bit, 0},
	{"activerehashing", "yes", bit, 0},
	{"active-expire-effort", "1", whole(1, 10), 0},
	{"hz", "10", within(whole(0, maxInt32), 1, 500), 0},
	{"dynamic-hz", "yes", bit, 0},
	{"list-compress-depth", "0", whole(0, maxInt32), 0},
	{"list-max-ziplist-entries", "512", whole(0, maxInt64), unusedQuiet},
	{"list-max-ziplist-value", "64", size(0), unusedQuiet},
	{"locale-collate", "", anything, unusedLater},
	{"hide-user-data-from-log", "no", bit, unusedLater},
	{"key-memory-histograms", "no", bit, unusedQuiet},
	{"hash-seed", "", anything, unusedStart | unusedQuiet},
	{"enable-debug-assert", "no", bit, unusedStart | unusedHidden | unusedQuiet},
	{"debug-context", "", anything, unusedStart | unusedHidden | unusedQuiet},
	{"availability-zone", "", anything, unusedQuiet},
	{"extended-redis-compatibility", "no", bit, unusedQuiet},
	{"lua-replicate-commands", "yes", bit, unusedQuiet},
	{"lua-enable-deprecated-api", "no", bit, unusedStart | unusedQuiet},
	{"lua-enable-insecure-api", "no", bit, unusedStart | unusedQuiet},

	// Connections.
	{"io-threads-do-reads", "no", bit, 0},
	{"io-threads-always-active", "no", bit, unusedHidden | unusedQuiet},
	{"events-per-io-thread", "2", whole(0, maxInt32), unusedHidden | unusedQuiet},
	{"prefetch-batch-max-size", "16", whole(0, 128), unusedQuiet},
	{"lookahead", "16", whole(1, maxInt32), unusedQuiet},
	{"min-io-threads-avoid-copy-reply", "7", whole(0, maxInt32), unusedHidden | unusedQuiet},
	{"min-string-size-avoid-copy-reply", "16384", whole(0, maxInt32), unusedHidden | unusedQuiet},
	{"min-string-size-avoid-copy-reply-threaded", "65536", whole(0, maxInt32), unusedHidden | unusedQuiet},
	{"max-new-connections-per-cycle", "10", whole(1, 1000), unusedLater},
	{"max-new-tls-connections-per-cycle", "1", whole(1, 1000), unusedLater},
	{"socket-mark-id", "0", whole(0, math.MaxUint32), unusedStart},
	{"mptcp", "no", bit, unusedStart | unusedQuiet},
	{"rdma-bind", "", words, unusedQuiet | unusedWords},
	{"rdma-port", "0", only("0", "the server has no RDMA; clients reach it at port, tls-port and unixsocket"),
		unusedQuiet},
	{"rdma-rx-size", "1mb", size(64 << 10), unusedStart | unusedQuiet},
	{"rdma-completion-vector", "-1", whole(-1, 1024), unusedStart | unusedQuiet},
	{"gopher-enabled", "no", only("no", "the server does not speak Gopher"), unusedQuiet},
	{"tls-prefer-server-ciphers", "no", bit, 0},
	{"tls-session-caching", "yes", bit, 0},
	{"tls-session-cache-size", "20480", whole(0, maxInt32), 0},
	{"tls-session-cache-timeout", "300", whole(0, maxInt32), 0},
	{"tls-dh-params-file", "", anything, 0},
	{"tls-auto-reload-interval", "0", whole(0, maxInt32), unusedQuiet},

	// Files of data.
	{"rdbcompression", "yes", bit, 0},
	{"rdbchecksum", "yes", bit, unusedStart},
	{"rdb-del-sync-files", "no", bit, 0},
	{"rdb-save-incremental-fsync", "yes", bit, 0},
	{"rdb-version-check", "strict", oneOf("strict", "relaxed"), unusedQuiet},
	{"sanitize-dump-payload", "no", oneOf("no", "yes", "clients"), 0},
	{"no-appendfsync-on-rewrite", "no", bit, 0},
	{"auto-aof-rewrite-percentage", "100", whole(0, maxInt32), 0},
	{"auto-aof-rewrite-min-size", "64mb", size(0), 0},
	{"aof-load-corrupt-tail-max-size", "0", size(0), unusedQuiet},
	{"aof-use-rdb-preamble", "yes", bit, 0},
	{"aof-timestamp-enabled", "no", bit, 0},
	{"aof-rewrite-incremental-fsync", "yes", bit, 0},
	{"aof-disable-auto-gc", "no", bit, 0},
	{"loading-process-events-interval-bytes", "2mb", sizeUpTo(1024, maxInt32), unusedHidden},

	// Replicas.
	{"replica-lazy-flush slave-lazy-flush", "no", bit, 0},
	{"replica-full-sync-buffer-limit", "0", size(0), unusedQuiet},
	{"propagation-error-behavior", "ignore", oneOf("ignore", "panic", "panic-on-replicas"), 0},
	{"repl-diskless-sync", "yes", bit, 0},
	{"repl-diskless-sync-delay", "5", whole(0, maxInt32), 0},
	{"repl-diskless-sync-max-replicas", "0", whole(0, maxInt32), 0},
	{"repl-diskless-load", "disabled", oneOf("disabled", "on-empty-db", "swapdb", "flush-before-load"), 0},
	{"repl-disable-tcp-nodelay", "no", bit, 0},
	{"repl-rdb-channel", "no", bit, unusedQuiet},
	{"repl-mptcp", "no", bit, unusedQuiet},
	{"dual-channel-replication-enabled", "no", bit, unusedQuiet},
	{"shutdown-timeout", "10", whole(0, maxInt32), 0},

	// Nodes of a cluster.
	{"cluster-config-file", "nodes.conf", notNothing("cluster-config-file can't be empty"), unusedStart},
	{"cluster-port", "0", whole(0, 65535), unusedStart},
	{"cluster-node-timeout", "15000", whole(0, maxInt64), 0},
	{"cluster-ping-interval", "1000", whole(0, maxInt64), unusedHidden | unusedQuiet},
	{"cluster-replica-validity-factor cluster-slave-validity-factor", "10", whole(0, maxInt32), 0},
	{"cluster-migration-barrier", "1", whole(0, maxInt32), 0},
	{"cluster-link-sendbuf-limit", "0", size(0), 0},
	{"cluster-require-full-coverage", "yes", bit, 0},
	{"cluster-allow-replica-migration", "yes", bit, 0},
	{"cluster-replica-no-failover cluster-slave-no-failover", "no", bit, 0},
	{"cluster-allow-reads-when-down", "no", bit, 0},
	{"cluster-allow-pubsubshard-when-down", "yes", bit, 0},
	{"cluster-announce-human-nodename", "", anything, unusedLater},
	{"cluster-announce-client-ipv4", "", anything, unusedQuiet},
	{"cluster-announce-client-ipv6", "", anything, unusedQuiet},
	{"cluster-announce-client-port", "0", whole(0, 65535), unusedQuiet},
	{"cluster-announce-client-tls-port", "0", whole(0, 65535), unusedQuiet},
	{"cluster-compatibility-sample-ratio", "0", whole(0, 100), unusedQuiet},
	{"cluster-blacklist-ttl", "60", whole(0, maxInt64), unusedQuiet},
	{"cluster-manual-failover-timeout", "5000", whole(1, maxInt32), unusedQuiet},
	{"cluster-message-gossip-perc", "10", whole(1, 100), unusedHidden | unusedQuiet},
	{"cluster-config-save-behavior", "sync", oneOf("sync", "best-effort"), unusedQuiet},
	{"cluster-slot-migration-log-max-len", "1000", whole(0, maxInt64), unusedQuiet},
	{"cluster-slot-migration-max-archived-tasks", "32", whole(1, maxInt32), unusedHidden | unusedQuiet},
	{"cluster-slot-migration-handoff-max-lag-bytes", "1mb", size(0), unusedQuiet},
	{"cluster-slot-migration-write-pause-timeout", "10000", whole(0, maxInt64), unusedQuiet},
	{"cluster-slot-migration-sync-buffer-drain-timeout", "60000", whole(0, maxInt64), unusedQuiet},
	{"slot-migration-max-failover-repl-bytes", "0", anything, unusedQuiet},

	// Virtual memory and other things of Redis 2.
	{"vm-enabled", "no", bit, unusedStart | unusedQuiet},
	{"really-use-vm", "no", bit, unusedStart | unusedQuiet},
	{"vm-swap-file", "/tmp/redis.swap", anything, unusedStart | unusedQuiet},
	{"vm-max-memory", "0", size(0), unusedStart | unusedQuiet},
	{"vm-page-size", "256", size(0), unusedStart | unusedQuiet},
	{"vm-pages", "104857600", whole(0, maxInt64), unusedStart | unusedQuiet},
	{"vm-max-threads", "4", whole(0, maxInt32), unusedStart | unusedQuiet},
	{"glueoutputbuf", "yes", bit, unusedStart | unusedQuiet},

	// Directives of Redis 8's modules: search, time series, Bloom and cuckoo filters.
	{"search-concurrent-write-mode", "no", bit, unusedQuiet},
	{"search-cursor-read-size", "1000", whole(1, maxInt64), unusedQuiet},
	{"search-fork-gc-clean-numeric-empty-nodes", "yes", bit, unusedQuiet},
	{"search-index-threads", "8", whole(1, maxInt64), unusedStart | unusedQuiet},
	{"search-max-expansions", "200", whole(1, maxInt64), unusedQuiet},
	{"search-upgrade-index", "", anything, unusedStart | unusedQuiet},
	{"ts-num-threads", "3", whole(1, 16), unusedStart | unusedQuiet},
	{"vset-force-single-threaded-execution", "no", bit, unusedQuiet},
}

// unusedDirectives makes directives from the table.
func unusedDirectives() []*directive {
	list := make([]*directive, len(unusedRows))
	for i, row := range unusedRows {
		list[i] = row.directive()
	}
	return list
}

func (row unused) directive() *directive {
	names := strings.Fields(row.names)
	name := names[0]
	initial, err := row.form([]string{row.initial})
	if err != nil {
		panic("server: default of " + name + ": " + err.Error())
	}
	d := &directive{name: name, initial: QuoteWord(row.initial), unused: true, many: row.when&unusedWords != 0,
		startOnly: row.when&unusedStart != 0,
		hidden:    row.when&unusedHidden != 0,
		quiet:     row.when&unusedQuiet != 0,
		later:     row.when&(unusedLater|unusedQuiet) != 0,
		parse: func(s *Settings, words []string) error {
			shown, err := row.form(words)
			if err == nil {
				s.setUnused(name, shown, shown == initial)
			}
			return err
		},
		show: func(s *Settings) string {
			if value, ok := s.Unused[name]; ok {
				return value
			}
			return initial
		},
	}
	for _, other := range names[1:] {
		if foreign := strings.Trim(other, "()"); foreign != other {
			d.foreign(foreign)
		} else {
			d.also(other)
		}
	}
	return d
}

// setUnused keeps the value of a directive without an effect. It copies the map, because other settings may share
// it.
func (s *Settings) setUnused(name, value string, isDefault bool) {
	next := maps.Clone(s.Unused)
	if isDefault {
		delete(next, name)
	} else if next == nil {
		next = map[string]string{name: value}
	} else {
		next[name] = value
	}
	if len(next) == 0 {
		next = nil
	}
	s.Unused = next
}

// word makes a form from a function that reads one word.
func word(read func(string) (string, error)) form {
	return func(words []string) (string, error) { return read(words[0]) }
}

// The forms.
var (
	anything = word(func(w string) (string, error) { return w, nil })
	bit      = word(func(w string) (string, error) {
		_, err := parseYesNo(w)
		return strings.ToLower(w), err
	})
	titleTemplate = word(func(w string) (string, error) { return w, checkTitleTemplate(w) })
)

// words is the form of several words, or none.
func words(list []string) (string, error) {
	return strings.Join(strings.Fields(strings.Join(list, " ")), " "), nil
}

// notNothing is the form of a text that is not empty.
func notNothing(problem string) form {
	return word(func(w string) (string, error) {
		if w == "" {
			return "", errors.New(problem)
		}
		return w, nil
	})
}

func whole(min, max int64) form {
	return word(func(w string) (string, error) {
		n, err := parseNumber(w, min, max)
		return strconv.FormatInt(n, 10), err
	})
}

func size(min int64) form { return sizeUpTo(min, maxInt64) }

func sizeUpTo(min, max int64) form {
	return word(func(w string) (string, error) {
		n, err := parseSize(w, min, max)
		return strconv.FormatInt(n, 10), err
	})
}

// within is a form that silently keeps a number within limits, as Redis does.
func within(f form, least, most int64) form {
	return func(words []string) (string, error) {
		shown, err := f(words)
		if err != nil {
			return "", err
		}
		n, err := strconv.ParseInt(shown, 10, 64)
		return strconv.FormatInt(max(least, min(n, most)), 10), err
	}
}

func oneOf(allowed ...string) form {
	return word(func(w string) (string, error) {
		if i := indexFold(allowed, w); i >= 0 {
			return allowed[i], nil
		}
		return "", unknownWord(allowed)
	})
}

// only is the form of a directive whose other values the server does not support.
func only(value, why string) form {
	refused := fmt.Errorf("only '%s' is supported: %s", value, why)
	return word(func(w string) (string, error) {
		if !strings.EqualFold(w, value) {
			return "", refused
		}
		return value, nil
	})
}

var (
	errTitleTemplate = errors.New("template format is invalid or contains unknown variables")
)

// titleVariables are the variables in a title of the process.
var titleVariables = []string{"title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"}

// checkTitleTemplate returns an error if a template of titles is invalid.
func checkTitleTemplate(template string) error {
	if template == "" {
		return errTitleTemplate
	}
	for rest := template; ; {
		_, variable, found := strings.Cut(rest, "{")
		if !found {
			return nil
		}
		variable, rest, found = strings.Cut(variable, "}")
		if !found || indexFold(titleVariables, variable) < 0 {
			return errTitleTemplate
		}
	}
}
