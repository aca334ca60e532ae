// Package feed publishes the changes of a protocol's commands to clients of doors and other subscribers. Messages
// are sent under the guard of the change, so those about one key are in the order of its changes.
package feed

import "github.com/atomredis/atomredis/internal/command"

// Host is what a protocol with a feed needs of the server.
type Host interface {
	command.Host
	// Subscribed reports whether any client has a subscription.
	Subscribed() bool
	// Publish sends a message to the subscribers of a channel. by is the client whose command sends it, or nil. The
	// arguments are not kept.
	Publish(by command.Client, channel, payload []byte)
}

// Heard reports whether there may be subscribers. Without any, no message need be made.
func Heard(c *command.Ctx) bool { return c.Host.(Host).Subscribed() }

// Send publishes a message. The guard of the Ctx must hold the keys that it is about.
func Send(c *command.Ctx, channel, payload []byte) { c.Host.(Host).Publish(c.Client, channel, payload) }
