package crash

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

const (
	// startTimeout is the most time that a server may take to recover.
	startTimeout = 60 * time.Second
	// stopTimeout is the most time that it may take to shut down.
	stopTimeout = 30 * time.Second
)

// server is a running server.
type server struct {
	cmd    *exec.Cmd
	addr   string
	exited chan struct{}
}

// launcher starts servers, one after the other, on the same port.
type launcher struct {
	binary, fsync string
	// redis reports that the binary is a redis-server, which lacks some options.
	redis bool
	port  int
	doors doors
	log   *os.File
}

func newLauncher(binary, fsync, logPath string) (*launcher, error) {
	version, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", binary, err)
	}
	l, err := newBareLauncher(binary, fsync, logPath)
	if err != nil {
		return nil, err
	}
	l.redis = strings.HasPrefix(string(version), "Redis server")
	if l.doors, err = newDoors(filepath.Dir(logPath)); err != nil {
		return nil, err
	}
	return l, nil
}

// newBareLauncher makes a launcher of servers without doors.
func newBareLauncher(binary, fsync, logPath string) (l *launcher, err error) {
	l = &launcher{binary: binary, fsync: fsync}
	if l.port, err = freePort(); err != nil {
		return nil, err
	}
	l.log, err = os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return l, err
}

// tierMemory is the maxmemory of servers whose values leave memory: more than keys and clients need, less than the
// values.
const tierMemory = "5mb"

// start starts a server on a data directory; its values leave memory if tier is set. It does not wait until the server
// answers.
func (l *launcher) start(dir string, shards, ioThreads int, tier bool) (*server, error) {
	var args []string
	if !l.redis {
		args = append(args, "--checkpoint-size", "1mb", "--shards", strconv.Itoa(shards), "--io-threads",
			strconv.Itoa(ioThreads), "--changes-retention", keptChanges, "--enable-debug-command", "local")
		if tier {
			args = append(args, "--maxmemory", tierMemory, "--maxmemory-policy", "tier")
		}
		args = append(args, l.doors.options...)
	}
	return l.run(dir, args)
}

// keptChanges is the changes-retention of servers: their readers never miss changes.
const keptChanges = "4gb"

// startCopy starts a server that leaves expired keys alone.
func (l *launcher) startCopy(dir string) (*server, error) {
	return l.run(dir, []string{"--databases", strconv.Itoa(databases + 1), "--import-mode", "yes", "--checkpoint-size", "1mb",
		"--enable-debug-command", "local"})
}

// run starts a server on a data directory with further options.
func (l *launcher) run(dir string, options []string) (*server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	args := append([]string{"--port", strconv.Itoa(l.port), "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes",
		"--appendfsync", l.fsync, "--save", ""}, options...)
	fmt.Fprintf(l.log, "--- %s %s %s\n", time.Now().Format(time.StampMilli), filepath.Base(l.binary),
		strings.Join(args, " "))
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port))
	s := &server{cmd: exec.Command(l.binary, args...), addr: addr, exited: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = l.log, l.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	return s, nil
}

// dial makes a connection.
func (s *server) dial() (*transcript.Conn, error) {
	nc, err := transcript.Dial(s.addr)
	if err != nil {
		return nil, err
	}
	return transcript.NewConn(nc), nil
}

// ready waits until the server answers all commands.
func (s *server) ready() error {
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s.dead() {
			return fmt.Errorf("the server does not start: %s", s.cmd.ProcessState)
		}
		c, err := s.dial()
		if err != nil {
			continue
		}
		replies, err := do(c, []string{"PING"}, []string{"INFO", "persistence"})
		c.Close()
		if err == nil && replies[0].Text == "PONG" && strings.Contains(replies[1].Text, "\nloading:0\r") {
			return nil
		}
	}
	return fmt.Errorf("the server is not ready after %v", startTimeout)
}

func (s *server) dead() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// kill ends the server with SIGKILL and waits until it is gone.
func (s *server) kill() {
	s.cmd.Process.Kill()
	<-s.exited
}

// shutdown ends the server with SHUTDOWN.
func (s *server) shutdown() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if replies, err := do(c, []string{"SHUTDOWN"}); err == nil {
		return fmt.Errorf("SHUTDOWN gave %s", replies[0])
	} else if !errors.Is(err, errEnded) {
		return err
	}
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		return fmt.Errorf("the server still runs %v after SHUTDOWN", stopTimeout)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("exit code %d after SHUTDOWN", code)
	}
	return nil
}

// tail returns the last lines of a file.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		f.Seek(max(0, info.Size()-3000), io.SeekStart)
	}
	b, _ := io.ReadAll(f)
	return string(b)
}
