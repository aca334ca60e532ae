package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/memory"
)

// runProgram runs the program until the test ends, with a clock that the test moves and a backend that says hello. It
// returns the URL of the proxy.
func runProgram(t *testing.T, burst, rate int) (*atomredistest.Server, string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello "+r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(server.Close)
	backend, err := url.Parse(server.URL)
	require.NoError(t, err)
	s := atomredistest.RunOptions(t, memory.Options{Clock: atomredistest.NewClock(time.Now())})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), ln, backend, &limiter{s.DB, burst, rate}) }()
	t.Cleanup(func() { require.NoError(t, <-ended) }) // t.Context has ended by then
	return s, "http://" + ln.Addr().String()
}

func get(t *testing.T, url string) (*http.Response, string) {
	r, err := http.Get(url)
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r, string(text)
}

func TestAClientHasItsBurstAndThenItsRate(t *testing.T) {
	s, proxy := runProgram(t, 2, 6)
	for _, left := range []string{"1", "0"} {
		r, text := get(t, proxy)
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Equal(t, "hello 127.0.0.1", text)
		require.Equal(t, "2", r.Header.Get("RateLimit-Limit"))
		require.Equal(t, left, r.Header.Get("RateLimit-Remaining"))
	}
	r, text := get(t, proxy)
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.Equal(t, "Too many requests.\n", text)
	require.Equal(t, "10", r.Header.Get("Retry-After"))
	require.Equal(t, "20", r.Header.Get("RateLimit-Reset"))

	s.FastForward(10 * time.Second)
	r, _ = get(t, proxy)
	require.Equal(t, http.StatusOK, r.StatusCode)
	r, _ = get(t, proxy)
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)

	s.FastForward(20 * time.Second) // the key expires
	s.CheckKeys(t, nil)
}

func TestRequestsPassWhenTheLimiterFails(t *testing.T) {
	s, proxy := runProgram(t, 1, 1)
	s.FailNext(-1, "CL.THROTTLE", "OOM command not allowed when used memory > 'maxmemory'.")
	for range 3 {
		r, _ := get(t, proxy)
		require.Equal(t, http.StatusOK, r.StatusCode)
	}
}

func TestClientsAreTheirAddresses(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.7:4321":            "192.0.2.7",
		"[::ffff:192.0.2.7]:4321":   "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"@":                         "@",
	} {
		require.Equal(t, want, client(&http.Request{RemoteAddr: from}))
	}
}
