package command

// HelpReply answers a HELP sub-command: one status line each.
func HelpReply(c *Ctx, lines ...string) {
	c.W.Array(len(lines))
	for _, line := range lines {
		c.W.Simple(line)
	}
}
