package server

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register([]*command.Command{debugCommand}) }

var debugCommand = &command.Command{Name: "debug", Group: "server", Since: "1.0.0", Arity: -2,
	Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.Protected | command.WholeKeyspace,
	Summary: "Inspects and disturbs the server, for tests",
	Syntax:  "subcommand [arg [arg ...]]", Complexity: "Depends on the argument",
	Allowed: DebugAllowed, CallableNow: debugFromScript, Do: debugServer}

// DEBUG is for test suites: it shows internals of the server, or makes it do something out of turn. It has those of
// Redis's sub-commands that make sense here; those that crash Redis's process are refused.

// debugCommands are the sub-commands with their numbers of arguments.
var debugCommands = map[string]struct {
	min, max int
	do       func(c *command.Ctx, args [][]byte)
}{
	"aof-flush-sleep":              {1, 1, debugFlushSleep},
	"change-repl-id":               {0, 0, debugChangeReplID},
	"client-eviction":              {0, 0, debugClientEviction},
	"config-rewrite-force-all":     {0, 0, debugConfigRewrite},
	"digest":                       {0, 0, debugDigest},
	"digest-value":                 {0, maxDebugArgs, debugDigestValue},
	"error":                        {1, 1, debugError},
	"help":                         {0, 0, debugHelp},
	"htstats":                      {1, 1, debugHTStats},
	"htstats-key":                  {1, 1, debugHTStatsKey},
	"listpack":                     {1, 1, debugListpack},
	"loadaof":                      {0, 0, debugLoadAOF},
	"log":                          {1, 1, debugLog},
	"object":                       {1, 1, debugObject},
	"pause-cron":                   {1, 1, debugPauseCron},
	"populate":                     {1, 3, debugPopulate},
	"protocol":                     {1, 1, debugProtocol},
	"quicklist":                    {1, 2, debugQuicklist},
	"quicklist-packed-threshold":   {1, 1, debugPackedThreshold},
	"reload":                       {0, maxDebugArgs, debugReload},
	"reply-copy-avoidance":         {1, 1, debugCopyAvoidance},
	"replybuffer":                  {2, 2, debugReplyBuffer},
	"sdslen":                       {1, 1, debugSDSLen},
	"set-active-expire":            {1, 1, debugActiveExpire},
	"set-allow-access-expired":     {1, 1, debugAccessExpired},
	"set-disable-deny-scripts":     {1, 1, debugInScripts},
	"set-skip-checksum-validation": {1, 1, debugSkipChecksums},
	"sleep":                        {1, 1, debugSleep},
	"structsize":                   {0, 0, debugStructSize},

	"assert":            {0, maxDebugArgs, debugRefused},
	"crash-and-recover": {0, maxDebugArgs, debugRefused},
	"leak":              {0, maxDebugArgs, debugRefused},
	"oom":               {0, maxDebugArgs, debugRefused},
	"panic":             {0, maxDebugArgs, debugRefused},
	"restart":           {0, maxDebugArgs, debugRefused},
	"segfault":          {0, maxDebugArgs, debugRefused},
}

const maxDebugArgs = 1 << 30

const (
	errDebugRefused  command.Error = "ERR DEBUG does not harm this server: use a signal to end it"
	errReloadOptions command.Error = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."
	errReloadNested  command.Error = "ERR DEBUG RELOAD is not possible in a transaction"
	errPackedSize    command.Error = "ERR argument must be a memory value bigger than 1 and smaller than 4gb"
	errDebugDB       command.Error = "ERR Out of range database"
	errNoHashTable   command.Error = "ERR The value stored at the specified key is not represented using an hash table"
	errNoListpack    command.Error = "ERR Not a listpack encoded object."
	errNoQuicklist   command.Error = "ERR Not a quicklist encoded object."
	errProtocolType  command.Error = "ERR Wrong protocol type name. Please use one of the following: " +
		"string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
	errNoString       command.Error = "ERR Not an sds encoded string."
	errNoClientLimit  command.Error = "ERR maxmemory-clients is disabled."
	errPushNeedsRESP3 command.Error = "ERR RESP2 is not supported by this command"
)

func debugServer(c *command.Ctx) {
	sub, ok := debugCommands[command.Lower(c.Args[1])]
	args := c.Args[2:]
	if !ok || len(args) < sub.min || len(args) > sub.max {
		command.WrongUse(c, "DEBUG")
		return
	}
	sub.do(c, args)
}

// DebugAllowed reports whether the client may use DEBUG.
func DebugAllowed(host command.Host, client command.Client) bool {
	return client.(Client).Has(host.(Host).Config().Get().Commands.EnableDebug)
}

func debugRefused(c *command.Ctx, _ [][]byte) { c.Err(errDebugRefused) }

// maxDebugSleep limits the pause, in seconds, so that it fits into a Duration.
const maxDebugSleep = 1e9

// debugSleep blocks all commands that use keys.
func debugSleep(c *command.Ctx, args [][]byte) {
	if seconds, ok := resp.ParseFloat(args[0]); ok && seconds > 0 {
		time.Sleep(time.Duration(min(seconds, maxDebugSleep) * float64(time.Second)))
	}
	c.W.OK()
}

// debugNumber reads a number as C's atoi does: an invalid number is 0.
func debugNumber(arg []byte) int64 {
	n, _ := resp.ParseInt(arg)
	return n
}

func debugActiveExpire(c *command.Ctx, args [][]byte) {
	hostOf(c).Keyspace().SetActiveExpiry(debugNumber(args[0]) != 0)
	c.W.OK()
}

// debugAccessExpired sets whether commands can use expired keys.
func debugAccessExpired(c *command.Ctx, args [][]byte) {
	hostOf(c).Keyspace().SetExpiredSeen(debugNumber(args[0]) != 0)
	c.W.OK()
}

// debugCopyAvoidance does nothing: clients cannot tell whether a reply was copied or lent.
func debugCopyAvoidance(c *command.Ctx, _ [][]byte) { c.W.OK() }

// debugInScripts sets whether scripts may call DEBUG; no other setting does.
func debugInScripts(c *command.Ctx, args [][]byte) {
	hostOf(c).LetScriptsDebug(debugNumber(args[0]) != 0)
	c.W.OK()
}

// debugFromScript reports whether scripts may call DEBUG.
func debugFromScript(host command.Host, client command.Client) bool {
	return host.(Host).ScriptsMayDebug() && DebugAllowed(host, client)
}

// debugPauseCron does nothing: commands leave no work to a periodic task.
func debugPauseCron(c *command.Ctx, _ [][]byte) { c.W.OK() }

// debugPackedThreshold does nothing: elements of any size are in the same kind of node.
func debugPackedThreshold(c *command.Ctx, args [][]byte) {
	if n, ok := config.ParseMemory(string(args[0])); !ok || n >= 4<<30 {
		c.Err(errPackedSize)
		return
	}
	c.W.OK()
}

// debugFlushSleep makes the journal wait before it writes; the argument is in microseconds.
func debugFlushSleep(c *command.Ctx, args [][]byte) {
	hostOf(c).DelayJournal(time.Duration(min(max(debugNumber(args[0]), 0), maxFlushSleep)) * time.Microsecond)
	c.W.OK()
}

// maxFlushSleep limits the pause, in µs, so that a mistake does not stop the journal for good.
const maxFlushSleep = int64(time.Minute / time.Microsecond)

// debugSkipChecksums accepts payloads and files with a wrong checksum, so that tests can damage their content.
func debugSkipChecksums(c *command.Ctx, args [][]byte) {
	hostOf(c).SkipChecksums(debugNumber(args[0]) != 0)
	c.W.OK()
}

// DefaultReplyBufferPeakAge is the default time in ms for which a client's largest reply counts.
const DefaultReplyBufferPeakAge = int64(5 * time.Second / time.Millisecond)

// debugReplyBuffer sets for how long a client's largest reply counts for the size of its buffer, and whether that
// size may change.
func debugReplyBuffer(c *command.Ctx, args [][]byte) {
	host := hostOf(c)
	switch {
	case command.EqualFold(args[0], "peak-reset-time") && command.EqualFold(args[1], "never"):
		host.SetReplyBufferPeakAge(-1)
	case command.EqualFold(args[0], "peak-reset-time") && command.EqualFold(args[1], "reset"):
		host.SetReplyBufferPeakAge(DefaultReplyBufferPeakAge)
	case command.EqualFold(args[0], "peak-reset-time"):
		age, ok := c.Int(args[1])
		if !ok {
			return
		}
		host.SetReplyBufferPeakAge(max(age, 0))
	case command.EqualFold(args[0], "resizing"):
		host.FixReplyBuffers(debugNumber(args[1]) == 0)
	default:
		command.WrongUse(c, "DEBUG")
		return
	}
	c.W.OK()
}

// debugClientEviction shows how much memory clients take, by powers of two.
func debugClientEviction(c *command.Ctx, _ [][]byte) {
	if !hostOf(c).EvictsClients() {
		c.Err(errNoClientLimit)
		return
	}
	const first, last = 15, 32 // the smallest bucket ends below 2^15 bytes, the largest begins at 2^32
	var sums, counts [last - first + 2]int64
	for _, size := range hostOf(c).EvictableClients() {
		i := min(max(bits.Len64(uint64(size))-first, 0), len(sums)-1)
		sums[i] += size
		counts[i]++
	}
	var b strings.Builder
	for i := range sums {
		from, to := int64(0), int64(1)<<(first+i)-1
		if i > 0 {
			from = 1 << (first + i - 1)
		}
		if i == len(sums)-1 {
			fmt.Fprintf(&b, "bucket %10d+            : ", from)
		} else {
			fmt.Fprintf(&b, "bucket %10d - %10d: ", from, to)
		}
		fmt.Fprintf(&b, "tot-mem: %10d, clients: %d\n", sums[i], counts[i])
	}
	c.W.Verbatim("txt", b.String())
}

// debugSDSLen shows the lengths of a key and its string, and their memory.
func debugSDSLen(c *command.Ctx, args [][]byte) {
	e := debugEntry(c, args[0])
	switch {
	case e == nil:
	case e.Type() != engine.String || command.EncodingOf(e) == "int":
		c.Err(errNoString)
	default:
		v := e.Bytes()
		spare, all := cap(v)-len(v), int64(e.MemoryUsage())
		c.W.Simple(fmt.Sprintf("key_sds_len:%d, key_sds_avail:0, key_zmalloc: %d, val_sds_len:%d, val_sds_avail:%d, val_zmalloc: %d",
			len(e.Key()), all-int64(cap(v)), len(v), spare, cap(v)))
	}
}

// debugStructSize shows the sizes of the structs for each key and each client.
func debugStructSize(c *command.Ctx, _ [][]byte) {
	c.W.Simple(fmt.Sprintf("bits:%d entry:%d session:%d", strconv.IntSize, unsafe.Sizeof(engine.Entry{}),
		hostOf(c).SessionSize()))
}

func debugLog(c *command.Ctx, args [][]byte) {
	hostOf(c).Log().Warn("DEBUG LOG: " + string(args[0]))
	c.W.OK()
}

func debugError(c *command.Ctx, args [][]byte) { c.W.Error(command.OneLine(string(args[0]))) }

func debugChangeReplID(c *command.Ctx, _ [][]byte) {
	hostOf(c).ChangeReplicationID()
	c.W.OK()
}

func debugConfigRewrite(c *command.Ctx, _ [][]byte) { rewriteConfig(c, true) }

// debugEntry returns the entry of a key, without counting as a use of it; if there is none, it writes an error.
func debugEntry(c *command.Ctx, key []byte) *engine.Entry {
	e := c.G.Peek(c.DB, key)
	if e == nil {
		c.Err(command.ErrNoKey)
	}
	return e
}

func debugObject(c *command.Ctx, args [][]byte) {
	e := debugEntry(c, args[0])
	if e == nil {
		return
	}
	encoding, extra := command.EncodingOf(e), ""
	if e.Type() == engine.List {
		l := e.List()
		nodes := l.Nodes()
		compressed := 1 // Redis's default; nothing is compressed here
		if hostOf(c).Directive("list-compress-depth") == "0" {
			compressed = 0
		}
		extra = fmt.Sprintf(" ql_nodes:%d ql_avg_node:%.2f ql_listpack_max:%d ql_compressed:%d ql_uncompressed_size:%d",
			nodes, float64(l.Len())/float64(max(nodes, 1)), hostOf(c).ListLimit(), compressed, l.MemoryUsage())
	}
	settings := hostOf(c).Config().Get()
	saved := rdb.SavedLen(e, settings.CompressesRDB(), settings.Types.List)
	c.W.Simple(fmt.Sprintf("Value at:%p refcount:1 encoding:%s serializedlength:%d lru:%d lru_seconds_idle:%d%s",
		e, encoding, saved, e.Access()&(1<<24-1), max(c.Now()/1000-e.Access(), 0), extra))
}

func debugListpack(c *command.Ctx, args [][]byte) {
	e := debugEntry(c, args[0])
	switch {
	case e == nil:
	case command.EncodingOf(e) != "listpack":
		c.Err(errNoListpack)
	default:
		hostOf(c).Log().Info("DEBUG LISTPACK", "key", string(args[0]), "bytes", e.StoredLen())
		c.W.Simple("Listpack structure printed on stdout")
	}
}

func debugQuicklist(c *command.Ctx, args [][]byte) {
	e := debugEntry(c, args[0])
	switch {
	case e == nil:
	case e.Type() != engine.List:
		c.Err(errNoQuicklist)
	default:
		hostOf(c).Log().Info("DEBUG QUICKLIST", "key", string(args[0]), "elements", e.List().Len(), "nodes", e.List().Nodes())
		c.W.Simple("Quicklist structure printed on stdout")
	}
}

// tableStats describes a hash table with so many elements.
func tableStats(elements int) string {
	if elements == 0 {
		return "No stats available for empty dictionaries\n"
	}
	return fmt.Sprintf(" number of elements: %d\n", elements)
}

func debugHTStats(c *command.Ctx, args [][]byte) {
	db, ok := c.Int(args[0])
	if !ok {
		return
	}
	if db < 0 || db >= int64(hostOf(c).Keyspace().Databases()) {
		c.Err(errDebugDB)
		return
	}
	s := c.G.DBStats(int(db))
	c.W.Verbatim("txt", "[Dictionary HT]\n"+tableStats(s.Keys)+"[Expires HT]\n"+tableStats(s.Expires))
}

func debugHTStatsKey(c *command.Ctx, args [][]byte) {
	e := debugEntry(c, args[0])
	if e == nil {
		return
	}
	elements := -1
	switch command.EncodingOf(e) {
	case "hashtable":
		if e.Type() == engine.Hash {
			elements = e.Hash().Len()
		} else {
			elements = e.Set().Len()
		}
	case "skiplist":
		elements = e.ZSet().Len()
	}
	if elements < 0 {
		c.Err(errNoHashTable)
		return
	}
	c.W.Verbatim("txt", tableStats(elements))
}

// debugPopulate creates keys for tests.
func debugPopulate(c *command.Ctx, args [][]byte) {
	n, ok := c.IntIn(args[0], 0, math.MaxInt64, command.ErrNotPositive)
	if !ok {
		return
	}
	prefix, size := "key", int64(0)
	if len(args) > 1 {
		prefix = string(args[1])
	}
	if len(args) > 2 {
		if size, ok = c.IntIn(args[2], 0, math.MaxInt64, command.ErrNotPositive); !ok ||
			!c.LengthAllowed(0, command.AsInt(size)) {
			return
		}
	}
	for i := range n {
		key := []byte(prefix + ":" + strconv.FormatInt(i, 10))
		if c.G.Write(c.DB, key) != nil {
			continue
		}
		value := []byte("value:" + strconv.FormatInt(i, 10))
		if size > 0 {
			full := make([]byte, size)
			copy(full, value)
			value = full
		}
		c.G.Changed(c.G.CreateString(c.DB, key, value), engine.EventNone, "")
		c.Journal([]byte("SET"), key, value)
	}
	c.W.OK()
}

func debugProtocol(c *command.Ctx, args [][]byte) {
	numbers := func() {
		for i := range 3 {
			c.W.Int(int64(i))
		}
	}
	switch command.Lower(args[0]) {
	case "string":
		c.W.BulkString("Hello World")
	case "integer":
		c.W.Int(12345)
	case "double":
		c.W.Double(3.141)
	case "bignum":
		c.W.BigNumber("1234567999999999999999999999999999999")
	case "null":
		c.W.Null()
	case "array":
		c.W.Array(3)
		numbers()
	case "set":
		c.W.Set(3)
		numbers()
	case "map":
		c.W.Map(3)
		for i := range 3 {
			c.W.Int(int64(i))
			c.W.Bool(i == 1)
		}
	case "attrib":
		if c.W.Attribute(1) {
			c.W.BulkString("key-popularity")
			c.W.Array(2)
			c.W.BulkString("key:123")
			c.W.Int(90)
		}
		c.W.BulkString("Some real reply following the attribute")
	case "push":
		if c.W.Proto < 3 {
			c.Err(errPushNeedsRESP3)
			return
		}
		c.W.Push(2)
		c.W.BulkString("server-cpu-usage")
		c.W.Int(42)
		c.W.BulkString("Some real reply following the push reply")
	case "true":
		c.W.Bool(true)
	case "false":
		c.W.Bool(false)
	case "verbatim":
		c.W.Verbatim("txt", "This is a verbatim\nstring")
	default:
		c.Err(errProtocolType)
	}
}

// debugReload reloads only existing keys, so MERGE and NOFLUSH change nothing.
func debugReload(c *command.Ctx, args [][]byte) {
	save := true
	for _, a := range args {
		switch command.Lower(a) {
		case "merge", "noflush":
		case "nosave":
			save = false
		default:
			c.Err(errReloadOptions)
			return
		}
	}
	reload(c, save)
}

func debugLoadAOF(c *command.Ctx, _ [][]byte) { reload(c, true) }

// reload reads all values from the store. With save it makes a checkpoint first. Values that have changed since the
// latest checkpoint stay, because the journal has them. A server without storage encodes and decodes its values in
// memory.
func reload(c *command.Ctx, save bool) {
	host := hostOf(c)
	if !save || !host.Stores() {
		replyReloaded(c, c.W, c.G.Reload())
		return
	}
	if c.NoBlock {
		c.Err(errReloadNested)
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		err := host.FinishCheckpoint()
		if err == nil {
			var g engine.Guard
			g.Lock(host.Keyspace(), engine.AllShards, host.Keyspace().Now())
			err = g.Reload()
			g.Unlock()
		}
		finish(func(w *resp.Writer) { replyReloaded(c, w, err) })
	}()
}

func replyReloaded(_ *command.Ctx, w *resp.Writer, err error) {
	if err != nil {
		w.Error("ERR " + command.OneLine(err.Error()))
	} else {
		w.OK()
	}
}

func debugHelp(c *command.Ctx, _ [][]byte) {
	command.HelpReply(c, strings.Split(strings.TrimSpace(`
DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
AOF-FLUSH-SLEEP <microseconds>
    Wait so long before each write of the journal; 0 is as usual.
CHANGE-REPL-ID
    Give the history of the data a new name.
CLIENT-EVICTION
    Show how much memory clients take that maxmemory-clients may disconnect.
CONFIG-REWRITE-FORCE-ALL
    Write all directives into the configuration file, those with their default too.
DIGEST
    Return a hash of all keys and values.
DIGEST-VALUE <key> [<key> ...]
    Return a hash of each of the values.
ERROR <string>
    Reply with this error.
HTSTATS <dbid>
    Describe the table of keys of a database.
HTSTATS-KEY <key>
    Describe the table that the value is.
LISTPACK <key>
    Write what is known of a small value to the log.
LOADAOF
    Make a checkpoint and read all values back.
LOG <message>
    Write a message to the log.
OBJECT <key>
    Show how a value is kept.
POPULATE <count> [<prefix>] [<size>]
    Create keys prefix:0 and so on (default prefix: key), unless they exist.
PROTOCOL <type>
    Reply with an example: string, integer, double, bignum, null, array, set, map,
    attrib, push, verbatim, true, false.
QUICKLIST <key> [<0|1>]
    Write what is known of a list to the log.
RELOAD [NOSAVE] [MERGE] [NOFLUSH]
    Make a checkpoint, unless NOSAVE is there, and read all values back.
REPLYBUFFER PEAK-RESET-TIME <NEVER|RESET|milliseconds>
    For how long the largest reply of a client counts for the size of its buffer.
REPLYBUFFER RESIZING <0|1>
    0 leaves these buffers as they are; 1 is as usual.
SDSLEN <key>
    Tell how long a key and its string are, and what memory they have.
SET-ACTIVE-EXPIRE <0|1>
    0 keeps keys that have expired until somebody looks at them; 1 is as usual.
SET-DISABLE-DENY-SCRIPTS <0|1>
    1 lets scripts call DEBUG; 0 is as usual.
SET-SKIP-CHECKSUM-VALIDATION <0|1>
    1 accepts payloads of RESTORE and RDB files with a wrong checksum; 0 is as usual.
SLEEP <seconds>
    Hold up all commands that use keys. Decimals are allowed.
STRUCTSIZE
    Tell how large some records are.
HELP
    Print this help.`), "\n")...)
}

func debugDigest(c *command.Ctx, _ [][]byte) {
	var all command.Digest
	for db := range hostOf(c).Keyspace().Databases() {
		if c.G.Len(db) == 0 {
			continue
		}
		all.MixNumber(uint32(db))
		c.G.Each(db, func(e *engine.Entry) bool {
			var one command.Digest
			one.Mix([]byte(e.Key()))
			one.Value(e)
			all.Xor(one[:])
			return true
		})
	}
	c.W.Simple(all.String())
}

func debugDigestValue(c *command.Ctx, args [][]byte) {
	c.W.Array(len(args))
	for _, key := range args {
		var d command.Digest
		if e := c.G.Peek(c.DB, key); e != nil {
			d.Value(e)
		}
		c.W.Simple(d.String())
	}
}
