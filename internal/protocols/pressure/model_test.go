package pressure_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/protocols/pressure"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/server"
)

// pressureModel has the invariants of queue q for arbitrary clients. Some use the commands on queues, others do the
// steps of the protocol; all connect, wait and disconnect at random.
type pressureModel struct {
	*pressureServer
	t         *rapid.T
	bound     int64
	clients   map[string]*pressureClient
	next      int             // names of clients, and messages
	sent      map[string]bool // messages, and whether their producer knows that they were accepted
	delivered map[string]int  // how often messages were given to consumers
	reserves  bool            // messages have been reserved
	closed    bool
}

// pressureClient is a client with one task.
type pressureClient struct {
	name string
	next func(reply string) (line string) // takes a reply and returns the next line, "" at the end
	line string                           // the last line sent, without a reply yet
	role string                           // the role whose element it knows that it has popped, or ""
	ids  []string                         // of messages that it has reserved
}

func (m *pressureModel) message() string {
	m.next++
	v := fmt.Sprintf("m%d", m.next)
	m.sent[v] = false
	return v
}

// deliver notes the messages in a reply.
func (m *pressureModel) deliver(reply string) {
	for _, w := range strings.Fields(reply) {
		if _, ok := m.sent[w]; ok {
			m.delivered[w]++
		}
	}
}

// put is a client that puts messages with one command.
func (m *pressureModel) put(c *pressureClient) {
	values := make([]string, rapid.IntRange(1, 3).Draw(m.t, "messages"))
	for i := range values {
		values[i] = m.message()
	}
	line := "PRESSURE.PUT q " + strings.Join(values, " ") +
		fmt.Sprintf(" TIMEOUT %d", rapid.SampledFrom([]int{0, 7, 30}).Draw(m.t, "timeout"))
	c.next = func(reply string) string {
		if reply == "" {
			return line
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(reply, ":")); err == nil {
			for _, v := range values[:n] {
				m.sent[v] = true
			}
			for _, v := range values[n:] {
				delete(m.sent, v)
			}
			return ""
		}
		require.True(m.t, reply == queueClosed && m.closed, reply)
		for _, v := range values {
			delete(m.sent, v)
		}
		return ""
	}
}

// get is a client that takes messages with one command, or reserves them and usually acknowledges or returns them.
func (m *pressureModel) get(c *pressureClient) {
	line := fmt.Sprintf("PRESSURE.GET q COUNT %d TIMEOUT %d", rapid.IntRange(1, 3).Draw(m.t, "count"),
		rapid.SampledFrom([]int{0, 7, 30}).Draw(m.t, "timeout"))
	reserve := m.reserves && rapid.Bool().Draw(m.t, "reserve")
	if reserve {
		line += fmt.Sprintf(" RESERVE %d", rapid.IntRange(1, 40).Draw(m.t, "ms"))
	}
	c.next = func(reply string) string {
		switch {
		case reply == "":
			return line
		case len(c.ids) > 0:
			n, err := strconv.Atoi(strings.TrimPrefix(reply, ":"))
			require.NoError(m.t, err)
			require.LessOrEqual(m.t, n, len(c.ids))
			return ""
		case reply == "*-1":
		case strings.HasPrefix(reply, "-"):
			require.True(m.t, reply == queueClosed && m.closed, reply)
		case !reserve:
			m.deliver(reply)
		default:
			c.ids = reservedIDs(reply)
			require.NotEmpty(m.t, c.ids)
			return rapid.SampledFrom([]string{"PRESSURE.RETURN q ", "PRESSURE.ACK q "}).Draw(m.t, "end") +
				strings.Join(c.ids, " ")
		}
		return ""
	}
}

// produce is a client that puts a message with the steps of the protocol.
func (m *pressureModel) produce(c *pressureClient) {
	v, step, length := m.message(), 0, int64(0)
	c.next = func(reply string) string {
		step++
		switch step {
		case 1:
			return "BRPOP $:producer_free 0"
		case 2:
			c.role = ":producer_free"
			return "SET $:producer " + c.name
		case 3:
			return "EXISTS $:closed"
		case 4:
			if reply == ":1" {
				delete(m.sent, v)
				step, c.role = 8, ""
				return "LPUSH $:producer_free 0"
			}
			return "BRPOP $:not_full 0"
		case 5:
			return "LPUSH $ " + v
		case 6:
			length, _ = strconv.ParseInt(reply[1:], 10, 64)
			m.sent[v] = true
			return "INCR $:stats:produced_messages"
		case 7:
			if m.bound == 0 || length < m.bound {
				return "EVAL redis.call('LPUSH',KEYS[1],0);return(redis.call('LTRIM',KEYS[1],0,0)) 1 $:not_full"
			}
			return "PING"
		case 8:
			c.role = ""
			return "LPUSH $:producer_free 0"
		}
		return ""
	}
}

// consume is a client that takes a message with the steps of the protocol.
func (m *pressureModel) consume(c *pressureClient) {
	step := 0
	c.next = func(reply string) string {
		step++
		switch step {
		case 1:
			return "BRPOP $:consumer_free 0"
		case 2:
			c.role = ":consumer_free"
			return "SET $:consumer " + c.name
		case 3:
			return "EVAL return(redis.call('EXISTS',KEYS[1])*(redis.call('LLEN',KEYS[2])+1)) 2 $:closed $"
		case 4:
			switch reply {
			case ":0":
				return "BRPOP $ $:closed 0"
			case ":1":
				step, c.role = 6, ""
				return "LPUSH $:consumer_free 0"
			}
			return "BRPOP $ 0"
		case 5:
			if strings.HasPrefix(reply, "*2 $:closed") {
				step, c.role = 6, ""
				return "LPUSH $:consumer_free 0"
			}
			m.deliver(reply)
			return "EVAL redis.call('LPUSH',KEYS[1],0);return(redis.call('LTRIM',KEYS[1],0,0)) 1 $:not_full"
		case 6:
			c.role = ""
			return "LPUSH $:consumer_free 0"
		}
		return ""
	}
}

// proceed lets a client take its reply, if it is there, and send its next line.
func (m *pressureModel) proceed(c *pressureClient) {
	reply := ""
	if c.line != "" {
		if reply = m.step(c.name); reply == "" {
			return
		}
	}
	if c.line = c.next(reply); c.line == "" {
		m.leave(c.name)
		return
	}
	line := strings.ReplaceAll(c.line, "$", "__pressure__:q")
	m.client(c.name)
	m.Client(c.name).Input(commandtest.Request(strings.Fields(line)...), m.Now()) // its reply is for the next step
	m.Advance()
}

// die disconnects a client in the middle of its task. A message that was already taken for it may be lost.
func (m *pressureModel) die(c *pressureClient) {
	if !strings.Contains(c.line, "RESERVE") {
		m.deliver(m.step(c.name))
	}
	m.leave(c.name)
}

// leave closes a client's connection.
func (m *pressureModel) leave(name string) {
	delete(m.clients, name)
	m.Hangup(name)
}

// check checks the invariants that hold at every instant.
func (m *pressureModel) check() {
	var reserved int
	m.underQueue(func(length func(suffix string) int) {
		reserved = length(":reserved")
		for _, role := range []string{":producer_free", ":consumer_free"} {
			holder := pressure.Of(m.Server).Holder(0, "__pressure__:q"+role)
			taken := 0
			if holder != nil {
				taken = 1
			}
			require.Equal(m.t, 1, length(role)+taken, "%s is free or somebody's", role)
			for _, c := range m.clients {
				if c.role == role {
					require.Same(m.t, m.Client(c.name), holder, "%s of %s", role, c.name)
				}
			}
		}
		// In the protocol a consumer announces room after it has made it, without checking that the room still
		// exists. Between the two steps producers can fill the queue, and one more message gets in.
		if m.bound > 0 && !m.reserves {
			require.LessOrEqual(m.t, int64(length("")), m.bound+1)
		}
	})
	if !m.reserves {
		require.Zero(m.t, reserved)
	}
}

// underQueue calls fn under a guard of the queue; length returns the number of elements of a key.
func (m *pressureModel) underQueue(fn func(length func(suffix string) int)) {
	var g engine.Guard
	g.Lock(m.Keyspace(), engine.AllShards, m.Now())
	defer g.Unlock()
	fn(func(suffix string) int {
		switch e := g.Peek(0, []byte("__pressure__:q"+suffix)); {
		case e == nil:
			return 0
		case e.Type() == engine.Hash:
			return e.Hash().Len()
		default:
			return e.List().Len()
		}
	})
}

// settle runs all clients until they wait for others, and checks that each one waits for a reason.
func (m *pressureModel) settle() {
	for range 100 {
		for _, name := range slices.Sorted(maps.Keys(m.clients)) {
			m.proceed(m.clients[name])
			m.check()
		}
	}
	state := fmt.Sprint(m.Dump())
	for _, c := range m.clients {
		state += fmt.Sprintf("\n%s: %s", c.name, c.line)
	}
	m.underQueue(func(length func(suffix string) int) {
		for _, c := range m.clients {
			// A client may wait for the producer's role, but then the producer must wait for room.
			if c.line == "BRPOP $:not_full 0" || strings.HasPrefix(c.line, "PRESSURE.PUT") ||
				c.line == "BRPOP $:producer_free 0" {
				require.True(m.t, m.bound > 0 && int64(length("")+length(":reserved")) >= m.bound, "%s waits\n%s", c.name, state)
			}
			if strings.HasPrefix(c.line, "PRESSURE.GET") || strings.HasPrefix(c.line, "BRPOP $ ") ||
				c.line == "BRPOP $:consumer_free 0" {
				require.Zero(m.t, length(""), "%s waits\n%s", c.name, state)
			}
		}
	})
}

// contents returns the messages in the queue and in reserve.
func (m *pressureModel) contents() (out []string) {
	out = strings.Fields(m.step("look LRANGE $ 0 -1"))[1:]
	for _, w := range strings.Fields(m.step("look HVALS $:reserved"))[1:] {
		if strings.HasPrefix(w, "m") {
			out = append(out, w)
		}
	}
	return out
}

// TestPressureQueuesSurviveTheirClients lets clients of all kinds come and go at random. At every instant each role
// is held once or free, accepted messages are not lost, and afterwards the queue works for all clients.
func TestPressureQueuesSurviveTheirClients(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		m := &pressureModel{t: t, clients: map[string]*pressureClient{}, sent: map[string]bool{}, delivered: map[string]int{}}
		m.pressureServer = newPressureServer(t, "shards", rapid.SampledFrom([]string{"1", "16"}).Draw(t, "shards"))
		m.bound = int64(rapid.IntRange(0, 3).Draw(t, "bound"))
		m.reserves = rapid.Bool().Draw(t, "reserves")
		m.step(fmt.Sprintf("look PRESSURE.CREATE q BOUND %d", m.bound))
		names := func() []string { return slices.Sorted(maps.Keys(m.clients)) }
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			all := names()
			switch action := rapid.IntRange(0, 19).Draw(t, "action"); {
			case action < 6 && len(all) < 6 || len(all) == 0:
				m.next++
				c := &pressureClient{name: fmt.Sprintf("c%d", m.next)}
				rapid.SampledFrom([]func(*pressureClient){m.put, m.get, m.produce, m.consume}).Draw(t, "kind")(c)
				m.clients[c.name] = c
				m.proceed(c)
			case action == 6:
				m.step(fmt.Sprintf("+%d", rapid.IntRange(1, 10).Draw(t, "ms")))
			case action == 7:
				m.die(m.clients[rapid.SampledFrom(all).Draw(t, "dies")])
			case action == 8 && rapid.IntRange(0, 9).Draw(t, "close") == 0 && !m.closed:
				if m.step("look PRESSURE.CLOSE q TIMEOUT 1") == "" {
					m.step("+1")
					m.step("look")
				}
				m.closed = m.step("look EXISTS $:closed") == ":1"
			default:
				m.proceed(m.clients[rapid.SampledFrom(all).Draw(t, "client")])
			}
			m.check()
		}

		m.settle()
		for _, name := range names() {
			m.die(m.clients[name])
			m.check()
		}
		m.step("+100") // what is reserved comes back
		require.Equal(t, ":0", m.info("reserved"))
		contents := m.contents()
		for v, accepted := range m.sent {
			n := m.delivered[v]
			for _, in := range contents {
				if in == v {
					n++
				}
			}
			require.LessOrEqual(t, n, 1, v)
			if accepted && !m.reserves {
				require.Equal(t, 1, n, v)
			}
		}
		m.usable(len(contents))
		m.Finish()
	})
}

// usable checks that the queue with so many messages can be used by clients of both kinds.
func (m *pressureModel) usable(messages int) {
	for range messages {
		m.require("*2", "a BRPOP $:consumer_free 0")
		m.require("*2", "a BRPOP $ 0")
		m.require(":", "a LPUSH $:not_full 0")
		m.require("+OK", "a LTRIM $:not_full 0 0")
		m.require(":", "a LPUSH $:consumer_free 0")
	}
	if !m.closed {
		for range 2 {
			m.require("*2", "a BRPOP $:producer_free 0")
			m.require("*2", "a BRPOP $:not_full 0")
			m.require(":1", "a LPUSH $ steps")
			if m.bound != 1 {
				m.require(":", "a LPUSH $:not_full 0")
				m.require("+OK", "a LTRIM $:not_full 0 0")
			}
			m.require(":1", "a LPUSH $:producer_free 0")
			m.require("steps", "a PRESSURE.GET q")
			m.require(":1", "a PRESSURE.PUT q native")
			m.require("native", "a PRESSURE.GET q")
		}
		m.require("+OK", "a PRESSURE.CLOSE q")
	}
	m.require(queueClosed, "a PRESSURE.GET q")
	m.require("+OK", "a PRESSURE.DELETE q")
	require.Empty(m.t, m.keys())
}

func (m *pressureModel) require(prefix, line string) {
	reply := m.step(line)
	require.True(m.t, strings.HasPrefix(reply, prefix) && reply != "", "%s: %q", line, reply)
}

// Clients of both kinds at once, over sockets; some are killed. Every accepted message arrives once, in order,
// except those on their way to a killed client.
func TestPressureQueuesUnderConcurrency(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		control := s.Connect()
		require.Equal(t, "+OK", control.Line("PRESSURE.CREATE q BOUND 2"))
		const key = "__pressure__:q"
		const each = 60
		var producers, consumers, killers sync.WaitGroup
		for i := range 4 {
			c := s.Connect()
			producers.Go(func() {
				for n := range each {
					v := fmt.Sprintf("%d.%d", i, n)
					if i%2 == 0 {
						c.Line("PRESSURE.PUT q " + v)
						continue
					}
					c.Line("BRPOP " + key + ":producer_free 0")
					c.Line("SET " + key + ":producer me")
					c.Line("BRPOP " + key + ":not_full 0")
					if c.Line("LPUSH "+key+" "+v) == "1" {
						c.Line("EVAL redis.call('LPUSH',KEYS[1],0);return(redis.call('LTRIM',KEYS[1],0,0)) 1 " + key + ":not_full")
					}
					c.Line("LPUSH " + key + ":producer_free 0")
				}
			})
		}
		got := make([][]string, 4)
		for i := range got {
			c := s.Connect()
			consumers.Go(func() {
				for {
					var v string
					if i%2 == 0 {
						v = c.Line("PRESSURE.GET q")
					} else {
						c.Line("BRPOP " + key + ":consumer_free 0")
						if c.Line("EXISTS "+key+":closed") == "1" && c.Line("LLEN "+key) == "0" {
							v = queueClosed
						} else if v = c.Line("BRPOP " + key + " " + key + ":closed 0"); strings.Contains(v, ":closed") {
							v = queueClosed
						} else {
							v = strings.Split(v, `"`)[3]
							c.Line("EVAL redis.call('LPUSH',KEYS[1],0);return(redis.call('LTRIM',KEYS[1],0,0)) 1 " + key + ":not_full")
						}
						c.Line("LPUSH " + key + ":consumer_free 0")
					}
					if v == queueClosed {
						return
					}
					got[i] = append(got[i], v)
				}
			})
		}
		for i := range 2 {
			killers.Go(func() {
				for range 30 {
					c := s.Connect()
					for _, list := range [][]string{{":producer_free", ":not_full"}, {":consumer_free"}}[i] {
						c.Line("BRPOP " + key + list + " 0")
					}
					c.Close()
				}
			})
		}
		producers.Wait()
		require.Equal(t, "+OK", control.Line("PRESSURE.CLOSE q"))
		consumers.Wait()
		killers.Wait()
		seen := map[string]bool{}
		for _, list := range got {
			last := [4]int{-1, -1, -1, -1}
			for _, v := range list {
				var i, n int
				_, err := fmt.Sscanf(v, "%d.%d", &i, &n)
				require.NoError(t, err)
				require.Greater(t, n, last[i])
				last[i] = n
				require.False(t, seen[v], v)
				seen[v] = true
			}
		}
		require.Len(t, seen, 4*each)
		require.Equal(t, "+OK", control.Line("PRESSURE.DELETE q"))
		require.Equal(t, "0", control.Line("DBSIZE"))
	})
}
