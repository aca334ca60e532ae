// Package feed tells the clients of doors, and who else has subscribed, what a protocol's commands have changed: messages
// of publish and subscribe, which are sent under the guard of the change, so that those about one key have the order
// of its changes.
package feed

import "github.com/atomredis/atomredis/internal/command"

// Host is what a protocol that has a feed needs of the server.
type Host interface {
	command.Host
	// Subscribed reports whether anybody has subscribed to anything.
	Subscribed() bool
	// Publish sends a message to the subscribers of a channel. by is the client whose command it is, or nil. The
	// arguments are not kept.
	Publish(by command.Client, channel, payload []byte)
}

// Heard reports whether anybody may hear of changes. A message need not be made if nobody does.
func Heard(c *command.Ctx) bool { return c.Host.(Host).Subscribed() }

// Send publishes a message. The guard of the Ctx must hold what it tells of.
func Send(c *command.Ctx, channel, payload []byte) { c.Host.(Host).Publish(c.Client, channel, payload) }
