package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/config"
)

// Notifications for the service manager that has started the process (directive supervised).

// supervisor notifies the service manager.
type supervisor struct {
	kind config.Supervision
	stop chan struct{} // ends the watchdog
}

// newSupervisor returns the notifier for the configured service manager; auto means the one whose variable is in the
// environment.
func newSupervisor(configured config.Supervision) *supervisor {
	kind := configured
	if kind == config.SupervisedAuto {
		switch {
		case os.Getenv("UPSTART_JOB") != "":
			kind = config.SupervisedUpstart
		case os.Getenv("NOTIFY_SOCKET") != "":
			kind = config.SupervisedSystemd
		default:
			kind = config.SupervisedNo
		}
	}
	return &supervisor{kind: kind, stop: make(chan struct{})}
}

// ready reports that the server accepts clients, and starts the watchdog.
func (s *supervisor) ready() error {
	switch s.kind {
	case config.SupervisedUpstart:
		return stopForUpstart()
	case config.SupervisedSystemd:
		if err := notifySystemd("READY=1", "STATUS=Ready to accept connections"); err != nil {
			return err
		}
		if period := watchdogPeriod(); period > 0 {
			go s.watchdog(period)
		}
	}
	return nil
}

// reloading reports the start of a reload, which systemctl reload requests with a signal; reloaded reports its end.
func (s *supervisor) reloading() {
	if s.kind == config.SupervisedSystemd {
		notifySystemd("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic().Microseconds(), 10))
	}
}

func (s *supervisor) reloaded() {
	if s.kind == config.SupervisedSystemd {
		notifySystemd("READY=1")
	}
}

// stopping reports that the server is about to end.
func (s *supervisor) stopping() {
	close(s.stop)
	if s.kind == config.SupervisedSystemd {
		notifySystemd("STOPPING=1", "STATUS=Saving what is stored")
	}
}

// watchdog reports to systemd in each period that the process is alive.
func (s *supervisor) watchdog(period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			notifySystemd("WATCHDOG=1")
		case <-s.stop:
			return
		}
	}
}

// watchdogPeriod returns half of systemd's watchdog time, 0 if systemd has no watchdog for this process.
func watchdogPeriod() time.Duration {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || micros <= 0 {
		return 0
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(micros) * time.Microsecond / 2
}

// notifySystemd sends states to the socket of systemd, if there is one.
func notifySystemd(states ...string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", socket) // net.Dial takes a name that begins with @ for an abstract socket
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(strings.Join(states, "\n")))
	return err
}
