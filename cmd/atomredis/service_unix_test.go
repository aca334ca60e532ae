//go:build unix

package main

import (
	"bytes"
	"log/slog"
	"log/syslog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
)

// inMemory returns the arguments for a server that stores nothing and listens on a socket only.
func inMemory(socket string, args ...string) []string {
	return append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"}, args...)
}

func TestDaemonizeEndsWhenTheServerIsReady(t *testing.T) {
	for _, stdin := range []string{"", "daemonize yes\ntimeout 7\n"} {
		dir := t.TempDir()
		socket, pid := filepath.Join(dir, "s"), filepath.Join(dir, "pid")
		args := inMemory(socket, "--pidfile", pid, "--logfile", filepath.Join(dir, "log"))
		if stdin == "" {
			args = append(args, "--daemonize", "yes")
		} else {
			args = append(args, "-")
		}
		cmd := program(t, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Empty(t, out)
		require.Equal(t, "+PONG", ask(t, socket, "PING"), "it is there already")
		content, err := os.ReadFile(pid)
		require.NoError(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(content)))
		require.NoError(t, err)
		session, err := syscall.Getpgid(n)
		require.NoError(t, err)
		require.Equal(t, n, session, "a session of its own")
		require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
		eventually(t, func() bool { _, err := os.Stat(pid); return err != nil })
	}
}

func TestDaemonizeTellsWhyTheServerCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--port", "0"}, "atomredis: configured to listen nowhere"},
		{[]string{"--bind", "127.0.0.1", "--port", port}, "address already in use"},
		{[]string{"--dir", "/nonexistent/dir"}, "atomredis: Can't chdir to '/nonexistent/dir': No such file or directory"},
	} {
		var stderr bytes.Buffer
		cmd := program(t, append(tc.args, "--daemonize", "yes")...)
		cmd.Stderr = &stderr
		require.Error(t, cmd.Run())
		require.Equal(t, 1, cmd.ProcessState.ExitCode())
		require.Contains(t, stderr.String(), tc.want)
	}
}

func TestSystemdIsToldWhatHappens(t *testing.T) {
	for _, supervised := range []string{"systemd", "auto"} {
		dir := t.TempDir()
		socket, notify := filepath.Join(dir, "s"), filepath.Join(dir, "notify")
		manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
		require.NoError(t, err)
		defer manager.Close()
		require.NoError(t, manager.SetReadDeadline(time.Now().Add(time.Minute)))
		hears := func(want string) {
			t.Helper()
			buf := make([]byte, 4096)
			for {
				n, err := manager.Read(buf)
				require.NoError(t, err, want)
				if state, _, _ := strings.Cut(string(buf[:n]), "\n"); state == want {
					return
				}
				require.Contains(t, string(buf[:n]), "WATCHDOG=1", "nothing else comes before "+want)
			}
		}
		cmd := program(t, inMemory(socket, "--supervised", supervised, "--daemonize", "yes")...)
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+notify, "WATCHDOG_USEC=20000")
		require.NoError(t, cmd.Start())
		hears("READY=1")
		hears("WATCHDOG=1")
		hears("WATCHDOG=1")
		require.Equal(t, "+PONG", ask(t, socket, "PING"))
		script := `"return {ok=redis.call('INFO','server'):match('process_supervised:%a+')}"`
		require.Equal(t, "+process_supervised:systemd", ask(t, socket, "EVAL "+script+" 0"))
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		hears("RELOADING=1")
		hears("READY=1")
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		hears("STOPPING=1")
		require.NoError(t, cmd.Wait())
	}
}

func TestTheWatchdogIsForOneProcess(t *testing.T) {
	for _, tc := range []struct {
		usec, pid string
		want      time.Duration
	}{{"", "", 0}, {"x", "", 0}, {"-1", "", 0}, {"2000000", "", time.Second}, {"2000000", "1", 0},
		{"2000000", strconv.Itoa(os.Getpid()), time.Second}} {
		t.Setenv("WATCHDOG_USEC", tc.usec)
		t.Setenv("WATCHDOG_PID", tc.pid)
		require.Equal(t, tc.want, watchdogPeriod(), tc)
	}
}

func TestUpstartLetsTheServerGoOn(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	cmd := program(t, inMemory(socket, "--supervised", "auto")...)
	cmd.Env = append(cmd.Env, "UPSTART_JOB=redis")
	require.NoError(t, cmd.Start())
	var status syscall.WaitStatus
	_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Equal(t, "+PONG", ask(t, socket, "PING"))
	require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
	require.NoError(t, cmd.Wait())
}

func TestTheLogOfTheSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	out := &syslogOutput{dial: func() (*syslog.Writer, error) {
		return syslog.Dial("unixgram", path, syslog.LOG_LOCAL3|syslog.LOG_NOTICE, "me")
	}}
	h := newLogHandler(config.NewConfig(), slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTimeAndLevel}, out)
	log := slog.New(h)
	log.Debug("one")
	log.Log(t.Context(), config.LevelVerbose, "two")
	log.Info("three", "a", 1)
	log.Error("four")
	h.sink.close()
	buf := make([]byte, 4096)
	for i, want := range []string{`msg=one`, `msg=two`, `msg=three a=1`, `msg=four`} {
		n, err := l.Read(buf)
		require.NoError(t, err)
		require.Regexp(t, `^<`+strconv.Itoa(19<<3+[]int{7, 6, 5, 4}[i])+`>.* me\[\d+\]: `+want+`\n$`, string(buf[:n]))
	}
}

func TestASignalEndsTheServerAsConfigured(t *testing.T) {
	for _, tc := range []struct {
		flags string
		sig   os.Signal
		kept  string
	}{{"default", syscall.SIGTERM, "$1"}, {"nosave", syscall.SIGTERM, "$-1"}, {"nosave", syscall.SIGINT, "$1"}} {
		dir := t.TempDir()
		socket := filepath.Join(dir, "s")
		args := []string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "3600 1", "--appendonly", "no",
			"--shutdown-on-sigterm", tc.flags}
		cmd := program(t, args...)
		require.NoError(t, cmd.Start())
		listening(t, socket)
		eventually(t, func() bool { return ask(t, socket, "SET a b") == "+OK" })
		require.NoError(t, cmd.Process.Signal(tc.sig))
		require.NoError(t, cmd.Wait())
		cmd = program(t, args...)
		require.NoError(t, cmd.Start())
		listening(t, socket)
		eventually(t, func() bool { return !strings.HasPrefix(ask(t, socket, "GET a"), "-") })
		require.Equal(t, tc.kept, ask(t, socket, "GET a"), tc)
		require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
		require.NoError(t, cmd.Wait())
	}
}

func TestASignalEndsWhatWorksOnFiles(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	silent, err := net.Listen("unix", socket) // never answers
	require.NoError(t, err)
	defer silent.Close()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			continue // as under nohup; the program then rightly ignores the signal too
		}
		cmd := program(t, "backup", t.TempDir(), "-s", socket)
		require.NoError(t, cmd.Start())
		conn, err := silent.Accept()
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(sig))
		require.Error(t, cmd.Wait())
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		require.Equal(t, sig, status.Signal())
		conn.Close()
	}
}
