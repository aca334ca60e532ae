package acl_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/server"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "acl") }

func TestUsersAreSavedToAFileAndLoadedFromIt(t *testing.T) {
	file := writeFile(t, "users.acl", "user a on >x ~a* +get (+set ~b)\n")
	s := servertest.Start(t, server.Options{}, "aclfile", file)
	c := s.Connect()
	require.Equal(t, "+OK", c.Line("ACL SETUSER b on nopass +@all"))
	require.Equal(t, "+OK", c.Line("ACL SAVE"))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "user a on sanitize-payload #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 ~a* resetchannels -@all +get (~b resetchannels -@all +set)\n"+
		"user b on nopass sanitize-payload resetchannels +@all\nuser default on nopass sanitize-payload ~* &* +@all\n",
		string(content))

	// A file with errors changes nothing.
	b := s.Connect()
	require.Equal(t, "+OK", b.Line("AUTH b x"))
	before := c.Line("ACL LIST")
	require.NoError(t, os.WriteFile(file, []byte("user c on\nnope\nuser d +nope nope\n"), 0o600))
	require.Equal(t, "-ERR "+file+":2 should start with user keyword followed by the username. "+file+
		":3: Error in applying operation '+nope': "+
		"Unknown command or category name in ACL. "+file+":3: Syntax error. "+
		"WARNING: ACL errors detected, no change to the previously active ACL rules was performed", c.Line("ACL LOAD"))
	require.Equal(t, before, c.Line("ACL LIST"))
	require.Equal(t, "+PONG", b.Line("PING"))
}

func TestLoadDisconnectsClientsOfUsersThatAreGone(t *testing.T) {
	file := writeFile(t, "users.acl", "user b on nopass +@all ~* &*\nuser d on nopass +@all\nuser e on nopass +@all &*\n")
	s := servertest.Start(t, server.Options{}, "aclfile", file)
	as := func(user string) *testclient.Client {
		c := s.Connect()
		require.Equal(t, "+OK", c.Line("AUTH "+user+" x"))
		return c
	}
	c, b, d, e, listens := s.Connect(), as("b"), as("d"), as("e"), as("e")
	require.Equal(t, `["subscribe" "news" 1]`, listens.Line("SUBSCRIBE news"))
	require.Equal(t, "+OK", c.Line("ACL SETUSER default -get"))
	require.NoError(t, os.WriteFile(file, []byte("user b on >y +@all -set ~k\nuser e on nopass +@all &old\n"), 0o600))
	require.Equal(t, "+OK", c.Line("ACL LOAD"))
	require.Equal(t, "closed", d.Next(), "the user is gone")
	require.Equal(t, "closed", listens.Next(), "the user may not use the channel any more")
	require.Equal(t, "+PONG", e.Line("PING"))
	require.Empty(t, b.Line("GET k"), "the client stays, with the new rules")
	require.Equal(t, "-NOPERM User b has no permissions to run the 'set' command", b.Line("SET k v"))
	require.Equal(t, "-NOPERM No permissions to access a key", b.Line("GET x"))
	require.Empty(t, c.Line("GET k"), "the default user is as new, and its clients stay")

	// The client that loads gets its reply first.
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, "+OK", b.Line("ACL LOAD"))
	require.Equal(t, "closed", b.Next())

	require.NoError(t, os.Remove(file))
	require.Equal(t, "-ERR Error loading ACLs, opening file '"+file+"': No such file or directory", c.Line("ACL LOAD"))
	require.Equal(t, "+OK", c.Line("ACL SAVE"))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(file, "x"), nil, 0o600)) // so that no file can be moved there
	require.Equal(t, "-ERR There was an error trying to save the ACLs. Please check the server logs for more information",
		c.Line("ACL SAVE"))
}

func TestCustomCommandsAreRefusedWhenTheyShouldBe(t *testing.T) {
	s := servertest.Start(t, server.Options{})
	add := func(cmd command.Command) {
		require.NoError(t, s.Sessions().Handle(cmd, func(h *session.Caller) { h.Writer().Raw(h.Call([][]byte{[]byte("GET"), []byte("k")})) }))
	}
	add(command.Command{Name: "one", Arity: 2, Flags: command.Write, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]")})
	c, u := s.Connect(), s.Connect()
	require.Equal(t, "+OK", c.Line("ACL SETUSER u on nopass +@all -one ~k %R~r"))
	require.Equal(t, "+OK", c.Line("ACL SETUSER v on nopass +@read +@write ~k"))
	add(command.Command{Name: "two", Arity: 1, Flags: command.ReadOnly}) // added after the users

	require.Equal(t, "+OK", u.Line("AUTH u x"))
	require.Equal(t, "-NOPERM User u has no permissions to run the 'one' command", u.Line("ONE k"))
	require.Equal(t, "null", u.Line("TWO"), "who may do everything may do what is new")
	require.Equal(t, "+OK", c.Line("ACL SETUSER u +one"))
	require.Equal(t, "null", u.Line("ONE k"))
	for _, key := range []string{"x", "r"} {
		require.Equal(t, "-NOPERM No permissions to access a key", u.Line("ONE "+key))
	}
	require.Equal(t, "+OK", u.Line("AUTH v x"))
	require.Equal(t, "-NOPERM User v has no permissions to run the 'one' command", u.Line("ONE k"), "it is in no category")
	require.NotContains(t, c.Line("ACL CAT write"), "one")
	require.Equal(t, "+OK", c.Line("ACL SETUSER v +one +two -two"))
	require.Equal(t, "null", u.Line("ONE k"))
	require.Contains(t, c.Line("ACL LIST"), "+one")
}

func TestKeysThatAreNoArgumentsAreCheckedToo(t *testing.T) {
	s := servertest.Start(t, server.Options{})
	c, u := s.Connect(), s.Connect()
	require.Equal(t, "+OK", c.Line("ACL SETUSER u on nopass +@all ~mine* ~command:mine ~response:mine"))
	require.Equal(t, "+OK", u.Line("AUTH u x"))
	const denied = "-NOPERM No permissions to access a key"
	for command, refused := range map[string]bool{
		"PRESSURE.PUT mine v":                true,
		"ATOM.INFO mine":                     false,
		"ATOM.INFO other":                    true,
		"ATOM.CALL other c FROM mine NOWAIT": true,
		"ATOM.NEXT mine":                     true, // the client that it answers is unknown before
		"ATOM.LOG info mine text":            true,
		"KEYS *":                             false,
		"PRESSURE.LIST":                      false,
		"ATOM.ELEMENTS":                      false,
		"EVAL return#redis.call('pressure.len','q') 0": false, // refused inside the script
	} {
		args := strings.ReplaceAll(strings.Join(strings.Fields(command), "\x00"), "#", " ")
		v, err := u.Do(testclient.Timeout, strings.Split(args, "\x00")...)
		require.NoError(t, err, command)
		require.Equal(t, refused, v.String() == denied, "%s: %s", command, v)
	}
	require.Equal(t, "+OK", c.Line("ACL SETUSER u allkeys"))
	require.NotEqual(t, denied, u.Line("ATOM.NEXT mine TIMEOUT 1"))
	require.NotEqual(t, denied, u.Line("PRESSURE.LEN mine"))
}

// A blocked client gets nothing that its user has lost the right to while it waited, for every blocking command.
func TestBlockedClientsAreRefusedWhatTheirUserMayNotHave(t *testing.T) {
	cases := map[string]struct {
		command string
		before  []string // what the command needs
		serve   string   // would serve it
		after   string   // its reply must show that nothing was taken
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
		"bzmove":     {command: "BZMOVE z y MIN 0", serve: "ZADD z 1 a", after: "ZCARD z", left: "1"},
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
	// These wait for servers, disks or roles, and get no data.
	waits := []string{"wait", "waitaof", "spiderq.flush", "pressure.close", "pressure.delete", "skein.wait", "skein.await"}
	s := servertest.Start(t, server.Options{}, "appendonly", "no")
	for _, cmd := range s.Table().Everything() {
		if cmd.Flags&command.Blocking != 0 && !slices.Contains(waits, cmd.Name) {
			require.Contains(t, cases, cmd.Name, "a command that blocks")
		}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := s.Connect(), s.Connect()
			require.Equal(t, "+OK", a.Line("FLUSHALL"))
			require.Equal(t, "+OK", a.Line("ACL SETUSER u on nopass ~* &* +@all"))
			for _, command := range tt.before {
				require.NotContains(t, a.Line(command), "-ERR", command)
			}
			require.Equal(t, "+OK", b.Line("AUTH u x"))
			b.Send(strings.Fields(tt.command)...)
			a.WaitFor("INFO clients", "blocked_clients:1\r\n")
			require.Equal(t, "+OK", a.Line("ACL SETUSER u resetkeys"))
			id := strings.Split(a.Line("XREVRANGE command:e + - COUNT 1")+`""`, `"`)[1] // of a call
			require.NotContains(t, a.Line(strings.ReplaceAll(tt.serve, "{id}", id)), "-ERR", tt.serve)
			require.Equal(t, "-NOPERM No permissions to access a key", b.Next())
			if strings.HasPrefix(name, "perper.") { // a lock that was refused ends after the reply
				a.WaitFor(tt.after, tt.left)
			} else if got := a.Line(tt.after); tt.left != "*" {
				require.Equal(t, tt.left, got)
			}
			require.Contains(t, a.Line("ACL LOG 1"), "cmd="+name+" ")
		})
	}
}

// writeFile makes a file that the end of the test removes, and returns its path.
func writeFile(t *testing.T, name, content string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
