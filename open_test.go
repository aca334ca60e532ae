package atomredis_test

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// Open fails at every step in turn. Nothing is left: the port and the socket are free, no goroutine runs, directories
// are as they were.
func TestOpenThatFailsLeavesNothing(t *testing.T) {
	used := t.TempDir()
	open(t, atomredis.Options{Dir: used})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, takenPort, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(used, link))

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	garbage := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(garbage, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(garbage, "data", "CURRENT"), []byte("nonsense"), 0o600))

	running := goleak.IgnoreCurrent()
	for name, change := range map[string]func(o *atomredis.Options){
		"an unknown directive":       func(o *atomredis.Options) { o.Config = map[string]string{"no-such": "x"} },
		"a bad value":                func(o *atomredis.Options) { o.Config = map[string]string{"maxmemory": "x"} },
		"a bad line":                 func(o *atomredis.Options) { o.ConfigLines = []string{`user "x`} },
		"a user defined twice":       func(o *atomredis.Options) { o.ConfigLines = []string{"user u on", "user u off"} },
		"a bad rule of a user":       func(o *atomredis.Options) { o.ConfigLines = []string{"user u +nosuchcommand"} },
		"an unknown command renamed": func(o *atomredis.Options) { o.ConfigLines = []string{"rename-command nosuch x"} },
		"no file of users": func(o *atomredis.Options) {
			o.Config =
				map[string]string{"aclfile": file + ".acl"}
		},
		"a replica in a cluster": func(o *atomredis.Options) {
			o.Config =
				map[string]string{"replicaof": "h 1", "cluster-enabled": "yes"}
		},
		"a taken port":                 func(o *atomredis.Options) { o.Config = map[string]string{"port": takenPort} },
		"a taken address":              func(o *atomredis.Options) { o.Addr = taken.Addr().String() },
		"a socket that is a directory": func(o *atomredis.Options) { o.UnixSocket = used },
		"a socket in no directory":     func(o *atomredis.Options) { o.UnixSocket = filepath.Join(file, "socket") },
		"TLS without a certificate":    func(o *atomredis.Options) { o.TLSConfig = &tls.Config{} },
		"a tls-port without one":       func(o *atomredis.Options) { o.Config = map[string]string{"tls-port": "7"} },
		"a directory in use":           func(o *atomredis.Options) { o.Dir = used },
		"the same by another path":     func(o *atomredis.Options) { o.Dir = link },
		"a directory that is a file":   func(o *atomredis.Options) { o.Dir = file },
		"a directory below a file":     func(o *atomredis.Options) { o.Dir = filepath.Join(file, "a", "b") },
		"a directory with garbage":     func(o *atomredis.Options) { o.Dir = garbage },
		"two directories":              func(o *atomredis.Options) { o.Config = map[string]string{"dir": used} },
		"a door that is not imported":  func(o *atomredis.Options) { o.Doors = map[string]string{"nosuch": "yes"} },
		"a door nowhere":               func(o *atomredis.Options) { o.Doors = map[string]string{"spiderq": "here"} },
		"a door at a taken address": func(o *atomredis.Options) {
			o.Doors = map[string]string{"spiderq": taken.Addr().String()}
		},
		"two doors": func(o *atomredis.Options) {
			o.Doors, o.Config = map[string]string{"spiderq": "127.0.0.1:0"}, map[string]string{"door-spiderq": "no"}
		},
		"two sockets": func(o *atomredis.Options) { o.ConfigLines = []string{"unixsocket /x"} },
		"a port and no data, in memory": func(o *atomredis.Options) {
			o.Dir = ""
			o.Config =
				map[string]string{"port": takenPort}
		},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			good := atomredis.Options{Addr: freeport.Addr(t), UnixSocket: filepath.Join(temp, "socket"),
				Dir: filepath.Join(temp, "new", "dir")}
			bad := good
			change(&bad)
			_, err := atomredis.Open(bad)
			require.ErrorContains(t, err, "atomredis: ")
			require.NotContains(t, err.Error(), "use of closed")

			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
			require.NoError(t, goleak.Find(running))
			db, err := atomredis.Open(good)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			require.DirExists(t, good.Dir)
		})
	}
	// Existing files stay.
	content, err := os.ReadFile(filepath.Join(garbage, "data", "CURRENT"))
	require.NoError(t, err)
	require.Equal(t, "nonsense", string(content))
	require.FileExists(t, file)
}

// Doors sets the same directives as Config does; its errors name the option Doors.
func TestDoorsAreOpenWhereTheOptionSays(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "door")
	db := open(t, atomredis.Options{Doors: map[string]string{"spiderq": "ipc://" + socket}})
	require.Equal(t, socket, db.DoorAddr("spiderq"))
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	do(t, db, "CONFIG", "SET", "door-spiderq", "no")
	require.Empty(t, db.DoorAddr("spiderq"))
	require.Empty(t, open(t, atomredis.Options{Doors: map[string]string{"spiderq": "no"}}).DoorAddr("spiderq"))

	_, err = atomredis.Open(atomredis.Options{Doors: map[string]string{"skien": "yes"}})
	require.EqualError(t, err, `atomredis: Doors: there is no door "skien"; a program has those that it imports: `+
		`import _ "github.com/atomredis/atomredis/doors/skien"`)
	_, err = atomredis.Open(atomredis.Options{Doors: map[string]string{"spiderk": "yes"}})
	require.ErrorContains(t, err, "doors/spiderk\"; did you mean spiderq?")
	_, err = atomredis.Open(atomredis.Options{Doors: map[string]string{"spiderq": "here"}})
	require.ErrorContains(t, err, "atomredis: Doors: spiderq: ")
}

func TestAMistypedDirectiveIsRecognized(t *testing.T) {
	_, err := atomredis.Open(atomredis.Options{Config: map[string]string{"maxmemroy": "1gb"}})
	require.EqualError(t, err, "atomredis: maxmemroy: Bad directive or wrong number of arguments; did you mean maxmemory?")
	_, err = atomredis.Open(atomredis.Options{ConfigLines: []string{"maxmemroy 1gb"}})
	require.EqualError(t, err, `atomredis: "maxmemroy 1gb": Bad directive or wrong number of arguments; did you mean maxmemory?`)
	db := open(t, atomredis.Options{})
	_, err = db.Do(t.Context(), "CONFIG", "SET", "maxmemroy", "1gb")
	require.EqualError(t, err, "ERR Unknown option or number of arguments for CONFIG SET - 'maxmemroy'")
}

func TestOpenThatFailsKeepsAnEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	_, err := atomredis.Open(atomredis.Options{Dir: dir, Config: map[string]string{"tls-port": "7"}})
	require.Error(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	db, err := atomredis.Open(atomredis.Options{Dir: dir})
	require.NoError(t, err)
	do(t, db, "SET", "k", "v")
	require.NoError(t, db.Close())
	_, err = atomredis.Open(atomredis.Options{Dir: dir, Config: map[string]string{"tls-port": "7"}})
	require.Error(t, err)
	again := open(t, atomredis.Options{Dir: dir})
	require.Equal(t, "v", text(t, do(t, again, "GET", "k")))
}

func TestErrInUseSaysThatAnotherServerHasTheDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	open(t, atomredis.Options{Dir: dir})
	for _, same := range []string{dir, ".", filepath.Join(dir, "..", filepath.Base(dir)), dir + "/"} {
		_, err := atomredis.Open(atomredis.Options{Dir: same})
		require.ErrorIs(t, err, atomredis.ErrInUse, same)
	}
	_, err := atomredis.Open(atomredis.Options{Dir: filepath.Join(dir, "LOCK")})
	require.Error(t, err)
	require.NotErrorIs(t, err, atomredis.ErrInUse)
}

func TestUnixSocketThatAKilledServerLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	left, err := net.Listen("unix", path)
	require.NoError(t, err)
	left.(*net.UnixListener).SetUnlinkOnClose(false)

	_, err = atomredis.Open(atomredis.Options{UnixSocket: path})
	require.ErrorContains(t, err, "address already in use") // another socket listens there
	require.NoError(t, left.Close())
	require.FileExists(t, path)
	db := open(t, atomredis.Options{UnixSocket: path})
	require.Equal(t, path, db.Addr())
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	reply := make([]byte, 7)
	_, err = conn.Read(reply)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", string(reply))
}

func TestTLSConfigMustBeOfUse(t *testing.T) {
	_, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", TLSConfig: &tls.Config{}})
	require.ErrorContains(t, err, "TLSConfig has no certificate")
	_, err = atomredis.Open(atomredis.Options{TLSConfig: &tls.Config{Certificates: make([]tls.Certificate, 1)}})
	require.ErrorContains(t, err, "Addr, which is empty")
	for _, c := range []*tls.Config{
		{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }},
		{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }},
	} {
		open(t, atomredis.Options{Addr: "127.0.0.1:0", TLSConfig: c})
	}
}

func TestConfigLinesRepeatDirectives(t *testing.T) {
	db := open(t, atomredis.Options{
		ConfigLines: []string{
			"# a comment", "", "user alice on >secret ~a:* +@all", `user bob off "~b" +get`, "rename-command FLUSHALL erase",
			"maxmemory 1mb",
			"client-output-buffer-limit normal 1mb 0 0", "client-output-buffer-limit pubsub 2mb 0 0",
		},
		Config: map[string]string{"maxmemory": "2mb"}, // the last word
	})
	list, err := do(t, db, "ACL", "LIST").Texts()
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.True(t, strings.HasPrefix(list[0], "user alice on "), list[0])
	conn, err := db.Dial(t.Context()) // connections of the program itself have both addresses
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("FLUSHALL\r\n"))
	require.NoError(t, err)
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	require.NoError(t, err)
	require.Contains(t, string(reply[:n]), "unknown command")
	do(t, db, "ERASE")
	settings, err := do(t, db, "CONFIG", "GET", "maxmemory", "client-output-buffer-limit").Map()
	require.NoError(t, err)
	require.Equal(t, "2097152", text(t, settings["maxmemory"]))
	require.Equal(t, "normal 1048576 0 0 slave 268435456 67108864 60 pubsub 2097152 0 0",
		text(t, settings["client-output-buffer-limit"]))
}

func TestOptionsAndDirectivesMayAgree(t *testing.T) {
	dir := t.TempDir()
	open(t, atomredis.Options{Dir: dir, Config: map[string]string{"dir": dir}})
	for _, o := range []atomredis.Options{
		{Dir: dir, Config: map[string]string{"DIR": "/elsewhere"}},
		{Dir: dir, ConfigLines: []string{"dir /elsewhere"}},
		{UnixSocket: "/a", Config: map[string]string{"unixsocket": "/b"}},
	} {
		_, err := atomredis.Open(o)
		require.ErrorContains(t, err, "and the directive")
	}
}
