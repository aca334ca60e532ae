package scripts_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/server"
)

// library is the source of a library with a counter and a writer.
func library(name string) string {
	return "#!lua name=" + name + "\nlocal n = 0\n" +
		"redis.register_function('" + name + "_count', function() n = n + 1; return n end)\n" +
		"redis.register_function{function_name='" + name +
		"_set', callback=function(keys, args) return redis.call('set', keys[1], args[1]) end}\n" +
		"redis.register_function{function_name='" + name +
		"_get', callback=function(keys) return redis.call('get', keys[1]) end, flags={'no-writes'}}"
}

func TestFunctionsRun(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		c, other := s.Connect(), s.Connect()
		require.Equal(t, `"a"`, c.Call("FUNCTION", "LOAD", library("a")))
		for i := range 3 {
			require.Equal(t, fmt.Sprint(i+1), c.Line("FCALL a_count 0"), "a library's variables last")
		}
		require.Equal(t, "+OK", c.Line("FCALL a_set 1 k v"))
		require.Equal(t, "v", c.Line("FCALL_RO a_get 1 k"))
		require.Equal(t, "-ERR Can not execute a script with write flag using *_ro command.", c.Line("FCALL_RO a_set 1 k v"))

		loop := "#!lua name=loop\nredis.register_function('loop', function() while true do end end)"
		require.Equal(t, `"loop"`, c.Call("FUNCTION", "LOAD", loop))
		c.Send("FCALL", "loop", "1", "key", "arg")
		untilBusy(other)
		require.Equal(t, "-"+string(scripts.ErrBusyFunction), other.Line("SCRIPT KILL"))
		require.Contains(t, other.Line("FUNCTION STATS"), `"command" ["FCALL" "loop" "1" "key" "arg"]`)
		require.Equal(t, "+OK", other.Line("FUNCTION KILL"))
		require.Equal(t, "-ERR Script killed by user with SCRIPT KILL... script: loop, on @user_function:2.", c.Next())
		require.Equal(t, "1", c.Line("FCALL a_count 0"), "the libraries have been loaded anew")
		require.Equal(t, "-NOTBUSY No scripts in execution right now.", other.Line("FUNCTION KILL"))
	})
}

func TestLibrariesThatDoNotLoadChangeNothing(t *testing.T) {
	s := servertest.Start(t, server.Options{})
	c := s.Connect()
	c.Call("FUNCTION", "LOAD", library("a"))
	before := c.Line("FUNCTION LIST WITHCODE")
	for _, source := range []string{
		"#!lua name=a\nredis.register_function('a_count', 1)",
		"#!lua name=b\nredis.register_function('a_count', function() end)",
		"#!lua name=a\nwhile true do end", "#!lua name=a\nwhile true do redis.sha1hex('x') end",
		"#!lua name=a\nlocal t = {}; t.x.y = 1",
		"#!lua name=a\nredis = 1", "#!lua name=a\nlocal function f() return f() + 1 end f()",
	} {
		require.Equal(t, "-", c.Call("FUNCTION", "LOAD", "REPLACE", source)[:1], source)
		require.Equal(t, before, c.Line("FUNCTION LIST WITHCODE"), source)
		require.Regexp(t, "^[0-9]+$", c.Line("FCALL a_count 0"), source)
	}
}

// redisPayload is what FUNCTION DUMP of Redis 7.0.15 returns for a library with one function; its text is compressed.
const redisPayload = "\xf5\xc3@Z@r\x1f#!lua name=packed\nredis.register\n_function(\"\x80\x1f\x02\", \xe0\x00\x12\x12keys, args) " +
	"return \xa0%\x00 \x80,\xe0\x05\x06\x05\" end)\n\x00~}\xed\"\xaa\r\xd9r"

func TestPayloadsAreRestored(t *testing.T) {
	s := servertest.Start(t, server.Options{})
	c := s.Connect()
	for _, name := range []string{"a", "b", "c"} {
		c.Call("FUNCTION", "LOAD", library(name))
	}
	v, err := c.Do(testclient.Timeout, "FUNCTION", "DUMP")
	require.NoError(t, err)
	payload, list := v.Text, c.Line("FUNCTION LIST WITHCODE")
	require.Equal(t, "-ERR Library a already exists", c.Call("FUNCTION", "RESTORE", payload))
	require.Equal(t, "+OK", c.Line("FUNCTION DELETE b"))
	require.Equal(t, "+OK", c.Call("FUNCTION", "RESTORE", payload, "REPLACE"))
	require.Equal(t, list, c.Line("FUNCTION LIST WITHCODE"))
	c.Call("FUNCTION", "LOAD", library("d"))
	require.Equal(t, "+OK", c.Call("FUNCTION", "RESTORE", payload, "FLUSH"))
	require.Equal(t, list, c.Line("FUNCTION LIST WITHCODE"))
	require.Equal(t, "1", c.Line("FCALL c_count 0"))
	for i := range payload {
		damaged := []byte(payload)
		damaged[i] ^= 0x10
		require.Equal(t, "-"+string(command.ErrPayload), c.Call("FUNCTION", "RESTORE", string(damaged), "FLUSH"))
	}
	require.Equal(t, list, c.Line("FUNCTION LIST WITHCODE"))
}

func FuzzFunctionPayload(f *testing.F) {
	f.Add([]byte("\xf5\x01x"))
	f.Add([]byte("\xf5\xc3\x04\x0a\x00a\xe0\x00"))
	f.Add([]byte("\xf6"))
	f.Fuzz(func(t *testing.T, b []byte) {
		codes, err := rdb.RestoreFunctions(rdb.Seal(b))
		if err != nil {
			return
		}
		again, err := rdb.RestoreFunctions(rdb.DumpFunctions(codes))
		require.NoError(t, err)
		require.Equal(t, codes, again)
	})
}

func TestFunctionsAreDurable(t *testing.T) {
	for _, journal := range []string{"yes", "no"} {
		fs := crashfs.Mem()
		var d *servertest.Durable
		restart := func() {
			if d != nil {
				if journal == "no" {
					d.End()
				} else {
					d.Drop() // only the journal has the changes since the last checkpoint
				}
			}
			d = servertest.OpenDurable(t, fs, "appendonly", journal, "save", "3600 1")
		}
		restart()
		require.Equal(t, "$1\r\na\r\n", d.Call("FUNCTION", "LOAD", library("a")))
		require.Equal(t, "$1\r\nb\r\n", d.Call("FUNCTION", "LOAD", library("b")))
		d.Expect("+OK\r\n", "SAVE")
		d.Expect("+OK\r\n", "FUNCTION DELETE a")
		require.Equal(t, "$1\r\nc\r\n", d.Call("FUNCTION", "LOAD", library("c")))
		require.Equal(t, "+OK\r\n", d.Call("FUNCTION", "RESTORE", redisPayload))
		list := d.Call("FUNCTION", "LIST", "WITHCODE")
		for range 2 {
			restart()
			require.Equal(t, list, d.Call("FUNCTION", "LIST", "WITHCODE"))
			d.Expect(":1\r\n", "FCALL c_count 0")
			d.Expect("+OK\r\n", "FCALL b_set 1 k v")
			d.Expect("$27\r\npacked packed packed packed\r\n", "FCALL packed 0")
			d.Expect("+OK\r\n", "SAVE")
		}
		d.Expect("+OK\r\n", "FUNCTION FLUSH")
		restart()
		d.Expect("*0\r\n", "FUNCTION LIST")
		d.Expect("$1\r\nv\r\n", "GET k")
		d.End()
	}
}
