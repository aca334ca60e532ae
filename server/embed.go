package server

import (
	"net"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/persist/store"
)

// This file has methods for programs that embed the server: they hand over connections, and read files again. The
// sessions in which a program executes commands are session.Direct; snapshots are in snapshot.go.

var (
	// ErrInUse means that another server uses the data directory.
	ErrInUse = store.ErrInUse
	// ErrNoStorage means that the program does not link the code that stores data on a disk.
	ErrNoStorage = store.ErrNone
)

// ServeConn serves the client of a connection of any kind in the background; it owns conn from now on. The error is
// door.ErrClosed if the server is closed. A client that is refused gets the reason, and its connection is closed,
// without an error.
func (srv *Server) ServeConn(conn net.Conn) error {
	if srv.goroutines.Serve(conn) != nil {
		return door.ErrClosed
	}
	return nil
}

// Direct returns a client that is part of the program, from a pool; it may do everything. Its commands are executed
// in a database. Release must be called once, when it is not used any more.
func (srv *Server) Direct(db int) (*session.Direct, error) { return srv.direct.Get(db) }

// Sessions returns the shared state of the sessions.
func (srv *Server) Sessions() *session.Shared { return srv.sessions }

// RereadFiles reads the certificates and the users of aclfile again if their files have changed. If a file cannot be
// used it logs that, and the previous content stays.
func (srv *Server) RereadFiles() {
	srv.tls.Reread()
	srv.users.Reread()
}
