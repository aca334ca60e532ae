package server

import (
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register([]*command.Command{latencyCommand}) }

// latencyCommand shows the latencies of commands, and slow events.
var latencyCommand = &command.Command{Name: "latency", Group: "server", Since: "2.8.13", Arity: -2,
	Summary: "Groups the commands about how long things take", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "latency|doctor", Group: "server", Since: "2.8.13", Arity: 2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Reports on latency, for people", Complexity: "O(1)", Do: latencyDoctor},
		{Name: "latency|graph", Group: "server", Since: "2.8.13", Arity: 3,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Draws the latency of an event", Syntax: "event", Complexity: "O(1)", Do: latencyGraph},
		{Name: "latency|help", Group: "server", Since: "2.8.13", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: latencyHelp},
		{Name: "latency|histogram", Group: "server", Since: "7.0.0", Arity: -2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Returns latency histograms of commands", Syntax: "[command [command ...]]",
			Complexity: "O(N), where N is the number of commands that were used", Do: latencyHistogram},
		{Name: "latency|history", Group: "server", Since: "2.8.13", Arity: 3,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Returns the latency samples of an event",
			Syntax:  "event", Complexity: "O(1)", Do: latencyHistory},
		{Name: "latency|latest", Group: "server", Since: "2.8.13", Arity: 2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Returns the latest latency sample of each event", Complexity: "O(1)", Do: latencyLatest},
		{Name: "latency|reset", Group: "server", Since: "2.8.13", Arity: -2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Clears the samples of events",
			Syntax:  "[event [event ...]]", Complexity: "O(1)", Do: latencyReset},
	}}

func latencyLatest(c *command.Ctx) {
	m, n := c.W.Defer(), 0
	for _, event := range hostOf(c).Latency().Names() {
		s, ok := hostOf(c).Latency().Series(event)
		if !ok {
			continue
		}
		last := s.Samples[len(s.Samples)-1]
		c.W.Array(4)
		c.W.BulkString(event)
		c.W.Int(last.At)
		c.W.Int(last.MS)
		c.W.Int(s.Max)
		n++
	}
	c.W.EndArray(m, n)
}

func latencyHistory(c *command.Ctx) {
	s, _ := hostOf(c).Latency().Series(string(c.Args[2]))
	c.W.Array(len(s.Samples))
	for _, x := range s.Samples {
		c.W.Array(2)
		c.W.Int(x.At)
		c.W.Int(x.MS)
	}
}

func latencyReset(c *command.Ctx) {
	events := hostOf(c).Latency().Names()
	if len(c.Args) > 2 {
		events = events[:0]
		for _, a := range c.Args[2:] {
			events = append(events, string(a))
		}
	}
	n := int64(0)
	for _, event := range events {
		if hostOf(c).Latency().Reset(event) {
			n++
		}
	}
	c.W.Int(n)
}

func latencyGraph(c *command.Ctx) {
	event := string(c.Args[2])
	s, ok := hostOf(c).Latency().Series(event)
	if !ok {
		c.Err(command.Error("ERR No samples available for event '" + string(command.UntilNUL(c.Args[2])) + "'"))
		return
	}
	c.W.Verbatim("txt", s.Graph(event, hostOf(c).Keyspace().Now()/1000))
}

// latencyHistogram replies with the latency distributions of the named commands and their sub-commands, or of all
// commands.
func latencyHistogram(c *command.Ctx) {
	cmds := hostOf(c).Table().Commands()
	if len(c.Args) > 2 {
		cmds = nil
		for _, name := range c.Args[2:] {
			if cmd := hostOf(c).Table().Named(name); cmd != nil {
				cmds = append(cmds, cmd)
			}
		}
	}
	m, n := c.W.Defer(), 0
	for _, cmd := range cmds {
		for _, cmd := range append([]*command.Command{cmd}, cmd.Subs...) {
			h := hostOf(c).CommandStats().Seen(cmd).Histogram()
			if h == nil {
				continue
			}
			c.W.BulkString(cmd.Name)
			c.W.Map(2)
			c.W.BulkString("calls")
			c.W.Int(h.Count())
			c.W.BulkString("histogram_usec")
			steps, taken := c.W.Defer(), 0
			h.Steps(func(micros, count int64) {
				c.W.Int(micros)
				c.W.Int(count)
				taken++
			})
			c.W.EndMap(steps, taken)
			n++
		}
	}
	c.W.EndMap(m, n)
}

func latencyHelp(c *command.Ctx) {
	command.HelpReply(c,
		"LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"DOCTOR",
		"    Sum up what took long, and what may help.",
		"GRAPH <event>",
		"    Draw how long events of a kind took.",
		"HISTORY <event>",
		"    Show when events of a kind were and how many milliseconds they took.",
		"LATEST",
		"    Show the latest event of each kind.",
		"RESET [<event> ...]",
		"    Forget events, of the kinds given or all.",
		"HISTOGRAM [<command> ...]",
		"    Count how often commands took at most so many microseconds.",
		"HELP",
		"    Print this help.")
}

func latencyDoctor(c *command.Ctx) {
	monitored := hostOf(c).Config().Get().Monitoring.LatencyMonitorThreshold != 0
	c.W.Verbatim("txt", hostOf(c).Latency().Report(hostOf(c).Keyspace().Now()/1000, monitored))
}
