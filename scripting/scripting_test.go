package scripting

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/resp"
)

// fakeHost answers commands with the results of answer.
type fakeHost struct {
	calls  []string
	answer func(args [][]byte, w *resp.Writer)
	w      resp.Writer
}

func (h *fakeHost) Call(args [][]byte, proto int) []byte {
	h.calls = append(h.calls, fmt.Sprintf("%q", args))
	h.w.Buf, h.w.Proto = h.w.Buf[:0], proto
	h.answer(args, &h.w)
	return h.w.Buf
}

func (h *fakeHost) Check(args [][]byte) (allowed bool, wrong string) {
	if string(args[0]) == "unknown" {
		wrong = UnknownToCheck
	}
	return string(args[0]) != "forbidden", wrong
}

func newEngine() *Engine { return New(Options{Version: "7.4.0", VersionNum: 0x070400}) }

// run runs a script that calls no commands, and returns its reply.
func run(t require.TestingT, e *Engine, source string, args ...string) string {
	script, err := e.Load([]byte(source))
	if err != nil {
		return "-" + err.Error() + "\r\n"
	}
	var list [][]byte
	for _, a := range args {
		list = append(list, []byte(a))
	}
	w := resp.Writer{Proto: 2}
	host := &fakeHost{answer: func(args [][]byte, w *resp.Writer) {
		switch string(args[0]) {
		case "echo":
			w.Bulk(args[1])
		case "fail":
			w.Error("ERR failed")
		case "map":
			w.Map(1)
			w.BulkString("k")
			w.Double(1.5)
		default:
			w.OK()
		}
	}}
	e.Run(script, host, nil, list, &w)
	return string(w.Buf)
}

func TestArgumentsReachTheHostAndRepliesTheScript(t *testing.T) {
	e := newEngine()
	script, err := e.Load([]byte("return {redis.call('set', KEYS[1], ARGV[1], 3, 10/3), redis.call('get', KEYS[1])}"))
	require.NoError(t, err)
	host := &fakeHost{answer: func(args [][]byte, w *resp.Writer) {
		if string(args[0]) == "set" {
			w.OK()
		} else {
			w.Null()
		}
	}}
	w := resp.Writer{Proto: 2}
	e.Run(script, host, [][]byte{[]byte("k\x00")}, [][]byte{[]byte("v")}, &w)
	require.Equal(t, "*2\r\n+OK\r\n$-1\r\n", string(w.Buf))
	require.Equal(t, []string{`["set" "k\x00" "v" "3" "3.3333333333333335"]`, `["get" "k\x00"]`}, host.calls)
}

func TestManyArgumentsKeepTheirValuesWhenTheArenaGrows(t *testing.T) {
	e := newEngine()
	script, err := e.Load([]byte("local t = {}; for i = 1, 5000 do t[i] = 'value' .. i end; return redis.call(unpack(t))"))
	require.NoError(t, err)
	host := &fakeHost{answer: func(args [][]byte, w *resp.Writer) {
		require.Len(t, args, 5000)
		for i, a := range args {
			require.Equal(t, fmt.Sprintf("value%d", i+1), string(a))
		}
		w.OK()
	}}
	w := resp.Writer{Proto: 2}
	e.Run(script, host, nil, nil, &w)
	require.Equal(t, "+OK\r\n", string(w.Buf))
}

func TestScriptsAreKnownUntilFlush(t *testing.T) {
	e := newEngine()
	script, err := e.Load([]byte("return 1"))
	require.NoError(t, err)
	require.Equal(t, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", script.SHA)
	require.Same(t, script, e.Find([]byte("E0E1F9FABFC9D4800C877A703B823AC0578FF8DB")))
	again, err := e.Load([]byte("return 1"))
	require.NoError(t, err)
	require.Same(t, script, again)
	require.Nil(t, e.Find([]byte("short")))
	e.Flush()
	require.Nil(t, e.Find([]byte(script.SHA)))
	_, err = e.Load([]byte("return +"))
	require.Error(t, err)
}

func TestNothingOfAScriptOutlivesIt(t *testing.T) {
	e := newEngine()
	for _, source := range []string{
		"x = 1", "rawset(_G, 'x', 1)", "_G.x = 1", "string.x = 1", "rawset(string, 'x', 1)", "getmetatable('').x = 1",
		"getmetatable('').__index = nil", "getmetatable(_G).__index = nil", "setmetatable(_G, {})",
		"setmetatable(string, {})",
		"table.insert(redis, 1)", "KEYS = nil", "getmetatable(redis).__index = nil", "setmetatable('', {__index = {}})",
		"string.gsub = nil", "redis.call = nil", "_G._G = nil", "coroutine.wrap(function() x = 1 end)()",
		"loadstring('x = 1')()",
	} {
		require.Equal(t, "-", run(t, e, source)[:1], source)
	}
	require.Equal(t, ":1\r\n", run(t, e, "ARGV.x = 1; KEYS.y = 2; redis.setresp(3); return 1", "a"))
	require.Equal(t, "*2\r\n$-1\r\n$-1\r\n", run(t, e, "return {rawget(_G, 'x') ~= nil, ARGV.x ~= nil}"))
	require.Equal(t, "*3\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n$1\r\nA\r\n",
		run(t, e, "return {type(redis.call), type(string.gsub), ('a'):upper()}"))
	require.Equal(t, ":1\r\n", run(t, e, "return true"), "setresp must not outlive its script")
}

func TestHostileScriptsEndInErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("with the race detector they take long, and nothing of it is concurrent")
	}
	e := newEngine()
	for name, source := range map[string]string{
		"recursion":             "local function f() return 1 + f() end; return f()",
		"recursion of pcall":    "local function f() return pcall(f) end; error(tostring(f()))",
		"recursion of wrap":     "local function f() coroutine.wrap(f)() end; f()",
		"recursion of resume":   "local function f() local ok, e = coroutine.resume(coroutine.create(f)); error(e, 0) end; f()",
		"recursion of gsub":     "local function f() return (string.gsub('a', 'a', f)) end; return f()",
		"recursion of tostring": "local t; t = setmetatable({}, {__tostring = function() return tostring(t) end}); return tostring(t)",
		"recursion of index":    "local t; t = setmetatable({}, {__index = function(_, k) return t[k] end}); return t.x",
		"index loop":            "local t = {}; setmetatable(t, {__index = t}); return t.x.y",
		"sort":                  "local function f() table.sort({1, 2}, f) end; f()",
		"rep":                   "return string.rep('x', 1e9)",
		"rep of rep":            "local s = 'x'; while true do s = s:rep(1000) end",
		"gsub":                  "return string.gsub(string.rep('x', 1e4), 'x', string.rep('y', 1e6))",
		"format":                "return string.format('%s%s', string.rep('x', 1e8), string.rep('x', 1e8))",
		"unpack":                "return unpack({}, 1, 1e9)",
		"unpack far":            "return unpack({}, 1e18, 1e18 + 1e9)",
		"many groups":           "return string.find('a', string.rep('(', 100))",
		"deep pattern":          "return string.find(string.rep('a', 1e5), string.rep('a?', 1e5))",
		"deep tables":           "return " + strings.Repeat("{", 100000) + strings.Repeat("}", 100000),
		"deep not":              "return " + strings.Repeat("not ", 100000) + "1",
		"deep blocks":           strings.Repeat("do ", 100000) + strings.Repeat("end ", 100000),
		"deep functions":        strings.Repeat("return function() ", 10000) + strings.Repeat("end ", 10000),
		"long concatenation":    "return 'a'" + strings.Repeat(" .. 'a'", 10000),
		"many locals":           strings.Repeat("local a = 1\n", 300) + "return a",
		"nil call":              "local f; f()",
		"bad byte":              "return \x00\xff",
		"unfinished":            "return 'abc",
		"goto":                  "goto nowhere",
		"break":                 "break",
		"yield":                 "coroutine.yield()",
		"yield in pcall":        "local co = coroutine.wrap(function() local ok, e = pcall(coroutine.yield); error(e, 0) end); co()",
		"dump":                  "return string.dump(function() end)",
		"next of nothing":       "return next()",
		"error of userdata":     "error(coroutine.create(function() end))",
	} {
		t.Run(name, func(t *testing.T) {
			reply := run(t, e, source)
			require.Equal(t, "-", reply[:1], "%.200q", reply)
			require.Equal(t, "\r\n", reply[len(reply)-2:])
			require.Equal(t, 1, strings.Count(reply, "\r\n"))
			require.Equal(t, ":3\r\n", run(t, e, "local s = 0; for i = 1, 2 do s = s + i end; return s"))
		})
	}
}

func TestSelfContainingTableEndsSomewhere(t *testing.T) {
	reply := run(t, newEngine(), "local t = {}; t[1] = t; return t")
	require.True(t, strings.HasSuffix(reply, "-ERR reached lua stack limit\r\n"))
	reply = run(t, newEngine(), "local t = {}; t.map = t; return t")
	require.True(t, strings.Contains(reply, "-ERR reached lua stack limit\r\n"))
}

func TestErrorsLeaveTheVariablesOfTheirCallersAlone(t *testing.T) {
	e := newEngine()
	for source, want := range map[string]string{
		"local n = 0; local function inc() n = n + 1 end; pcall(error, 'x'); inc(); return n":                                             ":1\r\n",
		"local n = 0; local function inc() n = n + 1 end; pcall(function() inc(); error('x') end); inc(); return n":                       ":2\r\n",
		"local f; pcall(function() local x = 5; f = function() return x end; error('e') end); local a, b, c = 1, 2, 3; return f()":        ":5\r\n",
		"local n = 0; local function inc() n = n + 1 end; pcall(redis.call, 'fail'); inc(); return n":                                     ":1\r\n",
		"local n = 0; local function inc() n = n + 1 end; xpcall(function() error('x') end, function() inc() end); inc(); return n":       ":2\r\n",
		"local n = 0; local function inc() n = n + 1 end; coroutine.resume(coroutine.create(function() error('x') end)); inc(); return n": ":1\r\n",
		"local r = {}; for i = 1, 3 do r[i] = function() return i end; pcall(error) end; return r[1]() * 100 + r[2]() * 10 + r[3]()":      ":123\r\n",
	} {
		require.Equal(t, want, run(t, e, source), source)
	}
}

func TestRESP3RepliesBecomeTables(t *testing.T) {
	e := newEngine()
	require.Equal(t, "$3\r\n1.5\r\n", run(t, e, "redis.setresp(3); return tostring(redis.call('map').map.k.double)"))
	require.Equal(t, "*2\r\n$1\r\nk\r\n$3\r\n1.5\r\n", run(t, e, "redis.setresp(3); return redis.call('map')"))
	require.Equal(t, "$1\r\nk\r\n", run(t, e, "return redis.call('map')[1]"))
}

func TestLogReachesTheServer(t *testing.T) {
	var got []string
	e := New(Options{Log: func(level Level, message string) { got = append(got, fmt.Sprint(level, " ", message)) }})
	run(t, e, "redis.log(redis.LOG_WARNING, 'a', 1, 'b')")
	require.Equal(t, []string{"3 a 1 b"}, got)
}

func TestNumbersArePrintedAsLuaDoes(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", -1: "-1", 1e13: "10000000000000", 1e14: "1e+14", 1e15: "1e+15", 0.1: "0.1", 1e-5: "1e-05",
		10.0 / 3: "3.3333333333333", math.Inf(1): "inf",
		math.Inf(-1): "-inf", 123456.789: "123456.789", 1e100: "1e+100",
	} {
		require.Equal(t, want, string(appendNumber(nil, f)))
	}
	require.Equal(t, "1e+17", string(appendArgument(nil, 1e17)))
	require.Equal(t, "10000000000000000", string(appendArgument(nil, 1e16)))
	require.Equal(t, "0.10000000000000001", string(appendArgument(nil, 0.1)))
}

// value draws a random Lua literal and the reply that it must become.
func value(t *rapid.T, depth int) (literal, reply string) {
	kinds := 4
	if depth > 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		n := rapid.Int64Range(-1<<53, 1<<53).Draw(t, "n")
		return fmt.Sprint(n), fmt.Sprintf(":%d\r\n", n)
	case 1:
		b := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "s")
		var quoted strings.Builder
		for _, c := range b {
			fmt.Fprintf(&quoted, "\\%03d", c)
		}
		return "'" + quoted.String() + "'", fmt.Sprintf("$%d\r\n%s\r\n", len(b), b)
	case 2:
		return "true", ":1\r\n"
	case 3:
		return "false", "$-1\r\n"
	}
	n := rapid.IntRange(0, 5).Draw(t, "len")
	literal, reply = "{", fmt.Sprintf("*%d\r\n", n)
	for range n {
		l, r := value(t, depth-1)
		literal += l + ", "
		reply += r
	}
	return literal + "}", reply
}

func TestValuesSurviveTheWayThroughLua(t *testing.T) {
	e := newEngine()
	m := newVM(&Options{})
	testseed.Check(t, func(t *rapid.T) {
		literal, reply := value(t, 3)
		require.Equal(t, reply, run(t, e, "return "+literal))
		m.proto = 2
		v, rest := m.fromReply(m.state, []byte(reply))
		require.Empty(t, rest)
		w := resp.Writer{Proto: 2}
		m.writeReply(&w, v)
		require.Equal(t, reply, string(w.Buf))
	})
}

func TestStringsSurviveTheWayToTheHostAndBack(t *testing.T) {
	e := newEngine()
	testseed.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))
		require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(s), s), run(t, e, "return redis.call('echo', ARGV[1])", s))
	})
}

func BenchmarkCall(b *testing.B) {
	e := newEngine()
	script, err := e.Load([]byte("return redis.call('get', KEYS[1])"))
	require.NoError(b, err)
	host := &benchHost{reply: []byte("$5\r\nvalue\r\n")}
	keys := [][]byte{[]byte("key")}
	var w resp.Writer
	b.ReportAllocs()
	for b.Loop() {
		w.Buf = w.Buf[:0]
		e.Run(script, host, keys, nil, &w)
	}
}

func BenchmarkHundredCalls(b *testing.B) {
	e := newEngine()
	script, err := e.Load([]byte("for i = 1, 100 do redis.call('get', KEYS[1]) end"))
	require.NoError(b, err)
	host := &benchHost{reply: []byte("$5\r\nvalue\r\n")}
	keys := [][]byte{[]byte("key")}
	var w resp.Writer
	b.ReportAllocs()
	for b.Loop() {
		w.Buf = w.Buf[:0]
		e.Run(script, host, keys, nil, &w)
	}
}

// BenchmarkLoop measures only the interpreter, which looks at the interrupt before each of about four thousand
// instructions.
func BenchmarkLoop(b *testing.B) {
	e := newEngine()
	script, err := e.Load([]byte("local s = 0; for i = 1, 1000 do s = s + i % 7 end return s"))
	require.NoError(b, err)
	var w resp.Writer
	b.ReportAllocs()
	for b.Loop() {
		w.Buf = w.Buf[:0]
		e.Run(script, &benchHost{}, nil, nil, &w)
	}
}

type benchHost struct{ reply []byte }

func (h *benchHost) Call([][]byte, int) []byte { return h.reply }

func (h *benchHost) Check([][]byte) (allowed bool, wrong string) { return true, "" }
