package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a shell for a new server, and the shell's output.
func start(t *testing.T) (*Shell, *bytes.Buffer) {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return shellAt(t, db.Addr())
}

func shellAt(t *testing.T, addr string) (*Shell, *bytes.Buffer) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	require.NoError(t, err)
	var out bytes.Buffer
	s := &Shell{Address: Address{Host: tcp.IP.String(), Port: tcp.Port}, Format: Plain, Out: bufio.NewWriter(&out), Err: &out}
	t.Cleanup(s.Close)
	return s, &out
}

func TestHints(t *testing.T) {
	s, _ := start(t)
	require.NoError(t, s.connect(t.Context()))
	require.NoError(t, s.loadDocs(t.Context()))
	for line, want := range map[string]string{
		"":                          "",
		"nosuch":                    "",
		"get":                       " key",
		"GET ":                      "key",
		"get k":                     "",
		"lpop ":                     "key [count]",
		"lpop k":                    " [count]",
		"lpop k 1":                  "",
		"del":                       " key [key ...]",
		"del a b":                   " [key ...]",
		"expire k 1 ":               "[NX|XX|GT|LT]",
		"expire k 1 nx":             "",
		"xgroup create k":           " groupname id|$ [MKSTREAM] [ENTRIESREAD entries_read]",
		"xgroup create k g $ mkst":  " [MKSTREAM] [ENTRIESREAD entries_read]",
		"lpos k e rank 1 ":          "[COUNT num-matches] [MAXLEN len]",
		"lpos k e MAXLEN 10 rank 1": " [COUNT num-matches]",
		"zadd z nx ch 1 a":          " [score member ...]",
		"blpop q r ":                "[key ...] timeout",
		"config get maxmemory ":     "[parameter ...]",
		"geosearch k fromlonlat 1 2 ": "BYRADIUS radius M|KM|FT|MI|" +
			"BYBOX width height M|KM|FT|MI|BYPOLYGON num-vertices longitude latitude [longitude latitude ...] [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
	} {
		require.Equal(t, want, s.docs.hint(line), "%q", line)
	}
}

func TestCompletion(t *testing.T) {
	s, _ := start(t)
	require.NoError(t, s.connect(t.Context()))
	require.NoError(t, s.loadDocs(t.Context()))
	for line, want := range map[string]string{
		"mult":            "multi",
		"MULT":            "MULTI",
		"getr":            "getrange",
		"config re":       "resetstat rewrite",
		"expire k 1 ":     "gt lt nx xx",
		"expire k 1 G":    "GT",
		"set k v ke":      "keepttl",
		"xgroup create k": "",
		"nosuch a":        "",
		"help @sor":       "@sorted-set",
		"help getr":       "getrange",
		"help config re":  "resetstat rewrite",
		"help expire ":    "",
	} {
		words, _ := s.docs.complete(line)
		require.Equal(t, want, strings.Join(words, " "), "%q", line)
	}
}

func TestHelp(t *testing.T) {
	s, out := start(t)
	run := func(line string) string {
		out.Reset()
		require.NoError(t, s.Run(t.Context(), strings.NewReader(line)))
		return out.String()
	}
	require.Equal(t, "There is no command getrnage; did you mean getrange?\n", run("help getrnage"))
	require.Equal(t, "There is no command xyzzy\n", run("help xyzzy"))
	require.Equal(t, "There is no group lits; did you mean list?\n", run("help @lits"))
	require.Contains(t, run("help @xyzzy"), "There is no group xyzzy; there are ")
	require.Contains(t, run("help @xyzzy"), ", sorted-set, ")
	require.Contains(t, run("help"), "help @GROUP")
	list := run("help @LIST")
	require.Contains(t, list, "\n  LPOP key [count]\n  summary: Removes and returns elements at the head of a list\n  since: 1.0.0\n\n")
	require.NotContains(t, list, "HGET")
	config := run("help config")
	require.Contains(t, config, "\n  CONFIG\n")
	require.Contains(t, config, "\n  CONFIG SET ")
	require.Equal(t, 1, strings.Count(run("help config set"), "summary"))
	require.Empty(t, run("clear"), "there is no screen")
}

func TestLinesOfTheInput(t *testing.T) {
	s, out := start(t)
	err := s.Run(t.Context(), strings.NewReader("SET k 1\n\n2 INCR k\nNOSUCH\nGET \"k\nSELECT 3\nhelp lpop\nMULTI\nhelp get\nEXEC\nGET k"))
	require.ErrorIs(t, err, ErrReply)
	require.Equal(t, "OK\n(integer) 2\n(integer) 3\n(error) ERR unknown command 'NOSUCH', with args beginning with: \n"+
		"Invalid argument(s)\nOK\n\n  LPOP key [count]\n  summary: Removes and returns elements at the head of a list\n"+
		"  since: 1.0.0\n  group: list\n\nOK\n\n  GET key\n  summary: Returns the value of a key\n  since: 1.0.0\n  group: string\n\n(empty array)\n(nil)\n", out.String())
	require.Equal(t, s.Address.String()+"[3]> ", s.prompt())
	out.Reset()
	require.NoError(t, s.Run(t.Context(), strings.NewReader("quit\nGET k\n")))
	require.Empty(t, out.String())
}

func TestPipeScanAndEval(t *testing.T) {
	s, out := start(t)
	commands := appendCommand(appendCommand(nil, []string{"SET", "a:1", "x"}), []string{"SET", "a:2", "y"})
	require.NoError(t, s.Pipe(t.Context(), bytes.NewReader(commands), time.Minute))
	require.Equal(t, "All data transferred. Waiting for the last reply...\nLast reply received from server.\n"+
		"errors: 0, replies: 2\n", out.String())
	out.Reset()
	require.ErrorIs(t, s.Pipe(t.Context(), bytes.NewReader(appendCommand(commands, []string{"INCR", "a:1"})), 0), ErrReply)
	require.Contains(t, out.String(), "errors: 1, replies: 3\n")
	out.Reset()
	require.NoError(t, s.Scan(t.Context(), Sampling{Pattern: "*1", Count: 10}))
	require.Equal(t, "\"a:1\"\n", out.String())
	out.Reset()
	require.NoError(t, s.Eval(t.Context(), "return {KEYS[1], #KEYS, ARGV[1]}", []string{"k", "l", ",", "m"}))
	require.Equal(t, "1) \"k\"\n2) (integer) 2\n3) \"m\"\n", out.String())
}

// The next command makes an ended connection again, with its database and protocol.
func TestConnectsAgain(t *testing.T) {
	s, out := start(t)
	require.NoError(t, s.Do(t.Context(), []string{"SELECT", "5"}))
	require.NoError(t, s.Do(t.Context(), []string{"HELLO", "3"}))
	require.NoError(t, s.Do(t.Context(), []string{"MULTI"}))
	require.True(t, s.tx)
	id, err := s.ask(t.Context(), []string{"DISCARD"})
	require.NoError(t, err)
	require.Equal(t, "OK", string(id.text))
	require.NoError(t, s.Do(t.Context(), []string{"CLIENT", "KILL", "SKIPME", "no", "TYPE", "normal"}))
	<-s.conn.replies // closed
	out.Reset()
	require.NoError(t, s.Do(t.Context(), []string{"CONFIG", "GET", "port"}))
	require.Contains(t, out.String(), "1# \"port\" => ")
	require.False(t, s.tx)
	out.Reset()
	require.NoError(t, s.Do(t.Context(), []string{"CLIENT", "INFO"}))
	require.Contains(t, out.String(), " db=5 ")
}

// A waiting command ends with its context.
func TestInterrupt(t *testing.T) {
	s, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	require.ErrorIs(t, s.Do(ctx, []string{"BLPOP", "nosuch", "0"}), context.Canceled)
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	err := s.Do(ctx, []string{"MONITOR"})
	require.True(t, err == nil || errors.Is(err, context.Canceled), err)
}

// The shell disconnects from servers that send malformed or too large replies.
func TestRepliesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "\r\n", "?\r\n", "$x\r\n", "$-2\r\n", "$99999999999999\r\n", "$5\r\nab", "*2\r\n:1\r\n", "#x\r\n",
		"=2\r\nab\r\n", strings.Repeat("*1\r\n", maxDepth+2), "*1000000000\r\n:1\r\n"} {
		_, err := readReply(bufio.NewReader(strings.NewReader(text)))
		require.Error(t, err, "%q", text)
	}
	r, err := readReply(bufio.NewReader(strings.NewReader("|1\r\n+a\r\n+b\r\n(12345678901234567890\r\n")))
	require.NoError(t, err)
	require.Equal(t, "12345678901234567890\n", string(Plain.appendReply(nil, r)))
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n%1\r\n+k\r\n_\r\n"))
	f.Add([]byte("~1\r\n#t\r\n>0\r\n=7\r\ntxt:abc\r\n,1.5\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bufio.NewReader(bytes.NewReader(text))
		for {
			r, err := readReply(in)
			if err != nil {
				return
			}
			for f := Raw; f <= JSON; f++ {
				f.appendReply(nil, r)
			}
		}
	})
}

func TestURI(t *testing.T) {
	for uri, want := range map[string]Address{
		"redis://example.org":             {Host: "example.org", Port: 1},
		"redis://example.org:7/3":         {Host: "example.org", Port: 7, DB: 3},
		"redis://secret@example.org":      {Host: "example.org", Port: 1, Password: "secret"},
		"rediss://me:se%20cret@[::1]:700": {Host: "::1", Port: 700, User: "me", Password: "se cret", TLS: &TLS{}},
	} {
		got := Address{Host: "127.0.0.1", Port: 1}
		require.NoError(t, got.ParseURI(uri))
		require.Equal(t, want, got, uri)
	}
	for _, uri := range []string{"", "http://x", "redis://x/y", "redis://x:y"} {
		require.Error(t, new(Address).ParseURI(uri), uri)
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	for line, want := range map[string]bool{
		"AUTH secret": true, "3 auth secret": true, "acl setuser bob on >secret": true, "acl list": false,
		"config set requirepass secret": true, "config set maxmemory 1gb": false, "config set timeout 1 masterauth x": true,
		"config set raft-secret x": true,
		"hello 3 AUTH me secret":   true, "hello 3": false, "migrate h 1 k 0 1 AUTH secret": true, "set auth 1": false,
		"auth \"unfinished": true, "": false,
	} {
		require.Equal(t, want, secret(line), line)
	}
}

// Neither unexpected lines nor a closed connection end the shell.
func TestAServerThatHangsUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "+half")
			c.Close()
		}
	}()
	s, _ := shellAt(t, l.Addr().String())
	require.Error(t, s.Do(t.Context(), []string{"PING"}))
	require.Equal(t, "not connected> ", s.prompt())
}

// scripted is a server that answers commands by their names.
func scripted(t *testing.T, replies map[string]string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					io.WriteString(c, replies[lines.Text()])
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestCommandsGoWhereTheClusterSays(t *testing.T) {
	other := scripted(t, map[string]string{"GET": "$2\r\nhi\r\n", "ASKING": "+OK\r\n", "SET": "+OK\r\n"})
	loop := map[string]string{}
	first := scripted(t, loop)
	loop["GET"], loop["SET"], loop["INCR"] = "-MOVED 7 "+other+"\r\n", "-ASK 7 "+other+"\r\n", "-MOVED 7 "+first+"\r\n"
	_, port, _ := net.SplitHostPort(first)
	loop["DECR"] = "-MOVED 7 :" + port + "\r\n"
	for _, c := range []struct{ command, out string }{
		{"GET", "-> Redirected to slot [7] located at " + other + "\n\"hi\"\n"},
		{"SET", "-> Redirected to slot [7] located at " + other + "\nOK\n"},
		{"INCR", strings.Repeat("-> Redirected to slot [7] located at "+first+"\n", mostRedirects) + "(error) MOVED 7 " + first + "\n"},
		{"DECR", strings.Repeat("-> Redirected to slot [7] located at "+first+"\n", mostRedirects) + "(error) MOVED 7 :" + port + "\n"},
	} {
		s, out := shellAt(t, first)
		require.Error(t, s.Do(t.Context(), []string{c.command}))
		require.Contains(t, out.String(), "(error)")
		out.Reset()
		s.Cluster = true
		err := s.Do(t.Context(), []string{c.command})
		require.Equal(t, c.out, out.String())
		require.Equal(t, strings.Contains(c.out, "(error)"), err != nil)
	}
}
