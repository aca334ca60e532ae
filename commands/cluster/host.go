package cluster

import (
	"github.com/atomredis/atomredis/clients"
	"github.com/atomredis/atomredis/cluster"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	Config() *config.Config
	// Node returns what the server is in its cluster, nil if cluster mode is off.
	Node() *cluster.Node
}

// Client is what they need of the client.
type Client interface {
	command.Client
	// LocalAddr is the address that the client has connected to, as CLIENT LIST shows it.
	LocalAddr() string
	// Options are what the client has chosen, to be changed.
	Options() *clients.Options
}

func nodeOf(c *command.Ctx) *cluster.Node { return c.Host.(Host).Node() }
func clientOf(c *command.Ctx) Client      { return c.Client.(Client) }

// announcement returns what the client is told of the node's address.
func announcement(c *command.Ctx) cluster.Announcement {
	return cluster.Announce(c.Host.(Host).Config().Get(), clientOf(c).LocalAddr())
}
