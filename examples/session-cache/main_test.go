package main

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
)

// runProgram runs the program until the test ends, and returns its URL.
func runProgram(t *testing.T, db *atomredis.DB) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), ln, &sessions{db, time.Minute}) }()
	t.Cleanup(func() { require.NoError(t, <-ended) }) // t.Context has ended by then
	return "http://" + ln.Addr().String()
}

// browser keeps cookies.
type browser struct{ http.Client }

func newBrowser(t *testing.T) *browser {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &browser{http.Client{Jar: jar}}
}

func (b *browser) get(t *testing.T, url string) string {
	r, err := b.Get(url)
	require.NoError(t, err)
	return body(t, r)
}

func (b *browser) post(t *testing.T, to string, form url.Values) string {
	r, err := b.PostForm(to, form)
	require.NoError(t, err)
	return body(t, r)
}

func body(t *testing.T, r *http.Response) string {
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

func TestASessionEndsAMinuteAfterItsLastUse(t *testing.T) {
	clock := atomredistest.NewClock(time.Now())
	app := runProgram(t, atomredistest.RunOptions(t, atomredis.Options{Clock: clock}).DB)
	ada, bob := newBrowser(t), newBrowser(t)
	require.Contains(t, ada.get(t, app), "Log in")
	require.Contains(t, ada.post(t, app+"/login", url.Values{"user": {"<ada>"}}), "Hello &lt;ada&gt;, here since")
	require.Contains(t, bob.get(t, app), "Log in")
	require.Contains(t, bob.post(t, app+"/login", url.Values{"user": {" "}}), "A name has 1 to 100 letters.")

	clock.FastForward(59 * time.Second)
	require.Contains(t, ada.get(t, app), "Hello")
	clock.FastForward(59 * time.Second)
	require.Contains(t, ada.get(t, app), "Hello")
	clock.FastForward(time.Minute)
	require.Contains(t, ada.get(t, app), "Log in")
}

func TestLogout(t *testing.T) {
	s := atomredistest.Run(t)
	app := runProgram(t, s.DB)
	ada := newBrowser(t)
	require.Contains(t, ada.post(t, app+"/login", url.Values{"user": {"ada"}}), "Hello ada")
	require.Contains(t, ada.post(t, app+"/logout", nil), "Log in")
	require.Contains(t, ada.get(t, app), "Log in")
	s.CheckKeys(t, nil)
}

func TestSessionsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	ada := newBrowser(t)
	t.Run("before", func(t *testing.T) {
		app := runProgram(t, atomredistest.RunOptions(t, atomredis.Options{Dir: dir}).DB)
		require.Contains(t, ada.post(t, app+"/login", url.Values{"user": {"ada"}}), "Hello ada")
	})
	app := runProgram(t, atomredistest.RunOptions(t, atomredis.Options{Dir: dir}).DB)
	require.Contains(t, ada.get(t, app), "Hello ada") // a cookie is for all ports
}
