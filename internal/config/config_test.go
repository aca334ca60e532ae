package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
)

// shown returns the value of a directive as CONFIG GET shows it.
func shown(t *testing.T, c *Config, name string) string {
	t.Helper()
	values := map[string]string{}
	c.Match([][]byte{[]byte(name)}, func(name, value string) { values[name] = value })
	require.Contains(t, values, name)
	return values[name]
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestDefaultsAreThoseOfRedis(t *testing.T) {
	s := NewConfig().Get()
	require.Equal(t, []string{"127.0.0.1", "-::1"}, s.Network.Bind)
	require.Equal(t, 6379, s.Network.Port)
	require.Equal(t, 16, s.Databases)
	require.Equal(t, 10000, s.Network.MaxClients)
	require.Equal(t, 300, s.Network.TCPKeepAlive)
	require.True(t, s.Network.ProtectedMode)
	require.Equal(t, slog.LevelInfo, s.Log.Level)
	require.Equal(t, 512<<20, s.Clients.ProtoMaxBulkLen)
	require.Equal(t, 1<<30, s.Clients.QueryBufferLimit)
	require.Equal(t, OutputLimits{Replica: OutputLimit{256 << 20, 64 << 20, 60},
		PubSub: OutputLimit{32 << 20, 8 << 20, 60}}, s.Clients.OutputLimits)
	require.Equal(t, hashes.Limits{Entries: 512, Value: 64}, s.Types.Hash)
	require.Equal(t, sets.Limits{IntsetEntries: 512, ListpackEntries: 128, ListpackValue: 64}, s.Types.Set)
	require.Equal(t, zsets.DefaultLimits, s.Types.ZSet)
	require.Equal(t, streams.DefaultLimits, s.Types.Stream)
	require.EqualValues(t, -2, s.Types.List)
}

func TestEveryDirectiveAcceptsWhatItShows(t *testing.T) {
	names := map[string]bool{}
	for _, n := range directiveNames() {
		require.False(t, names[n.name], "%s is there twice", n.name)
		names[n.name] = true
		c := NewConfig()
		before := *c.Get()
		require.NoError(t, c.Set(n.name, n.d.show(&before), false), n.name)
		require.Equal(t, before, *c.Get(), n.name)
		c = NewConfig()
		require.NoError(t, c.LoadFile(writeFile(t, "redis.conf", n.d.line(&before))), n.name)
		require.Equal(t, before, *c.Get(), n.name)
	}
}

func TestSetReadsValuesAsRedisDoes(t *testing.T) {
	for _, tc := range []struct{ name, value, shown, err string }{
		{"port", "6380", "6380", ""},
		{"PORT", "0", "0", ""},
		{"port", "abc", "", "argument couldn't be parsed into an integer"},
		{"port", "70000", "", "argument must be between 0 and 65535 inclusive"},
		{"port", " 5", "", "argument couldn't be parsed into an integer"},
		{"nosuch", "1", "", "Bad directive or wrong number of arguments"},
		{"bind", "10.0.0.1 -::1 *", "10.0.0.1 -::1 *", ""},
		{"bind", "", "", ""},
		{"maxclients", "0", "", "argument must be between 1 and 4294967295 inclusive"},
		{"timeout", "-1", "", "argument must be between 0 and 2147483647 inclusive"},
		{"timeout", "99999999999", "", "argument must be between 0 and 2147483647 inclusive"},
		{"protected-mode", "NO", "no", ""},
		{"protected-mode", "maybe", "", "argument must be 'yes' or 'no'"},
		{"loglevel", "WARNING", "warning", ""},
		{"loglevel", "foo", "", "argument(s) must be one of the following: debug, verbose, notice, warning, nothing"},
		{"unixsocketperm", "700", "700", ""},
		{"unixsocketperm", "9", "", "argument couldn't be parsed as an octal number"},
		{"shards", "16", "16", ""},
		{"shards", "12", "", "argument must be 0 or a power of two up to 64"},
		{"shards", "128", "", "argument must be 0 or a power of two up to 64"},
		{"shards", "-9223372036854775808", "", "argument must be 0 or a power of two up to 64"},
		{"proto-max-bulk-len", "1gb", "1073741824", ""},
		{"proto-max-bulk-len", "1", "", "argument must be between 1048576 and 9223372036854775807 inclusive"},
		{"client-query-buffer-limit", "2m", "2000000", ""},
		{"client-query-buffer-limit", "-1", "", "argument must be a memory value"},
		{"client-query-buffer-limit", "\xff1\xff\xffMB", "", "argument must be a memory value"},
		{"client-query-buffer-limit", "1x", "", "argument must be a memory value"},
		{"client-query-buffer-limit", "9223372036854775807gb", "", "argument must be a memory value"},
		{"client-output-buffer-limit", "normal 1mb 2mb 3 pubsub 0 0 0",
			"normal 1048576 2097152 3 slave 268435456 67108864 60 pubsub 0 0 0", ""},
		{"client-output-buffer-limit", "replica 1 2 3", "normal 0 0 0 slave 1 2 3 pubsub 33554432 8388608 60", ""},
		{"client-output-buffer-limit", "normal 1 2", "", "Wrong number of arguments in buffer limit configuration."},
		{"client-output-buffer-limit", "foo 1 2 3", "", "Invalid client class specified in buffer limit configuration."},
		{"client-output-buffer-limit", "normal a 2 3", "",
			"Error in hard, soft or soft_seconds setting in buffer limit configuration."},
		{"client-output-buffer-limit", "normal 1 2 -3", "",
			"Error in hard, soft or soft_seconds setting in buffer limit configuration."},
		{"cluster-slot-stats-enabled", "net MEM cpu", "yes", ""},
		{"cluster-slot-stats-enabled", "mem cpu", "cpu mem", ""},
		{"cluster-slot-stats-enabled", "cpu disk", "", "argument(s) must be one of the following: no, yes, cpu, net, mem"},
		{"notify-keyspace-events", "KEA", "AKE", ""},
		{"notify-keyspace-events", "KEZ", "", "Invalid event class character. Use 'Ag$lshzxeKEtmdnocaSTIV'."},
		{"hash-max-ziplist-entries", "7", "7", ""},
		{"hash-max-listpack-entries", "1k", "", "argument couldn't be parsed into an integer"},
		{"list-max-listpack-size", "-9", "-9", ""},
		{"requirepass", "a b", "a b", ""},
		{"save", "", "", ""},
		{"save", "3600 1", "3600 1", ""},
		{"save", "3600 1 60 100", "3600 1 60 100", ""},
		{"save", "3600", "", "Invalid save parameters"},
		{"save", "0 1", "", "Invalid save parameters"},
		{"appendonly", "NO", "no", ""},
		{"appendonly", "yes", "yes", ""},
		{"appendfsync", "Always", "always", ""},
		{"appendfsync", "sometimes", "", "argument(s) must be one of the following: everysec, always, no"},
		{"maxmemory", "0mb", "0", ""},
		{"maxmemory", "100mb", "104857600", ""},
		{"slave-read-only", "yes", "yes", ""},
		{"slave-read-only", "no", "no", ""},
		{"hz", "100", "100", ""},
		{"hz", "1000", "500", ""},
		{"hz", "x", "", "argument couldn't be parsed into an integer"},
		{"active-expire-effort", "11", "", "argument must be between 1 and 10 inclusive"},
		{"activerehashing", "No", "no", ""},
		{"rdbcompression", "1", "", "argument must be 'yes' or 'no'"},
		{"repl-backlog-size", "64mb", "67108864", ""},
		{"repl-backlog-size", "1", "16384", ""},
		{"auto-aof-rewrite-min-size", "-1", "", "argument must be a memory value"},
		{"sanitize-dump-payload", "Clients", "clients", ""},
		{"repl-diskless-load", "x", "", "argument(s) must be one of the following: disabled, on-empty-db, swapdb, flush-before-load"},
		{"proc-title-template", "{title} {port} }", "{title} {port} }", ""},
		{"proc-title-template", "{x}", "", "template format is invalid or contains unknown variables"},
		{"proc-title-template", "{title", "", "template format is invalid or contains unknown variables"},
		{"proc-title-template", "", "", "template format is invalid or contains unknown variables"},
		{"locale-collate", "", "", ""},
		{"ignore-warnings", "a b", "a b", ""},
		{"rdma-port", "7", "", "only '0' is supported: the server has no RDMA; clients reach it at port, tls-port and unixsocket"},
		{"primaryauth", "x", "x", ""},
		{"hash-max-zipmap-entries", "5", "5", ""},
		{"oom-score-adj", "relative", "relative", ""},
		{"oom-score-adj-values", "1 2 3", "1 2 3", ""},
		{"oom-score-adj-values", "1 2", "", "wrong number of arguments"},
		{"oom-score-adj-values", "1 2 3000", "", "Invalid oom-score-adj-values, elements must be between -2000 and 2000."},
		{"shutdown-on-sigint", "force NOSAVE", "nosave force", ""},
		{"shutdown-on-sigint", "default", "default", ""},
		{"shutdown-on-sigterm", "save nosave", "", "shutdown options SAVE and NOSAVE can't be used simultaneously"},
		{"shutdown-on-sigterm", "", "", "argument(s) must be one of the following: default, save, nosave, now, force"},
		{"supervised", "x", "", "argument(s) must be one of the following: upstart, systemd, auto, no"},
		{"syslog-facility", "LOCAL7", "local7", ""},
		{"syslog-facility", "local8", "", "argument(s) must be one of the following: user, local0, local1, local2, local3, local4, local5, local6, local7"},
		{"min-slaves-to-write", "2", "2", ""},
		{"replica-priority", "-1", "", "argument must be between 0 and 2147483647 inclusive"},
		{"replica-max-lag", "10", "10", ""},
		{"replica-max-lag", "0", "0", ""},
		{"replica-max-lag", "500ms", "500ms", ""},
		{"replica-max-lag", "1500MS", "1500ms", ""},
		{"replica-max-lag", "2s", "2", ""},
		{"replica-max-lag", "3000ms", "3", ""},
		{"replica-max-lag", "2147483647", "2147483647", ""},
		{"replica-max-lag", "2147483648", "", "argument must be between 0 and 2147483647 seconds inclusive"},
		{"replica-max-lag", "9223372036854775807ms", "", "argument must be between 0 and 2147483647 seconds inclusive"},
		{"replica-max-lag", "-1ms", "", "argument must be between 0 and 2147483647 seconds inclusive"},
		{"replica-max-lag", "1m", "", "argument must be a number of seconds, or a number with the unit ms or s"},
		{"replica-max-lag", "0.5s", "", "argument must be a number of seconds, or a number with the unit ms or s"},
		{"replica-max-lag", "ms", "", "argument must be a number of seconds, or a number with the unit ms or s"},
		{"dbfilename", "my.rdb", "my.rdb", ""},
		{"dbfilename", "", "", ""},
		{"dbfilename", "a/b", "", "dbfilename can't be a path, just a filename"},
		{"appendfilename", "my.aof", "my.aof", ""},
		{"appendfilename", "", "", "appendfilename can't be empty"},
		{"appendfilename", "/b", "", "appendfilename can't be a path, just a filename"},
		{"appenddirname", "aof", "aof", ""},
		{"appenddirname", "", "", "appenddirname can't be empty"},
		{"appenddirname", "a/", "", "appenddirname can't be a path, just a dirname"},
	} {
		c := NewConfig()
		before := c.Get()
		err := c.Set(tc.name, tc.value, false)
		if tc.err != "" {
			require.EqualError(t, err, tc.err, "%s %s", tc.name, tc.value)
			require.Same(t, before, c.Get(), "a refused value must change nothing")
			continue
		}
		require.NoError(t, err, "%s %s", tc.name, tc.value)
		require.Equal(t, tc.shown, shown(t, c, strings.ToLower(tc.name)))
	}
}

func TestAliasesAreTheSameDirective(t *testing.T) {
	c := NewConfig()
	require.NoError(t, c.Set("zset-max-ziplist-entries", "5", true))
	require.Equal(t, "5", shown(t, c, "zset-max-listpack-entries"))
	require.Equal(t, 5, c.Get().Types.ZSet.Entries)
}

func TestARunningServerRefusesWhatMattersAtStartOnly(t *testing.T) {
	for _, name := range []string{"databases", "io-threads", "unixsocket", "tcp-backlog", "logfile",
		"enable-debug-command"} {
		c := NewConfig()
		require.EqualError(t, c.Set(name, shown(t, c, name), true), "can't set immutable config", name)
		require.NoError(t, c.Set(name, shown(t, c, name), false), name)
	}
	for name, other := range map[string]string{"shards": "4", "io-uring": "no"} {
		c := NewConfig()
		require.NoError(t, c.Set(name, shown(t, c, name), true), name)
		require.EqualError(t, c.Set(name, other, true), "can't set immutable config", name)
	}
}

func TestProtectedDirectivesNeedAnAccess(t *testing.T) {
	change := []Assignment{{directiveNamed("dbfilename"), "dbfilename", "x.rdb"}}
	c := NewConfig()
	culprit, err := c.SetAll(change, false)
	require.Equal(t, "dbfilename", culprit)
	require.EqualError(t, err, "can't set protected config")
	require.Equal(t, "dump.rdb", c.Get().Files.DBFilename)
	_, err = c.SetAll(change, true)
	require.NoError(t, err)
	require.Equal(t, "x.rdb", c.Get().Files.DBFilename)

	// Programs that set all directives to what CONFIG GET shows do not know ours.
	_, err = c.SetAll([]Assignment{{directiveNamed("archive"), "archive", ""}}, false)
	require.NoError(t, err)
	_, err = c.SetAll([]Assignment{{directiveNamed("archive"), "archive", "/archive"}}, false)
	require.EqualError(t, err, "can't set protected config")
}

func TestSeveralChangesAtRunTimeHappenAllOrNone(t *testing.T) {
	c := NewConfig()
	assign := func(pairs ...string) []Assignment {
		var out []Assignment
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, Assignment{directiveNamed(pairs[i]), pairs[i], pairs[i+1]})
		}
		return out
	}
	before := c.Get()
	culprit, err := c.SetAll(assign("timeout", "5", "maxclients", "x"), false)
	require.Equal(t, "maxclients", culprit)
	require.Equal(t, errNotNumber, err)
	require.Same(t, before, c.Get())

	culprit, err = c.SetAll(assign("timeout", "5", "timeout", "6"), false)
	require.Equal(t, "timeout", culprit)
	require.Equal(t, errDuplicate, err)
	require.Same(t, before, c.Get())

	_, err = c.SetAll(assign("timeout", "5", "maxclients", "6"), false)
	require.NoError(t, err)
	require.Equal(t, 5, c.Get().Network.Timeout)
	require.Equal(t, 6, c.Get().Network.MaxClients)
	require.Zero(t, before.Network.Timeout, "settings are never changed")
}

func TestAChangeThatCannotBeAppliedIsTakenBack(t *testing.T) {
	c := NewConfig()
	var done []string
	apply := func(name string) func(old, set *Settings) (func() error, error) {
		return func(old, set *Settings) (func() error, error) {
			done = append(done, fmt.Sprint(name, " ", set.Network.Timeout))
			return func() error { done = append(done, fmt.Sprint(name, " ", old.Network.Timeout)); return nil }, nil
		}
	}
	c.Apply(apply("first"), "timeout", "port")
	c.Apply(apply("second"), "timeout")
	c.Apply(apply("other"), "port")
	refused := errors.New("no")
	c.Apply(func(_, set *Settings) (func() error, error) {
		if set.Network.Timeout == 5 {
			return nil, refused
		}
		return nil, nil
	}, "maxclients", "timeout")
	c.Follow(func(set *Settings) {
		done = append(done, fmt.Sprint("follower ", set.Network.Timeout, c.Get().Network.Timeout))
	}, "timeout")
	c.Follow(func(*Settings) { done = append(done, "no") }, "port")
	require.NoError(t, c.Set("timeout", "3", true))
	require.Equal(t, []string{"first 3", "second 3", "follower 3 3"}, done)
	done = nil
	pairs := []Assignment{assign(t, "maxmemory", "5"), assign(t, "timeout", "5")}
	culprit, err := c.SetAll(pairs, true)
	require.ErrorIs(t, err, refused)
	require.Equal(t, "timeout", culprit)
	require.Equal(t, 3, c.Get().Network.Timeout)
	require.Equal(t, []string{"first 5", "second 5", "second 3", "first 3"}, done)
	require.Panics(t, func() { c.Follow(nil, "no-directive") })
}

func assign(t *testing.T, name, value string) Assignment {
	a, ok := Assign(name, value)
	require.True(t, ok)
	return a
}

func TestReadingSettingsDoesNotAllocate(t *testing.T) {
	c := NewConfig()
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = c.Get().Network.MaxClients }))
}

func TestLoadFileReadsRedisConf(t *testing.T) {
	c := NewConfig()
	require.NoError(t, c.LoadFile(writeFile(t, "redis.conf", `# a comment

   port 7000
bind 127.0.0.1 10.0.0.1`+"\r"+`
REQUIREPASS "a \x41\"b"
client-output-buffer-limit normal 1 2 3
client-output-buffer-limit pubsub 4 5 6
notify-keyspace-events Ex
save ""
loglevel nothing`)))
	require.Equal(t, 7000, c.Get().Network.Port)
	require.Equal(t, []string{"127.0.0.1", "10.0.0.1"}, c.Get().Network.Bind)
	require.Equal(t, `a A"b`, c.Get().ACL.RequirePass)
	require.Equal(t, OutputLimit{1, 2, 3}, c.Get().Clients.OutputLimits.Normal)
	require.Equal(t, OutputLimit{4, 5, 6}, c.Get().Clients.OutputLimits.PubSub)
	require.Equal(t, engine.EventKeyevent|engine.EventExpired, c.Get().Clients.NotifyKeyspaceEvents)
	require.Equal(t, LevelNothing, c.Get().Log.Level)
}

func TestLoadFileTellsWhereAndWhy(t *testing.T) {
	for _, tc := range []struct {
		content string
		line    int
		reason  string
	}{
		{"port 1\nfoo bar\n", 2, "Bad directive or wrong number of arguments"},
		{"maxmemroy 1gb", 1, "Bad directive or wrong number of arguments; did you mean maxmemory?"},
		{"slaveoff h 1", 1, "Bad directive or wrong number of arguments; did you mean slaveof?"},
		{"inculde x", 1, "Bad directive or wrong number of arguments; did you mean include?"},
		{"usre u on", 1, "Bad directive or wrong number of arguments; did you mean user?"},
		{"rename-comand a b", 1, "Bad directive or wrong number of arguments; did you mean rename-command?"},
		{"timeout -1", 1, "argument must be between 0 and 2147483647 inclusive"},
		{"\n\ntimeout \"1", 3, "Unbalanced quotes in configuration line"},
		{"timeout 1 2", 1, "wrong number of arguments"},
		{"timeout", 1, "wrong number of arguments"},
		{"save 1", 1, "Invalid save parameters"},
		{"dbfilename ../x", 1, "dbfilename can't be a path, just a filename"},
		{"include", 1, "wrong number of arguments"},
	} {
		c := NewConfig()
		before := c.Get()
		path := writeFile(t, "redis.conf", tc.content)
		var e *ConfigError
		require.ErrorAs(t, c.LoadFile(path), &e)
		require.Equal(t, ConfigError{File: path, Line: tc.line, Text: strings.Split(tc.content, "\n")[tc.line-1],
			Err: e.Err}, *e)
		require.EqualError(t, e.Err, tc.reason)
		require.Same(t, before, c.Get())
	}
}

func TestIncludeReadsFilesInTheirPlace(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	write("a.inc", "port 1\ntimeout 1")
	write("b.inc", "port 2")
	main := write("main.conf", "timeout 9\ninclude "+dir+"/*.inc\ninclude "+dir+"/none*\nmaxclients 3")
	c := NewConfig()
	require.NoError(t, c.LoadFile(main))
	require.Equal(t, 2, c.Get().Network.Port)
	require.Equal(t, 1, c.Get().Network.Timeout)
	require.Equal(t, 3, c.Get().Network.MaxClients)

	require.ErrorIs(t, c.LoadFile(write("missing.conf", "include "+dir+"/none")), os.ErrNotExist)
	var e *ConfigError
	bad := write("bad.inc2", "port 1\nport x")
	require.ErrorAs(t, c.LoadFile(write("bad.conf", "include "+bad)), &e)
	require.Equal(t, bad, e.File)
	require.Equal(t, 2, e.Line)
	require.ErrorContains(t, c.LoadFile(write("self.conf", "include "+dir+"/self.conf")), "too many nested includes")
}

func TestAStockConfigurationFileWithoutPersistenceLoads(t *testing.T) {
	c := NewConfig()
	require.NoError(t, c.LoadFile("testdata/redis-7.0.conf"))
	require.Empty(t, c.WithoutEffect(), "what has its default is not worth a word")
	require.NoError(t, c.Set("rdbcompression", "no", false))
	require.NoError(t, c.Set("hz", "100", true))
	require.NoError(t, c.Set("timeout", "100", true))
	require.Equal(t, []string{"hz", "rdbcompression"}, c.WithoutEffect())
	require.NoError(t, c.Set("hz", "10", true))
	require.Equal(t, []string{"rdbcompression"}, c.WithoutEffect())
}

func TestLoadArgsTakesAFileThenOptions(t *testing.T) {
	file := writeFile(t, "redis.conf", "port 1\ntimeout 7")
	for _, tc := range []struct {
		args  []string
		stdin string
		port  int
		bind  string
	}{
		{args: nil, port: 6379, bind: "127.0.0.1 -::1"},
		{args: []string{file}, port: 1, bind: "127.0.0.1 -::1"},
		{args: []string{file, "--port", "2", "--bind", "a", "-b"}, port: 2, bind: "a -b"},
		{args: []string{"--port", "2", "--save", "", "--bind", "a b"}, port: 2, bind: "a b"},
		{args: []string{"--save", "--port", "2"}, port: 2, bind: "127.0.0.1 -::1"},
		{args: []string{"--port 2", "--save"}, port: 2, bind: "127.0.0.1 -::1"},
		{args: []string{"--port 2", "--bind a", "b"}, port: 2, bind: "a b"},
		{args: []string{"--requirepass", "--secret", "--port", "2"}, port: 2, bind: "127.0.0.1 -::1"},
		{args: []string{`--requirepass "a b"`, "--bind ", "x"}, port: 6379, bind: "x"},
		{args: []string{"--client-output-buffer-limit", "slave 256mb 64mb 60", "--oom-score-adj-values", "1 2 3"},
			port: 6379, bind: "127.0.0.1 -::1"},
		{args: []string{"--save 1 2", "--port", "2"}, port: 2, bind: "127.0.0.1 -::1"},
		{args: []string{"--include", file}, port: 1, bind: "127.0.0.1 -::1"},
		{args: []string{"-"}, stdin: "port 3\nbind x", port: 3, bind: "x"},
		{args: []string{"-", "--port", "4"}, stdin: "port 3\nbind x", port: 4, bind: "x"},
		{args: []string{file, "--bind", "y", "-"}, stdin: "port 3\nbind x", port: 3, bind: "y"},
	} {
		c := NewConfig()
		require.NoError(t, c.LoadArgsFrom(tc.args, strings.NewReader(tc.stdin)), tc.args)
		require.Equal(t, tc.port, c.Get().Network.Port, tc.args)
		require.Equal(t, tc.bind, shown(t, c, "bind"), tc.args)
	}
	for _, tc := range []struct {
		args []string
		err  string
	}{
		{[]string{"--foo", "bar"}, "command line: '--foo bar': Bad directive or wrong number of arguments"},
		{[]string{"--maxmemroy", "1gb"}, "command line: '--maxmemroy 1gb': Bad directive or wrong number of arguments; did you mean maxmemory?"},
		{[]string{"--appendfsnyc=always"}, "command line: '--appendfsnyc=always': Bad directive or wrong number of arguments"},
		{[]string{"--port", "--bind"}, "command line: '--port --bind': argument couldn't be parsed into an integer"},
		{[]string{"--"}, "command line: '--': Bad directive or wrong number of arguments"},
		{[]string{`--port "1`}, "command line: '--port \"1': Unbalanced quotes in configuration line"},
		{[]string{"--timeout", " 5"}, "command line: '--timeout  5': argument couldn't be parsed into an integer"},
		{[]string{"--loadmodule", "x.so"}, "command line: '--loadmodule x.so': modules cannot be loaded; take the line out, and see docs/compatibility.md for what is built in"},
		{[]string{"--loadmodule"}, "command line: '--loadmodule': wrong number of arguments"},
		{[]string{"--port"}, "command line: '--port': wrong number of arguments"},
		{[]string{"--port", "1", "2"}, "command line: '--port 1 2': wrong number of arguments"},
		{[]string{"--timeout", "-1"}, "command line: '--timeout -1': argument must be between 0 and 2147483647 inclusive"},
		{[]string{"-"}, "standard input, line 1: 'port x': argument couldn't be parsed into an integer"},
	} {
		require.EqualError(t, NewConfig().LoadArgsFrom(tc.args, strings.NewReader("port x")), tc.err)
	}
	require.ErrorIs(t, NewConfig().LoadArgs([]string{"/nonexistent/redis.conf"}), os.ErrNotExist)
}

func TestDirectivesOfOthersAreShownOnceTheyAreSet(t *testing.T) {
	c := NewConfig()
	names := func(pattern string) (list []string) {
		c.Match([][]byte{[]byte(pattern)}, func(name, _ string) { list = append(list, name) })
		return list
	}
	require.Empty(t, names("search-*"))
	require.Equal(t, []string{"search-cursor-read-size"}, names("search-cursor-read-size"))
	require.Empty(t, names("primary*"))
	require.NoError(t, c.Set("search-cursor-read-size", "7", true))
	require.Equal(t, []string{"search-cursor-read-size"}, names("search-*"))
	require.Equal(t, []string{"hz"}, names("h?"))
	require.Empty(t, names("watchdog*"))
}

func TestRewriteKeepsTheFileAndPutsChangesIn(t *testing.T) {
	other, saves := writeFile(t, "other.conf", "timeout 5\n"), writeFile(t, "saves.conf", "save 1 2\n")
	for _, tc := range []struct {
		name, before string
		set          [][2]string
		args         []string
		after        string
	}{
		{"nothing changed", "# hello\nport 7000\n\n", nil, nil, "# hello\nport 7000\n\n"},
		{"in place", "# hello\ntimeout 1 \n# bye", [][2]string{{"timeout", "2"}}, nil, "# hello\ntimeout 2\n# bye\n"},
		{"last of several", "timeout 1\n# x\nTIMEOUT 2\n# y\n", [][2]string{{"timeout", "3"}}, nil, "# x\ntimeout 3\n# y\n"},
		{"added", "port 1\n", [][2]string{{"timeout", "3"}, {"requirepass", "a \"b"}}, nil,
			"port 1\n# Generated by CONFIG REWRITE\ntimeout 3\nrequirepass \"a \\\"b\"\n"},
		{"added to an empty file", "", [][2]string{{"requirepass", ""}}, nil,
			"# Generated by CONFIG REWRITE\nrequirepass \"\"\n"},
		{"alias", "hash-max-ziplist-entries 1\n", [][2]string{{"hash-max-listpack-entries", "2"}}, nil,
			"hash-max-listpack-entries 2\n"},
		{"behind includes", "timeout 1\ninclude " + other + "\n", [][2]string{{"timeout", "3"}}, nil,
			"include " + other + "\n# Generated by CONFIG REWRITE\ntimeout 3\n"},
		{"not added to what is included", "save 3 4\ninclude " + saves + "\n", [][2]string{{"save", "5 6"}}, nil,
			"include " + saves + "\n# Generated by CONFIG REWRITE\nsave \"\"\nsave 5 6\n"},
		{"what Redis 7.0 does not know, at its default", "shards 4\nport 1\n",
			[][2]string{{"set-max-listpack-entries", "128"}, {"search-cursor-read-size", "1000"}}, []string{"--shards", "0"}, "port 1\n"},
		{"what Redis 7.0 does not know", "port 1\n",
			[][2]string{{"set-max-listpack-entries", "1"}, {"hash-max-listpack-entries", "512"}}, nil,
			"port 1\n# Generated by CONFIG REWRITE\nhash-max-listpack-entries 512\nset-max-listpack-entries 1\n"},
		{"a master that was a replica", "replicaof h 1\nport 1\n", nil, []string{"--replicaof", "no", "one"}, "port 1\n"},
		{"a master, behind an include", "include " + other + "\nreplicaof h 1\n", nil, []string{"--replicaof", "no one"},
			"include " + other + "\nreplicaof no one\n"},
		{"without effect", "hz 20\n", [][2]string{{"hz", "30"}, {"slave-lazy-flush", "yes"}}, nil,
			"hz 30\n# Generated by CONFIG REWRITE\nreplica-lazy-flush yes\n"},
		{"command line", "port 1\n", nil, []string{"--bind", "127.0.0.1", "::1"},
			"port 1\n# Generated by CONFIG REWRITE\nbind 127.0.0.1 ::1\n"},
		{"several words", "client-output-buffer-limit normal 1 2 3\nclient-output-buffer-limit pubsub 1 2 3\n",
			[][2]string{{"client-output-buffer-limit", "normal 4 4 4"}}, nil,
			"client-output-buffer-limit normal 4 4 4 slave 268435456 67108864 60 pubsub 1 2 3\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := writeFile(t, "redis.conf", tc.before)
			c := NewConfig()
			require.NoError(t, c.LoadArgs(append([]string{file}, tc.args...)))
			for _, p := range tc.set {
				require.NoError(t, c.Set(p[0], p[1], true))
			}
			require.NoError(t, c.Rewrite())
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, tc.after, string(after))

			again := NewConfig()
			require.NoError(t, again.LoadFile(file))
			require.Equal(t, *c.Get(), *again.Get())
			require.NoError(t, c.Rewrite())
			twice, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, tc.after, string(twice), "a second time changes nothing")
		})
	}
	require.Equal(t, ErrNoConfigFile, NewConfig().Rewrite())
}

// For all words that a directive accepts, the rewritten line means the same.
func TestEveryAcceptedLineIsRewrittenToTheSame(t *testing.T) {
	words := []string{"", "a", "a b", " ", "\x00", "\xff\"'\\\n#", "0", "1", "-1", "007", "64", "1kb", "10%", "1.50",
		"nan", "inf", "1e2", "yes", "NO", "normal", "Replica", "always", "debug", "KEA",
		"127.0.0.1", "2147483647", "9223372036854775807"}
	for _, d := range directives() {
		lines := [][]string{{}}
		for _, a := range words {
			lines = append(lines, []string{a}, []string{a, a}, []string{a, "1"}, []string{a, "1", "2", "3"},
				[]string{a, "1", a, "2", "3"}, []string{a, "6379", "x"})
		}
		for _, line := range lines {
			c := NewConfig()
			set := *c.Get()
			if d.set(&set, line) != nil {
				continue
			}
			again := *c.Get()
			require.NoError(t, c.read(strings.NewReader(d.line(&set)), "line", &again, 0, c.noteChange), "%s %q", d.name, line)
			require.Equal(t, set, again, "%s %q", d.name, line)
		}
	}
}

// A configuration that can be read can be written after any change, and reading it again gives the same result. Both
// files of an input may include the second one.
func FuzzConfigFile(f *testing.F) {
	redis, err := os.ReadFile("testdata/redis-7.0.conf")
	require.NoError(f, err)
	f.Add(string(redis), "", "maxmemory 100mb")
	f.Add("port 1\nbind a b\n# x\nsave \"\"", "", "timeout 5")
	f.Add("client-output-buffer-limit normal 1kb 2 3\nrequirepass \"\\x00\\\"'\"", "", "requirepass a b")
	f.Add("notify-keyspace-events KEA\nshards 8\nunixsocketperm 777\nmaxmemory 0gb", "", "notify-keyspace-events ")
	f.Add("save 1 2\ninclude other.conf\nsave 3 4", "SAVE 5 6 7 8\ntimeout 3", "save 9 10")
	f.Add("user alice on >secret ~a* +@all (+get ~b)\nrename-command config \"\"\ninclude other.conf",
		"user bob on nopass %R~x resetchannels &c -@all +client|id", "maxclients 7")
	f.Add("include other.conf", "include other.conf", "")
	f.Add("user default on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\nlatency-tracking-info-percentiles 1.5 99", "", "user x")
	dir := f.TempDir()
	file, other := filepath.Join(dir, "redis.conf"), filepath.Join(dir, "other.conf")
	f.Fuzz(func(t *testing.T, content, second, change string) {
		for i, text := range []string{content, second} {
			for _, line := range splitLines([]byte(text)) {
				if words, err := lineWords(line); err == nil && len(words) > 1 && strings.EqualFold(words[0], "include") &&
					words[1] != "other.conf" {
					t.Skip("no files from outside")
				}
			}
			text = strings.ReplaceAll(text, "other.conf", other)
			require.NoError(t, os.WriteFile([]string{file, other}[i], []byte(text), 0o600))
		}
		c := NewConfig()
		if c.LoadFile(file) != nil {
			return
		}
		name, value, _ := strings.Cut(change, " ")
		_ = c.Set(name, value, true) // the directive may not exist
		rewrite := func(c *Config) { // does not wait for the disk
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			after, err := c.rewritten(before, false)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, after, 0o600))
		}
		rewrite(c)
		again := NewConfig()
		require.NoError(t, again.LoadFile(file))
		require.Equal(t, *c.Get(), *again.Get())
	})
}
