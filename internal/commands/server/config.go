package server

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

func init() { command.Register(configCommands) }

// The CONFIG commands.
var configCommands = []*command.Command{
	{Name: "config", Group: "server", Since: "2.0.0", Arity: -2,
		Summary:    "Groups the commands about the configuration",
		Complexity: "Depends on the sub-command", Subs: []*command.Command{
			{Name: "config|get", Group: "server", Since: "2.0.0", Arity: -3,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Returns configuration parameters", Syntax: "parameter [parameter ...]",
				Complexity: "O(N*M), where N is the number of directives and M that of patterns", Do: configGet},
			{Name: "config|help", Group: "server", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: configHelp},
			{Name: "config|resetstat", Group: "server", Since: "2.0.0", Arity: 2,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Resets the statistics of INFO", Complexity: "O(1)", Do: configResetstat},
			{Name: "config|rewrite", Group: "server", Since: "2.8.0", Arity: 2,
				Flags:      command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary:    "Writes the configuration to its file",
				Complexity: "O(N), where N is the size of the file", Do: configRewrite},
			{Name: "config|set", Group: "server", Since: "2.0.0", Arity: -4,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Sets configuration parameters", Syntax: "parameter value [parameter value ...]",
				Complexity: "O(N), where N is the number of directives to change",
				Secrets:    configSecrets, Do: configSet},
		}},
}

// configSecrets calls fn with the indices of secret values in CONFIG SET.
func configSecrets(args [][]byte, fn func(i int)) {
	for i := 2; i+1 < len(args); i += 2 {
		switch command.Lower(args[i]) {
		case "requirepass", "masteruser", "masterauth", "raft-secret", "tls-key-file-pass", "tls-client-key-file-pass":
			fn(i + 1)
		}
	}
}

func configGet(c *command.Ctx) {
	m, n := c.W.Defer(), 0
	hostOf(c).Config().Match(c.Args[2:], func(name, value string) {
		c.W.BulkString(name)
		c.W.BulkString(value)
		n++
	})
	c.W.EndMap(m, n)
}

func configHelp(c *command.Ctx) {
	command.HelpReply(c,
		"CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"GET <pattern> [<pattern> ...]", "    Show the directives whose names match a glob pattern, with their values.",
		"SET <directive> <value> [<directive> <value> ...]", "    Change directives, all of them or, if one cannot be, none.",
		"RESETSTAT", "    Set the counters of INFO to zero.",
		"REWRITE", "    Write the present values into the configuration file.",
		"HELP", "    Print this help.")
}

func configResetstat(c *command.Ctx) {
	hostOf(c).ResetStats()
	c.W.OK()
}

func configRewrite(c *command.Ctx) { rewriteConfig(c, false) }

// rewriteConfig writes the present values into the configuration file: all of them, or only changed ones.
func rewriteConfig(c *command.Ctx, all bool) {
	rewrite := (*config.Config).Rewrite
	if all {
		rewrite = (*config.Config).RewriteAll
	}
	switch err := rewrite(hostOf(c).Config()); err {
	case nil:
		hostOf(c).Log().Info("configuration file rewritten")
		c.W.OK()
	case config.ErrNoConfigFile:
		c.Err(command.Error("ERR " + err.Error()))
	default:
		hostOf(c).Log().Warn("cannot rewrite the configuration file", "error", err)
		c.Err(command.Error("ERR Rewriting config file: " + err.Error()))
	}
}

func configSet(c *command.Ctx) {
	args := c.Args[2:]
	trusted := clientOf(c).Has(hostOf(c).Config().Get().Commands.EnableProtectedConfigs)
	if len(args)%2 != 0 {
		c.Err(command.ErrSyntax)
		return
	}
	pairs := make([]config.Assignment, 0, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		name := string(args[i])
		pair, ok := config.Assign(name, string(args[i+1]))
		if !ok {
			if culprit, err := hostOf(c).Config().CheckAssignments(pairs, trusted); err != nil {
				// an error in an earlier pair comes first
				configSetFailed(c, culprit, err)
				return
			}
			c.Err(command.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + name + "'"))
			return
		}
		pairs = append(pairs, pair)
	}
	if culprit, err := hostOf(c).Config().SetAll(pairs, trusted); err != nil {
		configSetFailed(c, culprit, err)
		return
	}
	c.W.OK()
}

func configSetFailed(c *command.Ctx, culprit string, err error) {
	c.Err(command.Error("ERR CONFIG SET failed (possibly related to argument '" + culprit + "') - " + err.Error()))
}
