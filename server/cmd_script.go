package server

import (
	"context"
	"log/slog"

	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/scripting"
)

var scriptingCommands = []*Command{
	{Name: "eval", Group: "scripting", Since: "2.6.0", Arity: -3, Flags: NoScript | SkipMonitor | MayReplicate | NoMandatoryKeys | Stale | WholeKeyspace, ACL: CatScripting, Keys: keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Runs a Lua script", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Do: cmdEval},
	{Name: "evalsha", Group: "scripting", Since: "2.6.0", Arity: -3, Flags: NoScript | SkipMonitor | MayReplicate | NoMandatoryKeys | Stale | WholeKeyspace, ACL: CatScripting, Keys: keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Runs a Lua script that the server knows, named by its SHA1 digest", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Do: cmdEvalsha},
	{Name: "evalsha_ro", Group: "scripting", Since: "7.0.0", Arity: -3, Flags: NoScript | SkipMonitor | NoMandatoryKeys | Stale | ReadOnly | WholeKeyspace, ACL: CatScripting, Keys: keys("i2+n0/1/1[RO,ACCESS]"),
		Summary: "Runs a known Lua script that may only read, named by its SHA1 digest", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Do: cmdEvalshaRo},
	{Name: "eval_ro", Group: "scripting", Since: "7.0.0", Arity: -3, Flags: NoScript | SkipMonitor | NoMandatoryKeys | Stale | ReadOnly | WholeKeyspace, ACL: CatScripting, Keys: keys("i2+n0/1/1[RO,ACCESS]"),
		Summary: "Runs a Lua script that may only read", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the script", Do: cmdEvalRo},
	{Name: "script", Group: "scripting", Since: "2.6.0", Arity: -2,
		Summary: "Groups the commands about the server's known scripts", Complexity: "That of the sub-command",
		Subs: []*Command{
			{Name: "script|exists", Group: "scripting", Since: "2.6.0", Arity: -3, Flags: NoScript, ACL: CatScripting,
				Summary: "Tells which scripts the server knows", Syntax: "sha1 [sha1 ...]",
				Complexity: "O(N), where N is the number of digests", Do: cmdScriptExists},
			{Name: "script|flush", Group: "scripting", Since: "2.6.0", Arity: -2, Flags: NoScript, ACL: CatScripting,
				Summary: "Forgets all scripts", Syntax: "[ASYNC | SYNC]",
				Complexity: "O(N), where N is the number of known scripts", Do: cmdScriptFlush},
			{Name: "script|help", Group: "scripting", Since: "5.0.0", Arity: 2, Flags: Loading | Stale, ACL: CatScripting,
				Summary: "Lists the sub-commands", Complexity: "O(1)", Do: cmdScriptHelp},
			{Name: "script|kill", Group: "scripting", Since: "2.6.0", Arity: 2, Flags: NoScript | AllowBusy, ACL: CatScripting,
				Summary: "Ends the script that is running, unless it has written", Complexity: "O(1)", Do: cmdScriptKill},
			{Name: "script|load", Group: "scripting", Since: "2.6.0", Arity: 3, Flags: NoScript | Stale, ACL: CatScripting,
				Summary: "Makes a Lua script known to the server without running it", Syntax: "script",
				Complexity: "O(N), where N is the length of the script", Do: cmdScriptLoad},
		}},
}

// Errors of scripts, and of what they call.
const (
	errNoScript        Error = "NOSCRIPT No matching script. Please use EVAL."
	errNegativeKeys    Error = "ERR Number of keys can't be negative"
	errScriptWrites    Error = "ERR Can not execute a script with write flag using *_ro command."
	errScriptFlush     Error = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errInScriptUnknown Error = "ERR Unknown Redis command called from script"
	errInScriptArity   Error = "ERR Wrong number of args calling Redis command from script"
	errInScriptRefused Error = "ERR This Redis command is not allowed from script"
	errKilled          Error = "ERR the script has been killed"
	errInScriptWrite   Error = "ERR Write commands are not allowed from read-only scripts."
)

// The version of Redis that scripts see.
const (
	scriptVersion    = "7.4.0"
	scriptVersionNum = 7<<16 | 4<<8
)

// scriptState is what the server has for scripts.
type scriptState struct {
	engine *scripting.Engine
	run    scriptRun
}

// startScripting prepares the server for scripts.
func (srv *Server) startScripting() error {
	srv.scripts.engine = scripting.New(scripting.Options{Version: scriptVersion, VersionNum: scriptVersionNum, Log: srv.scriptLog,
		Interrupt: &srv.scripts.run.interrupt})
	return nil
}

// stopScripting gives back what scripts have used.
func (srv *Server) stopScripting() { srv.scripts.engine.Close() }

// scriptLog writes a message of a script to the server's log.
func (srv *Server) scriptLog(level scripting.Level, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	srv.log.Log(context.Background(), levels[level], message, "source", "script")
}

func cmdEval(c *Ctx)      { evalSource(c, false) }
func cmdEvalRo(c *Ctx)    { evalSource(c, true) }
func cmdEvalsha(c *Ctx)   { evalDigest(c, false) }
func cmdEvalshaRo(c *Ctx) { evalDigest(c, true) }

// evalSource runs the script that is the first argument, and keeps it.
func evalSource(c *Ctx, readOnly bool) {
	keys, args, ok := scriptArgs(c)
	if !ok {
		return
	}
	script, err := c.Server.scripts.engine.Load(c.Args[1])
	if err != nil {
		c.Err(Error(err.Error()))
		return
	}
	eval(c, script, keys, args, readOnly)
}

// evalDigest runs the script that the first argument names.
func evalDigest(c *Ctx, readOnly bool) {
	if len(c.Args[1]) != 40 {
		c.Err(errNoScript)
		return
	}
	keys, args, ok := scriptArgs(c)
	if !ok {
		return
	}
	script := c.Server.scripts.engine.Find(c.Args[1])
	if script == nil {
		c.Err(errNoScript)
		return
	}
	eval(c, script, keys, args, readOnly)
}

// scriptArgs splits the arguments behind the script into keys and others.
func scriptArgs(c *Ctx) (keys, args [][]byte, ok bool) {
	n, ok := c.Int(c.Args[2])
	switch {
	case !ok:
		return nil, nil, false
	case n > int64(len(c.Args)-3):
		c.Err(ErrNumKeysRange)
		return nil, nil, false
	case n < 0:
		c.Err(errNegativeKeys)
		return nil, nil, false
	}
	rest := c.Args[3:]
	return rest[:n], rest[n:], true
}

func eval(c *Ctx, script *scripting.Script, keys, args [][]byte, readOnly bool) {
	if readOnly && script.Declared && script.Flags&scripting.NoWrites == 0 {
		c.Err(errScriptWrites)
		return
	}
	s := c.Session
	if s.caller == nil {
		s.caller = new(scriptCaller)
	}
	h := s.caller
	h.readOnly = readOnly || script.Flags&scripting.NoWrites != 0
	h.ctx = Ctx{W: &h.w, G: c.G, Session: s, Server: c.Server, NoBlock: true, InScript: true}
	h.wrote = false
	db := s.db
	c.Server.beginScript(h)
	c.Server.scripts.engine.Run(script, h, keys, args, c.W)
	c.Server.endScript()
	s.db = db
	if cap(h.w.Buf) > keepBuffer {
		s.caller = nil
	}
}

// scriptCaller executes the commands that scripts of a session call. SELECT counts until the run ends.
type scriptCaller struct {
	function string // the name of the function; empty for a script
	readOnly bool
	wrote    bool // the script has called a command that may write
	ctx      Ctx
	w        resp.Writer // takes one reply at a time
}

// Call implements scripting.Host.
func (h *scriptCaller) Call(args [][]byte, proto int) []byte {
	c := &h.ctx
	s := c.Session
	h.w.Buf, h.w.Proto = h.w.Buf[:0], proto
	cmd, _ := s.srv.table.lookup(args)
	refusal := Error("")
	if cmd != nil && cmd.Flags&(Write|AllKeys) != 0 && s.srv.restricted.Load() {
		refusal = s.srv.restriction(cmd, cmd.Flags&Write != 0)
	}
	switch {
	case cmd == nil:
		c.Err(errInScriptUnknown)
	case !cmd.arityOK(len(args)) || cmd.Do == nil:
		c.Err(errInScriptArity)
	case cmd.Flags&NoScript != 0:
		c.Err(errInScriptRefused)
	case h.readOnly && cmd.Flags&(Write|MayReplicate) != 0:
		c.Err(errInScriptWrite)
	case refusal != "":
		c.Err(refusal)
	case cmd.Flags&Write != 0 && !h.mayWrite():
		c.Err(errKilled) // which the script does not live to see
	default:
		c.Cmd, c.Args, c.DB = cmd, args, s.db
		s.runMonitored(c)
		if s.tracking.on {
			s.rememberKeys(cmd, args)
		}
	}
	return h.w.Buf
}

// mayWrite reports whether the script may call a command that writes: it must not have been killed, and cannot be from then on.
func (h *scriptCaller) mayWrite() bool {
	if !h.wrote {
		h.wrote = h.ctx.Server.scripts.run.mayWrite()
	}
	return h.wrote
}

func cmdScriptLoad(c *Ctx) {
	script, err := c.Server.scripts.engine.Load(c.Args[2])
	if err != nil {
		c.Err(Error(err.Error()))
		return
	}
	c.W.BulkString(script.SHA)
}

func cmdScriptExists(c *Ctx) {
	c.W.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		if c.Server.scripts.engine.Find(sha) != nil {
			c.W.Int(1)
		} else {
			c.W.Int(0)
		}
	}
}

func cmdScriptFlush(c *Ctx) {
	o := c.Options(2)
	if o.Next() && (o.More() || !o.Is("async") && !o.Is("sync")) {
		c.Err(errScriptFlush)
		return
	}
	c.Server.scripts.engine.Flush()
	c.W.OK()
}

// scriptHelp is the reply of SCRIPT HELP.
var scriptHelp = []string{
	"SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
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

func cmdScriptHelp(c *Ctx) {
	c.W.Array(len(scriptHelp))
	for _, line := range scriptHelp {
		c.W.Simple(line)
	}
}
