package streams

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var lagSessions = []struct{ steps, want string }{
	{"create 0 -1", "nil 0"},
	{"add 1; add 2; add 3; create 0 -1", "nil 3"},
	{"add 1; add 2; add 3; create 3 -1", "nil 0"},
	{"add 1; add 2; add 3; create 1 -1", "nil 2"},
	{"add 1; add 2; add 3; create 2 -1", "nil nil"},
	{"add 1; add 2; add 3; create 9 -1", "nil nil"},
	{"add 1; add 2; add 3; create 2 2", "2 1"},
	{"add 1; add 2; add 3; create 0 -1; read 1", "1 2"},
	{"add 1; add 2; add 3; create 2 -1; read 1", "3 0"},
	{"add 1; add 2; add 3; create 0 -1; read 2; add 4", "2 2"},
	{"add 1; add 2; add 3; create 0 -1; read 1; del 1", "1 2"},
	{"add 1; add 2; add 3; create 0 -1; read 1; del 2", "1 nil"},
	{"add 1; add 2; add 3; create 0 -1; read 1; del 3", "1 nil"},
	{"add 1; add 2; add 3; create 0 -1; del 1", "nil 2"},
	{"add 1; add 2; add 3; create 0 -1; del 2", "nil nil"},
	{"add 1; add 2; add 3; create 0 -1; del 2; read 1", "nil nil"},
	{"add 1; add 2; add 3; create 0 -1; del 2; read 2", "3 0"},
	{"add 1; add 2; add 3; create 0 -1; del 1; read 1", "2 1"},
	{"add 1; add 2; add 3; create 0 -1; read 1; del 2; maxlen 1", "1 1"},
	{"add 1; add 2; add 3; create 0 -1; read 1; maxlen 1", "1 1"},
	{"add 1; add 2; add 3; create 0 0; maxlen 1", "0 1"},
	{"add 1; add 2; add 3; create 0 0; del 1; del 2; del 3", "0 0"},
	{"add 1; add 2; add 3; create 0 -1; maxlen 0", "nil 0"},
	{"add 1; add 2; add 3; create 3 -1; maxlen 0; add 4", "nil 1"},
	{"add 1; add 2; add 3; create 0 -1; maxlen 0; add 4; read 1", "4 0"},
	{"add 1; add 2; add 3; setid 9 50 0; create 0 -1", "nil 3"},
	{"add 1; add 2; add 3; setid 9 50 0; create 0 -1; read 1", "48 2"},
	{"add 1; add 2; add 3; setid 9 50 0; create 0 -1; read 3", "50 0"},
	{"add 1; add 2; add 3; setid 9 50 2; create 0 -1; read 2", "nil nil"},
	{"add 1; add 2; add 3; setid 9 50 2; create 2 10; read 1", "nil nil"},
	{"add 1; add 2; add 3; create 0 -1; read 3; groupid 1 -1", "nil 2"},
	{"add 1; add 2; add 3; create 0 -1; read 3; groupid 2 -1", "nil nil"},
	{"add 1; add 2; add 3; create 0 -1; read 3; groupid 2 2; read 1", "3 0"},
	{"add 1; add 2; add 3; create 0 9", "9 3"},
	{"add 1; add 2; add 3; create 0 9; read 1", "1 2"},
	{"setid 5 0 0; create 0 -1", "nil 0"},
	{"setid 5 7 0; create 0 -1", "nil 0"},
	{"setid 5 7 0; create 6 -1", "nil 0"},
}

// Each case is a session with one group, g. Its expectations are entries-read and lag, as XINFO GROUPS reports them:
// the results of Redis 7.0, with the corrections of 7.4.2.
func TestLagIsKnownExactlyWhenRedisKnowsIt(t *testing.T) {
	for _, c := range lagSessions {
		t.Run(c.steps, func(t *testing.T) {
			s := New()
			var g *Group
			for step := range strings.SplitSeq(c.steps, "; ") {
				var op string
				var a, b, d int
				_, _ = fmt.Sscan(step+" 0 0 0", &op, &a, &b, &d)
				id := ID{uint64(a), 0}
				switch op {
				case "add":
					add(t, s, DefaultLimits, id)
				case "del":
					require.True(t, s.Delete(id))
				case "maxlen":
					s.TrimByLength(a, Trim{})
				case "setid":
					require.NoError(t, s.SetID(id, int64(b), ID{uint64(d), 0}))
				case "create":
					g, _ = s.CreateGroup([]byte("g"), id, int64(b))
				case "groupid":
					g.SetID(id, int64(b))
				case "read":
					consumer, _ := g.CreateConsumer([]byte("c"), 0)
					g.ReadNew(s, consumer, a, false, 0, func(Entry) {})
				default:
					t.Fatalf("unknown step %q", step)
				}
			}
			read, lag := "nil", "nil"
			if g.EntriesRead != UnknownEntriesRead {
				read = fmt.Sprint(g.EntriesRead)
			}
			if n, ok := s.Lag(g); ok {
				lag = fmt.Sprint(n)
			}
			require.Equal(t, c.want, read+" "+lag)
		})
	}
}
