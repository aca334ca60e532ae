//go:build linux

package main

import (
	"bytes"
	"fmt"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// nativeQueues is the load of queuePairs, but on atomredis the clients send PRESSURE.PUT and PRESSURE.GET. What a
// message costs counts as if it were all the commands that these stand for.
func nativeQueues(c settings, value string) workload {
	native := false // set for the server that the connections are for
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

// entryCommands is how many commands an entry takes that is read on its own: one of the writer, one of the reader.
const entryCommands = 2

// entryLoops is atom's entry write and its entry read loop: each of half of the connections writes entries to a
// stream, and another reads from there. What counts are the entries written. A reader that falls behind reads several
// at once.
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

// entryReader reads a stream from its beginning on, and waits for what comes.
type entryReader struct {
	stream string
	value  []byte // that each entry has to have
	last   string // entry that has been read
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
