package server

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/atomredis/atomredis/acl"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/scripting"
)

func init() { command.Register(scriptingCommands) }

var scriptingCommands = []*command.Command{
	{Name: "eval", Group: "scripting", Since: "2.6.0", Arity: -3,
		Flags: command.NoScript | command.SkipMonitor | command.MayReplicate | command.NoMandatoryKeys | command.Stale | command.WholeKeyspace,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Runs a Lua script", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptInSource, Do: cmdEval},
	{Name: "evalsha", Group: "scripting", Since: "2.6.0", Arity: -3,
		Flags: command.NoScript | command.SkipMonitor | command.MayReplicate | command.NoMandatoryKeys | command.Stale | command.WholeKeyspace,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Runs a cached Lua script, by its SHA1 digest", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptOfDigest, Do: cmdEvalsha},
	{Name: "evalsha_ro", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.ReadOnly | command.WholeKeyspace,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RO,ACCESS]"),
		Summary:    "Runs a cached Lua script that does not write, by its SHA1 digest",
		Syntax:     "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptOfDigest, Do: cmdEvalshaRo},
	{Name: "eval_ro", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.ReadOnly | command.WholeKeyspace,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RO,ACCESS]"),
		Summary: "Runs a Lua script that does not write", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Script: scriptInSource, Do: cmdEvalRo},
	{Name: "script", Group: "scripting", Since: "2.6.0", Arity: -2,
		Summary: "Groups the commands about the server's known scripts", Complexity: "That of the sub-command",
		Subs: []*command.Command{
			{Name: "script|debug", Group: "scripting", Since: "3.2.0", Arity: 3, Flags: command.NoScript,
				ACL:        command.CatScripting,
				Summary:    "Turns the Lua debugger on or off: there is none, only NO is accepted",
				Syntax:     "<YES | SYNC | NO>",
				Complexity: "O(1)",
				Stateful:   true, Do: cmdScriptDebug},
			{Name: "script|exists", Group: "scripting", Since: "2.6.0", Arity: -3, Flags: command.NoScript,
				ACL:     command.CatScripting,
				Summary: "Checks which scripts are cached", Syntax: "sha1 [sha1 ...]",
				Complexity: "O(N), where N is the number of digests", Do: cmdScriptExists},
			{Name: "script|flush", Group: "scripting", Since: "2.6.0", Arity: -2, Flags: command.NoScript,
				ACL:     command.CatScripting,
				Summary: "Removes all scripts from the cache", Syntax: "[ASYNC | SYNC]",
				Complexity: "O(N), where N is the number of known scripts", Do: cmdScriptFlush},
			{Name: "script|help", Group: "scripting", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatScripting,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdScriptHelp},
			{Name: "script|kill", Group: "scripting", Since: "2.6.0", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				ACL:     command.CatScripting,
				Summary: "Stops the running script if it has not written", Complexity: "O(1)", Do: cmdScriptKill},
			{Name: "script|load", Group: "scripting", Since: "2.6.0", Arity: 3, Flags: command.NoScript | command.Stale,
				ACL:     command.CatScripting,
				Summary: "Adds a Lua script to the cache", Syntax: "script",
				Complexity: "O(N), where N is the length of the script", Do: cmdScriptLoad},
		}},
}

// Errors of scripts, and of what they call.
const (
	errNoScript       command.Error = "NOSCRIPT No matching script. Please use EVAL."
	errNegativeKeys   command.Error = "ERR Number of keys can't be negative"
	errScriptWrites   command.Error = "ERR Can not execute a script with write flag using *_ro command."
	errScriptReadOnly command.Error = "READONLY Can not run script with write flag on readonly replica"

	errScriptMisconfRDB command.Error = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Writable scripts are blocked. Use 'no-writes' flag for read only scripts."
	errScriptMisconfAOF command.Error = "MISCONF Redis is configured to persist data to AOF, but it's currently unable to persist to disk. " +
		"Writable scripts are blocked. Use 'no-writes' flag for read only scripts. AOF error: "
	errDebugMode   command.Error = "ERR Use SCRIPT DEBUG YES/SYNC/NO"
	errNoDebugger  command.Error = "ERR there is no Lua debugger"
	errDebugDigest command.Error = "ERR Please use EVAL instead of EVALSHA for debugging"
	errScriptFlush command.Error = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
)

// The version of Redis that scripts see.
const (
	scriptVersion    = "7.4.0"
	scriptVersionNum = 7<<16 | 4<<8
)

// scriptState is what the server has for scripts.
type scriptState struct {
	engine    *scripting.Engine
	functions *scripting.Functions
	run       scriptRun
	mayDebug  atomic.Bool // scripts may call DEBUG
}

// startScripting prepares the server for scripts.
func (srv *Server) startScripting() {
	srv.scripts.engine = scripting.New(srv.scriptOptions())
	srv.scripts.functions = scripting.NewFunctions(srv.scriptOptions())
}

func (srv *Server) scriptOptions() scripting.Options {
	return scripting.Options{Version: scriptVersion, VersionNum: scriptVersionNum, Log: srv.scriptLog,
		Interrupt: &srv.scripts.run.interrupt}
}

// stopScripting gives back what scripts have used.
func (srv *Server) stopScripting() { srv.scripts.engine.Close() }

// scriptLog writes a message of a script to the server's log.
func (srv *Server) scriptLog(level scripting.Level, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	srv.log.Log(context.Background(), levels[level], message, "source", "script")
}

func cmdEval(c *command.Ctx)      { evalSource(c, false) }
func cmdEvalRo(c *command.Ctx)    { evalSource(c, true) }
func cmdEvalsha(c *command.Ctx)   { evalDigest(c, false) }
func cmdEvalshaRo(c *command.Ctx) { evalDigest(c, true) }

// scriptInSource returns what a script that is the first argument declares.
func scriptInSource(_ command.Host, args [][]byte) command.Script {
	flags, ok := scripting.DeclaredFlags(args[1])
	return declared(flags, ok)
}

// scriptOfDigest returns what the script declares that the first argument names.
func scriptOfDigest(host command.Host, args [][]byte) command.Script {
	script := host.(*Server).scripts.engine.Find(args[1])
	if script == nil {
		return command.Script{}
	}
	return declared(script.Flags, script.Declared)
}

// declared returns what scripts and functions with these flags declare; ok is false if they have none.
func declared(flags scripting.Flags, ok bool) command.Script {
	return command.Script{Declared: ok, ReadOnly: flags&scripting.NoWrites != 0, AllowOOM: flags&scripting.AllowOOM != 0}
}

// evalSource runs the script that is the first argument, and keeps it.
func evalSource(c *command.Ctx, readOnly bool) {
	if sessionOf(c).debugging {
		refuseDebugging(c)
		return
	}
	keys, args, ok := numberedKeys(c, command.ErrNotInteger)
	if !ok {
		return
	}
	script, err := serverOf(c).scripts.engine.Load(c.Args[1])
	if err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	eval(c, script, keys, args, readOnly)
}

// evalDigest runs the script that the first argument names.
func evalDigest(c *command.Ctx, readOnly bool) {
	if len(c.Args[1]) != 40 {
		c.Err(errNoScript)
		return
	}
	if sessionOf(c).debugging {
		c.Err(errDebugDigest)
		return
	}
	keys, args, ok := numberedKeys(c, command.ErrNotInteger)
	if !ok {
		return
	}
	script := serverOf(c).scripts.engine.Find(c.Args[1])
	if script == nil {
		c.Err(errNoScript)
		return
	}
	eval(c, script, keys, args, readOnly)
}

// numberedKeys splits the arguments behind the script or function into keys and others. otherwise is the error if
// their number is no number.
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

func eval(c *command.Ctx, script *scripting.Script, keys, args [][]byte, readOnly bool) {
	if script.Flags&scripting.NoCluster != 0 && c.ClusterMode() {
		c.Err(errScriptNoCluster)
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
	h := scriptHost(c, readOnly || script.Flags&scripting.NoWrites != 0)
	h.allowOOM = script.Flags&scripting.AllowOOM != 0
	h.crossSlots = !script.Declared || script.Flags&scripting.AllowCrossSlotKeys != 0
	runScript(c, h, func() { serverOf(c).scripts.engine.Run(script, h, keys, args, c.W) })
}

// refuseWriter returns the error for a script or function that may write by its flags, while nobody may; "" if it may
// run. A script without flags is told when it does write.
func refuseWriter(c *command.Ctx, flags scripting.Flags) command.Error {
	srv := serverOf(c)
	if flags&scripting.NoWrites != 0 || !srv.restricted.Load() || c.Origin.In(command.Accepted) || c.G.Logged() {
		return ""
	}
	e := srv.restriction(c.Cmd, true)
	if problem, ok := strings.CutPrefix(string(e), string(errMisconfAOF)); ok {
		return errScriptMisconfAOF + command.Error(problem)
	}
	switch e {
	case errReadOnly:
		return errScriptReadOnly
	case errMisconfRDB:
		return errScriptMisconfRDB
	}
	return e
}

// scriptHost prepares the session's host of scripts for one that is about to run.
func scriptHost(c *command.Ctx, readOnly bool) *scriptCaller {
	s := sessionOf(c)
	if s.script == nil {
		s.script = new(scriptCaller)
	}
	h := s.script
	h.function, h.args, h.readOnly, h.wrote, h.allowOOM = "", nil, readOnly, false, false
	h.ctx = command.Ctx{
		W: &h.w, G: c.G, Client: s, Host: serverOf(c), NoBlock: true, Origin: c.Origin | command.FromScript,
	}
	return h
}

// runScript calls run, which runs a script or function with host h, so that it is watched. SELECT counts until it ends.
func runScript(c *command.Ctx, h *scriptCaller, run func()) {
	s := sessionOf(c)
	db := s.db
	serverOf(c).beginScript(h)
	defer serverOf(c).endScript(c.G)
	run()
	s.db = db
	if cap(h.w.Buf) > keepBuffer {
		s.script = nil
	}
}

// scriptCaller executes the commands that scripts and functions of a session call.
type scriptCaller struct {
	function string   // the name of the function; empty for a script
	args     [][]byte // of FCALL, for FUNCTION STATS
	began    int64    // when the function began, as Server.ticks gives it
	readOnly bool
	wrote    bool // the script has called a command that may write
	// crossSlots says that in cluster mode its commands may use keys of different slots, though not one command.
	crossSlots bool
	allowOOM   bool // it may do so however much memory is in use
	ctx        command.Ctx
	w          resp.Writer // takes one reply at a time
}

// Call implements scripting.Host.
func (h *scriptCaller) Call(args [][]byte, proto int) []byte {
	c := &h.ctx
	s := sessionOf(c)
	h.w.Buf, h.w.Proto = h.w.Buf[:0], proto
	cmd, _ := s.srv.table.Lookup(args)
	if e := s.admit(command.FromScript, cmd, nil, args); e != "" {
		if cmd != nil {
			s.srv.commandStats.Of(cmd).Rejected.Add(1)
		}
		c.Err(e)
		return h.w.Buf
	}
	c.Cmd, c.Args, c.DB = cmd, args, s.db
	s.runMonitored(c)
	if s.tracking.on {
		s.rememberKeys(cmd, args)
	}
	return h.w.Buf
}

// Check implements scripting.Host.
func (h *scriptCaller) Check(args [][]byte) (allowed, exists bool) {
	cmd, _ := serverOf(&h.ctx).table.Lookup(args)
	if cmd == nil {
		return false, false
	}
	return sessionOf(&h.ctx).check(cmd, args).Reason == acl.Allowed, true
}

// mayWrite reports whether the script may call a command that writes: it must not have been killed, and cannot be
// from then on.
func (h *scriptCaller) mayWrite() bool {
	if !h.wrote {
		h.wrote = serverOf(&h.ctx).scripts.run.mayWrite()
	}
	return h.wrote
}

func cmdScriptLoad(c *command.Ctx) {
	script, err := serverOf(c).scripts.engine.Load(c.Args[2])
	if err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	c.W.BulkString(script.SHA)
}

func cmdScriptExists(c *command.Ctx) {
	c.W.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		if serverOf(c).scripts.engine.Find(sha) != nil {
			c.W.Int(1)
		} else {
			c.W.Int(0)
		}
	}
}

func cmdScriptDebug(c *command.Ctx) {
	switch mode := c.Args[2]; {
	case command.EqualFold(mode, "no"):
		sessionOf(c).debugging = false
		c.W.OK()
	case command.EqualFold(mode, "yes"), command.EqualFold(mode, "sync"):
		// redis-cli does not look at this reply, and takes what the script changes for something that will be rolled back.
		sessionOf(c).debugging = true
		c.Err(errNoDebugger)
	default:
		c.Err(errDebugMode)
	}
}

// refuseDebugging answers a script that is to be debugged as Redis does when it cannot begin.
func refuseDebugging(c *command.Ctx) {
	if !c.NoBlock { // in a transaction there is no room for two replies
		c.W.Array(1)
		c.W.Simple("<endsession>")
	}
	c.Err(errNoDebugger)
	sessionOf(c).closing = true
}

func cmdScriptFlush(c *command.Ctx) {
	o := c.Options(2)
	if o.Next() && (o.More() || !o.Is("async") && !o.Is("sync")) {
		c.Err(errScriptFlush)
		return
	}
	serverOf(c).scripts.engine.Flush()
	c.W.OK()
}

// scriptHelp is the reply of SCRIPT HELP.
var scriptHelp = []string{
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
	"HELP",
	"    Print this help.",
}

func cmdScriptHelp(c *command.Ctx) {
	c.W.Array(len(scriptHelp))
	for _, line := range scriptHelp {
		c.W.Simple(line)
	}
}
