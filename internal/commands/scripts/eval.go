package scripts

import (
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/scripting"
)

func init() { command.Register(scriptCommands) }

// runsScript are the flags of all commands that run a script or a function.
const runsScript = command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.ScriptRunner |
	command.WholeKeyspace

// The commands of scripts. Those of functions are in functions.go.
var scriptCommands = []*command.Command{
	{Name: "eval", Group: "scripting", Since: "2.6.0", Arity: -3,
		Flags: runsScript | command.MayReplicate,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Runs a Lua script", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptInSource, Do: eval},
	{Name: "evalsha", Group: "scripting", Since: "2.6.0", Arity: -3,
		Flags: runsScript | command.MayReplicate,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Runs a cached Lua script, by its SHA1 digest", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptOfDigest, Do: evalsha},
	{Name: "evalsha_ro", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: runsScript | command.ReadOnly,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RO,ACCESS]"),
		Summary:    "Runs a cached Lua script that does not write, by its SHA1 digest",
		Syntax:     "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptOfDigest, Do: evalshaRo},
	{Name: "eval_ro", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: runsScript | command.ReadOnly,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RO,ACCESS]"),
		Summary: "Runs a Lua script that does not write", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptInSource, Do: evalRo},
	{Name: "script", Group: "scripting", Since: "2.6.0", Arity: -2,
		Summary: "Groups the commands about the server's known scripts", Complexity: "That of the sub-command",
		Subs: []*command.Command{
			{Name: "script|debug", Group: "scripting", Since: "3.2.0", Arity: 3, Flags: command.NoScript,
				ACL:        command.CatScripting,
				Summary:    "Turns the Lua debugger on or off: there is none, only NO is accepted",
				Syntax:     "<YES | SYNC | NO>",
				Complexity: "O(1)",
				Stateful:   true, Do: scriptDebug},
			{Name: "script|exists", Group: "scripting", Since: "2.6.0", Arity: -3, Flags: command.NoScript,
				ACL:     command.CatScripting,
				Summary: "Checks which scripts are cached", Syntax: "sha1 [sha1 ...]",
				Complexity: "O(N), where N is the number of digests", Do: scriptExists},
			{Name: "script|flush", Group: "scripting", Since: "2.6.0", Arity: -2, Flags: command.NoScript,
				ACL:     command.CatScripting,
				Summary: "Removes all scripts from the cache", Syntax: "[ASYNC | SYNC]",
				Complexity: "O(N), where N is the number of known scripts", Do: scriptFlush},
			{Name: "script|help", Group: "scripting", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatScripting,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: scriptHelp},
			{Name: "script|kill", Group: "scripting", Since: "2.6.0", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				ACL:     command.CatScripting,
				Summary: "Stops the running script if it has not written", Complexity: "O(1)", Do: scriptKill},
			{Name: "script|load", Group: "scripting", Since: "2.6.0", Arity: 3, Flags: command.NoScript | command.Stale,
				ACL:     command.CatScripting,
				Summary: "Adds a Lua script to the cache", Syntax: "script",
				Complexity: "O(N), where N is the length of the script", Do: scriptLoad},
			{Name: "script|show", Group: "scripting", Since: "8.0.0", Arity: 3, Flags: command.NoScript,
				ACL:     command.CatScripting,
				Summary: "Returns the source of a script in the cache", Syntax: "sha1", Complexity: "O(1)", Do: scriptShow},
		}},
}

// Errors of scripts and of the commands that they call.
const (
	errNoScript     command.Error = "NOSCRIPT No matching script. Please use EVAL."
	errNegativeKeys command.Error = "ERR Number of keys can't be negative"
	errScriptWrites command.Error = "ERR Can not execute a script with write flag using *_ro command."
	errNoCluster    command.Error = "ERR Can not run script on cluster, 'no-cluster' flag is set."
	errScriptStale  command.Error = "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and " +
		"'allow-stale' flag is not set on the script."
	errScriptReadOnly command.Error = "READONLY Can not run script with write flag on readonly replica"

	errScriptMisconfRDB command.Error = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to " +
		"persist to disk. Writable scripts are blocked. Use 'no-writes' flag for read only scripts."
	errScriptMisconfAOF command.Error = "MISCONF Redis is configured to persist data to AOF, but it's currently unable to " +
		"persist to disk. Writable scripts are blocked. Use 'no-writes' flag for read only scripts. AOF error: "
	errDebugMode   command.Error = "ERR Use SCRIPT DEBUG YES/SYNC/NO"
	errNoDebugger  command.Error = "ERR there is no Lua debugger"
	errDebugDigest command.Error = "ERR Please use EVAL instead of EVALSHA for debugging"
	errScriptFlush command.Error = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
)

func eval(c *command.Ctx)      { evalSource(c, false) }
func evalRo(c *command.Ctx)    { evalSource(c, true) }
func evalsha(c *command.Ctx)   { evalDigest(c, false) }
func evalshaRo(c *command.Ctx) { evalDigest(c, true) }

// scriptInSource returns the declarations of the script in the first argument.
func scriptInSource(_ command.Host, args [][]byte) command.Script {
	flags, ok := scripting.DeclaredFlags(args[1])
	return declared(flags, ok)
}

// scriptOfDigest returns the declarations of the script whose digest is the first argument.
func scriptOfDigest(host command.Host, args [][]byte) command.Script {
	script := host.(Host).Scripts().engine.Find(args[1])
	if script == nil {
		return command.Script{}
	}
	return declared(script.Flags, script.Declared)
}

// declared converts flags of a script or function to declarations; ok says whether it has flags.
func declared(flags scripting.Flags, ok bool) command.Script {
	return command.Script{Declared: ok, ReadOnly: flags&scripting.NoWrites != 0, AllowOOM: flags&scripting.AllowOOM != 0}
}

// evalSource runs the script in the first argument, and caches it.
func evalSource(c *command.Ctx, readOnly bool) {
	if clientOf(c).Debugging() {
		refuseDebugging(c)
		return
	}
	keys, args, ok := numberedKeys(c, command.ErrNotInteger)
	if !ok {
		return
	}
	s := scriptsOf(c)
	script, err := s.engine.Load(c.Args[1])
	if err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	s.runScript(c, script, keys, args, readOnly)
}

// evalDigest runs the script whose digest is the first argument.
func evalDigest(c *command.Ctx, readOnly bool) {
	if len(c.Args[1]) != 40 {
		c.Err(errNoScript)
		return
	}
	if clientOf(c).Debugging() {
		c.Err(errDebugDigest)
		return
	}
	keys, args, ok := numberedKeys(c, command.ErrNotInteger)
	if !ok {
		return
	}
	s := scriptsOf(c)
	script := s.engine.Find(c.Args[1])
	if script == nil {
		c.Err(errNoScript)
		return
	}
	s.runScript(c, script, keys, args, readOnly)
}

// numberedKeys splits the arguments after the script or function into keys and others. otherwise is the error for an
// invalid number of keys.
func numberedKeys(c *command.Ctx, otherwise command.Error) (keys, args [][]byte, ok bool) {
	n, ok := resp.ParseInt(c.Args[2])
	switch {
	case !ok:
		c.Err(otherwise)
		return nil, nil, false
	case n > int64(len(c.Args)-3):
		c.Err(command.ErrNumKeysRange)
		return nil, nil, false
	case n < 0:
		c.Err(errNegativeKeys)
		return nil, nil, false
	}
	rest := c.Args[3:]
	return rest[:n], rest[n:], true
}

// runScript runs a script for the client.
func (s *Scripts) runScript(c *command.Ctx, script *scripting.Script, keys, args [][]byte, readOnly bool) {
	if script.Flags&scripting.NoCluster != 0 && c.ClusterMode() {
		c.Err(errNoCluster)
		return
	}
	if script.Flags&scripting.AllowStale == 0 && hostOf(c).IsStale(c) {
		if script.Declared {
			c.Err(errScriptStale)
		} else {
			c.Err(command.ErrMasterDown)
		}
		return
	}
	if readOnly && script.Declared && script.Flags&scripting.NoWrites == 0 {
		c.Err(errScriptWrites)
		return
	}
	if script.Declared {
		if e := refuseWriter(c, script.Flags); e != "" {
			c.Err(e)
			return
		}
	}
	s.run(c, Running{}, Limits{
		ReadOnly:   readOnly || script.Flags&scripting.NoWrites != 0,
		AllowOOM:   script.Flags&scripting.AllowOOM != 0,
		CrossSlots: !script.Declared || script.Flags&scripting.AllowCrossSlotKeys != 0,
	}, func(h scripting.Host) { s.engine.Run(script, h, keys, args, c.W) })
}

// refuseWriter returns the error for a script or function whose flags allow writes, while writes are refused; "" if it may
// run. A script without flags gets the error when it writes.
func refuseWriter(c *command.Ctx, flags scripting.Flags) command.Error {
	if flags&scripting.NoWrites != 0 {
		return ""
	}
	e := hostOf(c).WriteRestriction(c)
	if problem, ok := strings.CutPrefix(string(e), string(command.ErrMisconfAOF)); ok {
		return errScriptMisconfAOF + command.Error(problem)
	}
	switch e {
	case command.ErrReadOnly:
		return errScriptReadOnly
	case command.ErrMisconfRDB:
		return errScriptMisconfRDB
	}
	return e
}

func scriptLoad(c *command.Ctx) {
	script, err := scriptsOf(c).engine.Load(c.Args[2])
	if err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	c.W.BulkString(script.SHA)
}

func scriptExists(c *command.Ctx) {
	c.W.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		if scriptsOf(c).engine.Find(sha) != nil {
			c.W.Int(1)
		} else {
			c.W.Int(0)
		}
	}
}

func scriptShow(c *command.Ctx) {
	script := scriptsOf(c).engine.Find(c.Args[2])
	if script == nil {
		c.Err(errNoScript)
		return
	}
	c.W.BulkString(script.Source)
}

func scriptDebug(c *command.Ctx) {
	switch mode := c.Args[2]; {
	case command.EqualFold(mode, "no"):
		clientOf(c).SetDebugging(false)
		c.W.OK()
	case command.EqualFold(mode, "yes"), command.EqualFold(mode, "sync"):
		// redis-cli ignores this reply and assumes that the script's changes will be rolled back.
		clientOf(c).SetDebugging(true)
		c.Err(errNoDebugger)
	default:
		c.Err(errDebugMode)
	}
}

// refuseDebugging replies to a script to debug as Redis does when it cannot start a debugging session.
func refuseDebugging(c *command.Ctx) {
	if !c.NoBlock { // a transaction allows only one reply
		c.W.Array(1)
		c.W.Simple("<endsession>")
	}
	c.Err(errNoDebugger)
	clientOf(c).End()
}

func scriptFlush(c *command.Ctx) {
	o := c.Options(2)
	if o.Next() && (o.More() || !o.Is("async") && !o.Is("sync")) {
		c.Err(errScriptFlush)
		return
	}
	scriptsOf(c).engine.Flush()
	c.W.OK()
}

func scriptKill(c *command.Ctx) {
	if e := scriptsOf(c).kill(false); e != "" {
		c.Err(e)
		return
	}
	c.W.OK()
}

func scriptHelp(c *command.Ctx) {
	command.HelpReply(c,
		"SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"DEBUG (YES|SYNC|NO)",
		"    Choose whether scripts are debugged. There is no debugger: only NO is accepted.",
		"EXISTS <sha1> [<sha1> ...]",
		"    Tell which of the scripts the server knows.",
		"FLUSH [ASYNC|SYNC]",
		"    Forget all scripts.",
		"KILL",
		"    End the script that is running, unless it has written.",
		"LOAD <script>",
		"    Make a script known without running it.",
		"SHOW <sha1>",
		"    Show the source of a script that the server knows.",
		"HELP",
		"    Print this help.")
}
