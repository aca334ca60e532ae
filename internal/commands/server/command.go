package server

import (
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(commandCommands) }

// This file has COMMAND and its sub-commands, which show the command table to clients.
var commandCommands = []*command.Command{
	{Name: "command", Group: "server", Since: "2.8.13", Arity: -1, Flags: command.Loading | command.Stale,
		ACL:     command.CatConnection,
		Summary: "Describes all commands", Complexity: "O(N), where N is the number of commands",
		Do: showAll, Subs: []*command.Command{
			{Name: "command|count", Group: "server", Since: "2.8.13", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Counts the commands", Complexity: "O(1)", Do: commandCount},
			{Name: "command|docs", Group: "server", Since: "7.0.0", Arity: -2, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Returns the documentation of commands", Syntax: "[command-name [command-name ...]]",
				Complexity: "O(N), where N is the number of commands", Do: commandDocs},
			{Name: "command|getkeys", Group: "server", Since: "2.8.13", Arity: -3, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Finds the keys among the arguments of a command", Syntax: "command arg [arg ...]",
				Complexity: "O(N), where N is the number of arguments", Do: commandGetkeys},
			{Name: "command|getkeysandflags", Group: "server", Since: "7.0.0", Arity: -3, Flags: command.Loading | command.Stale,
				ACL:        command.CatConnection,
				Summary:    "Finds the keys among the arguments of a command, and how they are used",
				Syntax:     "command arg [arg ...]",
				Complexity: "O(N), where N is the number of arguments", Do: commandGetkeysandflags},
			{Name: "command|help", Group: "server", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: commandHelp},
			{Name: "command|info", Group: "server", Since: "2.8.13", Arity: -2, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Describes commands", Syntax: "[command-name [command-name ...]]",
				Complexity: "O(N), where N is the number of commands", Do: commandInfo},
			{Name: "command|list", Group: "server", Since: "7.0.0", Arity: -2, Flags: command.Loading | command.Stale,
				ACL:        command.CatConnection,
				Summary:    "Lists the names of commands",
				Syntax:     "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
				Complexity: "O(N), where N is the number of commands", Do: commandList},
		}},
}

// Errors of COMMAND GETKEYS.
const (
	errInvalidCommand     command.Error = "ERR Invalid command specified"
	errNoKeyArguments     command.Error = "ERR The command has no key arguments"
	errCommandArity       command.Error = "ERR Invalid number of arguments specified for command"
	errInvalidCommandArgs command.Error = "ERR Invalid arguments specified for command"
)

func showAll(c *command.Ctx) { writeInfoOfAll(c) }

func writeInfoOfAll(c *command.Ctx) {
	all := hostOf(c).Table().Commands()
	c.W.Array(len(all))
	for _, cmd := range all {
		writeCommandInfo(c.W, cmd)
	}
}

func commandCount(c *command.Ctx) { c.W.Int(int64(len(hostOf(c).Table().Commands()))) }

func commandDocs(c *command.Ctx) {
	cmds := hostOf(c).Table().Commands()
	if len(c.Args) > 2 {
		cmds = nil
		for _, name := range c.Args[2:] {
			if cmd := hostOf(c).Table().Named(name); cmd != nil {
				cmds = append(cmds, cmd)
			}
		}
	}
	c.W.Map(len(cmds))
	for _, cmd := range cmds {
		c.W.BulkString(cmd.Name)
		writeCommandDocs(c.W, cmd)
	}
}

func commandGetkeys(c *command.Ctx) {
	_, keys, args, ok := commandKeys(c)
	if !ok {
		return
	}
	c.W.Array(len(keys))
	for _, k := range keys {
		c.W.Bulk(args[k.at])
	}
}

func commandGetkeysandflags(c *command.Ctx) {
	cmd, keys, args, ok := commandKeys(c)
	if !ok {
		return
	}
	c.W.Array(len(keys))
	for _, k := range keys {
		c.W.Array(2)
		c.W.Bulk(args[k.at])
		writeNames(c.W, "", cmd.UseOfKey(k.spec, args))
	}
}

// keyPlace is a key that a command has among its arguments.
type keyPlace struct {
	at   int
	spec *command.KeySpec
}

// commandKeys finds the keys of the command that follows the first two arguments. If there are none, it writes an
// error and ok is false.
func commandKeys(c *command.Ctx) (cmd *command.Command, keys []keyPlace, args [][]byte, ok bool) {
	args = c.Args[2:]
	cmd, _ = hostOf(c).Table().Lookup(args)
	isKey := func(k command.KeySpec) bool { return !slices.Contains(k.Flags, "not_key") }
	switch {
	case cmd == nil:
		c.Err(errInvalidCommand)
		return nil, nil, nil, false
	case !slices.ContainsFunc(cmd.Keys, isKey):
		c.Err(errNoKeyArguments)
		return nil, nil, nil, false
	case !cmd.ArityOK(len(args)):
		c.Err(errCommandArity)
		return nil, nil, nil, false
	}
	fit := cmd.EachKey(args, func(i int, spec *command.KeySpec) bool {
		if isKey(*spec) {
			keys = append(keys, keyPlace{i, spec})
		}
		return true
	})
	if !fit {
		keys = nil
	}
	if len(keys) == 0 && cmd.Flags&command.NoMandatoryKeys == 0 {
		c.Err(errInvalidCommandArgs)
		return nil, nil, nil, false
	}
	return cmd, keys, args, true
}

func commandHelp(c *command.Ctx) {
	command.HelpReply(c,
		"COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"(no subcommand)", "    Show the facts about all commands.",
		"COUNT", "    Show how many commands there are.",
		"LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]", "    List the names of commands, all or some.",
		"INFO [<command-name> ...]", "    Show the facts about commands, all or those named.",
		"DOCS [<command-name> ...]", "    Show the documentation of commands, all or those named.",
		"GETKEYS <full-command>", "    Find the keys among the arguments of a command.",
		"GETKEYSANDFLAGS <full-command>", "    Find the keys, and what the command does to each.",
		"HELP", "    Print this help.")
}

func commandInfo(c *command.Ctx) {
	if len(c.Args) == 2 {
		writeInfoOfAll(c)
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		if cmd := hostOf(c).Table().Named(name); cmd != nil {
			writeCommandInfo(c.W, cmd)
		} else {
			c.W.Null()
		}
	}
}

func commandList(c *command.Ctx) {
	keep := func(*command.Command) bool { return true }
	if o := c.Options(2); o.Next() {
		if !o.Is("filterby") || o.Left() != 2 {
			c.Err(command.ErrSyntax)
			return
		}
		o.Next()
		value := o.Rest()[0]
		switch {
		case o.Is("module"):
			groups := groupsOf(string(value))
			keep = func(cmd *command.Command) bool { return slices.Contains(groups, cmd.Group) }
		case o.Is("aclcat"):
			keep = func(cmd *command.Command) bool { return slices.Contains(cmd.ACL.Names(), command.Lower(value)) }
		case o.Is("pattern"):
			keep = func(cmd *command.Command) bool { return glob.Match(value, []byte(cmd.Name), true) }
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	m, n := c.W.Defer(), 0
	for cmd := range hostOf(c).Table().All {
		if keep(cmd) {
			c.W.BulkString(cmd.Name)
			n++
		}
	}
	c.W.EndArray(m, n)
}

// groupsOf returns the groups of commands of a module of Redis.
func groupsOf(module string) []string {
	for _, m := range version.Modules {
		if m.Name == module {
			return m.Groups
		}
	}
	return nil
}

// unlisted are flags that Redis does not show.
const unlisted = command.MayReplicate | command.TouchesArbitraryKeys | command.Protected

// writeCommandInfo writes an element of the reply to COMMAND INFO.
func writeCommandInfo(w *resp.Writer, cmd *command.Command) {
	w.Array(10)
	w.BulkString(cmd.Name)
	w.Int(int64(cmd.Arity))
	writeNames(w, "", (cmd.Flags &^ unlisted).Names())
	first, last, step := cmd.KeyRange()
	w.Int(int64(first))
	w.Int(int64(last))
	w.Int(int64(step))
	writeNames(w, "@", cmd.ACL.Names())
	tips := Tips(cmd.Name)
	w.Set(len(tips))
	for _, tip := range tips {
		w.BulkString(tip)
	}
	w.Set(len(cmd.Keys))
	for i := range cmd.Keys {
		writeKeySpec(w, &cmd.Keys[i])
	}
	if len(cmd.Subs) == 0 {
		w.Set(0)
		return
	}
	w.Array(len(cmd.Subs))
	for _, sub := range cmd.Subs {
		writeCommandInfo(w, sub)
	}
}

func writeNames(w *resp.Writer, prefix string, names []string) {
	w.Set(len(names))
	for _, n := range names {
		w.Simple(prefix + n)
	}
}

func writeKeySpec(w *resp.Writer, k *command.KeySpec) {
	if k.Notes == "" {
		w.Map(3)
	} else {
		w.Map(4)
		w.BulkString("notes")
		w.BulkString(k.Notes)
	}
	w.BulkString("flags")
	writeNames(w, "", k.Flags)
	w.BulkString("begin_search")
	switch {
	case k.Keyword != "":
		writeSpecPart(w, "keyword", "keyword", k.Keyword, "startfrom", k.StartFrom)
	case k.Index != 0:
		writeSpecPart(w, "index", "index", k.Index)
	default:
		writeSpecPart(w, "unknown")
	}
	w.BulkString("find_keys")
	switch {
	case k.ByNumber:
		writeSpecPart(w, "keynum", "keynumidx", k.NumIndex, "firstkey", k.FirstKey, "keystep", k.Step)
	case k.Step != 0:
		writeSpecPart(w, "range", "lastkey", k.LastKey, "keystep", k.Step, "limit", k.Limit)
	default:
		writeSpecPart(w, "unknown")
	}
}

// writeSpecPart writes a part of a key spec: its kind and its fields, which are names and values in turn.
func writeSpecPart(w *resp.Writer, kind string, fields ...any) {
	w.Map(2)
	w.BulkString("type")
	w.BulkString(kind)
	w.BulkString("spec")
	w.Map(len(fields) / 2)
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			w.BulkString(f)
		case int:
			w.Int(int64(f))
		}
	}
}

// writeCommandDocs writes a value of the reply to COMMAND DOCS.
func writeCommandDocs(w *resp.Writer, cmd *command.Command) {
	m, n := w.Defer(), 0
	field := func(name, value string) {
		if value != "" {
			w.BulkString(name)
			w.BulkString(value)
			n++
		}
	}
	field("summary", cmd.Summary)
	field("since", cmd.Since)
	field("group", strings.ReplaceAll(cmd.Group, "_", "-"))
	field("complexity", cmd.Complexity)
	if flags := docFlags(cmd); len(flags) > 0 {
		w.BulkString("doc_flags")
		writeNames(w, "", flags)
		n++
	}
	field("deprecated_since", cmd.Deprecated)
	field("replaced_by", cmd.Instead)
	if history := commandHistory()[cmd.Name]; len(history) > 0 {
		w.BulkString("history")
		w.Set(len(history))
		for _, change := range history {
			w.Array(2)
			w.BulkString(change.Since)
			w.BulkString(change.what)
		}
		n++
	}
	if args, err := cmd.Arguments(); err == nil && len(args) > 0 {
		w.BulkString("arguments")
		writeArguments(w, args)
		n++
	}
	if len(cmd.Subs) > 0 {
		w.BulkString("subcommands")
		w.Map(len(cmd.Subs))
		for _, sub := range cmd.Subs {
			w.BulkString(sub.Name)
			writeCommandDocs(w, sub)
		}
		n++
	}
	w.EndMap(m, n)
}

// docFlags returns the flags of a command in COMMAND DOCS.
func docFlags(cmd *command.Command) (names []string) {
	if cmd.Deprecated != "" {
		names = append(names, "deprecated")
	}
	if slices.Contains(internalCommands, cmd.Name) {
		names = append(names, "syscmd")
	}
	return names
}

func writeArguments(w *resp.Writer, args []*command.Argument) {
	w.Array(len(args))
	for _, a := range args {
		m, n := w.Defer(), 2
		field := func(name, value string) {
			if value != "" {
				w.BulkString(name)
				w.BulkString(value)
				n++
			}
		}
		w.BulkString("name")
		w.BulkString(a.Name)
		w.BulkString("type")
		w.BulkString(a.Kind)
		if a.Kind == command.ArgKey || a.KeySpec > 0 {
			w.BulkString("key_spec_index")
			w.Int(int64(a.KeySpec))
			n++
		}
		field("token", a.Token)
		field("since", a.Since)
		field("deprecated_since", a.Deprecated)
		if flags := flags(a); len(flags) > 0 {
			w.BulkString("flags")
			writeNames(w, "", flags)
			n++
		}
		if len(a.Args) > 0 {
			w.BulkString("arguments")
			writeArguments(w, a.Args)
			n++
		}
		w.EndMap(m, n)
	}
}

func flags(a *command.Argument) (names []string) {
	if a.Optional {
		names = append(names, "optional")
	}
	if a.Multiple {
		names = append(names, "multiple")
	}
	if a.MultipleToken {
		names = append(names, "multiple_token")
	}
	return names
}
