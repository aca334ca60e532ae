package command

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Command is one entry of the command table: everything the server knows about a command. Sub-commands are entries of
// their own, whose names carry the parent's ("config|get").
type Command struct {
	// Name in lower case.
	Name string
	// Group is the group that Redis's documentation puts the command in.
	Group string
	// Since is the Redis version that introduced the command.
	Since string
	// Deprecated is the Redis version that deprecated it, if any; Instead says what to use.
	Deprecated, Instead string
	// Complexity is the documented cost, for COMMAND DOCS.
	Complexity string
	// Capital says that errors name the command in capitals, as Redis does for commands that modules register in
	// capitals.
	Capital bool
	// Arity counts the arguments including the name (for sub-commands: both names); negative means "at least".
	Arity int
	// Flags say when the command may run and what it does.
	Flags Flag
	// ACL lists the categories that do not follow from Flags.
	ACL Category
	// Keys says where the keys are among the arguments.
	Keys []KeySpec
	// DerivedKeys calls fn with each derived key: a key that follows from the arguments without being one of them;
	// nil if there are none. fn must not keep the key.
	DerivedKeys func(args [][]byte, fn func(key []byte))
	// KeyIndices returns the indices of the keys if Keys cannot describe them exactly; otherwise it is nil. Cluster
	// slots are computed from it. If a spec of Keys is INCOMPLETE, everything else uses it too.
	KeyIndices func(args [][]byte) []int
	// KeyUse returns the flags of a key with VARIABLE_FLAGS for these arguments; if it is nil, the other flags of
	// the spec hold.
	KeyUse func(args [][]byte) []string
	// Channels returns the channels that the arguments name, or the patterns of channels; nil if the command has none.
	Channels func(args [][]byte) (names [][]byte, patterns bool)
	// Databases returns the indices of the arguments that name databases, which may exceed the arguments; nil if
	// there are none. Commands with keys also use their client's database.
	Databases func(args [][]byte) []int
	// AllDatabases says that the command uses all databases.
	AllDatabases bool
	// Selects says that the command chooses the database of its client, as SELECT does.
	Selects bool
	// Secrets calls fn with the index of each argument that no log and no monitor may show; nil if there are none.
	Secrets func(args [][]byte, fn func(i int))
	// Script returns what the script or function that the arguments name declares; nil if the command runs none.
	Script func(host Host, args [][]byte) Script
	// Element is the index of the argument that names a field or member of the collection at the first key, or 0. It
	// is only a hint which memory to prefetch.
	Element int
	// Summary says in a few words what the command does.
	Summary string
	// Syntax is the grammar of the arguments as users read it; COMMAND DOCS derives its argument tree from it.
	Syntax string
	// Do executes the command: it reads c.Args and writes exactly one reply.
	Do func(c *Ctx)
	// Subs are the sub-commands, if the command is only a container of them.
	Subs []*Command

	// Immediate commands are executed, not queued, between MULTI and EXEC.
	Immediate bool
	// RunsQueue says that the command executes the queued commands of a transaction.
	RunsQueue bool
	// Repeated says that the command can be in the journal or a master's stream although it writes nothing.
	Repeated bool
	// WhileSubscribed commands may be sent by a RESP2 client that has subscriptions.
	WhileSubscribed bool
	// Stateful says that the command changes the effect of later commands on the connection, or the connection's
	// purpose.
	Stateful bool
	// KeepsCaching says that sub-commands of this container do not end the effect of CLIENT CACHING.
	KeepsCaching bool
	// TellsOfFailure says that the command fails like a write while changes cannot be made durable, because it asks
	// for the server's health.
	TellsOfFailure bool
	// NoData says that the reply does not depend on the data. A waiting client gets it even if the server has lost
	// its lead or its journal meanwhile.
	NoData bool
	// InSteps says that the reply need not show one instant: an offloaded call works in steps, each under its own
	// guard. See Ctx.ScanSteps.
	InSteps bool
	// OneShard says that of the shards that WholeKeyspace asks for, one is enough, always the same: the command changes
	// state beside the keys. A command that reads all such state at one instant holds all shards.
	OneShard bool
	// Custom says that the embedding program has added the command.
	Custom bool
	// AtLeader says that the command is forwarded to the leader although it uses no data.
	AtLeader bool
	// CallableNow reports whether scripts may call the NoScript command now; nil if they never may.
	CallableNow func(host Host, client Client) bool
	// Allowed reports whether the client may use a command that is Protected.
	Allowed func(host Host, client Client) bool

	// The table fills in the fields below.

	// Parent is the container of a sub-command.
	Parent *Command
	// Index is its place in the server's statistics.
	Index int
	// Lock says which shards the guard for the command takes.
	Lock LockSet
	// Incomplete says that Keys misses keys of some calls, which KeyIndices returns.
	Incomplete bool
	// Slow says that the command may take longer than a few lookups.
	Slow bool
}

// AtMaster reports whether only a master can continue the command when it blocks: it changes data, or waits for replicas.
func (c *Command) AtMaster() bool {
	return c.Flags&Write != 0 || c.Flags&Blocking != 0 && c.Flags&ReadOnly == 0
}

// Script is what a script or function declares about itself.
type Script struct {
	// Declared says that there is a declaration; otherwise the effects are unknown until the script runs.
	Declared bool
	// ReadOnly says that the script writes nothing; the server enforces that.
	ReadOnly bool
	// AllowOOM says that the script may run above maxmemory.
	AllowOOM bool
}

// Flag is a set of properties of a command, named as Redis names them.
type Flag uint32

// The flags of commands.
const (
	Write Flag = 1 << iota
	ReadOnly
	DenyOOM
	// Module says that the command belongs to a module in Redis: its ACL categories are those that the entry lists, and
	// read or write.
	Module
	Admin
	PubSub
	NoScript
	Blocking
	Loading
	Stale
	SkipMonitor
	SkipSlowlog
	Fast
	NoAuth
	MayReplicate
	NoMandatoryKeys
	Protected
	NoAsyncLoading
	NoMulti
	AllowBusy
	TouchesArbitraryKeys
	MovableKeys // derived from Keys
	Asking
	ScriptRunner

	// WholeKeyspace says that the command needs a guard over all shards. Clients do not see the flag.
	WholeKeyspace
	// AllKeys says that the command needs all keys of a database, and cannot run while they are loaded. Clients do
	// not see the flag.
	AllKeys
	// OwnGuard says that the command takes its guards itself. Clients do not see the flag.
	OwnGuard
	// FollowsKeys says that values lead the command to keys that are not among its arguments; it asks for them with
	// Ctx.Holds. Clients do not see the flag.
	FollowsKeys
	// ListsCategories says that the entry lists all ACL categories: none follows from the other flags. Clients do not
	// see the flag.
	ListsCategories
)

// flagNames are the names that COMMAND INFO shows, in bit order.
var flagNames = [...]string{"write", "readonly", "denyoom", "module", "admin", "pubsub", "noscript", "blocking", "loading",
	"stale",
	"skip_monitor", "skip_slowlog", "fast", "no_auth", "may_replicate", "no_mandatory_keys", "protected",
	"no_async_loading",
	"no_multi", "allow_busy", "touches_arbitrary_keys", "movablekeys", "asking",
	"script_runner"}

// Names returns the flags as COMMAND INFO shows them.
func (f Flag) Names() []string {
	var out []string
	for i, n := range flagNames {
		if f&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// Category is a set of ACL categories.
type Category uint32

// The ACL categories, in the order in which ACL CAT lists them.
const (
	CatKeyspace Category = 1 << iota
	CatRead
	CatWrite
	CatSet
	CatSortedSet
	CatList
	CatHash
	CatString
	CatBitmap
	CatHyperLogLog
	CatGeo
	CatStream
	CatPubSub
	CatAdmin
	CatFast
	CatSlow
	CatBlocking
	CatDangerous
	CatConnection
	CatTransaction
	CatScripting
	CatBloom
	CatCuckoo
	CatCMS
	CatTopK
	CatTDigest
	CatJSON
	CatTimeSeries
	CatArray
	CatSearch
	CatPathHash
)

// CategoryNames are the names of the categories without the leading '@', in bit order.
var CategoryNames = [...]string{"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
	"hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection",
	"transaction",
	"scripting", "bloom", "cuckoo", "cms", "topk", "tdigest", "json", "timeseries", "array", "search", "pathhash"}

// Names returns the categories without the leading '@'.
func (c Category) Names() []string {
	var out []string
	for i, n := range CategoryNames {
		if c&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// KeySpec is a rule that finds keys among a command's arguments, as in Redis: where to begin, and how to continue.
type KeySpec struct {
	// Begin: at argument Index, or, if Keyword is set, after the first Keyword, searched from argument StartFrom on
	// (from the end backward if negative). Index 0 without Keyword means that the place is unknown.
	Index     int
	Keyword   string
	StartFrom int
	folded    string // Keyword in lower case
	// Find, by range: up to LastKey (relative to the beginning; negative counts from the last argument), every Step
	// arguments, Limit > 1 takes only the first 1/Limit of them.
	LastKey, Step, Limit int
	// Find, by number: ByNumber says that argument NumIndex (relative to the beginning) holds the number of keys,
	// the first of which is FirstKey arguments after the beginning.
	ByNumber           bool
	NumIndex, FirstKey int
	// Flags in lower case, as COMMAND INFO shows them.
	Flags []string
	// Notes is Redis's text for readers of the spec.
	Notes string

	// Find returns the index of a key whose place is unknown to the other fields, 0 if there is no key; nil if there
	// is no way to find it.
	Find func(args [][]byte) int
}

// Keys parses key specs in the notation "i1+r-1/2/0[RW,ACCESS]": begin at index 1 (or kw:WORD@from), then a range
// last/step/limit (or n, numidx/first/step), then flags; several are separated by spaces, ? stands for unknown. An
// invalid spec is a mistake in the table and panics at start.
func Keys(notation string) []KeySpec {
	var specs []KeySpec
	for _, word := range strings.Fields(notation) {
		spec, err := parseKeySpec(word)
		if err != nil {
			panic(fmt.Sprintf("command: key spec %q: %v", word, err))
		}
		specs = append(specs, spec)
	}
	return specs
}

func parseKeySpec(word string) (spec KeySpec, err error) {
	body, flags, ok := strings.Cut(strings.TrimSuffix(word, "]"), "[")
	if !ok {
		return spec, fmt.Errorf("no flags")
	}
	for _, f := range strings.Split(flags, ",") {
		switch f {
		case "RO", "RW", "OW", "RM": // these four are shown in capitals
		default:
			f = strings.ToLower(f)
		}
		spec.Flags = append(spec.Flags, f)
	}
	begin, find, ok := strings.Cut(body, "+")
	if !ok {
		return spec, fmt.Errorf("no '+'")
	}
	switch {
	case begin == "?":
		return spec, nil
	case strings.HasPrefix(begin, "kw:"):
		word, from, _ := strings.Cut(begin[3:], "@")
		spec.Keyword, spec.folded = word, strings.ToLower(word)
		spec.StartFrom, err = strconv.Atoi(from)
	default:
		spec.Index, err = strconv.Atoi(strings.TrimPrefix(begin, "i"))
	}
	if err != nil {
		return spec, err
	}
	var n [3]int
	for i, part := range strings.Split(find[1:], "/") {
		if n[i], err = strconv.Atoi(part); err != nil {
			return spec, err
		}
	}
	if find[0] == 'n' {
		spec.ByNumber, spec.NumIndex, spec.FirstKey, spec.Step = true, n[0], n[1], n[2]
	} else {
		spec.LastKey, spec.Step, spec.Limit = n[0], n[1], n[2]
	}
	return spec, nil
}

// Hidden reports whether the keys are not among the arguments.
func (k *KeySpec) Hidden() bool { return k.Index == 0 && k.Keyword == "" && k.Find == nil }

// positions calls fn with the index of each key that the spec finds in args, until fn returns false. It reports false
// if the arguments do not fit the spec.
func (k *KeySpec) positions(args [][]byte, fn func(i int) bool) bool {
	first := k.Index
	switch {
	case k.Keyword != "":
		first = k.keywordAt(args)
	case first == 0:
		if k.Find != nil {
			if first = k.Find(args); first > 0 {
				fn(first)
			}
		}
		return true
	}
	if first <= 0 || first >= len(args) {
		return k.Keyword != "" && first == 0
	}
	if k.ByNumber {
		at := first + k.NumIndex
		if at >= len(args) {
			return false
		}
		n := leadingInt(args[at])
		if n < 1 || n > len(args) {
			return false
		}
		start := first + k.FirstKey
		if start+(n-1)*k.Step >= len(args) {
			return false
		}
		for i := range n {
			if !fn(start + i*k.Step) {
				return true
			}
		}
		return true
	}
	last := first + k.LastKey
	if k.LastKey < 0 {
		last = len(args) + k.LastKey
		if k.Limit > 1 {
			last = first + (last-first+1)/k.Limit - 1
		}
	}
	if last >= len(args) {
		return false
	}
	for i := first; i <= last; i += k.Step {
		if !fn(i) {
			return true
		}
	}
	return true
}

// keywordAt returns the index after the keyword, 0 if there is no keyword.
func (k *KeySpec) keywordAt(args [][]byte) int {
	if k.StartFrom > 0 {
		for i := k.StartFrom; i < len(args)-1; i++ {
			if EqualFold(args[i], k.folded) {
				return i + 1
			}
		}
		return 0
	}
	for i := len(args) + k.StartFrom; i > 0; i-- {
		if i < len(args)-1 && EqualFold(args[i], k.folded) {
			return i + 1
		}
	}
	return 0
}

// leadingInt returns the number at the beginning of an argument, after white space, as Redis counts keys: 1 for
// "1x", 0 without a number. A number too large for an int becomes the largest int.
func leadingInt(arg []byte) int {
	arg = bytes.TrimLeft(arg, " \t\n\v\f\r")
	negative := len(arg) > 0 && arg[0] == '-'
	if negative || len(arg) > 0 && arg[0] == '+' {
		arg = arg[1:]
	}
	n := 0
	for _, c := range arg {
		if c < '0' || c > '9' {
			break
		}
		if n > (math.MaxInt-9)/10 {
			return math.MaxInt
		}
		n = 10*n + int(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

// SecretArgs returns the indices of the arguments that no log and no monitor may show.
func (cmd *Command) SecretArgs(args [][]byte) (indices []int) {
	if cmd.Secrets != nil {
		cmd.Secrets(args, func(i int) { indices = append(indices, i) })
	}
	return indices
}

// KeyRange returns the places of keys in the old form: first, last (negative counts from the end) and step; zeros if
// the places are not fixed. The range is that of the first spec, extended by specs that follow without a gap.
func (cmd *Command) KeyRange() (first, last, step int) {
	end := func(k *KeySpec) int {
		if k.LastKey < 0 {
			return k.LastKey
		}
		return k.Index + k.LastKey
	}
	for i := range cmd.Keys {
		k := &cmd.Keys[i]
		switch {
		case k.Keyword != "" || k.Index == 0 || k.ByNumber:
		case len(cmd.Keys) == 1:
			return k.Index, end(k), k.Step
		case k.Step != 1:
		case first == 0:
			first, last, step = k.Index, end(k), 1
		case last == k.Index-1:
			last = end(k)
		}
	}
	return first, last, step
}

// AllFrom returns the Secrets of a command whose arguments are secret from an index on.
func AllFrom(index int) func(args [][]byte, fn func(i int)) {
	return func(args [][]byte, fn func(i int)) {
		for i := index; i < len(args); i++ {
			fn(i)
		}
	}
}
