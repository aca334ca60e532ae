package server

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/certificates"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// tlsServer starts a server that listens only with TLS, at addr.
func tlsServer(t *testing.T, o Options, settings ...string) (srv *testServer, addr string) {
	t.Helper()
	port := freeport.Port(t)
	srv = newTestServer(t, o, append(settings, "bind", "127.0.0.1", "tls-port", port)...)
	require.NoError(t, srv.Start())
	return srv, "127.0.0.1:" + port
}

// copyFile gives a file the content of another one, as a tool that renews certificates does: in place, or by renaming.
func copyFile(t *testing.T, from, to string, byRenaming bool) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	if !byRenaming {
		require.NoError(t, os.WriteFile(to, content, 0o600))
		return
	}
	require.NoError(t, os.WriteFile(to+".new", content, 0o600))
	require.NoError(t, os.Rename(to+".new", to))
}

func TestAuthoritiesThatChangeAreReadAgain(t *testing.T) {
	ours, others := certificates.New(t, "ours"), certificates.New(t, "others")
	cert, key := ours.Issue("server", 2)
	clientCert, clientKey := others.Issue("client", 3)
	client, err := tls.LoadX509KeyPair(clientCert, clientKey)
	require.NoError(t, err)
	for _, directive := range []string{"tls-ca-cert-file", "tls-ca-cert-dir"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "ca.crt")
		copyFile(t, ours.File, file, false)
		value := file
		if directive == "tls-ca-cert-dir" {
			value = dir
		}
		srv, addr := tlsServer(t, Options{}, "tls-cert-file", cert, "tls-key-file", key, directive, value)
		_, _, err = ping(addr, &tls.Config{RootCAs: ours.Pool, Certificates: []tls.Certificate{client}})
		require.Error(t, err)
		copyFile(t, others.File, file, false)
		srv.RereadFiles()
		reply, _, err := ping(addr, &tls.Config{RootCAs: ours.Pool, Certificates: []tls.Certificate{client}})
		require.NoError(t, err)
		require.Equal(t, "+PONG\r\n", reply)
	}
}

func TestAnACLFileThatChangesIsReadAgain(t *testing.T) {
	file := writeFile(t, "users.acl", "user bob on >x ~* +@all\n")
	srv := startTestServer(t, Options{}, "aclfile", file)
	c := srv.connect()
	require.Equal(t, "+OK", c.do("ACL SETUSER carol on"))
	srv.RereadFiles()
	require.Contains(t, c.do("ACL USERS"), "carol", "the file is as it was, and what is not in it stays")
	require.NoError(t, os.WriteFile(file, []byte("user bob on >x ~* +@all\nuser dave on nopass\n"), 0o600))
	srv.RereadFiles()
	require.Contains(t, c.do("ACL USERS"), "dave")
	require.NotContains(t, c.do("ACL USERS"), "carol")
	require.NoError(t, os.WriteFile(file, []byte("user bob nonsense\n"), 0o600))
	srv.RereadFiles()
	require.Contains(t, c.do("ACL USERS"), "dave", "what cannot be used changes nothing")
	require.NoError(t, os.Remove(file))
	srv.RereadFiles()
	require.Contains(t, c.do("ACL USERS"), "dave")
}

func TestAReplicaFollowsWithTLS(t *testing.T) {
	ours, others := certificates.New(t, "ours"), certificates.New(t, "others")
	cert, key := ours.Issue("server", 2)
	replicaCert, replicaKey := ours.Issue("replica", 3)
	master, addr := tlsServer(t, Options{}, "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", ours.File)
	_, port, _ := net.SplitHostPort(addr)
	m := master.connect()
	require.Equal(t, "+OK", m.do("SET a b"))
	replica := startTestServer(t, Options{}, "tls-cert-file", cert, "tls-key-file", key, "tls-client-cert-file",
		replicaCert, "tls-client-key-file", replicaKey,
		"tls-ca-cert-file", ours.File, "tls-replication", "yes", "replica-announce-ip", "192.0.2.7",
		"replica-announce-port", "7777",
		"bind-source-addr", "127.0.0.1", "replica-priority", "3", "replica-announced", "no")
	r := replica.connect()
	require.Equal(t, "+OK", r.do("REPLICAOF 127.0.0.1 "+port))
	r.waitFor("INFO replication", "master_link_status:up")
	require.Equal(t, "b", r.do("GET a"))
	require.Contains(t, r.do("INFO replication"), "slave_priority:3\r\nslave_read_only:1\r\nreplica_announced:0")
	m.waitFor("INFO replication", "slave0:ip=192.0.2.7,port=7777,state=online")

	stranger := startTestServer(t, Options{}, "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file",
		others.File, "tls-replication", "yes")
	s := stranger.connect()
	require.Equal(t, "+OK", s.do("REPLICAOF 127.0.0.1 "+port))
	s.waitFor("INFO replication", "certificate signed by unknown authority")
}

func TestMigrateUsesTLS(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	settings := []string{"tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", a.File}
	target, addr := tlsServer(t, Options{}, settings...)
	_, port, _ := net.SplitHostPort(addr)
	for _, secure := range []string{"yes", "no"} {
		c := startTestServer(t, Options{}, append(settings, "tls-cluster", secure)...).connect()
		require.Equal(t, "+OK", c.do("SET k"+secure+" v"))
		reply := c.do("MIGRATE 127.0.0.1 " + port + " k" + secure + " 0 1000")
		require.Equal(t, secure == "yes", reply == "+OK", reply)
	}
	require.Equal(t, "1", target.connect().do("EXISTS kyes kno"))
}
