package atomredis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/engine"
)

// open opens a server that is closed at the end of the test.
func open(t testing.TB, o atomredis.Options) *atomredis.DB {
	t.Helper()
	db, err := atomredis.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// do executes a command that must succeed.
func do(t testing.TB, db *atomredis.DB, args ...any) atomredis.Reply {
	t.Helper()
	r, err := db.Do(t.Context(), args...)
	require.NoError(t, err)
	return r
}

func text(t testing.TB, r atomredis.Reply) string {
	t.Helper()
	s, err := r.Text()
	require.NoError(t, err)
	return s
}

// waitForInfo waits until a section of INFO contains a text.
func waitForInfo(t testing.TB, db *atomredis.DB, section, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(text(t, do(t, db, "INFO", section)), want) },
		time.Minute, time.Millisecond)
}

// waitForSubscribers waits until there are subscriptions to n patterns.
func waitForSubscribers(t testing.TB, db *atomredis.DB, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return do(t, db, "PUBSUB", "NUMPAT").String() == fmt.Sprintf("(integer) %d",
			n)
	}, time.Minute, time.Millisecond)
}

func TestDoTakesArgumentsAsGoRedisDoes(t *testing.T) {
	db := open(t, atomredis.Options{})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, c := range []struct {
		arg  any
		want string
	}{
		{"a b\r\n", "a b\r\n"}, {[]byte{0, 255}, "\x00\xff"}, {[]byte(nil), ""}, {nil, ""}, {true, "1"}, {false, "0"},
		{int8(-8), "-8"}, {int16(16), "16"}, {int32(32), "32"}, {int64(1 << 62), "4611686018427387904"}, {-1, "-1"},
		{uint(1), "1"}, {uint8(8), "8"}, {uint16(16), "16"}, {uint32(32), "32"}, {uint64(1 << 63), "9223372036854775808"},
		{1.5, "1.5"}, {float32(0.1), "0.1"}, {2 * time.Second, "2000000000"}, {at, "2026-01-02T03:04:05.000000006Z"},
		{marshaler("x"), "marshaled x"},
	} {
		require.Equal(t, c.want, text(t, do(t, db, "ECHO", c.arg)), "%T", c.arg)
	}
	deep := []any{nil}
	deep[0] = deep // a collection that contains itself
	for _, bad := range []any{struct{}{}, struct{ A int }{1}, func() {}, make(chan int), complex(1, 1), marshaler(""),
		deep, []any{func() {}}} {
		_, err := db.Do(t.Context(), "ECHO", bad)
		require.ErrorContains(t, err, "argument 1 of ECHO: ", "%T", bad)
	}
	for _, none := range [][]any{nil, {[]string{}}, {map[string]int{}, (*tagged)(nil)}} {
		_, err := db.Do(t.Context(), none...)
		require.ErrorContains(t, err, "no name")
	}
}

// Do sends each value as go-redis does. Types that go-redis does not know are compared with the expected text only.
func TestDoTakesAnyTypeAsGoRedisDoes(t *testing.T) {
	db := open(t, atomredis.Options{})
	client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return db.Dial(ctx)
	}})
	defer client.Close()
	word, n, u, f, yes, at, d := "w", -3, uint16(3), 0.25, true, time.Unix(1, 5).UTC(), time.Minute
	for _, arg := range []any{&word, &n, &u, &f, &yes, &at, &d, (*string)(nil), (*int)(nil), (*uint64)(nil),
		(*float32)(nil), (*bool)(nil),
		(*time.Time)(nil), (*time.Duration)(nil), net.IPv4(10, 1, 2, 3), net.ParseIP("::1"), uintptr(7),
		netip.MustParseAddr("10.0.0.1"),
		&url.URL{Scheme: "http", Host: "h"}, marshaler("x"), nil, []byte{}} {
		want, err := client.Do(t.Context(), "ECHO", arg).Text()
		require.NoError(t, err, "%T", arg)
		require.Equal(t, want, text(t, do(t, db, "ECHO", arg)), "%T", arg)
	}
	type (
		name    string
		number  int16
		count   uint32
		share   float32
		flag    bool
		content []byte
		wait    time.Duration
	)
	for _, c := range []struct {
		arg  any
		want string
	}{
		{name("a"), "a"}, {number(-1), "-1"}, {count(9), "9"}, {share(0.1), "0.1"}, {flag(true), "1"}, {content("c"), "c"},
		{wait(5), "5"},
		{[3]byte{'x', 'y', 'z'}, "xyz"}, {json.RawMessage("{}"), "{}"}, {new(name), ""}, {big.NewInt(12), "12"},
		{new(*int), "0"},
	} {
		require.Equal(t, c.want, text(t, do(t, db, "ECHO", c.arg)), "%T", c.arg)
	}
	person := tagged{Name: "Ada", Born: 1815, hidden: "x"}
	do(t, db, "RPUSH", "l", []string{"a", "b"}, []int{1}, [2]float64{0.5, 2}, []any{"c", []name{"d"}},
		[][]byte{[]byte("e")}, []string(nil))
	require.Equal(t, `["a" "b" "1" "0.5" "2" "c" "d" "e"]`, fmt.Sprintf("%q", texts(t, do(t, db, "LRANGE", "l", 0, -1))))
	for _, args := range [][]any{
		{"HSET", "h", person}, {"HSET", "h", &person}, {"HSET", "h", map[string]any{"name": "Ada", "born": 1815}},
		{"HSET", "h", []any{"name", "Ada", "born", 1815}}, {[]string{"HSET", "h", "name"}, "Ada", "born", 1815},
	} {
		do(t, db, "DEL", "h")
		do(t, db, args...)
		require.Equal(t, []string{"Ada", "1815"}, texts(t, do(t, db, "HMGET", "h", "name", "born")))
		require.Equal(t, "(integer) 2", do(t, db, "HLEN", "h").String())
	}
	require.NoError(t, client.HSet(t.Context(), "g", person).Err())
	require.Equal(t, []string{"Ada", "1815"}, texts(t, do(t, db, "HMGET", "g", "name", "born")))
	do(t, db, "MSET", map[int]string{2: "b", 1: "a"}, map[string]int{"x": 1})
	require.Equal(t, []string{"a", "b", "1"}, texts(t, do(t, db, "MGET", 1, 2, "x")))
}

// tagged is a struct with the tags of go-redis.
type tagged struct {
	Name     string `redis:"name"`
	Born     int    `redis:"born"`
	Died     int    `redis:"died,omitempty"`
	Ignored  func() `redis:"-"`
	Untagged []string
	hidden   string `redis:"hidden"`
}

func texts(t testing.TB, r atomredis.Reply) []string {
	t.Helper()
	list, err := r.Texts()
	require.NoError(t, err)
	return list
}

func TestErrorsHaveTheCauseOfTheirContext(t *testing.T) {
	db := open(t, atomredis.Options{})
	cause := errors.New("the user has left")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	calls := map[string]func(ctx context.Context) error{
		"Do":     func(ctx context.Context) error { _, err := db.Do(ctx, "BLPOP", "k", 0); return err },
		"DoMany": func(ctx context.Context) error { _, err := db.DoMany(ctx, atomredis.Args{"BLPOP", "k", 0}); return err },
		"Subscribe": func(ctx context.Context) error {
			for _, err := range db.PSubscribe(ctx, "c") {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		// While it waits.
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error)
		go func() { result <- call(ctx) }()
		if name == "Subscribe" {
			waitForSubscribers(t, db, 1)
		} else {
			waitForInfo(t, db, "clients", "blocked_clients:1\r\n")
		}
		cancel(cause)
		err := <-result
		require.ErrorIs(t, err, cause, name)
		require.ErrorIs(t, err, context.Canceled, name)
	}
	calls["Dial"] = func(ctx context.Context) error { _, err := db.Dial(ctx); return err }
	calls["Tx"] = func(ctx context.Context) error {
		return db.Tx(ctx, func(tx *atomredis.Tx) error { tx.Do("PING"); return nil })
	}
	for name, call := range calls {
		err := call(ended)
		require.ErrorIs(t, err, cause, name)
		require.ErrorIs(t, err, context.Canceled, name)
	}
	late, stop := context.WithTimeoutCause(t.Context(), time.Nanosecond, cause)
	defer stop()
	<-late.Done()
	_, err := db.Do(late, "PING")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, cause)
	plain, stop2 := context.WithCancel(t.Context())
	stop2()
	_, err = db.Do(plain, "PING")
	require.EqualError(t, err, "atomredis: context canceled") // once
}

func TestSubscribersThatNobodyListensToGo(t *testing.T) {
	db := open(t, atomredis.Options{})
	for i := range 3 {
		db.PSubscribe(context.Background(), fmt.Sprint("never-ranged", i)) // with a context that never ends
	}
	waitForSubscribers(t, db, 3)
	require.Eventually(t, func() bool {
		runtime.GC()
		return do(t, db, "PUBSUB", "NUMPAT").String() == "(integer) 0"
	}, time.Minute, time.Millisecond)

	messages := db.PSubscribe(t.Context(), "c")
	do(t, db, "PUBLISH", "c", "1")
	for m, err := range messages {
		require.NoError(t, err)
		require.Equal(t, "1", m.Payload)
		break
	}
	waitForSubscribers(t, db, 0)
	steps := 0
	for _, err := range messages {
		steps++
		require.ErrorIs(t, err, atomredis.ErrSubscriptionEnded)
		require.NotErrorIs(t, err, atomredis.ErrClosed)
	}
	require.Equal(t, 1, steps)

	func() { // a loop that panics
		defer func() { require.Equal(t, "enough", recover()) }()
		messages := db.PSubscribe(t.Context(), "c")
		do(t, db, "PUBLISH", "c", "1")
		for range messages {
			panic("enough")
		}
	}()
	waitForSubscribers(t, db, 0)
}

type marshaler string

func (m marshaler) MarshalBinary() ([]byte, error) {
	if m == "" {
		return nil, fmt.Errorf("nothing to marshal")
	}
	return []byte("marshaled " + m), nil
}

func TestDoReturnsErrorRepliesAsErrors(t *testing.T) {
	db := open(t, atomredis.Options{Config: map[string]string{"requirepass": "secret", "proto-max-bulk-len": "1mb"}})
	do(t, db, "SET", "s", "x") // the program needs no password
	_, err := db.Do(t.Context(), "LPUSH", "s", 1)
	require.Equal(t, atomredis.Error("WRONGTYPE Operation against a key holding the wrong kind of value"), err)
	_, err = db.Do(t.Context(), "NOSUCH", "a")
	require.Equal(t, atomredis.Error("ERR unknown command 'NOSUCH', with args beginning with: 'a' "), err)
	_, err = db.Do(t.Context(), "CLIENT", "NOSUCH")
	require.Equal(t, atomredis.Error("ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP."), err)
	_, err = db.Do(t.Context(), "SET", "s", make([]byte, 1<<20+1))
	require.ErrorContains(t, err, "proto-max-bulk-len")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.Do(ended, "SET", "s", "never")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "x", text(t, do(t, db, "GET", "s")))
}

func TestCommandsOfConnectionsAreRefusedAndLeaveNothing(t *testing.T) {
	db := open(t, atomredis.Options{})
	for _, c := range []string{"AUTH x", "HELLO 2", "QUIT", "RESET", "SELECT 1", "MONITOR", "MULTI", "EXEC", "DISCARD",
		"WATCH k", "UNWATCH",
		"SUBSCRIBE c", "psubscribe c", "SSUBSCRIBE c", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "CLIENT REPLY OFF",
		"CLIENT TRACKING ON", "CLIENT CACHING YES", "CLIENT SETNAME x", "client setinfo LIB-NAME x", "CLIENT NO-EVICT ON",
		"CLIENT NO-TOUCH ON"} {
		var args []any
		for _, word := range strings.Fields(c) {
			args = append(args, word)
		}
		_, err := db.Do(t.Context(), args...)
		require.ErrorIs(t, err, atomredis.ErrNeedsConnection, c)
		err = db.Tx(t.Context(), func(tx *atomredis.Tx) error {
			tx.Do(args...)
			return nil
		})
		require.ErrorIs(t, err, atomredis.ErrNeedsConnection, c)
	}
	require.Equal(t, "PONG", text(t, do(t, db, "PING")))
	require.Regexp(t, `flags=U db=0 sub=0 psub=0 ssub=0 multi=-1 .* resp=3 `, text(t, do(t, db, "CLIENT", "INFO")))
}

func TestDatabasesAreChosenWithoutSelect(t *testing.T) {
	db := open(t, atomredis.Options{})
	seven, err := db.Database(7)
	require.NoError(t, err)
	do(t, seven, "SET", "k", "of 7")
	do(t, db, "SET", "k", "of 0")
	require.Equal(t, "of 7", text(t, do(t, seven, "GET", "k")))
	require.Equal(t, "of 0", text(t, do(t, db, "GET", "k")))
	for _, n := range []int{-1, 16} {
		_, err := db.Database(n)
		require.Error(t, err)
	}
}

func TestDoManyGivesRepliesInOrder(t *testing.T) {
	db := open(t, atomredis.Options{})
	replies, err := db.DoMany(t.Context(), atomredis.Args{"SET", "k", 1}, atomredis.Args{"LPUSH", "k", 1},
		atomredis.Args{"INCR", []byte("k")},
		atomredis.Args{"MGET", "k", "none"})
	require.NoError(t, err)
	require.Len(t, replies, 4)
	require.ErrorContains(t, replies[1].Err(), "WRONGTYPE")
	n, err := replies[2].Int()
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	values, err := replies[3].Texts()
	require.NoError(t, err)
	require.Equal(t, []string{"2", ""}, values)

	replies, err = db.DoMany(t.Context())
	require.NoError(t, err)
	require.Empty(t, replies)
	_, err = db.DoMany(t.Context(), atomredis.Args{"INCR", "k"}, atomredis.Args{})
	require.Error(t, err)
	require.Equal(t, "2", text(t, do(t, db, "GET", "k")), "nothing is executed if something cannot be sent")
}

func TestDoManyGivesTheRepliesBeforeItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock stands still until PING is answered and BLPOP waits
		db := open(t, atomredis.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		replies, err := db.DoMany(ctx, atomredis.Args{"PING"}, atomredis.Args{"BLPOP", "nothing", 0}, atomredis.Args{"PING"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, replies, 1)
	})
}

func TestBlockedCommandsObeyTheContextAndTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, atomredis.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := db.Do(ctx, "BLPOP", "q", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		do(t, db, "RPUSH", "q", "a")
		require.Equal(t, "1", text(t, do(t, db, "LLEN", "q")))
		require.Contains(t, text(t, do(t, db, "INFO", "clients")), "blocked_clients:0")

		r := do(t, db, "BLPOP", "q", 0)
		got, err := r.Texts()
		require.NoError(t, err)
		require.Equal(t, []string{"q", "a"}, got)
		r = do(t, db, "BLPOP", "q", 30)
		require.True(t, r.IsNull())
		require.Equal(t, 90*time.Second, time.Since(start))
	})
}

// A client that is served while its context ends either returns the element or leaves it in the list.
func TestNothingIsLostBetweenServingAndCancelling(t *testing.T) {
	db := open(t, atomredis.Options{})
	const rounds = 300
	got := 0
	for i := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if r, err := db.Do(ctx, "BLPOP", "q", 0); err == nil && !r.IsNull() {
				got++
			}
		})
		wg.Go(cancel)
		do(t, db, "RPUSH", "q", i)
		wg.Wait()
	}
	left, err := do(t, db, "LLEN", "q").Int()
	require.NoError(t, err)
	require.EqualValues(t, rounds, left+int64(got))
}

func TestPauseHoldsDoUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, atomredis.Options{})
		start := time.Now()
		do(t, db, "CLIENT", "PAUSE", 5000, "WRITE")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := db.Do(ctx, "SET", "k", "never")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, do(t, db, "GET", "k").IsNull())
		do(t, db, "SET", "k", "v")
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

func TestCommandsEndWhenTheirClientIsKilledOrUnblocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, atomredis.Options{})
		errs := make(chan error)
		blocked := func() string {
			go func() {
				_, err := db.Do(t.Context(), "BLPOP", "q", 0)
				errs <- err
			}()
			synctest.Wait()
			for line := range strings.Lines(text(t, do(t, db, "CLIENT", "LIST"))) {
				if strings.Contains(line, "cmd=blpop") && strings.Contains(line, "flags=bU") {
					return strings.TrimPrefix(strings.Fields(line)[0], "id=")
				}
			}
			t.Fatal("nobody is blocked")
			return ""
		}
		do(t, db, "CLIENT", "UNBLOCK", blocked(), "ERROR")
		require.ErrorContains(t, <-errs, "UNBLOCKED client unblocked via CLIENT UNBLOCK")
		do(t, db, "CLIENT", "KILL", "ID", blocked())
		require.ErrorIs(t, <-errs, atomredis.ErrKilled)
		require.Equal(t, "PONG", text(t, do(t, db, "PING")))

		// The pool replaces a client that was killed while idle.
		do(t, db, "CLIENT", "KILL", "ADDR", "@embedded:0", "SKIPME", "no")
		require.Equal(t, "PONG", text(t, do(t, db, "PING")))
	})
}

func TestMessagesRedirectedToAnIdleClientDoNotMixWithReplies(t *testing.T) {
	db := open(t, atomredis.Options{})
	conn, err := db.Dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	id, err := do(t, db, "CLIENT", "ID").Int()
	require.NoError(t, err)
	fmt.Fprintf(conn, "HELLO 3\r\nCLIENT TRACKING ON REDIRECT %d\r\nGET k\r\nPING\r\n", id)
	readUntil(t, conn, "+PONG\r\n")
	do(t, db, "SET", "k", "v")
	fmt.Fprintf(conn, "GET k\r\nSET k w\r\nPING\r\n")
	readUntil(t, conn, "+PONG\r\n")
	require.Equal(t, "w", text(t, do(t, db, "GET", "k")))
}

// readUntil reads up to a text.
func readUntil(t testing.TB, conn net.Conn, end string) string {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var got strings.Builder
	b := make([]byte, 1)
	for !strings.HasSuffix(got.String(), end) {
		_, err := conn.Read(b)
		require.NoError(t, err, got.String())
		got.Write(b)
	}
	return got.String()
}

func TestCloseEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := atomredis.Open(atomredis.Options{})
		require.NoError(t, err)
		errs := make(chan error, 4)
		go func() {
			_, err := db.Do(t.Context(), "BLPOP", "q", 0)
			errs <- err
		}()
		messages := db.PSubscribe(t.Context(), "*")
		go func() {
			for _, err := range messages {
				errs <- err
			}
		}()
		unread := db.PSubscribe(t.Context(), "*")
		conn, err := db.Dial(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, db.Close())
		require.ErrorIs(t, <-errs, atomredis.ErrClosed)
		require.ErrorIs(t, <-errs, atomredis.ErrClosed)
		for _, err := range unread {
			require.ErrorIs(t, err, atomredis.ErrClosed)
		}
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		_, err = db.Do(t.Context(), "PING")
		require.ErrorIs(t, err, atomredis.ErrClosed)
		_, err = db.DoMany(t.Context(), atomredis.Args{"PING"})
		require.ErrorIs(t, err, atomredis.ErrClosed)
		_, err = db.Dial(t.Context())
		require.ErrorIs(t, err, atomredis.ErrClosed)
		require.ErrorIs(t, db.Tx(t.Context(), func(*atomredis.Tx) error { return nil }), atomredis.ErrClosed)
		require.ErrorIs(t, db.Snapshot(&strings.Builder{}), atomredis.ErrClosed)
		require.ErrorIs(t, db.Restore(strings.NewReader("")), atomredis.ErrClosed)
	})
}

func TestShutdownClosesTheDB(t *testing.T) {
	for _, o := range []atomredis.Options{{}, {Dir: t.TempDir()}} {
		db := open(t, o)
		_, err := db.Do(t.Context(), "SHUTDOWN")
		require.ErrorIs(t, err, atomredis.ErrClosed)
		for err = nil; err == nil; { // the command does not wait for the end
			_, err = db.Do(t.Context(), "PING")
		}
		require.ErrorIs(t, err, atomredis.ErrClosed)
	}
}

func TestBubbleDecidesWhatTimeItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, atomredis.Options{Config: map[string]string{"notify-keyspace-events": "KEA"}})
		messages := db.Subscribe(t.Context(), "__keyevent@0__:expired")
		start := time.Now()
		do(t, db, "SET", "k", "v", "EX", 3600)
		for m, err := range messages {
			require.NoError(t, err)
			require.Equal(t, atomredis.Message{Channel: "__keyevent@0__:expired", Payload: "k"}, m)
			break
		}
		require.Equal(t, time.Hour, time.Since(start))
		require.True(t, do(t, db, "GET", "k").IsNull())

		client := dial(db, &redis.Options{})
		defer client.Close()
		require.Equal(t, redis.Nil, client.BLPop(t.Context(), time.Minute, "q").Err())
		require.Equal(t, time.Hour+time.Minute, time.Since(start))
	})
}

func TestClockOfTheOptionsIsFollowed(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	db := open(t, atomredis.Options{Clock: clock})
	do(t, db, "SET", "k", "v", "EX", 100)
	clock.Advance(99 * time.Second)
	require.Equal(t, "1", text(t, do(t, db, "TTL", "k")))
	clock.Advance(time.Second)
	require.True(t, do(t, db, "GET", "k").IsNull())
	done := make(chan error)
	go func() {
		_, err := db.Do(t.Context(), "BLPOP", "q", 5)
		done <- err
	}()
	for err := error(nil); ; {
		select {
		case err = <-done:
			require.NoError(t, err)
			return
		default:
			clock.Advance(time.Second)
		}
	}
}

func TestDurableServerWorksInABubble(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		synctest.Test(t, func(t *testing.T) {
			db, err := atomredis.Open(atomredis.Options{Dir: dir, Config: map[string]string{"appendfsync": "always"}})
			require.NoError(t, err)
			n, err := do(t, db, "INCR", "starts").Int()
			require.NoError(t, err)
			require.EqualValues(t, i+1, n)
			start := time.Now()
			do(t, db, "SET", "k", "v", "EX", 100)
			time.Sleep(101 * time.Second)
			require.True(t, do(t, db, "GET", "k").IsNull())
			require.Equal(t, 101*time.Second, time.Since(start))
			require.NoError(t, db.Close())
		})
	}
}

func TestDurableRepliesOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	config := map[string]string{"appendfsync": "always"}
	db, err := atomredis.Open(atomredis.Options{Dir: dir, Config: config})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := db.Do(t.Context(), "HSET", "h", fmt.Sprint(w, ":", i), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		tx.Do("SET", "a", 1)
		tx.Do("SET", "b", 2)
		return nil
	}))
	require.NoError(t, db.Close())
	db = open(t, atomredis.Options{Dir: dir, Config: config})
	require.Equal(t, "400", text(t, do(t, db, "HLEN", "h")))
	got, err := do(t, db, "MGET", "a", "b").Texts()
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2"}, got)
}

func TestOneProgramWithThreeServersEndsClean(t *testing.T) {
	before := goleak.IgnoreCurrent()
	dir := t.TempDir()
	var dbs []*atomredis.DB
	for _, o := range []atomredis.Options{{}, {Dir: dir}, {Addr: "127.0.0.1:0"}} {
		db, err := atomredis.Open(o)
		require.NoError(t, err)
		dbs = append(dbs, db)
	}
	for i, db := range dbs {
		do(t, db, "SET", "k", i)
		client := dial(db, &redis.Options{})
		require.NoError(t, client.RPush(t.Context(), "l", i).Err())
		require.NoError(t, client.Close())
	}
	for i, db := range dbs {
		require.Equal(t, fmt.Sprint(i), text(t, do(t, db, "GET", "k")))
		require.Equal(t, "2", text(t, do(t, db, "DBSIZE")))
		require.NoError(t, db.Close())
	}
	goleak.VerifyNone(t, before)
	require.Equal(t, "1", text(t, do(t, open(t, atomredis.Options{Dir: dir}), "GET", "k")))
}

func TestThousandServersInOneProgram(t *testing.T) {
	const servers = 1000
	before := goleak.IgnoreCurrent()
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	empty := heap()
	dbs := make([]*atomredis.DB, servers)
	for i := range dbs {
		db, err := atomredis.Open(atomredis.Options{})
		require.NoError(t, err)
		dbs[i] = db
		do(t, db, "SET", "k", i)
	}
	require.Less(t, (heap()-empty)/servers, int64(256<<10), "bytes for each")
	for i, db := range dbs {
		require.Equal(t, strconv.Itoa(i), text(t, do(t, db, "GET", "k")), "they share nothing")
		require.Equal(t, "1", text(t, do(t, db, "DBSIZE")))
	}
	for _, db := range dbs {
		require.NoError(t, db.Close())
		_, err := db.Do(t.Context(), "PING")
		require.ErrorIs(t, err, atomredis.ErrClosed)
	}
	goleak.VerifyNone(t, before)
	clear(dbs)
	require.Less(t, (heap()-empty)/servers, int64(8<<10), "closed servers are forgotten")
}
