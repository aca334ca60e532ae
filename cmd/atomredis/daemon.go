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

// daemonize yes: a process cannot leave its terminal alone, so it starts the program once more in a session of its
// own, and ends when that one is ready. If it does not become ready it tells why.

const (
	// daemonEnv is set in the environment of the process in the background.
	daemonEnv = "ATOMREDIS_DAEMON"
	// daemonReady is what that process writes to its parent when it is ready. Anything else is why it is not.
	daemonReady = "ready\n"
	// daemonPidFile is written if the configuration names no other.
	daemonPidFile = "/var/run/redis.pid"
)

// loadConfig reads the configuration of a command line. stdin is what was read of standard input.
func loadConfig(args []string) (conf *config.Config, stdin []byte, err error) {
	if slices.Contains(args, "-") {
		if stdin, err = io.ReadAll(os.Stdin); err != nil {
			return nil, nil, err
		}
	}
	conf = config.NewConfig()
	return conf, stdin, conf.LoadArgsFrom(args, bytes.NewReader(stdin))
}

// inBackground reports whether the configuration wants the server in the background.
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
		return errors.New("the server in the background has ended without a word; its log may say more")
	}
	return errors.New(strings.TrimSpace(string(words)))
}

// daemonParent is the way to the process that has put this one into the background. It is nil if there is none.
type daemonParent struct{ *os.File }

// newDaemonParent returns the way to the parent.
func newDaemonParent() *daemonParent {
	if os.Getenv(daemonEnv) == "" {
		return nil
	}
	os.Unsetenv(daemonEnv)
	return &daemonParent{os.NewFile(3, "parent")}
}

// tell says that the server is ready, or why it is not. Only the first time counts.
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
