package hashes

import "github.com/atomredis/atomredis/internal/command"

// Client is the client of a command, as far as the commands on hashes need it.
type Client interface {
	// Fieldsets returns those of the client.
	Fieldsets() *Fieldsets
}

// clientOf returns the client of a command.
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
