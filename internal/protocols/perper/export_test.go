package perper

import "github.com/atomredis/atomredis/internal/command"

// Of returns the service of a server.
func Of(h command.Host) *Fabric { return fabricOf(h) }

// BeforePiece makes a server call fn, with no guard held, before a search for references looks at a piece of a cache.
func BeforePiece(h command.Host, fn func(cache string)) { fabricOf(h).beforePiece = fn }
