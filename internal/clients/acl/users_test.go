package acl_test

import (
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
	_ "github.com/atomredis/atomredis/internal/commands/connection"
	_ "github.com/atomredis/atomredis/internal/commands/strings"
	"github.com/atomredis/atomredis/internal/config"
)

// clients records the accounts whose clients are to be disconnected; a star marks listeners alone.
type clients struct{ expelled []string }

func (c *clients) Expel(_ command.Client, accounts []*acl.Account) {
	for _, a := range accounts {
		c.expelled = append(c.expelled, a.User().Name())
	}
}

func (c *clients) ExpelListeners(_ command.Client, a *acl.Account) {
	c.expelled = append(c.expelled, a.User().Name()+"*")
}

// newUsers returns the users of a configuration.
func newUsers(conf *config.Config, c *clients) (*acl.Users, error) {
	table := command.NewTable()
	if err := table.Rename(conf.Get().Commands.Renamed); err != nil {
		return nil, err
	}
	users, err := acl.NewUsers(table, nil, conf, slog.New(slog.DiscardHandler), c)
	if err == nil {
		conf.OnRewrite(users.Lines)
	}
	return users, err
}

// configured returns the users of lines of a configuration file.
func configured(t *testing.T, lines ...string) (*acl.Users, *config.Config, error) {
	conf := config.NewConfig()
	require.NoError(t, conf.LoadFile(writeFile(t, "redis.conf", strings.Join(lines, "\n")+"\n")))
	users, err := newUsers(conf, new(clients))
	return users, conf, err
}

// writeFile makes a file that the end of the test removes, and returns its path.
func writeFile(t *testing.T, name, content string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// describe returns the users as ACL LIST shows them.
func describe(users *acl.Users) (lines []string) {
	for _, u := range users.All() {
		lines = append(lines, u.Name()+": "+users.Rules().Describe(u))
	}
	return lines
}

func TestClientsBecomeUsersThatAdmitThem(t *testing.T) {
	users, conf, err := configured(t, "user a on >secret", "user b off nopass")
	require.NoError(t, err)
	var client atomic.Pointer[acl.Account]
	require.False(t, users.Authenticate(&client, "a", sha256.Sum256([]byte("wrong"))))
	require.False(t, users.Authenticate(&client, "b", sha256.Sum256(nil)), "the user is disabled")
	require.False(t, users.Become(&client, "b"))
	require.False(t, users.Become(&client, "c"), "there is none")
	require.Nil(t, client.Load())
	require.True(t, users.Authenticate(&client, "a", sha256.Sum256([]byte("secret"))))
	require.Same(t, users.Get([]byte("a")), client.Load())
	client.Store(nil)
	require.True(t, users.Become(&client, "a"))
	require.Same(t, users.Get([]byte("a")), client.Load())

	require.True(t, users.Open())
	require.NoError(t, conf.Set("requirepass", "x", true))
	require.False(t, users.Open())
}

func TestChangesDisconnectThoseWhoMayNotGoOn(t *testing.T) {
	file := writeFile(t, "users.acl", "user a on nopass +@all ~*\nuser b on nopass\n")
	conf := config.NewConfig()
	require.NoError(t, conf.Set("aclfile", file, false))
	c := new(clients)
	users, err := newUsers(conf, c)
	require.NoError(t, err)
	expect := func(why string, names ...string) {
		t.Helper()
		require.ElementsMatch(t, names, c.expelled, why)
		c.expelled = nil
	}
	expect("whatever is loaded may have other channels", "a*", "b*", "default*")
	require.Error(t, users.Set(nil, "a", []string{"nope"}))
	expect("nothing has changed")
	require.NoError(t, users.Set(nil, "new", nil))
	expect("nobody can be a new user")
	require.NoError(t, users.Set(nil, "a", []string{"-get"}))
	expect("it may have fewer channels", "a*")

	a := users.Get([]byte("a"))
	require.True(t, users.Delete(nil, "a"))
	require.False(t, users.Delete(nil, "a"))
	expect("the user is gone", "a")
	require.Equal(t, []string{"off", "sanitize-payload"}, a.User().Flags(), "and may do nothing")

	users.Reread()
	expect("the file is as it was")
	require.NoError(t, os.WriteFile(file, []byte("user b off\n"), 0o600))
	users.Reread()
	expect("it is another one", "b*", "default*", "new")
}

func TestUsersOfTheConfigurationFile(t *testing.T) {
	users, _, err := configured(t, "requirepass secret", "user a on nopass ~a* (+get ~b) +set", `user "b\"c" off >x`)
	require.NoError(t, err)
	require.Equal(t, []string{
		"a: on nopass sanitize-payload ~a* resetchannels -@all +set (~b resetchannels -@all +get)",
		`b"c: off sanitize-payload #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 resetchannels -@all`,
		"default: on sanitize-payload #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~* &* +@all",
	}, describe(users))

	users, _, err = configured(t, "requirepass secret", "acl-pubsub-default allchannels",
		"user default on nopass +ping", "USER x (+get)")
	require.NoError(t, err)
	require.Equal(t, []string{"default: on nopass sanitize-payload &* -@all +ping",
		"x: off sanitize-payload &* -@all (&* -@all +get)"}, describe(users))
}

func TestRewriteReplacesTheUsersOfTheConfigurationFile(t *testing.T) {
	users, conf, err := configured(t, "# users", "user a on nopass", "# between", "user b off", "# end")
	require.NoError(t, err)
	require.NoError(t, users.Set(nil, "a", []string{"~x\"y", "+get"}))
	require.True(t, users.Delete(nil, "b"))
	require.NoError(t, users.Set(nil, "c c", []string{`("~z\"w" +set)`})) // SETUSER would not accept the name
	require.NoError(t, conf.Rewrite())
	content, err := os.ReadFile(conf.File())
	require.NoError(t, err)
	require.Contains(t, string(content), "# users\n"+
		`user a on nopass sanitize-payload "~x\"y" resetchannels -@all +get`+"\n"+
		`user "c c" off sanitize-payload resetchannels -@all "(\"~z\\\"w\"" resetchannels -@all +set)`+"\n# between\n# end\n")

	// The default user has a line once requirepass does not describe it completely.
	users, conf, err = configured(t, "requirepass secret")
	require.NoError(t, err)
	for _, step := range []struct{ rule, want string }{
		{"on", ""},
		{"-get", `user default on sanitize-payload "#2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" ~* &* +@all -get` + "\n"},
		{"+get", `user default on sanitize-payload "#2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" ~* &* +@all +get` + "\n"},
		{"+@all", ""},
	} {
		require.NoError(t, users.Set(nil, acl.DefaultName, []string{step.rule}))
		require.NoError(t, conf.Rewrite())
		content, err := os.ReadFile(conf.File())
		require.NoError(t, err)
		require.Equal(t, step.want != "", strings.Contains(string(content), "user "))
		require.Contains(t, string(content), step.want)
	}
}

// Users of an included file stay in that file; a file that defines them twice could not be read.
func TestRewriteLeavesUsersOfIncludedFilesThere(t *testing.T) {
	other := writeFile(t, "other.conf", "user bob on nopass +get ~b*\n")
	file := writeFile(t, "redis.conf", "user alice on nopass +@all\ninclude "+other+"\n")
	c := config.NewConfig()
	require.NoError(t, c.LoadFile(file))
	users, err := newUsers(c, new(clients))
	require.NoError(t, err)
	require.NoError(t, c.Rewrite())
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(written), "bob")
	require.NoError(t, config.NewConfig().LoadFile(file))

	require.NoError(t, users.Set(nil, "carol", []string{"on"}))
	require.NoError(t, c.Rewrite())
	require.NoError(t, users.Set(nil, "bob", []string{"+set"}))
	require.ErrorContains(t, c.Rewrite(), "user 'bob' is not as the file says")
	require.True(t, users.Delete(nil, "bob"))
	require.ErrorContains(t, c.Rewrite(), "user 'bob' is not as the file says")
	again := config.NewConfig()
	require.NoError(t, again.LoadFile(file))
	require.Len(t, again.Get().ACL.Users, 3)
}

// The users of a configuration are written so that reading it again gives the same users.
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
		if set := c.Get(); len(set.ACL.Users)+len(set.Commands.Renamed) == 0 || set.ACL.File != "" {
			return
		}
		users, err := newUsers(c, new(clients))
		if err != nil {
			return
		}
		require.NoError(t, c.Rewrite())
		again := config.NewConfig()
		require.NoError(t, again.LoadFile(file))
		same, err := newUsers(again, new(clients))
		require.NoError(t, err)
		require.Equal(t, describe(users), describe(same))
		require.Equal(t, c.Get().Commands.Renamed, again.Get().Commands.Renamed)
	})
}

func TestRolesAreInFilesAndChangeTheirUsers(t *testing.T) {
	users, conf, err := configured(t, "user u on nopass role=r,s", "role r +get ~a", "role s +get &c")
	require.NoError(t, err)
	u := users.Get([]byte("u"))
	require.True(t, u.User().AllowsChannel([]byte("c"), false))
	require.NoError(t, users.SetRole(nil, "s", []string{"resetchannels", "&d"}))
	require.False(t, u.User().AllowsChannel([]byte("c"), false))
	require.NoError(t, users.SetRole(nil, "t", []string{"+set"}))
	deleted, held := users.DeleteRoles([]string{"t", "s"})
	require.Zero(t, deleted)
	require.Equal(t, "s", held)
	require.NoError(t, conf.Rewrite())

	again := config.NewConfig()
	require.NoError(t, again.LoadFile(conf.File()))
	restarted, err := newUsers(again, new(clients))
	require.NoError(t, err)
	require.Equal(t, describe(users), describe(restarted))
	require.Len(t, restarted.AllRoles(), 3)
	for i, role := range users.AllRoles() {
		require.Equal(t, users.Rules().Describe(role), restarted.Rules().Describe(restarted.AllRoles()[i]))
	}

	for line, want := range map[string]string{
		"role r +get\nrole r +get": "Duplicate role", "role a,b +get": "can't contain commas", "role r >p": "about users",
		"role r (+get": "unmatched parenthesis", "user u role=r": "does not exist",
	} {
		conf := config.NewConfig()
		err := conf.LoadFile(writeFile(t, "redis.conf", line+"\n"))
		if err == nil {
			_, err = newUsers(conf, new(clients))
		}
		require.ErrorContains(t, err, want)
	}
}

func TestRolesOfTheACLFile(t *testing.T) {
	file := writeFile(t, "users.acl", "user u on nopass role=r\nrole r +get &c\nuser v on nopass\n")
	conf := config.NewConfig()
	require.NoError(t, conf.LoadFile(writeFile(t, "redis.conf", "aclfile "+file+"\n")))
	c := new(clients)
	users, err := newUsers(conf, c)
	require.NoError(t, err)
	require.NoError(t, users.SetRole(nil, "s", []string{"+get"}))
	require.NoError(t, users.Set(nil, "v", []string{"role=r,s"}))
	want := describe(users)
	require.NoError(t, users.Save())
	require.Empty(t, users.Load(nil))
	require.Equal(t, want, describe(users))
	require.Len(t, users.AllRoles(), 2)
	c.expelled = nil
	require.NoError(t, users.SetRole(nil, "r", []string{"resetchannels"}))
	require.Equal(t, []string{"u*", "v*"}, c.expelled)
	_, holders := users.Role([]byte("r"))
	require.Equal(t, []string{"u", "v"}, holders)

	for content, want := range map[string]string{
		"role": "requires a role name", "role d +get\nrole d +set": "Duplicate role 'd' found on line 2",
		"role a,b": "invalid role name: Role names can't contain commas", "role r >p": "about users",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		require.Contains(t, users.Load(nil), want)
	}
	require.Len(t, users.AllRoles(), 2, "unchanged")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Empty(t, users.Load(nil))
	require.Empty(t, users.AllRoles())
}
