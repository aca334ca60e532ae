package protocols_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// clientsVariable determines how many clients are blocked at once.
const clientsVariable = "ATOMREDIS_BLOCKED_CLIENTS"

// blockedKind is one command that blocks, and how to feed it.
type blockedKind struct {
	name    string
	command []string
	feed    func(r *redis.Client, n int) error
	// shared means that elements go to every client instead of to one.
	shared bool
}

var blockedKinds = []blockedKind{
	{name: "BLPOP", command: []string{"BLPOP", "list", "0"}, feed: func(r *redis.Client, n int) error {
		return r.RPush(ctxBackground, "list", fmt.Sprint("v", n)).Err()
	}},
	{name: "BLMOVE", command: []string{"BLMOVE", "source", "destination", "LEFT", "RIGHT", "0"},
		feed: func(r *redis.Client, n int) error {
			return r.RPush(ctxBackground, "source", fmt.Sprint("v", n)).Err()
		}},
	{name: "BZPOPMIN", command: []string{"BZPOPMIN", "zset", "0"}, feed: func(r *redis.Client, n int) error {
		return r.ZAdd(ctxBackground, "zset", redis.Z{Score: 1, Member: fmt.Sprint("v", n)}).Err()
	}},
	{name: "XREADGROUP", command: []string{"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "BLOCK", "0", "STREAMS",
		"grouped", ">"}, feed: func(r *redis.Client, n int) error {
		return r.XAdd(ctxBackground, &redis.XAddArgs{Stream: "grouped", Values: []string{"f", fmt.Sprint("v", n)}}).Err()
	}},
	{name: "XREAD", command: []string{"XREAD", "BLOCK", "0", "STREAMS", "stream", "$"}, shared: true,
		feed: func(r *redis.Client, n int) error {
			return r.XAdd(ctxBackground, &redis.XAddArgs{Stream: "stream", Values: []string{"f", fmt.Sprint("v", n)}}).Err()
		}},
}

// waitFor polls until the condition holds.
func waitFor(t *testing.T, what string, condition func() bool) {
	for deadline := time.Now().Add(60 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%s does not come about", what)
	}
}

func TestBlockedClientsThatLiveGetEveryElementInOrderOfArrival(t *testing.T) {
	clients := setting(t, clientsVariable, 500)
	ctx := t.Context()
	addr := server(t)
	r := client(t, addr)
	require.NoError(t, r.XGroupCreateMkStream(ctx, "grouped", "g", "$").Err())
	blockedNow := func() int {
		info, err := r.Info(ctx, "clients").Result()
		require.NoError(t, err)
		_, rest, _ := strings.Cut(info, "blocked_clients:")
		n, err := strconv.Atoi(rest[:strings.Index(rest, "\r")])
		require.NoError(t, err)
		return n
	}

	kinds := len(blockedKinds)
	conns := make([]net.Conn, clients)
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		conns[i] = conn
		// One after the other, so that the order of arrival is known.
		_, err = conn.Write(encode(blockedKinds[i%kinds].command))
		require.NoError(t, err)
		if i%100 == 99 {
			waitFor(t, "blocking", func() bool { return blockedNow() == i+1 })
		}
	}
	waitFor(t, "blocking", func() bool { return blockedNow() == clients })

	// Half of the clients of each kind close without a goodbye.
	var live [5][]net.Conn
	dead := 0
	for i, conn := range conns {
		if (i/kinds)%2 == 1 {
			require.NoError(t, conn.(*net.TCPConn).SetLinger(0))
			require.NoError(t, conn.Close())
			dead++
			continue
		}
		live[i%kinds] = append(live[i%kinds], conn)
	}
	waitFor(t, "noticing the dead", func() bool { return blockedNow() == clients-dead })

	var wg sync.WaitGroup
	for k, kind := range blockedKinds {
		if kind.shared {
			require.NoError(t, kind.feed(r, 0))
		} else {
			for n := range live[k] {
				require.NoError(t, kind.feed(r, n))
			}
		}
		for n, conn := range live[k] {
			if kind.shared {
				n = 0
			}
			wg.Go(func() {
				conn.SetReadDeadline(time.Now().Add(30 * time.Second))
				reply := readSome(conn)
				if !strings.Contains(reply, fmt.Sprintf("\r\nv%d\r\n", n)) {
					t.Errorf("client %d in %s got %q", n, kind.name, reply)
				}
			})
		}
	}
	wg.Wait()
	require.Zero(t, blockedNow())
	require.Zero(t, r.Exists(ctx, "list", "source", "zset").Val(), "nothing is left over")
	moved := r.LRange(ctx, "destination", 0, -1).Val()
	require.Len(t, moved, len(live[1]))
	for n, v := range moved {
		require.Equal(t, fmt.Sprint("v", n), v)
	}
}

// encode returns a command in RESP.
func encode(args []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return []byte(b.String())
}

// readSome returns the bytes that the server sends at once; replies here fit into one packet.
func readSome(conn net.Conn) string {
	r := bufio.NewReaderSize(conn, 4096)
	if _, err := r.Peek(1); err != nil {
		return err.Error()
	}
	b, _ := r.Peek(r.Buffered())
	return string(b)
}
