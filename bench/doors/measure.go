//go:build linux

package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// benchmark is an operation with several contenders.
type benchmark struct {
	name       string
	contenders []contender
}

// contender is a server with clients of one protocol.
type contender struct {
	name string
	// start starts a server on a new directory and fills it with the keys; nil if the program is not installed.
	start func(o settings) *servers.Server
	// connect returns the clients.
	connect func(s *servers.Server, o settings) []client
	// settle, unless nil, waits until all effects of the given number of operations, those of all rounds, have arrived.
	settle func(operations int64)
}

// client does one operation after the other.
type client interface {
	do() error
	Close() error
}

// measured is the outcome of a round.
type measured struct{ perSecond, cpuMicros float64 }

// measure measures all contenders and prints a row for each.
func (b benchmark) measure(o settings, out io.Writer) {
	type entry struct {
		contender
		server  *servers.Server
		clients []client
		done    int64
		rounds  []measured
	}
	var entries []*entry
	for _, c := range b.contenders {
		s := c.start(o)
		if s == nil {
			fmt.Fprintf(out, "%-14s %-9s is not installed\n", b.name, c.name)
			continue
		}
		entries = append(entries, &entry{contender: c, server: s, clients: c.connect(s, o)})
		s.Pause()
	}
	for round := range o.rounds {
		for i := range entries {
			e := entries[(round+i)%len(entries)]
			e.server.Resume()
			e.done += run(e.clients, o.time/5) // to warm up
			before, begun := e.server.CPU(), time.Now()
			n := run(e.clients, o.time)
			e.done += n
			if e.settle != nil {
				e.settle(e.done)
			}
			elapsed, cpu := time.Since(begun), e.server.CPU().Since(before).Total
			e.rounds = append(e.rounds, measured{float64(n) / elapsed.Seconds(), float64(cpu.Nanoseconds()) / 1000 / float64(n)})
			e.server.Pause()
		}
	}
	for _, e := range entries {
		row := fmt.Sprintf("%-14s %-9s %9.0f %9.1f", b.name, e.name, servers.Median(e.rounds, measured.rate),
			servers.Median(e.rounds, measured.cpu))
		for _, other := range entries {
			if other != e && (other == entries[0] || other.name == etcdName) {
				row += fmt.Sprintf("   %s: %-16s %s", other.name, servers.Ratio(e.rounds, other.rounds, measured.rate),
					servers.Ratio(e.rounds, other.rounds, measured.cpu))
			}
		}
		fmt.Fprintln(out, row)
	}
	for _, e := range entries {
		e.server.Resume()
		for _, c := range e.clients {
			c.Close()
		}
		e.server.Remove()
	}
}

func (m measured) rate() float64 { return m.perSecond }
func (m measured) cpu() float64  { return m.cpuMicros }

// run has all clients work for a duration, and returns the number of operations done.
func run(clients []client, length time.Duration) int64 {
	var stop atomic.Bool
	var total atomic.Int64
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			n := int64(0)
			for ; !stop.Load(); n++ {
				servers.Check(c.do())
			}
			total.Add(n)
		})
	}
	time.Sleep(length)
	stop.Store(true)
	all.Wait()
	return total.Load()
}
