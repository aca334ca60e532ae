package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/transport"
)

func TestRenamedCommandsAreKnownByTheNewNameOnly(t *testing.T) {
	const long = "b840fc02d524045429941cc15f59e41cb7be6c52"
	srv, _, err := configuredServer(t, "rename-command GET fetch", `rename-command config ""`, "RENAME-COMMAND set Put",
		"rename-command del "+long)
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	s := srv.sessions.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {})
	defer s.Close()
	do := func(words ...string) string {
		s.Input(request(words...), srv.ks.Now())
		reply := string(s.Output())
		s.SetOutput(nil)
		return reply
	}
	for _, step := range []struct{ command, want string }{
		{"get a", "-ERR unknown command 'get', with args beginning with: 'a' \r\n"},
		{"config get x", "-ERR unknown command 'config', with args beginning with: 'get' 'x' \r\n"},
		{"put a 1", "+OK\r\n"},
		{"FETCH a", "$1\r\n1\r\n"},
		{"fetch a b", "-ERR wrong number of arguments for 'get' command\r\n"},
		{"COMMAND COUNT", ":" + strings.TrimSpace(strings.TrimPrefix(do("COMMAND", "COUNT"), ":")) + "\r\n"},
		{"COMMAND INFO get config config|get", "*3\r\n*-1\r\n*-1\r\n*-1\r\n"},
		{"COMMAND GETKEYS get a", "-ERR Invalid command specified\r\n"},
		{"COMMAND GETKEYSANDFLAGS put a 1", "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+OW\r\n+update\r\n"},
		{"COMMAND DOCS get", "*0\r\n"},
		{"COMMAND LIST FILTERBY PATTERN get", "*1\r\n$3\r\nget\r\n"},
		{"COMMAND LIST FILTERBY PATTERN config*", "*0\r\n"},
		{"ACL SETUSER u +get +config|get", "+OK\r\n"},
		{"ACL SETUSER u +fetch", "-ERR Error in ACL SETUSER modifier '+fetch': Unknown command or category name in ACL\r\n"},
		{"ACL DRYRUN default get a", "-ERR Command 'get' not found\r\n"},
		{"ACL DRYRUN default fetch a", "+OK\r\n"},
		{"ACL SETUSER w nopass +@all %W~w", "+OK\r\n"},
		{"ACL DRYRUN w put w 1", "+OK\r\n"},
		{strings.ToUpper(long) + " a", ":1\r\n"},
		{long + "x a", "-ERR unknown command '" + long + "x', with args beginning with: 'a' \r\n"},
	} {
		want := strings.ReplaceAll(step.want, "*-1", "$-1")
		require.Equal(t, want, do(strings.Fields(step.command)...), step.command)
	}
	require.Contains(t, do("COMMAND", "INFO", "fetch"), "*1\r\n*10\r\n$3\r\nget\r\n")
	require.Equal(t, "$2\r\nok\r\n", do("EVAL", "redis.call('put', 'k', 'ok') return redis.call('fetch', 'k')", "0"))
	require.Contains(t, do("EVAL", "return redis.call('get', 'k')", "0"), "-ERR Unknown Redis command called from script")
	// Runs of equal commands are looked up once, but not if they have another name.
	s.Input([]byte("fetch k\r\nfetch k\r\nget k\r\nfetch k\r\n"), srv.ks.Now())
	const ok, unknown = "$2\r\nok\r\n", "-ERR unknown command 'get', with args beginning with: 'k' \r\n"
	require.Equal(t, ok+ok+unknown+ok, string(s.Output()))
	s.SetOutput(nil)

	require.NoError(t, srv.sessions.Handle(command.Command{Name: "try", Arity: -2},
		func(c *session.Caller) { c.Writer().Raw(c.Call(c.Args()[1:])) }))
	require.Equal(t, ok, do("TRY", "get", "k"), "a program knows the commands by both names")
	require.Equal(t, ok, do("TRY", "fetch", "k"))
	for _, name := range []string{"get", "fetch", "config"} {
		require.Error(t, srv.sessions.Handle(command.Command{Name: name, Arity: 1}, func(*session.Caller) {}), name)
	}
}

func TestRenamingThatIsNotPossibleIsRefused(t *testing.T) {
	for lines, want := range map[string]error{
		"rename-command nosuch x":                        command.ErrNoCommandToRename,
		"rename-command config|get x":                    command.ErrNoCommandToRename,
		"rename-command get set":                         command.ErrCommandNameTaken,
		"rename-command get x\nrename-command get y":     command.ErrNoCommandToRename,
		"rename-command get x\nrename-command GETEX X":   command.ErrCommandNameTaken,
		"rename-command get":                             config.ErrUnknownDirective,
		"rename-command get x y":                         config.ErrUnknownDirective,
		"rename-command get set\nrename-command set get": command.ErrCommandNameTaken,
	} {
		conf := config.NewConfig()
		require.ErrorIs(t, conf.LoadFile(writeFile(t, "redis.conf", lines)), want, lines)
		require.Empty(t, conf.Get().Commands.Renamed, lines)
	}
	conf := config.NewConfig()
	require.NoError(t, conf.LoadArgs([]string{"--rename-command", "get", "x", "--rename-command", "SET", "GET",
		"--rename-command", "x", "set"}))
	table := command.NewTable()
	require.NoError(t, table.Rename(conf.Get().Commands.Renamed))
	require.Equal(t, "set", table.Find([]byte("get")).Name)
	require.Equal(t, "get", table.Find([]byte("SET")).Name)
	require.Equal(t, "get", command.NewTable().Find([]byte("get")).Name, "other servers keep theirs")
}

func TestJournalKeepsTheOwnNamesOfCommands(t *testing.T) {
	dir := t.TempDir()
	open := func(lines ...string) *Server {
		conf := config.NewConfig()
		require.NoError(t, conf.LoadFile(writeFile(t, "redis.conf",
			strings.Join(append(lines, "dir "+dir, `save ""`, "port 0"), "\n"))))
		srv, err := New(conf, slog.New(slog.DiscardHandler), Options{})
		require.NoError(t, err)
		t.Cleanup(func() { srv.Close() })
		require.NoError(t, srv.Start())
		return srv
	}
	srv := open("rename-command set x", "rename-command get set", "rename-command x get", "rename-command xgroup groups")
	s := srv.sessions.Open(transport.Peer{}, func() {})
	for _, command := range []string{"get k v", "groups create stream g 0 mkstream"} {
		s.Input(request(strings.Fields(command)...), srv.ks.Now())
		require.Equal(t, "+OK\r\n", string(s.Output()))
		s.SetOutput(nil)
	}
	s.Close()
	require.NoError(t, srv.close(false))

	srv = open()
	var g engine.Guard
	g.Lock(srv.ks, engine.AllShards, srv.ks.Now())
	defer g.Unlock()
	require.Equal(t, 2, g.Len(0))
	require.Equal(t, engine.String, g.Peek(0, []byte("k")).Type())
	require.Equal(t, engine.Stream, g.Peek(0, []byte("stream")).Type())
}
