package cluster

import (
	"github.com/atomredis/atomredis/clients"
	"github.com/atomredis/atomredis/cluster"
	"github.com/atomredis/atomredis/command"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// Node returns what the server is in its cluster, nil if cluster mode is off.
	Node() *cluster.Node
	// ClusterView returns what a client is told that has connected to an address, if cluster mode is on.
	ClusterView(local string) *cluster.View
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

// viewOf returns what the client is told of the cluster.
func viewOf(c *command.Ctx) *cluster.View { return c.Host.(Host).ClusterView(clientOf(c).LocalAddr()) }
