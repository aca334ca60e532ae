package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

const (
	clusterSize = 3
	firstPort   = 7001
	// raftOffset is between a server's port for clients and the one for the others of its group.
	raftOffset = 10_000
	// afterEnd is when a server that has ended is started again, and quitting how long one may take to end.
	afterEnd = 500 * time.Millisecond
	quitting = 10 * time.Second
)

func (a *app) clusterStart() *cobra.Command {
	var dir string
	c := &cobra.Command{Use: "start [--dir DIR]", Short: "run a group of three servers on this machine, to try it",
		Long: `Runs three servers on 127.0.0.1 that share a journal, on the first ports from 7001 on that are free, and
their journal 10000 above. Data and logs are in the directory; with the same one the same servers start again. A server that
ends is started again. An interrupt ends all of them.`,
		Example: "  atomredis cluster start --dir ./cluster",
		Args:    Arguments(0, 0), DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error { return a.runCluster(c.Context(), dir) }}
	c.Flags().StringVar(&dir, "dir", "cluster", "directory of the data")
	return c
}

// runCluster runs the servers until ctx ends.
func (a *app) runCluster(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	ports, err := clusterPorts(dir)
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	var peers []string
	for _, port := range ports {
		peers = append(peers, loopback(port+raftOffset))
	}
	var printing sync.Mutex
	say := func(format string, args ...any) {
		printing.Lock()
		defer printing.Unlock()
		a.printed(fmt.Sprintf(format, args...))
	}
	say("Three servers that share a journal; data and logs are in %s. An interrupt ends them.", dir)
	for _, port := range ports {
		say("  atomredis cli -p %d", port)
	}
	var running sync.WaitGroup
	for _, port := range ports {
		home := filepath.Join(dir, strconv.Itoa(port))
		args := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", home, "--logfile", home + ".log",
			"--raft-addr", loopback(port + raftOffset), "--raft-peers", strings.Join(peers, ",")}
		running.Go(func() {
			for {
				err := runServer(ctx, binary, args)
				select {
				case <-ctx.Done():
					return
				case <-time.After(afterEnd): // which an interrupt reaches, too, if it ended the server
				}
				say("The server of port %d has ended (%s), and is started again.", port, err)
			}
		})
	}
	running.Go(func() { tellLeader(ctx, ports, say) })
	running.Wait()
	return nil
}

// runServer runs a server until it ends, or ctx does and so has it ended.
func runServer(ctx context.Context, binary string, args []string) error {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = quitting
	if err := cmd.Run(); err != nil {
		return err
	}
	return errors.New("without an error")
}

// tellLeader says who leads, whenever that has changed.
func tellLeader(ctx context.Context, ports []int, say func(format string, args ...any)) {
	var clients []*redis.Client
	for _, port := range ports {
		c := redis.NewClient(&redis.Options{Addr: loopback(port), DialerRetries: 1, MaxRetries: -1, DialTimeout: time.Second,
			ReadTimeout: time.Second, PoolSize: 1})
		defer c.Close()
		clients = append(clients, c)
	}
	for last := ""; ; {
		for _, c := range clients {
			if g, err := groupOf(ctx, c); err == nil && g.State == "leader" && g.LeaderClient != last {
				last = g.LeaderClient
				say("%s leads.", last)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(afterEnd):
		}
	}
}

// clusterPorts returns the ports of the servers that a directory has, or makes it for new ones.
func clusterPorts(dir string) (ports []int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if port, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	switch len(ports) {
	case clusterSize:
		return ports, nil
	case 0:
	default:
		return nil, fmt.Errorf("%s has %d servers, not %d", dir, len(ports), clusterSize)
	}
	for port := firstPort; len(ports) < clusterSize; port++ {
		if port+raftOffset > 65535 {
			return nil, errors.New("there are no free ports")
		}
		if isFree(port) && isFree(port+raftOffset) {
			ports = append(ports, port)
		}
	}
	for _, port := range ports {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(port)), 0o700); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
