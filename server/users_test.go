package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/acl"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/resp"
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

func TestUsersAreSavedToAFileAndLoadedFromIt(t *testing.T) {
	file := writeFile(t, "users.acl", "user a on >x ~a* +get (+set ~b)\n")
	s := startTestServer(t, Options{}, "aclfile", file)
	c := s.connect()
	require.Equal(t, "+OK", c.do("ACL SETUSER b on nopass +@all"))
	require.Equal(t, "+OK", c.do("ACL SAVE"))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "user a on sanitize-payload #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 ~a* resetchannels -@all +get (~b resetchannels -@all +set)\n"+
		"user b on nopass sanitize-payload resetchannels +@all\nuser default on nopass sanitize-payload ~* &* +@all\n",
		string(content))

	// A file that is wrong changes nothing.
	b := s.connect()
	require.Equal(t, "+OK", b.do("AUTH b x"))
	before := c.do("ACL LIST")
	require.NoError(t, os.WriteFile(file, []byte("user c on\nnope\nuser d +nope nope\n"), 0o600))
	require.Equal(t, "-ERR "+file+":2 should start with user keyword followed by the username. "+file+
		":3: Error in applying operation '+nope': "+
		"Unknown command or category name in ACL. "+file+":3: Syntax error. "+
		"WARNING: ACL errors detected, no change to the previously active ACL rules was performed", c.do("ACL LOAD"))
	require.Equal(t, before, c.do("ACL LIST"))
	require.Equal(t, "+PONG", b.do("PING"))
}

func TestLoadDisconnectsClientsOfUsersThatAreGone(t *testing.T) {
	file := writeFile(t, "users.acl", "user b on nopass +@all ~* &*\nuser d on nopass +@all\nuser e on nopass +@all &*\n")
	s := startTestServer(t, Options{}, "aclfile", file)
	as := func(user string) *testClient {
		c := s.connect()
		require.Equal(t, "+OK", c.do("AUTH "+user+" x"))
		return c
	}
	c, b, d, e, listens := s.connect(), as("b"), as("d"), as("e"), as("e")
	require.Equal(t, `["subscribe" "news" 1]`, listens.do("SUBSCRIBE news"))
	require.Equal(t, "+OK", c.do("ACL SETUSER default -get"))
	require.NoError(t, os.WriteFile(file, []byte("user b on >y +@all -set ~k\nuser e on nopass +@all &old\n"), 0o600))
	require.Equal(t, "+OK", c.do("ACL LOAD"))
	require.Equal(t, "closed", d.read(), "the user is gone")
	require.Equal(t, "closed", listens.read(), "the user may not use the channel any more")
	require.Equal(t, "+PONG", e.do("PING"))
	require.Empty(t, b.do("GET k"), "the client stays, with the new rules")
	require.Equal(t, "-NOPERM User b has no permissions to run the 'set' command", b.do("SET k v"))
	require.Equal(t, "-NOPERM No permissions to access a key", b.do("GET x"))
	require.Empty(t, c.do("GET k"), "the default user is as new, and its clients stay")

	// Who loads gets the reply first.
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, "+OK", b.do("ACL LOAD"))
	require.Equal(t, "closed", b.read())

	require.NoError(t, os.Remove(file))
	require.Equal(t, "-ERR Error loading ACLs, opening file '"+file+"': No such file or directory", c.do("ACL LOAD"))
	require.Equal(t, "+OK", c.do("ACL SAVE"))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(file, "x"), nil, 0o600)) // so that no file can take the place
	require.Equal(t, "-ERR There was an error trying to save the ACLs. Please check the server logs for more information",
		c.do("ACL SAVE"))
}

func TestCustomCommandsAreRefusedWhenTheyShouldBe(t *testing.T) {
	s := startTestServer(t, Options{})
	add := func(cmd command.Command) {
		require.NoError(t, s.Handle(cmd, func(h *Caller) { h.Writer().Raw(h.Call([][]byte{[]byte("GET"), []byte("k")})) }))
	}
	add(command.Command{Name: "one", Arity: 2, Flags: command.Write, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]")})
	c, u := s.connect(), s.connect()
	require.Equal(t, "+OK", c.do("ACL SETUSER u on nopass +@all -one ~k %R~r"))
	require.Equal(t, "+OK", c.do("ACL SETUSER v on nopass +@read +@write ~k"))
	add(command.Command{Name: "two", Arity: 1, Flags: command.ReadOnly}) // after the users

	require.Equal(t, "+OK", u.do("AUTH u x"))
	require.Equal(t, "-NOPERM User u has no permissions to run the 'one' command", u.do("ONE k"))
	require.Equal(t, "null", u.do("TWO"), "who may do everything may do what is new")
	require.Equal(t, "+OK", c.do("ACL SETUSER u +one"))
	require.Equal(t, "null", u.do("ONE k"))
	for _, key := range []string{"x", "r"} {
		require.Equal(t, "-NOPERM No permissions to access a key", u.do("ONE "+key))
	}
	require.Equal(t, "+OK", u.do("AUTH v x"))
	require.Equal(t, "-NOPERM User v has no permissions to run the 'one' command", u.do("ONE k"), "it is in no category")
	require.NotContains(t, c.do("ACL CAT write"), "one")
	require.Equal(t, "+OK", c.do("ACL SETUSER v +one +two -two"))
	require.Equal(t, "null", u.do("ONE k"))
	require.Contains(t, c.do("ACL LIST"), "+one")
}

func TestKeysThatAreNoArgumentsAreCheckedToo(t *testing.T) {
	s := startTestServer(t, Options{})
	c, u := s.connect(), s.connect()
	require.Equal(t, "+OK", c.do("ACL SETUSER u on nopass +@all ~mine* ~command:mine ~response:mine"))
	require.Equal(t, "+OK", u.do("AUTH u x"))
	const denied = "-NOPERM No permissions to access a key"
	for command, refused := range map[string]bool{
		"PRESSURE.PUT mine v":                true,
		"ATOM.INFO mine":                     false,
		"ATOM.INFO other":                    true,
		"ATOM.CALL other c FROM mine NOWAIT": true,
		"ATOM.NEXT mine":                     true, // whom it answers is not known before
		"ATOM.LOG info mine text":            true,
		"KEYS *":                             false,
		"PRESSURE.LIST":                      false,
		"ATOM.ELEMENTS":                      false,
		"EVAL return#redis.call('pressure.len','q') 0": false, // refused inside
	} {
		args := strings.ReplaceAll(strings.Join(strings.Fields(command), "\x00"), "#", " ")
		v, err := u.Do(testTimeout, strings.Split(args, "\x00")...)
		require.NoError(t, err, command)
		require.Equal(t, refused, v.String() == denied, "%s: %s", command, v)
	}
	require.Equal(t, "+OK", c.do("ACL SETUSER u allkeys"))
	require.NotEqual(t, denied, u.do("ATOM.NEXT mine TIMEOUT 1"))
	require.NotEqual(t, denied, u.do("PRESSURE.LEN mine"))
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
	require.True(t, s.parser.Unauthenticated)
	require.NoError(t, b.users.Set(nil, acl.DefaultName, []string{"nopass"}))
	require.Equal(t, "-ERR unknown command 'A', with args beginning with: 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' 'b' \r\n",
		b.feed(s, request(strings.Split("A"+strings.Repeat("b", 11), "")...)))
	b.finish(t, s)
}

func TestSecretsAreNamed(t *testing.T) {
	table := command.NewTable()
	for line, want := range map[string][]int{
		"AUTH x":                                  {1},
		"AUTH u x":                                {1, 2},
		"HELLO 3 AUTH u x SETNAME n":              {3, 4},
		"ACL SETUSER u on >x":                     {2, 3, 4},
		"ACL GETUSER u":                           nil,
		"CONFIG SET maxclients 1 requirepass x":   {5},
		"CONFIG SET REQUIREPASS x maxclients 100": {3},
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		cmd, _ := table.Lookup(args)
		require.Equal(t, want, cmd.SecretArgs(args), line)
	}
}

func TestAllKeysOfMigrateAreChecked(t *testing.T) {
	migrate := command.NewTable().Find([]byte("migrate"))
	for line, want := range map[string]string{
		"MIGRATE h 1 k 0 9":                               "k",
		"MIGRATE h 1 '' 0 9 KEYS a b":                     "a b",
		"MIGRATE h 1 '' 0 9 COPY AUTH KEYS KEYS a KEYS b": "a KEYS b",
		"MIGRATE h 1 '' 0 9 AUTH2 KEYS KEYS keys a":       "a",
		"MIGRATE h 1 k 0 9 KEYS a":                        "",
		"MIGRATE h 1 k 0 9 KEYS":                          "k",
		"MIGRATE h":                                       "",
	} {
		args, err := resp.SplitArgs([]byte(line), nil)
		require.NoError(t, err)
		var names []string
		for _, i := range migrate.KeyIndices(args) {
			names = append(names, string(args[i]))
		}
		require.Equal(t, want, strings.Join(names, " "), line)
	}
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

// A client is not served with what its user has lost the right to while it waited, whatever its command waits for.
func TestBlockedClientsAreRefusedWhatTheirUserMayNotHave(t *testing.T) {
	cases := map[string]struct {
		command string
		before  []string // what the command needs
		serve   string   // what would serve it
		after   string   // a command whose reply must be that of nothing taken
		left    string
	}{
		"blpop":      {command: "BLPOP l 0", serve: "RPUSH l v", after: "LLEN l", left: "1"},
		"brpop":      {command: "BRPOP l 0", serve: "RPUSH l v", after: "LLEN l", left: "1"},
		"brpoplpush": {command: "BRPOPLPUSH l m 0", serve: "RPUSH l v", after: "LLEN l", left: "1"},
		"blmove":     {command: "BLMOVE l m LEFT LEFT 0", serve: "RPUSH l v", after: "LLEN l", left: "1"},
		"blmovem":    {command: "BLMOVEM l m LEFT RIGHT 0 COUNT 1 OBO", serve: "RPUSH l v", after: "LLEN l", left: "1"},
		"blmpop":     {command: "BLMPOP 0 2 k l LEFT", serve: "RPUSH l v", after: "LLEN l", left: "1"},
		"bzpopmin":   {command: "BZPOPMIN z 0", serve: "ZADD z 1 a", after: "ZCARD z", left: "1"},
		"bzpopmax":   {command: "BZPOPMAX z 0", serve: "ZADD z 1 a", after: "ZCARD z", left: "1"},
		"bzmpop":     {command: "BZMPOP 0 1 z MIN", serve: "ZADD z 1 a", after: "ZCARD z", left: "1"},
		"xread":      {command: "XREAD BLOCK 0 STREAMS s $", serve: "XADD s 1-1 f v", after: "XLEN s", left: "1"},
		"xreadgroup": {command: "XREADGROUP GROUP g c BLOCK 0 STREAMS s >", before: []string{"XGROUP CREATE s g $ MKSTREAM"},
			serve: "XADD s 1-1 f v", after: "XPENDING s g", left: "*"},
		"ts.read": {command: "TS.READ ts 2 BLOCK 0 1", before: []string{"TS.ADD ts 1 1"}, serve: "TS.ADD ts 2 2",
			after: "TS.GET ts", left: "[2 +2]"},
		"atom.call": {command: "ATOM.CALL e go", before: []string{"XADD command:e 1-1 language c version v"},
			serve: "XADD response:atomredis 9-9 element e cmd_id {id} timeout 9000", after: "XLEN response:atomredis", left: "1"},
		"atom.next": {command: "ATOM.NEXT e", before: []string{"XADD command:e 1-1 language c version v"},
			serve: "XADD command:e 9-9 element f cmd go data x", after: "XPENDING command:e atom", left: "*"},
		"pressure.get": {command: "PRESSURE.GET q", before: []string{"PRESSURE.CREATE q"},
			serve: "PRESSURE.PUT q v", after: "PRESSURE.LEN q", left: "1"},
		"pressure.put": {command: "PRESSURE.PUT q b", before: []string{"PRESSURE.CREATE q BOUND 1", "PRESSURE.PUT q a"},
			serve: "PRESSURE.GET q", after: "PRESSURE.LEN q", left: "0"},
		"skein.watch": {command: "SKEIN.WATCH a a z", serve: "SKEIN.PUT a k VALUE v", after: "SKEIN.GET a k", left: "*"},
		"spiderq.lend": {command: "SPIDERQ.LEND q 1000", serve: "SPIDERQ.ADD q k v", after: "SPIDERQ.COUNT q",
			left: "1"},
		"perper.next": {command: "PERPER.NEXT g a", serve: "PERPER.CALL a i d ID x", after: "PERPER.LOCKS", left: "[]"},
		"perper.wait": {command: "PERPER.WAIT x", before: []string{"PERPER.CALL a i d ID x"}, serve: "PERPER.FINISH x",
			after: "PERPER.LOCKS", left: "[]"},
		"perper.reserve": {command: "PERPER.RESERVE g x", before: []string{"PERPER.CALL a i d ID x", "PERPER.RESERVE g x"},
			serve: "PERPER.RELEASE g", after: "PERPER.LOCKS", left: "[]"},
		"perper.attached": {command: "PERPER.ATTACHED st", serve: "PERPER.LISTEN st l", after: "PERPER.LOCKS", left: "[]"},
	}
	// These wait for servers, disks or roles, and are given nothing.
	waits := []string{"wait", "waitaof", "spiderq.flush", "pressure.close", "pressure.delete", "skein.wait", "skein.await"}
	s := startTestServer(t, Options{}, "appendonly", "no")
	for _, cmd := range s.table.Everything() {
		if cmd.Flags&command.Blocking != 0 && !slices.Contains(waits, cmd.Name) {
			require.Contains(t, cases, cmd.Name, "a command that blocks")
		}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := s.connect(), s.connect()
			require.Equal(t, "+OK", a.do("FLUSHALL"))
			require.Equal(t, "+OK", a.do("ACL SETUSER u on nopass ~* &* +@all"))
			for _, command := range tt.before {
				require.NotContains(t, a.do(command), "-ERR", command)
			}
			require.Equal(t, "+OK", b.do("AUTH u x"))
			b.Append(strings.Fields(tt.command)...)
			require.NoError(t, b.Flush())
			require.Eventually(t, func() bool { return strings.Contains(a.do("INFO clients"), "blocked_clients:1\r\n") },
				time.Second, time.Millisecond)
			require.Equal(t, "+OK", a.do("ACL SETUSER u resetkeys"))
			id := strings.Split(a.do("XREVRANGE command:e + - COUNT 1")+`""`, `"`)[1] // of a call
			require.NotContains(t, a.do(strings.ReplaceAll(tt.serve, "{id}", id)), "-ERR", tt.serve)
			require.Equal(t, "-NOPERM No permissions to access a key", b.read())
			if got := a.do(tt.after); tt.left != "*" {
				require.Equal(t, tt.left, got)
			}
			require.Contains(t, a.do("ACL LOG 1"), "cmd="+name+" ")
		})
	}
}
