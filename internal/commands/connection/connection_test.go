package connection_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/server"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "connection") }

func TestPasswordIsAskedFor(t *testing.T) {
	s := servertest.Start(t, server.Options{}, "requirepass", "secret")
	c := s.Connect()
	for _, step := range [][2]string{
		{"PING", "-NOAUTH Authentication required."},
		{"CLIENT SETINFO LIB-NAME x", "-NOAUTH Authentication required."},
		{"HELLO", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH " +
			"<user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"},
		{"HELLO 3 AUTH default wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH nobody secret", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"RESET", "+RESET"},
		{"AUTH secret", "+OK"},
		{"PING", "+PONG"},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"PING", "+PONG"},
		{"RESET", "+RESET"},
		{"PING", "-NOAUTH Authentication required."},
		{"AUTH default secret", "+OK"},
	} {
		require.Equal(t, step[1], c.Line(step[0]), step[0])
	}
	require.Contains(t, s.Connect().Line("HELLO 3 AUTH default secret SETNAME me"), `"proto" 3`)
}

func TestClientTellsOfItsLibrary(t *testing.T) {
	s := servertest.Start(t, server.Options{})
	c := s.Connect()
	for _, step := range [][2]string{
		{"CLIENT SETINFO LIB-NAME lib", "+OK"},
		{"CLIENT SETINFO lib-ver 1.2", "+OK"},
		{"CLIENT SETINFO lib-name \x01", "-ERR lib-name cannot contain spaces, newlines or special characters."},
		{"CLIENT SETINFO color red", "-ERR Unrecognized option 'color'"},
		{"CLIENT NO-TOUCH ON", "+OK"},
		{"CLIENT NO-TOUCH maybe", "-ERR syntax error"},
		{"CLIENT NO-EVICT ON", "+OK"},
	} {
		require.Equal(t, step[1], c.Line(step[0]), step[0])
	}
	require.Regexp(t, `flags=eT .* lib-name=lib lib-ver=1\.2 io-thread=0 tot-net-in=[1-9]\d* tot-net-out=\d+ tot-cmds=[1-9]\d*\n$`, c.Line("CLIENT INFO"))
	require.Equal(t, "+RESET", c.Line("RESET"))
	require.Regexp(t, `flags=N .* lib-name=lib lib-ver=1\.2 io-thread=0 tot-net-in=[1-9]\d* tot-net-out=\d+ tot-cmds=[1-9]\d*\n$`, c.Line("CLIENT INFO"))
}

func TestClientKillByAge(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1_000_000))
	s := servertest.Start(t, server.Options{Clock: clock})
	old := s.Connect()
	old.Line("PING")
	clock.Advance(10 * time.Second)
	c := s.Connect()
	require.Equal(t, "0", c.Line("CLIENT KILL MAXAGE 11"))
	require.Equal(t, "1", c.Line("CLIENT KILL MAXAGE 10 SKIPME no"))
	require.Equal(t, "closed", old.Next())
	require.Equal(t, "-ERR maxage should be greater than 0", c.Line("CLIENT KILL MAXAGE 0"))
	require.Equal(t, "-ERR maxage is not an integer or out of range", c.Line("CLIENT KILL MAXAGE x"))
	require.Eventually(t, func() bool { return strings.Count(c.Line("CLIENT LIST"), "\n") == 1 }, testclient.Timeout,
		time.Millisecond)
}

func TestPauseEndsByTime(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		clock := engine.NewManualClock(time.UnixMilli(1_000_000))
		o.Clock = clock
		s := servertest.Start(t, o, settings...)
		a, b := s.Connect(), s.Connect()
		require.Equal(t, "+OK", a.Line("CLIENT PAUSE 5000 WRITE"))
		b.Send("SET", "k", "v")
		a.WaitFor("INFO clients", "blocked_clients:1\r\n")
		require.Contains(t, a.Line("CLIENT LIST"), "flags=b ")
		for !b.Ready(time.Millisecond) {
			clock.Advance(time.Second)
		}
		require.Equal(t, "+OK", b.Next())
		require.Equal(t, "+OK", a.Line("SET k v2"))
		require.Contains(t, a.Line("INFO clients"), "blocked_clients:0\r\n")
	})
}

func TestExpiredKeysAreInvalidated(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1_000_000))
	s := servertest.Start(t, server.Options{Clock: clock})
	c := s.Connect()
	c.Line("HELLO 3")
	c.Line("SET k v PX 100")
	c.Line("CLIENT TRACKING ON")
	require.Equal(t, "v", c.Line("GET k"))
	clock.Advance(time.Second)
	require.Equal(t, `push["invalidate" ["k"]]`, c.Next())
}

// Many clients track and change the same keys. A client that has read a value must get an invalidation for each later change.
func TestCachesStayCoherentUnderConcurrency(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		const readers, writers, changes = 4, 2, 100
		var wg sync.WaitGroup
		for range writers {
			c := s.Connect()
			wg.Go(func() {
				for i := range changes {
					c.Line(fmt.Sprintf("INCRBY counter %d", i%3+1))
				}
				c.Line("INCR done")
			})
		}
		for range readers {
			c := s.Connect()
			wg.Go(func() {
				c.Line("HELLO 3")
				c.Line("CLIENT TRACKING ON")
				for {
					// A push for the first key may come before the reply for the second.
					c.Append("GET", "counter")
					c.Append("GET", "done")
					if c.Flush() != nil {
						return
					}
					var values []string
					stale := false
					for len(values) < 2 {
						if got := c.Next(); strings.HasPrefix(got, "push") {
							stale = true
						} else {
							values = append(values, got)
						}
					}
					if values[1] == fmt.Sprintf("%q", fmt.Sprint(writers)) {
						return
					}
					if !stale {
						c.Next() // the writers are not done: one of the keys will change
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestMonitorsAndKillsUnderConcurrency(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		m := s.Connect()
		require.Equal(t, "+OK", m.Line("MONITOR"))
		var wg sync.WaitGroup
		for range 4 {
			c := s.Connect()
			wg.Go(func() {
				for range 50 {
					c.Line("PING")
					c.Line("CLIENT LIST")
					c.Line("INFO everything")
				}
			})
		}
		wg.Go(func() {
			for range 20 {
				victim := s.Connect()
				s.Connect().Line("CLIENT KILL ID " + victim.Line("CLIENT ID"))
				require.Equal(t, "closed", victim.Next())
			}
		})
		for seen := 0; seen < 4*50; {
			if strings.Contains(m.Next(), "PING") {
				seen++
			}
		}
		wg.Wait()
	})
}
