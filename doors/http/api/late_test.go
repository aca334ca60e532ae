package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
	httpapi "github.com/atomredis/atomredis/doors/http/api"
)

// The door "hasty" has only the API. It gives commands little time, and peers none to read an answer.

const hastyExecution = 50 * time.Millisecond

func init() {
	door.Register(door.Kind{Name: "hasty", New: func(h door.Host) (door.Door, error) { return newHasty(h), nil }})
}

type hasty struct{ http.Server }

// hastyHost is the server for a door without directives.
type hastyHost struct{ door.Host }

// Setting implements door.Host.
func (hastyHost) Setting(string) string { return "" }

type connKey struct{}

func newHasty(h door.Host) *hasty {
	a := httpapi.New(httpapi.Options{Host: hastyHost{h}, Peer: func(r *http.Request) door.Peer {
		return door.PeerOf(r.Context().Value(connKey{}).(net.Conn))
	}})
	a.SetExecution(hastyExecution)
	return &hasty{http.Server{Handler: a, WriteTimeout: 1, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}}}
}

// Serve implements door.Door.
func (d *hasty) Serve(l net.Listener) error {
	if err := d.Server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Info implements door.Door.
func (d *hasty) Info(func(field, value string)) {}

// An answer reaches the peer although its command took longer than the door gives for an answer.
func TestLateErrorsAreDelivered(t *testing.T) {
	a := open(t, "", map[string]string{"door-hasty": "127.0.0.1:0"})
	example := string(readPage(a).Components.Responses["NotExecuted"].Content["application/json"].Example)
	a.url = "http://" + a.db.DoorAddr("hasty")
	code, text := a.ask("POST", "/", `["BLPOP","q",0]`)
	require.Equal(t, 503, code)
	require.JSONEq(t, strings.Replace(example, "30s", hastyExecution.String(), 1), text)
	code, text = a.ask("POST", "/pipeline", `[["BLPOP","q",0]]`)
	require.Equal(t, 200, code)
	require.JSONEq(t, "["+strings.Replace(example, "30s", hastyExecution.String(), 1)+"]", text)
	for code = 503; code == 503; { // a busy machine may take longer for this one, too
		code, text = a.ask("POST", "/", `["SET","k","v","x"]`)
	}
	require.Equal(t, 400, code)
	require.Equal(t, `{"error":"ERR syntax error"}`, text)
	a.do("RPUSH", "q", "x")
	require.Equal(t, "1", a.do("LLEN", "q"), "the command that took too long has taken nothing")
}
