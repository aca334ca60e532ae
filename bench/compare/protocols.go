//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// listener accepts whatever arrives, such as messages of a channel.
type listener struct{}

// Append implements load.Client.
func (listener) Append(dst []byte, _, _ int) ([]byte, int) { return dst, math.MaxInt / 2 }

// Reply implements load.Client.
func (listener) Reply(int, []byte) error { return nil }

// worker reads one entry of a stream as a consumer of a group, and acknowledges it.
type worker struct {
	stream, group string
	read          []byte
	ids           []string // of the entries read but not yet acknowledged, by operation
}

func newWorker(stream, group string, i, pipeline int) *worker {
	read := servers.AppendCommand(nil, "XREADGROUP", "GROUP", group, fmt.Sprint("worker:", i), "COUNT", "1", "STREAMS",
		stream, ">")
	return &worker{stream, group, read, make([]string, pipeline)}
}

// Append implements load.Client.
func (w *worker) Append(dst []byte, op, step int) ([]byte, int) {
	switch step {
	case 0:
		return append(dst, w.read...), 1
	case 1:
		return servers.AppendCommand(dst, "XACK", w.stream, w.group, w.ids[op]), 1
	}
	w.ids[op] = ""
	return dst, 0
}

// Reply implements load.Client.
func (w *worker) Reply(op int, reply []byte) error {
	if w.ids[op] != "" {
		return expect(reply, ":1")
	}
	entry, ok := firstEntry(reply)
	if !ok {
		return fmt.Errorf("no entry: %q", reply)
	}
	w.ids[op] = string(entry.id)
	return nil
}

func expect(reply []byte, begin string) error {
	if !bytes.HasPrefix(reply, []byte(begin)) {
		return fmt.Errorf("reply %.60q, which should begin with %q", reply, begin)
	}
	return nil
}

// entry is an entry of a stream.
type entry struct {
	id     []byte
	fields load.Elements // the first is the array of them
}

// field returns the value of a field, or nil.
func (e entry) field(name string) []byte {
	all := e.fields
	for n := all.Array() / 2; n > 0; n-- {
		field, value := all.Text(), all.Text()
		if string(field) == name {
			return value
		}
	}
	return nil
}

// entries calls each for the entries of one stream in a reply to XREAD or XREADGROUP.
func entries(reply []byte, each func(e entry)) {
	all := load.Elements(reply)
	if all.Array() != 1 {
		return
	}
	all.Array() // the stream's name and entries
	all.Text()
	for n := all.Array(); n > 0; n-- {
		all.Array() // ID and fields
		e := entry{id: all.Text(), fields: all}
		for fields := all.Array(); fields > 0; fields-- {
			all.Text()
		}
		each(e)
	}
}

func firstEntry(reply []byte) (first entry, ok bool) {
	entries(reply, func(e entry) {
		if !ok {
			first, ok = e, true
		}
	})
	return first, ok
}

// The commands for putting and getting a message in the pressure protocol, version 0.1.
const (
	putCommands = 12
	getCommands = 10
	queueBound  = 10
)

// queueStep is a command of the protocol, and how its reply must begin. The next step waits for the reply.
type queueStep struct {
	command []string
	want    string
}

// queueEnd is the producer or the consumer of a queue: it goes through its steps one by one.
type queueEnd struct {
	steps []queueStep
	text  [][]byte // of the commands
	at    int
	push  int  // the producer's step that pushes the message; -1 for consumers
	mark  int  // the step from which two are skipped if the queue is full
	full  bool // the queue was full after the push
}

func newQueueEnd(steps []queueStep) *queueEnd {
	q := &queueEnd{steps: steps, push: -1, mark: -1}
	for _, s := range steps {
		q.text = append(q.text, servers.AppendCommand(nil, s.command...))
	}
	return q
}

// Append implements load.Client.
func (q *queueEnd) Append(dst []byte, _, step int) ([]byte, int) {
	if q.at++; step == 0 {
		q.at = 0
	}
	if q.at == q.mark && q.full {
		q.at += 2
	}
	if q.at == len(q.text) {
		return dst, 0
	}
	return append(dst, q.text[q.at]...), 1
}

// Reply implements load.Client.
func (q *queueEnd) Reply(_ int, reply []byte) error {
	if q.at == q.push {
		length, err := strconv.Atoi(string(bytes.TrimSpace(reply[1:])))
		if err != nil {
			return err
		}
		q.full = length >= queueBound
	}
	return expect(reply, q.steps[q.at].want)
}

func queueKey(i int, suffix string) string { return fmt.Sprintf("__pressure__:queue%d%s", i, suffix) }

// createQueues leaves n new queues on the server, and nothing else.
func createQueues(s *servers.Server, n int) {
	s.Do("FLUSHALL")
	for i := range n {
		s.Do("SETNX", queueKey(i, ":bound"), strconv.Itoa(queueBound))
		for _, suffix := range []string{":producer_free", ":consumer_free", ":not_full"} {
			s.Do("LPUSH", queueKey(i, suffix), "0")
		}
	}
}

// queuePairs returns the producers and consumers of n queues. Messages put are counted.
func queuePairs(n int, value string) (cs []load.Connection) {
	length := strconv.Itoa(len(value))
	for i := range n {
		key := func(suffix string) string { return queueKey(i, suffix) }
		put := newQueueEnd([]queueStep{
			{[]string{"EXISTS", key(":bound")}, ":1"},
			{[]string{"BRPOP", key(":producer_free"), "0"}, "*2"},
			{[]string{"SET", key(":producer"), "host_pid1"}, "+OK"},
			{[]string{"EXISTS", key(":closed")}, ":0"},
			{[]string{"BRPOP", key(":not_full"), "0"}, "*2"},
			{[]string{"LPUSH", key(""), value}, ":"},
			{[]string{"GET", key(":bound")}, "$2\r\n10"},
			{[]string{"LPUSH", key(":not_full"), "0"}, ":"},
			{[]string{"LTRIM", key(":not_full"), "0", "0"}, "+OK"},
			{[]string{"INCR", key(":stats:produced_messages")}, ":"},
			{[]string{"INCRBY", key(":stats:produced_bytes"), length}, ":"},
			{[]string{"LPUSH", key(":producer_free"), "0"}, ":1"},
		})
		put.push, put.mark = 5, 7
		get := newQueueEnd([]queueStep{
			{[]string{"EXISTS", key(":bound")}, ":1"},
			{[]string{"BRPOP", key(":consumer_free"), "0"}, "*2"},
			{[]string{"SET", key(":consumer"), "host_pid2"}, "+OK"},
			{[]string{"EXISTS", key(":closed")}, ":0"},
			{[]string{"BRPOP", key(""), key(":closed"), "0"}, "*2"},
			{[]string{"LPUSH", key(":not_full"), "0"}, ":"},
			{[]string{"LTRIM", key(":not_full"), "0", "0"}, "+OK"},
			{[]string{"INCR", key(":stats:consumed_messages")}, ":"},
			{[]string{"INCRBY", key(":stats:consumed_bytes"), length}, ":"},
			{[]string{"LPUSH", key(":consumer_free"), "0"}, ":1"},
		})
		cs = append(cs, load.Connection{Client: put}, load.Connection{Client: get, Partner: true})
	}
	return cs
}

// atomCommands is the number of commands of a round trip in atom's protocol: three of the caller, four of the called
// element.
const atomCommands = 7

// createElements leaves n pairs of elements on the server, one of which calls the other, and nothing else.
func createElements(s *servers.Server, n int) {
	s.Do("FLUSHALL")
	for i := range n {
		for _, name := range []string{callerName(i), calledName(i)} {
			for _, stream := range []string{"response:", "command:"} {
				s.Do("XADD", stream+name, "MAXLEN", "~", "1024", "*", "language", "Python", "version", "2.7.0")
			}
			s.Do("INCRBY", "command_consumer_group_counter:"+name, "1")
			s.Do("XGROUP", "CREATE", "command:"+name, "command_consumer_group:"+name, "$", "MKSTREAM")
		}
	}
	// A caller uses the ID of its command, on one stream, as the position on another from which it waits for the
	// answer. If the elements were created in the same millisecond, that position may be behind the answer.
	time.Sleep(2 * time.Millisecond)
}

func callerName(i int) string { return fmt.Sprint("caller", i) }
func calledName(i int) string { return fmt.Sprint("called", i) }

// elementPairs returns n callers and the elements that they call.
func elementPairs(n int, value string) (cs []load.Connection) {
	for i := range n {
		caller, called := callerName(i), calledName(i)
		send := servers.AppendCommand(nil, "XADD", "command:"+called, "MAXLEN", "~", "1024", "*",
			"element", caller, "cmd", "echo", "data", value)
		read := servers.AppendCommand(nil, "XREADGROUP", "GROUP", "command_consumer_group:"+called, called, "COUNT", "1",
			"BLOCK", "1000",
			"STREAMS", "command:"+called, ">")
		cs = append(cs, load.Connection{Client: &atomCaller{name: caller, called: called, send: send}},
			load.Connection{Client: &atomElement{name: called, read: read}, Partner: true})
	}
	return cs
}

// atomCalls is the round trip of elementPairs, except that on atomredis the caller sends ATOM.CALL, and the element
// ATOM.RESPOND together with the ATOM.NEXT for the next command. The cost is divided by the number of commands that
// these replace.
func atomCalls(c settings, value string) workload {
	native := false // set for the server that the connections belong to
	return workload{name: "atom-call", commands: atomCommands, bytes: 2 * c.Size, serial: true,
		before: func(s *servers.Server, _ int) {
			native = s.Program != servers.Redis
			createElements(s, pairs(c.Conns))
		},
		connections: func() []load.Connection {
			if native {
				return nativePairs(pairs(c.Conns), value)
			}
			return elementPairs(pairs(c.Conns), value)
		}}
}

// nativePairs is elementPairs with the commands of atomredis.
func nativePairs(n int, value string) (cs []load.Connection) {
	for i := range n {
		caller, called := callerName(i), calledName(i)
		call := []string{"ATOM.CALL", called, "echo", "DATA", value, "FROM", caller}
		next := servers.AppendCommand(nil, "ATOM.NEXT", called, "TIMEOUT", "1000")
		cs = append(cs, load.Connection{Client: load.NewCommands([][]string{call}, nil, []string{"*14\r\n$6\r\ncmd_id\r\n"})},
			load.Connection{Client: &nativeElement{name: called, next: next}, Partner: true})
	}
	return cs
}

// nativeElement handles the commands sent to an element, one at a time.
type nativeElement struct {
	name string
	next []byte
	// The command that was handed out and has no response yet; id is "" if there is none.
	id, caller, data string
	responding       bool // the next reply belongs to the response
}

// Append implements load.Client.
func (a *nativeElement) Append(dst []byte, _, step int) ([]byte, int) {
	if step > 0 {
		return dst, 0
	}
	if a.id == "" {
		return append(dst, a.next...), 1
	}
	a.responding = true
	dst = servers.AppendCommand(dst, "ATOM.RESPOND", a.name, a.id, a.caller, "CMD", "echo", "DATA", a.data)
	return append(dst, a.next...), 2
}

// Reply implements load.Client.
func (a *nativeElement) Reply(_ int, reply []byte) error {
	if a.responding {
		a.responding, a.id = false, ""
		return expect(reply, ":1")
	}
	all := load.Elements(reply)
	n := all.Array()
	if n <= 0 {
		return expect(reply, "$-1") // no command came for some time; it asks again
	}
	for ; n > 0; n -= 2 {
		switch field := string(all.Text()); field {
		case "cmd_id":
			a.id = string(all.Text())
		case "element":
			a.caller = string(all.Text())
		case "data":
			a.data = string(all.Text())
			return nil
		default:
			all.Text()
		}
	}
	return fmt.Errorf("a command without data: %q", reply)
}

// atomCaller sends a command to an element and waits for the response.
type atomCaller struct {
	name, called string
	send         []byte
	id           string // of the command; "" until it is sent
	last         string // the last entry read
	answered     bool
}

// Append implements load.Client.
func (a *atomCaller) Append(dst []byte, _, step int) ([]byte, int) {
	if step == 0 {
		a.id, a.answered = "", false
		return append(dst, a.send...), 1
	}
	if a.answered {
		return dst, 0
	}
	return servers.AppendCommand(dst, "XREAD", "BLOCK", "1000", "STREAMS", "response:"+a.name, a.last), 1
}

// Reply implements load.Client.
func (a *atomCaller) Reply(_ int, reply []byte) error {
	if a.id == "" {
		all := load.Elements(reply)
		a.id = string(all.Text())
		a.last = a.id
		return nil
	}
	before := a.last
	entries(reply, func(e entry) {
		a.last = string(e.id)
		// The acknowledgement may be missing: its ID belongs to another stream than the command's, and may be the same.
		if string(e.field("cmd_id")) == a.id && string(e.field("element")) == a.called && e.field("err_code") != nil {
			a.answered = true
		}
	})
	if a.last == before {
		return fmt.Errorf("%s does not answer: %q", a.called, reply)
	}
	return nil
}

// atomElement handles the commands sent to an element, one at a time.
type atomElement struct {
	name string
	read []byte
	// what it waits for: 0 a command, 1 and 2 the writing of acknowledgement and response, 3 the end of its handling
	step   int
	id     string // of the command
	caller string
	data   string
}

// Append implements load.Client.
func (a *atomElement) Append(dst []byte, _, _ int) ([]byte, int) {
	stream := "response:" + a.caller
	switch a.step {
	case 0:
		return append(dst, a.read...), 1
	case 1:
		return servers.AppendCommand(dst, "XADD", stream, "MAXLEN", "~", "1024", "*",
			"element", a.name, "cmd_id", a.id, "timeout", "1000"), 1
	case 2:
		return servers.AppendCommand(dst, "XADD", stream, "MAXLEN", "~", "1024", "*", "data", a.data, "ser", "none",
			"err_code", "0",
			"err_str", "", "cmd_id", a.id, "element", a.name, "cmd", "echo"), 1
	case 3:
		return servers.AppendCommand(dst, "XACK", "command:"+a.name, "command_consumer_group:"+a.name, a.id), 1
	}
	a.step = 0
	return dst, 0
}

// Reply implements load.Client.
func (a *atomElement) Reply(_ int, reply []byte) error {
	switch a.step {
	case 0:
		e, ok := firstEntry(reply)
		if !ok {
			return nil // no command came for some time; it asks again
		}
		a.id, a.caller, a.data = string(e.id), string(e.field("element")), string(e.field("data"))
	case 3:
		if err := expect(reply, ":1"); err != nil {
			return err
		}
	}
	a.step++
	return nil
}
