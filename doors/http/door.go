// Package http is the door for operators: metrics for Prometheus, health checks, profiles, and the console. All of them
// show replies of commands. docs/operations.md describes it. If http-api is on, it executes the commands of programs
// too: see package api.
package http

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/http/api"
	"github.com/atomredis/atomredis/doors/http/console"
)

func init() {
	door.Register(door.Kind{Name: "http", Alias: "http", Port: 9121, TLS: true,
		Directives: []door.Directive{
			{Name: "console", Default: "yes", Check: yesOrNo},
			{Name: "console-hosts"},
			{Name: "http-api", Default: "no", Check: yesOrNo},
			{Name: "http-api-origins", Check: api.CheckOrigins},
		},
		New: func(h door.Host) (door.Door, error) { return newDoor(h), nil }})
}

func yesOrNo(value string) error {
	if value != "yes" && value != "no" {
		return errors.New("argument must be 'yes' or 'no'")
	}
	return nil
}

const (
	// headTimeout limits the time for the head of a request, bodyTimeout for the rest, idleTimeout between requests,
	// and answerTimeout for reading an answer. Profiles have no answerTimeout.
	headTimeout, bodyTimeout, idleTimeout, answerTimeout = 10 * time.Second, 30 * time.Second, 2 * time.Minute, 30 * time.Second
	maxHead                                              = 16 << 10
)

// server is the door.
type server struct {
	host             door.Host
	mux              *http.ServeMux
	http             http.Server
	console          *console.Console
	api              *api.API
	process          *prometheus.Registry // metrics of the Go runtime and the process
	requests, failed atomic.Int64

	mu     sync.Mutex // protects what follows
	closed bool
	wg     sync.WaitGroup // running requests; none is added once closed
}

func newDoor(h door.Host) *server {
	d := &server{host: h, mux: http.NewServeMux(), process: prometheus.NewRegistry()}
	d.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	d.mux.HandleFunc("GET /metrics", d.as(d.metrics))
	d.mux.HandleFunc("GET "+healthPath, d.probe(d.healthy))
	d.mux.HandleFunc("GET "+readyPath, d.probe(d.ready))
	d.profiles()
	d.console = console.New(console.Options{Host: h, Peer: peerOf})
	d.mux.Handle(console.Path, d.console)
	d.api = api.New(api.Options{Host: h, Peer: peerOf})
	d.mux.Handle("GET /{$}", http.RedirectHandler(console.Path, http.StatusSeeOther))
	d.http = http.Server{
		Handler: d, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: maxHead,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	return d
}

// The probes, which need no login and accept any Host.
const healthPath, readyPath = "/healthz", "/readyz"

// ServeHTTP implements http.Handler for all paths. It refuses requests with a foreign Host, because a page whose DNS
// name was rebound to this address must not read the answers. Only probes accept any Host.
func (d *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.begins() {
		return
	}
	defer d.wg.Done()
	d.requests.Add(1)
	if r.ContentLength != 0 {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
			return
		}
	}
	if path := r.URL.Path; path != healthPath && path != readyPath && !d.known(r.Host) {
		d.failed.Add(1)
		http.Error(w, "The server is not known by this name: see the directive console-hosts.", http.StatusMisdirectedRequest)
		return
	}
	if d.api.Enabled() {
		if _, pattern := d.mux.Handler(r); pattern == "" { // all other paths are commands
			d.api.ServeHTTP(w, r)
			return
		}
	}
	d.mux.ServeHTTP(w, r)
}

// begins adds a request to wg, unless the door is closed. The caller must call wg.Done.
func (d *server) begins() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.wg.Add(1)
	}
	return !d.closed
}

// known reports whether the Host of a request is a name of this door.
func (d *server) known(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host = strings.ToLower(strings.Trim(host, "[]")); net.ParseIP(host) != nil || host == "localhost" {
		return true
	}
	for name := range strings.SplitSeq(strings.ToLower(d.host.Setting("console-hosts")), ",") {
		if name == "*" || name == host && host != "" {
			return true
		}
	}
	return false
}

// Serve implements door.Door.
func (d *server) Serve(l net.Listener) error {
	err := d.http.Serve(l)
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Close implements door.Door.
func (d *server) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	err := d.http.Close()
	d.console.Close()
	d.wg.Wait()
	return err
}

// Info implements door.Door.
func (d *server) Info(add func(field, value string)) {
	add("requests", strconv.FormatInt(d.requests.Load(), 10))
	add("requests_failed", strconv.FormatInt(d.failed.Load(), 10))
	d.api.Info(add)
}

type connKey struct{}

// connOf returns the connection of a request.
func connOf(r *http.Request) net.Conn { return r.Context().Value(connKey{}).(net.Conn) }

func peerOf(r *http.Request) door.Peer { return door.PeerOf(connOf(r)) }

// handler answers a request with commands of a client. A returned error is sent as the answer if nothing was written.
type handler func(w http.ResponseWriter, r *http.Request, c *door.Client) error

// as runs a handler with a client of the user in the request's credentials, or of the door's user without credentials.
// The client lasts for the request.
func (d *server) as(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := d.host.Client(peerOf(r))
		if err == nil {
			defer c.Close()
			if user, password, given := r.BasicAuth(); given {
				err = c.Auth(r.Context(), user, password)
			}
		}
		if err == nil {
			err = h(w, r, &c)
		}
		if err != nil {
			d.refuse(w, err)
		}
	}
}

// refuse answers with an error.
func (d *server) refuse(w http.ResponseWriter, err error) {
	d.failed.Add(1)
	code := http.StatusServiceUnavailable
	switch word, _, _ := strings.Cut(err.Error(), " "); word {
	case "NOAUTH", "WRONGPASS":
		w.Header().Set("WWW-Authenticate", `Basic realm="atomredis", charset="UTF-8"`)
		code = http.StatusUnauthorized
	case "NOPERM":
		code = http.StatusForbidden
	case "ERR":
		code = http.StatusBadRequest
	}
	http.Error(w, err.Error(), code)
}

// healthy checks that the server executes commands. ready checks whether the server can take clients: the data is
// loaded, writes are possible, and a follower has all data of its master. Both need no permission and reveal nothing
// else.
func (d *server) healthy(ctx context.Context, c *door.Client) (string, error) {
	_, err := c.Do(ctx, "PING")
	return "", err
}

func (d *server) ready(ctx context.Context, c *door.Client) (string, error) {
	text, err := ask(ctx, c, "INFO", "persistence", "replication")
	if err != nil {
		return "", err
	}
	for _, f := range fieldsOf(text) {
		switch [2]string{f.name, f.value} {
		case [2]string{"loading", "1"}:
			return "loading", nil
		case [2]string{"aof_last_write_status", "err"}:
			return "read-only: the journal cannot be written", nil
		case [2]string{"master_link_status", "down"}:
			return "the master is not there", nil
		case [2]string{"master_sync_in_progress", "1"}:
			return "loading the master's data", nil
		}
	}
	return "", nil
}

// probe serves a check. The check returns "", or the reason why the server is not healthy or ready.
func (d *server) probe(check func(ctx context.Context, c *door.Client) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		why := ""
		c, err := d.host.OwnClient()
		if err == nil {
			why, err = check(r.Context(), &c)
			c.Close()
		}
		if err == nil && why != "" {
			err = errors.New(why)
		}
		if err != nil {
			d.refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Write([]byte("ok\n")) // an error means that the peer is gone
	}
}

// ask returns the reply of a command as text.
func ask(ctx context.Context, c *door.Client, args ...any) (string, error) {
	reply, err := c.Do(ctx, args...)
	if err != nil {
		return "", err
	}
	return reply.Text()
}
