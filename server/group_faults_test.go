package server

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/certificates"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/persist/disk"
)

// A server whose disk is full stops participating, keeps running and reports the reason; when there is room it takes
// part again.
func TestAServerOfAGroupOnAFullDisk(t *testing.T) {
	t.Parallel()
	g, full := startGroupOnDisks(t, crashfs.Full)
	for _, leads := range []bool{true, false} {
		victim := g.settled()
		if !leads {
			victim = g.followers()[0]
		}
		require.Equal(t, "+OK", g.leader().client().do("SET before x"))
		victim.client().waitFor("GET before", "x")
		full[victim].Store(true)
		if reply := g.leader().client().do("SET key x"); leads {
			require.NotEqual(t, "+OK", reply)
		} else {
			require.Equal(t, "+OK", reply)
		}
		victim.waitForState("failed")
		// A reply that was still delayed when the lead was lost is not sent: the connection is closed.
		require.Eventually(t, func() bool {
			return strings.Contains(victim.client().do("PING"), "No space left on device")
		}, testTimeout, 5*time.Millisecond)
		require.Equal(t, "alive", victim.client().do("ECHO alive"))
		victim.client().waitFor("INFO replication", "raft_problem:the journal cannot be written: ")
		require.Contains(t, victim.client().do("INFO replication"), "no space left on device")
		leader := g.leader()
		require.NotSame(t, victim, leader)
		require.Equal(t, "+OK", leader.client().do("SET after x"))
		leader.client().waitFor("RAFT.CHECK", victim.addr+" takes no part: the journal cannot be written")
		victim.kill()
		full[victim].Store(false)
		victim.start()
		victim.client().waitFor("GET after", "x")
	}
}

// startGroupOnDisks starts a group of three servers on disks that fail while a flag is set.
func startGroupOnDisks(t *testing.T, failing func(disk.FS, *atomic.Bool) disk.FS) (*testGroup, map[*groupNode]*atomic.Bool) {
	g, fails := &testGroup{t: t}, map[*groupNode]*atomic.Bool{}
	for range 3 {
		n := &groupNode{addr: freeport.Addr(t), dir: "/db", g: g}
		fails[n] = new(atomic.Bool)
		n.fs = failing(crashfs.New(), fails[n])
		g.nodes = append(g.nodes, n)
	}
	for _, n := range g.nodes {
		n.start()
	}
	t.Cleanup(func() {
		for _, n := range g.nodes {
			n.Abandon()
		}
	})
	g.settled()
	return g, fails
}

// A leader that refuses changes because its checkpoints fail hands the lead to a server that executes them. Without another one
// it leads on, and when there is room again it executes changes.
func TestALeaderWhoseCheckpointsFailHandsTheLeadOver(t *testing.T) {
	t.Parallel()
	g, fails := startGroupOnDisks(t, func(fs disk.FS, full *atomic.Bool) disk.FS {
		return crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full.Load() && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "/checkpoint/") {
				return syscall.ENOSPC
			}
			return nil
		}))
	})
	replies := func(command, want string) { // at the leader, which may change
		require.Eventually(t, func() bool { return strings.HasPrefix(g.leader().client().do(command), want) }, testTimeout,
			10*time.Millisecond)
	}
	saveFails := func(n *groupNode) {
		require.Eventually(t, func() bool {
			n.client().do("BGSAVE") // again, if it is refused
			return strings.Contains(n.client().do("INFO persistence"), "storage_last_error:checkpoint: ")
		}, testTimeout, 10*time.Millisecond)
	}
	victim := g.settled()
	require.Equal(t, "+OK", victim.client().do("SET key 1"))
	fails[victim].Store(true)
	saveFails(victim)
	require.Eventually(t, func() bool { return g.leader() != victim }, testTimeout, 10*time.Millisecond)
	replies("SET key 2", "+OK")
	require.Eventually(t, func() bool {
		return strings.Contains(g.leader().client().do("RAFT.CHECK"), victim.addr+" refuses changes: checkpoint: ")
	}, testTimeout, 10*time.Millisecond)

	for _, n := range g.nodes {
		fails[n].Store(true)
	}
	for _, n := range g.nodes {
		saveFails(n)
	}
	replies("SET key 3", "-MISCONF")
	for _, n := range g.nodes {
		fails[n].Store(false)
	}
	replies("SET key 3", "+OK")
	replies("RAFT.CHECK", "[]")
}

// With tls-replication only servers with a certificate of the group's authority are accepted.
func TestTheServersOfAGroupKnowEachOtherByCertificates(t *testing.T) {
	t.Parallel()
	ours, others := certificates.New(t, "ours"), certificates.New(t, "others")
	cert, key := ours.Issue("server", 2)
	g := startGroup(t, 3, "tls-replication=yes", "tls-cert-file="+cert, "tls-key-file="+key,
		"tls-ca-cert-file="+ours.File)
	leader := g.settled()
	require.Equal(t, "+OK", leader.client().do("SET key value"))
	g.followers()[0].client().waitFor("GET key", "value")

	ask := func(conn net.Conn) (string, error) {
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
		if _, err := io.WriteString(conn, "Q{}\n"); err != nil {
			return "", err
		}
		answer, err := io.ReadAll(conn)
		return string(answer), err
	}
	plain, err := net.Dial("tcp", leader.addr)
	require.NoError(t, err)
	answer, _ := ask(plain)
	require.NotContains(t, answer, "Leader")
	strangerCert, strangerKey := others.Issue("stranger", 3)
	stranger, err := tls.LoadX509KeyPair(strangerCert, strangerKey)
	require.NoError(t, err)
	known, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		with []tls.Certificate
		ok   bool
	}{{"without", nil, false}, {"of others", []tls.Certificate{stranger}, false}, {"ours", []tls.Certificate{known}, true}} {
		conn, err := tls.Dial("tcp", leader.addr, &tls.Config{RootCAs: ours.Pool, Certificates: c.with})
		require.NoError(t, err, c.name) // with TLS 1.3 the error comes later
		answer, err := ask(conn)
		require.Equal(t, c.ok, strings.Contains(answer, leader.addr), "%s: %s %v", c.name, answer, err)
	}
}

// A server accepts clients before it has read its data and joined its group. None of their commands fails because of that.
func TestCommandsWhileAServerOfAGroupStarts(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cluster-enabled=no", "cluster-enabled=yes"} {
		t.Run(mode, func(t *testing.T) { testWhileStarting(t, mode) })
	}
}

// endsConnection has the commands after which a connection has no further replies of commands: they are not tried while a
// server starts.
var endsConnection = map[string]bool{"monitor": true, "quit": true, "shutdown": true}

func testWhileStarting(t *testing.T, mode string) {
	fs := crashfs.New()
	g := &testGroup{t: t, settings: []string{mode, "replicated-proxy=yes", "enable-debug-command=yes"}}
	n := &groupNode{addr: freeport.Addr(t), dir: "/db", g: g, fs: fs}
	g.nodes = []*groupNode{n}
	n.start()
	require.Equal(t, "+OK", g.settled().client().do("SET a 1"))
	n.kill()

	reads, goOn := make(chan struct{}), make(chan struct{})
	reached := sync.OnceFunc(func() { close(reads) })
	n.fs = crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead && strings.Contains(op.Path, "/journal/") {
			reached()
			<-goOn
		}
		return nil
	}))
	srv, l := n.prepare()
	defer srv.Close()
	srv.listeners.Grace = time.Millisecond
	started := make(chan error, 1)
	go func() { started <- srv.Start() }()
	<-reads
	for cmd := range srv.table.All {
		if cmd.Do == nil || endsConnection[cmd.Name] {
			continue
		}
		nc, err := transcript.Dial(l.Addr().String())
		require.NoError(t, err)
		c := newTestClient(t, nc)
		args := strings.Split(cmd.Name, "|")
		for len(args) < max(cmd.Arity, -cmd.Arity) {
			args = append(args, "1")
		}
		require.NotContains(t, c.do(strings.Join(args, " ")), "internal error", cmd.Name)
		c.Close()
	}
	nc, err := transcript.Dial(l.Addr().String())
	require.NoError(t, err)
	c := newTestClient(t, nc)
	require.Contains(t, c.do("GET a"), "-LOADING ")
	require.Contains(t, c.do("SET a 2"), "-LOADING ")
	require.Contains(t, c.do("RAFT.STATUS"), "-LOADING ")
	require.Contains(t, c.do("ROLE"), `"slave"`)
	require.Contains(t, c.do("INFO replication"), "raft_state:joining")
	if mode == "cluster-enabled=yes" {
		require.Contains(t, c.do("CLUSTER NODES"), "myself,slave - 0 0 0 connected")
		require.Contains(t, c.do("CLUSTER SHARDS"), "replica")
		require.Equal(t, "[]", c.do("CLUSTER SLOTS"))
	}
	close(goOn)
	require.NoError(t, <-started)
}
