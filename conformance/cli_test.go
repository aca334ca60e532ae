package conformance

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/server"
)

// cliCommands are commands with replies of all types, in all forms.
const cliCommands = `SET s "a\x01\n\"b\\" EX 100
GET s
GET nosuch
RPUSH l a b "c d" ""
LRANGE l 0 -1
LRANGE nosuch 0 -1
HSET h f v g "w x"
HGETALL h
HGETALL nosuch
SADD one member
SMEMBERS one
SMEMBERS nosuch
ZADD z 1.5 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h 9 i 10 j
ZRANGE z 0 -1 WITHSCORES
ZSCORE z a
XADD x 1-1 f v
XADD x 1-2 f v g w
XRANGE x - +
XINFO STREAM x FULL
NOSUCH
GET
MULTI
SET a 1
GET a
INCR l
EXEC
GET "unfinished
EVAL "return {1,{2,{3,{}}},'x',false,redis.status_reply('fine')}" 0

3 INCR counter
EVAL "return redis.error_reply('MY error')" 0
INFO nosuch
LOLWUT version 5 1 1 1
CLIENT LIST nosuch
DEBUG PROTOCOL string
DEBUG PROTOCOL integer
DEBUG PROTOCOL double
DEBUG PROTOCOL null
DEBUG PROTOCOL array
DEBUG PROTOCOL set
DEBUG PROTOCOL map
DEBUG PROTOCOL push
DEBUG PROTOCOL verbatim
DEBUG PROTOCOL true
DEBUG PROTOCOL false
SUBSCRIBE channel
`

// cliModes are the options with which the output is compared.
var cliModes = []string{"", "--no-raw", "--raw", "--csv", "--json", "--no-raw -3", "--raw -3", "--csv -3", "--json -2"}

func TestTheClientOfTheProgram(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "atomredis")
	out, err := exec.Command("go", "build", "-pgo=off", "-o", binary, "../cmd/atomredis").CombinedOutput()
	require.NoError(t, err, string(out))
	t.Run("writes what redis-cli writes", func(t *testing.T) { testAgainstRedisCli(t, binary) })
	t.Run("finds what redis-cli finds", func(t *testing.T) { testSamplesAgainstRedisCli(t, binary) })
	t.Run("on a terminal", func(t *testing.T) { testOnATerminal(t, binary) })
}

// redisCli7 returns the path of a redis-cli of version 7.0. Without one the test is skipped.
func redisCli7(t *testing.T) string {
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("there is no redis-cli")
	}
	if version, err := exec.Command(path, "--version").Output(); err != nil || !strings.HasPrefix(string(version), "redis-cli 7.0.") {
		t.Skip("there is another version of redis-cli")
	}
	return path
}

// The lines about keys are those of redis-cli 7, except for the order of types and the plural of hash.
func testSamplesAgainstRedisCli(t *testing.T, binary string) {
	redisCli, addr := redisCli7(t), serverAddr(t)
	for line := range strings.Lines("FLUSHALL\nCONFIG SET maxmemory-policy allkeys-lfu lfu-decay-time 0\n" +
		"SET s hello\nSET \"a b\" x\nRPUSH l a b c\n" +
		"SADD set a b\nZADD z 1 a\nHSET h a 1 b 2\nXADD x * a 1\nGET s\n") {
		exchange(t, addr, strings.TrimSpace(line))
	}
	lines := func(program []string, mode string) (found []string) {
		out, err := exec.Command(program[0], append(append(program[1:], at(addr)...), strings.Fields(mode)...)...).Output()
		require.NoError(t, err, "%v %s", program, mode)
		for line := range strings.Lines(string(out)) {
			if sampleLine.MatchString(line) {
				found = append(found, strings.Replace(line, "hashs", "hashes", 1))
			}
		}
		slices.Sort(found)
		return found
	}
	for mode, count := range map[string]int{"--bigkeys": 12, "--memkeys": 12, "--memkeys-samples 0": 12, "--hotkeys": 7,
		"--bigkeys --pattern s*": 8, "--hotkeys -i 0.01": 7} {
		want := lines([]string{redisCli}, mode)
		require.Len(t, want, count, mode)
		require.Equal(t, want, lines([]string{binary, "cli"}, mode), mode)
	}
}

// sampleLine matches the lines of a summary that are about keys.
var sampleLine = regexp.MustCompile(`^(Biggest +\w+ found |\d+ \w+ with |hot key )`)

// atomredis cli prints the same as redis-cli 7.
func testAgainstRedisCli(t *testing.T, binary string) {
	redisCli := redisCli7(t)
	addr := serverAddr(t)
	run := func(program []string, mode string) string {
		exchange(t, addr, "FLUSHALL")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program[0], append(append(program[1:], at(addr)...), strings.Fields(mode)...)...)
		cmd.Stdin = strings.NewReader(cliCommands)
		var out lockedBuffer
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, cmd.Start())
		// The last command subscribes; only a signal ends it.
		require.Eventually(t, func() bool { return subscribed.MatchString(out.String()) }, time.Minute, time.Millisecond,
			"%v %s", program, &out)
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait()
		return out.String()
	}
	for _, mode := range cliModes {
		require.Equal(t, run([]string{redisCli}, mode), run([]string{binary, "cli"}, mode), "mode %q", mode)
	}
}

// subscribed matches the output once the reply to the last command has come.
var subscribed = regexp.MustCompile(`(?s)subscribe.*channel.*1]?\n$`)

// A person types, with hints and completion, interrupts a waiting command, and continues. The history has no passwords.
func testOnATerminal(t *testing.T, binary string) {
	history := filepath.Join(t.TempDir(), "history")
	addr := serverAddr(t)
	cmd := exec.Command(binary, append([]string{"cli"}, at(addr)...)...)
	cmd.Env = append(os.Environ(), "REDISCLI_HISTFILE="+history, "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
	require.NoError(t, err)
	var out lockedBuffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		chunk := make([]byte, 4096)
		for {
			n, err := terminal.Read(chunk)
			out.Write(chunk[:n])
			if bytes.Contains(chunk[:n], []byte("\x1b[6n")) { // it asks for the cursor's position
				io.WriteString(terminal, "\x1b[1;1R")
			}
			if err != nil {
				return
			}
		}
	}()
	prompt := addr + "> "
	awaits := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), want) }, time.Minute, time.Millisecond,
			"%q is not in %q", want, &out)
		out.Reset()
	}
	types := func(keys, want string) {
		t.Helper()
		_, err := io.WriteString(terminal, keys)
		require.NoError(t, err)
		awaits(want)
	}
	awaits(prompt)
	types("lpop", " key [count]")
	types(" k", "lpop k")
	types("\x03", prompt)
	types("mult\t", "multi ")
	types("\r", addr+"(TX)> ")
	types("set k v\r", "QUEUED")
	types("exec\r", "1) OK")
	types("auth verysecret\r", "(error)")
	types("subscribe channel\r", "3) (integer) 1")
	exchange(t, addr, "PUBLISH channel hello")
	awaits(`3) "hello"`)
	types("\x03", prompt)
	types("blpop nosuch 0\r", "\r\n")
	types("\x03", prompt)
	types("clear\r", "\x1b[H\x1b[2J")
	types("get k\r", `"v"`)
	types("help lpop\r", "LPOP key [count]")
	types("\x1b[A\x1b[A\r", `"v"`) // two lines up in the history
	_, err = io.WriteString(terminal, "quit\r")
	require.NoError(t, err)
	<-ended
	require.NoError(t, cmd.Wait())
	require.NoError(t, terminal.Close())
	kept, err := os.ReadFile(history)
	require.NoError(t, err)
	require.Contains(t, string(kept), "set k v\n")
	require.NotContains(t, string(kept), "verysecret")
	info, err := os.Stat(history)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func serverAddr(t *testing.T) string {
	conn, err := startServer(t, server.Options{})()
	require.NoError(t, err)
	defer conn.Close()
	return conn.RemoteAddr().String()
}

func at(addr string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return []string{"-h", host, "-p", port}
}

// exchange sends an inline command and waits for the first bytes of its reply.
func exchange(t *testing.T, addr, command string) {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, command+"\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 64))
	require.NoError(t, err)
}

// lockedBuffer is a buffer that one goroutine writes and another one looks at.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String implements fmt.Stringer.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}
