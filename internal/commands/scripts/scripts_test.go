package scripts_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/server"
)

// scriptLimit is the busy-reply-threshold of the tests in ms.
const scriptLimit = "5"

// eval sends a script without keys and does not wait for the reply.
func eval(c *testclient.Client, source string) { c.Send("EVAL", source, "0") }

// untilBusy sends PING until the server says that it is busy with a script.
func untilBusy(c *testclient.Client) {
	c.T.Helper()
	c.WaitFor("PING", "-BUSY")
}

// endless are scripts that do not end, and try to survive a stop.
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
	s := servertest.Start(t, server.Options{}, "busy-reply-threshold", scriptLimit)
	runner, other := s.Connect(), s.Connect()
	for name, source := range endless {
		eval(runner, source)
		untilBusy(other)
		began := time.Now()
		require.Equal(t, "+OK", other.Line("SCRIPT KILL"), name)
		reply := runner.Next()
		require.Regexp(t, `^-ERR Script killed by user with SCRIPT KILL\.\.\. script: [0-9a-f]{40}(, on @?user_script:\d+\.)?$`, reply, name)
		t.Log(name, "ended after", time.Since(began))
		require.Equal(t, "+PONG", other.Line("PING"), name)
	}
	require.Equal(t, "3", runner.Line("EVAL return(1+2) 0"))
}

func TestClientsAreToldThatAScriptRuns(t *testing.T) {
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other, transaction := s.Connect(), s.Connect(), s.Connect()
		require.Equal(t, "-NOTBUSY No scripts in execution right now.", other.Line("SCRIPT KILL"))
		require.Equal(t, "+OK", transaction.Line("MULTI"))
		require.Equal(t, "+QUEUED", transaction.Line("SET k v"))
		eval(runner, "while true do end")
		untilBusy(other)
		for _, command := range []string{"GET k", "PING", "INFO", "CONFIG GET maxmemory", "FLUSHALL", "EVAL return(1) 0",
			"SCRIPT FLUSH", "SHUTDOWN"} {
			require.Equal(t, busy, other.Line(command), command)
		}
		require.Equal(t, "-EXECABORT Transaction discarded because of: "+busy[1:], transaction.Line("EXEC"))
		require.Equal(t, "+OK", transaction.Line("MULTI"))
		require.Equal(t, "+OK", transaction.Line("DISCARD"))
		third := s.Connect() // new clients are served too
		require.Equal(t, busy, third.Line("PING"))
		require.Equal(t, "+OK", third.Line("SCRIPT KILL"))
		require.Contains(t, runner.Next(), "-ERR Script killed by user")
		require.Equal(t, "", third.Line("GET k"))
		require.Equal(t, "+PONG", runner.Line("PING"))
	})
}

func TestWritersCannotBeKilled(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other := s.Connect(), s.Connect()
		kill := "+OK"
		for tries := 0; kill == "+OK" && tries < 100; tries++ { // on a slow machine the script may be killed before it writes
			if tries > 0 {
				require.Contains(t, runner.Next(), "-ERR Script killed")
			}
			eval(runner, "redis.call('set', 'k', 'v'); while true do end")
			untilBusy(other)
			kill = other.Line("SCRIPT KILL")
		}
		require.Regexp(t, "^-UNKILLABLE ", kill)
		other.Send("SHUTDOWN", "NOSAVE")
		select {
		case <-s.Done():
		case <-time.After(testclient.Timeout):
			t.Fatal("SHUTDOWN NOSAVE does not end a script")
		}
	})
}

// Clients that wait for the keyspace when the script exceeds its limit do not delay replies to others.
func TestClientsThatWaitForAScriptHoldNobodyUp(t *testing.T) {
	for _, loops := range []string{"1", "2"} {
		s := servertest.Start(t, server.Options{}, "busy-reply-threshold", "30", "io-threads", loops, "shards", "4")
		runner := s.Connect()
		var watchers, waiters []*testclient.Client
		for range 4 {
			watchers = append(watchers, s.Connect())
			waiters = append(waiters, s.Connect())
		}
		last := s.Connect()
		require.Equal(t, "+OK", watchers[0].Line("WATCH w"))
		blocked := s.Connect()
		blocked.Send("BLPOP", "list", "0.02")
		last.WaitFor("CLIENT LIST", "cmd=blpop")
		eval(runner, "while true do end")
		for i, c := range waiters {
			c.Send("SET", fmt.Sprint("k", i), "v")
		}
		untilBusy(last)
		for _, c := range watchers {
			require.Equal(t, "+OK", c.Line("WATCH k1"))
		}
		watchers[0].Close()
		require.Equal(t, "+OK", last.Line("SCRIPT KILL"))
		require.Contains(t, runner.Next(), "-ERR Script killed")
		for i, c := range waiters {
			if reply := c.Next(); !strings.HasPrefix(reply, "-BUSY") {
				require.Equal(t, "+OK", reply, i)
			}
		}
		for _, c := range watchers[1:] {
			require.Equal(t, "+PONG", c.Line("PING"))
		}
		require.Equal(t, "nil[]", blocked.Next())
		for _, c := range append(waiters, runner, blocked) {
			require.Equal(t, "+PONG", c.Line("PING"))
		}
	}
}

// While a script runs, allowed and refused commands get their replies at once, although the script holds the watched
// keys.
func TestTransactionsWhileAScriptRuns(t *testing.T) {
	const aborted = "-EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. " +
		"You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other, writer := s.Connect(), s.Connect(), s.Connect()
		conns := map[string]*testclient.Client{}
		at := func(name, command, want string) {
			t.Helper()
			if conns[name] == nil {
				conns[name] = s.Connect()
			}
			require.Equal(t, want, conns[name].Line(command), name+": "+command)
		}
		for _, name := range []string{"unwatch", "discard", "reset", "exec", "queue", "gone"} {
			at(name, "WATCH k", "+OK")
		}
		for _, name := range []string{"discard", "exec", "queue"} {
			at(name, "MULTI", "+OK")
			at(name, "SET k v", "+QUEUED")
		}
		eval(runner, "while true do end")
		untilBusy(other)
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
		require.Equal(t, "+OK", other.Line("SCRIPT KILL"))
		require.Contains(t, runner.Next(), "-ERR Script killed")
		require.Equal(t, "+OK", writer.Line("SET j v"))
		for _, name := range []string{"unwatch", "discard", "reset", "exec", "given up"} {
			at(name, "MULTI", "+OK")
			at(name, "EXEC", "[]")
		}
		at("queue", "EXEC", "-EXECABORT Transaction discarded because of previous errors.")
		at("touched", "MULTI", "+OK")
		at("touched", "EXEC", "nil[]")
		at("untouched", "UNWATCH", "+OK")

		// A WATCH that got its reply while the script could still write is broken by the script's writes.
		var g engine.Guard
		s.Scripts().Expect(engine.AllShards)
		g.Lock(s.Keyspace(), engine.AllShards, s.Keyspace().Now())
		s.Scripts().Begin(scripts.Running{})
		require.True(t, s.Scripts().MayWrite())
		untilBusy(other)
		at("untouched", "WATCH k", "+OK")
		s.Scripts().End(&g)
		g.Unlock()
		at("untouched", "MULTI", "+OK")
		at("untouched", "EXEC", "nil[]")
		for name, c := range conns {
			require.Equal(t, "+PONG", c.Line("PING"), name)
		}
		other.WaitFor("INFO clients", "total_watched_keys:0")
	})
}

// TestClientsReadTogetherWithAScriptAreServed lets a loop read from several clients in one round, one of which runs
// a script that blocks the loop.
func TestClientsReadTogetherWithAScriptAreServed(t *testing.T) {
	s := servertest.Start(t, server.Options{}, "busy-reply-threshold", scriptLimit, "enable-debug-command", "yes")
	sleeper, runner, last := s.Connect(), s.Connect(), s.Connect()
	var others []*testclient.Client
	for range 2 * 16 {
		others = append(others, s.Connect())
	}
	sleeper.Send("DEBUG", "SLEEP", "0.1")
	for i, c := range others {
		if i == len(others)/2 {
			eval(runner, "while true do end")
		}
		c.Send("GET", "k")
	}
	untilBusy(last)
	for _, c := range others {
		if reply := c.Next(); reply != "nil" {
			require.Regexp(t, "^-BUSY ", reply)
		}
	}
	require.Equal(t, "+OK", last.Line("SCRIPT KILL"))
	require.Contains(t, runner.Next(), "-ERR Script killed")
	require.Equal(t, "+OK", sleeper.Next())
	for _, c := range append(others, runner) {
		require.Equal(t, "+PONG", c.Line("PING"))
	}
}

// A command after the reply to a kill never gets BUSY.
func TestNobodyIsToldBusyAfterAKill(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		loader := s.Connect()
		loader.Send("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', callback=function() while true do end end, flags={'no-writes'}}")
		require.Equal(t, `"l"`, loader.Next())
		runner, other, third := s.Connect(), s.Connect(), s.Connect()
		for _, c := range []struct{ run, kill []string }{
			{[]string{"FCALL", "f", "0"}, []string{"FUNCTION", "KILL"}},
			{[]string{"EVAL", endless["loop"], "0"}, []string{"SCRIPT", "KILL"}},
			{[]string{"EVAL", endless["pcall"], "0"}, []string{"SCRIPT", "KILL"}},
			{[]string{"EVAL", endless["sort"], "0"}, []string{"SCRIPT", "KILL"}},
			{[]string{"EVAL", endless["pattern in pcall"], "0"}, []string{"SCRIPT", "KILL"}},
		} {
			runner.Send(c.run...)
			untilBusy(other)
			other.Append(c.kill...)
			for _, command := range []string{"PING", "GET k", "MGET a b", "PING"} {
				other.Append(strings.Fields(command)...)
			}
			require.NoError(t, other.Flush())
			require.Equal(t, "+OK", other.Next())
			require.Equal(t, "+PONG", third.Line("PING"))
			require.Equal(t, "", third.Line("GET k"))
			for _, want := range []string{"+PONG", "nil", "[nil nil]", "+PONG"} {
				require.Equal(t, want, other.Next())
			}
			require.Contains(t, runner.Next(), "-ERR Script killed by user", c.run)
		}
	})
}

// A command that began to wait before the threshold gets BUSY too, if another goroutine runs the script: the link to
// a master, or another loop.
func TestWhoWaitsForAScriptIsToldBusy(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "busy-reply-threshold", "50", "shards", "4")...)
		transaction := s.Connect()
		require.Equal(t, "+OK", transaction.Line("MULTI"))
		require.Equal(t, "+QUEUED", transaction.Line("SET k v"))
		clients := map[string]*testclient.Client{}
		commands := []string{"GET k", "MSET a 1 b 2 c 3 d 4", "FLUSHALL", "EVAL return(1) 0", "DBSIZE", "SORT k", "SCAN 0"}
		for _, command := range commands {
			clients[command] = s.Connect()
		}
		pipeline := s.Connect()

		var g engine.Guard
		s.Scripts().Expect(engine.AllShards)
		g.Lock(s.Keyspace(), engine.AllShards, s.Keyspace().Now())
		s.Scripts().Begin(scripts.Running{})
		for _, command := range commands {
			clients[command].Send(strings.Fields(command)...)
		}
		transaction.Send("EXEC")
		pipeline.Append("GET", "a")
		pipeline.Append("GET", "b")
		pipeline.Send("GET", "c")
		for _, command := range commands {
			require.Equal(t, "-"+string(scripts.ErrBusyScript), clients[command].Next(), command)
		}
		require.Equal(t, "-EXECABORT Transaction discarded because of: "+string(scripts.ErrBusyScript), transaction.Next())
		for range 3 {
			require.Equal(t, "-"+string(scripts.ErrBusyScript), pipeline.Next())
		}
		s.Scripts().End(&g)
		g.Unlock()
		for _, command := range commands {
			require.NotContains(t, clients[command].Line(command), "-BUSY")
		}
		require.Equal(t, "-ERR EXEC without MULTI", transaction.Line("EXEC"))
	})
}

func TestPipelineGoesOnBehindAKilledScript(t *testing.T) {
	s := servertest.Start(t, server.Options{}, "busy-reply-threshold", scriptLimit)
	runner, other := s.Connect(), s.Connect()
	runner.Append("EVAL", "while true do end", "0")
	runner.Append("SET", "k", "v")
	runner.Send("GET", "k")
	untilBusy(other)
	require.Equal(t, "+OK", other.Line("SCRIPT KILL"))
	require.Contains(t, runner.Next(), "-ERR Script killed")
	require.Equal(t, "+OK", runner.Next())
	require.Equal(t, `"v"`, runner.Next())
}

func TestCloseEndsAScriptThatDoesNotEnd(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		runner, other := s.Connect(), s.Connect()
		eval(runner, "redis.call('set', 'k', 'v'); while true do pcall(function() while true do end end) end")
		untilBusy(other)
		require.NoError(t, s.Close())
	})
}

func TestMemoryOfScriptsIsBounded(t *testing.T) {
	s := servertest.Start(t, server.Options{}, "script-memory-limit", "48mb")
	c := s.Connect()
	for name, source := range map[string]string{
		"tables":     "local t = {}; while true do t = {t, {}, {}} end",
		"strings":    "local t = {}; while true do t[#t + 1] = string.rep('x', 1e6) .. #t end",
		"in pcall":   "local t = {}; while true do pcall(function() t[#t + 1] = string.rep('x', 1e6) .. #t end) end",
		"coroutines": "redis.call('set', 'k', 'v'); local t = {}; while true do t[#t + 1] = coroutine.create(function() end) end",
		"functions":  "local t = {}; while true do t[#t + 1] = loadstring('return ' .. #t) end",
		"fields":     "local t = {}; for i = 1, 1e12 do t[i + 0.5] = true end",
		"reply":      "local s = string.rep('x', 1e6); local t = {}; for i = 1, 100000 do t[i] = s end; return t",
	} {
		if testing.Short() && name != "coroutines" && name != "reply" { // they share all relevant code
			continue
		}
		runtime.GC() // so that the script does not start with garbage in the heap
		began := time.Now()
		require.Regexp(t, `^-ERR Script killed because it used more memory than script-memory-limit allows\. script: [0-9a-f]{40}`,
			script(c, source), name)
		t.Log(name, "ended after", time.Since(began))
	}
	require.Equal(t, "v", c.Line("GET k")) // its writes stay, as after every error
	require.Equal(t, "200", script(c, "local n = 0; for i = 1, 200 do n = n + #string.rep('x', 1e6) / 1e6 end; return n"),
		"garbage does not count")
}

// script returns the reply to a script without keys. It has no timeout of its own: how fast a script reaches its
// memory limit depends on the machine.
func script(c *testclient.Client, source string) string {
	c.T.Helper()
	eval(c, source)
	v, err := c.Read(time.Hour)
	require.NoError(c.T, err)
	return v.String()
}

// The embedding program gets the same errors as clients, and can end the script.
func TestProgramsAreToldThatAScriptRuns(t *testing.T) {
	s := servertest.Start(t, server.Options{}, "busy-reply-threshold", scriptLimit)
	runner, other := s.Connect(), s.Connect()
	eval(runner, "while true do end")
	untilBusy(other)
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
			require.Contains(t, runner.Next(), "-ERR Script killed")
		}
	}
}

// Users expect that a debugging session rolls its changes back.
func TestScriptsThatAreToBeDebuggedAreNotExecuted(t *testing.T) {
	s := servertest.NewStepped(t)
	defer s.Finish()
	const refused, script = "-ERR there is no Lua debugger\r\n", `EVAL "return redis.call('incr', 'k')" 0`
	lines := func(client, lines string) string { return s.Input(client, []byte(lines+"\r\n")) }
	require.Equal(t, refused, lines("a", "SCRIPT DEBUG sync"))
	require.Equal(t, "-ERR Please use EVAL instead of EVALSHA for debugging\r\n",
		lines("a", "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0"))
	require.Equal(t, "*1\r\n+<endsession>\r\n"+refused, lines("a", script))
	require.True(t, s.Client("a").Closing())

	require.Equal(t, refused+"+OK\r\n+QUEUED\r\n*1\r\n"+refused,
		lines("b", "SCRIPT DEBUG yes\r\nMULTI\r\n"+script+"\r\nEXEC"))
	require.True(t, s.Client("b").Closing())

	require.Equal(t, refused+"+OK\r\n:1\r\n", lines("c", "SCRIPT DEBUG YES\r\nSCRIPT DEBUG NO\r\n"+script))
}

func TestScriptsCallDebugOnlyWhereItIsSwitchedOn(t *testing.T) {
	const refused, call = "-ERR This Redis command is not allowed from script",
		`EVAL "return redis.pcall('debug', 'structsize')" 0`
	for _, c := range []struct{ access, set, want string }{
		{"yes", "1", "+bits:"}, {"yes", "0", refused}, {"no", "1", refused},
	} {
		s := servertest.NewStepped(t, "enable-debug-command", c.access)
		s.Step("DEBUG SET-DISABLE-DENY-SCRIPTS " + c.set)
		require.True(t, strings.HasPrefix(s.Input("0", []byte(call+"\r\n")), c.want), c)
		s.Finish()
	}
	s := servertest.NewStepped(t, "enable-debug-command", "yes")
	defer s.Finish()
	s.Step("DEBUG SET-DISABLE-DENY-SCRIPTS 1")
	for _, other := range []string{"watch", "subscribe", "shutdown", "eval"} {
		require.Contains(t, s.Send("0", "EVAL", "return redis.pcall('"+other+"', 'a', 'b')", "0"), refused, other)
	}
}

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "scripting") }
