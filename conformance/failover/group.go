//go:build linux

package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// The servers are in network namespaces, whose interfaces are joined by a bridge; clients are in the namespace of this
// process. Routes that lead nowhere cut a server off from the others, but not from its clients. Creating namespaces
// needs root.
const (
	bridge       = "atomfail"
	subnet       = "10.83.7."
	own          = subnet + "254"
	port         = "7000"
	raftPort     = "8000"
	sentinelPort = "26379"
	masterName   = "mymaster"
	timeout      = 700 // raft-timeout, ms
)

// node is a server.
type node struct {
	name, ip, space string
	binary          string
	cmd             *exec.Cmd
	exited          chan struct{}
	client          *redis.Client // queries its status
}

func (n *node) addr() string { return n.ip + ":" + port }

// silent is a log of go-redis that drops everything.
type silent struct{}

// Printf implements go-redis's interface of logs.
func (silent) Printf(context.Context, string, ...any) {}

type group struct {
	o     Options
	nodes []*node
	log   *os.File
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func newGroup(o Options) (g *group, err error) {
	redis.SetLogger(silent{}) // unreachable servers are the purpose of the test
	g = &group{o: o}
	if g.log, err = os.Create(filepath.Join(o.Dir, "servers.log")); err != nil {
		return nil, err
	}
	for i := range 3 {
		g.nodes = append(g.nodes, &node{name: "server " + strconv.Itoa(i+1), ip: subnet + strconv.Itoa(i+1),
			space: bridge + strconv.Itoa(i+1), binary: cmp.Or(o.Before, o.Server)})
	}
	g.removeNetwork() // remains of a killed run
	steps := [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", own + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	}
	for i, n := range g.nodes {
		outer := "atomf" + strconv.Itoa(i+1)
		steps = append(steps,
			[]string{"netns", "add", n.space},
			[]string{"link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", n.space},
			[]string{"link", "set", outer, "master", bridge, "up"},
			[]string{"-n", n.space, "addr", "add", n.ip + "/24", "dev", "eth0"},
			[]string{"-n", n.space, "link", "set", "eth0", "up"},
			[]string{"-n", n.space, "link", "set", "lo", "up"})
	}
	for _, s := range steps {
		if err := ip(s...); err != nil {
			g.removeNetwork()
			return nil, err
		}
	}
	return g, nil
}

func (g *group) removeNetwork() {
	for _, n := range g.nodes {
		_ = ip("netns", "del", n.space)
	}
	_ = ip("link", "del", bridge)
}

// start starts a server on its directory.
func (g *group) start(n *node) error {
	dir := filepath.Join(g.o.Dir, n.space)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var peers []string
	for _, p := range g.nodes {
		peers = append(peers, p.ip+":"+raftPort)
	}
	n.cmd = exec.Command("ip", "netns", "exec", n.space, n.binary, "--port", port, "--bind", n.ip, "--protected-mode", "no",
		"--dir", dir, "--save", "", "--appendonly", "yes", "--checkpoint-size", "8mb", "--cluster-enabled", "yes",
		"--raft-addr", n.ip+":"+raftPort, "--raft-peers", strings.Join(peers, ","), "--raft-timeout", strconv.Itoa(timeout))
	if slices.Contains(g.o.Clients, "sentinel") {
		n.cmd.Args = append(n.cmd.Args, "--sentinel-port", sentinelPort, "--sentinel-master-name", masterName)
	}
	n.cmd.Stdout, n.cmd.Stderr = g.log, g.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // an interrupt must not reach it
	fmt.Fprintf(g.log, "--- %s starts %s\n", time.Now().Format(time.StampMilli), n.name)
	if err := n.cmd.Start(); err != nil {
		return err
	}
	n.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		cmd.Wait()
		close(exited)
	}(n.cmd, n.exited)
	if n.client == nil {
		n.client = redis.NewClient(plainOptions(n.addr()))
	}
	return nil
}

// kill kills a server, as its machine's kernel would.
func (g *group) kill(n *node) error {
	if err := n.cmd.Process.Kill(); err != nil {
		return err
	}
	<-n.exited
	return nil
}

// end ends a server cleanly.
func (g *group) end(n *node) error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-n.exited
	return nil
}

// upgrade starts a server with the new version.
func (g *group) upgrade(n *node) error {
	n.binary = g.o.Server
	return g.start(n)
}

// old returns a server of the earlier version, the leader last, and nil if there is none left.
func (g *group) old(leader *node) (old *node) {
	for _, n := range g.nodes {
		if n.binary != g.o.Server && (old == nil || old == leader) {
			old = n
		}
	}
	return old
}

func (g *group) suspend(n *node) error { return n.cmd.Process.Signal(syscall.SIGSTOP) }

func (g *group) resume(n *node) error { return n.cmd.Process.Signal(syscall.SIGCONT) }

// cutOff cuts a server off from the others.
func (g *group) cutOff(n *node) error {
	err := g.silence(n)
	for _, p := range g.nodes {
		if p != n {
			err = errors.Join(err, ip("-n", p.space, "route", "add", "blackhole", n.ip+"/32"))
		}
	}
	return err
}

// silence makes a server's messages to the others disappear.
func (g *group) silence(n *node) (err error) {
	for _, p := range g.nodes {
		if p != n {
			err = errors.Join(err, ip("-n", n.space, "route", "add", "blackhole", p.ip+"/32"))
		}
	}
	return err
}

// reconnect undoes cutOff and silence.
func (g *group) reconnect(*node) error {
	for _, n := range g.nodes {
		for _, p := range g.nodes {
			_ = ip("-n", n.space, "route", "del", "blackhole", p.ip+"/32")
		}
	}
	return nil
}

// status returns INFO replication of a server.
func (n *node) status(ctx context.Context) (map[string]string, error) {
	text, err := n.client.Info(ctx, "replication").Result()
	fields := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}

// awaitWhole waits until one server leads and the others have the data that it had then. It returns the leader.
func (g *group) awaitWhole(ctx context.Context) (leader *node, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		var states []map[string]string
		leader = nil
		for _, n := range g.nodes {
			select {
			case <-n.exited:
				return nil, fmt.Errorf("%s has ended: %s", n.name, g.log.Name())
			default:
			}
			var st map[string]string
			if st, err = n.status(ctx); err != nil {
				break
			}
			if st["raft_state"] == "leader" {
				leader = n
			}
			states = append(states, st)
		}
		if err == nil && leader != nil && whole(states) {
			return leader, nil
		}
	}
	return nil, errors.Join(err, ctx.Err(), fmt.Errorf("the group does not become whole: %s", g.log.Name()))
}

func whole(states []map[string]string) bool {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	committed, followers := 0, 0
	for _, st := range states {
		if st["raft_state"] == "leader" {
			committed = number(st["raft_commit_index"])
		}
	}
	for _, st := range states {
		// The load continues, so a follower is always slightly behind.
		if st["raft_state"] == "follower" && number(st["raft_applied_index"])+100 > committed && st["raft_leader"] != "" {
			followers++
		}
	}
	return followers == len(states)-1
}

func (g *group) close() (err error) {
	g.reconnect(nil)
	for _, n := range g.nodes {
		if n.cmd != nil {
			_ = n.cmd.Process.Kill()
			<-n.exited
		}
		if n.client != nil {
			err = errors.Join(err, n.client.Close())
		}
	}
	g.removeNetwork()
	return errors.Join(err, g.log.Close())
}
