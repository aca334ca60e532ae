// Clients over a connection in memory (DB.Dial).

package clients_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// open starts a server in memory, without a port.
func open(t *testing.T) *atomredis.DB {
	t.Helper()
	db, err := atomredis.Open(atomredis.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// do executes a command that must succeed, and returns its reply as text.
func do(t *testing.T, db *atomredis.DB, args ...any) string {
	t.Helper()
	r, err := db.Do(t.Context(), args...)
	require.NoError(t, err)
	s, err := r.Text()
	require.NoError(t, err)
	return s
}

// Each of these tests what a connection in memory must support: a long pipeline, a blocked command, a deadline,
// messages.

func TestRedigoWorksInMemory(t *testing.T) {
	db := open(t)
	pool := &redigo.Pool{DialContext: func(ctx context.Context) (redigo.Conn, error) {
		conn, err := db.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return redigo.NewConn(conn, time.Minute, time.Minute), nil
	}}
	defer pool.Close()
	conn := pool.Get()
	defer conn.Close()
	const n = 100_000
	for i := range n {
		require.NoError(t, conn.Send("INCR", "n"), i)
	}
	require.NoError(t, conn.Flush())
	for i := range n {
		got, err := redigo.Int(conn.Receive())
		require.NoError(t, err)
		require.Equal(t, i+1, got)
	}
	_, err := redigo.DoWithTimeout(conn, 10*time.Millisecond, "BLPOP", "queue", 0)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())

	other := pool.Get()
	defer other.Close()
	sub := redigo.PubSubConn{Conn: other}
	require.NoError(t, sub.PSubscribe("news.*"))
	require.IsType(t, redigo.Subscription{}, sub.Receive())
	do(t, db, "PUBLISH", "news.go", "hello")
	require.Equal(t, redigo.Message{Pattern: "news.*", Channel: "news.go", Data: []byte("hello")}, sub.Receive())
}

func TestRueidisWorksInMemory(t *testing.T) {
	db := open(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"memory"},
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return db.Dial(ctx)
		},
	})
	require.NoError(t, err)
	defer client.Close()
	ctx := t.Context()
	const n = 100_000
	commands := make(rueidis.Commands, n)
	for i := range commands {
		commands[i] = client.B().Set().Key(fmt.Sprint("key:", i)).Value("v").Build()
	}
	for _, r := range client.DoMulti(ctx, commands...) {
		require.NoError(t, r.Error())
	}
	require.Equal(t, fmt.Sprint(n), do(t, db, "DBSIZE"))

	// Its cache in the program is notified of changes.
	get := client.B().Get().Key("key:1").Cache()
	got, err := client.DoCache(ctx, get, time.Minute).ToString()
	require.NoError(t, err)
	require.Equal(t, "v", got)
	do(t, db, "SET", "key:1", "w")
	for got == "v" {
		got, err = client.DoCache(ctx, client.B().Get().Key("key:1").Cache(), time.Minute).ToString()
		require.NoError(t, err)
	}
	require.Equal(t, "w", got)

	var wg sync.WaitGroup
	wg.Go(func() {
		got, err := client.Do(ctx, client.B().Blpop().Key("queue").Timeout(0).Build()).AsStrSlice()
		if err != nil || len(got) != 2 || got[1] != "job" {
			t.Errorf("%v, %v", got, err)
		}
	})
	require.Eventually(t, func() bool { return strings.Contains(do(t, db, "INFO", "clients"), "blocked_clients:1\r\n") },
		time.Minute, time.Millisecond)
	do(t, db, "RPUSH", "queue", "job")
	wg.Wait()

	subscribed, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := make(chan string, 1)
	wg.Go(func() {
		client.Receive(subscribed, client.B().Psubscribe().Pattern("news.*").Build(),
			func(m rueidis.PubSubMessage) { messages <- m.Message })
	})
	for do(t, db, "PUBSUB", "NUMPAT") == "0" {
	}
	do(t, db, "PUBLISH", "news.go", "hello")
	require.Equal(t, "hello", <-messages)
	cancel()
	wg.Wait()
}
