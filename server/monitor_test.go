package server

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/session"
)

// watched returns a monitor's output for lines of commands: databases, sources and commands.
func watched(b *harness, monitor, s *session.Session, lines ...string) string {
	for _, line := range lines {
		b.feed(s, []byte(line+"\r\n"))
	}
	return regexp.MustCompile(`\+\d+\.\d{6} `).ReplaceAllString(b.feed(monitor), "")
}

func TestMonitorsSeeCommandsWhenTheyAreDone(t *testing.T) {
	b := newHarness(t)
	m, s := b.session(), b.session()
	b.feed(m, request("MONITOR"))
	for _, test := range []struct {
		lines []string
		seen  []string
	}{
		{[]string{"SELECT 3", "GET a"}, []string{`3 * "SELECT" "3"`, `3 * "GET" "a"`}},
		{[]string{"MULTI", "SELECT 4", "SET a 1", "EXEC"},
			[]string{`3 * "MULTI"`, `4 * "SELECT" "4"`, `4 * "SET" "a" "1"`, `4 * "EXEC"`}},
		{[]string{`EVAL "redis.call('select', 5) return redis.call('get', KEYS[1])" 1 k`},
			[]string{`4 * "EVAL" "redis.call('select', 5) return redis.call('get', KEYS[1])" "1" "k"`, `5 lua "select" "5"`,
				`5 lua "get" "k"`}},
		{[]string{"MULTI", `EVAL "return redis.call('get', 'k')" 0`, "EXEC"},
			[]string{`4 * "MULTI"`, `4 * "EVAL" "return redis.call('get', 'k')" "0"`, `4 lua "get" "k"`, `4 * "EXEC"`}},
		{[]string{"GET", "NOSUCH", "CONFIG GET port"}, nil},
		{[]string{"LPUSH a x", "RESET"}, []string{`4 * "LPUSH" "a" "x"`, `0 * "RESET"`}},
		{[]string{"AUTH name secret"}, []string{`0 * "AUTH" "(redacted)" "(redacted)"`}},
		{[]string{"QUIT"}, []string{`0 * "QUIT"`}},
	} {
		want := ""
		for _, line := range test.seen {
			db, rest, _ := strings.Cut(line, " ")
			source, command, _ := strings.Cut(rest, " ")
			if source == "*" {
				source = s.Addr()
			}
			want += "[" + db + " " + source + "] " + command + "\r\n"
		}
		require.Equal(t, want, watched(b, m, s, test.lines...), "%q", test.lines)
	}
	s.Close()
	b.finish(t, m)
}

func TestMonitorsKeepAwayFromKeys(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	b.feed(s, request("MONITOR"))
	for _, line := range []string{"GET a", "SET a 1", "EVAL 'return 1' 0", "PUBLISH a b", "DBSIZE", "BLPOP a 1"} {
		require.Equal(t, "-ERR Replica can't interact with the keyspace\r\n", b.feed(s, []byte(line+"\r\n")), line)
	}
	require.Regexp(t, `^\+PONG\r\n\+\d+\.\d{6} \[0 .*\] "PING"\r\n$`, b.feed(s, request("PING")))
	require.Equal(t, "+RESET\r\n", b.feed(s, request("RESET")))
	require.Equal(t, "$-1\r\n", b.feed(s, request("GET", "a")))
	b.feed(s, request("MONITOR"))
	require.Equal(t, "+OK\r\n", b.feed(s, request("QUIT")))
	b.finish(t, s)
}
