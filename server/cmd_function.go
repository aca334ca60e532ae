package server

import (
	"strings"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/scripting"
)

func init() { command.Register(functionCommands) }

var functionCommands = []*command.Command{
	{Name: "fcall", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: command.NoScript | command.SkipMonitor | command.MayReplicate | command.NoMandatoryKeys | command.Stale | command.WholeKeyspace,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Calls a function", Syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the function", Script: functionNamed, Do: cmdFcall},
	{Name: "fcall_ro", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.ReadOnly | command.WholeKeyspace,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RO,ACCESS]"),
		Summary: "Calls a function that does not write", Syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the function", Script: functionNamed, Do: cmdFcallRo},
	{Name: "function", Group: "scripting", Since: "7.0.0", Arity: -2,
		Summary: "Groups the commands about libraries of functions", Complexity: "That of the sub-command",
		Subs: []*command.Command{
			{Name: "function|delete", Group: "scripting", Since: "7.0.0", Arity: 3,
				Flags: command.NoScript | command.Write | command.WholeKeyspace, ACL: command.CatScripting,
				Summary: "Deletes a library and its functions",
				Syntax:  "library-name", Complexity: "O(1)", Do: cmdFunctionDelete},
			{Name: "function|dump", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.NoScript,
				ACL:        command.CatScripting,
				Summary:    "Serializes all libraries for FUNCTION RESTORE",
				Complexity: "O(N), where N is the number of libraries",
				Do:         cmdFunctionDump},
			{Name: "function|flush", Group: "scripting", Since: "7.0.0", Arity: -2,
				Flags: command.NoScript | command.Write | command.WholeKeyspace, ACL: command.CatScripting,
				Summary: "Deletes all libraries", Syntax: "[ASYNC | SYNC]",
				Complexity: "O(N), where N is the number of libraries", Do: cmdFunctionFlush},
			{Name: "function|help", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatScripting,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdFunctionHelp},
			{Name: "function|kill", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				ACL:     command.CatScripting,
				Summary: "Stops the running function if it has not written", Complexity: "O(1)", Do: cmdFunctionKill},
			{Name: "function|list", Group: "scripting", Since: "7.0.0", Arity: -2, Flags: command.NoScript,
				ACL:     command.CatScripting,
				Summary: "Lists libraries and their functions", Syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
				Complexity: "O(N), where N is the number of libraries", Do: cmdFunctionList},
			{Name: "function|load", Group: "scripting", Since: "7.0.0", Arity: -3,
				Flags: command.NoScript | command.Write | command.DenyOOM | command.WholeKeyspace, ACL: command.CatScripting,
				Summary: "Loads a library of functions", Syntax: "[REPLACE] function-code",
				Complexity: "O(N), where N is the length of the library", Do: cmdFunctionLoad},
			{Name: "function|restore", Group: "scripting", Since: "7.0.0", Arity: -3,
				Flags: command.NoScript | command.Write | command.DenyOOM | command.WholeKeyspace, ACL: command.CatScripting,
				Summary:    "Creates libraries from the output of FUNCTION DUMP",
				Syntax:     "serialized-value [FLUSH | APPEND | REPLACE]",
				Complexity: "O(N), where N is the number of libraries", Do: cmdFunctionRestore},
			{Name: "function|stats", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				ACL:        command.CatScripting,
				Summary:    "Describes the running function and counts the loaded ones",
				Complexity: "O(1)", Do: cmdFunctionStats},
		}},
}

// Errors of functions.
const (
	errNoFunction    command.Error = "ERR Function not found"
	errNoLibrary     command.Error = "ERR Library not found"
	errFunctionKeys  command.Error = "ERR Bad number of keys provided"
	errFunctionFlush command.Error = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"
	errRestorePolicy command.Error = "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
	errNoLibraryName command.Error = "ERR library name argument was not given"
)

// functionNamed returns what the function declares that the first argument names.
func functionNamed(host command.Host, args [][]byte) command.Script {
	fn := host.(*Server).scripts.functions.Find(args[1])
	if fn == nil {
		return command.Script{}
	}
	return declared(fn.Flags, true)
}

func cmdFcall(c *command.Ctx)   { fcall(c, false) }
func cmdFcallRo(c *command.Ctx) { fcall(c, true) }

func fcall(c *command.Ctx, readOnly bool) {
	fn := serverOf(c).scripts.functions.Find(c.Args[1])
	if fn == nil {
		c.Err(errNoFunction)
		return
	}
	keys, args, ok := numberedKeys(c, errFunctionKeys)
	if !ok {
		return
	}
	if fn.Flags&scripting.NoCluster != 0 && c.ClusterMode() {
		c.Err(errScriptNoCluster)
		return
	}
	if readOnly && fn.Flags&scripting.NoWrites == 0 {
		c.Err(errScriptWrites)
		return
	}
	if e := refuseWriter(c, fn.Flags); e != "" {
		c.Err(e)
		return
	}
	h := scriptHost(c, readOnly || fn.Flags&scripting.NoWrites != 0)
	h.allowOOM = fn.Flags&scripting.AllowOOM != 0
	h.crossSlots = fn.Flags&scripting.AllowCrossSlotKeys != 0
	h.function, h.args, h.began = fn.Name, c.Args, serverOf(c).ticks()
	runScript(c, h, func() { serverOf(c).scripts.functions.Run(fn, h, keys, args, c.W) })
}

func cmdFunctionLoad(c *command.Ctx) {
	o := c.Options(2)
	o.Next()
	replace := false
	for ; o.More(); o.Next() {
		if !o.Is("replace") {
			c.Err(command.Error("ERR Unknown option given: " + string(command.UntilNUL(o.Word()))))
			return
		}
		replace = true
	}
	l, err := serverOf(c).scripts.functions.Load(string(o.Word()), replace)
	if err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	c.Journal(c.Args...)
	c.W.BulkString(l.Name)
}

func cmdFunctionDelete(c *command.Ctx) {
	if !serverOf(c).scripts.functions.Delete(string(c.Args[2])) {
		c.Err(errNoLibrary)
		return
	}
	c.Journal(c.Args...)
	c.W.OK()
}

func cmdFunctionFlush(c *command.Ctx) {
	if len(c.Args) > 3 {
		command.WrongUse(c, "FUNCTION")
		return
	}
	if o := c.Options(2); o.Next() && !o.Is("async") && !o.Is("sync") {
		c.Err(errFunctionFlush)
		return
	}
	serverOf(c).scripts.functions.Flush()
	c.Journal(c.Args...)
	c.W.OK()
}

func cmdFunctionKill(c *command.Ctx) {
	if e := serverOf(c).scripts.run.kill(true); e != "" {
		c.Err(e)
		return
	}
	c.W.OK()
}

func cmdFunctionList(c *command.Ctx) {
	var pattern []byte
	withCode := false
	for o := c.Options(2); o.Next(); {
		switch {
		case o.Is("withcode") && !withCode:
			withCode = true
		case o.Is("libraryname") && pattern == nil:
			if !o.More() {
				c.Err(errNoLibraryName)
				return
			}
			pattern = o.Arg()
		default:
			c.Err(command.Error("ERR Unknown argument " + string(command.UntilNUL(o.Word()))))
			return
		}
	}
	mark, n := c.W.Defer(), 0
	for _, l := range serverOf(c).scripts.functions.Libraries() {
		if pattern != nil && !glob.Match(pattern, []byte(l.Name), true) {
			continue
		}
		n++
		writeLibrary(c, l, withCode)
	}
	c.W.EndArray(mark, n)
}

func writeLibrary(c *command.Ctx, l *scripting.Library, withCode bool) {
	fields := 3
	if withCode {
		fields++
	}
	w := c.W
	w.Map(fields)
	w.BulkString("library_name")
	w.BulkString(l.Name)
	w.BulkString("engine")
	w.BulkString("LUA")
	w.BulkString("functions")
	w.Array(len(l.Functions))
	for _, fn := range l.Functions {
		w.Map(3)
		w.BulkString("name")
		w.BulkString(fn.Name)
		w.BulkString("description")
		if fn.Description != nil {
			w.BulkString(*fn.Description)
		} else {
			w.Null()
		}
		w.BulkString("flags")
		flags := fn.Flags.Names()
		w.Set(len(flags))
		for _, name := range flags {
			w.Simple(name)
		}
	}
	if withCode {
		w.BulkString("library_code")
		w.BulkString(l.Code)
	}
}

func cmdFunctionStats(c *command.Ctx) {
	w := c.W
	w.Map(2)
	w.BulkString("running_script")
	if name, args, began, ok := serverOf(c).scripts.run.function(); ok {
		w.Map(3)
		w.BulkString("name")
		w.BulkString(name)
		w.BulkString("command")
		w.Array(len(args))
		for _, arg := range args {
			w.Bulk(arg)
		}
		w.BulkString("duration_ms")
		w.Int((serverOf(c).ticks() - began) / 1e6)
	} else {
		w.Null()
	}
	libraries, functions := serverOf(c).scripts.functions.Count()
	w.BulkString("engines")
	w.Map(1)
	w.BulkString("LUA")
	w.Map(2)
	w.BulkString("libraries_count")
	w.Int(int64(libraries))
	w.BulkString("functions_count")
	w.Int(int64(functions))
}

func cmdFunctionDump(c *command.Ctx) { c.W.Bulk(rdb.DumpFunctions(serverOf(c).functionSources())) }

// cmdFunctionRestore creates all libraries of a payload, or none.
func cmdFunctionRestore(c *command.Ctx) {
	if len(c.Args) > 4 {
		command.WrongUse(c, "FUNCTION")
		return
	}
	flush, replace := false, false
	if o := c.Options(3); o.Next() {
		switch {
		case o.Is("append"):
		case o.Is("replace"):
			replace = true
		case o.Is("flush"):
			flush = true
		default:
			c.Err(errRestorePolicy)
			return
		}
	}
	codes, e := restoredFunctions(c.Args[2])
	if e == "" {
		e = serverOf(c).restoreFunctions(codes, flush, replace)
	}
	if e != "" {
		c.Err(e)
		return
	}
	c.Journal(c.Args...)
	c.W.OK()
}

// restoreFunctions adds libraries to those that are there, or puts them in their place.
func (srv *Server) restoreFunctions(codes []string, flush, replace bool) command.Error {
	fresh := scripting.NewFunctions(srv.scriptOptions())
	for _, code := range codes {
		if _, err := fresh.Load(code, false); err != nil {
			return command.Error(err.Error())
		}
	}
	functions := srv.scripts.functions
	if flush {
		functions.Flush()
	}
	added := map[string]bool{}
	for _, l := range fresh.Libraries() {
		added[l.Name] = true
	}
	all := codes
	for _, l := range functions.Libraries() {
		switch {
		case !added[l.Name]:
			all = append(all[:len(all):len(all)], l.Code)
		case !replace:
			return command.Error("ERR Library " + l.Name + " already exists")
		}
	}
	if err := functions.Replace(all); err != nil {
		return command.Error(err.Error())
	}
	return ""
}

// functionHelp is the reply of FUNCTION HELP.
const functionHelp = `FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
DELETE <library name>
    Delete a library.
DUMP
    Return all libraries in a form that RESTORE reads.
FLUSH [ASYNC|SYNC]
    Delete all libraries.
KILL
    End the function that is running, unless it has written.
LIST [LIBRARYNAME <pattern>] [WITHCODE]
    List the libraries and their functions.
LOAD [REPLACE] <code>
    Create a library.
RESTORE <payload> [FLUSH|APPEND|REPLACE]
    Create the libraries of a payload: instead of all that there are, beside them (the default), or also in place of those of the same name.
STATS
    Tell of the function that is running, and how many there are.
HELP
    Print this help.`

func cmdFunctionHelp(c *command.Ctx) {
	lines := strings.Split(functionHelp, "\n")
	c.W.Array(len(lines))
	for _, line := range lines {
		c.W.Simple(line)
	}
}
