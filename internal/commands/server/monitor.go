package server

import "github.com/atomredis/atomredis/internal/command"

func init() { command.Register([]*command.Command{monitorCommand}) }

var monitorCommand = &command.Command{Name: "monitor", Group: "server", Since: "1.0.0", Arity: 1,
	Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
	Summary: "Streams all commands as they are executed", Complexity: "O(1)",
	Stateful: true, Do: monitor}

func monitor(c *command.Ctx) {
	if c.NoBlock {
		c.Err("ERR MONITOR isn't allowed for DENY BLOCKING client")
		return
	}
	if clientOf(c).Monitor() {
		c.W.OK() // as in Redis, a second MONITOR gets no reply
	}
}
