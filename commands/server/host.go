package server

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/stats"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// The parts of the server.
	Table() *command.Table
	Config() *config.Config
	Slowlog() *stats.Slowlog
	Latency() *stats.Latency
	CommandStats() *stats.Commands
	// ResetStats sets the counters of INFO to zero.
	ResetStats()
}

// Client is what they need of the client.
type Client interface {
	command.Client
	// Has reports whether the client is one of those that have an access.
	Has(a config.Access) bool
}

func hostOf(c *command.Ctx) Host     { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
