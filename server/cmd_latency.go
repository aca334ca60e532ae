package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/command"
)

// latencyCommand tells how long commands take, and about those that take long.
var latencyCommand = &command.Command{Name: "latency", Group: "server", Since: "2.8.13", Arity: -2,
	Summary: "Groups the commands about how long things take", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "latency|doctor", Group: "server", Since: "2.8.13", Arity: 2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Reports on latency, for people", Complexity: "O(1)", Do: cmdLatencyDoctor},
		{Name: "latency|graph", Group: "server", Since: "2.8.13", Arity: 3,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Draws the latency of an event", Syntax: "event", Complexity: "O(1)", Do: cmdLatencyGraph},
		{Name: "latency|help", Group: "server", Since: "2.8.13", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdLatencyHelp},
		{Name: "latency|histogram", Group: "server", Since: "7.0.0", Arity: -2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Returns latency histograms of commands", Syntax: "[command [command ...]]",
			Complexity: "O(N), where N is the number of commands that were used", Do: cmdLatencyHistogram},
		{Name: "latency|history", Group: "server", Since: "2.8.13", Arity: 3,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Returns the latency samples of an event",
			Syntax:  "event", Complexity: "O(1)", Do: cmdLatencyHistory},
		{Name: "latency|latest", Group: "server", Since: "2.8.13", Arity: 2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Returns the latest latency sample of each event", Complexity: "O(1)", Do: cmdLatencyLatest},
		{Name: "latency|reset", Group: "server", Since: "2.8.13", Arity: -2,
			Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
			Summary: "Clears the samples of events",
			Syntax:  "[event [event ...]]", Complexity: "O(1)", Do: cmdLatencyReset},
	}}

func cmdLatencyLatest(c *command.Ctx) {
	m, n := c.W.Defer(), 0
	for _, event := range serverOf(c).latency.names() {
		s, ok := serverOf(c).latency.series(event)
		if !ok {
			continue
		}
		last := s.samples[len(s.samples)-1]
		c.W.Array(4)
		c.W.BulkString(event)
		c.W.Int(last.at)
		c.W.Int(last.ms)
		c.W.Int(s.max)
		n++
	}
	c.W.EndArray(m, n)
}

func cmdLatencyHistory(c *command.Ctx) {
	s, _ := serverOf(c).latency.series(string(c.Args[2]))
	c.W.Array(len(s.samples))
	for _, x := range s.samples {
		c.W.Array(2)
		c.W.Int(x.at)
		c.W.Int(x.ms)
	}
}

func cmdLatencyReset(c *command.Ctx) {
	events := serverOf(c).latency.names()
	if len(c.Args) > 2 {
		events = events[:0]
		for _, a := range c.Args[2:] {
			events = append(events, string(a))
		}
	}
	n := int64(0)
	for _, event := range events {
		if serverOf(c).latency.reset(event) {
			n++
		}
	}
	c.W.Int(n)
}

func cmdLatencyGraph(c *command.Ctx) {
	event := string(c.Args[2])
	s, ok := serverOf(c).latency.series(event)
	if !ok {
		c.Err(command.Error("ERR No samples available for event '" + string(command.UntilNUL(c.Args[2])) + "'"))
		return
	}
	c.W.Verbatim("txt", s.graph(event, serverOf(c).ks.Now()/1000))
}

// cmdLatencyHistogram replies with the distributions of the commands named, with those of their sub-commands, or of
// all commands.
func cmdLatencyHistogram(c *command.Ctx) {
	cmds := serverOf(c).table.Commands()
	if len(c.Args) > 2 {
		cmds = nil
		for _, name := range c.Args[2:] {
			if cmd := serverOf(c).table.Named(name); cmd != nil {
				cmds = append(cmds, cmd)
			}
		}
	}
	m, n := c.W.Defer(), 0
	for _, cmd := range cmds {
		for _, cmd := range append([]*command.Command{cmd}, cmd.Subs...) {
			h := serverOf(c).commandStats.seen(cmd).durations.Load()
			if h == nil {
				continue
			}
			c.W.BulkString(cmd.Name)
			c.W.Map(2)
			c.W.BulkString("calls")
			c.W.Int(h.total.Load())
			c.W.BulkString("histogram_usec")
			steps, taken := c.W.Defer(), 0
			h.steps(func(micros, count int64) {
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

func cmdLatencyHelp(c *command.Ctx) {
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

// latencyAdvice is what may help against events of a kind.
var latencyAdvice = map[string]string{
	"command": "SLOWLOG GET shows which commands were slow. Commands that go through whole collections (KEYS, SMEMBERS, SORT, scripts) hold up all others: " +
		"prefer SCAN, smaller collections and shorter scripts.",
	"fast-command":            "Commands that do little were slow: the machine gave the server no processor, memory was swapped, or values had to be read from the disk.",
	"expire-cycle":            "Large values, or many fields, expired at once. Deadlines with a random part spread the work.",
	"eviction-cycle":          "Commands had to wait for keys to be evicted. A larger maxmemory, or a smaller maxmemory-eviction-tenacity, makes the waits rarer or shorter.",
	"checkpoint":              "Commands had to wait for a checkpoint to read values. Very large strings take longest: smaller ones, or fewer checkpoints (save, checkpoint-size), help.",
	"loading":                 "Commands had to wait for keys to be brought into memory after a start, which is over once INFO says loading:0.",
	"aof-write":               "Replies had to wait for the journal to be written: the disk is busy or slow.",
	"aof-fsync-always":        "Replies had to wait for the disk, as appendfsync always wants it. A faster disk, or appendfsync everysec, helps.",
	"aof-write-pending-fsync": "The disk needed more than a second to sync the journal, and replies had to wait: it is busy with something else, or too slow.",
}

func cmdLatencyDoctor(c *command.Ctx) {
	m := &serverOf(c).latency
	var b strings.Builder
	events := m.names()
	switch {
	case len(events) == 0 && serverOf(c).config.Get().LatencyMonitorThreshold == 0:
		b.WriteString("Latency is not monitored. CONFIG SET latency-monitor-threshold <milliseconds> has events that take as long recorded.\n")
	case len(events) == 0:
		b.WriteString("Nothing has taken as long as latency-monitor-threshold says.\n")
	}
	now := serverOf(c).ks.Now() / 1000
	for i, event := range events {
		s, ok := m.series(event)
		if !ok {
			continue
		}
		total, first := int64(0), s.samples[0].at
		for _, x := range s.samples {
			total += x.ms
		}
		n := int64(len(s.samples))
		worst := slices.MaxFunc(s.samples, func(a, b latencySample) int { return cmp.Compare(a.ms, b.ms) })
		fmt.Fprintf(&b, "%d. %s: %d samples in the last %d seconds, %d ms on average, %d ms at most, %d ms ever.\n",
			i+1, event, n, max(now-first, 1), total/n, worst.ms, s.max)
		if advice := latencyAdvice[event]; advice != "" {
			b.WriteString("   " + advice + "\n")
		}
	}
	c.W.Verbatim("txt", b.String())
}
