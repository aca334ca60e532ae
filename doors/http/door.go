// Package http is the door for those who look after the server: its metrics for Prometheus, whether it is alive and
// ready, profiles, and the console. What it tells are the replies of commands. docs/operations.md is its page.
package http

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/doors/http/console"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	door.Register(door.Kind{Name: "http", Alias: "http", Port: 9121, TLS: true,
		Directives: []door.Directive{
			{Name: "console", Default: "yes", Check: yesOrNo},
			{Name: "console-hosts"},
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
	// headTimeout is how long a peer may take to send the head of a request, idleTimeout how long it may send none,
	// answerTimeout how long it may take to read an answer; profiles take their own time.
	headTimeout, idleTimeout, answerTimeout = 10 * time.Second, 2 * time.Minute, 30 * time.Second
	maxHead                                 = 16 << 10
)

// server is the door.
type server struct {
	host             door.Host
	peers            door.Peers
	http             http.Server
	console          *console.Console
	process          *prometheus.Registry // of the Go runtime and the process
	requests, failed atomic.Int64
}

func newDoor(h door.Host) *server {
	d := &server{host: h, process: prometheus.NewRegistry()}
	d.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	d.peers.Host = h
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", d.as(d.metrics))
	mux.HandleFunc("GET /healthz", d.probe(d.healthy))
	mux.HandleFunc("GET /readyz", d.probe(d.ready))
	d.profiles(mux)
	d.console = console.New(console.Options{Host: h, Peer: func(r *http.Request) door.Peer {
		return door.PeerOf(r.Context().Value(peerKey{}).(*peer).Conn)
	}})
	mux.HandleFunc(console.Path, func(w http.ResponseWriter, r *http.Request) {
		d.requests.Add(1)
		d.console.ServeHTTP(w, r)
	})
	mux.Handle("GET /{$}", http.RedirectHandler(console.Path, http.StatusSeeOther))
	d.http = http.Server{
		Handler: mux, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: maxHead,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, &peer{Conn: c.(*door.Conn)})
		},
	}
	return d
}

// Serve implements door.Door.
func (d *server) Serve(l net.Listener) error {
	err := d.http.Serve(d.peers.Listener(l))
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Close implements door.Door.
func (d *server) Close() error {
	err := errors.Join(d.http.Close(), d.peers.Close())
	d.console.Close()
	return err
}

// Info implements door.Door.
func (d *server) Info(add func(field, value string)) {
	add("requests", strconv.FormatInt(d.requests.Load(), 10))
	add("requests_failed", strconv.FormatInt(d.failed.Load(), 10))
}

type peerKey struct{}

// peer is who is at the other end of a connection. Its requests come one after the other.
type peer struct {
	*door.Conn
	user string // as which it has authenticated; "" if it has not
}

// handler answers a request with commands of the client that asks. An error is the answer if nothing was written.
type handler func(w http.ResponseWriter, r *http.Request, c *door.Client) error

// as has a handler act as the user whose name and password the request has, or without them as every peer of the door.
func (d *server) as(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.requests.Add(1)
		p := r.Context().Value(peerKey{}).(*peer)
		err := p.identify(r)
		if err == nil {
			err = h(w, r, p.Client)
		}
		if err != nil {
			d.refuse(w, err)
		}
	}
}

// errWhoElse says that a connection on which somebody has authenticated has a request without credentials.
var errWhoElse = resp.Error("NOAUTH Authentication required.")

// identify makes the peer's client act as the request says.
func (p *peer) identify(r *http.Request) error {
	user, password, given := r.BasicAuth()
	if !given {
		if p.user != "" {
			return errWhoElse
		}
		return nil
	}
	if err := p.Client.Auth(r.Context(), user, password); err != nil {
		return err
	}
	p.user = user
	return nil
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

// healthy answers that the server executes commands, and ready whether clients should be sent here: the data is there, it
// can be changed, and a follower has all of its master's. Anybody may ask, and is told nothing else.
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

// probe answers what a check finds: "" is that all is well.
func (d *server) probe(check func(ctx context.Context, c *door.Client) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.requests.Add(1)
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
		w.Write([]byte("ok\n")) // a peer that has gone needs no answer
	}
}

// ask returns the text that a command replies with.
func ask(ctx context.Context, c *door.Client, args ...any) (string, error) {
	reply, err := c.Do(ctx, args...)
	if err != nil {
		return "", err
	}
	return reply.Text()
}
