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

// Modules are all modules. All but vector sets have the number of Redis's version.
var Modules = []Module{
	{Name: "vectorset", Number: 1, Groups: []string{"vector_set"}},
	{Name: "bf", Number: modules, Groups: []string{"bf", "cf", "cms", "tdigest", "topk"}},
	{Name: "ReJSON", Number: modules, Groups: []string{"json"}, UsedBy: Search, Options: "handle-io-errors"},
	{Name: "timeseries", Number: modules, Groups: []string{"timeseries"}, Options: "handle-io-errors"},
	{Name: Search, Number: modules, Groups: []string{"search"}, Using: "ReJSON", Options: "handle-io-errors"},
}

const (
	// Search is the name of the query engine as a module.
	Search = "search"

	modules = (RedisNumber>>16)*10000 + (RedisNumber>>8&0xff)*100 + RedisNumber&0xff
)
