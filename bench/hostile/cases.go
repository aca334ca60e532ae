//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// hostileCase is one kind of hostile client.
type hostileCase struct {
	name   string
	args   []string // of both servers; data stays in memory unless they say otherwise
	ours   bool     // redis-server has nothing comparable
	quiet  bool     // the bystander sends very little: the server's background work is measured
	fill   func(s *servers.Server)
	attack func(a *attack)
}

// quietRate is the rate of a quiet bystander.
const quietRate = 5

const (
	million  = 1_000_000
	mib      = 1 << 20
	password = "secret"
)

var limited = []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}

var cases = []hostileCase{
	{name: "unauth-ping", attack: unauthenticated("PING\r\n")},
	{name: "unauth-get", attack: unauthenticated("*2\r\n$3\r\nGET\r\n$1\r\na\r\n")},
	{name: "unauth-conns", attack: claims(2000, true, "*2\r\n$3\r\nGET\r\n$16384\r\n", 16000)},
	{name: "unread-gets", args: limited, fill: keys(100_000), attack: unreadGets},
	{name: "sort", fill: numbers, attack: asks("SORT", "numbers", "LIMIT", "0", "10")},
	{name: "sort-alpha", fill: numbers, attack: asks("SORT", "numbers", "ALPHA", "LIMIT", "0", "10")},
	{name: "eval-3mb", attack: eval("return " + strings.Repeat("a..", million) + "a")},
	{name: "eval-parens", attack: eval("return " + strings.Repeat("(", million) + "1" + strings.Repeat(")", million))},
	{name: "eval-tables", attack: eval("return " + strings.Repeat("{", million) + strings.Repeat("}", million))},
	{name: "eval-wrong", attack: eval(strings.Repeat("a=1 ", 700_000) + "=")},
	{name: "eval-long", attack: eval(strings.Repeat("x = {1,2,'b'}\n", 200_000))},
	{name: "set-400mb", args: servers.Durability("everysec"), attack: values(1, 400*mib)},
	{name: "set-3x500mb", args: servers.Durability("everysec"), attack: values(3, 500*mib)},
	{name: "evict", args: limited, fill: keys(600_000), attack: evict},
	{name: "ttl-idle", quiet: true, fill: expiring, attack: func(a *attack) { a.hold(10 * time.Second) }},
	{name: "function-kill", args: []string{"--busy-reply-threshold", "50"}, attack: functionKill},
	{name: "half-commands", attack: claims(5000, false, "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$100000\r\n", 10_000)},
	{name: "claim-512mb", attack: claims(200, false, "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$536870912\r\n", 0)},
	{name: "claim-args", attack: claims(200, false, "*1048576\r\n", 0)},
	{name: "inline", attack: inline},
	{name: "keys-unread", fill: keys(300_000), attack: unread(10, 1, "KEYS", "*")},
	{name: "lrange-unread", fill: numbers, attack: unread(10, 1, "LRANGE", "numbers", "0", "-1")},
	{name: "hgetall-unread", fill: hash, attack: unread(10, 1, "HGETALL", "hash")},
	{name: "xrange-unread", fill: stream, attack: unread(10, 1, "XRANGE", "stream", "-", "+")},
	{name: "multi-million", attack: queued},
	{name: "subscribe-slow", attack: subscribers},
	{name: "monitor-slow", attack: monitors},
	{name: "connects", attack: connects},
	{name: "glob", fill: func(s *servers.Server) { s.Do("SET", strings.Repeat("a", 5000), "1") },
		attack: asks("KEYS", strings.Repeat("a*", 100)+"b")},
	{name: "flush", fill: keys(million), attack: asks("FLUSHALL", "SYNC")},
}

// keys fills a server with n strings of 64 bytes.
func keys(n int) func(s *servers.Server) {
	return func(s *servers.Server) {
		s.Fill(n, func(dst []byte, i int) []byte {
			return servers.AppendCommand(dst, "SET", servers.Key(i), servers.Value(i, 0))
		})
	}
}

// numbers makes a list of a million numbers in no order.
func numbers(s *servers.Server) {
	const each = 100
	s.Fill(million/each, func(dst []byte, i int) []byte {
		args := []string{"RPUSH", "numbers"}
		for k := range each {
			args = append(args, strconv.Itoa((i*each+k)*73_939_133%100_000_000))
		}
		return servers.AppendCommand(dst, args...)
	})
}

func hash(s *servers.Server) {
	s.Fill(300_000, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "HSET", "hash", servers.Key(i), servers.Value(i, 0))
	})
}

func stream(s *servers.Server) {
	s.Fill(200_000, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "XADD", "stream", "*", "field", servers.Value(i, 0))
	})
}

// expiring makes a million keys that expire, none of them soon.
func expiring(s *servers.Server) {
	s.Fill(million, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "SET", servers.Key(i), "v", "EX", strconv.Itoa(1000+i%5000))
	})
}

// asks sends one command and reads its reply.
func asks(args ...string) func(a *attack) {
	return func(a *attack) {
		begun := time.Now()
		reply := a.ask(args...)
		a.note("%.20s after %.2f s", reply, time.Since(begun).Seconds())
	}
}

func eval(script string) func(a *attack) {
	return func(a *attack) {
		begun := time.Now()
		reply := a.ask("EVAL", script, "0")
		if len(reply) > 100 {
			reply = "…" + reply[len(reply)-60:]
		}
		a.note("%d KB: %s after %.2f s", len(script)>>10, reply, time.Since(begun).Seconds())
	}
}

// whileLocked makes the server require a password while do runs.
func whileLocked(a *attack, do func()) {
	admin := a.Dial()
	defer admin.Close()
	admin.Do("CONFIG", "SET", "requirepass", password)
	do()
	admin.Do("CONFIG", "SET", "requirepass", "")
}

// unauthenticated is a client that does not authenticate, sends 150 MB of a command and reads nothing.
func unauthenticated(text string) func(a *attack) {
	return func(a *attack) {
		whileLocked(a, func() {
			if c := a.dial(); c != nil {
				a.flood(c, text, 150*mib)
			}
			a.hold(2 * time.Second)
		})
	}
}

// claims opens n connections that send the beginning of a command followed by more bytes, and wait.
func claims(n int, locks bool, text string, more int) func(a *attack) {
	claim := func(a *attack) {
		b := append([]byte(text), piece[:more]...)
		opened := 0
		for range n {
			if c := a.dial(); c != nil {
				c.Write(b)
				opened++
			}
		}
		a.hold(2 * time.Second)
		a.note("%d connections", opened)
	}
	if !locks {
		return claim
	}
	return func(a *attack) { whileLocked(a, func() { claim(a) }) }
}

// unreadGets asks 2,000 times for one value of 100 KB and reads nothing.
func unreadGets(a *attack) {
	a.Do("SET", "value", string(piece[:100_000]))
	before := a.Do("DBSIZE")
	unread(20, 100, "GET", "value")(a)
	a.note("keys %s before, %s after, evicted %s", before, a.Do("DBSIZE"), info(a.Server, "evicted_keys"))
}

// unread is n clients that each send a command times times, and read nothing.
func unread(n, times int, args ...string) func(a *attack) {
	return func(a *attack) {
		text := strings.Repeat(string(servers.AppendCommand(nil, args...)), times)
		for range n {
			if c := a.dial(); c != nil {
				c.(*net.TCPConn).SetReadBuffer(16 << 10)
				go io.WriteString(c, text)
			}
		}
		a.hold(3 * time.Second)
	}
}

// values sends n values of size bytes at the same time.
func values(n, size int) func(a *attack) {
	return func(a *attack) {
		begun := time.Now()
		var all sync.WaitGroup
		replies := make([]string, n)
		for i := range n {
			c := &attack{Server: a.Server, until: a.until}
			all.Go(func() {
				defer c.close()
				replies[i] = c.value(size, "SET", fmt.Sprint("value", i))
			})
		}
		all.Wait()
		a.note("%s after %.2f s", strings.Join(replies, " "), time.Since(begun).Seconds())
	}
}

// evict writes new keys, for which old ones must be evicted.
func evict(a *attack) {
	const n = 500_000
	begun := time.Now()
	a.Fill(n, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "SET", servers.Key(million+i), servers.Value(i, 0))
	})
	a.note("%d SET in %.2f s, evicted %s", n, time.Since(begun).Seconds(), info(a.Server, "evicted_keys"))
}

// functionKill runs an endless function and kills it, ten times, and counts the clients that get BUSY after the kill
// was acknowledged.
func functionKill(a *attack) {
	a.Do("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', callback=function() while true do end end, flags={'no-writes'}}")
	admin, other := a.Dial(), a.Dial()
	defer admin.Close()
	defer other.Close()
	busy, killed := 0, 0
	for range 10 {
		c := a.dial()
		if c == nil {
			break
		}
		a.send(c, "FCALL", "f", "0")
		time.Sleep(100 * time.Millisecond)
		admin.Write(servers.AppendCommand(nil, "FUNCTION", "KILL"))
		if reply, _ := admin.Reply(); reply == "+OK" {
			killed++
		}
		for range 10 {
			other.Write(servers.AppendCommand(nil, "GET", "a"))
			if reply, _ := other.Reply(); strings.HasPrefix(reply, "-BUSY") {
				busy++
			}
		}
		first(bufio.NewReader(c))
		c.Close()
	}
	a.note("killed %d times, BUSY after OK %d times of 100", killed, busy)
}

// inline sends lines that do not end.
func inline(a *attack) {
	for range 20 {
		if c := a.dial(); c != nil {
			for range 10 {
				if _, err := c.Write(piece); err != nil {
					break
				}
			}
		}
	}
	a.hold(time.Second)
}

// queued queues a million commands, twice; one of the clients executes them.
func queued(a *attack) {
	text := []byte(strings.Repeat(string(servers.AppendCommand(nil, "SET", "key", servers.Value(1, 1))), 1000))
	for _, end := range []string{"DISCARD", "EXEC"} {
		c := a.dial()
		if c == nil {
			return
		}
		go io.Copy(io.Discard, c)
		a.send(c, "MULTI")
		for range 1000 {
			if _, err := c.Write(text); err != nil {
				break
			}
		}
		a.send(c, end)
	}
	a.hold(3 * time.Second)
}

// subscribers do not read the published messages.
func subscribers(a *attack) {
	for range 10 {
		if c := a.dial(); c != nil {
			c.(*net.TCPConn).SetReadBuffer(16 << 10)
			a.send(c, "SUBSCRIBE", "channel")
		}
	}
	message := string(piece[:1000])
	a.Fill(100_000, func(dst []byte, _ int) []byte { return servers.AppendCommand(dst, "PUBLISH", "channel", message) })
	a.hold(time.Second)
}

// monitors do not read the commands of others.
func monitors(a *attack) {
	for range 10 {
		if c := a.dial(); c != nil {
			c.(*net.TCPConn).SetReadBuffer(16 << 10)
			a.send(c, "MONITOR")
		}
	}
	value := string(piece[:100])
	a.Fill(200_000, func(dst []byte, _ int) []byte { return servers.AppendCommand(dst, "SET", "key", value) })
	a.hold(time.Second)
}

// connects opens ten thousand connections, one after the other, and closes them.
func connects(a *attack) {
	n := 0
	for ; n < 10_000 && !a.over(); n++ {
		c, err := net.Dial("tcp", a.Addr)
		if err != nil {
			break
		}
		a.send(c, "PING")
		c.(*net.TCPConn).SetLinger(0) // leaves no port in TIME_WAIT
		c.Close()
	}
	a.note("%d connections", n)
}
