package pubsub

import (
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/command"
)

// Host is what the commands of this package need of the server.
type Host interface {
	// PubSub returns the hub.
	PubSub() *pubsub.Hub
	// Published has the message of a PUBLISH, or of an SPUBLISH if shard is set, heard at the other servers of the group
	// and the cluster, and at replicas, if there are any.
	Published(c *command.Ctx, shard bool)
}

// Client is what they need of the client.
type Client interface {
	// Subscriptions returns the client's subscriptions.
	Subscriptions() *pubsub.Subscriptions
	// Repeats reports whether the client's next command is cmd again, as far as is known. If so, the client calls
	// EndPublishing of its subscriptions before another command.
	Repeats(cmd *command.Command) bool
	// WriteMessage writes a message to the client where its reply goes, although its replies may be off.
	WriteMessage(c *command.Ctx, message command.Reply)
}

func hubOf(c *command.Ctx) *pubsub.Hub { return c.Host.(Host).PubSub() }
func clientOf(c *command.Ctx) Client   { return c.Client.(Client) }
