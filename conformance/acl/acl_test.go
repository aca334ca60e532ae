package acl

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/server"
)

// The environment variables of the comparison with a live Redis: the server to compare, by default one in the test's
// own process, and the seed.
const (
	addrVariable = "ATOMREDIS_CONFORMANCE_ADDR"
	seedVariable = "ATOMREDIS_DIFFERENTIAL_SEED"
)

// start starts a server for the length of the test and returns its address.
func start(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conf := config.NewConfig()
	conf.InMemory()
	require.NoError(t, conf.Set("port", "0", false))
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{Listeners: []net.Listener{l}})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return l.Addr().String()
}

func TestUsersMayDoWhatTheyMayDoInRedis(t *testing.T) {
	o := Options{A: oracle.Start(t), B: os.Getenv(addrVariable), Seed: 1, Users: 50, Commands: 1000, KeepGoing: 5}
	if o.B == "" {
		o.B = start(t)
	}
	if s := os.Getenv(seedVariable); s != "" {
		var err error
		o.Seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	var log bytes.Buffer
	o.Log = &log
	found, err := Check(o)
	t.Log(log.String())
	require.NoError(t, err)
	require.Zero(t, found)
}

func TestAServerDecidesAsItself(t *testing.T) {
	var log bytes.Buffer
	a, b := start(t), start(t)
	found, err := Check(Options{A: a, B: b, Seed: 3, Users: 10, Commands: 200, KeepGoing: 1, Log: &log})
	require.NoError(t, err)
	require.Zero(t, found, log.String())
	require.Regexp(t, `^10 users, 200 commands, [1-9]\d+ decisions from seed 3, .* 0 differences\n$`, log.String())
}
