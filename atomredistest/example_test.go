package atomredistest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
)

// exampleTB replaces *testing.T, which examples do not have. end runs the cleanups of a test.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (t *exampleTB) Helper()                           {}
func (t *exampleTB) Context() context.Context          { return context.Background() }
func (t *exampleTB) Output() io.Writer                 { return io.Discard }
func (t *exampleTB) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *exampleTB) Error(args ...any)                 { fmt.Println(args...) }
func (t *exampleTB) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (t *exampleTB) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (t *exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleTB) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// A server for one test: a client connects to it, and the test checks the keys that it leaves.
func Example() {
	t := new(exampleTB) // the *testing.T of the test
	defer t.end()

	s := atomredistest.RunAddr(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	client.Set(t.Context(), "visits", 1, 0)
	client.RPush(t.Context(), "jobs", "a", "b")
	s.CheckKeys(t, map[string]any{"visits": 1, "jobs": []string{"a", "b"}})
	fmt.Print(s.Dump(t))
	// Output:
	// database 0
	//   "jobs": list ["a" "b"]
	//   "visits": string "1"
}

// Keys expire and blocked clients time out without a wait.
func ExampleServer_FastForward() {
	t := new(exampleTB) // the *testing.T of the test
	defer t.end()

	s := atomredistest.Run(t)
	s.MustDo(t, "SET", "session", "ada", "EX", 3600)
	s.FastForward(time.Hour)
	fmt.Println(s.MustDo(t, "GET", "session"))
	// Output: (nil)
}

// A clock that stands still gives exact deadlines, and several servers can share it.
func ExampleNewClock() {
	t := new(exampleTB) // the *testing.T of the test
	defer t.end()

	clock := atomredistest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	a := atomredistest.RunOptions(t, atomredis.Options{Clock: clock})
	b := atomredistest.RunOptions(t, atomredis.Options{Clock: clock})
	a.MustDo(t, "SET", "k", "v", "EX", 60)
	b.MustDo(t, "SET", "k", "v", "EX", 90)
	clock.FastForward(time.Minute)
	fmt.Println(a.MustDo(t, "GET", "k"), b.MustDo(t, "TTL", "k"))
	// Output: (nil) (integer) 30
}

// Commands fail as they do while a Redis loads its data.
func ExampleServer_FailNext() {
	t := new(exampleTB) // the *testing.T of the test
	defer t.end()

	s := atomredistest.Run(t)
	s.FailNext(1, "GET", "LOADING Redis is loading the dataset in memory")
	_, err := s.Do(t.Context(), "GET", "k")
	fmt.Println(err)
	_, err = s.Do(t.Context(), "GET", "k")
	fmt.Println(err)
	// Output:
	// LOADING Redis is loading the dataset in memory
	// <nil>
}

// sessions is the code under test: it remembers for an hour which user is logged in.
type sessions struct{ client *redis.Client }

func (s sessions) login(ctx context.Context, token, user string) error {
	return s.client.Set(ctx, "session:"+token, user, time.Hour).Err()
}

// user returns the user of a token; false if there is none.
func (s sessions) user(ctx context.Context, token string) (string, bool, error) {
	user, err := s.client.Get(ctx, "session:"+token).Result()
	if errors.Is(err, redis.Nil) {
		return "", false, nil
	}
	return user, err == nil, err
}

func TestExampleOfKeysAndTime(t *testing.T) {
	s := atomredistest.RunAddr(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	users := sessions{client}
	if err := users.login(t.Context(), "abc", "ada"); err != nil {
		t.Fatal(err)
	}
	s.CheckKeys(t, map[string]any{"session:abc": "ada"})

	s.FastForward(time.Hour)
	if user, ok, err := users.user(t.Context(), "abc"); ok || err != nil {
		t.Errorf("user is %q, %v, %v; there is:\n%s", user, ok, err, s.Dump(t))
	}
}

func TestExampleOfFaults(t *testing.T) {
	s := atomredistest.Run(t)
	client := redis.NewClient(&redis.Options{MaxRetries: -1,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }})
	defer client.Close()
	users := sessions{client}
	if err := users.login(t.Context(), "abc", "ada"); err != nil {
		t.Fatal(err)
	}

	s.FailNext(1, "GET", "LOADING Redis is loading the dataset in memory")
	if _, _, err := users.user(t.Context(), "abc"); err == nil {
		t.Error("an error reply was taken for an answer")
	}

	s.DropAfter(3) // in the middle of the reply
	if _, _, err := users.user(t.Context(), "abc"); err == nil {
		t.Error("half a reply was taken for an answer")
	}

	s.SetLatency(time.Hour)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Do(soon, "GET", "session:abc"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	s.ClearFaults()
}

func TestExampleOfFaultsOfSomeKeys(t *testing.T) {
	s := atomredistest.RunAddr(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer client.Close()
	users := sessions{client}
	s.AddFault(atomredistest.Fault{Command: "SET", Key: "session:*", Percent: 50, Reply: "OOM command not allowed"})
	failed := 0
	for range 10 {
		if users.login(t.Context(), "abc", "ada") != nil {
			failed++
		}
	}
	if failed != 5 {
		t.Errorf("%d of 10 have failed", failed)
	}
	s.ClearFaults()
	s.AddFault(atomredistest.Fault{Command: "GET", Latency: 5 * time.Millisecond}) // slow, but with its usual reply
	if user, ok, err := users.user(t.Context(), "abc"); user != "ada" || !ok || err != nil {
		t.Errorf("user is %q, %v, %v", user, ok, err)
	}
}

func TestExampleOfAFailover(t *testing.T) {
	a, b := atomredistest.RunAddr(t), atomredistest.RunAddr(t)
	sentinel := atomredistest.RunSentinel(t, "mymaster", a, b)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster",
		SentinelAddrs: []string{sentinel.Addr()}})
	defer client.Close()
	users := sessions{client}
	if err := users.login(t.Context(), "abc", "ada"); err != nil {
		t.Fatal(err)
	}
	sentinel.Failover(t)
	for { // the client may need a moment
		if user, ok, err := users.user(t.Context(), "abc"); err == nil {
			if user != "ada" || !ok {
				t.Errorf("user is %q, %v", user, ok)
			}
			break
		}
	}
}

func TestExampleOfATestThatNeedsNoClient(t *testing.T) {
	s := atomredistest.RunOptions(t, atomredis.Options{Config: map[string]string{"databases": "2"}})
	if _, err := s.Do(t.Context(), "LPUSH", "jobs", "b", "a"); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(t.Output(), s.Dump(t)) // database 0, and "jobs": list ["a" "b"]
	s.CheckKeys(t, map[string]any{"jobs": []string{"a", "b"}})
}
