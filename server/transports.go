package server

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/atomredis/atomredis/internal/transport"
)

// This file has the methods of the server that transports call. For transports a client is a Session.

// carrier connects clients with their sessions.
type carrier interface {
	// Recheck makes sessions check again how much they may send. Any goroutine may call it.
	Recheck()
	// Close disconnects all clients and returns when no goroutine of the carrier is left.
	Close()
}

// startTransports prepares all ways in which clients reach their sessions: the listeners, connections that are handed
// over, and the program itself. Without anything to listen on there are no event loops: a thread that waits for
// events would keep a testing/synctest bubble from being idle.
func (srv *Server) startTransports(o Options, loops int) error {
	host := srv.TransportHost()
	var wrap func(net.Conn, transport.Session) net.Conn
	if o.Hook != nil {
		wrap = func(c net.Conn, s transport.Session) net.Conn { return o.Hook.Conn(c, s) }
	}
	srv.stats.loops = make([]transport.Counters, loops)
	srv.goroutines = transport.NewGoroutines(host, &srv.stats.goroutines, wrap)
	srv.carriers = []carrier{srv.goroutines, srv.direct}
	if srv.forwards != nil {
		srv.carriers = append(srv.carriers, srv.forwards)
	}
	if o.Goroutines || o.Hook != nil || !srv.listeners.Wanted() {
		return nil
	}
	l, err := transport.NewLoops(host, transport.LoopOptions{Loops: loops, IOUring: srv.config.Get().Threads.IOUring,
		SpareProcessors: o.SpareProcessors, Counters: srv.stats.loops})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil {
		srv.loops = l
		srv.carriers = append(srv.carriers, l)
	}
	return err
}

// attachListeners makes event loops serve sockets, if there are any, and goroutines everything else.
func (srv *Server) attachListeners() {
	var sockets transport.Transport = srv.goroutines
	if srv.loops != nil {
		sockets = srv.loops
	}
	srv.listeners.Attach(srv.tls, sockets, srv.goroutines)
}

// TransportHost returns the server as transport.Host, for clients whose transport is the caller's.
func (srv *Server) TransportHost() transport.Host { return (*transportHost)(srv) }

// transportHost is the server as transport.Host.
type transportHost Server

// Now implements transport.Clock.
func (h *transportHost) Now() int64 { return h.ks.Now() }

// AfterFunc implements transport.Clock.
func (h *transportHost) AfterFunc(d time.Duration, f func()) transport.Timer {
	return h.ks.Clock().AfterFunc(d, f)
}

// Log implements transport.Host.
func (h *transportHost) Log() *slog.Logger { return h.log }

// KeepAlive implements transport.Host.
func (h *transportHost) KeepAlive() time.Duration {
	return time.Duration(h.config.Get().Network.TCPKeepAlive) * time.Second
}

// Refuse implements transport.Host. A connection in memory needs no file descriptor.
func (h *transportHost) Refuse(p transport.Peer, remote bool) string {
	srv := (*Server)(h)
	if p == transport.Embedded && srv.sessions.Clients.Len() < int64(srv.config.Get().Network.MaxClients) {
		srv.stats.connections.Add(1)
		return ""
	}
	refusal := srv.refuseClient(!remote)
	if refusal == "" {
		return ""
	}
	return "-" + refusal + "\r\n"
}

// Open implements transport.Host.
func (h *transportHost) Open(p transport.Peer, wake func()) transport.Session {
	s := h.sessions.Open(p, wake)
	s.AllowForwarding()
	return s
}

// Prefetch implements transport.Host.
func (h *transportHost) Prefetch(batch []transport.Input) { h.sessions.Prefetch(batch) }

// Commit implements transport.Host.
func (h *transportHost) Commit() {
	if st := h.storage.Storage; st != nil {
		st.Commit()
	}
}

// CommitSoon implements transport.Host.
func (h *transportHost) CommitSoon() {
	if st := h.storage.Storage; st != nil {
		st.Kick()
	}
}

// Stalled implements transport.Host: a script is running that makes the server busy.
func (h *transportHost) Stalled() bool { return h.scripts.Busy() != "" }
