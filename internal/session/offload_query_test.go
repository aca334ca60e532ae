package session

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// queryHarness is a server with a command that takes no shards and is offloaded. It waits until the test lets it
// continue, or until its reply is no longer wanted, and then replies with the value of the key that it names. The
// command short is not offloaded.
type queryHarness struct {
	*offloadHarness
	began chan *command.Offload
	goOn  chan struct{}
}

func newQueryHarness(t testing.TB) *queryHarness {
	b := &queryHarness{&offloadHarness{newHarness(t), t}, make(chan *command.Offload, 4), make(chan struct{})}
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		require.Empty(t, b.panics.Found)
	})
	add := func(name string, begin func(c *command.Ctx)) {
		require.NoError(t, b.Table.Extend(&command.Command{Name: name, Arity: -2, Do: func(c *command.Ctx) { b.do(c, begin) },
			Flags: command.ReadOnly | command.AllKeys | command.FollowsKeys}))
	}
	add("query", func(c *command.Ctx) { c.LongQuery(command.LongQueryFrom) })
	add("short", func(c *command.Ctx) { c.LongQuery(command.LongQueryFrom - 1) })
	return b
}

// do is the handler of the commands.
func (b *queryHarness) do(c *command.Ctx, begin func(c *command.Ctx)) {
	begin(c)
	if c.Offload != nil {
		b.began <- c.Offload
		select {
		case <-b.goOn:
		case <-c.Offload.Unwanted:
		}
	}
	g := c.G
	if !g.Locked() {
		g = &engine.Guard{}
		g.Lock(c.Host.Keyspace(), engine.AllShards, c.Now())
		defer g.Unlock()
	}
	c.W.Map(1)
	c.W.BulkString("value")
	switch e := g.Peek(c.DB, c.Args[1]); {
	case c.Client != nil && !c.Client.MayRead(c.Cmd, c.Args[1], c.DB):
		c.W.Error("NOPERM")
	case e == nil:
		c.W.Null()
	default:
		c.W.Bulk(e.Bytes())
	}
}

func (b *queryHarness) settled() {
	b.t.Helper()
	b.offloads.running.Wait()
	require.Equal(b.t, b.offloads.most, b.offloads.free)
	require.Empty(b.t, b.offloads.waiting)
}

// While a query runs other clients continue, and the query sees its client's earlier changes.
func TestQueriesAreOffloaded(t *testing.T) {
	b := newQueryHarness(t)
	s, other, monitor := b.client(), b.client(), b.client()
	defer s.Close()
	defer other.Close()
	defer monitor.Close()
	require.Equal(t, "+OK", other.do("CONFIG", "SET", "slowlog-log-slower-than", "0"))
	for proto, want := range map[string]string{"2": "*2\r\n$5\r\nvalue\r\n$1\r\n", "3": "%1\r\n$5\r\nvalue\r\n$1\r\n"} {
		s.do("HELLO", proto)
		require.Equal(t, "+OK", monitor.do("MONITOR"))
		other.do("CONFIG", "RESETSTAT")
		other.do("SLOWLOG", "RESET")
		require.Equal(t, "+OK", s.begin("SET", "k", proto))
		require.Empty(t, s.begin("query", "k"))
		<-b.began
		require.True(t, s.Waiting())
		require.Equal(t, "+PONG", other.begin("PING"))
		require.Equal(t, ":0", other.begin("CLIENT", "UNBLOCK", strconv.FormatInt(s.ID(), 10)))
		require.Empty(t, s.begin("ECHO", "x"), "replies keep their order")
		b.goOn <- struct{}{}
		require.Equal(t, want+proto+"\r\n$1\r\nx", s.end())
		require.Contains(t, other.do("INFO", "commandstats"), "cmdstat_query:calls=1,")
		require.Contains(t, other.do("SLOWLOG", "GET"), "query")
		monitor.Advance(b.Keyspace.Now())
		require.Equal(t, 1, strings.Count(monitor.do("RESET"), `"query" "k"`))
	}
	b.settled()
}

// Transactions, scripts and short queries are executed in place.
func TestQueriesThatAreNotOffloaded(t *testing.T) {
	b := newQueryHarness(t)
	s := b.client()
	defer s.Close()
	s.do("SET", "k", "1")
	const want = "*2\r\n$5\r\nvalue\r\n$1\r\n1"
	require.Equal(t, want, s.begin("short", "k"))
	require.Equal(t, want, s.whole("query", "k"))
	require.Equal(t, want, s.begin("EVAL", "return redis.call('query', 'k')", "0"))
	require.Empty(t, b.began)
}

// Queries of clients that track keys are offloaded too, because queries have no keys.
func TestQueriesOfTrackingClients(t *testing.T) {
	b := newQueryHarness(t)
	s := b.client()
	defer s.Close()
	require.Equal(t, "+OK", s.do("CLIENT", "TRACKING", "ON", "BCAST"))
	require.Empty(t, s.begin("query", "k"))
	<-b.began
	b.goOn <- struct{}{}
	require.Equal(t, "*2\r\n$5\r\nvalue\r\n$-1", s.end())
}

// An offloaded query has the permissions of its client.
func TestPermissionsOfQueries(t *testing.T) {
	b := newQueryHarness(t)
	s := b.client()
	defer s.Close()
	s.do("ACL", "SETUSER", "some", "on", "nopass", "+@all", "~a*")
	require.Equal(t, "+OK", s.do("AUTH", "some", "x"))
	for key, want := range map[string]string{"a": "$-1", "b": "-NOPERM"} {
		require.Empty(t, s.begin("query", key))
		<-b.began
		b.goOn <- struct{}{}
		require.Equal(t, "*2\r\n$5\r\nvalue\r\n"+want, s.end())
	}
}

// A query ends when its client disconnects or is killed, and the next query gets its place.
func TestQueriesOfClientsThatGo(t *testing.T) {
	b := newQueryHarness(t)
	other := b.client()
	defer other.Close()
	for _, kill := range []bool{true, false} {
		s := b.client()
		require.Empty(t, s.begin("query", "k"))
		a := <-b.began
		require.True(t, a.Wanted())
		if kill {
			require.Equal(t, ":1", other.begin("CLIENT", "KILL", "ID", strconv.FormatInt(s.ID(), 10)))
			s.Advance(b.Keyspace.Now())
			require.True(t, s.Closing())
		}
		s.Close()
		require.False(t, a.Wanted())
		b.settled()
	}
}
