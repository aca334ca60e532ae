package connection

import (
	"iter"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/command"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	Users() *acl.Users
	// Mode and Role are what clients see of the server: "standalone" or "cluster", "master" or "replica".
	Mode() string
	Role() string
	// Clients returns all clients that are not being disconnected, in the order in which they connected. now is in
	// ms since 1970.
	Clients(now int64) iter.Seq[*clients.Info]
	// ClientByID returns the client with that number; ok is false if there is none.
	ClientByID(id, now int64) (info clients.Info, ok bool)
	// Kill disconnects clients, and returns how many. by is the client that asks; it gets its reply even if it is
	// one of them.
	Kill(by command.Client, f *clients.Filter, now int64) int
	// Unblock ends the wait of a blocked client, with an error or as at its timeout. It returns false if there is no
	// such client.
	Unblock(id int64, withError bool) bool
	// Pause makes all commands wait until a time, or those that may write; Unpause ends it. Times are in ms since 1970.
	Pause(now, until int64, all bool)
	Unpause()
}

// Client is what the commands need of the client.
type Client interface {
	command.Client
	ID() int64
	// Authenticate authenticates the client, and reports whether the password was right.
	Authenticate(name, password []byte) bool
	// Authenticated reports whether the client may execute commands.
	Authenticated() bool
	// SetProtocol chooses the version of RESP: 2 or 3.
	SetProtocol(version int)
	// Select chooses the database.
	Select(db int)
	// Options returns the client's options, for changes.
	Options() *clients.Options
	Subscriptions() *pubsub.Subscriptions
	Tracking() *tracking.Client
	// Refresh publishes the client's present state, executing cmd, and returns it. now is in ms since 1970.
	Refresh(cmd *command.Command, now int64) clients.Info
	// Reset resets the client's options, except the name and version of its library.
	Reset()
	// Quit closes the connection once the reply is sent.
	Quit()
}

func hostOf(c *command.Ctx) Host     { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
