package server

// Commands are packages of their own, which register themselves.
import (
	_ "github.com/atomredis/atomredis/internal/commands/acl"
	_ "github.com/atomredis/atomredis/internal/commands/arrays"
	_ "github.com/atomredis/atomredis/internal/commands/bitmaps"
	_ "github.com/atomredis/atomredis/internal/commands/geo"
	_ "github.com/atomredis/atomredis/internal/commands/hashes"
	_ "github.com/atomredis/atomredis/internal/commands/hyperloglog"
	_ "github.com/atomredis/atomredis/internal/commands/json"
	_ "github.com/atomredis/atomredis/internal/commands/keys"
	_ "github.com/atomredis/atomredis/internal/commands/lists"
	_ "github.com/atomredis/atomredis/internal/commands/pathhash"
	_ "github.com/atomredis/atomredis/internal/commands/scripts"
	_ "github.com/atomredis/atomredis/internal/commands/sets"
	_ "github.com/atomredis/atomredis/internal/commands/sketches"
	_ "github.com/atomredis/atomredis/internal/commands/streams"
	_ "github.com/atomredis/atomredis/internal/commands/strings"
	_ "github.com/atomredis/atomredis/internal/commands/timeseries"
	_ "github.com/atomredis/atomredis/internal/commands/transactions"
	_ "github.com/atomredis/atomredis/internal/commands/vectors"
	_ "github.com/atomredis/atomredis/internal/commands/zsets"
	_ "github.com/atomredis/atomredis/internal/protocols/atom"
	_ "github.com/atomredis/atomredis/internal/protocols/pressure"
)
