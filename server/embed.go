package server

import (
	"errors"
	"net"

	"github.com/atomredis/atomredis/persist/store"
)

// This file is how a program that has the server inside itself uses it: with connections that it hands over. The
// sessions in which it executes commands itself are in direct.go, snapshots in snapshot.go.

var (
	// ErrInUse says that another server uses the data directory.
	ErrInUse = store.ErrInUse
	// ErrInHandler says that the handler of a custom command uses the server other than by calling commands.
	ErrInHandler = errors.New("the handler of a command must use the Call of its Ctx, because the server waits for it")
)

// embeddedPeer is where clients come from that are part of the program: they count as clients on the same machine.
var embeddedPeer = Peer{Addr: "@embedded:0", Local: "@embedded:0"}

// startTransports prepares all ways in which clients reach their sessions: the listeners, connections that are handed
// over, and the program itself. Without anything to listen on there are no event loops: a thread that waits for
// events would keep a testing/synctest bubble from being idle.
func (srv *Server) startTransports(o Options, loops int) error {
	srv.goroutines, srv.direct = newGoroutines(srv), newDirects(srv)
	srv.carriers = []carrier{srv.goroutines, srv.direct}
	srv.transport = srv.goroutines
	if o.Goroutines || o.Hook != nil || !srv.listens() {
		return nil
	}
	var err error
	srv.transport, err = newTransport(srv, loops, o.SpareProcessors)
	if err == nil {
		srv.carriers = append(srv.carriers, srv.transport)
	}
	return err
}

// listens reports whether there will be listeners.
func (srv *Server) listens() bool {
	set := srv.config.Get()
	return len(srv.listeners.all) > 0 || set.Port != 0 || set.TLS.Port != 0 || set.UnixSocket != ""
}

// ServeConn serves a client at the other end of a connection, of whatever kind, in the background; it owns conn from
// now on. The error is door.ErrClosed if the server is closed. A client that is refused is told so, and the
// connection closed, without an error.
func (srv *Server) ServeConn(conn net.Conn) error { return srv.goroutines.accept(conn) }
