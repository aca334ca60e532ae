// Package oracle runs the redis-server found in PATH, for tests that compare with a real Redis.
package oracle

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Variable is the environment variable that enables tests against a real Redis with the value 1.
const Variable = "ATOMREDIS_ORACLE"

// startTimeout is how long Redis may take until it accepts connections.
const startTimeout = time.Minute

// Start runs a redis-server for the length of the test and returns the path of its Unix socket. It skips the test if
// Variable is not set. Further arguments go to redis-server.
func Start(t testing.TB, args ...string) string {
	t.Helper()
	if os.Getenv(Variable) != "1" {
		t.Skipf("%s is not 1", Variable)
	}
	// A Unix socket's path must be short, and that of t.TempDir may be too long.
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command("redis-server", append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir",
		dir, "--enable-debug-command", "yes"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") { // 7.0 and 8 say it differently
				close(ready)
				break
			}
		}
		// Redis must not block on a full pipe.
		for lines.Scan() {
		}
	}()
	select {
	case <-ready:
	case <-time.After(startTimeout):
		t.Fatal("redis-server did not start")
	}
	return socket
}
