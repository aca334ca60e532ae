package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atomredistest"
)

// newCodes returns the codes in a new server, and the last code that was sent.
func newCodes(t *testing.T) (c *codes, s *atomredistest.Server, sent *string) {
	s = atomredistest.Run(t)
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:6379", // is not used, but go-redis looks names up
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
	})
	t.Cleanup(func() { client.Close() })
	sent = new(string)
	return &codes{client, func(_, code string) { *sent = code }}, s, sent
}

func TestACodeLogsInOnce(t *testing.T) {
	c, s, sent := newCodes(t)
	require.NoError(t, c.issue(t.Context(), "ada"))
	require.Len(t, *sent, 6)
	s.CheckKeys(t, map[string]any{"code:ada": *sent, "pause:ada": 1})
	require.Equal(t, errNoCode, c.check(t.Context(), "bob", *sent))
	require.NoError(t, c.check(t.Context(), "ada", *sent))
	require.Equal(t, errNoCode, c.check(t.Context(), "ada", *sent))
}

// FastForward moves the clock of the server. When it returns, keys have expired.
func TestACodeIsGoodForFiveMinutes(t *testing.T) {
	c, s, sent := newCodes(t)
	for passed, want := range map[time.Duration]error{
		codeLife - time.Minute: nil,
		codeLife:               errNoCode,
	} {
		require.NoError(t, c.issue(t.Context(), "ada"))
		s.FastForward(passed)
		require.Equal(t, want, c.check(t.Context(), "ada", *sent), passed)
	}
	s.FastForward(codeLife)
	s.CheckKeys(t, nil)
}

func TestANewCodeReplacesTheOldOneAfterAMinute(t *testing.T) {
	c, s, sent := newCodes(t)
	require.NoError(t, c.issue(t.Context(), "ada"))
	old := *sent
	require.Equal(t, errTooSoon, c.issue(t.Context(), "ada"))
	s.FastForward(codePause)
	require.NoError(t, c.issue(t.Context(), "ada"))
	s.MustDo(t, "SET", "code:ada", "another") // the two codes could be the same
	require.Equal(t, errWrong, c.check(t.Context(), "ada", old))
}

func TestThreeWrongCodesEndIt(t *testing.T) {
	c, _, sent := newCodes(t)
	require.NoError(t, c.issue(t.Context(), "ada"))
	for range maxTries {
		require.Equal(t, errWrong, c.check(t.Context(), "ada", "guess"))
	}
	require.Equal(t, errNoCode, c.check(t.Context(), "ada", *sent))
}

// A Redis that fails must let nobody in.
func TestFailuresRefuse(t *testing.T) {
	c, s, sent := newCodes(t)
	require.NoError(t, c.issue(t.Context(), "ada"))
	s.FailNext(-1, "GET", "MISCONF Errors writing to the AOF file")
	require.ErrorContains(t, c.check(t.Context(), "ada", *sent), "MISCONF")
	s.ClearFaults()
	s.FailNext(-1, "DEL", "MISCONF Errors writing to the AOF file")
	require.ErrorContains(t, c.check(t.Context(), "ada", *sent), "MISCONF")
	s.ClearFaults()
	require.NoError(t, c.check(t.Context(), "ada", *sent))
}

// In a bubble of testing/synctest the clock of the server is the test's: time.Sleep takes no time and moves both.
func TestSleepingInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, sent := newCodes(t)
		require.NoError(t, c.issue(t.Context(), "ada"))
		time.Sleep(codeLife)
		require.Equal(t, errNoCode, c.check(t.Context(), "ada", *sent))
	})
}

// The whole program, with a server at a port.
func TestTheProgram(t *testing.T) {
	s := atomredistest.RunAddr(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	sent := make(chan string, 1)
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), ln, &codes{client, func(_, code string) { sent <- code }}) }()
	t.Cleanup(func() { require.NoError(t, <-ended) }) // t.Context has ended by then
	post := func(path string, form url.Values) string {
		r, err := http.PostForm("http://"+ln.Addr().String()+path, form)
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, "ok\n", post("/codes", url.Values{"user": {"ada"}}))
	require.Equal(t, "this is not the code\n", post("/login", url.Values{"user": {"ada"}, "code": {"guess"}}))
	require.Equal(t, "ok\n", post("/login", url.Values{"user": {"ada"}, "code": {<-sent}}))
	s.FailNext(1, "SET", "OOM command not allowed when used memory > 'maxmemory'.")
	require.Equal(t, "try again later\n", post("/codes", url.Values{"user": {"bob"}}))
}
