package door

import (
	"log/slog"
	"net"
	"time"
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

// Ender is a Door that can end by itself without breaking off what its peers have asked for.
type Ender interface {
	// End has the door end: Serve returns when the requests that are being executed have been answered. It does not wait
	// for that, and may be called several times, under any lock.
	End()
}

// Host is what a door knows of the server. Its methods may be called by any goroutine.
type Host interface {
	// Client returns a client for a peer. It acts as the user that the directive door-<name>-user names; without one it
	// is what a new connection of Redis is: the default user, who may have to use Client.Auth first. The error is
	// ErrTooManyClients, ErrNoUser or ErrClosed. New must not call it, because the data may not be there yet.
	Client(p Peer) (Client, error)
	// OwnClient returns a client for the door's own work. It may do everything, and may be used until Close has returned. It
	// must not execute what waits for the door to close, as SHUTDOWN does, or what a peer asks for: that is the peer's
	// client's.
	OwnClient() (Client, error)
	// Setting returns the value of a directive of the door, as it is now.
	Setting(name string) string
	// FirstRequest returns how long a peer may take until its first request is there; 0 is for ever.
	FirstRequest() time.Duration
	// Topology returns who has the same data as the server. It executes no command, and waits for nobody.
	Topology() Topology
	// Log returns the server's log.
	Log() *slog.Logger
}

// Topology is who has the same data as a server, as far as it knows.
type Topology struct {
	// Members are the servers, the one that tells first.
	Members []Member
	// InGroup says that they agree on who leads. Otherwise they are a master and replicas of it.
	InGroup bool
	// Epoch is the term of the leader; 0 without a group. Timeout is for how long it may be silent.
	Epoch   uint64
	Timeout time.Duration
}

// Member is one of the servers.
type Member struct {
	// ID has 40 hexadecimal digits that stay as they are; "" if nothing is known.
	ID string
	// Addr is where clients reach it, a host and a port. The host may be missing from that of the server itself: clients
	// reach it where they have reached the door.
	Addr string
	// Sentinel is where clients of Redis Sentinel reach it, in the same way; "" if they do not.
	Sentinel string
	// Master says that it takes writes. In a group no server may be known to do that.
	Master bool
	// Voter says that it counts for majorities, and Online that it has been heard of lately.
	Voter, Online bool
	// Offset is how far it is in the history of the data.
	Offset int64
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
