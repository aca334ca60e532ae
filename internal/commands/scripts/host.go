package scripts

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/scripting"
)

// Host is what scripts need of the server.
type Host interface {
	command.Host
	Scripts() *Scripts
	// WriteRestriction returns the error if the state of the storage or the replicas forbids the command of c to
	// write; otherwise "".
	WriteRestriction(c *command.Ctx) command.Error
	// IsStale reports whether the data may be stale, so that only commands with the flag Stale may run.
	IsStale(c *command.Ctx) bool
}

// Client is what scripts need of the client.
type Client interface {
	command.Client
	// BeginScript returns the host that executes the commands of a script or function under the guard of c.
	// EndScript must follow: until then SELECT affects only the script.
	BeginScript(c *command.Ctx, l Limits) scripting.Host
	EndScript()
	// Debugging reports whether the client wants to debug its scripts; SetDebugging sets that.
	Debugging() bool
	SetDebugging(yes bool)
	// End closes the connection once the client has its reply.
	End()
}

// Limits are the rights of a script beside those of its client.
type Limits struct {
	// ReadOnly says that the script must not write.
	ReadOnly bool
	// AllowOOM says that the script may write above maxmemory.
	AllowOOM bool
	// CrossSlots says that in cluster mode different commands of the script may use different slots; each command
	// must still use one.
	CrossSlots bool
}

func hostOf(c *command.Ctx) Host        { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client    { return c.Client.(Client) }
func scriptsOf(c *command.Ctx) *Scripts { return hostOf(c).Scripts() }
