package server

import (
	"errors"
	"net"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/persist/store"
)

// This file is how a program that has the server inside itself uses it: with connections that it hands over. The
// sessions in which it executes commands itself are in direct.go, snapshots in snapshot.go.

var (
	// ErrInUse says that another server uses the data directory.
	ErrInUse = store.ErrInUse
	// ErrNoStorage says that the program does not link what stores data on a disk.
	ErrNoStorage = store.ErrNone
	// ErrInHandler says that the handler of a custom command uses the server other than by calling commands.
	ErrInHandler = errors.New("the handler of a command must use the Call of its Ctx, because the server waits for it")
)

// ServeConn serves a client at the other end of a connection, of whatever kind, in the background; it owns conn from
// now on. The error is door.ErrClosed if the server is closed. A client that is refused is told so, and the
// connection closed, without an error.
func (srv *Server) ServeConn(conn net.Conn) error {
	if srv.goroutines.Serve(conn) != nil {
		return door.ErrClosed
	}
	return nil
}
