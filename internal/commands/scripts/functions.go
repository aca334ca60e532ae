package scripts

import (
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/scripting"
)

func init() { command.Register(functionCommands) }

var functionCommands = []*command.Command{
	{Name: "fcall", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: runsScript | command.MayReplicate,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RW,ACCESS,UPDATE]"),
		Summary: "Calls a function", Syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the function", Script: functionNamed, Do: fcall},
	{Name: "fcall_ro", Group: "scripting", Since: "7.0.0", Arity: -3,
		Flags: runsScript | command.ReadOnly,
		ACL:   command.CatScripting, Keys: command.Keys("i2+n0/1/1[RO,ACCESS]"),
		Summary: "Calls a function that does not write", Syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
		Complexity: "That of the function", Script: functionNamed, Do: fcallRo},
	{Name: "function", Group: "scripting", Since: "7.0.0", Arity: -2,
		Summary: "Groups the commands about libraries of functions", Complexity: "That of the sub-command",
		Subs: []*command.Command{
			{Name: "function|delete", Group: "scripting", Since: "7.0.0", Arity: 3,
				Flags: command.NoScript | command.Write | command.WholeKeyspace, ACL: command.CatScripting,
				Summary: "Deletes a library and its functions",
				Syntax:  "library-name", Complexity: "O(1)", Do: functionDelete},
			{Name: "function|dump", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.NoScript,
				ACL:        command.CatScripting,
				Summary:    "Serializes all libraries for FUNCTION RESTORE",
				Complexity: "O(N), where N is the number of libraries",
				Do:         functionDump},
			{Name: "function|flush", Group: "scripting", Since: "7.0.0", Arity: -2,
				Flags: command.NoScript | command.Write | command.WholeKeyspace, ACL: command.CatScripting,
				Summary: "Deletes all libraries", Syntax: "[ASYNC | SYNC]",
				Complexity: "O(N), where N is the number of libraries", Do: functionFlush},
			{Name: "function|help", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatScripting,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: functionHelp},
			{Name: "function|kill", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				ACL:     command.CatScripting,
				Summary: "Stops the running function if it has not written", Complexity: "O(1)", Do: functionKill},
			{Name: "function|list", Group: "scripting", Since: "7.0.0", Arity: -2, Flags: command.NoScript,
				ACL:     command.CatScripting,
				Summary: "Lists libraries and their functions", Syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
				Complexity: "O(N), where N is the number of libraries", Do: functionList},
			{Name: "function|load", Group: "scripting", Since: "7.0.0", Arity: -3,
				Flags: command.NoScript | command.Write | command.DenyOOM | command.WholeKeyspace, ACL: command.CatScripting,
				Summary: "Loads a library of functions", Syntax: "[REPLACE] function-code",
				Complexity: "O(N), where N is the length of the library", Do: functionLoad},
			{Name: "function|restore", Group: "scripting", Since: "7.0.0", Arity: -3,
				Flags: command.NoScript | command.Write | command.DenyOOM | command.WholeKeyspace, ACL: command.CatScripting,
				Summary:    "Creates libraries from the output of FUNCTION DUMP",
				Syntax:     "serialized-value [FLUSH | APPEND | REPLACE]",
				Complexity: "O(N), where N is the number of libraries", Do: functionRestore},
			{Name: "function|stats", Group: "scripting", Since: "7.0.0", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				ACL:        command.CatScripting,
				Summary:    "Describes the running function and counts the loaded ones",
				Complexity: "O(1)", Do: functionStats},
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

// functionNamed returns the declarations of the function that the first argument names.
func functionNamed(host command.Host, args [][]byte) command.Script {
	fn := host.(Host).Scripts().functions.Find(args[1])
	if fn == nil {
		return command.Script{}
	}
	return declared(fn.Flags, true)
}

func fcall(c *command.Ctx)   { callFunction(c, false) }
func fcallRo(c *command.Ctx) { callFunction(c, true) }

// callFunction calls the function that the first argument names.
func callFunction(c *command.Ctx, readOnly bool) {
	s := scriptsOf(c)
	fn := s.functions.Find(c.Args[1])
	if fn == nil {
		c.Err(errNoFunction)
		return
	}
	keys, args, ok := numberedKeys(c, errFunctionKeys)
	if !ok {
		return
	}
	if fn.Flags&scripting.NoCluster != 0 && c.ClusterMode() {
		c.Err(errNoCluster)
		return
	}
	if fn.Flags&scripting.AllowStale == 0 && hostOf(c).IsStale(c) {
		c.Err(errScriptStale)
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
	s.run(c, Running{Function: fn.Name, Args: c.Args}, Limits{
		ReadOnly:   readOnly || fn.Flags&scripting.NoWrites != 0,
		AllowOOM:   fn.Flags&scripting.AllowOOM != 0,
		CrossSlots: fn.Flags&scripting.AllowCrossSlotKeys != 0,
	}, func(h scripting.Host) { s.functions.Run(fn, h, keys, args, c.W) })
}

func functionLoad(c *command.Ctx) {
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
	l, err := scriptsOf(c).functions.Load(string(o.Word()), replace)
	if err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	c.Journal(c.Args...)
	c.W.BulkString(l.Name)
}

func functionDelete(c *command.Ctx) {
	if !scriptsOf(c).functions.Delete(string(c.Args[2])) {
		c.Err(errNoLibrary)
		return
	}
	c.Journal(c.Args...)
	c.W.OK()
}

func functionFlush(c *command.Ctx) {
	if len(c.Args) > 3 {
		command.WrongUse(c, "FUNCTION")
		return
	}
	if o := c.Options(2); o.Next() && !o.Is("async") && !o.Is("sync") {
		c.Err(errFunctionFlush)
		return
	}
	scriptsOf(c).functions.Flush()
	c.Journal(c.Args...)
	c.W.OK()
}

func functionKill(c *command.Ctx) {
	if e := scriptsOf(c).kill(true); e != "" {
		c.Err(e)
		return
	}
	c.W.OK()
}

func functionList(c *command.Ctx) {
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
	for _, l := range scriptsOf(c).functions.Libraries() {
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

func functionStats(c *command.Ctx) {
	w := c.W
	w.Map(2)
	w.BulkString("running_script")
	if name, args, ran, ok := scriptsOf(c).function(); ok {
		w.Map(3)
		w.BulkString("name")
		w.BulkString(name)
		w.BulkString("command")
		w.Array(len(args))
		for _, arg := range args {
			w.Bulk(arg)
		}
		w.BulkString("duration_ms")
		w.Int(ran.Milliseconds())
	} else {
		w.Null()
	}
	libraries, functions := scriptsOf(c).functions.Count()
	w.BulkString("engines")
	w.Map(1)
	w.BulkString("LUA")
	w.Map(2)
	w.BulkString("libraries_count")
	w.Int(int64(libraries))
	w.BulkString("functions_count")
	w.Int(int64(functions))
}

func functionDump(c *command.Ctx) { c.W.Bulk(rdb.DumpFunctions(scriptsOf(c).Libraries())) }

// functionRestore creates all libraries of a payload, or none.
func functionRestore(c *command.Ctx) {
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
		e = scriptsOf(c).Restore(codes, flush, replace)
	}
	if e != "" {
		c.Err(e)
		return
	}
	c.Journal(c.Args...)
	c.W.OK()
}

func functionHelp(c *command.Ctx) {
	command.HelpReply(c,
		"FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"DELETE <library name>",
		"    Delete a library.",
		"DUMP",
		"    Return all libraries in a form that RESTORE reads.",
		"FLUSH [ASYNC|SYNC]",
		"    Delete all libraries.",
		"KILL",
		"    End the function that is running, unless it has written.",
		"LIST [LIBRARYNAME <pattern>] [WITHCODE]",
		"    List the libraries and their functions.",
		"LOAD [REPLACE] <code>",
		"    Create a library.",
		"RESTORE <payload> [FLUSH|APPEND|REPLACE]",
		"    Create the libraries of a payload: instead of all that there are, beside them (the default), "+
			"or also in place of those of the same name.",
		"STATS",
		"    Tell of the function that is running, and how many there are.",
		"HELP",
		"    Print this help.")
}
