package door

import (
	"log/slog"
	"net"
)

// Door serves the peers of a foreign protocol.
type Door interface {
	// Serve accepts peers until the listener is closed, or until the door ends by itself: then it returns nil, or why. A
	// peer gets a Client of its own; when that is done its connection is closed, and when the peer has gone the Client
	// is.
	Serve(l net.Listener) error
	// Close disconnects all peers, and returns when no goroutine of the door is left. It is called once, after the
	// listener was closed: while Serve returns, before it has begun, after the door has ended by itself, or without
	// Serve. Commands of its clients that wait end with ErrClosed when they are closed.
	Close() error
	// Info calls add with fields for INFO. It must not execute commands, or wait for anybody who does.
	Info(add func(field, value string))
}

// Host is what a door knows of the server. Its methods may be called by any goroutine.
type Host interface {
	// Client returns a client for a peer. It acts as the user that the directive door-<name>-user names; without one it
	// is what a new connection of Redis is: the default user, who may have to use Client.Auth first. The error is
	// ErrTooManyClients, ErrNoUser or ErrClosed. New must not call it, because the data may not be there yet.
	Client(p Peer) (Client, error)
	// OwnClient returns a client for the door's own work. It may do everything.
	OwnClient() (Client, error)
	// Setting returns the value of a directive of the door, as it is now.
	Setting(name string) string
	// Log returns the server's log.
	Log() *slog.Logger
}

// Peer says where a client comes from: the two ends of its connection as CLIENT LIST shows them.
type Peer struct{ Addr, Local string }

// PeerOf returns the peer at the other end of a connection.
func PeerOf(conn net.Conn) Peer {
	local := conn.LocalAddr().String()
	if _, ok := conn.RemoteAddr().(*net.UnixAddr); ok {
		return Peer{local + ":0", local + ":0"}
	}
	return Peer{conn.RemoteAddr().String(), local}
}
