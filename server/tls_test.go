package server

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/certificates"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/transport"
)

// ping connects, sends PING and returns the first line of the answer and the server's certificate.
func ping(addr string, conf *tls.Config) (reply string, cert *x509.Certificate, err error) {
	conn, err := tls.Dial("tcp", addr, conf)
	if err != nil {
		return "", nil, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return "", nil, err
	}
	reply, err = bufio.NewReader(conn).ReadString('\n')
	return reply, conn.ConnectionState().PeerCertificates[0], err
}

func TestACertificateNamesTheUser(t *testing.T) {
	ca := certificates.New(t, "ca")
	cert, key := ca.Issue("server", 2)
	port := freeport.Port(t)
	srv := startTestServer(t, Options{}, "tls-port", port, "bind", "127.0.0.1", "tls-cert-file", cert, "tls-key-file", key,
		"tls-ca-cert-file", ca.File, "tls-auth-clients", "optional", "requirepass", "secret")
	do := srv.connect().do
	require.Equal(t, "+OK", do("AUTH secret"))
	for _, user := range []string{"app on +ping", "spiffe://a/b on +ping", "off off +ping"} {
		require.Equal(t, "+OK", do("ACL SETUSER "+user))
	}
	number := int64(2)
	whoami := func(name string, uris ...string) string {
		parsed := make([]*url.URL, len(uris))
		for i, uri := range uris {
			u, err := url.Parse(uri)
			require.NoError(t, err)
			parsed[i] = u
		}
		number++
		client := &tls.Config{RootCAs: ca.Pool}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(ca.Issue(name, number, parsed...))
			require.NoError(t, err)
			client.Certificates = []tls.Certificate{pair}
		}
		reply, _, err := ping("127.0.0.1:"+port, client)
		require.NoError(t, err)
		return strings.TrimSpace(reply)
	}
	const unknown = "-NOAUTH Authentication required."
	for _, c := range []struct {
		setting, name string
		uris          []string
		reply         string
		denied        string // the name in the log
	}{
		{"off", "app", nil, unknown, ""},
		{"CN", "app", nil, "+PONG", ""},
		{"CN", "", nil, unknown, ""},
		{"CN", "nobody", nil, unknown, "nobody"},
		{"CN", "off", nil, unknown, "off"},
		{"URI", "app", nil, unknown, ""},
		{"uri", "x", []string{"urn:x", "spiffe://a/b"}, "+PONG", ""},
		{"URI", "app", []string{"urn:x", "urn:y"}, unknown, "urn:y"},
	} {
		require.Equal(t, "+OK", do("CONFIG SET tls-auth-clients-user "+c.setting))
		require.Equal(t, "+OK", do("ACL LOG RESET"))
		require.Equal(t, c.reply, whoami(c.name, c.uris...), "%v", c)
		log := do("ACL LOG")
		if c.denied == "" {
			require.Equal(t, "[]", log, "%v", c)
		} else {
			require.Contains(t, log, "tls-cert", "%v", c)
			require.Contains(t, log, c.denied, "%v", c)
		}
	}
	require.Contains(t, do("INFO stats"), "acl_access_denied_tls_cert:3")
	require.Contains(t, do("CONFIG SET tls-auth-clients-user DN"), "argument(s) must be one of the following: CN, URI, off")
}

func TestTLS(t *testing.T) {
	ours, others := certificates.New(t, "ours"), certificates.New(t, "others")
	cert, key := ours.Issue("server", 2)
	clientCert, clientKey := ours.Issue("client", 3)
	known, err := tls.LoadX509KeyPair(clientCert, clientKey)
	require.NoError(t, err)
	strangerCert, strangerKey := others.Issue("stranger", 4)
	stranger, err := tls.LoadX509KeyPair(strangerCert, strangerKey)
	require.NoError(t, err)

	conf := config.NewConfig()
	conf.InMemory()
	port := freeport.Port(t)
	for name, value := range map[string]string{"port": "0", "tls-port": port, "bind": "127.0.0.1", "tls-cert-file": cert,
		"tls-key-file":     key,
		"tls-ca-cert-file": ours.File} {
		require.NoError(t, conf.Set(name, value, false))
	}
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	defer srv.Close()
	addr := srv.Addrs()[0].String()

	// try returns the reply to a client with these certificates.
	try := func(certs ...tls.Certificate) (string, error) {
		// The client sends its certificate whichever authorities the server accepts.
		reply, _, err := ping(addr, &tls.Config{RootCAs: ours.Pool,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(certs) == 0 {
					return &tls.Certificate{}, nil
				}
				return &certs[0], nil
			}})
		return reply, err
	}
	for _, c := range []struct {
		auth                    string
		known, stranger, nobody bool
	}{{"yes", true, false, false}, {"optional", true, false, true}, {"no", true, true, true}} {
		require.NoError(t, conf.Set("tls-auth-clients", c.auth, true))
		for name, is := range map[string]struct {
			certs   []tls.Certificate
			welcome bool
		}{"known": {[]tls.Certificate{known}, c.known}, "stranger": {[]tls.Certificate{stranger}, c.stranger},
			"nobody": {nil, c.nobody}} {
			reply, err := try(is.certs...)
			if is.welcome {
				require.NoError(t, err, "%s: %s", c.auth, name)
				require.Equal(t, "+PONG\r\n", reply)
			} else {
				require.Error(t, err, "%s: %s", c.auth, name)
			}
		}
	}

	// New certificates apply to new connections; files that cannot be used change nothing.
	_, before, err := ping(addr, &tls.Config{RootCAs: ours.Pool})
	require.NoError(t, err)
	require.Equal(t, int64(2), before.SerialNumber.Int64())
	require.Error(t, conf.Set("tls-cert-file", filepath.Join(ours.Dir, "missing"), true))
	newCert, newKey := ours.Issue("renewed", 5)
	certAt, _ := config.Assign("tls-cert-file", newCert)
	keyAt, _ := config.Assign("tls-key-file", newKey)
	_, err = conf.SetAll([]config.Assignment{certAt, keyAt}, true)
	require.NoError(t, err)
	_, after, err := ping(addr, &tls.Config{RootCAs: ours.Pool})
	require.NoError(t, err)
	require.Equal(t, int64(5), after.SerialNumber.Int64())

	// Versions.
	require.Error(t, conf.Set("tls-protocols", "TLSv1.1 TLSv1.3", true))
	require.NoError(t, conf.Set("tls-protocols", "TLSv1.3", true))
	_, _, err = ping(addr, &tls.Config{RootCAs: ours.Pool, MaxVersion: tls.VersionTLS12})
	require.Error(t, err)
	_, _, err = ping(addr, &tls.Config{RootCAs: ours.Pool})
	require.NoError(t, err)

	// A client above the limit gets the error encrypted.
	require.Eventually(t, func() bool { return srv.sessions.Clients.Len() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, conf.Set("maxclients", "1", true))
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: ours.Pool})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	reply, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", reply)
	reply, _, err = ping(addr, &tls.Config{RootCAs: ours.Pool})
	require.NoError(t, err)
	require.Equal(t, "-ERR max number of clients reached\r\n", reply)
}

func TestTLSHandshakesHaveALimit(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	conf := config.NewConfig()
	conf.InMemory()
	port := freeport.Port(t)
	for name, value := range map[string]string{"port": "0", "tls-port": port, "bind": "127.0.0.1", "tls-cert-file": cert,
		"tls-key-file": key, "tls-auth-clients": "no"} {
		require.NoError(t, conf.Set(name, value, false))
	}
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{Clock: clock})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	defer srv.Close()
	addr := srv.Addrs()[0].String()
	clients := func(n int64) {
		require.Eventually(t, func() bool { return srv.sessions.Clients.Len() == n }, time.Minute, time.Millisecond)
	}

	done, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: a.Pool})
	require.NoError(t, err)
	defer done.Close()
	pong := func() {
		_, err := done.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		reply := make([]byte, 7)
		_, err = io.ReadFull(done, reply)
		require.NoError(t, err)
		require.Equal(t, "+PONG\r\n", string(reply))
	}
	pong()
	// Nothing, the head of a record, and a record that is shorter than announced.
	for _, sent := range []string{"", "\x16\x03", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"} {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte(sent))
		require.NoError(t, err)
		clients(2)
		clock.Advance(transport.HandshakeTime - time.Millisecond)
		require.EqualValues(t, 2, srv.sessions.Clients.Len())
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		closed := make(chan error, 1)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
		// The limit may begin only after the clock was read.
		for open := true; open; {
			clock.Advance(time.Millisecond)
			select {
			case err := <-closed:
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
				open = false
			case <-time.After(time.Microsecond):
			}
		}
		clients(1)
	}
	clock.Advance(time.Hour)
	pong()
}
