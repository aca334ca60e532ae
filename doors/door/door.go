package door

import (
	"log/slog"
	"net"
	"time"
)

// Door serves the peers of a foreign protocol.
type Door interface {
	// Serve accepts peers until the listener is closed, or until the door ends by itself; then it returns nil, or the
	// reason. Each peer gets a Client. When the Client is done, Serve closes the connection; when the peer is gone, it
	// closes the Client.
	Serve(l net.Listener) error
	// Close disconnects all peers, and returns when no goroutine of the door is left. It is called once, after the
	// listener was closed: before, during or after Serve, or without Serve. Closing a client ends its waiting command
	// with ErrClosed.
	Close() error
	// Info calls add with fields for INFO. It must not execute commands, nor wait for a goroutine that does.
	Info(add func(field, value string))
}

// Ender is a Door that can end by itself without aborting the requests of its peers.
type Ender interface {
	// End makes the door end: Serve returns when running requests have been answered. End does not wait for that, and
	// may be called several times and under any lock.
	End()
}

// Host is the server as a door sees it. Any goroutine may call its methods.
type Host interface {
	// Client returns a client for a peer. It acts as the user in the directive door-<name>-user. Without one it acts
	// like a new connection of Redis: as the default user, who may need Client.Auth first. The error is
	// ErrTooManyClients, ErrNoUser or ErrClosed. Kind.New must not call it, because the data may not be loaded yet.
	Client(p Peer) (Client, error)
	// OwnClient returns a client for the door's own work. It has all permissions, and may be used until Close has
	// returned. It must not execute commands that wait for the door to close, such as SHUTDOWN, nor requests of peers,
	// which belong to the peer's client.
	OwnClient() (Client, error)
	// Setting returns the current value of a directive of the door.
	Setting(name string) string
	// FirstRequest returns how long a peer may take to send its first request; 0 means no limit.
	FirstRequest() time.Duration
	// Topology returns the servers with the same data. It executes no command and does not wait.
	Topology() Topology
	// Owner returns the ID, as in Member, of the server that executes commands on a key: the master or leader, in a cluster
	// that of the shard that has the key's slot. It is "" if none is known. Owner does not wait.
	Owner(key string) (id string)
	// Log returns the server's log.
	Log() *slog.Logger
}

// Topology lists the servers with the same data, as far as this server knows.
type Topology struct {
	// Members are the servers; the first one is this server.
	Members []Member
	// InGroup says that they elect their leader. Otherwise they are a master and its replicas.
	InGroup bool
	// Epoch is the term of the leader; 0 without a group. Timeout is how long the leader may be silent.
	Epoch   uint64
	Timeout time.Duration
	// Shards is 0 unless the servers are one of several shards of a cluster. It grows when slots move, and when another shard
	// gets another leader.
	Shards uint64
}

// Master returns the ID of the server that accepts writes; "" if none is known.
func (t Topology) Master() string {
	for _, m := range t.Members {
		if m.Master {
			return m.ID
		}
	}
	return ""
}

// Member is one of the servers.
type Member struct {
	// ID has 40 hexadecimal digits and does not change; "" if it is unknown.
	ID string
	// Addr is the host and port for clients. This server's own Addr may lack the host: clients then use the host at
	// which they have reached the door.
	Addr string
	// Sentinel is the host and port for clients of Redis Sentinel, in the same form; "" if there is none.
	Sentinel string
	// Master says that it accepts writes. In a group there may be no known master.
	Master bool
	// Voter says that it counts for majorities, Witness that it has no data, Online that it is reachable.
	Voter, Witness, Online bool
	// Offset is its position in the history of the data.
	Offset int64
}

// Peer has the two addresses of a client's connection, as CLIENT LIST shows them.
type Peer struct{ Addr, Local string }

// PeerOf returns the addresses of a connection.
func PeerOf(conn net.Conn) Peer {
	local := conn.LocalAddr().String()
	if _, ok := conn.RemoteAddr().(*net.UnixAddr); ok {
		return Peer{local + ":0", local + ":0"}
	}
	return Peer{conn.RemoteAddr().String(), local}
}
