package tlsconfig

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/certificates"
)

func TestTLSNeedsWhatItVerifiesWith(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	for name, s := range map[string]config.TLSSettings{
		"no certificate": {},
		"no authority":   {CertFile: cert, KeyFile: key, AuthClients: tls.RequireAndVerifyClientCert},
		"no file": {CertFile: cert, KeyFile: key, AuthClients: tls.RequireAndVerifyClientCert,
			CAFile: cert + "x"},
		"a file without one": {CertFile: cert, KeyFile: key, AuthClients: tls.RequireAndVerifyClientCert, CAFile: key},
		"a directory without": {CertFile: cert, KeyFile: key, AuthClients: tls.RequireAndVerifyClientCert,
			CADir: t.TempDir()},
	} {
		_, err := load(&s)
		require.Error(t, err, name)
	}
	_, err := load(&config.TLSSettings{CertFile: cert, KeyFile: key, AuthClients: tls.RequireAndVerifyClientCert,
		CADir: a.Dir})
	require.NoError(t, err)
}

// fixture is a TLS whose directives and clock the test changes.
type fixture struct {
	*TLS
	conf  *config.Config
	clock *engine.ManualClock
	log   strings.Builder
}

func start(t *testing.T, settings ...string) *fixture {
	f := &fixture{conf: config.NewConfig(), clock: engine.NewManualClock(time.UnixMilli(1e12))}
	f.conf.InMemory()
	for i := 0; i < len(settings); i += 2 {
		require.NoError(t, f.conf.Set(settings[i], settings[i+1], false))
	}
	f.TLS = New(f.conf, f.clock, slog.New(slog.NewTextHandler(&f.log, nil)))
	f.Follow()
	require.NoError(t, f.Load(f.conf.Get()))
	f.Watch()
	t.Cleanup(f.Close)
	return f
}

// handshake connects a client, and returns the state of its connection.
func (f *fixture) handshake(client *tls.Config) (tls.ConnectionState, error) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		server := tls.Server(there, f.Server())
		if server.Handshake() != nil {
			there.Close()
		}
	}()
	client.ServerName = "127.0.0.1"
	conn := tls.Client(here, client)
	err := conn.Handshake()
	return conn.ConnectionState(), err
}

func TestOnlyConfiguredCiphersAreUsed(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	f := start(t, "tls-port", "1", "tls-cert-file", cert, "tls-key-file", key, "tls-auth-clients", "no",
		"tls-ciphers", "ECDHE+AES256", "tls-protocols", "TLSv1.2", "tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
	st, err := f.handshake(&tls.Config{RootCAs: a.Pool})
	require.NoError(t, err)
	require.Equal(t, uint16(tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384), st.CipherSuite)
	short := func() *tls.Config {
		return &tls.Config{RootCAs: a.Pool, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
	}
	_, err = f.handshake(short())
	require.Error(t, err)
	for _, refused := range [][2]string{{"tls-ciphers", "DHE"}, {"tls-protocols", "TLSv1.3"}, {"tls-protocols", "x"},
		{"tls-replication", "yes"}} {
		require.Equal(t, ErrUpdate, f.conf.Set(refused[0], refused[1], true), refused)
	}
	require.NoError(t, f.conf.Set("tls-ciphers", "ECDHE+AES128", true))
	_, err = f.handshake(short())
	require.NoError(t, err)
}

func TestOnlyConfiguredGroupsAreUsed(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	f := start(t, "tls-port", "1", "tls-cert-file", cert, "tls-key-file", key, "tls-auth-clients", "no",
		"tls-groups", "P-384:secp521r1")
	handshake := func(groups ...tls.CurveID) (tls.CurveID, error) {
		st, err := f.handshake(&tls.Config{RootCAs: a.Pool, CurvePreferences: groups})
		return st.CurveID, err
	}
	// Only one group, so that the server does not request another, which would need a pipe with a buffer.
	group, err := handshake(tls.CurveP384)
	require.NoError(t, err)
	require.Equal(t, tls.CurveP384, group)
	_, err = handshake(tls.X25519, tls.CurveP256)
	require.Error(t, err)
	for _, refused := range []string{"x448", "P-256:none", "?none", ":"} {
		require.Equal(t, ErrUpdate, f.conf.Set("tls-groups", refused, true), refused)
	}
	require.NoError(t, f.conf.Set("tls-groups", "x25519", true))
	group, err = handshake(tls.X25519, tls.CurveP256)
	require.NoError(t, err)
	require.Equal(t, tls.X25519, group)
	require.NoError(t, f.conf.Set("tls-groups", "", true))
	group, err = handshake()
	require.NoError(t, err)
	require.Equal(t, tls.X25519MLKEM768, group)
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
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	f := start(t, "tls-port", "1", "tls-cert-file", cert, "tls-key-file", key, "tls-auth-clients", "no")
	serial := func() int64 {
		t.Helper()
		st, err := f.handshake(&tls.Config{RootCAs: a.Pool})
		require.NoError(t, err)
		return st.PeerCertificates[0].SerialNumber.Int64()
	}
	require.Equal(t, int64(2), serial())
	for i, again := range []func(){
		func() { f.clock.Advance(time.Minute) },
		f.Reread, // SIGHUP
		func() { require.NoError(t, f.conf.Set("tls-cert-file", cert, true)) },
		func() { require.NoError(t, f.conf.Set("tls-key-file", key, true)) },
	} {
		before, next := int64(2+i), int64(3+i)
		newCert, newKey := a.Issue("next", next)
		copyFile(t, newCert, cert, i%2 == 0)
		require.Equal(t, before, serial(), "nothing happens by itself at once")
		f.clock.Advance(time.Minute) // the key is still the old one
		f.Reread()
		require.Equal(t, before, serial(), "what does not fit is refused")
		require.Error(t, f.conf.Set("tls-cert-file", cert, true))
		require.NoError(t, f.conf.Set("timeout", "7", true), "what has nothing to do with it")
		copyFile(t, newKey, key, i%2 == 0)
		again()
		require.Eventually(t, func() bool { return serial() == next }, 30*time.Second, time.Millisecond, i)
	}
	require.NoError(t, os.Remove(cert))
	f.Reread()
	f.Reread()
	require.Equal(t, int64(6), serial(), "the last one stays")
	f.Close() // no file is being read, so the log may be read
	require.Equal(t, 1, strings.Count(f.log.String(), "no such file"), "which is said once")
}

// While nothing uses TLS there is no timer, which a clock that advances by years would have to run often.
func TestFilesAreWatchedOnlyWhileTheyAreUsed(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	f := start(t, "tls-cert-file", cert, "tls-key-file", key, "tls-auth-clients", "no")
	require.False(t, f.Loaded())
	require.Nil(t, f.timer)
	require.NoError(t, f.conf.Set("tls-port", "1", true))
	require.True(t, f.Loaded())
	require.NotNil(t, f.timer)
}
