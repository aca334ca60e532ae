package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/config"
)

// daemonize yes: a Go process cannot detach itself from its terminal. So it starts the program again in a session of
// its own, and ends when the second process is ready, or reports why it is not.

const (
	// daemonEnv is set in the environment of the process in the background.
	daemonEnv = "ATOMREDIS_DAEMON"
	// daemonReady is what the process in the background writes to its parent when it is ready. Anything else is an
	// error message.
	daemonReady = "ready\n"
	// daemonPidFile is the pid file unless the configuration names another.
	daemonPidFile = "/var/run/redis.pid"
)

// loadConfig reads the configuration of a command line. stdin is the content of standard input if args contain "-".
func loadConfig(args []string) (conf *config.Config, stdin []byte, err error) {
	if slices.Contains(args, "-") {
		if stdin, err = io.ReadAll(os.Stdin); err != nil {
			return nil, nil, err
		}
	}
	conf = config.NewConfig()
	return conf, stdin, conf.LoadArgsFrom(args, bytes.NewReader(stdin))
}

// inBackground reports whether the server must run in the background.
func inBackground(set *config.Settings, s *supervisor) bool {
	return set.Process.Daemonize && s.kind == config.SupervisedNo
}

// startDaemon starts the program again in the background and waits until it is ready.
func startDaemon(args []string, stdin []byte) error {
	said, says, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	err = spawnDaemon(args, stdin, says)
	says.Close()
	if err != nil {
		return fmt.Errorf("daemonize: %w", err)
	}
	words, err := io.ReadAll(said)
	switch {
	case err != nil:
		return err
	case string(words) == daemonReady:
		return nil
	case len(words) == 0:
		return errors.New("the server in the background ended without an error message; see its log")
	}
	return errors.New(strings.TrimSpace(string(words)))
}

// daemonParent is the pipe to the process that started this one in the background, nil if none did.
type daemonParent struct{ *os.File }

// newDaemonParent returns the pipe to the parent.
func newDaemonParent() *daemonParent {
	if os.Getenv(daemonEnv) == "" {
		return nil
	}
	os.Unsetenv(daemonEnv)
	return &daemonParent{os.NewFile(3, "parent")}
}

// tell reports that the server is ready, or why it is not. Only the first call has an effect.
func (p *daemonParent) tell(problem error) {
	if p == nil || p.File == nil {
		return
	}
	word := daemonReady
	if problem != nil {
		word = problem.Error()
	}
	io.WriteString(p, word)
	p.Close()
	p.File = nil
}
