package command

import "fmt"

// HelpReply answers a HELP sub-command: one status line each.
func HelpReply(c *Ctx, lines ...string) {
	c.W.Array(len(lines))
	for _, line := range lines {
		c.W.Simple(line)
	}
}

// WrongUse answers a sub-command of a container, given in upper case, with a wrong number of arguments that its arity
// lets pass.
func WrongUse(c *Ctx, container string) {
	c.Err(Error(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%.128s'. Try %s HELP.",
		c.Args[1], container)))
}
