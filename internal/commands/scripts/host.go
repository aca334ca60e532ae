package scripts

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/scripting"
)

// Host is what scripts need of the server.
type Host interface {
	command.Host
	Scripts() *Scripts
	// WriteRestriction returns the error that keeps the command of c from writing because of the state of the storage or
	// the replica; "" if nothing does.
	WriteRestriction(c *command.Ctx) command.Error
	// IsStale reports whether the data may be old, and only commands that do not mind may run.
	IsStale(c *command.Ctx) bool
}

// Client is what they need of the client.
type Client interface {
	command.Client
	// BeginScript returns what executes the commands of a script, or function, that runs under the guard of c. EndScript
	// must follow: until then SELECT counts for the script alone.
	BeginScript(c *command.Ctx, l Limits) scripting.Host
	EndScript()
	// Debugging reports whether the client wants its scripts debugged, and SetDebugging says so.
	Debugging() bool
	SetDebugging(yes bool)
	// End closes the connection once the client has its reply.
	End()
}

// Limits are what a script may do beyond what its client may.
type Limits struct {
	// ReadOnly says that it must not write.
	ReadOnly bool
	// AllowOOM says that it may write however much memory is in use.
	AllowOOM bool
	// CrossSlots says that in cluster mode its commands may use keys of different slots, though not one command.
	CrossSlots bool
}

func hostOf(c *command.Ctx) Host        { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client    { return c.Client.(Client) }
func scriptsOf(c *command.Ctx) *Scripts { return hostOf(c).Scripts() }
