package hashes

import "github.com/atomredis/atomredis/internal/command"

// Client is what the commands on hashes need of the client.
type Client interface {
	// Fieldsets returns the client's fieldsets.
	Fieldsets() *Fieldsets
}

// clientOf returns the client of a command.
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
