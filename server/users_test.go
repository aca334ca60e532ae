package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/clients/acl"
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
	require.Empty(t, conf.Get().ACL.Users)
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
