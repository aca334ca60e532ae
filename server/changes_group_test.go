package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/resp"
)

// do executes a command at a server, in a database.
func do(t *testing.T, srv *Server, db int, args ...any) (resp.Reply, error) {
	t.Helper()
	d, err := srv.Direct(db)
	require.NoError(t, err)
	c := door.NewClient(d)
	defer c.Close()
	return c.Do(t.Context(), args...)
}

// The leader is killed with writes under way, again and again, while a consumer reads from any of the servers: what it has got was
// never taken back, and in the end it has all.
func TestAConsumerOfAGroupWhoseLeaderIsKilled(t *testing.T) {
	r := testseed.Rand(t)
	g := startGroup(t, 3, "checkpoint-size=1mb", "enable-debug-command=yes")
	to := startTestServer(t, Options{}, "enable-debug-command", "yes")
	g.settled()
	at := "0"
	read := func(from *groupNode) (more bool) {
		reply, err := do(t, from.Server, 0, "CHANGES", "READ", "FROM", at, "COUNT", 1+r.IntN(200))
		if err != nil && strings.HasPrefix(err.Error(), "CHANGESGONE") {
			at = "0"
			_, err = do(t, to.Server, 0, "FLUSHALL")
			require.NoError(t, err)
			return true
		}
		if err != nil && (strings.HasPrefix(err.Error(), "MASTERDOWN") || strings.HasPrefix(err.Error(), "LOADING") ||
			errors.Is(err, door.ErrKilled)) {
			return false // it may have lost its leader, or the lead
		}
		require.NoError(t, err)
		page, err := reply.Slice()
		require.NoError(t, err)
		before := at
		at, err = page[0].Text()
		require.NoError(t, err)
		list, err := page[1].Slice()
		require.NoError(t, err)
		for _, change := range list {
			parts, err := change.Slice()
			require.NoError(t, err)
			commands, err := parts[2].Slice()
			require.NoError(t, err)
			for _, c := range commands {
				words, err := c.Texts()
				require.NoError(t, err)
				args := make([]any, len(words)-1)
				for i, w := range words[1:] {
					args[i] = w
				}
				_, err = do(t, to.Server, int(words[0][0]-'0'), args...)
				require.NoError(t, err, words)
			}
		}
		return at != before
	}
	const rounds = 4
	for round := range rounds {
		leader := g.leader()
		c := leader.client()
		c.do("SET began " + fmt.Sprint(round))
		for i := range 400 {
			key := fmt.Sprint("key", r.IntN(50))
			c.Append("SADD", "s"+key, fmt.Sprint(round), fmt.Sprint(i))
			c.Append("SPOP", "s"+key)
			c.Append("INCR", key)
			_ = c.Flush() // on a busy machine the leader may lose the lead earlier, and end the connection
			if i == 200 && r.IntN(2) == 0 {
				read(g.nodes[r.IntN(3)])
			}
		}
		leader.kill()
		for range 3 {
			for _, n := range g.nodes {
				if n.Server != nil && r.IntN(2) == 0 {
					read(n)
				}
			}
		}
		g.leader()
		leader.start()
		g.settled()
		read(g.nodes[r.IntN(3)])
	}
	last := g.settled()
	for last.client().do("SET ended 1") != "+OK" {
		last = g.settled()
	}
	for read(last) {
	}
	want, err := do(t, last.Server, 0, "DEBUG", "DIGEST")
	require.NoError(t, err)
	got, err := do(t, to.Server, 0, "DEBUG", "DIGEST")
	require.NoError(t, err)
	require.Equal(t, want.String(), got.String())
}
