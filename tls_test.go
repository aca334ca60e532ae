package atomredis_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

func TestClientsUseTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer web.Close()
	known := x509.NewCertPool()
	known.AddCert(web.Certificate())
	db := open(t, atomredis.Options{Addr: "127.0.0.1:0", TLSConfig: &tls.Config{Certificates: web.TLS.Certificates}})
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: db.Addr(), Protocol: protocol, TLSConfig: &tls.Config{RootCAs: known}})
		defer client.Close()
		require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
		require.Equal(t, "v", text(t, do(t, db, "GET", "k")))
		sub := client.Subscribe(t.Context(), "news")
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		require.NoError(t, client.Publish(t.Context(), "news", "hello").Err())
		message, err := sub.ReceiveMessage(t.Context())
		require.NoError(t, err)
		require.Equal(t, "hello", message.Payload)
		require.NoError(t, sub.Close())
	}
	stranger := redis.NewClient(&redis.Options{Addr: db.Addr(), TLSConfig: &tls.Config{}, MaxRetries: -1})
	defer stranger.Close()
	require.Error(t, stranger.Ping(t.Context()).Err())
	plain := redis.NewClient(&redis.Options{Addr: db.Addr(), MaxRetries: -1})
	defer plain.Close()
	require.Error(t, plain.Ping(t.Context()).Err())
}
