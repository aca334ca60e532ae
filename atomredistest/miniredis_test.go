package atomredistest_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
)

// TestMigrationFromMiniredis runs the right-hand sides of the table in docs/miniredis.md, in its order.
func TestMigrationFromMiniredis(t *testing.T) {
	s := atomredistest.RunOptions(t, atomredis.Options{Addr: "127.0.0.1:0",
		Config: map[string]string{"requirepass": "secret"},
		Clock:  atomredistest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret"})
	defer client.Close()
	require.NoError(t, client.Ping(t.Context()).Err())

	s.MustDo(t, "SET", "k", "v")
	text, err := s.MustDo(t, "GET", "k").Text()
	require.NoError(t, err)
	require.Equal(t, "v", text)
	_, err = s.MustDo(t, "GET", "none").Text()
	require.ErrorIs(t, err, atomredis.ErrNull)
	n, err := s.MustDo(t, "EXISTS", "k").Bool()
	require.NoError(t, err)
	require.True(t, n)
	s.MustDo(t, "HSET", "h", "f", "1", "g", "2")
	fields, err := s.MustDo(t, "HGETALL", "h").Map()
	require.NoError(t, err)
	require.Len(t, fields, 2)
	s.MustDo(t, "RPUSH", "l", "a", "b")
	words, err := s.MustDo(t, "LRANGE", "l", 0, -1).Texts()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, words)
	s.MustDo(t, "SADD", "set", "x", "y")
	s.MustDo(t, "ZADD", "z", 1.5, "m")
	s.MustDo(t, "XADD", "stream", "1-1", "f", "v")
	s.MustDo(t, "EXPIRE", "k", 60)
	ttl, err := s.MustDo(t, "TTL", "k").Int()
	require.NoError(t, err)
	require.EqualValues(t, 60, ttl)
	one, err := s.Database(1)
	require.NoError(t, err)
	_, err = one.Do(t.Context(), "SET", "k", "of 1")
	require.NoError(t, err)

	s.CheckKeys(t, map[string]any{"k": "v", "h": map[string]string{"f": "1", "g": "2"}, "l": []string{"a", "b"},
		"set": atomredistest.Set{"x", "y"}, "z": map[string]float64{"m": 1.5},
		"stream": []atomredistest.Entry{{"1-1", []string{"f", "v"}}}})
	s.CheckDatabase(t, 1, map[string]any{"k": "of 1"})
	require.Contains(t, s.Dump(t), `"k": string "v", expires in 1m0s`)

	s.FastForward(time.Minute)
	require.ErrorIs(t, client.Get(t.Context(), "k").Err(), redis.Nil)
	s.SetTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Equal(t, 2030, client.Time(t.Context()).Val().UTC().Year())

	s.FailNext(-1, "", "ERR broken")
	require.EqualError(t, client.Get(t.Context(), "k").Err(), "ERR broken")
	s.ClearFaults()
	require.ErrorIs(t, client.Get(t.Context(), "k").Err(), redis.Nil)

	messages := s.Subscribe(t.Context(), "news")
	require.EqualValues(t, 1, client.Publish(t.Context(), "news", "x").Val())
	for m, err := range messages {
		require.NoError(t, err)
		require.Equal(t, "x", m.Payload)
		break
	}
	stats := s.MustDo(t, "INFO", "stats")
	require.Regexp(t, `total_connections_received:[12]\r\n`, textOf(t, stats))

	s.MustDo(t, "ACL", "SETUSER", "ada", "on", ">lovelace", "~*", "&*", "+@all")
	s.MustDo(t, "ACL", "SETUSER", "default", "off")
	ada := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "ada", Password: "lovelace"})
	defer ada.Close()
	s.MustDo(t, "PFADD", "visitors", "a", "b")
	require.EqualValues(t, 2, ada.PFCount(t.Context(), "visitors").Val())
	stranger := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret"})
	defer stranger.Close()
	require.ErrorContains(t, stranger.Ping(t.Context()).Err(), "WRONGPASS")

	addr := s.Addr()
	require.NoError(t, s.Close())
	require.Error(t, client.Ping(t.Context()).Err())
	atomredistest.RunOptions(t, atomredis.Options{Addr: addr, Config: map[string]string{"requirepass": "secret"}})
	require.NoError(t, client.Ping(t.Context()).Err())
}

func TestMigrationOfServersWithTLSAndOfClusters(t *testing.T) {
	web := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer web.Close()
	known := x509.NewCertPool()
	known.AddCert(web.Certificate())
	s := atomredistest.RunOptions(t, atomredis.Options{Addr: "127.0.0.1:0",
		TLSConfig: &tls.Config{Certificates: web.TLS.Certificates}})
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), TLSConfig: &tls.Config{RootCAs: known}})
	defer client.Close()
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
	s.CheckKeys(t, map[string]any{"k": "v"})

	s = atomredistest.RunOptions(t, atomredis.Options{Addr: "127.0.0.1:0",
		Config: map[string]string{"cluster-enabled": "yes"}})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr()}})
	defer cluster.Close()
	for _, key := range []string{"a", "b", "c"} { // of three slots
		require.NoError(t, cluster.Set(t.Context(), key, "v", 0).Err())
	}
	s.CheckKeys(t, map[string]any{"a": "v", "b": "v", "c": "v"})
	require.ErrorContains(t, cluster.Do(t.Context(), "MGET", "a", "b").Err(), "CROSSSLOT")
}
