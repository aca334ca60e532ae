package perper_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

func TestCommandsOnExecutions(t *testing.T) {
	s := atomredistest.Run(t)
	play(t, s, `
		> PERPER.EXECUTIONS a
		(empty array)
		> PERPER.WAIT x
		(integer) 0
		> PERPER.CALL a i d ID x PARAMETERS 1 two
		"x"
		> PERPER.CALL a i d ID x
		ERR the execution exists already
		> PERPER.CALL a j e ID y
		"y"
		> PERPER.CALL Registry a Run ID i
		"i"
		> PERPER.GET executions x
		"ExecutionData{agent: \"a\", instance: \"i\", delegate: \"d\", finished: false, parameters: [1, \"two\"], result: null, error: null}"
		> PERPER.EXECUTIONS a
		1) 1) "x"
		2) "i"
		3) "d"
		2) 1) "y"
		2) "j"
		3) "e"
		> PERPER.EXECUTIONS a INSTANCE j
		1) 1) "y"
		2) "j"
		3) "e"
		> PERPER.EXECUTIONS a DELEGATE d WITHSERIAL
		1) (integer) 4
		2) 1) 1) "x"
		2) "i"
		3) "d"
		> PERPER.EXECUTIONS a INSTANCE i DELEGATE e
		(empty array)
		> PERPER.AGENT a
		1# "instances" => (integer) 1
		2# "executions" => (integer) 2
		3# "unfinished" => (integer) 2
		> PERPER.FINISH x RESULTS 7
		(integer) 1
		> PERPER.FINISH x
		(integer) 0
		> PERPER.GET executions x
		"ExecutionData{agent: \"a\", instance: \"i\", delegate: \"d\", finished: true, parameters: [1, \"two\"], result: [7], error: null}"
		> PERPER.WAIT x
		(integer) 1
		> PERPER.AGENT a
		1# "instances" => (integer) 1
		2# "executions" => (integer) 2
		3# "unfinished" => (integer) 1
		> PERPER.FINISH y ERROR bad
		(integer) 1
		> PERPER.CANCEL y
		(integer) 1
		> PERPER.CANCEL y
		(integer) 0
		> PERPER.EXECUTIONS a
		(empty array)
		> PERPER.CALL a i d NO
		ERR syntax error
		> PERPER.CALL a i d PARAMETERS hex(1)
		BADOBJECT not an object
	`)
}

// later calls fn in the background and returns its reply.
func later(t *testing.T, s *atomredistest.Server, args ...any) <-chan string {
	t.Helper()
	before := blocked(t, s)
	out := make(chan string, 1)
	go func() {
		r, err := s.Do(context.Background(), args...)
		if err != nil {
			out <- err.Error()
			return
		}
		out <- strings.Join(strings.Fields(r.String()), " ")
	}()
	require.Eventually(t, func() bool { return blocked(t, s) > before || len(out) > 0 }, deadline, time.Millisecond)
	return out
}

const deadline = 30 * time.Second

// blocked returns the number of blocked clients.
func blocked(t testing.TB, s *atomredistest.Server) int {
	_, rest, _ := strings.Cut(infoOf(t, s, "clients"), "blocked_clients:")
	n, _, _ := strings.Cut(rest, "\r\n")
	got, err := strconv.Atoi(n)
	require.NoError(t, err)
	return got
}

func infoOf(t testing.TB, s *atomredistest.Server, section string) string {
	text, err := s.MustDo(t, "INFO", section).Text()
	require.NoError(t, err)
	return text
}

func TestWaitingForTheEndOfAnExecution(t *testing.T) {
	s := atomredistest.Run(t)
	for _, id := range []string{"x", "y", "z"} {
		s.MustDo(t, "PERPER.CALL", "a", "", "d", "ID", id)
	}
	finished := later(t, s, "PERPER.WAIT", "x")
	gone := later(t, s, "PERPER.WAIT", "y", "TIMEOUT", "100000")
	bored := later(t, s, "PERPER.WAIT", "z", "TIMEOUT", "1000")
	s.MustDo(t, "PERPER.FINISH", "x")
	require.Equal(t, "(integer) 1", <-finished)
	s.MustDo(t, "PERPER.CANCEL", "y")
	require.Equal(t, "(integer) 0", <-gone)
	s.FastForward(time.Second)
	require.Equal(t, "(nil)", <-bored)
	play(t, s, `
		> PERPER.WAIT z TIMEOUT -1
		ERR timeout is negative
		> PERPER.WAIT z TIMEOUT
		ERR syntax error
		> EVAL return{redis.call('PERPER.WAIT','z'),1} 0
		1) (nil)
		2) (integer) 1
	`)
}

// Changes of the whole cache end the waiting, too.
func TestWaitingEndsWithTheCache(t *testing.T) {
	for _, how := range [][]any{{"PERPER.CLEAR", "executions"}, {"PERPER.DESTROY", "executions"},
		{"PERPER.MREMOVE", "executions", 2, "x", "y"}} {
		s := atomredistest.Run(t)
		s.MustDo(t, "PERPER.CALL", "a", "", "d", "ID", "x")
		s.MustDo(t, "PERPER.CALL", "a", "", "d", "ID", "y")
		s.MustDo(t, "PERPER.RESERVE", "g", "x")
		x, y, r := later(t, s, "PERPER.WAIT", "x"), later(t, s, "PERPER.WAIT", "y"), later(t, s, "PERPER.RESERVE", "g", "x")
		s.MustDo(t, how...)
		require.Equal(t, "(integer) 0", <-x)
		require.Equal(t, "(integer) 0", <-y)
		require.Contains(t, []string{"(integer) 0", "(integer) 1"}, <-r)
		require.Equal(t, "(empty array)", s.MustDo(t, "PERPER.LOCKS").String())
	}
}

// An index that does not match the cache any more is built again.
func TestExecutionsThatOrdinaryCommandsHaveChanged(t *testing.T) {
	s := atomredistest.Run(t)
	s.MustDo(t, "PERPER.CALL", "a", "", "d", "ID", "x")
	wait := later(t, s, "PERPER.WAIT", "x")
	s.MustDo(t, "COPY", "perper:{executions}", "kept")
	s.MustDo(t, "DEL", "perper:{executions}")
	require.Equal(t, "(empty array)", s.MustDo(t, "PERPER.EXECUTIONS", "a").String())
	require.Equal(t, "(integer) 0", <-wait)
	s.MustDo(t, "RENAME", "kept", "perper:{executions}")
	play(t, s, `
		> PERPER.EXECUTIONS a
		1) 1) "x"
		2) ""
		3) "d"
		> SET perper:{executions} text
		OK
		> PERPER.EXECUTIONS a
		WRONGTYPE Operation against a key holding the wrong kind of value
		> PERPER.NEXT g a
		WRONGTYPE Operation against a key holding the wrong kind of value
		> FLUSHALL
		OK
		> PERPER.AGENT a
		1# "instances" => (integer) 0
		2# "executions" => (integer) 0
		3# "unfinished" => (integer) 0
	`)
}

// client is a client with its own connection.
type client struct {
	*redis.Conn
	rdb *redis.Client
}

// Close hangs up.
func (c client) Close() { c.rdb.Close() }

func connect(t testing.TB, s *atomredistest.Server) client {
	rdb := redis.NewClient(&redis.Options{Protocol: 3, DisableIdentity: true, MaxRetries: -1,
		ReadTimeout: -1, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }})
	t.Cleanup(func() { rdb.Close() })
	return client{rdb.Conn(), rdb}
}

// do executes a command and returns its reply as Go prints it.
func (c client) do(args ...any) string {
	r, err := c.Do(context.Background(), args...).Result()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(r)
}

// Random clients take, release, finish and disconnect: an execution never has two holders, and finally each was
// finished once.
func TestEveryExecutionIsTakenByOneAtATime(t *testing.T) {
	s := atomredistest.Run(t)
	n := 2000
	if testing.Short() {
		n = 200
	}
	var mu sync.Mutex
	holders, done := map[string]int{}, map[string]int{}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for round := 0; ; round++ {
				c := connect(t, s)
				for range 10 {
					var id, instance, delegate string
					n, err := fmt.Sscanf(strings.Trim(c.do("PERPER.NEXT", "g", "a", "INSTANCE", "i"), "[]"), "%s %s %s",
						&id, &instance, &delegate)
					if n < 3 {
						t.Errorf("no execution: %v", err)
					}
					if delegate == "stop" {
						c.Close()
						return
					}
					mu.Lock()
					holders[id]++
					held := holders[id]
					mu.Unlock()
					if held != 1 {
						t.Errorf("%s has %d holders", id, held)
					}
					finish := (w+round)%3 > 0
					if finish {
						c.do("PERPER.FINISH", id)
					}
					mu.Lock()
					holders[id]--
					if finish {
						done[id]++
					}
					mu.Unlock()
					if !finish {
						c.do("PERPER.RELEASE", "g", id)
					}
				}
				c.Close()
			}
		})
	}
	for i := range n {
		s.MustDo(t, "PERPER.CALL", "a", "i", "d", "ID", fmt.Sprint(i))
	}
	require.Eventually(t, func() bool {
		return s.MustDo(t, "PERPER.EXECUTIONS", "a").String() == "(empty array)"
	}, deadline, 5*time.Millisecond)
	for i := range 8 {
		s.MustDo(t, "PERPER.CALL", "a", "i", "stop", "ID", fmt.Sprint("stop", i))
	}
	workers.Wait()
	require.Len(t, done, n)
	for id, times := range done {
		require.Equal(t, 1, times, id)
	}
	require.Eventually(t, func() bool { return s.MustDo(t, "PERPER.LOCKS").String() == "(empty array)" }, deadline, time.Millisecond)
}

func TestWorkGroups(t *testing.T) {
	s := atomredistest.Run(t)
	one, two := connect(t, s), connect(t, s)
	play(t, s, `
		> PERPER.RESERVE g x
		(integer) 0
		> PERPER.NEXT g a NOWAIT
		(nil)
		> PERPER.CALL a i d ID x
		"x"
		> PERPER.CALL a j d ID y
		"y"
	`)
	require.Equal(t, "[x i d]", one.do("PERPER.NEXT", "g", "a"))
	require.Equal(t, "[y j d 3]", two.do("PERPER.NEXT", "g", "a", "WITHSERIAL"))
	require.Equal(t, "redis: nil", two.do("PERPER.NEXT", "g", "a", "NOWAIT"))
	require.Equal(t, "redis: nil", two.do("PERPER.RESERVE", "g", "x", "NOWAIT"))
	require.Equal(t, "1", one.do("PERPER.RESERVE", "g", "x"), "it has it")
	require.Equal(t, "[x i d]", two.do("PERPER.NEXT", "other", "a", "INSTANCE", "i"))
	require.Equal(t, "[[g x] [g y] [other x]]", one.do("PERPER.LOCKS"))
	require.Equal(t, "[[other x]]", one.do("PERPER.LOCKS", "other"))
	require.Equal(t, "0", one.do("PERPER.RELEASE", "g", "y"), "it is another's")
	waits := later(t, s, "PERPER.RESERVE", "g", "x")
	takes := later(t, s, "PERPER.NEXT", "g", "a", "INSTANCE", "j")
	require.Equal(t, "1", one.do("PERPER.RELEASE", "g"))
	require.Equal(t, "(integer) 1", <-waits)
	require.Equal(t, "1", two.do("PERPER.RELEASE", "g", "y"))
	require.Equal(t, `1) "y" 2) "j" 3) "d"`, <-takes)
	require.Equal(t, "1", two.do("PERPER.FINISH", "x"))
	require.Contains(t, two.do("PERPER.LOCKS"), "[other x]", "finishing ends no lock")
	require.Equal(t, "1", two.do("PERPER.CANCEL", "x"))
	require.NotContains(t, two.do("PERPER.LOCKS"), "x]")
}

// A client's locks end with it.
func TestLocksEndWithTheirClient(t *testing.T) {
	s := atomredistest.Run(t)
	c := connect(t, s)
	for _, id := range []string{"x", "y"} {
		s.MustDo(t, "PERPER.CALL", "a", "", "d", "ID", id)
		require.Equal(t, "1", c.do("PERPER.RESERVE", "g", id))
	}
	x := later(t, s, "PERPER.NEXT", "g", "a")
	c.Close()
	require.Contains(t, []string{`1) "x" 2) "" 3) "d"`, `1) "y" 2) "" 3) "d"`}, <-x)
}

// A client that has given up gets nothing that comes later.
func TestClientsThatGiveUpGetNothing(t *testing.T) {
	s := atomredistest.Run(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, "PERPER.NEXT", "g", "a")
		ended <- err
	}()
	require.Eventually(t, func() bool { return blocked(t, s) == 1 }, deadline, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	s.MustDo(t, "PERPER.CALL", "a", "", "d", "ID", "x")
	require.Eventually(t, func() bool { return s.MustDo(t, "PERPER.LOCKS").String() == "(empty array)" }, deadline, time.Millisecond)
	require.Contains(t, s.MustDo(t, "PERPER.NEXT", "g", "a").String(), `"x"`)
}

func TestListeners(t *testing.T) {
	s := atomredistest.Run(t)
	attached := later(t, s, "PERPER.ATTACHED", "s")
	bored := later(t, s, "PERPER.ATTACHED", "other", "TIMEOUT", "1000")
	play(t, s, `
		> PERPER.LISTENERS s
		(empty array)
		> PERPER.LISTEN s one
		OK
		> PERPER.GET stream-listeners one
		"StreamListener{stream: \"s\", position: 9223372036854775807}"
		> PERPER.LISTEN s two -5
		OK
		> PERPER.LISTENERS s
		1) 1) "two"
		2) (integer) -5
		2) 1) "one"
		2) (integer) 9223372036854775807
		> PERPER.ATTACHED s
		(integer) 1
		> PERPER.REMOVE stream-listeners one
		(integer) 1
		> PERPER.LISTENERS s
		1) 1) "two"
		2) (integer) -5
		> PERPER.LISTEN s two five
		ERR value is not an integer or out of range
	`)
	require.Equal(t, "(integer) 1", <-attached)
	s.FastForward(time.Second)
	require.Equal(t, "(nil)", <-bored)
}

// itemsOf returns the keys of a stream.
func itemsOf(t testing.TB, s *atomredistest.Server, stream string) []string {
	texts, err := s.MustDo(t, "PERPER.KEYS", stream, "-", "+").Texts()
	require.NoError(t, err)
	return texts
}

// becomes waits until a stream has these items.
func becomes(t testing.TB, s *atomredistest.Server, stream string, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.Equal(want, itemsOf(t, s, stream)) }, deadline, time.Millisecond,
		"%v", itemsOf(t, s, stream))
}

func TestItemsThatNobodyWillReadAreRemoved(t *testing.T) {
	s := atomredistest.Run(t)
	s.MustDo(t, "PERPER.CREATE", "s")
	for _, k := range []int{1, 2, 5, 3, 4} { // 5 was inserted before 3
		s.MustDo(t, "PERPER.PUT", "s", k, "v")
	}
	listen := func(id string, position any) { s.MustDo(t, "PERPER.LISTEN", "s", id, position) }
	listen("one", "-9223372036854775808")
	listen("two", "-9223372036854775808")
	listen("one", 2)
	require.Len(t, itemsOf(t, s, "s"), 5, "the other has not moved")
	listen("two", 3)
	becomes(t, s, "s", "2", "3", "4", "5")
	listen("one", 3)
	becomes(t, s, "s", "3", "4") // 5 is older than 3
	listen("one", 4)
	require.Equal(t, []string{"3", "4"}, itemsOf(t, s, "s"))
	s.MustDo(t, "PERPER.REMOVE", "stream-listeners", "two")
	becomes(t, s, "s", "4")
	listen("persist", "-9223372036854775808")
	s.MustDo(t, "PERPER.REMOVE", "stream-listeners", "one")
	listen("trigger", "9223372036854775807")
	s.MustDo(t, "PERPER.REMOVE", "stream-listeners", "trigger")
	require.Equal(t, []string{"4"}, itemsOf(t, s, "s"))
	s.MustDo(t, "PERPER.REMOVE", "stream-listeners", "persist")
	becomes(t, s, "s")
}

// All items of a long stream are removed, although few are removed at a time.
func TestLongStreamsAreRemovedInPieces(t *testing.T) {
	s := atomredistest.Run(t)
	s.MustDo(t, "PERPER.CREATE", "s")
	for i := range 1000 {
		s.MustDo(t, "PERPER.PUT", "s", i, "v")
	}
	s.MustDo(t, "PERPER.LISTEN", "s", "l", 0)
	s.MustDo(t, "PERPER.LISTEN", "s", "l", 990)
	becomes(t, s, "s", "990", "991", "992", "993", "994", "995", "996", "997", "998", "999")
	s.MustDo(t, "PERPER.DESTROY", "stream-listeners")
	becomes(t, s, "s")
}

func TestTheFabricAfterARestart(t *testing.T) {
	dir := t.TempDir()
	open := func() *atomredistest.Server {
		return atomredistest.RunOptions(t, atomredis.Options{Dir: dir})
	}
	s := open()
	for _, id := range []string{"x", "y", "z"} {
		s.MustDo(t, "PERPER.CALL", "a", "", "d", "ID", id)
	}
	s.MustDo(t, "PERPER.NEXT", "g", "a")
	s.MustDo(t, "PERPER.FINISH", "x")
	s.MustDo(t, "PERPER.CREATE", "s")
	for _, k := range []int{7, 1, 2} {
		s.MustDo(t, "PERPER.PUT", "s", k, "v")
	}
	s.MustDo(t, "PERPER.LISTEN", "s", "l", 1)
	require.NoError(t, s.Close())
	s = open()
	play(t, s, `
		> PERPER.LOCKS
		(empty array)
		> PERPER.WAIT x
		(integer) 1
		> PERPER.LISTENERS s
		1) 1) "l"
		2) (integer) 1
		> PERPER.ATTACHED s
		(integer) 1
	`)
	taken := map[string]bool{}
	for range 2 {
		e, err := s.MustDo(t, "PERPER.NEXT", "g", "a", "NOWAIT").Texts()
		require.NoError(t, err)
		taken[e[0]] = true
	}
	require.Equal(t, map[string]bool{"y": true, "z": true}, taken, "no finished one comes back")
	require.True(t, s.MustDo(t, "PERPER.NEXT", "g", "a", "NOWAIT").IsNull())
	s.MustDo(t, "PERPER.LISTEN", "s", "l", 2)
	becomes(t, s, "s", "2") // 7 is the oldest
}

// Changes of the caches by other commands count, even if the number of entries stays the same.
func TestChangesByOtherCommandsAreSeen(t *testing.T) {
	s := atomredistest.Run(t)
	play(t, s, `
		> PERPER.CALL a i d ID one
		"one"
		> PERPER.CALL a i d ID two
		"two"
		> PERPER.FINISH two
		(integer) 1
		> PERPER.AGENT a
		1# "instances" => (integer) 0
		2# "executions" => (integer) 2
		3# "unfinished" => (integer) 1
		> PERPER.LISTEN s l 5
		OK
		> PERPER.LISTENERS s
		1) 1) "l"
		2) (integer) 5
	`)
	key := func(name string) []byte { return binary.AppendString(nil, name) }
	finished, err := s.MustDo(t, "HGET", "perper:{executions}", key("two")).Text()
	require.NoError(t, err)
	s.MustDo(t, "HSET", "perper:{executions}", key("one"), finished)
	listener, err := s.MustDo(t, "HGET", "perper:{stream-listeners}", key("l")).Text()
	require.NoError(t, err)
	s.MustDo(t, "HSET", "perper:{stream-listeners}", key("m"), listener)
	s.MustDo(t, "HDEL", "perper:{stream-listeners}", key("l"))
	play(t, s, `
		> PERPER.CALL a i d ID three
		"three"
		> PERPER.EXECUTIONS a
		1) 1) "three"
		2) "i"
		3) "d"
		> PERPER.WAIT one
		(integer) 1
		> PERPER.LISTENERS s
		1) 1) "m"
		2) (integer) 5
	`)
}
