//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
)

// spawnDaemon starts the program in a session of its own; says is the file to which it tells how that went.
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

// stopForUpstart stops the process until upstart, which has seen that, lets it go on.
func stopForUpstart() error {
	os.Unsetenv("UPSTART_JOB")
	return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}
