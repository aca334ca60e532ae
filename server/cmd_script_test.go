package server

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/commands/scripts"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/resp"
)

// scriptLimit is the busy-reply-threshold of the tests in ms.
const scriptLimit = "5"

// send sends a command and does not wait for the reply.
func (c *testClient) send(args ...string) {
	c.Append(args...)
	require.NoError(c.t, c.Flush())
}

// eval sends a script without keys and does not wait for the reply.
func (c *testClient) eval(source string) { c.send("EVAL", source, "0") }

// untilBusy sends PING until the server says that it is busy with a script.
func (c *testClient) untilBusy() {
	c.t.Helper()
	c.waitFor("PING", "-BUSY")
}

// endless are scripts that do not end, and do not want to be ended.
var endless = map[string]string{
	"loop":                  "while true do end",
	"pcall":                 "while true do pcall(function() while true do end end) end",
	"xpcall":                "while true do xpcall(function() while true do end end, function() while true do end end) end",
	"coroutine":             "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
	"wrap":                  "while true do pcall(coroutine.wrap(function() while true do end end)) end",
	"coroutine in pcall":    "pcall(function() coroutine.wrap(function() pcall(function() while true do end end) while true do end end)() end) while true do end",
	"call":                  "while true do redis.pcall('get', 'x') end",
	"pattern":               "return string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40) .. 'b')",
	"pattern in pcall":      "while true do pcall(string.find, string.rep('a', 1e6), '.-.-.-b') end",
	"balanced":              "return string.find(string.rep('(', 1e7), '%b()')",
	"sort":                  "table.sort({1, 2, 3}, function() while true do end end)",
	"metamethod":            "return setmetatable({}, {__index = function() while true do end end}).x",
	"tostring":              "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
	"reply without end":     "local t = {}; t[1] = t; t[2] = t; return t",
	"recursion":             "local function f(n) if n > 0 then f(n - 1); f(n - 1) end end; f(1000)",
	"tail calls":            "local function f() return f() end; return f()",
	"goto of numbers":       "for i = 1, math.huge do end",
	"error in a loop":       "while true do pcall(error, {err = 'x'}) end",
	"load":                  "return load(function() return ' ' end)",
	"next":                  "local t = {}; for i = 1, 100 do t[i] = i end; while true do for k, v in pairs(t) do end end",
	"gsub":                  "return string.gsub(string.rep('x', 1e6), 'x', function() while true do end end)",
	"foreach":               "while true do table.foreach({1}, function() end) end",
	"function of Go":        "local t = {}; for i = 1, 100 do t[i] = i end; while true do table.foreach(t, type) end",
	"recursion of pcall":    "local function f() pcall(f); pcall(f) end; f()",
	"handler that fails":    "while true do xpcall(error, error) end",
	"many short coroutines": "while true do coroutine.wrap(function() end)() end",
}

func TestScriptKillEndsWhateverScript(t *testing.T) {
	s := startTestServer(t, Options{}, "busy-reply-threshold", scriptLimit)
	runner, other := s.connect(), s.connect()
	for name, source := range endless {
		runner.eval(source)
		other.untilBusy()
		began := time.Now()
		require.Equal(t, "+OK", other.do("SCRIPT KILL"), name)
		reply := runner.read()
		require.Regexp(t, `^-ERR Script killed by user with SCRIPT KILL\.\.\. script: [0-9a-f]{40}(, on @?user_script:\d+\.)?$`, reply, name)
		t.Log(name, "ended after", time.Since(began))
		require.Equal(t, "+PONG", other.do("PING"), name)
	}
	require.Equal(t, "3", runner.do("EVAL return(1+2) 0"))
}

func TestClientsAreToldThatAScriptRuns(t *testing.T) {
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other, transaction := s.connect(), s.connect(), s.connect()
		require.Equal(t, "-NOTBUSY No scripts in execution right now.", other.do("SCRIPT KILL"))
		require.Equal(t, "+OK", transaction.do("MULTI"))
		require.Equal(t, "+QUEUED", transaction.do("SET k v"))
		runner.eval("while true do end")
		other.untilBusy()
		for _, command := range []string{"GET k", "PING", "INFO", "CONFIG GET maxmemory", "FLUSHALL", "EVAL return(1) 0",
			"SCRIPT FLUSH", "SHUTDOWN"} {
			require.Equal(t, busy, other.do(command), command)
		}
		require.Equal(t, "-EXECABORT Transaction discarded because of: "+busy[1:], transaction.do("EXEC"))
		require.Equal(t, "+OK", transaction.do("MULTI"))
		require.Equal(t, "+OK", transaction.do("DISCARD"))
		third := s.connect() // new clients are served too
		require.Equal(t, busy, third.do("PING"))
		require.Equal(t, "+OK", third.do("SCRIPT KILL"))
		require.Contains(t, runner.read(), "-ERR Script killed by user")
		require.Equal(t, "", third.do("GET k"))
		require.Equal(t, "+PONG", runner.do("PING"))
	})
}

func TestWritersCannotBeKilled(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other := s.connect(), s.connect()
		kill := "+OK"
		for tries := 0; kill == "+OK" && tries < 100; tries++ { // on a slow machine it may be killed before it writes
			if tries > 0 {
				require.Contains(t, runner.read(), "-ERR Script killed")
			}
			runner.eval("redis.call('set', 'k', 'v'); while true do end")
			other.untilBusy()
			kill = other.do("SCRIPT KILL")
		}
		require.Regexp(t, "^-UNKILLABLE ", kill)
		other.send("SHUTDOWN", "NOSAVE")
		select {
		case <-s.Done():
		case <-time.After(testTimeout):
			t.Fatal("SHUTDOWN NOSAVE does not end a script")
		}
	})
}

// Those who wait for the keyspace when the script exceeds its limit do not keep others from being answered.
func TestClientsThatWaitForAScriptHoldNobodyUp(t *testing.T) {
	for _, loops := range []string{"1", "2"} {
		s := startTestServer(t, Options{}, "busy-reply-threshold", "30", "io-threads", loops, "shards", "4")
		runner := s.connect()
		var watchers, waiters []*testClient
		for range 4 {
			watchers = append(watchers, s.connect())
			waiters = append(waiters, s.connect())
		}
		last := s.connect()
		require.Equal(t, "+OK", watchers[0].do("WATCH w"))
		blocked := s.connect()
		blocked.send("BLPOP", "list", "0.02")
		last.waitFor("CLIENT LIST", "cmd=blpop")
		runner.eval("while true do end")
		for i, c := range waiters {
			c.send("SET", fmt.Sprint("k", i), "v")
		}
		last.untilBusy()
		for _, c := range watchers {
			require.Equal(t, "+OK", c.do("WATCH k1"))
		}
		watchers[0].Close()
		require.Equal(t, "+OK", last.do("SCRIPT KILL"))
		require.Contains(t, runner.read(), "-ERR Script killed")
		for i, c := range waiters {
			if reply := c.read(); !strings.HasPrefix(reply, "-BUSY") {
				require.Equal(t, "+OK", reply, i)
			}
		}
		for _, c := range watchers[1:] {
			require.Equal(t, "+PONG", c.do("PING"))
		}
		require.Equal(t, "nil[]", blocked.read())
		for _, c := range append(waiters, runner, blocked) {
			require.Equal(t, "+PONG", c.do("PING"))
		}
	}
}

// What may be used while a script runs is answered at once, and what is refused too, although watched keys are the
// script's.
func TestTransactionsWhileAScriptRuns(t *testing.T) {
	const aborted = "-EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. " +
		"You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other, writer := s.connect(), s.connect(), s.connect()
		conns := map[string]*testClient{}
		at := func(name, command, want string) {
			t.Helper()
			if conns[name] == nil {
				conns[name] = s.connect()
			}
			require.Equal(t, want, conns[name].do(command), name+": "+command)
		}
		for _, name := range []string{"unwatch", "discard", "reset", "exec", "queue", "gone"} {
			at(name, "WATCH k", "+OK")
		}
		for _, name := range []string{"discard", "exec", "queue"} {
			at(name, "MULTI", "+OK")
			at(name, "SET k v", "+QUEUED")
		}
		runner.eval("while true do end")
		other.untilBusy()
		at("untouched", "WATCH k k j", "+OK")
		at("touched", "WATCH k j", "+OK")
		at("given up", "WATCH k j", "+OK")
		at("given up", "UNWATCH", "+OK")
		at("unwatch", "UNWATCH", "+OK")
		at("discard", "DISCARD", "+OK")
		at("reset", "RESET", "+RESET")
		at("exec", "EXEC", aborted)
		at("queue", "UNWATCH", "+QUEUED")
		at("queue", "GET k", "-"+string(scripts.ErrBusyScript))
		conns["gone"].Close()
		delete(conns, "gone")
		require.Equal(t, "+OK", other.do("SCRIPT KILL"))
		require.Contains(t, runner.read(), "-ERR Script killed")
		require.Equal(t, "+OK", writer.do("SET j v"))
		for _, name := range []string{"unwatch", "discard", "reset", "exec", "given up"} {
			at(name, "MULTI", "+OK")
			at(name, "EXEC", "[]")
		}
		at("queue", "EXEC", "-EXECABORT Transaction discarded because of previous errors.")
		at("touched", "MULTI", "+OK")
		at("touched", "EXEC", "nil[]")
		at("untouched", "UNWATCH", "+OK")

		// A watch that the server promised while the script could still write does not hold beyond its writes.
		var g engine.Guard
		s.scripts.Expect(engine.AllShards)
		g.Lock(s.ks, engine.AllShards, s.ks.Now())
		s.scripts.Begin(scripts.Running{})
		require.True(t, s.scripts.MayWrite())
		other.untilBusy()
		at("untouched", "WATCH k", "+OK")
		s.scripts.End(&g)
		g.Unlock()
		at("untouched", "MULTI", "+OK")
		at("untouched", "EXEC", "nil[]")
		for name, c := range conns {
			require.Equal(t, "+PONG", c.do("PING"), name)
		}
		other.waitFor("INFO clients", "total_watched_keys:0")
	})
}

// TestClientsReadTogetherWithAScriptAreServed has what several clients send be there before any of it is executed,
// and one of them keep the loop.
func TestClientsReadTogetherWithAScriptAreServed(t *testing.T) {
	s := startTestServer(t, Options{}, "busy-reply-threshold", scriptLimit, "enable-debug-command", "yes")
	sleeper, runner, last := s.connect(), s.connect(), s.connect()
	var others []*testClient
	for range 2 * 16 {
		others = append(others, s.connect())
	}
	sleeper.send("DEBUG", "SLEEP", "0.1")
	for i, c := range others {
		if i == len(others)/2 {
			runner.eval("while true do end")
		}
		c.send("GET", "k")
	}
	last.untilBusy()
	for _, c := range others {
		if reply := c.read(); reply != "nil" {
			require.Regexp(t, "^-BUSY ", reply)
		}
	}
	require.Equal(t, "+OK", last.do("SCRIPT KILL"))
	require.Contains(t, runner.read(), "-ERR Script killed")
	require.Equal(t, "+OK", sleeper.read())
	for _, c := range append(others, runner) {
		require.Equal(t, "+PONG", c.do("PING"))
	}
}

// Who comes after the reply to a kill is never told that the server is busy.
func TestNobodyIsToldBusyAfterAKill(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		loader := s.connect()
		loader.send("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', callback=function() while true do end end, flags={'no-writes'}}")
		require.Equal(t, `"l"`, loader.read())
		runner, other, third := s.connect(), s.connect(), s.connect()
		for _, c := range []struct{ run, kill []string }{
			{[]string{"FCALL", "f", "0"}, []string{"FUNCTION", "KILL"}},
			{[]string{"EVAL", endless["loop"], "0"}, []string{"SCRIPT", "KILL"}},
			{[]string{"EVAL", endless["pcall"], "0"}, []string{"SCRIPT", "KILL"}},
			{[]string{"EVAL", endless["sort"], "0"}, []string{"SCRIPT", "KILL"}},
			{[]string{"EVAL", endless["pattern in pcall"], "0"}, []string{"SCRIPT", "KILL"}},
		} {
			runner.send(c.run...)
			other.untilBusy()
			other.Append(c.kill...)
			for _, command := range []string{"PING", "GET k", "MGET a b", "PING"} {
				other.Append(strings.Fields(command)...)
			}
			require.NoError(t, other.Flush())
			require.Equal(t, "+OK", other.read())
			require.Equal(t, "+PONG", third.do("PING"))
			require.Equal(t, "", third.do("GET k"))
			for _, want := range []string{"+PONG", "nil", "[nil nil]", "+PONG"} {
				require.Equal(t, want, other.read())
			}
			require.Contains(t, runner.read(), "-ERR Script killed by user", c.run)
		}
	})
}

// A command that has come before the threshold, and waits for a script that somebody else's goroutine runs, is
// answered too: the link to a master, or another loop.
func TestWhoWaitsForAScriptIsToldBusy(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "busy-reply-threshold", "50", "shards", "4")...)
		transaction := s.connect()
		require.Equal(t, "+OK", transaction.do("MULTI"))
		require.Equal(t, "+QUEUED", transaction.do("SET k v"))
		clients := map[string]*testClient{}
		commands := []string{"GET k", "MSET a 1 b 2 c 3 d 4", "FLUSHALL", "EVAL return(1) 0", "DBSIZE", "SORT k", "SCAN 0"}
		for _, command := range commands {
			clients[command] = s.connect()
		}
		pipeline := s.connect()

		var g engine.Guard
		s.scripts.Expect(engine.AllShards)
		g.Lock(s.ks, engine.AllShards, s.ks.Now())
		s.scripts.Begin(scripts.Running{})
		for _, command := range commands {
			clients[command].send(strings.Fields(command)...)
		}
		transaction.send("EXEC")
		pipeline.Append("GET", "a")
		pipeline.Append("GET", "b")
		pipeline.send("GET", "c")
		for _, command := range commands {
			require.Equal(t, "-"+string(scripts.ErrBusyScript), clients[command].read(), command)
		}
		require.Equal(t, "-"+string(execAborted(scripts.ErrBusyScript)), transaction.read())
		for range 3 {
			require.Equal(t, "-"+string(scripts.ErrBusyScript), pipeline.read())
		}
		s.scripts.End(&g)
		g.Unlock()
		for _, command := range commands {
			require.NotContains(t, clients[command].do(command), "-BUSY")
		}
		require.Equal(t, "-ERR EXEC without MULTI", transaction.do("EXEC"))
	})
}

func TestPipelineGoesOnBehindAKilledScript(t *testing.T) {
	s := startTestServer(t, Options{}, "busy-reply-threshold", scriptLimit)
	runner, other := s.connect(), s.connect()
	runner.Append("EVAL", "while true do end", "0")
	runner.Append("SET", "k", "v")
	runner.send("GET", "k")
	other.untilBusy()
	require.Equal(t, "+OK", other.do("SCRIPT KILL"))
	require.Contains(t, runner.read(), "-ERR Script killed")
	require.Equal(t, "+OK", runner.read())
	require.Equal(t, `"v"`, runner.read())
}

func TestCloseEndsAScriptThatDoesNotEnd(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other := s.connect(), s.connect()
		runner.eval("redis.call('set', 'k', 'v'); while true do pcall(function() while true do end end) end")
		other.untilBusy()
		require.NoError(t, s.Close())
	})
}

func TestMemoryOfScriptsIsBounded(t *testing.T) {
	s := startTestServer(t, Options{}, "script-memory-limit", "48mb")
	c := s.connect()
	for name, source := range map[string]string{
		"tables":     "local t = {}; while true do t = {t, {}, {}} end",
		"strings":    "local t = {}; while true do t[#t + 1] = string.rep('x', 1e6) .. #t end",
		"in pcall":   "local t = {}; while true do pcall(function() t[#t + 1] = string.rep('x', 1e6) .. #t end) end",
		"coroutines": "redis.call('set', 'k', 'v'); local t = {}; while true do t[#t + 1] = coroutine.create(function() end) end",
		"functions":  "local t = {}; while true do t[#t + 1] = loadstring('return ' .. #t) end",
		"fields":     "local t = {}; for i = 1, 1e12 do t[i + 0.5] = true end",
		"reply":      "local s = string.rep('x', 1e6); local t = {}; for i = 1, 100000 do t[i] = s end; return t",
	} {
		if testing.Short() && name != "coroutines" && name != "reply" { // they differ in nothing that is shared
			continue
		}
		runtime.GC() // garbage that is there when a script begins is not held against it
		began := time.Now()
		require.Regexp(t, `^-ERR Script killed because it used more memory than script-memory-limit allows\. script: [0-9a-f]{40}`,
			c.script(source), name)
		t.Log(name, "ended after", time.Since(began))
	}
	require.Equal(t, "v", c.do("GET k")) // what it wrote stays, as with every error
	require.Equal(t, "200", c.script("local n = 0; for i = 1, 200 do n = n + #string.rep('x', 1e6) / 1e6 end; return n"),
		"garbage does not count")
}

// script returns the reply to a script without keys. It waits as long as go test lets it: how long a script takes to use
// up what it may is a matter of the machine.
func (c *testClient) script(source string) string {
	c.t.Helper()
	c.eval(source)
	v, err := c.Read(time.Hour)
	require.NoError(c.t, err)
	return v.String()
}

// A program that has the server inside is told as clients are, and can end the script.
func TestProgramsAreToldThatAScriptRuns(t *testing.T) {
	s := startTestServer(t, Options{}, "busy-reply-threshold", scriptLimit)
	runner, other := s.connect(), s.connect()
	runner.eval("while true do end")
	other.untilBusy()
	d, err := s.Direct(0)
	require.NoError(t, err)
	defer d.Release()
	for _, step := range [][2]string{
		{"SET k v", "-" + string(scripts.ErrBusyScript) + "\r\n"}, {"SCRIPT KILL", "+OK\r\n"}, {"SET k v", "+OK\r\n"},
	} {
		args := resp.CloneArgs(bytes.Fields([]byte(step[0])))
		require.NoError(t, d.Run(t.Context(), args))
		reply, err := d.Flush()
		require.NoError(t, err)
		require.Equal(t, step[1], string(reply), step[0])
		if step[0] == "SCRIPT KILL" {
			require.Contains(t, runner.read(), "-ERR Script killed")
		}
	}
}

// A debugging session is expected to have its changes rolled back.
func TestScriptsThatAreToBeDebuggedAreNotExecuted(t *testing.T) {
	s := newTestServer(t, Options{})
	const refused, script = "-ERR there is no Lua debugger\r\n", `EVAL "return redis.call('incr', 'k')" 0`
	c := s.detached()
	require.Equal(t, refused, c.send(1, "SCRIPT DEBUG sync"))
	require.Equal(t, "-ERR Please use EVAL instead of EVALSHA for debugging\r\n",
		c.send(1, "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0"))
	require.Equal(t, "*1\r\n+<endsession>\r\n"+refused, c.send(1, script))
	require.True(t, c.Closing())

	c = s.detached()
	require.Equal(t, refused+"+OK\r\n+QUEUED\r\n*1\r\n"+refused,
		c.send(1, "SCRIPT DEBUG yes\r\nMULTI\r\n"+script+"\r\nEXEC"))
	require.True(t, c.Closing())

	c = s.detached()
	require.Equal(t, refused+"+OK\r\n:1\r\n", c.send(1, "SCRIPT DEBUG YES\r\nSCRIPT DEBUG NO\r\n"+script))
}

func TestScriptsCallDebugOnlyWhereItIsSwitchedOn(t *testing.T) {
	const refused, call = "-ERR This Redis command is not allowed from script",
		`EVAL "return redis.pcall('debug', 'structsize')" 0`
	for _, c := range []struct{ access, set, want string }{
		{"yes", "1", "+bits:"}, {"yes", "0", refused}, {"no", "1", refused},
	} {
		s := newTestServer(t, Options{}, "enable-debug-command", c.access)
		client := s.detached()
		client.send(1, "DEBUG SET-DISABLE-DENY-SCRIPTS "+c.set)
		require.True(t, strings.HasPrefix(client.send(1, call), c.want), c)
	}
	s := newTestServer(t, Options{}, "enable-debug-command", "yes")
	client := s.detached()
	client.send(1, "DEBUG SET-DISABLE-DENY-SCRIPTS 1")
	for _, other := range []string{"watch", "subscribe", "shutdown", "eval"} {
		require.Contains(t, client.send(1, `EVAL "return redis.pcall('`+other+`', 'a', 'b')" 0`), refused, other)
	}
}
