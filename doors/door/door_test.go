package door_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened starts a server with the door "lines" at a free port, and returns it with a client that has all permissions.
func opened(t *testing.T, settings ...string) (*server.Server, *door.Client) {
	srv := run(t, append([]string{"door-lines", "127.0.0.1:0"}, settings...)...)
	return srv, clientOf(t, srv)
}

// peer is a peer of the door.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// deadline limits each wait of a test.
const deadline = 20 * time.Second

// connect connects to a door and reads its greeting.
func connect(t *testing.T, srv *server.Server, name string) *peer {
	t.Helper()
	a := srv.DoorAddr(name)
	require.NotNil(t, a, "the door is not open")
	p := dial(t, a.Network(), a.String())
	require.Equal(t, "hello", p.line())
	return p
}

func dial(t *testing.T, network, address string) *peer {
	t.Helper()
	conn, err := net.Dial(network, address)
	require.NoError(t, err)
	return peerAt(t, conn)
}

func peerAt(t *testing.T, conn net.Conn) *peer {
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(deadline)))
	return &peer{t, conn, bufio.NewReader(conn)}
}

// line returns the next line that the peer receives.
func (p *peer) line() string {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	require.NoError(p.t, err)
	return strings.TrimSuffix(line, "\n")
}

func (p *peer) send(line string) {
	_, err := fmt.Fprintln(p.conn, line)
	require.NoError(p.t, err)
}

// do sends a line and returns the answer.
func (p *peer) do(line string) string {
	p.t.Helper()
	p.send(line)
	return p.line()
}

// requireGone waits until the peer is disconnected.
func (p *peer) requireGone() {
	p.t.Helper()
	_, err := io.Copy(io.Discard, p.in)
	require.NotErrorIs(p.t, err, os.ErrDeadlineExceeded)
}

// addr is the peer's address as the server sees it.
func (p *peer) addr() string { return p.conn.LocalAddr().String() }

// eventually waits until the reply to a command contains want.
func eventually(t *testing.T, c *door.Client, want string, args ...any) {
	t.Helper()
	has := func() bool { return strings.Contains(do(t, c, args...), want) }
	require.Eventually(t, has, deadline, time.Millisecond, want)
}

// A door at 0.0.0.0 accepts no connections over IPv6.
func TestDoorsListenInOneFamily(t *testing.T) {
	srv, _ := opened(t, "door-lines", "0.0.0.0:0")
	_, port, err := net.SplitHostPort(srv.DoorAddr("lines").String())
	require.NoError(t, err)
	dial(t, "tcp", "127.0.0.1:"+port)
	_, err = net.Dial("tcp", "[::1]:"+port)
	require.Error(t, err)
}

// A silent peer is disconnected. A peer that is not admitted is disconnected whenever it is silent for that long.
func TestPeersThatSayNothing(t *testing.T) {
	srv, c := opened(t, "door-first-request", "1")
	silent, half := connect(t, srv, "lines"), connect(t, srv, "lines")
	_, err := half.conn.Write([]byte("PI")) // not a whole request
	require.NoError(t, err)
	legitimate := connect(t, srv, "lines")
	require.Equal(t, "PONG", legitimate.do("PING"))
	silent.requireGone()
	half.requireGone()
	require.Equal(t, "PONG", legitimate.do("PING"))
	do(t, c, "CONFIG", "SET", "requirepass", "secret")
	stranger := connect(t, srv, "lines")
	require.Contains(t, stranger.do("PING"), "NOAUTH")
	admitted := connect(t, srv, "lines")
	require.Equal(t, "OK", admitted.do("AUTH default secret"))
	require.Equal(t, "PONG", admitted.do("PING"))
	stranger.requireGone()
	require.Equal(t, "PONG", admitted.do("PING"))
	require.Equal(t, "PONG", legitimate.do("PING"))
}

// All doors together leave some connections to clients of Redis.
func TestDoorsLeaveConnections(t *testing.T) {
	srv, c := opened(t, "maxclients", "6")
	first := []*peer{connect(t, srv, "lines"), connect(t, srv, "lines"), connect(t, srv, "lines")}
	dial(t, "tcp", srv.DoorAddr("lines").String()).requireGone()
	do(t, c, "CONFIG", "SET", "door-maxclients", "4")
	first = append(first, connect(t, srv, "lines"))
	dial(t, "tcp", srv.DoorAddr("lines").String()).requireGone()
	first[0].conn.Close()
	eventually(t, c, "door_lines_connections:3\r\n", "INFO", "door_lines")
	connect(t, srv, "lines")
}

// The directive timeout applies to peers of doors. Activity of any of a peer's clients counts, and peers that wait or
// have subscribed are not idle.
func TestIdlePeersAreDisconnected(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	srv := prepareAt(t, clock, "door-lines", "127.0.0.1:0")
	require.NoError(t, srv.Start())
	c := clientOf(t, srv)
	idle, busy, waiting, listening := connect(t, srv, "lines"), connect(t, srv, "lines"), connect(t, srv, "lines"), connect(t, srv, "lines")
	for _, p := range []*peer{idle, busy, waiting, listening} {
		require.Equal(t, "PONG", p.do("PING"))
	}
	waiting.send("BLPOP list 0")
	require.Equal(t, "OK", listening.do("EVENTS channel"))
	eventually(t, c, "blocked_clients:1\r\n", "INFO", "clients")
	clock.Advance(time.Hour)
	require.Equal(t, "PONG", idle.do("PING"))
	require.Equal(t, "PONG", busy.do("PING"))
	do(t, c, "CONFIG", "SET", "timeout", "10")
	for range 12 {
		clock.Advance(time.Second)
		require.Equal(t, "PONG", busy.do("PING"))
	}
	idle.requireGone()
	require.Equal(t, "PONG", busy.do("PING"))
	do(t, c, "RPUSH", "list", "v")
	require.Contains(t, waiting.line(), "list")
	do(t, c, "PUBLISH", "channel", "message")
	require.Equal(t, "channel message", listening.line())
}

// A monitor is not idle while the server executes nothing.
func TestSilentMonitorsAreNotIdle(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	srv := prepareAt(t, clock, "door-lines", "127.0.0.1:0", "timeout", "10")
	require.NoError(t, srv.Start())
	monitor, idle := connect(t, srv, "lines"), connect(t, srv, "lines")
	require.Equal(t, "OK", monitor.do("MONITOR"))
	clock.Advance(time.Second)
	require.Equal(t, "PONG", idle.do("PING"))
	require.Contains(t, monitor.line(), `"PING"`)
	for range 15 {
		clock.Advance(time.Second)
	}
	idle.requireGone()
	require.Equal(t, "PONG", connect(t, srv, "lines").do("PING"))
	require.Contains(t, monitor.line(), `"PING"`)
}

func TestCommandsComeThroughADoor(t *testing.T) {
	srv, c := opened(t, "slowlog-log-slower-than", "0")
	p := connect(t, srv, "lines")
	require.Equal(t, "OK", p.do("SET k v"))
	require.Equal(t, "v", do(t, c, "GET", "k"))
	require.Equal(t, "v", p.do("GET k"))
	require.Equal(t, "-WRONGTYPE Operation against a key holding the wrong kind of value", p.do("LPUSH k x"))
	require.Equal(t, "OK", p.do("NAME somebody"))
	list := do(t, c, "CLIENT", "LIST")
	require.Contains(t, list, " addr="+p.addr()+" laddr="+srv.DoorAddr("lines").String()+" fd=0 name=somebody ")
	require.Contains(t, list, " user=default ")
	require.Contains(t, list, " lib-name=door-lines ")
	slow, err := c.Do(t.Context(), "SLOWLOG", "GET", "-1")
	require.NoError(t, err)
	require.Contains(t, slow.String(), `"LPUSH"`)
	require.Contains(t, slow.String(), `"`+p.addr()+`"`)
}

func TestDirectivesFollowFromTheRegistry(t *testing.T) {
	srv := run(t)
	c := clientOf(t, srv)
	get := func(pattern string) string {
		r, err := c.Do(t.Context(), "CONFIG", "GET", pattern)
		require.NoError(t, err)
		return r.String()
	}
	for name, value := range map[string]string{
		"door-lines": "", "door-lines-user": "", "door-lines-tls": "no", "door-guarded-lines": "", "lines-greeting": "hello",
	} {
		require.Equal(t, fmt.Sprintf("1# %q => %q", name, value), get(name))
	}
	require.NotContains(t, get("door-guarded-lines*"), "tls", "its kind does not allow it")
	for _, bad := range [][2]string{
		{"door-lines", "nowhere"}, {"door-lines", "1.2.3.4:port"}, {"door-lines", "70000"},
		{"lines-greeting", ""}, {"door-lines-tls", "perhaps"}, {"door-lines-user", "nobody"},
	} {
		_, err := c.Do(t.Context(), "CONFIG", "SET", bad[0], bad[1])
		require.ErrorContains(t, err, "possibly related to argument '"+bad[0]+"'", bad)
	}
	require.Nil(t, srv.DoorAddr("lines"))
	require.NotContains(t, do(t, c, "INFO", "everything"), "# Door_")
	require.Panics(t, func() {
		door.Register(door.Kind{Name: "late", New: func(door.Host) (door.Door, error) { return nil, nil }})
	})
}

func TestAddressesOfDoors(t *testing.T) {
	k := door.Kind{Name: "x", Port: 5550}
	for value, want := range map[string]string{
		"": " ", "no": " ",
		"yes": "tcp 127.0.0.1:5550", "99": "tcp 127.0.0.1:99", ":99": "tcp 127.0.0.1:99", "*:99": "tcp :99",
		"10.0.0.1:99": "tcp 10.0.0.1:99", "[::1]:99": "tcp [::1]:99", "tcp://localhost:0": "tcp localhost:0",
		"/tmp/s": "unix /tmp/s", "unix:///tmp/s": "unix /tmp/s", "ipc:///tmp/s": "unix /tmp/s",
	} {
		network, address, err := k.ParseAddress(value)
		require.NoError(t, err, value)
		require.Equal(t, want, network+" "+address, value)
	}
	for _, value := range []string{"maybe", "-1", "65536", "host", "host:", "a b:1", "ipc://x", "tcp:///x", "::1"} {
		_, _, err := k.ParseAddress(value)
		require.Error(t, err, value)
	}
}

func TestDoorMovesWhileTheServerRuns(t *testing.T) {
	srv, c := opened(t)
	set := func(value string) error {
		_, err := c.Do(t.Context(), "CONFIG", "SET", "door-lines", value)
		return err
	}
	first := connect(t, srv, "lines")
	was := srv.DoorAddr("lines").String()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()

	require.ErrorContains(t, set(taken.Addr().String()), "address already in use")
	require.Equal(t, was, srv.DoorAddr("lines").String())
	require.Equal(t, "PONG", first.do("PING"), "a change that fails changes nothing")
	_, err = c.Do(t.Context(), "CONFIG", "SET", "door-lines", "", "door-guarded-lines", taken.Addr().String())
	require.ErrorContains(t, err, "possibly related to argument 'door-guarded-lines'")
	require.Equal(t, "PONG", first.do("PING"), "all or none")

	path := filepath.Join(t.TempDir(), "lines.sock")
	require.NoError(t, set(path))
	free, err := net.Listen("tcp", was)
	require.NoError(t, err, "the old address is free")
	free.Close()
	first.requireGone()
	second := connect(t, srv, "lines")
	require.Equal(t, "OK", second.do("NAME second"))
	require.Contains(t, do(t, c, "CLIENT", "LIST"), "addr="+path+":0 laddr="+path+":0 fd=0 name=second ")

	// A peer of the door may move the door too, and then may not get the reply.
	second.send("CONFIG SET door-lines 127.0.0.1:0")
	eventually(t, c, "127.0.0.1:0", "CONFIG", "GET", "door-lines")
	require.Equal(t, "PONG", connect(t, srv, "lines").do("PING"))
	require.NoError(t, set("no"))
	require.Nil(t, srv.DoorAddr("lines"))
	require.NoError(t, set("127.0.0.1:0"))

	// The door itself refuses this value.
	do(t, c, "CONFIG", "SET", "lines-greeting", "impossible")
	require.NoError(t, set(""))
	require.ErrorContains(t, set("127.0.0.1:0"), "nobody can be greeted so")
}

func TestSettingsOfAnOpenDoorChange(t *testing.T) {
	srv, c := opened(t)
	connect(t, srv, "lines")
	do(t, c, "CONFIG", "SET", "lines-greeting", "welcome")
	a := srv.DoorAddr("lines")
	require.Equal(t, "welcome", dial(t, a.Network(), a.String()).line())
}

func TestInfoDescribesTheDoor(t *testing.T) {
	srv, c := opened(t)
	p := connect(t, srv, "lines")
	p.do("PING")
	for _, section := range []string{"door_lines", "default", "everything"} {
		eventually(t, c, "# Door_lines\r\ndoor_lines_address:"+srv.DoorAddr("lines").String()+"\r\n"+
			"door_lines_connections:1\r\ndoor_lines_connections_received:1\r\ndoor_lines_connections_rejected:0\r\n"+
			"door_lines_clients:2\r\ndoor_lines_commands:1\r\ndoor_lines_input_bytes:5\r\n"+
			"door_lines_output_bytes:11\r\nlines_lines_read:1\r\n", "INFO", section)
	}
	require.NotContains(t, do(t, c, "INFO", "server"), "# Door_")
	p.conn.Close()
	eventually(t, c, "door_lines_connections:0\r\ndoor_lines_connections_received:1", "INFO", "door_lines")
	eventually(t, c, "door_lines_clients:1\r\n", "INFO", "door_lines")
}

func TestPeersActAsTheUserOfTheDoor(t *testing.T) {
	srv := run(t, "requirepass", "secret")
	c := clientOf(t, srv)
	do(t, c, "ACL", "SETUSER", "peers", "on", "nopass", "~p:*", "&*", "+get", "+set", "+psubscribe")
	do(t, c, "CONFIG", "SET", "door-lines", "127.0.0.1:0")
	require.Equal(t, "-NOAUTH Authentication required.", connect(t, srv, "lines").do("GET p:k"))
	do(t, c, "CONFIG", "SET", "door-lines-user", "peers")
	p := connect(t, srv, "lines")
	require.Equal(t, "OK", p.do("SET p:k v"))
	require.Contains(t, p.do("SET k v"), "-NOPERM")
	require.Contains(t, do(t, c, "CLIENT", "LIST"), " user=peers ")
	log, err := c.Do(t.Context(), "ACL", "LOG")
	require.NoError(t, err)
	require.Contains(t, log.String(), "addr="+p.addr())
	require.Equal(t, "OK", p.do("AUTH default secret"))
	require.Equal(t, "OK", p.do("SET k v"))

	p = connect(t, srv, "lines")
	do(t, c, "ACL", "DELUSER", "peers")
	p.requireGone()
	a := srv.DoorAddr("lines")
	require.Equal(t, "-"+door.ErrNoUser.Error(), dial(t, a.Network(), a.String()).line())
}

func TestKilledClientsLoseTheirPeers(t *testing.T) {
	srv, c := opened(t)
	idle, waiting := connect(t, srv, "lines"), connect(t, srv, "lines")
	waiting.send("BLPOP q 0")
	eventually(t, c, "cmd=blpop", "CLIENT", "LIST")
	for _, p := range []*peer{idle, waiting} {
		require.Equal(t, "1", do(t, c, "CLIENT", "KILL", "ADDR", p.addr()))
		p.requireGone()
	}
	require.Equal(t, "1", do(t, c, "RPUSH", "q", "x"))
	require.Equal(t, "1", do(t, c, "LLEN", "q"), "who is killed takes nothing")
}

func TestPeerThatHangsUpTakesNothing(t *testing.T) {
	srv, c := opened(t)
	p := connect(t, srv, "lines")
	p.send("BLPOP q 0")
	eventually(t, c, "cmd=blpop", "CLIENT", "LIST")
	p.conn.Close()
	eventually(t, c, "blocked_clients:0", "INFO", "clients")
	do(t, c, "RPUSH", "q", "x")
	require.Equal(t, "x", do(t, c, "LPOP", "q"))
	eventually(t, c, "door_lines_clients:1\r\n", "INFO", "door_lines")
}

func TestPanicDisconnectsThePeerAlone(t *testing.T) {
	srv, c := opened(t)
	p, other := connect(t, srv, "lines"), connect(t, srv, "lines")
	p.send("PANIC")
	p.requireGone()
	require.Equal(t, "PONG", other.do("PING"))
	eventually(t, c, "door_lines_clients:2\r\n", "INFO", "door_lines")
}

func TestBlockedPeerIsServed(t *testing.T) {
	srv, c := opened(t)
	p := connect(t, srv, "lines")
	p.send("BRPOPLPUSH q r 0")
	eventually(t, c, "cmd=brpoplpush", "CLIENT", "LIST")
	do(t, c, "RPUSH", "q", "x")
	require.Equal(t, "x", p.line())
}

func TestMaxclientsHoldsForDoors(t *testing.T) {
	srv, c := opened(t)
	first := connect(t, srv, "lines")
	do(t, c, "CONFIG", "SET", "maxclients", "3") // the door's own client, the peer's, and c
	a := srv.DoorAddr("lines")
	dial(t, a.Network(), a.String()).requireGone()
	require.Contains(t, do(t, c, "INFO", "door_lines"), "door_lines_connections_rejected:1")
	require.Contains(t, do(t, c, "INFO", "stats"), "rejected_connections:1")
	require.Equal(t, "-max number of clients reached", first.do("EVENTS *"), "a subscription is a client")
	do(t, c, "CONFIG", "SET", "maxclients", "4")
	connect(t, srv, "lines")
}

func TestProtectedModeKeepsOthersFromDoorsThatDoNotAuthenticate(t *testing.T) {
	var host string
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			host = n.IP.String()
		}
	}
	if host == "" {
		t.Skip("this machine has no address but loopback ones")
	}
	srv := run(t, "door-lines", host+":0", "door-guarded-lines", host+":0", "requirepass", "secret")
	c := clientOf(t, srv)
	a := srv.DoorAddr("lines").String()
	dial(t, "tcp", a).requireGone()
	p := dial(t, "tcp", srv.DoorAddr("guarded-lines").String())
	require.Equal(t, "hello", p.line())
	require.Contains(t, p.do("PING"), "-NOAUTH")
	require.Equal(t, "OK", p.do("AUTH default secret"))
	require.Equal(t, "PONG", p.do("PING"))
	do(t, c, "CONFIG", "SET", "protected-mode", "no")
	require.Equal(t, "hello", dial(t, "tcp", a).line())
}

func TestDoorsHearEventsThatNobodyElseHasAskedFor(t *testing.T) {
	srv, c := opened(t)
	p := connect(t, srv, "lines")
	require.Equal(t, "OK", p.do("EVENTS __key*__:*"))
	other, err := c.PSubscribe(t.Context(), "*")
	require.NoError(t, err)
	defer other.Close()
	do(t, c, "LPUSH", "list", "x") // the door has not asked for this class
	do(t, c, "SET", "k", "v")
	do(t, c, "DEL", "k")
	do(t, c, "PUBLISH", "end", "of events")
	require.Equal(t, "__keyspace@0__:k set", p.line())
	require.Equal(t, "__keyspace@0__:k del", p.line())
	m, err := other.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "end", m.Channel)

	// With notify-keyspace-events set too, each event still comes once.
	do(t, c, "CONFIG", "SET", "notify-keyspace-events", "E$")
	do(t, c, "SET", "k", "v")
	require.Equal(t, "__keyspace@0__:k set", p.line())
	require.Equal(t, "__keyevent@0__:set k", p.line())
	m, err = other.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "__keyevent@0__:set", m.Channel)
	do(t, c, "CONFIG", "SET", "notify-keyspace-events", "")
	do(t, c, "CONFIG", "SET", "door-lines", "")
	p.requireGone()
}

func TestDoorsUseTLS(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))

	srv, c := opened(t, "tls-auth-clients", "no")
	_, err = c.Do(t.Context(), "CONFIG", "SET", "door-lines-tls", "yes")
	require.ErrorContains(t, err, "possibly related to argument 'door-lines-tls') - Unable to update TLS configuration.")
	do(t, c, "CONFIG", "SET", "tls-cert-file", certFile, "tls-key-file", keyFile, "door-lines-tls", "yes")
	a := srv.DoorAddr("lines").String()
	roots := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots.AddCert(cert)
	conn, err := tls.Dial("tcp", a, &tls.Config{RootCAs: roots})
	require.NoError(t, err)
	p := peerAt(t, conn)
	require.Equal(t, "hello", p.line())
	require.Equal(t, "PONG", p.do("PING"))
	plain := dial(t, "tcp", a)
	plain.send("PING")
	plain.requireGone()
	do(t, c, "CONFIG", "SET", "door-lines-tls", "no")
	require.Equal(t, "PONG", connect(t, srv, "lines").do("PING"))
	require.Equal(t, "PONG", p.do("PING"), "who is connected stays")
}

func TestDoorThatEndsByItselfIsClosed(t *testing.T) {
	srv, c := opened(t)
	p := connect(t, srv, "lines")
	p.send("STOP")
	eventually(t, c, "1", "EXISTS", "doors closed")
	require.Nil(t, srv.DoorAddr("lines"))
	do(t, c, "CONFIG", "SET", "door-lines", "")
	do(t, c, "CONFIG", "SET", "door-lines", "127.0.0.1:0")
	require.Equal(t, "PONG", connect(t, srv, "lines").do("PING"))
}

func TestDoorsCloseBeforeTheServerDoes(t *testing.T) {
	dir := t.TempDir()
	srv := runDurable(t, dir, "door-lines", "127.0.0.1:0")
	idle, waiting, far := connect(t, srv, "lines"), connect(t, srv, "lines"), connect(t, srv, "lines")
	waiting.send("BLPOP q 0")
	eventually(t, clientOf(t, srv), "cmd=blpop", "CLIENT", "LIST")
	far.send("SHUTDOWN")
	<-srv.Done()
	for _, p := range []*peer{idle, waiting, far} {
		p.requireGone()
	}
	require.Nil(t, srv.DoorAddr("lines"))
	srv = runDurable(t, dir)
	require.Equal(t, "1", do(t, clientOf(t, srv), "GET", "doors closed"), "the door's last command is durable")
}

func TestProgramsOpenDoors(t *testing.T) {
	db, err := atomredis.Open(atomredis.Options{Config: map[string]string{"door-lines": "127.0.0.1:0"}})
	require.NoError(t, err)
	defer db.Close()
	p := dial(t, "tcp", db.DoorAddr("lines"))
	require.Equal(t, "hello", p.line())
	require.Equal(t, "OK", p.do("SET k v"))
	r, err := db.Do(t.Context(), "GET", "k")
	require.NoError(t, err)
	require.Equal(t, "v", text(r))
	require.Empty(t, db.DoorAddr("guarded-lines"))
}

func TestServerThatCannotOpenADoorDoesNotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, settings := range [][]string{
		{"door-lines", taken.Addr().String()},
		{"door-lines", "127.0.0.1:0", "door-guarded-lines", taken.Addr().String()},
		{"door-lines", "127.0.0.1:0", "door-lines-user", "nobody"},
		{"door-lines", "127.0.0.1:0", "lines-greeting", "impossible"},
	} {
		srv := prepare(t, settings...)
		require.ErrorContains(t, srv.Start(), "door-", settings)
	}
}
