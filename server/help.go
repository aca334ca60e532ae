package server

// helpReply answers a HELP sub-command: one status line each.
func helpReply(c *Ctx, lines ...string) {
	c.W.Array(len(lines))
	for _, line := range lines {
		c.W.Simple(line)
	}
}
