// Package api is the part of the HTTP door that answers commands, in the form of Upstash's REST interface: a command is
// a path or a JSON array, a reply is JSON, and messages are server-sent events. Each request has a client of its own,
// which acts as the user in the request's token. docs/http-api.md describes it.
package api

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

const (
	maxBody  = 16 << 20 // bytes of a request
	maxWords = 1 << 17  // words of all commands of a request
	maxHeld  = 1 << 20  // bytes of replies after which a pipeline sends them

	// execution limits the time of a request's commands, including waits, and that of its authentication. sendTime
	// limits the time for a peer to read a part of an answer, and idleTime the silence on a stream.
	execution, sendTime, idleTime = 30 * time.Second, 30 * time.Second, 15 * time.Second
)

// openAPI describes the interface.
//
//go:embed openapi.json
var openAPI []byte

// Options configure an API.
type Options struct {
	Host door.Host
	// Peer returns the addresses of a request's connection.
	Peer func(r *http.Request) door.Peer
}

// API is an http.Handler for commands.
type API struct {
	Options
	execution                  time.Duration
	requests, refused, streams atomic.Int64
}

// New returns an API.
func New(o Options) *API { return &API{Options: o, execution: execution} }

// Enabled reports whether the directive http-api permits commands.
func (a *API) Enabled() bool { return a.Host.Setting("http-api") == "yes" }

// Info calls add with fields for INFO: all requests, those without a valid token or from a foreign origin, and the open
// streams.
func (a *API) Info(add func(field, value string)) {
	add("api_requests", strconv.FormatInt(a.requests.Load(), 10))
	add("api_requests_refused", strconv.FormatInt(a.refused.Load(), 10))
	add("api_streams", strconv.FormatInt(a.streams.Load(), 10))
}

// methods are the methods of requests with commands, and allowed is their list in a header.
var (
	methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut}
	allowed = strings.Join(methods, ", ")
)

// failure is an error with its status.
type failure struct {
	status int
	text   string
}

// Error implements error.
func (f *failure) Error() string { return f.text }

var (
	errNoToken = resp.Error("NOAUTH Authentication required.")
	errOrigin  = &failure{http.StatusForbidden, "ERR the request comes from an origin that http-api-origins does not list"}
	errMethod  = &failure{http.StatusMethodNotAllowed, "ERR the method must be one of " + allowed}
	errSize    = &failure{http.StatusRequestEntityTooLarge, "ERR the body is larger than " + strconv.Itoa(maxBody) + " bytes"}
	errPeer    = &failure{http.StatusBadRequest, "ERR the body has not arrived"}
	errPath    = &failure{http.StatusBadRequest, "ERR the path or the query is malformed"}
	errFormat  = &failure{http.StatusBadRequest, "ERR Upstash-Response-Format must be json or resp2"}
	errBoth    = &failure{http.StatusBadRequest, "ERR Upstash-Encoding has no meaning for the format resp2"}
)

// ServeHTTP implements http.Handler. Requests without a token are refused before their body is read and without a
// client.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests.Add(1)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	var err error
	switch {
	case !a.admitOrigin(h, r):
		err = errOrigin
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case !slices.Contains(methods, r.Method):
		h.Set("Allow", allowed)
		err = errMethod
	case r.URL.Path == "/openapi.json":
		h.Set("Content-Type", "application/json")
		w.Write(openAPI) // an error means that the peer is gone
	default:
		err = a.serve(w, r)
	}
	if err != nil {
		a.refuse(w, r, err)
	}
}

// serve executes the commands of a request. A returned error is the answer; then nothing was written.
func (a *API) serve(w http.ResponseWriter, r *http.Request) error {
	x := exchange{a: a, w: w, r: r, to: http.NewResponseController(w)}
	if err := x.readHead(); err != nil {
		return err
	}
	if x.token == "" {
		return errNoToken
	}
	c, err := a.Host.Client(a.Peer(r))
	if err != nil {
		return err
	}
	defer c.Close()
	x.client = &c
	if err := x.authenticate(); err != nil {
		return err
	}
	if err := x.readBody(); err != nil {
		return err
	}
	return x.execute()
}

// limited returns a context for a request's commands.
func (a *API) limited(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), a.execution)
}

// refuse answers with an error. The time for reading the answer begins now: that of the door has begun with the request.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime)) != nil {
		return // the peer is gone
	}
	h, status := w.Header(), statusOf(err)
	switch status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="atomredis"`)
		a.refused.Add(1)
	case http.StatusForbidden:
		a.refused.Add(1)
	}
	if r.ContentLength < 0 || r.ContentLength > door.Stranger {
		h.Set("Connection", "close") // the rest of the body is not worth reading
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	out := bufio.NewWriter(w)
	writeError(out, a.textOf(err))
	out.Flush() // an error means that the peer is gone
}

// statusOf returns the status for an error: 400 for error replies, as Upstash has it, 401 for those about
// authentication, and 503 if the server could not execute the command.
func statusOf(err error) int {
	var f *failure
	var e resp.Error
	switch {
	case errors.As(err, &f):
		return f.status
	case errors.As(err, &e):
		if code := e.Code(); code == "NOAUTH" || code == "WRONGPASS" {
			return http.StatusUnauthorized
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, door.ErrClosed),
		errors.Is(err, door.ErrKilled), errors.Is(err, door.ErrNotDurable), errors.Is(err, door.ErrNoUser),
		errors.Is(err, door.ErrTooManyClients):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// textOf returns the text of an error.
func (a *API) textOf(err error) string {
	var f *failure
	var e resp.Error
	switch {
	case errors.As(err, &f):
		return f.text
	case errors.As(err, &e):
		return string(e)
	case errors.Is(err, context.DeadlineExceeded):
		return "ERR the request has taken longer than " + a.execution.String()
	}
	return "ERR " + err.Error()
}
