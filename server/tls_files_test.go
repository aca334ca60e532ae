package server

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
)

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tlsServer starts a server that only listens with TLS, at addr.
func tlsServer(t *testing.T, log *lockedBuffer, o Options, settings ...string) (srv *testServer, addr string) {
	t.Helper()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(probe.Addr().String())
	require.NoError(t, probe.Close())
	srv = newTestServer(t, o, append(settings, "bind", "127.0.0.1", "tls-port", port)...)
	if log != nil {
		srv.log = slog.New(slog.NewTextHandler(log, nil))
	}
	require.NoError(t, srv.Start())
	return srv, "127.0.0.1:" + port
}

func TestOnlyConfiguredCiphersAreUsed(t *testing.T) {
	a := newAuthority(t, "a")
	cert, key := a.issue("server", 2)
	srv, addr := tlsServer(t, nil, Options{}, "tls-cert-file", cert, "tls-key-file", key, "tls-auth-clients", "no",
		"tls-ciphers", "ECDHE+AES256", "tls-protocols", "TLSv1.2", "tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: a.pool})
	require.NoError(t, err)
	require.Equal(t, uint16(tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384), conn.ConnectionState().CipherSuite)
	require.NoError(t, conn.Close())
	_, err = tls.Dial("tcp", addr, &tls.Config{RootCAs: a.pool,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
	require.Error(t, err)
	for _, refused := range [][2]string{{"tls-ciphers", "DHE"}, {"tls-protocols", "TLSv1.3"}, {"tls-protocols", "x"},
		{"tls-replication", "yes"}} {
		require.Equal(t, errTLSUpdate, srv.config.Set(refused[0], refused[1], true), refused)
	}
	require.NoError(t, srv.config.Set("tls-ciphers", "ECDHE+AES128", true))
	_, err = tls.Dial("tcp", addr, &tls.Config{RootCAs: a.pool,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
	require.NoError(t, err)
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

func TestCertificatesThatChangeAreReadAgain(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	a := newAuthority(t, "a")
	cert, key := a.issue("server", 2)
	var log lockedBuffer
	srv, addr := tlsServer(t, &log, Options{Clock: clock}, "tls-cert-file", cert, "tls-key-file", key,
		"tls-auth-clients", "no")
	serial := func() int64 {
		t.Helper()
		_, cert, err := ping(addr, &tls.Config{RootCAs: a.pool})
		require.NoError(t, err)
		return cert.SerialNumber.Int64()
	}
	require.Equal(t, int64(2), serial())
	for i, again := range []func(){
		func() { clock.Advance(time.Minute) },
		srv.RereadFiles, // SIGHUP
		func() { require.NoError(t, srv.config.Set("tls-cert-file", cert, true)) },
		func() { require.NoError(t, srv.config.Set("tls-key-file", key, true)) },
	} {
		before, next := int64(2+i), int64(3+i)
		newCert, newKey := a.issue("next", next)
		copyFile(t, newCert, cert, i%2 == 0)
		require.Equal(t, before, serial(), "nothing happens by itself at once")
		clock.Advance(time.Minute) // the key is still the old one
		srv.RereadFiles()
		require.Equal(t, before, serial(), "what does not fit is refused")
		require.Error(t, srv.config.Set("tls-cert-file", cert, true))
		require.NoError(t, srv.config.Set("timeout", "7", true), "what has nothing to do with it")
		copyFile(t, newKey, key, i%2 == 0)
		again()
		require.Eventually(t, func() bool { return serial() == next }, testTimeout, time.Millisecond, i)
	}
	require.NoError(t, os.Remove(cert))
	srv.RereadFiles()
	srv.RereadFiles()
	require.Equal(t, int64(6), serial(), "the last one stays")
	require.Equal(t, 1, strings.Count(log.String(), "no such file"), "which is said once")
}

func TestAuthoritiesThatChangeAreReadAgain(t *testing.T) {
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	cert, key := ours.issue("server", 2)
	clientCert, clientKey := others.issue("client", 3)
	client, err := tls.LoadX509KeyPair(clientCert, clientKey)
	require.NoError(t, err)
	for _, directive := range []string{"tls-ca-cert-file", "tls-ca-cert-dir"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "ca.crt")
		copyFile(t, ours.file, file, false)
		value := file
		if directive == "tls-ca-cert-dir" {
			value = dir
		}
		srv, addr := tlsServer(t, nil, Options{}, "tls-cert-file", cert, "tls-key-file", key, directive, value)
		_, _, err = ping(addr, &tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{client}})
		require.Error(t, err)
		copyFile(t, others.file, file, false)
		srv.RereadFiles()
		reply, _, err := ping(addr, &tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{client}})
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
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	cert, key := ours.issue("server", 2)
	replicaCert, replicaKey := ours.issue("replica", 3)
	master, addr := tlsServer(t, nil, Options{}, "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", ours.file)
	_, port, _ := net.SplitHostPort(addr)
	m := master.connect()
	require.Equal(t, "+OK", m.do("SET a b"))
	replica := startTestServer(t, Options{}, "tls-cert-file", cert, "tls-key-file", key, "tls-client-cert-file",
		replicaCert, "tls-client-key-file", replicaKey,
		"tls-ca-cert-file", ours.file, "tls-replication", "yes", "replica-announce-ip", "192.0.2.7",
		"replica-announce-port", "7777",
		"bind-source-addr", "127.0.0.1", "replica-priority", "3", "replica-announced", "no")
	r := replica.connect()
	require.Equal(t, "+OK", r.do("REPLICAOF 127.0.0.1 "+port))
	r.waitFor("INFO replication", "master_link_status:up")
	require.Equal(t, "b", r.do("GET a"))
	require.Contains(t, r.do("INFO replication"), "slave_priority:3\r\nslave_read_only:1\r\nreplica_announced:0")
	m.waitFor("INFO replication", "slave0:ip=192.0.2.7,port=7777,state=online")

	stranger := startTestServer(t, Options{}, "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file",
		others.file, "tls-replication", "yes")
	s := stranger.connect()
	require.Equal(t, "+OK", s.do("REPLICAOF 127.0.0.1 "+port))
	s.waitFor("INFO replication", "certificate signed by unknown authority")
}

func TestMigrateUsesTLS(t *testing.T) {
	a := newAuthority(t, "a")
	cert, key := a.issue("server", 2)
	settings := []string{"tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", a.file}
	target, addr := tlsServer(t, nil, Options{}, settings...)
	_, port, _ := net.SplitHostPort(addr)
	for _, secure := range []string{"yes", "no"} {
		c := startTestServer(t, Options{}, append(settings, "tls-cluster", secure)...).connect()
		require.Equal(t, "+OK", c.do("SET k"+secure+" v"))
		reply := c.do("MIGRATE 127.0.0.1 " + port + " k" + secure + " 0 1000")
		require.Equal(t, secure == "yes", reply == "+OK", reply)
	}
	require.Equal(t, "1", target.connect().do("EXISTS kyes kno"))
}
