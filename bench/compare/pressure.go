//go:build linux

package main

import (
	"bytes"
	"fmt"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// nativeQueues is the load of queuePairs, except that on atomredis the clients send PRESSURE.PUT and PRESSURE.GET. The
// cost of a message is divided by the number of commands that these replace.
func nativeQueues(c settings, value string) workload {
	native := false // set for the server that the connections belong to
	return workload{name: "pressure-put", commands: putCommands + getCommands, bytes: c.Size, serial: true,
		before: func(s *servers.Server, _ int) {
			native = s.Program != servers.Redis
			createQueues(s, pairs(c.Conns))
		},
		connections: func() []load.Connection {
			cs := queuePairs(pairs(c.Conns), value)
			for i := 0; native && i < len(cs)/2; i++ {
				name := fmt.Sprint("queue", i)
				cs[2*i].Client = load.NewCommands([][]string{{"PRESSURE.PUT", name, value}}, nil, []string{":1\r\n"})
				cs[2*i+1].Client = load.NewCommands([][]string{{"PRESSURE.GET", name}}, nil,
					[]string{fmt.Sprintf("$%d\r\n", len(value))})
			}
			return cs
		}}
}

// entryCommands is the number of commands for an entry that is read on its own: one of the writer, one of the reader.
const entryCommands = 2

// entryLoops is atom's entry write and entry read loop: half of the connections each write entries to a stream, and for
// each of them another connection reads the stream. Entries written are counted. A reader that falls behind reads
// several at once.
func entryLoops(c settings, value string) workload {
	n := pairs(c.Conns)
	return workload{name: "atom-entries", commands: entryCommands, bytes: c.Size, serial: true,
		before: func(s *servers.Server, _ int) { s.Do("FLUSHALL") },
		connections: func() (cs []load.Connection) {
			for i := range n {
				stream := fmt.Sprintf("stream:element%d:data", i)
				write := []string{"XADD", stream, "MAXLEN", "~", "1024", "*", "data", value, "ser", "none"}
				cs = append(cs, load.Connection{Client: load.NewCommands([][]string{write}, nil, []string{"$"})},
					load.Connection{Client: &entryReader{stream: stream, value: []byte(value), last: "0"}, Partner: true})
			}
			return cs
		}}
}

// entryReader reads a stream from its beginning, and waits for new entries.
type entryReader struct {
	stream string
	value  []byte // that each entry must have
	last   string // the last entry read
}

// Append implements load.Client.
func (r *entryReader) Append(dst []byte, _, step int) ([]byte, int) {
	if step > 0 {
		return dst, 0
	}
	return servers.AppendCommand(dst, "XREAD", "COUNT", "100", "BLOCK", "1000", "STREAMS", r.stream, r.last), 1
}

// Reply implements load.Client.
func (r *entryReader) Reply(_ int, reply []byte) (err error) {
	entries(reply, func(e entry) {
		if !bytes.Equal(e.field("data"), r.value) || string(e.field("ser")) != "none" {
			err = fmt.Errorf("entry %s of %s is not what was written: %.60q", e.id, r.stream, e.fields)
		}
		r.last = string(e.id)
	})
	if err == nil && len(reply) > 0 && reply[0] == '-' {
		err = fmt.Errorf("%s: %s", r.stream, reply)
	}
	return err
}
