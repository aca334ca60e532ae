package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/commands/scripts"
	"github.com/atomredis/atomredis/persist/rdb"
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

// call returns the reply to a command whose arguments may have spaces.
func (c *testClient) call(args ...string) string {
	c.send(args...)
	return c.read()
}

func TestFunctionsRun(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "busy-reply-threshold", scriptLimit)...)
		c, other := s.connect(), s.connect()
		require.Equal(t, `"a"`, c.call("FUNCTION", "LOAD", library("a")))
		for i := range 3 {
			require.Equal(t, fmt.Sprint(i+1), c.do("FCALL a_count 0"), "a library's variables last")
		}
		require.Equal(t, "+OK", c.do("FCALL a_set 1 k v"))
		require.Equal(t, "v", c.do("FCALL_RO a_get 1 k"))
		require.Equal(t, "-ERR Can not execute a script with write flag using *_ro command.", c.do("FCALL_RO a_set 1 k v"))

		loop := "#!lua name=loop\nredis.register_function('loop', function() while true do end end)"
		require.Equal(t, `"loop"`, c.call("FUNCTION", "LOAD", loop))
		c.send("FCALL", "loop", "1", "key", "arg")
		other.untilBusy()
		require.Equal(t, "-"+string(scripts.ErrBusyFunction), other.do("SCRIPT KILL"))
		require.Contains(t, other.do("FUNCTION STATS"), `"command" ["FCALL" "loop" "1" "key" "arg"]`)
		require.Equal(t, "+OK", other.do("FUNCTION KILL"))
		require.Equal(t, "-ERR Script killed by user with SCRIPT KILL... script: loop, on @user_function:2.", c.read())
		require.Equal(t, "1", c.do("FCALL a_count 0"), "the libraries have been loaded anew")
		require.Equal(t, "-NOTBUSY No scripts in execution right now.", other.do("FUNCTION KILL"))
	})
}

func TestLibrariesThatDoNotLoadChangeNothing(t *testing.T) {
	s := startTestServer(t, Options{})
	c := s.connect()
	c.call("FUNCTION", "LOAD", library("a"))
	before := c.do("FUNCTION LIST WITHCODE")
	for _, source := range []string{
		"#!lua name=a\nredis.register_function('a_count', 1)",
		"#!lua name=b\nredis.register_function('a_count', function() end)",
		"#!lua name=a\nwhile true do end", "#!lua name=a\nwhile true do redis.sha1hex('x') end",
		"#!lua name=a\nlocal t = {}; t.x.y = 1",
		"#!lua name=a\nredis = 1", "#!lua name=a\nlocal function f() return f() + 1 end f()",
	} {
		require.Equal(t, "-", c.call("FUNCTION", "LOAD", "REPLACE", source)[:1], source)
		require.Equal(t, before, c.do("FUNCTION LIST WITHCODE"), source)
		require.Regexp(t, "^[0-9]+$", c.do("FCALL a_count 0"), source)
	}
}

// redisPayload is what FUNCTION DUMP of Redis 7.0.15 returns for a library with one function; its text is compressed.
const redisPayload = "\xf5\xc3@Z@r\x1f#!lua name=packed\nredis.register\n_function(\"\x80\x1f\x02\", \xe0\x00\x12\x12keys, args) " +
	"return \xa0%\x00 \x80,\xe0\x05\x06\x05\" end)\n\x00~}\xed\"\xaa\r\xd9r"

func TestPayloadsAreRestored(t *testing.T) {
	s := startTestServer(t, Options{})
	c := s.connect()
	for _, name := range []string{"a", "b", "c"} {
		c.call("FUNCTION", "LOAD", library(name))
	}
	v, err := c.Do(testTimeout, "FUNCTION", "DUMP")
	require.NoError(t, err)
	payload, list := v.Text, c.do("FUNCTION LIST WITHCODE")
	require.Equal(t, "-ERR Library a already exists", c.call("FUNCTION", "RESTORE", payload))
	require.Equal(t, "+OK", c.do("FUNCTION DELETE b"))
	require.Equal(t, "+OK", c.call("FUNCTION", "RESTORE", payload, "REPLACE"))
	require.Equal(t, list, c.do("FUNCTION LIST WITHCODE"))
	c.call("FUNCTION", "LOAD", library("d"))
	require.Equal(t, "+OK", c.call("FUNCTION", "RESTORE", payload, "FLUSH"))
	require.Equal(t, list, c.do("FUNCTION LIST WITHCODE"))
	require.Equal(t, "1", c.do("FCALL c_count 0"))
	for i := range payload {
		damaged := []byte(payload)
		damaged[i] ^= 0x10
		require.Equal(t, "-"+string(command.ErrPayload), c.call("FUNCTION", "RESTORE", string(damaged), "FLUSH"))
	}
	require.Equal(t, list, c.do("FUNCTION LIST WITHCODE"))
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

// call returns the reply to a command whose arguments may have spaces. It must not have to wait for the disk.
func (d *durableServer) call(args ...string) string {
	d.s.Input(request(args...), d.ks.Now())
	reply, _ := d.do("PING")
	return strings.TrimSuffix(reply, "+PONG\r\n")
}

func TestFunctionsAreDurable(t *testing.T) {
	for _, journal := range []string{"yes", "no"} {
		fs := vfs.NewMem()
		var d *durableServer
		restart := func() {
			if d != nil {
				d.s.Close()
				// the journal is all that tells of what happened since the last checkpoint
				require.NoError(t, d.close(journal == "no"))
			}
			var err error
			d, err = openDurable(t, fs, "appendonly="+journal, "save=3600 1")
			require.NoError(t, err)
		}
		restart()
		require.Equal(t, "$1\r\na\r\n", d.call("FUNCTION", "LOAD", library("a")))
		require.Equal(t, "$1\r\nb\r\n", d.call("FUNCTION", "LOAD", library("b")))
		d.expect("+OK\r\n", "SAVE")
		d.expect("+OK\r\n", "FUNCTION DELETE a")
		require.Equal(t, "$1\r\nc\r\n", d.call("FUNCTION", "LOAD", library("c")))
		require.Equal(t, "+OK\r\n", d.call("FUNCTION", "RESTORE", redisPayload))
		list := d.call("FUNCTION", "LIST", "WITHCODE")
		for range 2 {
			restart()
			require.Equal(t, list, d.call("FUNCTION", "LIST", "WITHCODE"))
			d.expect(":1\r\n", "FCALL c_count 0")
			d.expect("+OK\r\n", "FCALL b_set 1 k v")
			d.expect("$27\r\npacked packed packed packed\r\n", "FCALL packed 0")
			d.expect("+OK\r\n", "SAVE")
		}
		d.expect("+OK\r\n", "FUNCTION FLUSH")
		restart()
		d.expect("*0\r\n", "FUNCTION LIST")
		d.expect("$1\r\nv\r\n", "GET k")
		d.end()
	}
}
