package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/engine/glob"
)

// This file has the facts about arguments that COMMAND DOCS shows and the grammar does not have.

// argumentNote is what COMMAND DOCS shows of an argument beside its syntax.
type argumentNote struct {
	pattern           string // matches the name from the syntax
	name, kind        string // replace those of the syntax; "" keeps them
	keySpec           int    // 0 keeps that of the syntax
	since, deprecated string
}

// newerFilters are the notes of the filters that CLIENT LIST and CLIENT KILL have from Valkey 9.
const newerFilters = "name @9.0.0; idle @9.0.0; flags @9.0.0; lib-name @9.0.0; lib-ver @9.0.0; db @9.0.0; capa @9.0.0; ip " +
	"@9.0.0; not-client-id @9.0.0; normal_* @9.0.0; not-username @9.0.0; not-ip:port @9.0.0; not-laddr " +
	"@9.0.0; not-name @9.0.0; not-flags @9.0.0; not-lib-name @9.0.0; not-lib-ver @9.0.0; not-db @9.0.0; " +
	"not-capa @9.0.0; not-ip @9.0.0"

// argumentNotes are the notes of each command, in the order of the arguments. A note belongs only to the first
// argument that its pattern matches, from the outside inward and from left to right. A note is a pattern, then
// optionally a name, :kind, #key spec, @since, !deprecated.
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
			"master @3.2.0; replica @5.0.0; ip:port; ip:port @6.2.0; yes_no yes/no; maxage @7.4.0; " + newerFilters, "client|kill"},
		{"normal_* @5.0.0; client-id @6.2.0; username @8.1.0; ip:port @8.1.0; laddr @8.1.0; yes_no @8.1.0; maxage @8.1.0; " +
			newerFilters, "client|list"},
		{"on_off enabled", "client|no-evict client|no-touch"},
		{"write_all mode @6.2.0", "client|pause"},
		{"on_off status", "client|tracking"},
		{"force_takeover options", "cluster|failover"},
		{"cluster_bus_port @4.0.0", "cluster|meet"},
		{"node-id_* subcommand", "cluster|setslot"},
		{"module-name_* filterby", "command|list"},
		{"host_port_force target", "failover"},
		{"nx_* condition @7.0.0", "expire expireat pexpire pexpireat"},
		{"nx_* condition", "hexpire hexpireat hpexpire hpexpireat sexpire sexpireat spexpire spexpireat"},
		{"async_sync async; async @4.0.0; sync @6.2.0", "flushall flushdb"},
		{"async_sync async", "function|flush"},
		{"async_sync async @6.2.0", "script|flush"},
		{"flush_* policy", "function|restore"},
		{"nx_xx condition @6.2.0; ch change @6.2.0", "geoadd"},
		{"m_* unit", "geodist"},
		{"m_* unit; count_any count; any @6.2.0; asc_desc order", "georadius georadius_ro"},
		{"m_* unit; count_any count; asc_desc order", "georadiusbymember georadiusbymember_ro"},
		{"member_* from; radius_* by; radius_* circle; m_* unit; width_* box; m_* unit; asc_desc order; count_any " +
			"count", "geosearch geosearchstore"},
		{"seconds_* expiration", "getex hgetex"},
		{"protover_* arguments", "hello"},
		{"count_* options", "hrandfield zrandmember"},
		{"novalues @7.4.0", "hscan"},
		{"count @6.2.0", "lpop rpop"},
		{"key_* key_or_empty_string; key; \"\" empty_string; copy @3.0.0; replace @3.0.0; password_* authentication; password " +
			"@4.0.7; username_* @6.0.0; " +
			"key @3.0.6", "migrate"},
		{"name_* configs", "module|loadex"},
		{"host_port_* args; host_port host-port; no_one no-one", "replicaof slaveof"},
		{"replace @3.0.0; absttl @5.0.0; seconds @5.0.0; frequency @5.0.0", "restore restore-asking"},
		{"type @6.0.0", "scan"},
		{"value :integer", "setbit"},
		{"yes_* mode", "script|debug"},
		{"nx_* condition @2.6.12; ifeq-value @8.4.0; ifne-value @8.4.0; ifdeq-digest @8.4.0; ifdne-digest @8.4.0; get @6.2.0; " +
			"seconds_* expiration; " +
			"seconds @2.6.12; milliseconds @2.6.12; unix-time-seconds @6.2.0; unix-time-milliseconds @6.2.0; keepttl @6.0.0",
			"set"},
		{"now @7.0.0; force @7.0.0; abort @7.0.0", "shutdown"},
		{"by-pattern pattern :pattern #1; get-pattern pattern :pattern #1; asc_desc order; alpha sorting", "sort sort_ro"},
		{"count @3.2.0", "spop"},
		{"count @2.6.0", "srandmember"},
		{"nomkstream @6.2.0; maxlen_minid_* trim; maxlen_minid strategy; minid @6.2.0; equal_* operator; count @6.2.0; keepref_* " +
			"condition @8.2.0; " +
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

// parseArgumentNote reads a note. An invalid note is a mistake in the table.
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
				panic(fmt.Sprintf("command: note %q: %v", s, err))
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

// annotate adds the notes to the arguments that they match, and returns the notes that match none.
func annotate(args []*Argument, notes []argumentNote) []argumentNote {
	for _, a := range args {
		i := slices.IndexFunc(notes, func(n argumentNote) bool {
			return glob.Match([]byte(n.pattern), []byte(a.Name),
				false)
		})
		if i >= 0 {
			a.apply(notes[i])
			notes = slices.Concat(notes[:i], notes[i+1:])
		}
		notes = annotate(a.Args, notes)
	}
	return notes
}

func (a *Argument) apply(n argumentNote) {
	if n.name != "" {
		a.Name = n.name
	}
	if n.kind != "" {
		a.Kind = n.kind
	}
	if n.keySpec != 0 {
		a.KeySpec = n.keySpec
	}
	a.Since, a.Deprecated = n.since, n.deprecated
}

// UnusedNotes returns the patterns of notes that match no argument of their command. A test of all commands checks that there are none.
func UnusedNotes(t *Table) map[string][]string {
	unused := map[string][]string{}
	for name, notes := range argumentNotes() {
		cmd := t.Original(name)
		if cmd == nil {
			unused[name] = []string{"no such command"}
			continue
		}
		p := syntaxParser{cmd: cmd, words: syntaxWords(cmd.Syntax)}
		args, err := p.sequence()
		if err != nil {
			unused[name] = []string{err.Error()}
			continue
		}
		for _, note := range annotate(args, notes) {
			unused[name] = append(unused[name], note.pattern)
		}
	}
	return unused
}
