package version

// Module is a part of the server that is a module in Redis 8. Clients and tools check for modules before they use
// the commands.
type Module struct {
	Name    string
	Number  int      // its version, with two digits for the second and the third part
	Groups  []string // the groups of its commands in the table
	Using   string   // the module that it uses; "" if there is none
	UsedBy  string   // the module that uses it
	Options string   // in the form of INFO
}

// Modules are all modules. Those of data types have the number of Redis's version. The query engine has that of the
// last release with the same errors: those of 8.8 and later begin with a code.
var Modules = []Module{
	{Name: "vectorset", Number: 1, Groups: []string{"vector_set"}},
	{Name: "bf", Number: modules, Groups: []string{"bf", "cf", "cms", "tdigest", "topk"}},
	{Name: "ReJSON", Number: modules, Groups: []string{"json"}, UsedBy: Search, Options: "handle-io-errors"},
	{Name: "timeseries", Number: modules, Groups: []string{"timeseries"}, Options: "handle-io-errors"},
	{Name: Search, Number: searchNumber, Groups: []string{"search"}, Using: "ReJSON", Options: "handle-io-errors"},
}

const (
	// Search is the name of the query engine as a module, and SearchVersion its version.
	Search        = "search"
	SearchVersion = "8.6.0"

	searchNumber = 80600
	modules      = (RedisNumber>>16)*10000 + (RedisNumber>>8&0xff)*100 + RedisNumber&0xff
)
