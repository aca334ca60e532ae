package command

import "fmt"

// HelpReply replies to a HELP sub-command with a status line for each line.
func HelpReply(c *Ctx, lines ...string) {
	c.W.Array(len(lines))
	for _, line := range lines {
		c.W.Simple(line)
	}
}

// WrongUse replies to a sub-command whose number of arguments is wrong although its arity allows it. container is in
// upper case.
func WrongUse(c *Ctx, container string) {
	c.Err(Error(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%.128s'. Try %s HELP.",
		c.Args[1], container)))
}
