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
	// raftOffset is the distance from a server's port for clients to its port for the group.
	raftOffset = 10_000
	// afterEnd is the pause before a server that ended is started again. quitting is how long a server may take to end.
	afterEnd = 500 * time.Millisecond
	quitting = 10 * time.Second
	// slots is the number of slots of a cluster.
	slots     = 16384
	maxShards = 100
)

func (a *app) clusterStart() *cobra.Command {
	var dir string
	var shards, port int
	c := &cobra.Command{Use: "start [--dir DIR] [--shards N] [--port PORT]",
		Short: "run a group of three servers on this machine, to try it",
		Long: `Runs three servers on 127.0.0.1 that share a journal. They listen on the first free ports from PORT on (7001), and
for each other on ports 10000 above. Data, configuration files and logs are in the directory; with the same
directory the same servers start again. A server that ends is started again. An interrupt ends all of them.

With several shards each of the three processes runs a server of each shard, and the shards form a cluster
with equal parts of the slots.`,
		Example: "  atomredis cluster start --dir ./cluster\n  atomredis cluster start --dir ./cluster --shards 2",
		Args:    Arguments(0, 0), DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if shards < 1 || shards > maxShards {
				return Usagef("there can be 1 to %d shards", maxShards)
			}
			if port < 1 || port+raftOffset > 65535 {
				return Usagef("the port can be 1 to %d", 65535-raftOffset)
			}
			return a.runCluster(c.Context(), dir, shards, port)
		}}
	c.Flags().StringVar(&dir, "dir", "cluster", "directory of the data")
	c.Flags().IntVar(&shards, "shards", 1, "number of shards, if the directory has none yet")
	c.Flags().IntVarP(&port, "port", "p", firstPort, "the first `port`, if the directory has no servers yet")
	return c
}

// runCluster runs the servers until ctx ends.
func (a *app) runCluster(ctx context.Context, dir string, shards, port int) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	groups, err := clusterPorts(dir, shards, port)
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	var printing sync.Mutex
	say := func(format string, args ...any) {
		printing.Lock()
		defer printing.Unlock()
		a.printed(fmt.Sprintf(format, args...))
	}
	files := make([][]string, clusterSize) // configuration files by process
	each := ""
	if len(groups) > 1 {
		each = fmt.Sprintf(", for each of %d shards", len(groups))
	}
	say("Three servers that share a journal%s; data and logs are in %s. An interrupt ends them.", each, dir)
	for shard, ports := range groups {
		for i, port := range ports {
			say("  atomredis cli -p %d", port)
			file := filepath.Join(dir, strconv.Itoa(port)+".conf")
			if err := os.WriteFile(file, configurationOf(dir, groups, shard, port), 0o600); err != nil {
				return err
			}
			files[i] = append(files[i], file)
		}
	}
	var running sync.WaitGroup
	for i := range clusterSize {
		running.Go(func() {
			for {
				err := runServer(ctx, binary, append([]string{"serve"}, files[i]...))
				select {
				case <-ctx.Done():
					return
				case <-time.After(afterEnd): // if an interrupt ended the server, ctx ends meanwhile
				}
				say("The server of port %d has ended (%s), and is started again.", groups[0][i], err)
			}
		})
	}
	running.Go(func() { tellLeaders(ctx, groups, say) })
	running.Wait()
	return nil
}

// configurationOf returns the configuration file of a server.
func configurationOf(dir string, groups [][]int, shard, port int) []byte {
	var peers []string
	for _, p := range groups[shard] {
		peers = append(peers, loopback(p+raftOffset))
	}
	home := filepath.Join(dir, strconv.Itoa(port))
	lines := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %q\nlogfile %q\nraft-addr %s\nraft-peers %s\n",
		port, home, home+".log", loopback(port+raftOffset), strings.Join(peers, " "))
	if n := len(groups); n > 1 {
		lines += fmt.Sprintf("cluster-enabled yes\ncluster-slots %d-%d\n", shard*slots/n, (shard+1)*slots/n-1)
	}
	return []byte(lines)
}

// runServer runs a server until it ends; the end of ctx ends it.
func runServer(ctx context.Context, binary string, args []string) error {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = quitting
	if err := cmd.Run(); err != nil {
		return err
	}
	return errors.New("without an error")
}

// tellLeaders reports the leader of each shard whenever it changes, and introduces the shards to each other.
func tellLeaders(ctx context.Context, groups [][]int, say func(format string, args ...any)) {
	var clients [][]*redis.Client
	for _, ports := range groups {
		var of []*redis.Client
		for _, port := range ports {
			c := redis.NewClient(&redis.Options{Addr: loopback(port), DialerRetries: 1, MaxRetries: -1, DialTimeout: time.Second,
				ReadTimeout: time.Second, PoolSize: 1})
			defer c.Close()
			of = append(of, c)
		}
		clients = append(clients, of)
	}
	leaders := make([]int, len(groups)) // ports by shard; 0 without a leader
	for met := len(groups) == 1; ; {
		for shard, of := range clients {
			for i, c := range of {
				if g, err := groupOf(ctx, c); err == nil && g.State == "leader" && leaders[shard] != groups[shard][i] {
					if leaders[shard] = groups[shard][i]; len(groups) > 1 {
						say("%s leads shard %d.", g.LeaderClient, shard+1)
					} else {
						say("%s leads.", g.LeaderClient)
					}
				}
			}
		}
		if !met && !slices.Contains(leaders, 0) {
			if met = meet(ctx, leaders) == nil; met {
				say("The shards know each other: atomredis cli -c -p %d", leaders[0])
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(afterEnd):
		}
	}
}

// meet introduces the shards of these leaders to each other.
func meet(ctx context.Context, leaders []int) error {
	c := redis.NewClient(&redis.Options{Addr: loopback(leaders[0]), MaxRetries: -1})
	defer c.Close()
	for _, port := range leaders[1:] {
		if err := c.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", port, port+raftOffset).Err(); err != nil {
			return err
		}
	}
	return nil
}

// clusterPorts returns the ports of the servers in a directory, by shard. It creates the directory for new servers if
// it does not exist, and gives them the free ports from first on.
func clusterPorts(dir string, shards, first int) (groups [][]int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ports []int
	for _, e := range entries {
		if port, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	if len(ports)%clusterSize != 0 {
		return nil, fmt.Errorf("%s has %d servers, and not %d for each shard", dir, len(ports), clusterSize)
	}
	if len(ports) == 0 {
		for port := first; len(ports) < clusterSize*shards; port++ {
			if port+raftOffset > 65535 {
				return nil, errors.New("there are no free ports")
			}
			if isFree(port) && isFree(port+raftOffset) {
				ports = append(ports, port)
			}
		}
	}
	for _, port := range ports {
		if err := os.MkdirAll(filepath.Join(dir, strconv.Itoa(port)), 0o700); err != nil {
			return nil, err
		}
	}
	return slices.Collect(slices.Chunk(ports, clusterSize)), nil
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
