package pubsub

import (
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/command"
)

// Host is what the commands of this package need of the server.
type Host interface {
	// PubSub returns the hub.
	PubSub() *pubsub.Hub
	// Published passes the message of a PUBLISH, or of an SPUBLISH if shard is set, on to the other servers of the
	// group and the cluster, and to replicas.
	Published(c *command.Ctx, shard bool)
}

// Client is what the commands need of the client.
type Client interface {
	// Subscriptions returns the client's subscriptions.
	Subscriptions() *pubsub.Subscriptions
	// Repeats reports whether the client's next command is cmd again, as far as is known. If so, the client calls
	// EndPublishing of its subscriptions before another command.
	Repeats(cmd *command.Command) bool
	// WriteMessage writes a message to the client in place of a reply, even if its replies are off.
	WriteMessage(c *command.Ctx, message command.Reply)
}

func hubOf(c *command.Ctx) *pubsub.Hub { return c.Host.(Host).PubSub() }
func clientOf(c *command.Ctx) Client   { return c.Client.(Client) }
