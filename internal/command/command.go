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
	// Capital says that errors name the command in capitals, as Redis does where a module has registered it so.
	Capital bool
	// Arity counts the arguments including the name (for sub-commands: both names); negative means "at least".
	Arity int
	// Flags say when the command may run and what it does.
	Flags Flag
	// ACL lists the categories that do not follow from Flags.
	ACL Category
	// Keys tells where the keys are among the arguments.
	Keys []KeySpec
	// DerivedKeys calls fn with each key that the command uses beside those that Keys finds, because it follows from the
	// arguments without being one of them; nil if there are none. fn does not keep the key.
	DerivedKeys func(args [][]byte, fn func(key []byte))
	// KeyIndices returns the indices of the keys where Keys cannot say exactly which they are; nil if they do. The
	// slots of a cluster follow from it, and if one of Keys is INCOMPLETE everything else does too.
	KeyIndices func(args [][]byte) []int
	// KeyUse returns the flags of a key that Keys gives VARIABLE_FLAGS; nil if they are the others that Keys gives.
	KeyUse func(args [][]byte) []string
	// Channels returns the channels that the arguments name, or the patterns of channels; nil if the command has none.
	Channels func(args [][]byte) (names [][]byte, patterns bool)
	// Databases returns the indices of the arguments that name databases, some of which may not be there; nil if there are
	// none. Commands with keys use that of their client too.
	Databases func(args [][]byte) []int
	// AllDatabases says that the command uses all databases.
	AllDatabases bool
	// Selects says that the command chooses the database of its client, as SELECT does.
	Selects bool
	// Secrets calls fn with the index of each argument that no log and no monitor may show; nil if there are none.
	Secrets func(args [][]byte, fn func(i int))
	// Script returns what the script or function that the arguments name declares; nil if the command runs none.
	Script func(host Host, args [][]byte) Script
	// Element is the index of the argument that names a field or member of the collection at the first key, 0 if there
	// is none. It only says what memory to fetch ahead.
	Element int
	// Summary says in a few words what the command does.
	Summary string
	// Syntax is the grammar of the arguments as users read it; COMMAND DOCS derives its argument tree from it.
	Syntax string
	// Do carries the command out: it reads c.Args and writes exactly one reply.
	Do func(c *Ctx)
	// Subs are the sub-commands, if the command is only a container of them.
	Subs []*Command

	// Immediate commands are executed, not queued, between MULTI and EXEC.
	Immediate bool
	// RunsQueue says that the command executes those that a transaction has queued.
	RunsQueue bool
	// Repeated says that the journal and a master's stream have the command although it writes nothing.
	Repeated bool
	// WhileSubscribed commands may be sent by a RESP2 client that has subscriptions.
	WhileSubscribed bool
	// Stateful says that the command changes what later commands of the same connection do, or turns it into something
	// else.
	Stateful bool
	// KeepsCaching says, of a container, that CLIENT CACHING still holds for the next command behind its sub-commands.
	KeepsCaching bool
	// TellsOfFailure says that the command fails, as commands that write do, while changes cannot be made durable: it
	// asks whether the server is well.
	TellsOfFailure bool
	// NoData says that the reply tells nothing of the data: a client that has waited for it gets it although the server
	// has lost its lead, or its journal, meanwhile.
	NoData bool
	// InSteps says that the reply need not be of one instant: an offloaded call works in steps, each under a guard of
	// its own. See Ctx.ScanSteps.
	InSteps bool
	// Custom says that the program that has the server in it has added the command.
	Custom bool
	// AtLeader says that a client whose commands another server forwards means that one by the command, although it uses no
	// data.
	AtLeader bool
	// CallableNow returns whether scripts may call the command now although it is NoScript; nil if they never may.
	CallableNow func(host Host, client Client) bool
	// Allowed reports whether the client may use a command that is Protected.
	Allowed func(host Host, client Client) bool

	// The table fills in what follows.

	// Parent is the container of a sub-command.
	Parent *Command
	// Index is its place in the server's statistics.
	Index int
	// Lock says which shards a guard for this command takes.
	Lock LockSet
	// Incomplete says that Keys miss keys of some calls, and that KeyIndices tells which they are.
	Incomplete bool
	// Slow says that the time that it takes depends on more than a few lookups.
	Slow bool
}

// Script is what a script or function says of itself.
type Script struct {
	// Declared says that it says anything; if not, nobody knows what it does before it does it.
	Declared bool
	// ReadOnly says that it writes nothing, which it is held to.
	ReadOnly bool
	// AllowOOM says that it may run however much memory is in use.
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

	// WholeKeyspace is not shown to clients: the command needs a guard over all shards.
	WholeKeyspace
	// AllKeys is not shown to clients: the command has to know all keys of a database, and cannot run while they are
	// loaded.
	AllKeys
	// OwnGuard is not shown to clients: the command takes its guards itself.
	OwnGuard
	// FollowsKeys is not shown to clients: values lead the command to keys that are not among its arguments, for which
	// it asks with Ctx.Holds.
	FollowsKeys
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
)

// CategoryNames are the names of the categories without the leading '@', in bit order.
var CategoryNames = [...]string{"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
	"hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection",
	"transaction",
	"scripting", "bloom", "cuckoo", "cms", "topk", "tdigest", "json", "timeseries", "array", "search"}

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

// KeySpec is one rule that finds keys among a command's arguments, with Redis's meaning: where to begin, and how to
// go on from there.
type KeySpec struct {
	// Begin: at argument Index, or, if Keyword is set, behind the first Keyword, searched from argument StartFrom on
	// (from the end backward if negative). Index 0 without Keyword means that the place cannot be told.
	Index     int
	Keyword   string
	StartFrom int
	// Find, by range: up to LastKey (relative to the beginning; negative counts from the last argument), every Step
	// arguments, Limit > 1 takes only the first 1/Limit of them.
	LastKey, Step, Limit int
	// Find, by number: ByNumber says that argument NumIndex (relative to the beginning) holds the number of keys, the
	// first of which is FirstKey arguments behind the beginning.
	ByNumber           bool
	NumIndex, FirstKey int
	// Flags in lower case, as COMMAND INFO shows them.
	Flags []string
	// Notes say for people what the rest does not.
	Notes string

	// Find returns the index of the key, 0 if there is none, where the rest says that the place cannot be told; nil if
	// nobody knows.
	Find func(args [][]byte) int
}

// Keys parses key specs in the notation "i1+r-1/2/0[RW,ACCESS]": begin at index 1 (or kw:WORD@from), then a range
// last/step/limit (or n, numidx/first/step), then flags; several are separated by spaces, ? stands for unknown. A
// spec that cannot be read is a mistake in the table and panics at start.
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
		spec.Keyword = word
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

// keywordAt returns the index behind the keyword, 0 if it is not there.
func (k *KeySpec) keywordAt(args [][]byte) int {
	if k.StartFrom > 0 {
		for i := k.StartFrom; i < len(args)-1; i++ {
			if strings.EqualFold(string(args[i]), k.Keyword) {
				return i + 1
			}
		}
		return 0
	}
	for i := len(args) + k.StartFrom; i > 0; i-- {
		if i < len(args)-1 && strings.EqualFold(string(args[i]), k.Keyword) {
			return i + 1
		}
	}
	return 0
}

// leadingInt returns the number that an argument begins with, behind white space, as Redis counts keys: 1 for "1x", 0
// if there is none. One that no int holds is the largest.
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
// the keys are not at fixed places. It is the range of the first spec, extended by specs that follow without a gap.
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
