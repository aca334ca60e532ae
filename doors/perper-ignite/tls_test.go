package perperignite_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// selfSigned returns the files of a certificate and its key, and a client configuration that trusts it.
func selfSigned(t *testing.T) (certFile, keyFile string, trust *tls.Config) {
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
	certFile, keyFile = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	roots := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots.AddCert(cert)
	return certFile, keyFile, &tls.Config{RootCAs: roots}
}

// Incomplete handshakes, and peers without TLS, affect no other peer. A half-closed connection still gets its answers.
func TestTLS(t *testing.T) {
	certFile, keyFile, trust := selfSigned(t)
	s := opened(t, "tls-cert-file", certFile, "tls-key-file", keyFile, "tls-auth-clients", "no", "door-perper-ignite-tls", "yes")
	addr := s.DoorAddr("perper-ignite")
	secure := func() *peer {
		conn, err := tls.Dial("tcp", addr, trust)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(deadline))
		p := &peer{t: t, conn: conn}
		p.hello()
		return p
	}
	bystander := secure()
	bystander.play(step{1052, createExecutions, ""})
	for _, half := range []string{"", "16", "16030102000100", "1603010200010001fc0303"} {
		p := dial(t, s)
		p.write(unhex(t, half))
		bystander.play(step{1001, prefix + keyA + one, ""})
		defer p.conn.Close()
	}
	plain := dial(t, s)
	plain.write(unhex(t, "0e000000 01 0100 0700 0000 02 0c 01000000 04"))
	got, err := io.ReadAll(plain.conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is disconnected")
	require.NotContains(t, string(got), "\x0c\x01\x00\x00\x00", "nobody gets a welcome without TLS")

	half := secure()
	half.send(1000, unhex(t, prefix+keyA))
	require.NoError(t, half.conn.(*tls.Conn).CloseWrite())
	require.Equal(t, unhex(t, "0000"+one), half.message()[8:])
	_, err = half.conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	bystander.play(step{1000, prefix + keyA, one})
}
