package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/transport"
)

// usersOf makes a server for the sake of its users, nil if they are wrong.
func usersOf(t *testing.T, c *config.Config) *Server {
	c.InMemory()
	c.ListenNowhere()
	srv, err := New(c, slog.New(slog.DiscardHandler), Options{Goroutines: true})
	if err != nil {
		return nil
	}
	return srv
}

// describeUsers returns the rules of all users.
func (srv *Server) describeUsers() map[string]string {
	users := map[string]string{}
	for _, user := range srv.users.All() {
		users[user.Name()] = srv.users.Rules().Describe(user)
	}
	return users
}

// Users of an included file stay in that file; a file that would define them twice could not be read again.
func TestRewriteLeavesUsersOfIncludedFilesThere(t *testing.T) {
	other := writeFile(t, "other.conf", "user bob on nopass +get ~b*\n")
	file := writeFile(t, "redis.conf", "user alice on nopass +@all\ninclude "+other+"\n")
	c := config.NewConfig()
	require.NoError(t, c.LoadFile(file))
	srv := usersOf(t, c)
	require.NotNil(t, srv)
	defer srv.Close()
	require.NoError(t, c.Rewrite())
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(written), "bob")
	require.NoError(t, config.NewConfig().LoadFile(file))

	require.NoError(t, srv.users.Set(nil, "carol", []string{"on"}))
	require.NoError(t, c.Rewrite())
	require.NoError(t, srv.users.Set(nil, "bob", []string{"+set"}))
	require.ErrorContains(t, c.Rewrite(), "user 'bob' is not as the file says")
	require.True(t, srv.users.Delete(nil, "bob"))
	require.ErrorContains(t, c.Rewrite(), "user 'bob' is not as the file says")
	again := config.NewConfig()
	require.NoError(t, again.LoadFile(file))
	require.Len(t, again.Get().Users, 3)
}

func TestAccessIsForLocalClientsOrAll(t *testing.T) {
	local, remote := &Session{peer: transport.Peer{Addr: "127.0.0.1:1"}}, &Session{peer: transport.Peer{Addr: "192.0.2.1:1"}}
	for access, want := range map[config.Access][2]bool{config.AccessNo: {false, false}, config.AccessYes: {true, true},
		config.AccessLocal: {true, false}} {
		require.Equal(t, want, [2]bool{local.Has(access), remote.Has(access)}, access)
	}
}

// A server writes the users that a configuration defines so that the next one has the same.
func FuzzUsersOfConfigFile(f *testing.F) {
	f.Add("user alice on >secret ~a* +@all (+get ~b)\nrename-command config \"\"\nuser bob on nopass %R~x resetchannels &c -@all +client|id")
	f.Add("user default on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\nrequirepass x")
	file := filepath.Join(f.TempDir(), "redis.conf")
	f.Fuzz(func(t *testing.T, content string) {
		if strings.Contains(strings.ToLower(content), "include") {
			t.Skip("no files from outside")
		}
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		c := config.NewConfig()
		if c.LoadFile(file) != nil {
			return
		}
		if set := c.Get(); len(set.Users)+len(set.Renamed) == 0 || set.ACLFile != "" || set.Databases > 64 ||
			set.TLS.Port != 0 ||
			set.ReplicaOf.Host != "" {
			return
		}
		srv := usersOf(t, c)
		if srv == nil {
			return
		}
		defer srv.Close()
		require.NoError(t, c.Rewrite())
		again := config.NewConfig()
		require.NoError(t, again.LoadFile(file))
		same := usersOf(t, again)
		require.NotNil(t, same)
		defer same.Close()
		require.Equal(t, srv.describeUsers(), same.describeUsers())
		require.Equal(t, c.Get().Renamed, again.Get().Renamed)
	})
}
