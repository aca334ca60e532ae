package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
)

// asProgram is the environment variable that makes the test binary run as the program.
const asProgram = "ATOMREDIS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program returns a command that runs the program.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Dir = t.TempDir()
	return cmd
}

// eventually waits until a condition holds.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 30*time.Second, 5*time.Millisecond)
}

// listening waits until a server answers on a socket.
func listening(t *testing.T, socket string) {
	t.Helper()
	eventually(t, func() bool {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

func TestTheServerOutlivesTheReaderOfItsLog(t *testing.T) {
	for _, stderrToo := range []bool{false, true} {
		socket := filepath.Join(t.TempDir(), "s")
		cmd := program(t, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--loglevel", "debug")
		r, w, err := os.Pipe()
		require.NoError(t, err)
		cmd.Stdout = w
		if stderrToo {
			cmd.Stderr = w
		}
		require.NoError(t, cmd.Start())
		w.Close()
		_, err = bufio.NewReaderSize(r, 16).ReadString('\n') // as head -1
		require.NoError(t, err)
		r.Close()
		listening(t, socket)
		for range 3 {
			require.NoError(t, cmd.Process.Signal(syscall.SIGHUP)) // SIGHUP is logged
			require.Equal(t, "+OK", ask(t, socket, "SET a b"))
		}
		require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
		require.NoError(t, cmd.Wait())
	}
}

func TestAFullPipeDoesNotHoldUpTheServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	cmd := program(t, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.Write(make([]byte, 65536)) // fill the pipe, which has no reader
	require.NoError(t, err)
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	w.Close()
	listening(t, socket)
	require.Equal(t, "+OK", ask(t, socket, "CONFIG SET loglevel debug"))
	require.Equal(t, "+PONG", ask(t, socket, "PING"))
	require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
	require.NoError(t, cmd.Wait())
}

func TestNoStandardOutputAtAll(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	cmd := program(t, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	shell := exec.Command("/bin/sh", append([]string{"-c", `exec "$@" >&- 2>&- <&-`, "sh", cmd.Path}, cmd.Args[1:]...)...)
	shell.Env, shell.Dir = cmd.Env, cmd.Dir
	require.NoError(t, shell.Start())
	listening(t, socket)
	require.Equal(t, "+OK", ask(t, socket, "SET a b"))
	require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
	require.NoError(t, shell.Wait())
}

// gate is a writer that blocks or fails until the test changes it.
type gate struct {
	mu      sync.Mutex
	err     error
	waiting chan struct{} // closed when a write waits
	open    chan struct{}
	out     strings.Builder
}

func (g *gate) Write(b []byte) (int, error) {
	if g.open != nil {
		select {
		case <-g.open:
		default:
			close(g.waiting)
			<-g.open
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return 0, g.err
	}
	return g.out.Write(b)
}

func (g *gate) setErr(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

func (g *gate) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.String()
}

func testLog(w io.Writer) (*slog.Logger, *logSink) {
	h := newLogHandler(config.NewConfig(), slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return nameLevel(groups, a)
	}}, logStream{w})
	return slog.New(h), h.sink
}

func TestLinesThatCannotBeWrittenAreDroppedAndCounted(t *testing.T) {
	g := new(gate)
	log, sink := testLog(g)
	log.With("a", 1).WithGroup("g").Info("one", "b", 2)
	eventually(t, func() bool { return g.String() != "" })
	g.setErr(errors.New("broken pipe"))
	counted := func(n int) func() bool {
		return func() bool {
			sink.mu.Lock()
			defer sink.mu.Unlock()
			return sink.dropped == n && sink.size == 0
		}
	}
	log.Info("two")
	eventually(t, counted(1))
	log.Info("three")
	eventually(t, counted(2))
	g.setErr(nil)
	log.Warn("four")
	sink.close()
	require.Equal(t, "level=notice msg=one a=1 g.b=2\nlevel=warning msg=\"lines of the log could not be written\" lines=2\nlevel=warning msg=four\n", g.String())
}

func TestAQueueOfLinesIsBounded(t *testing.T) {
	g := &gate{waiting: make(chan struct{}), open: make(chan struct{})}
	log, sink := testLog(g)
	log.Info("first")
	<-g.waiting
	const lines = 300
	for range lines { // each longer than a hundredth of the queue
		log.Info("x", "text", strings.Repeat("y", logQueue/100))
	}
	sink.mu.Lock()
	require.LessOrEqual(t, sink.size, logQueue)
	require.Greater(t, sink.dropped, lines-100)
	sink.mu.Unlock()
	close(g.open)
	eventually(t, func() bool { return strings.Contains(g.String(), "could not be written") })
	sink.close()
}

func TestALogFileThatWasRenamedIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	path, rotated := filepath.Join(dir, "log"), filepath.Join(dir, "log.1")
	conf := config.NewConfig()
	require.NoError(t, conf.Set("logfile", path, false))
	log, err := openLog(conf, io.Discard)
	require.NoError(t, err)
	has := func(file, text string) func() bool {
		return func() bool {
			content, _ := os.ReadFile(file)
			return strings.Contains(string(content), text)
		}
	}
	log.Info("one")
	eventually(t, has(path, "msg=one"))
	require.NoError(t, os.Rename(path, rotated))
	log.Info("two")
	eventually(t, has(path, "msg=two"))
	require.False(t, has(rotated, "msg=two")())

	require.NoError(t, os.Remove(path)) // reopen without a log line, as after SIGHUP
	log.reopen()
	eventually(t, func() bool { _, err := os.Stat(path); return err == nil })

	require.NoError(t, os.Rename(path, rotated))
	require.NoError(t, os.Mkdir(path, 0o700)) // no file can be created here
	log.Info("three")
	eventually(t, has(rotated, "msg=three"))
	require.NoError(t, os.Remove(path))
	log.Info("four")
	log.close()
	require.True(t, has(path, "msg=four")())
}

// Changes of the format take effect with the next line.
func TestFormatsOfTheLog(t *testing.T) {
	conf := config.NewConfig()
	var out bytes.Buffer
	h := newLogHandler(conf, slog.HandlerOptions{ReplaceAttr: nameLevel}, logStream{&out})
	log := slog.New(h).With("port", 1)
	tests := []struct{ format, timestamps, want string }{
		{"logfmt", "legacy", `time=\d{4}-\d\d-\d\dT\S+ level=notice msg="it is" port=1 words="a b"`},
		{"logfmt", "iso8601", `time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\S+ level=notice msg="it is" port=1 words="a b"`},
		{"logfmt", "milliseconds", `time=\d{13} level=notice msg="it is" port=1 words="a b"`},
		{"json", "legacy", `{"time":"\d{4}-\S+","level":"notice","msg":"it is","port":1,"words":"a b"}`},
		{"json", "milliseconds", `{"time":\d{13},"level":"notice","msg":"it is","port":1,"words":"a b"}`},
		{"text", "legacy", `\d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3} notice it is port=1 words="a b"`},
		{"text", "iso8601", `\d{4}-\d\d-\d\dT\S+ notice it is port=1 words="a b"`},
		{"legacy", "legacy", `\d+:M \d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3} \* it is port=1 words="a b"`},
		{"legacy", "milliseconds", `\d+:M \d{13} \* it is port=1 words="a b"`},
	}
	for _, tc := range tests {
		require.NoError(t, conf.Set("log-format", tc.format, true))
		require.NoError(t, conf.Set("log-timestamp-format", tc.timestamps, true))
		log.Info("it is", "words", "a b")
	}
	require.NoError(t, conf.Set("log-format", "text", true))
	slog.New(h).Warn("no more")
	h.sink.close()
	lines := strings.Split(out.String(), "\n")
	for i, tc := range tests {
		require.Regexp(t, "^"+tc.want+"$", lines[i])
	}
	require.Equal(t, []string{"warning no more", ""}, []string{lines[len(tests)][len("1700000000000 "):], lines[len(tests)+1]})
}
