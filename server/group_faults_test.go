package server

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/certificates"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// A server whose disk is full stops participating, keeps running and reports the reason; when there is room it takes
// part again.
func TestAServerOfAGroupOnAFullDisk(t *testing.T) {
	t.Parallel()
	full := map[*groupNode]*atomic.Bool{}
	g := &testGroup{t: t}
	for range 3 {
		n := &groupNode{addr: freeport.Addr(t), dir: "/db", g: g}
		full[n] = new(atomic.Bool)
		n.fs = crashfs.Full(crashfs.New(), full[n])
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
