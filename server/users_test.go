package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// configuredServer returns a server that has been made, but not started, from lines of a configuration file.
func configuredServer(t *testing.T, lines ...string) (*Server, string, error) {
	path := writeFile(t, "redis.conf", strings.Join(append(lines, "port 0", "save \"\"", "appendonly no"), "\n")+"\n")
	conf := config.NewConfig()
	require.NoError(t, conf.LoadFile(path))
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{})
	if err == nil {
		t.Cleanup(func() { srv.Close() })
	}
	return srv, path, err
}

func TestUsersThatCannotBeKeepTheServerFromStarting(t *testing.T) {
	for line, want := range map[string]string{
		"user a nope":          "user 'a': 'nope': Syntax error",
		"user a +nope":         "user 'a': '+nope': Unknown command or category name in ACL",
		"user a on (+get":      "user 'a': unmatched parenthesis",
		`user "a b" on`:        "user 'a b': spaces are not allowed in names",
		"user a on\naclfile x": "users are defined both in the configuration file and in an ACL file: only one of them may have users",
		"aclfile /nope/x":      "Error loading ACLs, opening file '/nope/x': No such file or directory",
	} {
		_, _, err := configuredServer(t, line)
		require.EqualError(t, err, want, line)
	}
	conf := config.NewConfig()
	require.ErrorIs(t, conf.LoadFile(writeFile(t, "redis.conf", "user a on\nuser b on\nuser a off\n")),
		config.ErrDuplicateUser)
	require.ErrorIs(t, conf.LoadFile(writeFile(t, "redis.conf", "user\n")), config.ErrWordCount)
	require.Empty(t, conf.Get().Users)
}

func TestReadingArbitraryKeysTakesThePermissionForAll(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	get := b.table.Find([]byte("get"))
	args := [][]byte{[]byte("GET"), []byte("k")}
	require.True(t, s.MayReadAll(get, args))
	for rules, want := range map[string]bool{"+@all ~k": false, "+@all %R~*": true, "+@all %W~*": false,
		"+@all -get ~*": false, "+@all ~k (+get %R~*)": true} {
		merged, _ := acl.Merge(strings.Fields("reset " + rules))
		require.NoError(t, b.users.Set(nil, acl.DefaultName, merged))
		require.Equal(t, want, s.MayReadAll(get, args), rules)
	}
	s.account.Store(nil)
	require.True(t, s.MayReadAll(get, args))
	b.finish(t, s)
}

func TestThePartsOfTheProgramMayDoEverything(t *testing.T) {
	srv := newTestServer(t, Options{}, "requirepass", "secret")
	require.NoError(t, srv.users.Set(nil, acl.DefaultName, []string{"off", "-@all", "resetkeys"}))
	d, err := srv.Direct(0)
	require.NoError(t, err)
	defer d.Release()
	for _, line := range []string{"SET k v", "ACL WHOAMI", "CLIENT LIST"} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		require.NoError(t, d.Run(t.Context(), args))
	}
	out, err := d.Flush()
	require.NoError(t, err)
	require.Regexp(t, `(?s)^\+OK\r\n_\r\n=.* user=\(superuser\) `, string(out))
}

func TestProtectedModeAsksWhetherTheDefaultUserHasAPassword(t *testing.T) {
	srv := newTestServer(t, Options{})
	require.NotEmpty(t, srv.refuseClient(false))
	require.NoError(t, srv.users.Set(nil, acl.DefaultName, []string{">secret"}))
	require.Empty(t, srv.refuseClient(false))
}

func TestLimitsOfStrangersEndWithTheirPasswords(t *testing.T) {
	b := newHarness(t)
	require.NoError(t, b.users.Set(nil, acl.DefaultName, []string{">secret"}))
	s := b.session()
	require.True(t, s.in.parser.Unauthenticated)
	require.NoError(t, b.users.Set(nil, acl.DefaultName, []string{"nopass"}))
	require.Equal(t, "-ERR unknown command 'A', with args beginning with: 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' \r\n",
		b.feed(s, request(strings.Split("A"+strings.Repeat("b", 11), "")...)))
	b.finish(t, s)
}

// A user that may do everything costs a command nothing, and one that may not no memory for the usual commands.
func TestDecisionsNeedNoMemory(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	get := b.table.Find([]byte("get"))
	args := [][]byte{[]byte("GET"), []byte("user:1")}
	for rules, most := range map[string]float64{"+@all ~* &*": 0, "+@all ~other* ~user:* %R~x": 1} {
		require.NoError(t, b.users.Set(nil, acl.DefaultName,
			append([]string{"reset", "on", "nopass"}, strings.Fields(rules)...)))
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
			if !s.unrestricted() && s.denied(command.FromClient, get, args) != "" {
				t.Fatal("refused")
			}
		}), most, rules)
	}
}

func BenchmarkDecision(b *testing.B) {
	h := newHarness(b)
	s := h.session()
	get := h.table.Find([]byte("get"))
	args := [][]byte{[]byte("GET"), []byte("user:1")}
	for _, rules := range []string{"+@all ~* &*", "+@all -@dangerous ~* &*", "+@all ~other* ~user:* %R~x"} {
		require.NoError(b, h.users.Set(nil, acl.DefaultName,
			append([]string{"reset", "on", "nopass"}, strings.Fields(rules)...)))
		b.Run(rules, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !s.unrestricted() && s.denied(command.FromClient, get, args) != "" {
					b.Fatal("refused")
				}
			}
		})
	}
	h.finish(b, s)
}
