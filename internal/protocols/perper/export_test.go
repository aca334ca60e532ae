package perper

import "github.com/atomredis/atomredis/internal/command"

// Of returns the service of a server.
func Of(h command.Host) *Fabric { return fabricOf(h) }
