package session

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockedHarness returns a server that requires a password, and a client that has authenticated.
func lockedHarness(t *testing.T) (*harness, *Session) {
	b := newHarness(t)
	admin := b.session()
	b.feed(admin, request("CONFIG", "SET", "requirepass", "secret"))
	t.Cleanup(func() { b.finish(t, admin) })
	return b, admin
}

// floods are commands that a client can repeat before it has authenticated.
var floods = map[string][]byte{
	"PING in a line":       []byte("PING\r\n"),
	"PING":                 request("PING"),
	"GET":                  request("GET", "a"),
	"unknown command":      request("NOSUCH", strings.Repeat("x", 200)),
	"unknown subcommand":   request("CLIENT", strings.Repeat("x", 200)),
	"wrong number of args": request("GET"),
	"AUTH":                 request("AUTH", "wrong"),
	"HELLO":                request("HELLO", "3"),
	"HELLO with AUTH":      request("HELLO", "3", "AUTH", "default", "wrong"),
	"RESET":                request("RESET"),
	"EXEC":                 request("EXEC"),
	"SUBSCRIBE":            request("SUBSCRIBE", "channel"),
	"MONITOR":              request("MONITOR"),
}

// A client that has not authenticated and reads nothing takes limited memory, whatever it sends.
func TestUnauthenticatedClientThatDoesNotReadIsDisconnected(t *testing.T) {
	for name, command := range floods {
		t.Run(name, func(t *testing.T) {
			b, _ := lockedHarness(t)
			before := b.Clients.memory.Load()
			s := b.session()
			input := bytes.Repeat(command, 128<<10/len(command))
			for range 50 {
				if s.Closing() {
					break
				}
				s.Input(input, b.Keyspace.Now())
				require.LessOrEqual(t, s.Unsent(), unauthenticatedOutput+1<<10)
				require.Less(t, b.Clients.memory.Load()-before, int64(64<<10))
			}
			require.True(t, s.Closing())
			require.Zero(t, s.Unsent())
			s.Close()
			require.Equal(t, before, b.Clients.memory.Load())
		})
	}
}

// Clients that read their replies are not disconnected, nor are those that have authenticated or need not.
func TestClientsThatMayWaitForReplies(t *testing.T) {
	const pings = 4000
	flood := bytes.Repeat([]byte("PING\r\n"), pings)
	t.Run("reads", func(t *testing.T) {
		b, _ := lockedHarness(t)
		s := b.session()
		for range pings {
			require.Contains(t, b.feed(s, request("PING")), "NOAUTH")
		}
		require.False(t, s.Closing())
		s.Close()
	})
	t.Run("authenticates first", func(t *testing.T) {
		b, _ := lockedHarness(t)
		s := b.session()
		require.Equal(t, "+OK\r\n"+strings.Repeat("+PONG\r\n", pings), b.feed(s, append(request("AUTH", "secret"), flood...)))
		s.Close()
	})
	t.Run("no password", func(t *testing.T) {
		b := newHarness(t)
		s := b.session()
		require.Equal(t, strings.Repeat("+PONG\r\n", pings), b.feed(s, flood))
		b.finish(t, s)
	})
	t.Run("the password is no longer needed", func(t *testing.T) {
		b, admin := lockedHarness(t)
		s := b.session()
		require.Contains(t, b.feed(s, request("PING")), "NOAUTH")
		b.feed(admin, request("CONFIG", "SET", "requirepass", ""))
		require.Equal(t, strings.Repeat("+PONG\r\n", pings), b.feed(s, flood))
		s.Close()
	})
}

// Input that waits while clients are paused, and incomplete commands, are limited too.
func TestInputOfUnauthenticatedClientIsBounded(t *testing.T) {
	bulk := "$16384\r\n" + strings.Repeat("x", 16384) + "\r\n"
	for _, c := range []struct {
		name, input string
		paused      bool
		most        int
	}{
		{"paused", string(request("AUTH", "secret")) + strings.Repeat("x", 4<<20), true, unauthenticatedPaused},
		{"many arguments", "*10\r\n" + strings.Repeat(bulk, 9) + "$16384\r\n" + strings.Repeat("x", 16000), false,
			unauthenticatedInput},
		{"an argument", "*2\r\n$3\r\nGET\r\n$16384\r\n" + strings.Repeat("x", 16000), false, 16384 + 20},
		{"too many arguments", "*11\r\n", false, 100},
		{"a long argument", "*2\r\n$3\r\nGET\r\n$16385\r\n", false, 100},
		{"a long line", strings.Repeat("x", 1<<20), false, 70 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, admin := lockedHarness(t)
			if c.paused {
				b.feed(admin, request("CLIENT", "PAUSE", "100000000", "ALL"))
			}
			s := b.session()
			for rest := []byte(c.input); len(rest) > 0 && !s.Closing(); {
				n := min(len(rest), 4<<10)
				s.Input(rest[:n], b.Keyspace.Now())
				rest = rest[n:]
				require.LessOrEqual(t, len(s.in.input)+s.in.long.Arrived(), c.most)
			}
			require.Equal(t, c.name != "an argument", s.Closing(), "an argument may be as long")
			s.Close()
			if c.paused {
				b.feed(admin, request("CLIENT", "UNPAUSE"))
			}
		})
	}
}
