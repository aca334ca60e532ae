package conformance

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// oracleVersion is the last release of Redis whose facts are compared. Its replies lack everything later.
var oracleVersion = []int{7, 0, 15}

// isLater reports whether a version is later than that of the reference.
func isLater(version string) bool {
	var v []int
	for _, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		v = append(v, n)
	}
	return slices.Compare(v, oracleVersion) > 0
}

// knownDocs are the differences in COMMAND DOCS: where Redis has the text old, we have new.
var knownDocs = []struct{ commands, field, old, new, why string }{
	{"getset", "replaced_by", "`!GET`", "`GET`", "the ! is for the pages of Redis's documentation"},
	{"bitop", "arguments", "operation:string", "operation:oneof{and:pure-token/AND or:pure-token/OR xor:pure-token/XOR not:pure-token/NOT}", "as since Redis 7.2"},
	{"client|kill", "arguments", "new-format:oneof+{client-id:integer/ID@2.8.12? ",
		"new-format:oneof?+{client-id:integer/ID@2.8.12+ ", "the same, said differently; several IDs, as in Valkey 9"},
	{"client|kill", "arguments", "oneof/TYPE@2.8.12?{", "oneof/TYPE@2.8.12{", "the same"},
	{"client|kill", "arguments", "username:string/USER? ip:port:string/ADDR? ip:port:string/LADDR@6.2.0? yes/no:string/SKIPME?}",
		"username:string/USER ip:port:string/ADDR ip:port:string/LADDR@6.2.0 yes/no:oneof/SKIPME{yes:pure-token/YES no:pure-token/NO}}", "the same"},
	{"failover", "arguments", "target:block/TO?{host:string port:integer ", "target:block?{host_port:block/TO{host:string port:integer} ",
		"TO has two arguments"},
	{"client|list", "arguments", "id:block/ID@6.2.0?{client-id:integer+}", "client-id:integer/ID@6.2.0?+",
		"a block of one argument"},
	{"config|get", "arguments", "parameter:block+{parameter:string}", "parameter:string+", "a block of one argument"},
	{"psubscribe", "arguments", "pattern:block+{pattern:pattern}", "pattern:pattern+", "a block of one argument"},
	{"module|loadex", "arguments", "args:block/ARGS?+{arg:string}", "arg:string/ARGS?+", "a block of one argument"},
	{"xinfo|stream", "arguments", "full:block/FULL?{count:integer/COUNT?}",
		"full_count:block?{full:pure-token/FULL count:integer/COUNT?}", "FULL has no argument of its own"},
	{"xtrim", "arguments", "trim:block{strategy:oneof{maxlen:pure-token/MAXLEN minid:pure-token/MINID@6.2.0} operator:oneof?{equal:pure-token/= " +
		"approximately:pure-token/~} threshold:string count:integer/LIMIT@6.2.0?}",
		"strategy:oneof{maxlen:pure-token/MAXLEN minid:pure-token/MINID@6.2.0} operator:oneof?{equal:pure-token/= " +
			"approximately:pure-token/~} threshold:string count:integer/LIMIT@6.2.0?",
		"a block that is neither optional nor repeated"},
	{"geosearch geosearchstore", "arguments", "width:double/BYBOX height:double",
		"width_height:block/BYBOX{width:double height:double}", "BYBOX has two arguments"},
	{"migrate", "arguments", "empty_string:pure-token/", `empty_string:pure-token/""`,
		"as since Redis 7.2: a token is not empty"},
	{"migrate", "arguments", "/AUTH@4.0.7?", "/AUTH@4.0.7", "the choice is optional"},
	{"migrate", "arguments", "/AUTH2@6.0.0?", "/AUTH2@6.0.0", "the choice is optional"},
	{"geohash geopos", "arguments", "member:string+", "member:string?+", "may be left out, as the arity says"},
	{"pfmerge", "arguments", "sourcekey:key1+", "sourcekey:key1?+", "may be left out, as the arity says"},
	{"command|getkeys command|getkeysandflags", "arguments", "", "command:string arg:string+", "as since Redis 7.2"},
	{"debug", "arguments", "", "subcommand:string arg:string?+", "documented here"},
	{"lolwut", "arguments", "version:integer/VERSION?", "version:integer/VERSION? columns:integer? rows:integer?",
		"accepted by both"},
	{"zincrby", "arguments", "increment:integer", "increment:double", "a score"},
	{"zinter zinterstore zunion zunionstore", "arguments", "weight:integer", "weight:double", "a factor of scores"},
	{"zinter zinterstore zunion zunionstore", "arguments", "max:pure-token/MAX}", "max:pure-token/MAX count:pure-token/COUNT}",
		"as since Redis 8.8"},
	{"xadd", "arguments", " trim:block?{", " pid_pid_iid:oneof?{pid:string/IDMPAUTO pid_iid:block/IDMP{pid:string iid:string}} trim:block?{",
		"as in Redis 8.10"},
	{"xread xreadgroup", "arguments", "count:integer/COUNT?", "count:integer/COUNT? maxcount:string/MAXCOUNT? maxsize:string/MAXSIZE?",
		"as in Redis 8.10"},
	{"geosearch geosearchstore", "arguments", "from:oneof{", "from:oneof?{", "a polygon has no centre"},
	{"geosearch geosearchstore", "arguments", "mi:pure-token/MI}}} order", "mi:pure-token/MI}} num-vertices_longitude_latitude:" +
		"block/BYPOLYGON{num-vertices:string longitude_latitude:block+{longitude:double latitude:double}}} order",
		"as since Valkey 9"},
}

// TestCommandDocsAreThoseOfRedis compares the documentation of commands and their arguments. Summaries, complexities
// and histories are worded differently: they only have to exist.
func TestCommandDocsAreThoseOfRedis(t *testing.T) {
	theirs, here := bothDocs(t)
	require.Greater(t, len(theirs), 300)
	for _, known := range knownDocs {
		for _, name := range strings.Fields(known.commands) {
			facts := theirs[name]
			switch changed := strings.Replace(facts[known.field], known.old, known.new, 1); {
			case known.old == "" && facts[known.field] != "" || changed == facts[known.field]:
				t.Errorf("%s: %q is not in the %s of Redis: %s", name, known.old, known.field, facts[known.field])
			default:
				facts[known.field] = changed
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		want, got := theirs[name], here[name]
		if got == nil {
			continue // the transcripts and the documentation list the missing commands
		}
		for field := range want {
			require.Contains(t, []string{"summary", "since", "group", "complexity", "doc_flags", "deprecated_since",
				"replaced_by", "history", "arguments"}, field)
		}
		for _, field := range []string{"since", "group", "doc_flags", "deprecated_since", "replaced_by", "history",
			"arguments"} {
			if got[field] != want[field] {
				t.Errorf("%s: %s is\n%s, want\n%s", name, field, got[field], want[field])
			}
		}
		for _, field := range []string{"summary", "complexity"} {
			if got[field] == "" && want[field] != "" {
				t.Errorf("%s has no %s", name, field)
			}
		}
		if len(want["summary"]) > 0 && got["summary"] == want["summary"] {
			t.Errorf("%s has the summary of Redis", name)
		}
	}
}

func bothDocs(t *testing.T) (theirs, here map[string]map[string]string) {
	redis, ours := bothServers(t)
	docs := func(c *transcript.Conn) map[string]map[string]string {
		out := map[string]map[string]string{}
		addDocs(out, reply(t, c, "COMMAND", "DOCS"))
		return out
	}
	return docs(redis), docs(ours)
}

// addDocs adds the facts about commands and their sub-commands from a reply to COMMAND DOCS in RESP2.
func addDocs(out map[string]map[string]string, docs transcript.Value) {
	for name, value := range fields(docs) {
		facts := map[string]string{}
		for field, v := range fields(value) {
			switch field {
			case "subcommands":
				addDocs(out, v)
			case "arguments":
				facts[field] = argumentsOutline(v)
			case "history":
				facts[field] = historyVersions(v)
			case "doc_flags":
				facts[field] = sortedText(v)
			default:
				facts[field] = v.Text
			}
		}
		out[name] = facts
	}
}

// fields returns the values of a map, by name, which RESP2 encodes as an array.
func fields(v transcript.Value) map[string]transcript.Value {
	out := map[string]transcript.Value{}
	for i := 0; i+1 < len(v.Elems); i += 2 {
		out[v.Elems[i].Text] = v.Elems[i+1]
	}
	return out
}

// historyVersions returns the versions of a history up to that of the reference.
func historyVersions(v transcript.Value) string {
	var versions []string
	for _, change := range v.Elems {
		if since := change.Elems[0].Text; !isLater(since) {
			versions = append(versions, since)
		}
	}
	return strings.Join(versions, " ")
}

// argumentsOutline shows arguments on one line: name:type, the key spec, /TOKEN, @since, !deprecated, then ? for
// optional, + for multiple, ++ if the token is repeated too, and its parts in braces. Arguments later than the
// reference are left out.
func argumentsOutline(v transcript.Value) string {
	var out []string
	for _, arg := range v.Elems {
		f := fields(arg)
		if isLater(f["since"].Text) {
			continue
		}
		s := f["name"].Text + ":" + f["type"].Text + f["key_spec_index"].Text
		for _, part := range []struct{ field, mark string }{{"token", "/"}, {"since", "@"}, {"deprecated_since", "!"}} {
			if value, ok := f[part.field]; ok {
				s += part.mark + value.Text
			}
		}
		for _, flag := range f["flags"].Elems {
			s += map[string]string{"optional": "?", "multiple": "+", "multiple_token": "+"}[flag.Text]
		}
		if f["type"].Text == "oneof" || f["type"].Text == "block" {
			s += "{" + argumentsOutline(f["arguments"]) + "}"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// TestCommandListIsThatOfRedis compares the lists of commands by category and pattern, among the commands that both
// have.
func TestCommandListIsThatOfRedis(t *testing.T) {
	redis, ours := bothServers(t)
	names := func(c *transcript.Conn, filter ...string) map[string]bool {
		v := reply(t, c, append([]string{"COMMAND", "LIST"}, filter...)...)
		require.Equal(t, transcript.Array, v.Kind, "%v", filter)
		out := map[string]bool{}
		for _, name := range v.Elems {
			require.Equal(t, transcript.Bulk, name.Kind)
			out[name.Text] = true
		}
		require.Len(t, out, len(v.Elems), "%v", filter)
		return out
	}
	theirs, here := names(redis), names(ours)
	inBoth := func(listed map[string]bool) []string {
		var out []string
		for name := range listed {
			if theirs[name] && here[name] && !knownFacts[name+": categories"] {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	require.Greater(t, len(inBoth(theirs)), 300)
	filters := [][2]string{{"MODULE", "none"}, {"ACLCAT", "nosuch"}, {"aclcat", "KEYSPACE"}, {"ACLCAT", "@read"},
		{"PATTERN", "*"}, {"pattern", "X*"}, {"PATTERN", "*|g*"},
		{"PATTERN", "[a-c]l?*"}, {"PATTERN", "GET"}, {"PATTERN", ""}, {"PATTERN", "config*"}}
	for _, category := range reply(t, redis, "ACL", "CAT").Elems {
		filters = append(filters, [2]string{"ACLCAT", category.Text})
	}
	for _, f := range filters {
		require.Equal(t, inBoth(names(redis, "FILTERBY", f[0], f[1])), inBoth(names(ours, "FILTERBY", f[0], f[1])), "%v", f)
	}
	for _, words := range []string{"FILTERBY", "FILTERBY ACLCAT", "FILTERBY NOSUCH x", "NOSUCH ACLCAT read",
		"FILTERBY ACLCAT read x", "FILTERBY PATTERN a PATTERN b"} {
		command := append([]string{"COMMAND", "LIST"}, strings.Fields(words)...)
		require.Equal(t, reply(t, redis, command...), reply(t, ours, command...), words)
	}
	// Sub-commands are listed, but not counted.
	containers := 0
	for name := range here {
		if !strings.Contains(name, "|") {
			containers++
		}
	}
	require.Equal(t, strconv.Itoa(containers), reply(t, ours, "COMMAND", "COUNT").Text)
}
