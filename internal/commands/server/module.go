package server

import (
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/version"
)

func init() { command.Register([]*command.Command{moduleCommand}) }

// moduleCommand exists because tools ask which modules are loaded. The modules of Redis 8 are parts of the server,
// and no module can be loaded.
var moduleCommand = &command.Command{Name: "module", Group: "server", Since: "4.0.0", Arity: -2,
	Summary: "Tells of modules that are built in", Complexity: "Depends on the sub-command",
	Subs: []*command.Command{
		{Name: "module|help", Group: "server", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: moduleHelp},
		{Name: "module|list", Group: "server", Since: "4.0.0", Arity: 2, Flags: command.Admin | command.NoScript,
			Summary: "Lists the modules of Redis that are built in", Complexity: "O(1)", Do: moduleList},
		{Name: "module|load", Group: "server", Since: "4.0.0", Arity: -3,
			Flags:   command.NoAsyncLoading | command.Admin | command.NoScript | command.Protected,
			Summary: "Loads a module: not supported",
			Syntax:  "path [arg [arg ...]]", Complexity: "O(1)", Allowed: modulesAllowed,
			Do: moduleLoad},
		{Name: "module|loadex", Group: "server", Since: "7.0.0", Arity: -3,
			Flags:      command.NoAsyncLoading | command.Admin | command.NoScript | command.Protected,
			Summary:    "Loads a module with options: not supported",
			Syntax:     "path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]",
			Complexity: "O(1)", Allowed: modulesAllowed, Do: moduleLoad},
		{Name: "module|unload", Group: "server", Since: "4.0.0", Arity: 3,
			Flags:   command.NoAsyncLoading | command.Admin | command.NoScript | command.Protected,
			Summary: "Unloads a module: not supported",
			Syntax:  "name", Complexity: "O(1)", Allowed: modulesAllowed, Do: moduleUnload},
	},
}

func moduleList(c *command.Ctx) { command.WriteModules(c.W) }

// modulesAllowed reports whether the client may use MODULE.
func modulesAllowed(host command.Host, client command.Client) bool {
	return client.(Client).Has(host.(Host).Config().Get().Commands.EnableModule)
}

func moduleLoad(c *command.Ctx) {
	hostOf(c).Log().Warn("a module was not loaded: the server can load none", "path", string(c.Args[2]), "client",
		clientOf(c).ID())
	c.Err("ERR Error loading the extension. Please check the server logs.")
}

func moduleUnload(c *command.Ctx) {
	if slices.ContainsFunc(version.Modules, func(m version.Module) bool { return m.Name == string(c.Args[2]) }) {
		c.Err("ERR Error unloading module: the module exports one or more module-side data types, can't unload")
		return
	}
	c.Err("ERR Error unloading module: no such module with that name")
}

func moduleHelp(c *command.Ctx) {
	command.HelpReply(c,
		"MODULE <subcommand> [<arg> ...]. Modules are built in. Subcommands are:",
		"LIST",
		"    Lists those that are built in.",
		"LOAD <path> [<arg> ...]",
		"    Is refused.",
		"LOADEX <path> [CONFIG <name> <value> ...] [ARGS <arg> ...]",
		"    Is refused.",
		"UNLOAD <name>",
		"    Is refused.",
		"HELP",
		"    Prints this text.")
}
