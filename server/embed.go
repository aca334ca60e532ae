package server

import (
	"net"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/persist/store"
)

// This file is for programs that embed the server: connections that they hand over, and files that are read again. The
// sessions in which a program executes commands are session.Direct; snapshots are in snapshot.go.

var (
	// ErrInUse says that another server uses the data directory.
	ErrInUse = store.ErrInUse
	// ErrNoStorage says that the program does not link what stores data on a disk.
	ErrNoStorage = store.ErrNone
)

// ServeConn serves a client at the other end of a connection, of whatever kind, in the background; it owns conn from
// now on. The error is door.ErrClosed if the server is closed. A client that is refused gets the reason, and its
// connection is closed, without an error.
func (srv *Server) ServeConn(conn net.Conn) error {
	if srv.goroutines.Serve(conn) != nil {
		return door.ErrClosed
	}
	return nil
}

// Direct returns a client that is part of the program, from a pool; it may do everything. Its commands are executed
// in a database. Release must be called once, when it is not used any more.
func (srv *Server) Direct(db int) (*session.Direct, error) { return srv.direct.Get(db) }

// Sessions returns what clients have of the server.
func (srv *Server) Sessions() *session.Shared { return srv.sessions }

// RereadFiles reads files that directives name, certificates and the users of aclfile, again if they have changed. What
// cannot be used is refused with a line of the log, and what was there before stays.
func (srv *Server) RereadFiles() {
	srv.tls.Reread()
	srv.users.Reread()
}
