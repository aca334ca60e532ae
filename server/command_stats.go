package server

import (
	"iter"
	"sync/atomic"

	"github.com/atomredis/atomredis/command"
)

// commandStats counts the calls of one command.
type commandStats struct {
	calls, nanos, failed, rejected atomic.Int64
	durations                      atomic.Pointer[histogram] // nil before the first call that latency-tracking has seen
	_                              [24]byte                  // two of them would share a cache line otherwise
}

// commandCounters are the commandStats of all commands, by Command.index. They are made in parts, when one of a part
// is needed first: most servers see few of the commands, and programs may have many servers.
type commandCounters struct {
	parts []atomic.Pointer[countersPart]
}

type countersPart [8]commandStats

func newCommandCounters(commands int) commandCounters {
	return commandCounters{make([]atomic.Pointer[countersPart], (commands+len(countersPart{})-1)/len(countersPart{}))}
}

// of returns the counters of a command, to count with.
func (c *commandCounters) of(cmd *command.Command) *commandStats {
	p := &c.parts[cmd.Index/len(countersPart{})]
	part := p.Load()
	for part == nil {
		p.CompareAndSwap(nil, new(countersPart))
		part = p.Load()
	}
	return &part[cmd.Index%len(countersPart{})]
}

var uncounted commandStats

// seen returns the counters of a command, to read.
func (c *commandCounters) seen(cmd *command.Command) *commandStats {
	part := c.parts[cmd.Index/len(countersPart{})].Load()
	if part == nil {
		return &uncounted
	}
	return &part[cmd.Index%len(countersPart{})]
}

// all returns the counters of all commands that have been counted, and zeros besides.
func (c *commandCounters) all() iter.Seq[*commandStats] {
	return func(yield func(*commandStats) bool) {
		for i := range c.parts {
			part := c.parts[i].Load()
			if part == nil {
				continue
			}
			for j := range part {
				if !yield(&part[j]) {
					return
				}
			}
		}
	}
}
