package door_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/server"
)

// prepare makes a server whose only listeners are doors. settings are directives and their values.
func prepare(t *testing.T, settings ...string) *server.Server {
	return prepareAt(t, nil, settings...)
}

// prepareAt is prepare with a clock; nil means the system's.
func prepareAt(t *testing.T, clock engine.Clock, settings ...string) *server.Server {
	conf := config.NewConfig()
	conf.InMemory()
	conf.ListenNowhere()
	for i := 0; i < len(settings); i += 2 {
		require.NoError(t, conf.Set(settings[i], settings[i+1], false))
	}
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { srv.Close() })
	return srv
}

// run starts a server.
func run(t *testing.T, settings ...string) *server.Server {
	srv := prepare(t, settings...)
	require.NoError(t, srv.Start())
	return srv
}

// runDurable starts a server with a data directory.
func runDurable(t *testing.T, dir string, settings ...string) *server.Server {
	return run(t, append([]string{"dir", dir, "appendonly", "yes"}, settings...)...)
}

// clientOf returns a client that may do everything.
func clientOf(t *testing.T, srv *server.Server) *door.Client {
	s, err := srv.Direct(0)
	require.NoError(t, err)
	c := door.NewClient(s)
	return &c
}

// start starts a server and returns a function that makes clients without a door.
func start(t *testing.T, settings ...string) (client func() *door.Client) {
	first, err := run(t, settings...).Direct(0)
	require.NoError(t, err)
	return func() *door.Client {
		s, err := first.Fork()
		require.NoError(t, err)
		c := door.NewClient(s)
		return &c
	}
}

// do executes a command that must succeed and returns its reply as text.
func do(t *testing.T, c *door.Client, args ...any) string {
	t.Helper()
	r, err := c.Do(t.Context(), args...)
	require.NoError(t, err)
	return text(r)
}

// text returns a reply that is a string or a number, or null.
func text(r resp.Reply) string {
	if s, err := r.Text(); err == nil {
		return s
	}
	return r.String()
}

// ended reports whether the client has ended.
func ended(c *door.Client) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func TestBlockedCommandThatIsGivenUpTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := start(t)
		c, other := client(), client()
		for name, giveUp := range map[string]func(cancel func()){
			"its context ends": func(cancel func()) { cancel() },
			"it is closed":     func(func()) { c.Close() },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error)
			go func() {
				_, err := c.Do(ctx, "BLPOP", "q", 0)
				failed <- err
			}()
			synctest.Wait()
			require.Contains(t, do(t, other, "CLIENT", "LIST"), "cmd=blpop")
			giveUp(cancel)
			require.Error(t, <-failed, name)
			cancel()
			require.Equal(t, "1", do(t, other, "RPUSH", "q", "x"), name)
			require.Equal(t, "x", do(t, other, "LPOP", "q"), name)
			if ended(c) {
				c = client()
			}
			require.Equal(t, "y", do(t, c, "ECHO", "y"), name)
		}
	})
}

func TestClientGoesOnAfterAPauseThatItHasNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := start(t)
		c, other := client(), client()
		do(t, other, "CLIENT", "PAUSE", 1000000, "WRITE")
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := c.Do(ctx, "SET", "k", "v")
			failed <- err
		}()
		synctest.Wait()
		require.Contains(t, do(t, other, "INFO", "clients"), "blocked_clients:1")
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		require.Equal(t, "(nil)", do(t, c, "GET", "k"), "reading is not paused")
		require.Contains(t, do(t, other, "INFO", "clients"), "blocked_clients:0")
		do(t, other, "CLIENT", "UNPAUSE")
		require.Equal(t, "OK", do(t, c, "SET", "k", "v"))
	})
}

func TestPipelineReturnsWhatWasExecuted(t *testing.T) {
	c := start(t)()
	var b door.Batch
	require.NoError(t, b.Add("SET", "k", 5))
	require.NoError(t, b.Add([][]byte{[]byte("HGET"), []byte("k"), []byte("f")}))
	require.NoError(t, b.Add("GET", "k"))
	require.Error(t, b.Add("ECHO", struct{}{}))
	replies, err := c.Pipeline(t.Context(), &b)
	require.NoError(t, err)
	require.Len(t, replies, 3)
	require.Equal(t, "OK", text(replies[0]))
	require.ErrorContains(t, replies[1].Err(), "WRONGTYPE")
	require.Equal(t, "5", text(replies[2]))

	b.Reset()
	require.NoError(t, b.Add("INCR", "k"))
	require.NoError(t, b.Add("MULTI"))
	require.NoError(t, b.Add("INCR", "k"))
	replies, err = c.Pipeline(t.Context(), &b)
	require.ErrorIs(t, err, door.ErrNeedsConnection)
	require.Len(t, replies, 1)
	require.Equal(t, "6", do(t, c, "GET", "k"))
}

func TestTransactionIsExecutedOrLeavesNothingBehind(t *testing.T) {
	client := start(t)
	c, other := client(), client()
	var b door.Batch
	require.NoError(t, b.Add("INCR", "n"))
	require.NoError(t, b.Add("HGET", "n", "f"))
	replies, err := c.Transact(t.Context(), &b)
	require.NoError(t, err)
	require.Equal(t, "1", text(replies[0]))
	require.ErrorContains(t, replies[1].Err(), "WRONGTYPE")

	require.NoError(t, c.Watch(t.Context(), "n"))
	do(t, other, "INCR", "n")
	_, err = c.Transact(t.Context(), &b)
	require.ErrorIs(t, err, door.ErrConflict)
	_, err = c.Transact(t.Context(), &b)
	require.NoError(t, err, "nothing is watched any more")
	require.NoError(t, c.Watch(t.Context(), "n"))
	do(t, other, "INCR", "n")
	c.Unwatch()
	_, err = c.Transact(t.Context(), &b)
	require.NoError(t, err)

	for name, bad := range map[string]string{"what cannot be queued": "NOSUCH", "what needs a connection": "SELECT"} {
		require.NoError(t, c.Watch(t.Context(), "n"))
		require.NoError(t, b.Add(bad, "1"))
		before := do(t, other, "GET", "n")
		_, err = c.Transact(t.Context(), &b)
		require.Error(t, err, name)
		require.Equal(t, before, do(t, c, "GET", "n"), name)
		require.Contains(t, do(t, other, "CLIENT", "LIST"), " watch=0")
		require.NotContains(t, do(t, other, "CLIENT", "LIST"), " watch=1", name)
		b.Reset()
		require.NoError(t, b.Add("INCR", "n"))
		_, err = c.Transact(t.Context(), &b)
		require.NoError(t, err, name)
	}
}

func TestClientHasStateOfItsOwn(t *testing.T) {
	client := start(t, "requirepass", "secret")
	c, other := client(), client()
	require.NoError(t, c.SetName(t.Context(), "peer"))
	require.NoError(t, c.Select(t.Context(), 3))
	do(t, c, "SET", "k", "v")
	require.Equal(t, "(nil)", do(t, other, "GET", "k"))
	require.Contains(t, do(t, other, "CLIENT", "LIST"), "name=peer")
	require.Equal(t, resp.Error("ERR DB index is out of range"), c.Select(t.Context(), 99))

	do(t, other, "ACL", "SETUSER", "reader", "on", ">pass", "~*", "&*", "+get", "+psubscribe")
	require.ErrorContains(t, c.Auth(t.Context(), "reader", "word"), "WRONGPASS")
	require.NoError(t, c.Auth(t.Context(), "reader", "pass"))
	require.Equal(t, "v", do(t, c, "GET", "k"))
	_, err := c.Do(t.Context(), "SET", "k", "w")
	require.ErrorContains(t, err, "NOPERM")
	require.Contains(t, do(t, other, "ACL", "LOG"), "name=peer")

	// A fork is the same client.
	_, err = c.Subscribe(t.Context(), "c")
	require.ErrorContains(t, err, "NOPERM")
	s, err := c.PSubscribe(t.Context(), "c")
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, 2, strings.Count(do(t, other, "CLIENT", "LIST"), "name=peer"))
	require.Equal(t, 2, strings.Count(do(t, other, "CLIENT", "LIST"), "user=reader"))
	do(t, other, "ACL", "DELUSER", "reader")
	<-c.Done()
	<-s.Done()
	_, err = c.Do(t.Context(), "GET", "k")
	require.ErrorIs(t, err, door.ErrKilled)
}

func TestSubscriptionReceivesMessagesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := start(t, "notify-keyspace-events", "KEA", "client-output-buffer-limit", "pubsub 10kb 0 0")
		c, other := client(), client()
		s, err := c.Subscribe(t.Context(), "__keyevent@0__:del", "c")
		require.NoError(t, err)
		p, err := c.PSubscribe(t.Context(), "__keyspace@0__:k*")
		require.NoError(t, err)
		do(t, c, "SET", "k1", "v")
		do(t, c, "PUBLISH", "c", "hello")
		do(t, c, "DEL", "k1")
		for _, want := range []door.Message{
			{Channel: "c", Payload: "hello"},
			{Channel: "__keyevent@0__:del", Payload: "k1"},
		} {
			m, err := s.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, m)
		}
		for _, event := range []string{"set", "del"} {
			m, err := p.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, door.Message{Pattern: "__keyspace@0__:k*", Channel: "__keyspace@0__:k1", Payload: event}, m)
		}

		failed := make(chan error)
		go func() {
			_, err := p.Next(t.Context())
			failed <- err
		}()
		synctest.Wait()
		p.Close()
		require.ErrorIs(t, <-failed, door.ErrClosed)

		for range 100 {
			do(t, other, "PUBLISH", "c", make([]byte, 1000))
		}
		<-s.Done()
		_, err = s.Next(t.Context())
		require.ErrorIs(t, err, door.ErrSlow)
		require.ErrorIs(t, err, door.ErrKilled)

		last, err := c.Subscribe(t.Context(), "c")
		require.NoError(t, err)
		c.Close()
		<-last.Done()
		_, err = last.Next(t.Context())
		require.ErrorIs(t, err, door.ErrClosed)
		require.Contains(t, do(t, other, "PUBSUB", "NUMSUB", "c"), "0")
	})
}

func TestMonitorShowsTheCommandsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := start(t, "client-output-buffer-limit", "normal 10kb 0 0")
		c, other := client(), client()
		m, err := c.Monitor(t.Context())
		require.NoError(t, err)
		next := func() string {
			line, err := m.Next(t.Context())
			require.NoError(t, err)
			_, command, _ := strings.Cut(line, "] ")
			return command
		}
		do(t, c, "SET", "k", "v")
		do(t, other, "ECHO", "a\r\n+b")
		require.Equal(t, `"SET" "k" "v"`, next())
		require.Equal(t, `"ECHO" "a\r\n+b"`, next())

		for range 20 {
			do(t, other, "ECHO", strings.Repeat("x", 1000))
		}
		<-m.Done()
		_, err = m.Next(t.Context())
		require.ErrorIs(t, err, door.ErrSlow)

		last, err := c.Monitor(t.Context())
		require.NoError(t, err)
		c.Close()
		<-last.Done()
		_, err = last.Next(t.Context())
		require.ErrorIs(t, err, door.ErrClosed)
	})
}

func TestRepliesInRESP2(t *testing.T) {
	client := start(t)
	c := client()
	require.NoError(t, c.UseRESP2(t.Context()))
	do(t, c, "HSET", "h", "f", "v")
	do(t, c, "ZADD", "z", "1.5", "m")
	for _, test := range []struct {
		command []any
		want    string
	}{
		{[]any{"HGETALL", "h"}, "*2\r\n$1\r\nf\r\n$1\r\nv\r\n"},
		{[]any{"ZRANGE", "z", 0, -1, "WITHSCORES"}, "*2\r\n$1\r\nm\r\n$3\r\n1.5\r\n"},
		{[]any{"GET", "nothing"}, "$-1\r\n"},
	} {
		r, err := c.Do(t.Context(), test.command...)
		require.NoError(t, err)
		require.Equal(t, test.want, string(r.Encoded()))
	}
	var b door.Batch
	require.NoError(t, b.Add("ZSCORE", "z", "m"))
	replies, err := c.Transact(t.Context(), &b)
	require.NoError(t, err)
	require.Equal(t, "$3\r\n1.5\r\n", string(replies[0].Encoded()))
	require.NoError(t, c.Watch(t.Context(), "z"))
	do(t, client(), "DEL", "z")
	_, err = c.Transact(t.Context(), &b)
	require.ErrorIs(t, err, door.ErrConflict)
}

func TestDoneTellsThatTheClientHasEnded(t *testing.T) {
	client := start(t)
	other := client()
	id := func(c *door.Client) string { return do(t, c, "CLIENT", "ID") }

	idle := client()
	do(t, other, "CLIENT", "KILL", "ID", id(idle))
	<-idle.Done()
	_, err := idle.Do(t.Context(), "PING")
	require.ErrorIs(t, err, door.ErrKilled)

	// A client that kills itself gets the reply first. It has not ended before the door has had time to send it.
	self := client()
	require.Equal(t, "1", do(t, self, "CLIENT", "KILL", "ID", id(self), "SKIPME", "no"))
	require.False(t, ended(self))
	_, err = self.Do(t.Context(), "PING")
	require.ErrorIs(t, err, door.ErrKilled)
	require.True(t, ended(self))

	closed := client()
	require.False(t, ended(closed))
	closed.Close()
	closed.Close()
	require.True(t, ended(closed))
	_, err = closed.Do(t.Context(), "PING")
	require.ErrorIs(t, err, door.ErrClosed)
}

func TestPoolExecutesRequestsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := start(t)
		c, other := client(), client()
		require.NoError(t, c.SetName(t.Context(), "peer"))
		p := door.NewPool(c, 2)
		blocked := make(chan error)
		block := func() {
			_, err := p.Do(t.Context(), "BLPOP", "q", 0)
			blocked <- err
		}
		go block()
		synctest.Wait()
		_, err := p.Do(t.Context(), "SET", "k", "v")
		require.NoError(t, err)
		go block()
		synctest.Wait()
		require.Equal(t, 2, strings.Count(do(t, other, "CLIENT", "LIST"), "name=peer"))
		_, err = p.Do(t.Context(), "PING")
		require.ErrorIs(t, err, door.ErrTooManyClients)
		do(t, other, "RPUSH", "q", "x")
		require.NoError(t, <-blocked)
		_, err = p.Do(t.Context(), "PING")
		require.NoError(t, err)

		// The kill of one ends all clients of a pool.
		for line := range strings.Lines(do(t, other, "CLIENT", "LIST")) {
			if strings.Contains(line, "cmd=blpop") && strings.Contains(line, "flags=bU") {
				do(t, other, "CLIENT", "KILL", "ID", strings.TrimPrefix(strings.Fields(line)[0], "id="))
			}
		}
		require.ErrorIs(t, <-blocked, door.ErrKilled)
		<-c.Done()
		_, err = p.Do(t.Context(), "PING")
		require.Error(t, err)
		require.NotContains(t, do(t, other, "CLIENT", "LIST"), "name=peer")
	})
}

func TestShutdownEndsClients(t *testing.T) {
	client := start(t)
	c, other := client(), client()
	_, err := c.Do(t.Context(), "SHUTDOWN", "NOSAVE")
	require.ErrorIs(t, err, door.ErrClosed)
	<-c.Done()
	<-other.Done()
	_, err = other.Do(t.Context(), "PING")
	require.ErrorIs(t, err, door.ErrClosed)
}
