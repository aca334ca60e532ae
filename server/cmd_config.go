package server

import "strings"

func init() { Register(configCommands) }

// The CONFIG commands.
var configCommands = []*Command{
	{Name: "config", Group: "server", Since: "2.0.0", Arity: -2,
		Summary: "A container for commands that read and change the configuration", Complexity: "Depends on the sub-command", Subs: []*Command{
			{Name: "config|get", Group: "server", Since: "2.0.0", Arity: -3, Flags: Admin | NoScript | Loading | Stale,
				Summary: "Returns the values of directives", Syntax: "parameter [parameter ...]",
				Complexity: "O(N*M), where N is the number of directives and M that of patterns", Do: cmdConfigGet},
			{Name: "config|help", Group: "server", Since: "5.0.0", Arity: 2, Flags: Loading | Stale,
				Summary: "Explains the sub-commands", Complexity: "O(1)", Do: cmdConfigHelp},
			{Name: "config|resetstat", Group: "server", Since: "2.0.0", Arity: 2, Flags: Admin | NoScript | Loading | Stale,
				Summary: "Sets the counters that INFO shows to zero", Complexity: "O(1)", Do: cmdConfigResetstat},
			{Name: "config|rewrite", Group: "server", Since: "2.8.0", Arity: 2, Flags: Admin | NoScript | Loading | Stale,
				Summary: "Writes the present values into the configuration file", Complexity: "O(N), where N is the size of the file", Do: cmdConfigRewrite},
			{Name: "config|set", Group: "server", Since: "2.0.0", Arity: -4, Flags: Admin | NoScript | Loading | Stale,
				Summary: "Changes directives while the server runs", Syntax: "parameter value [parameter value ...]",
				Complexity: "O(N), where N is the number of directives to change", Do: cmdConfigSet},
		}},
}

func cmdConfigGet(c *Ctx) {
	m, n := c.W.Defer(), 0
	serverOf(c).config.match(c.Args[2:], func(name, value string) {
		c.W.BulkString(name)
		c.W.BulkString(value)
		n++
	})
	c.W.EndMap(m, n)
}

func cmdConfigHelp(c *Ctx) {
	helpReply(c,
		"CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"GET <pattern> [<pattern> ...]", "    Show the directives whose names match a glob pattern, with their values.",
		"SET <directive> <value> [<directive> <value> ...]", "    Change directives, all of them or, if one cannot be, none.",
		"RESETSTAT", "    Set the counters of INFO to zero.",
		"REWRITE", "    Write the present values into the configuration file.",
		"HELP", "    Print this help.")
}

func cmdConfigResetstat(c *Ctx) {
	serverOf(c).ResetStats()
	c.W.OK()
}

func cmdConfigRewrite(c *Ctx) { c.rewriteConfig(false) }

// rewriteConfig writes the present values into the configuration file: all of them, or those that were changed.
func (c *Ctx) rewriteConfig(all bool) {
	switch err := serverOf(c).config.rewrite(all); err {
	case nil:
		serverOf(c).log.Info("configuration file rewritten")
		c.W.OK()
	case errNoConfigFile:
		c.Err(Error("ERR " + err.Error()))
	default:
		serverOf(c).log.Warn("cannot rewrite the configuration file", "error", err)
		c.Err(Error("ERR Rewriting config file: " + err.Error()))
	}
}

func cmdConfigSet(c *Ctx) {
	args := c.Args[2:]
	trusted := sessionOf(c).has(serverOf(c).config.Get().EnableProtectedConfigs)
	if len(args)%2 != 0 {
		c.Err(ErrSyntax)
		return
	}
	pairs := make([]assignment, 0, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		name := string(args[i])
		d := directiveNamed(name)
		if d == nil {
			if culprit, err := serverOf(c).config.checkAssignments(pairs, trusted); err != nil { // what is wrong with an earlier pair comes first
				c.configSetFailed(culprit, err)
				return
			}
			c.Err(Error("ERR Unknown option or number of arguments for CONFIG SET - '" + name + "'"))
			return
		}
		pairs = append(pairs, assignment{d, strings.ToLower(name), string(args[i+1])})
	}
	if culprit, err := serverOf(c).config.setAll(pairs, trusted); err != nil {
		c.configSetFailed(culprit, err)
		return
	}
	c.W.OK()
}

func (c *Ctx) configSetFailed(culprit string, err error) {
	c.Err(Error("ERR CONFIG SET failed (possibly related to argument '" + culprit + "') - " + err.Error()))
}
