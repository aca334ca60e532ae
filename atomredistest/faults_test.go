package atomredistest_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
)

func TestFaultsThatCannotHappenFailTheTest(t *testing.T) {
	r := &recorder{TB: t}
	s := atomredistest.Run(r)
	for _, name := range []string{"GETT", "CONFIG GTE", "GET X", "CONFIG GET maxmemory", " ", "config|x"} {
		s.FailNext(1, name, "ERR never")
		require.Len(t, r.errors, 1, name)
		require.Contains(t, r.errors[0], "there is no command")
		r.errors = nil
	}
	for _, f := range []atomredistest.Fault{{Command: "GET"}, {Reply: "ERR", Percent: -1}, {Reply: "ERR", Percent: 101},
		{Reply: "ERR", Times: -1}} {
		s.AddFault(f)
		require.Len(t, r.errors, 1)
		r.errors = nil
	}
	do(t, s.DB, "GET k")
	for _, name := range []string{"CONFIG GET", "config|get", "config get", " Config  Get ", "CONFIG", "config"} {
		s.FailNext(1, name, "ERR once")
		require.Empty(t, r.errors)
		_, err := try(t, s.DB, "CONFIG GET port")
		require.EqualError(t, err, "ERR once", name)
		do(t, s.DB, "CONFIG GET port")
	}
	s.FailNext(1, "CONFIG SET", "ERR once")
	do(t, s.DB, "CONFIG GET port")
}

func TestFaultsConcernKeysAndClients(t *testing.T) {
	s := atomredistest.Run(t)
	s.AddFault(atomredistest.Fault{Key: "user:*", Reply: "ERR no users"})
	for c, fails := range map[string]bool{"GET user:1": true, "GET x": false, "MGET a user:2": true,
		"MSET a 1 b 2": false, "MSET a 1 user:b 2": true,
		"XREAD STREAMS user:s 0": true, "PING": false, "SET x user:1": false, "EVAL return 1 1 user:x": true} {
		args := strings.Fields(c)
		if args[0] == "EVAL" {
			args = []string{"EVAL", "return 1", "1", "user:x"}
		}
		_, err := s.Do(t.Context(), args)
		if fails {
			require.EqualError(t, err, "ERR no users", c)
		} else {
			require.NoError(t, ignoreNull(err), c)
		}
	}
	s.ClearFaults()
	s.AddFault(atomredistest.Fault{Command: "GET", Key: "a", Reply: "ERR both", Times: 1})
	do(t, s.DB, "SET a v")
	do(t, s.DB, "GET b")
	_, err := try(t, s.DB, "GET a")
	require.EqualError(t, err, "ERR both")
	do(t, s.DB, "GET a")

	named := func(name string) *redis.Client {
		c := redis.NewClient(&redis.Options{ClientName: name, MaxRetries: -1,
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }})
		t.Cleanup(func() { c.Close() })
		return c
	}
	one, two := named("one"), named("two")
	s.AddFault(atomredistest.Fault{Client: "one", Reply: "ERR not you"})
	require.NoError(t, two.Ping(t.Context()).Err())
	require.EqualError(t, one.Ping(t.Context()).Err(), "ERR not you")
	do(t, s.DB, "PING")
	s.ClearFaults()
	s.AddFault(atomredistest.Fault{Client: two.ClientID(t.Context()).String()[len("client id: "):],
		Reply: "ERR not you either"})
	require.NoError(t, one.Ping(t.Context()).Err())
	require.EqualError(t, two.Ping(t.Context()).Err(), "ERR not you either")
	s.AddFault(atomredistest.Fault{Client: "@embedded:0", Command: "ECHO", Reply: "ERR nobody"})
	_, err = try(t, s.DB, "ECHO x")
	require.EqualError(t, err, "ERR nobody")
}

func ignoreNull(err error) error {
	if err == atomredis.ErrNull {
		return nil
	}
	return err
}

func TestFaultsConcernAPercentage(t *testing.T) {
	for percent, want := range map[float64]string{0: "xxxxxxxxxx", 100: "xxxxxxxxxx", 50: ".x.x.x.x.x", 30: "...x..x..x",
		10: ".........x", 0.5: ".........."} {
		s := atomredistest.Run(t)
		s.AddFault(atomredistest.Fault{Command: "GET", Percent: percent, Reply: "ERR x"})
		got := ""
		for range 10 {
			do(t, s.DB, "PING") // does not count
			if _, err := try(t, s.DB, "GET k"); err != nil {
				got += "x"
			} else {
				got += "."
			}
		}
		require.Equal(t, want, got, "%v", percent)
	}
	s := atomredistest.Run(t)
	s.AddFault(atomredistest.Fault{Command: "GET", Percent: 50, Times: 2, Reply: "ERR x"})
	failed := 0
	for range 100 {
		if _, err := try(t, s.DB, "GET k"); err != nil {
			failed++
		}
	}
	require.Equal(t, 2, failed)
}

func TestCommandsHaveALatencyOfTheirOwn(t *testing.T) {
	s := atomredistest.Run(t)
	c := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }})
	defer c.Close()
	s.AddFault(atomredistest.Fault{Command: "GET", Key: "slow", Latency: time.Hour})
	for name, get := range map[string]func(ctx context.Context, key string) error{
		"Do":       func(ctx context.Context, key string) error { _, err := s.Do(ctx, "GET", key); return err },
		"a client": func(ctx context.Context, key string) error { return ignoreNil(c.Get(ctx, key).Err()) },
		"a DoMany": func(ctx context.Context, key string) error {
			_, err := s.DoMany(ctx, atomredis.Args{"PING"}, atomredis.Args{"GET", key})
			return err
		},
		"pipelines": func(ctx context.Context, key string) error {
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); p.Get(ctx, key); return nil })
			return ignoreNil(err)
		},
	} {
		require.NoError(t, get(t.Context(), "quick"), name)
		soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		timeout, ok := errors.AsType[net.Error](get(soon, "slow"))
		require.True(t, ok && timeout.Timeout(), name)
		cancel()
	}
	do(t, s.DB, "CONFIG RESETSTAT")
	done := make(chan error)
	go func() {
		_, err := s.Do(t.Context(), "GET", "slow")
		done <- err
	}()
	require.Eventually(t, func() bool {
		return strings.Contains(do1(t, s, "INFO", "commandstats"),
			"cmdstat_get:calls=1")
	}, time.Minute, time.Millisecond)
	s.ClearFaults() // ends the wait
	require.NoError(t, <-done)

	s.AddFault(atomredistest.Fault{Command: "SET", Latency: time.Millisecond, Reply: "ERR late and wrong", Times: 1})
	began := time.Now()
	_, err := try(t, s.DB, "SET k v")
	require.EqualError(t, err, "ERR late and wrong")
	require.GreaterOrEqual(t, time.Since(began), time.Millisecond)
}

func ignoreNil(err error) error {
	if err == redis.Nil {
		return nil
	}
	return err
}
