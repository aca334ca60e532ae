//go:build linux

package main

import (
	"bytes"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

const (
	batch   = 64  // the most commands of a connection under way at once
	atOnce  = 100 // elements per command of the filling
	logged  = 20  // the most wrong replies shown
	inReply = 10  // elements requested where there are several
)

// worker is a connection that owns the keys whose numbers have the same remainder, so it knows their content.
type worker struct {
	run    *longRun
	number int
	jobs   chan job
	r      *rand.Rand
	model  model

	conn    net.Conn
	scanner load.Scanner
	in      []byte // received bytes of the next replies
	calls   []call // under way
	out     []byte // the commands
	want    []byte // the replies expected for them

	flat        []byte // the arguments of the command being made
	flatEnds    []int
	name, value []byte // scratch
}

// job is a key for which a command is to be made, and the time since when.
type job struct {
	key uint32
	due time.Time
}

// call is a command under way.
type call struct {
	job
	write      bool
	begin, end int                     // of the command in out
	want       int                     // the end of its reply in want
	right      func(reply []byte) bool // used instead of want
}

func newWorker(l *longRun, number int) *worker {
	c, err := net.Dial("tcp", l.server.Addr)
	servers.Check(err)
	return &worker{run: l, number: number, jobs: make(chan job, 4*batch), r: rand.New(rand.NewPCG(7, uint64(number))),
		model: model{map[element]uint32{}, map[uint32]ends{}}, conn: c, scanner: load.Scanner{Errors: true}}
}

// fill gives all keys of the worker their values.
func (w *worker) fill() {
	for n := w.number; n < w.run.keys; n += conns {
		key := uint32(n)
		typ, elements := kind(key)
		step := atOnce
		if typ == aStream {
			step = 1
		}
		for at := 0; at < elements; at += step {
			w.put(job{key, time.Now()}, typ, at, min(at+step, elements))
			if len(w.calls) == batch {
				w.exchange()
			}
		}
	}
	w.exchange()
}

// put writes elements for the first time.
func (w *worker) put(j job, typ, from, to int) {
	w.begin(j, true, [...]string{aString: "SET", aHash: "HSET", aZSet: "ZADD", aStream: "XADD", aList: "RPUSH"}[typ])
	for at := from; at < to; at++ {
		switch typ {
		case aString:
			w.arg(w.content(j.key, at, 0, stringSize))
			w.want = append(w.want, "+OK\r\n"...)
		case aHash:
			w.arg(w.element('f', at))
			w.arg(w.current(j.key, at))
		case aZSet:
			w.arg(w.score(j.key, at))
			w.arg(w.element('m', at))
		case aStream:
			w.entry(j.key, at)
		case aList:
			w.arg(w.current(j.key, at))
		}
	}
	switch typ {
	case aHash, aZSet:
		w.wantNumber(':', to-from)
	case aList:
		w.wantNumber(':', to)
	}
	w.end()
}

// entry appends the arguments of XADD for the entry with a number.
func (w *worker) entry(key uint32, at int) {
	id := w.id(at)
	w.arg(id)
	w.want = appendBulk(w.want, id)
	w.arg([]byte("f"))
	w.arg(w.current(key, at))
}

// work makes commands for the jobs, up to batch at once.
func (w *worker) work() {
	for j := range w.jobs {
		w.command(j)
		for more := true; more && len(w.calls) < batch && w.calls[len(w.calls)-1].right == nil; {
			select {
			case j, more = <-w.jobs:
				if more {
					w.command(j)
				}
			default:
				more = false
			}
		}
		w.exchange()
	}
}

// command makes a command for a job: four reads for each write.
func (w *worker) command(j job) {
	typ, n := kind(j.key)
	write := w.r.IntN(5) == 0
	if typ == aStream || typ == aList {
		e := w.model.endsOf(j.key)
		n = e.behind - e.first
	}
	switch typ {
	case aString:
		w.stringCommand(j, write)
	case aHash:
		w.hashCommand(j, write, n)
	case aZSet:
		w.zsetCommand(j, write, n)
	case aStream:
		w.streamCommand(j, write, n)
	case aList:
		w.listCommand(j, write, n)
	}
}

func (w *worker) stringCommand(j job, write bool) {
	if write {
		w.begin(j, true, "SET")
		w.arg(w.content(j.key, 0, w.model.next(j.key, 0), stringSize))
		w.want = append(w.want, "+OK\r\n"...)
	} else {
		w.begin(j, false, "GET")
		w.want = appendBulk(w.want, w.content(j.key, 0, w.model.version(j.key, 0), stringSize))
	}
	w.end()
}

func (w *worker) hashCommand(j job, write bool, n int) {
	at := w.r.IntN(n)
	switch x := w.r.IntN(100); {
	case write:
		w.begin(j, true, "HSET")
		w.arg(w.element('f', at))
		w.model.next(j.key, at)
		w.arg(w.current(j.key, at))
		w.wantNumber(':', 0)
	case x < 80:
		w.begin(j, false, "HGET")
		w.arg(w.element('f', at))
		w.want = appendBulk(w.want, w.current(j.key, at))
	case x < 90:
		w.begin(j, false, "HMGET")
		w.wantNumber('*', inReply)
		for range inReply {
			at = w.r.IntN(n)
			w.arg(w.element('f', at))
			w.want = appendBulk(w.want, w.current(j.key, at))
		}
	case x < 98 || n > large:
		w.begin(j, false, "HLEN")
		w.wantNumber(':', n)
	default:
		w.begin(j, false, "HGETALL")
		w.end()
		w.check(func(e load.Elements) bool {
			right := e.Array() == 2*n
			seen := map[int]bool{}
			for range n {
				at := number(e.Text())
				seen[at] = true
				right = right && string(e.Text()) == string(w.current(j.key, at))
			}
			return right && len(seen) == n
		})
		return
	}
	w.end()
}

func (w *worker) zsetCommand(j job, write bool, n int) {
	at := w.r.IntN(n)
	switch x := w.r.IntN(100); {
	case write:
		w.begin(j, true, "ZADD")
		w.model.next(j.key, at)
		w.arg(w.score(j.key, at))
		w.arg(w.element('m', at))
		w.wantNumber(':', 0)
	case x < 80:
		w.begin(j, false, "ZSCORE")
		w.arg(w.element('m', at))
		w.want = appendBulk(w.want, w.score(j.key, at))
	case x < 90:
		w.begin(j, false, "ZMSCORE")
		w.wantNumber('*', inReply)
		for range inReply {
			at = w.r.IntN(n)
			w.arg(w.element('m', at))
			w.want = appendBulk(w.want, w.score(j.key, at))
		}
	case x < 98 || n > large:
		w.begin(j, false, "ZCARD")
		w.wantNumber(':', n)
	default:
		w.begin(j, false, "ZRANGE")
		w.args("0", strconv.Itoa(inReply-1), "WITHSCORES")
		w.end()
		w.check(func(e load.Elements) bool {
			right, last := e.Array() == 2*inReply, 0
			for range inReply {
				at := number(e.Text())
				text := e.Text()
				right = right && string(text) == string(w.score(j.key, at)) && number(append([]byte("s"), text...)) >= last
				last = number(append([]byte("s"), text...))
			}
			return right
		})
		return
	}
	w.end()
}

func (w *worker) streamCommand(j job, write bool, n int) {
	from := max(n-w.r.IntN(20)-inReply, 0) // near the end, half of the time
	if w.r.IntN(2) == 0 {
		from = w.r.IntN(n - inReply)
	}
	switch x := w.r.IntN(100); {
	case write:
		w.begin(j, true, "XADD")
		w.entry(j.key, n)
		w.model.ends[j.key] = ends{0, n + 1}
	case x < 60:
		w.begin(j, false, "XRANGE")
		w.arg(w.id(from))
		w.arg(w.id(from + inReply - 1))
		w.wantNumber('*', inReply)
		for at := from; at < from+inReply; at++ {
			w.wantEntry(j.key, at)
		}
	case x < 80:
		w.begin(j, false, "XREVRANGE")
		w.args("+", "-", "COUNT", strconv.Itoa(inReply))
		w.wantNumber('*', inReply)
		for at := n - 1; at >= n-inReply; at-- {
			w.wantEntry(j.key, at)
		}
	default:
		w.begin(j, false, "XLEN")
		w.wantNumber(':', n)
	}
	w.end()
}

func (w *worker) wantEntry(key uint32, at int) {
	w.wantNumber('*', 2)
	w.want = appendBulk(w.want, w.id(at))
	w.wantNumber('*', 2)
	w.want = appendBulk(w.want, []byte("f"))
	w.want = appendBulk(w.want, w.current(key, at))
}

func (w *worker) listCommand(j job, write bool, n int) {
	e := w.model.endsOf(j.key)
	_, first := kind(j.key)
	at := w.r.IntN(n)
	switch w.r.IntN(4) { // near an end, half of the time
	case 0:
		at = min(at, w.r.IntN(2*inReply))
	case 1:
		at = max(at, n-1-w.r.IntN(2*inReply))
	}
	switch x := w.r.IntN(100); {
	case write && x < 20:
		w.begin(j, true, "LSET")
		w.args(strconv.Itoa(at))
		w.model.next(j.key, e.first+at)
		w.arg(w.current(j.key, e.first+at))
		w.want = append(w.want, "+OK\r\n"...)
	case write && n > first:
		w.begin(j, true, "LPOP")
		w.want = appendBulk(w.want, w.current(j.key, e.first))
		w.model.ends[j.key] = ends{e.first + 1, e.behind}
	case write:
		w.begin(j, true, "RPUSH")
		w.arg(w.current(j.key, e.behind))
		w.wantNumber(':', n+1)
		w.model.ends[j.key] = ends{e.first, e.behind + 1}
	case x < 50:
		w.begin(j, false, "LINDEX")
		w.args(strconv.Itoa(at))
		w.want = appendBulk(w.want, w.current(j.key, e.first+at))
	case x < 80:
		at = min(at, n-inReply)
		w.begin(j, false, "LRANGE")
		w.args(strconv.Itoa(at), strconv.Itoa(at+inReply-1))
		w.wantNumber('*', inReply)
		for i := range inReply {
			w.want = appendBulk(w.want, w.current(j.key, e.first+at+i))
		}
	default:
		w.begin(j, false, "LLEN")
		w.wantNumber(':', n)
	}
	w.end()
}

// element returns the name of a field or a member.
func (w *worker) element(kind byte, at int) []byte {
	w.name = strconv.AppendInt(append(w.name[:0], kind), int64(at), 10)
	return w.name
}

// number returns the number after the first character of a name, -1 if there is none.
func number(name []byte) int {
	if len(name) > 0 {
		if n, err := strconv.Atoi(string(name[1:])); err == nil {
			return n
		}
	}
	return -1
}

// id returns the ID of an entry.
func (w *worker) id(at int) []byte {
	w.name = append(strconv.AppendInt(w.name[:0], int64(at)+1, 10), "-0"...)
	return w.name
}

// content returns the content of a version of an element.
func (w *worker) content(key uint32, at int, version uint32, size int) []byte {
	w.value = appendValue(w.value[:0], key, at, version, size)
	return w.value
}

// current returns the content of an element.
func (w *worker) current(key uint32, at int) []byte {
	return w.content(key, at, w.model.version(key, at), elementSize)
}

// score returns the score of a member.
func (w *worker) score(key uint32, at int) []byte {
	w.value = strconv.AppendUint(w.value[:0], score(key, at, w.model.version(key, at)), 10)
	return w.value
}

// begin begins a command; its arguments, the expected reply and a call of end must follow.
func (w *worker) begin(j job, write bool, name string) {
	w.calls = append(w.calls, call{job: j, write: write, begin: len(w.out)})
	w.flat, w.flatEnds = w.flat[:0], w.flatEnds[:0]
	w.args(name)
	w.name = strconv.AppendUint(append(w.name[:0], 'k'), uint64(j.key), 36)
	w.arg(w.name)
}

func (w *worker) arg(b []byte) {
	w.flat = append(w.flat, b...)
	w.flatEnds = append(w.flatEnds, len(w.flat))
}

func (w *worker) args(list ...string) {
	for _, s := range list {
		w.arg([]byte(s))
	}
}

func (w *worker) wantNumber(kind byte, n int) { w.want = appendNumber(w.want, kind, n) }

func appendNumber(dst []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, kind), int64(n), 10), "\r\n"...)
}

func appendBulk(dst, b []byte) []byte {
	return append(append(appendNumber(dst, '$', len(b)), b...), "\r\n"...)
}

func (w *worker) end() {
	w.out = appendNumber(w.out, '*', len(w.flatEnds))
	begin := 0
	for _, end := range w.flatEnds {
		w.out = appendBulk(w.out, w.flat[begin:end])
		begin = end
	}
	c := &w.calls[len(w.calls)-1]
	c.end, c.want = len(w.out), len(w.want)
}

// check has a function check the reply to the last command. No other command is sent before that reply has come.
func (w *worker) check(right func(e load.Elements) bool) {
	w.calls[len(w.calls)-1].right = func(reply []byte) bool { return reply[0] == '*' && right(load.Elements(reply)) }
}

// exchange sends the commands and receives the replies.
func (w *worker) exchange() {
	sent := make(chan error, 1)
	go func() {
		_, err := w.conn.Write(w.out)
		sent <- err
	}()
	begin := 0
	for _, c := range w.calls {
		reply := w.reply()
		took := time.Since(c.due)
		want := w.want[begin:c.want]
		begin = c.want
		if right := c.right == nil && bytes.Equal(reply, want) || c.right != nil && c.right(reply); !right {
			if n := w.run.wrong.Add(1); n <= logged {
				log.Printf("wrong reply to %.100q: %.200q, want %.200q", w.out[c.begin:c.end], reply, want)
			}
		}
		w.in = w.in[len(reply):]
		w.run.count(took, c.write)
	}
	servers.Check(<-sent)
	w.run.commands.Add(int64(len(w.calls)))
	w.run.sent.Add(int64(len(w.out)))
	w.calls, w.out, w.want = w.calls[:0], w.out[:0], w.want[:0]
}

// reply returns the next reply. It stays in w.in.
func (w *worker) reply() []byte {
	for {
		n, err := w.scanner.Next(w.in)
		if err == nil && n > 0 {
			return w.in[:n]
		}
		servers.Check(err)
		const room = 64 << 10
		if cap(w.in)-len(w.in) < room/2 {
			w.in = append(make([]byte, 0, 2*len(w.in)+room), w.in...)
		}
		got, err := w.conn.Read(w.in[len(w.in):cap(w.in)])
		if err != nil {
			servers.Fatal(fmt.Errorf("connection %d: %w", w.number, err))
		}
		w.in = w.in[:len(w.in)+got]
	}
}
