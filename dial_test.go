package atomredis_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// dial returns a client of go-redis that is connected in memory.
func dial(db *atomredis.DB, o *redis.Options) *redis.Client {
	o.Addr = "127.0.0.1:6379" // without an address go-redis resolves "localhost", which blocks a bubble
	o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) }
	return redis.NewClient(o)
}

func TestGoRedisWorksInMemory(t *testing.T) {
	for name, o := range map[string]atomredis.Options{"without a listener": {},
		"beside event loops": {Addr: "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			db := open(t, o)
			client := dial(db, &redis.Options{ReadTimeout: time.Minute, WriteTimeout: time.Minute})
			defer client.Close()
			ctx := t.Context()

			const n = 100_000
			pipe := client.Pipeline()
			for i := range n {
				pipe.Set(ctx, fmt.Sprint("key:", i), i, 0)
			}
			replies, err := pipe.Exec(ctx)
			require.NoError(t, err)
			require.Len(t, replies, n)
			require.EqualValues(t, n, client.DBSize(ctx).Val())
			require.Equal(t, "99999", client.Get(ctx, "key:99999").Val())

			sub := client.PSubscribe(ctx, "news.*")
			defer sub.Close()
			_, err = sub.Receive(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1, client.Publish(ctx, "news.go", "hello").Val())
			m, err := sub.ReceiveMessage(ctx)
			require.NoError(t, err)
			require.Equal(t, "hello", m.Payload)

			var wg sync.WaitGroup
			wg.Go(func() {
				got, err := client.BLPop(ctx, 0, "queue").Result()
				if err != nil || len(got) != 2 || got[1] != "job" {
					t.Errorf("%v, %v", got, err)
				}
			})
			waitForInfo(t, db, "clients", "blocked_clients:1\r\n")
			require.NoError(t, client.RPush(ctx, "queue", "job").Err())
			wg.Wait()
			require.Equal(t, redis.Nil, client.Do(ctx, "BLPOP", "queue", 0.02).Err())
		})
	}
}

// Unread replies stop neither the client that writes the commands nor other clients.
func TestClientMayWriteAHundredThousandCommandsBeforeItReads(t *testing.T) {
	db := open(t, atomredis.Options{})
	conn, err := db.Dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	const n = 100_000
	value := strings.Repeat("v", 100)
	_, err = conn.Write([]byte(strings.Repeat("SET k "+value+"\r\nGET k\r\n", n)))
	require.NoError(t, err)
	require.Equal(t, value, text(t, do(t, db, "GET", "k")))
	one := fmt.Sprintf("+OK\r\n$%d\r\n%s\r\n", len(value), value)
	total := 0
	buf := make([]byte, 256<<10)
	for total < n*len(one) {
		got, err := conn.Read(buf)
		require.NoError(t, err)
		for _, b := range buf[:got] {
			if b != one[total%len(one)] {
				t.Fatalf("byte %d is %q", total, b)
			}
			total++
		}
	}
	require.Equal(t, n*len(one), total)
}

func TestAThousandConnectionsInMemory(t *testing.T) {
	db := open(t, atomredis.Options{})
	var conns []net.Conn
	for i := range 1000 {
		conn, err := db.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "INCR n\r\nSET k%d %d\r\n", i, i)
		conns = append(conns, conn)
	}
	seen := map[string]bool{}
	for _, conn := range conns {
		reply := readUntil(t, conn, "+OK\r\n")
		require.False(t, seen[reply], reply)
		seen[reply] = true
	}
	require.Equal(t, "1000", text(t, do(t, db, "GET", "n")))
	require.Equal(t, "1001", text(t, do(t, db, "DBSIZE")))
	require.Contains(t, text(t, do(t, db, "INFO", "clients")), "connected_clients:1001\r\n")
}

func TestConnectionsInMemoryCountForMaxclients(t *testing.T) {
	db := open(t, atomredis.Options{Config: map[string]string{"maxclients": "1"}})
	first, err := db.Dial(t.Context())
	require.NoError(t, err)
	defer first.Close()
	second, err := db.Dial(t.Context())
	require.NoError(t, err)
	defer second.Close()
	require.Equal(t, "-ERR max number of clients reached\r\n", readUntil(t, second, "\r\n"))
	require.Equal(t, "PONG", text(t, do(t, db, "PING")), "the program itself is always welcome")
}

// A client that does not read must not delay Close, and CLIENT KILL must end it.
func TestClientsThatDoNotReadCanBeClosed(t *testing.T) {
	db, err := atomredis.Open(atomredis.Options{})
	require.NoError(t, err)
	do(t, db, "SET", "large", strings.Repeat("x", 1<<20))
	for range 2 {
		conn, err := db.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "CLIENT SETNAME lazy\r\nGET large\r\n")
	}
	lazy := func() []string {
		var ids []string
		for line := range strings.Lines(text(t, do(t, db, "CLIENT", "LIST"))) {
			if strings.Contains(line, "name=lazy") && strings.Contains(line, "cmd=get") {
				ids = append(ids, strings.TrimPrefix(strings.Fields(line)[0], "id="))
			}
		}
		return ids
	}
	require.Eventually(t, func() bool { return len(lazy()) == 2 }, time.Minute, time.Millisecond)
	do(t, db, "CLIENT", "KILL", "ID", lazy()[0])
	waitForInfo(t, db, "clients", "connected_clients:2\r\n")
	require.NoError(t, db.Close())
}
