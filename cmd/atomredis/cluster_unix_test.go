//go:build unix

package main

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// output collects the output of a program.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// processAt returns the pid of the process that serves an address.
func processAt(t *testing.T, addr string) int {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("INFO server\r\n"))
	require.NoError(t, err)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "no number")
	return 0
}

// A cluster from "cluster start" survives the kill of a leader's process, and an interrupt ends it.
func TestClusterStart(t *testing.T) {
	var out output
	cmd := program(t, "cluster", "start", "--dir", "c", "--shards", "2", "--port", freeport.Port(t))
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := false
	defer func() {
		if !ended {
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait()
		}
	}()
	says := func(c *assert.CollectT, text string) { assert.Contains(c, out.String(), text) }
	require.EventuallyWithT(t, func(c *assert.CollectT) { says(c, "The shards know each other") }, time.Minute, 5*time.Millisecond)
	leads := regexp.MustCompile(`127\.0\.0\.1:(\d+) leads`)
	told := leads.FindAllStringSubmatch(out.String(), -1)
	n := processAt(t, net.JoinHostPort("127.0.0.1", told[len(told)-1][1])) // an earlier one may lead no more
	killed, err := os.FindProcess(n)
	require.NoError(t, err)
	require.NoError(t, killed.Kill())
	leaders := len(leads.FindAllString(out.String(), -1))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		says(c, "has ended (signal: killed)")
		assert.Greater(c, len(leads.FindAllString(out.String(), -1)), leaders, out.String())
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	ended = true
	require.NoError(t, cmd.Wait(), out.String())
}
