package scripting

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/resp"
)

func TestListsHaveABound(t *testing.T) {
	e := newEngine()
	require.Equal(t, "*2\r\n:1\r\n:0\r\n", run(t, e, "local t = {}; t[60000000] = 1; return {t[60000000], #t}"))
	require.Equal(t, ":1\r\n", run(t, e, "local t = {}; t[1e300] = 1; t[-1] = 2; return t[1e300]"))
	require.Equal(t, ":1\r\n", run(t, e, "local t = {}; rawset(t, 2^40, 1); table.insert(t, 1e9, 2); return t[2^40]"))
}

func TestSourcesHaveABound(t *testing.T) {
	e := newEngine()
	_, err := e.Load([]byte("return 1 --" + strings.Repeat("x", maxSource)))
	require.EqualError(t, err, "ERR Error compiling script (new function): user_script:1: chunk is longer than 4194304 bytes")
	require.Contains(t, run(t, e, "return tostring(select(2, loadstring(string.rep('x', 1e7))))"), "chunk is longer than")
}

func TestStoppedScriptsSayWhy(t *testing.T) {
	e := New(Options{Interrupt: new(Interrupt)})
	in := e.options.Interrupt
	for source, where := range map[string]string{
		"\nwhile true do end":                                                        ", on @user_script:2.",
		"while true do pcall(error) end":                                             ", on @user_script:1.",
		"return string.find(string.rep('a', 1e6), '.-.-.-b')":                        ", on @user_script:1.",
		"return cjson.decode('[' .. string.rep('1,', 2e6) .. '1]')":                  ", on @user_script:1.",
		"return cmsgpack.unpack('\\221\\0\\31\\0\\0' .. string.rep('\\1', 2031616))": ", on @user_script:1.",
		"local t = {}; t[1] = t; t[2] = t; return t":                                 "",
		"local f = coroutine.wrap(function() while true do end end) f()":             ", on @user_script:1.",
	} {
		script, err := e.Load([]byte(source))
		require.NoError(t, err)
		in.Reset()
		timer := time.AfterFunc(time.Millisecond, func() { in.Stop("Stopped by a test.") })
		w := resp.Writer{Proto: 2}
		w.BulkString("before")
		e.Run(script, &fakeHost{}, nil, nil, &w)
		timer.Stop()
		got := string(w.Buf)
		if where == "" { // it was stopped while its reply was converted, or, if the conversion began late, before
			got = strings.Replace(got, ", on @user_script:1.", "", 1)
		}
		require.Equal(t, "$6\r\nbefore\r\n-ERR Stopped by a test. script: "+script.SHA+where+"\r\n", got, source)
		in.Reset()
		require.Equal(t, ":1\r\n", run(t, e, "return 1"))
	}
}

func TestHeldScriptsGoOn(t *testing.T) {
	e := New(Options{Interrupt: new(Interrupt)})
	in := e.options.Interrupt
	script, err := e.Load([]byte("while redis.call('more') == 1 do end return 'end'"))
	require.NoError(t, err)
	calls, holds := 0, make(chan int)
	host := &fakeHost{}
	host.answer = func(_ [][]byte, w *resp.Writer) {
		if calls++; calls == 100 {
			go func() {
				in.Hold(func() error { holds <- calls; return nil })
				close(holds)
			}()
			require.Equal(t, 100, <-holds)
		}
		if calls < 1000 {
			w.Int(1)
		} else {
			w.Int(0)
		}
	}
	w := resp.Writer{Proto: 2}
	e.Run(script, host, nil, nil, &w)
	<-holds
	require.Equal(t, "$3\r\nend\r\n", string(w.Buf))
	require.Equal(t, 1000, calls)
}

// FuzzScript runs random scripts, and answers the commands that they call with random replies. Whatever they do, the
// result must be one reply, and the next script must see no trace of it.
func FuzzScript(f *testing.F) {
	for _, seed := range []string{
		"return redis.call('get', KEYS[1])", "return {1, 'a', {2, false, nil, 3}}", "while true do end",
		"local t = {} t[1] = t return t",
		"redis.setresp(3) return redis.call('x')", "return pcall(error, {err = 'x'})", "error({})",
		"return coroutine.wrap(redis.call)('x')",
		"local s = 'x' while true do s = s .. s end", "local t = {} for i = 1, 1e9 do t[i] = {} end",
		"return string.format('%5.3q', ARGV[1])",
		"return string.gsub(ARGV[1], '(a*(.)%w)', '%2%1')", "return loadstring(ARGV[1])()", "x = 1", "return _G",
		"return setmetatable({}, {__index = error}).x",
		"table.sort(ARGV, function(a, b) return true end) return ARGV", "return redis.pcall(unpack(ARGV))",
		"local function f() return f() + 1 end return f()",
		"return {map = {a = {double = 1.5}}, set = {b = true}}", "#!lua flags=no-writes\nreturn 1",
		"return tostring(print)", "return select(-1, unpack(ARGV))",
	} {
		f.Add(seed, "argument", "*2\r\n$1\r\na\r\n:1\r\n")
	}
	f.Fuzz(func(t *testing.T, source, arg, reply string) {
		in := new(Interrupt)
		e := New(Options{Interrupt: in})
		script, err := e.Load([]byte(source))
		if err != nil {
			require.NotContains(t, err.Error(), "runtime error")
			return
		}
		answer := wellFormed(reply)
		host := &fakeHost{answer: func(_ [][]byte, w *resp.Writer) { w.Raw(answer) }}
		w := resp.Writer{Proto: 2}
		timer := time.AfterFunc(20*time.Millisecond, func() { in.Stop("Stopped by a test.") })
		e.Run(script, host, [][]byte{[]byte("key")}, [][]byte{[]byte(arg), []byte("second")}, &w)
		timer.Stop()
		require.NotContains(t, string(w.Buf), "runtime error")
		rest, ok := skipReply(w.Buf)
		require.True(t, ok && len(rest) == 0, "%.200q", w.Buf)
		in.Reset()
		require.Equal(t, "*3\r\n:3\r\n$1\r\nk\r\n$-1\r\n", run(t, e, "return {1 + 2, 'k', rawget(_G, 'x') ~= nil}"))
	})
}

// wellFormed returns s if it is one encoded reply, and otherwise a reply that contains s.
func wellFormed(s string) []byte {
	if rest, ok := skipReply([]byte(s)); ok && len(rest) == 0 {
		return []byte(s)
	}
	w := resp.Writer{Proto: 2}
	w.BulkString(s)
	return w.Buf
}

// skipReply returns the bytes after the reply at the start of b, and reports whether there is one.
func skipReply(b []byte) (rest []byte, ok bool) {
	first, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(first) == 0 {
		return nil, false
	}
	line := string(first)
	n, isNumber := resp.ParseInt([]byte(line[1:]))
	switch line[0] {
	case '+', '-':
		return rest, true
	case ':', '(':
		return rest, isNumber
	case ',':
		_, isFloat := resp.ParseFloat([]byte(line[1:]))
		return rest, isFloat
	case '#':
		return rest, line == "#t" || line == "#f"
	case '_':
		return rest, line == "_"
	case '$':
		if n == -1 && isNumber {
			return rest, true
		}
		if !isNumber || n < 0 || n > int64(len(rest))-2 || string(rest[n:n+2]) != "\r\n" {
			return nil, false
		}
		return rest[n+2:], true
	case '*', '~', '%':
		if n == -1 && line[0] == '*' {
			return rest, isNumber
		}
		if !isNumber || n < 0 || n > int64(len(rest)) {
			return nil, false
		}
		if line[0] == '%' {
			n *= 2
		}
		b = rest
		for range n {
			if b, ok = skipReply(b); !ok {
				return nil, false
			}
		}
		return b, true
	}
	return nil, false
}

// While the server is being closed, everything that runs is stopped again and again, and the libraries must still be
// stored afterwards.
func TestLibrariesOutliveFunctionsThatAreStopped(t *testing.T) {
	in := new(Interrupt)
	f := NewFunctions(Options{Interrupt: in})
	call := func(name string) string {
		w := resp.Writer{Proto: 2}
		f.Run(f.Find([]byte(name)), &fakeHost{}, nil, nil, &w)
		return string(w.Buf)
	}
	_, err := f.Load(`#!lua name=slow
		for i = 1, 2e4 do end
		redis.register_function('spin', function() while true do end end)
		redis.register_function('one', function() return 1 end)`, false)
	require.NoError(t, err)
	_, err = f.Load("#!lua name=other\nredis.register_function('two', function() return 2 end)", false)
	require.NoError(t, err)

	in.Reset()
	closed := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-closed:
				return
			default:
				in.Stop("Stopped by a test.")
			}
		}
	}()
	require.Contains(t, call("spin"), "-ERR Stopped by a test.")
	require.Contains(t, call("one"), "-ERR Error registering functions: ERR Stopped by a test.")
	close(closed)
	<-ended

	// A call that was stopped before its first instruction stays stopped although its library must be loaded.
	in.Reset()
	in.Stop("Stopped before.")
	require.Contains(t, call("one"), "-ERR Error registering functions: ERR Stopped before.")
	in.Reset()
	require.Equal(t, ":1\r\n", call("one"))
	in.Stop("Stopped again.")
	require.Contains(t, call("one"), "Stopped again.")
	in.Reset()

	require.Len(t, f.Libraries(), 2)
	require.Equal(t, ":2\r\n", call("two"))
	require.Equal(t, ":1\r\n", call("one"))
	libraries, functions := f.Count()
	require.Equal(t, []int{2, 3}, []int{libraries, functions})
}
