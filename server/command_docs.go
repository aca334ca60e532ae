package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/engine/glob"
)

// This file is what COMMAND DOCS says beside what the command table does. It means nothing to the server.

// internalCommands are those that servers send to each other, or that are for the tests of Redis: doc_flags calls them syscmd.
var internalCommands = []string{"debug", "pfdebug", "pfselftest", "replconf", "restore-asking"}

// change is an element of a command's history: what a version of Redis has brought.
type change struct{ since, what string }

// commandHistory is the histories of commands, oldest changes first.
var commandHistory = sync.OnceValue(func() map[string][]change {
	history := map[string][]change{}
	for _, h := range []struct{ since, what, commands string }{
		{"2.0.0", "`WITHSCORES` was added", "zrangebyscore"},
		{"2.1.6", "The bounds can be exclusive", "zrevrangebyscore"},
		{"2.4.0", "Several elements at once", "lpush rpush"},
		{"2.4.0", "Several fields at once", "hdel"},
		{"2.4.0", "Several members at once", "sadd srem zadd zrem"},
		{"2.6.0", "`count` was added", "srandmember"},
		{"2.6.12", "`NX`, `XX`, `EX` and `PX` were added", "set"},
		{"2.8.0", "-2 says that there is no such key", "pttl ttl"},
		{"2.8.12", "Filters were added", "client|kill"},
		{"2.8.12", "The filter `ID` was added", "client|kill"},
		{"2.8.12", "The field `id` was added", "client|list"},
		{"3.0.0", "`COPY` and `REPLACE` were added", "migrate"},
		{"3.0.0", "`REPLACE` was added", "restore restore-asking"},
		{"3.0.2", "`NX`, `XX`, `CH` and `INCR` were added", "zadd"},
		{"3.0.3", "Several keys at once", "exists"},
		{"3.0.6", "`KEYS` was added", "migrate"},
		{"3.2.0", "`count` was added", "spop"},
		{"3.2.0", "The same name twice is no error any more", "renamenx"},
		{"3.2.0", "`TYPE` has `MASTER`", "client|kill"},
		{"3.2.2", "`SCHEDULE` was added", "bgsave"},
		{"4.0.0", "`ASYNC` was added", "flushall flushdb"},
		{"4.0.0", "Several elements at once", "lpushx rpushx"},
		{"4.0.0", "Several pairs at once", "hset"},
		{"4.0.0", "The IDs of nodes were added to the reply", "cluster|slots"},
		{"4.0.0", "The port of the bus was added", "cluster|meet"},
		{"4.0.0", "The address, port and name of the client were added to the reply", "slowlog|get"},
		{"4.0.7", "`AUTH` was added", "migrate"},
		{"5.0.0", "`ABSTTL` was added", "restore restore-asking"},
		{"5.0.0", "`IDLETIME` and `FREQ` were added", "restore restore-asking"},
		{"5.0.0", "`TYPE` has `REPLICA`, and still `SLAVE`", "client|kill"},
		{"5.0.0", "`TYPE` was added", "client|list"},
		{"6.0.0", "A user can be named", "auth"},
		{"6.0.0", "`AUTH2` was added", "migrate"},
		{"6.0.0", "`FULL` was added", "xinfo|stream"},
		{"6.0.0", "`KEEPTTL` was added", "set"},
		{"6.0.0", "`TYPE` was added", "scan"},
		{"6.0.0", "The field `user` was added", "client|list"},
		{"6.0.0", "The timeout can be a fraction", "blpop brpop brpoplpush bzpopmax bzpopmin"},
		{"6.2.0", "`ANY` was added", "georadius georadius_ro"},
		{"6.2.0", "`ASYNC` and `SYNC` were added", "script|flush"},
		{"6.2.0", "`BYSCORE`, `BYLEX`, `REV` and `LIMIT` were added", "zrange"},
		{"6.2.0", "Channels were added", "acl|getuser acl|setuser"},
		{"6.2.0", "`count` was added", "lpop rpop"},
		{"6.2.0", "`GET`, `EXAT` and `PXAT` were added", "set"},
		{"6.2.0", "`GT` and `LT` were added", "zadd"},
		{"6.2.0", "`IDLE` and exclusive bounds were added", "xpending"},
		{"6.2.0", "`MINID` and `LIMIT` were added", "xtrim"},
		{"6.2.0", "`NOMKSTREAM`, `MINID` and `LIMIT` were added", "xadd"},
		{"6.2.0", "`NX`, `XX` and `CH` were added", "geoadd"},
		{"6.2.0", "`SYNC` was added", "flushall flushdb"},
		{"6.2.0", "`WRITE` and `ALL` were added", "client|pause"},
		{"6.2.0", "The bounds can be exclusive", "xrange xrevrange"},
		{"6.2.0", "The filter `LADDR` was added", "client|kill"},
		{"6.2.0", "The filter `ID` and the fields `laddr`, `redir`, `argv-mem` and `tot-mem` were added", "client|list"},
		{"6.2.0", "The version can be left out, to read the state of the connection", "hello"},
		{"7.0.0", "`<ms>-*` was added", "xadd"},
		{"7.0.0", "`BYTE` and `BIT` were added", "bitcount bitpos"},
		{"7.0.0", "`ENTRIESADDED` and `MAXDELETEDID` were added", "xsetid"},
		{"7.0.0", "`ENTRIESREAD` was added", "xgroup|create xgroup|setid"},
		{"7.0.0", "`GET` goes with `NX`", "set"},
		{"7.0.0", "`NOW`, `FORCE` and `ABORT` were added", "shutdown"},
		{"7.0.0", "`NX`, `XX`, `GT` and `LT` were added", "expire expireat pexpire pexpireat"},
		{"7.0.0", "All commands if none is named", "command|info"},
		{"7.0.0", "More about the network of a node was added to the reply", "cluster|slots"},
		{"7.0.0", "Permissions by key and selectors were added", "acl|setuser"},
		{"7.0.0", "Selectors were added, and patterns are shown as rules", "acl|getuser"},
		{"7.0.0", "Several parameters at once", "config|set"},
		{"7.0.0", "Several patterns at once", "config|get"},
		{"7.0.0", "Several sections at once", "info"},
		{"7.0.0", "The entries that were found deleted were added to the reply", "xautoclaim"},
		{"7.0.0", "The fields `entries-read` and `lag` were added", "xinfo|groups"},
		{"7.0.0", "The fields `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` were added", "xinfo|stream"},
		{"7.0.0", "The fields `resp`, `multi-mem`, `rbs` and `rbp` were added", "client|list"},
		{"7.0.0", "Units in capital letters", "georadius georadiusbymember geosearch geosearchstore"},
		{"7.0.3", "The field `ssub` was added", "client|list"},
		{"7.2.0", "The fields `lib-name` and `lib-ver` were added", "client|list"},
		{"7.2.0", "The field `inactive` was added", "xinfo|consumers"},
		{"7.2.0", "The field `active-time` was added", "xinfo|stream"},
		{"7.2.0", "`WITHSCORE` was added", "zrank zrevrank"},
		{"7.4.0", "`NOVALUES` was added", "hscan"},
		{"7.4.0", "The filter `MAXAGE` was added", "client|kill"},
		{"8.2.0", "`DIFF`, `DIFF1`, `ANDOR` and `ONE` were added", "bitop"},
		{"8.2.0", "`KEEPREF`, `DELREF` and `ACKED` were added", "xadd xtrim"},
		{"8.4.0", "`CLAIM` was added", "xreadgroup"},
		{"8.4.0", "`IFEQ`, `IFNE`, `IFDEQ` and `IFDNE` were added", "set"},
	} {
		for _, name := range strings.Fields(h.commands) {
			history[name] = append(history[name], change{h.since, h.what})
		}
	}
	return history
})

// argumentNote is what COMMAND DOCS says of an argument and the syntax does not.
type argumentNote struct {
	pattern           string // of the name that follows from the syntax
	name, kind        string // instead; "" if it stays
	keySpec           int    // 0 if it stays
	since, deprecated string
}

// argumentNotes are the notes of each command, in the order of the arguments: a note is for the first argument that its pattern fits, counted
// from the outside inward and from left to right, and for no other. A note is a pattern, and then a name, :kind, #key spec, @since, !deprecated,
// as far as they are there.
var argumentNotes = sync.OnceValue(func() map[string][]argumentNote {
	notes := map[string][]argumentNote{}
	for _, g := range []struct{ notes, commands string }{
		{"count_reset operation", "acl|log"},
		{"username @6.0.0", "auth"},
		{"schedule @3.2.2", "bgsave"},
		{"start_* index; byte_bit index_unit @7.0.0", "bitcount"},
		{"start_* index; end_* end_index; byte_bit index_unit @7.0.0", "bitpos"},
		{"encoding_offset_* operation; wrap_sat_fail_* write; encoding_offset_* write_operation; value :integer", "bitfield"},
		{"and_* operation; diff @8.2.0; diff1 @8.2.0; andor @8.2.0; one @8.2.0", "bitop"},
		{"left_right wherefrom; left_right whereto", "blmove lmove"},
		{"left_right where", "blmpop lmpop"},
		{"min_max where", "bzmpop zmpop"},
		{"before_after where", "linsert"},
		{"yes_no mode", "client|caching"},
		{"ip:port_* filter; ip:port !2.8.12; client-id_* new-format; client-id @2.8.12; normal_* normal_master_slave_pubsub @2.8.12; " +
			"master @3.2.0; replica @5.0.0; ip:port; ip:port @6.2.0; yes_no yes/no; maxage @7.4.0", "client|kill"},
		{"normal_* @5.0.0; client-id @6.2.0", "client|list"},
		{"on_off enabled", "client|no-evict client|no-touch"},
		{"write_all mode @6.2.0", "client|pause"},
		{"on_off status", "client|tracking"},
		{"force_takeover options", "cluster|failover"},
		{"cluster_bus_port @4.0.0", "cluster|meet"},
		{"node-id_* subcommand", "cluster|setslot"},
		{"module-name_* filterby", "command|list"},
		{"nx_* condition @7.0.0", "expire expireat pexpire pexpireat"},
		{"nx_* condition", "hexpire hexpireat hpexpire hpexpireat"},
		{"async_sync async; async @4.0.0; sync @6.2.0", "flushall flushdb"},
		{"async_sync async", "function|flush"},
		{"async_sync async @6.2.0", "script|flush"},
		{"flush_* policy", "function|restore"},
		{"nx_xx condition @6.2.0; ch change @6.2.0", "geoadd"},
		{"m_* unit", "geodist"},
		{"m_* unit; count_any count; any @6.2.0; asc_desc order", "georadius georadius_ro"},
		{"m_* unit; count_any count; asc_desc order", "georadiusbymember georadiusbymember_ro"},
		{"member_* from; radius_* by; radius_* circle; m_* unit; width_* box; m_* unit; asc_desc order; count_any count", "geosearch geosearchstore"},
		{"seconds_* expiration", "getex hgetex"},
		{"protover_* arguments", "hello"},
		{"count_* options", "hrandfield zrandmember"},
		{"novalues @7.4.0", "hscan"},
		{"count @6.2.0", "lpop rpop"},
		{"key_* key_or_empty_string; key; \"\" empty_string; copy @3.0.0; replace @3.0.0; password_* authentication; password @4.0.7; username_* @6.0.0; " +
			"key @3.0.6", "migrate"},
		{"name_* configs", "module|loadex"},
		{"host_port_* args; host_port host-port; no_one no-one", "replicaof slaveof"},
		{"replace @3.0.0; absttl @5.0.0; seconds @5.0.0; frequency @5.0.0", "restore restore-asking"},
		{"type @6.0.0", "scan"},
		{"value :integer", "setbit"},
		{"yes_* mode", "script|debug"},
		{"nx_* condition @2.6.12; ifeq-value @8.4.0; ifne-value @8.4.0; ifdeq-digest @8.4.0; ifdne-digest @8.4.0; get @6.2.0; seconds_* expiration; " +
			"seconds @2.6.12; milliseconds @2.6.12; unix-time-seconds @6.2.0; unix-time-milliseconds @6.2.0; keepttl @6.0.0", "set"},
		{"now @7.0.0; force @7.0.0; abort @7.0.0", "shutdown"},
		{"by-pattern pattern :pattern #1; get-pattern pattern :pattern #1; asc_desc order; alpha sorting", "sort sort_ro"},
		{"count @3.2.0", "spop"},
		{"count @2.6.0", "srandmember"},
		{"nomkstream @6.2.0; maxlen_minid_* trim; maxlen_minid strategy; minid @6.2.0; equal_* operator; count @6.2.0; keepref_* condition @8.2.0; " +
			"auto_id id_or_auto; auto auto_id", "xadd"},
		{"maxlen_minid strategy; minid @6.2.0; equal_* operator; count @6.2.0; keepref_* condition @8.2.0", "xtrim"},
		{"keepref_* condition", "xackdel xdelex"},
		{"min-idle-time :string", "xautoclaim xclaim"},
		{"id_last id; last new_id", "xgroup|create xgroup|setid"},
		{"min-idle-time_* filters; min-idle-time @6.2.0", "xpending"},
		{"key_id streams", "xread"},
		{"min-idle-time @8.4.0; key_id streams", "xreadgroup"},
		{"entries_added @7.0.0; max_deleted_entry_id @7.0.0", "xsetid"},
		{"nx_xx condition @3.0.2; gt_lt comparison @6.2.0; ch change @3.0.2; incr increment @3.0.2", "zadd"},
		{"min :double; max :double", "zcount zremrangebyscore"},
		{"min :double; max :double; withscores @2.0.0", "zrangebyscore"},
		{"max :double; min :double", "zrevrangebyscore"},
		{"sum_* aggregate", "zinter zinterstore zunion zunionstore"},
		{"byscore_bylex sortby @6.2.0; rev @6.2.0; offset_count @6.2.0", "zrange"},
		{"byscore_bylex sortby", "zrangestore"},
		{"withscore @7.2.0", "zrank zrevrank"},
		{"start :integer; stop :integer", "zrevrange"},
	} {
		var parsed []argumentNote
		for _, note := range strings.Split(g.notes, ";") {
			parsed = append(parsed, parseArgumentNote(note))
		}
		for _, name := range strings.Fields(g.commands) {
			notes[name] = parsed
		}
	}
	return notes
})

// parseArgumentNote reads a note. One that cannot be read is a mistake in the table.
func parseArgumentNote(s string) argumentNote {
	words := strings.Fields(s)
	n := argumentNote{pattern: words[0]}
	for _, word := range words[1:] {
		switch word[0] {
		case ':':
			n.kind = word[1:]
		case '#':
			spec, err := strconv.Atoi(word[1:])
			if err != nil {
				panic(fmt.Sprintf("server: note %q: %v", s, err))
			}
			n.keySpec = spec
		case '@':
			n.since = word[1:]
		case '!':
			n.deprecated = word[1:]
		default:
			n.name = word
		}
	}
	return n
}

// annotate adds the notes to the arguments that they fit, and returns those that fit none.
func annotate(args []*argument, notes []argumentNote) []argumentNote {
	for _, a := range args {
		i := slices.IndexFunc(notes, func(n argumentNote) bool { return glob.Match([]byte(n.pattern), []byte(a.name), false) })
		if i >= 0 {
			a.apply(notes[i])
			notes = slices.Concat(notes[:i], notes[i+1:])
		}
		notes = annotate(a.args, notes)
	}
	return notes
}

func (a *argument) apply(n argumentNote) {
	if n.name != "" {
		a.name = n.name
	}
	if n.kind != "" {
		a.kind = n.kind
	}
	if n.keySpec != 0 {
		a.keySpec = n.keySpec
	}
	a.since, a.deprecated = n.since, n.deprecated
}
