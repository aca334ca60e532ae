package server

// Commands are packages of their own, which register themselves.
import (
	_ "github.com/atomredis/atomredis/commands/acl"
	_ "github.com/atomredis/atomredis/commands/arrays"
	_ "github.com/atomredis/atomredis/commands/bitmaps"
	_ "github.com/atomredis/atomredis/commands/geo"
	_ "github.com/atomredis/atomredis/commands/hashes"
	_ "github.com/atomredis/atomredis/commands/hyperloglog"
	_ "github.com/atomredis/atomredis/commands/json"
	_ "github.com/atomredis/atomredis/commands/keys"
	_ "github.com/atomredis/atomredis/commands/lists"
	_ "github.com/atomredis/atomredis/commands/scripts"
	_ "github.com/atomredis/atomredis/commands/sets"
	_ "github.com/atomredis/atomredis/commands/sketches"
	_ "github.com/atomredis/atomredis/commands/streams"
	_ "github.com/atomredis/atomredis/commands/strings"
	_ "github.com/atomredis/atomredis/commands/timeseries"
	_ "github.com/atomredis/atomredis/commands/transactions"
	_ "github.com/atomredis/atomredis/commands/vectors"
	_ "github.com/atomredis/atomredis/commands/zsets"
	_ "github.com/atomredis/atomredis/protocols/atom"
	_ "github.com/atomredis/atomredis/protocols/pressure"
)
