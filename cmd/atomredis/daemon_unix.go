//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
)

// spawnDaemon starts the program in a session of its own. The program reports to the file says whether it is ready.
func spawnDaemon(args []string, stdin []byte, says *os.File) error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), daemonEnv+"=1")
	cmd.ExtraFiles = []*os.File{says}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if len(stdin) > 0 {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	return cmd.Start()
}

// stopForUpstart stops the process, which upstart takes for readiness, until upstart continues it.
func stopForUpstart() error {
	os.Unsetenv("UPSTART_JOB")
	return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}
