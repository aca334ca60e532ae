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
// process. Routes that lead nowhere cut a server off from the others, but not from its clients. Each server's directory is
// a file system of its own, in a file, so that it can be full. Both need root.
const (
	bridge       = "atomfail"
	subnet       = "10.83.7."
	own          = subnet + "254"
	port         = "7000"
	raftPort     = "8000"
	sentinelPort = "26379"
	masterName   = "mymaster"
	timeout      = 700 // raft-timeout, ms
	diskSize     = 512 << 20
	patience     = time.Minute // for what the group does by itself
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

// outer is the end of the server's network interface outside of its namespace.
func (n *node) outer() string { return n.space + "-out" }

func (n *node) raftAddr() string { return n.ip + ":" + raftPort }

// silent is a log of go-redis that drops everything.
type silent struct{}

// Printf implements go-redis's interface of logs.
func (silent) Printf(context.Context, string, ...any) {}

type group struct {
	o       Options
	nodes   []*node // all of them, also the one that is not running
	members []*node
	log     *os.File
}

// dir is the server's directory.
func (g *group) dir(n *node) string { return filepath.Join(g.o.Dir, n.space) }

// filler is the file that fills a server's disk.
func (g *group) filler(n *node) string { return filepath.Join(g.dir(n), "filler") }

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func ip(args ...string) error { return run("ip", args...) }

func newGroup(o Options) (g *group, err error) {
	redis.SetLogger(silent{}) // unreachable servers are the purpose of the test
	g = &group{o: o}
	if g.log, err = os.Create(filepath.Join(o.Dir, "servers.log")); err != nil {
		return nil, err
	}
	for i := range 4 {
		g.nodes = append(g.nodes, &node{name: "server " + strconv.Itoa(i+1), ip: subnet + strconv.Itoa(i+1),
			space: bridge + strconv.Itoa(i+1), binary: cmp.Or(o.Before, o.Server)})
	}
	g.members = slices.Clone(g.nodes[:3])
	g.remove() // remains of a killed run
	steps := [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", own + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	}
	for _, n := range g.nodes {
		steps = append(steps,
			[]string{"netns", "add", n.space},
			[]string{"link", "add", n.outer(), "type", "veth", "peer", "name", "eth0", "netns", n.space},
			[]string{"link", "set", n.outer(), "master", bridge, "up"},
			[]string{"-n", n.space, "addr", "add", n.ip + "/24", "dev", "eth0"},
			[]string{"-n", n.space, "link", "set", "eth0", "up"},
			[]string{"-n", n.space, "link", "set", "lo", "up"})
	}
	for _, s := range steps {
		err = errors.Join(err, ip(s...))
	}
	for _, n := range g.nodes {
		err = errors.Join(err, g.makeDisk(n))
	}
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// makeDisk makes the file system of a server's directory.
func (g *group) makeDisk(n *node) error {
	image := g.dir(n) + ".disk"
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	err = errors.Join(f.Truncate(diskSize), f.Close(), os.MkdirAll(g.dir(n), 0o755), run("mkfs.ext4", "-q", "-m", "0", image))
	if err != nil {
		return err
	}
	return run("mount", "-o", "loop", image, g.dir(n))
}

// remove removes networks and disks.
func (g *group) remove() {
	for _, n := range g.nodes {
		_ = ip("link", "del", n.outer()) // the kernel deletes it with the namespace, but later
		_ = ip("netns", "del", n.space)
		_ = run("umount", g.dir(n))
	}
	_ = ip("link", "del", bridge)
}

// start starts a server on its directory.
func (g *group) start(_ context.Context, n *node) error {
	var peers []string
	for _, p := range g.members {
		peers = append(peers, p.raftAddr())
	}
	n.cmd = exec.Command("ip", "netns", "exec", n.space, n.binary, "--port", port, "--bind", n.ip, "--protected-mode", "no",
		"--dir", g.dir(n), "--save", "", "--appendonly", "yes", "--checkpoint-size", "8mb", "--cluster-enabled", "yes",
		"--raft-addr", n.raftAddr(), "--raft-peers", strings.Join(peers, ","), "--raft-timeout", strconv.Itoa(timeout))
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
func (g *group) kill(_ context.Context, n *node) error { return n.signal(syscall.SIGKILL, true) }

// end ends a server cleanly.
func (g *group) end(_ context.Context, n *node) error { return n.signal(syscall.SIGTERM, true) }

func (g *group) suspend(_ context.Context, n *node) error { return n.signal(syscall.SIGSTOP, false) }

func (g *group) resume(_ context.Context, n *node) error { return n.signal(syscall.SIGCONT, false) }

// signal sends a signal to the server, and may wait until the server has ended.
func (n *node) signal(s syscall.Signal, wait bool) error {
	if err := n.cmd.Process.Signal(s); err != nil {
		return err
	}
	if wait {
		<-n.exited
	}
	return nil
}

// upgrade starts a server with the new version.
func (g *group) upgrade(ctx context.Context, n *node) error {
	n.binary = g.o.Server
	return g.start(ctx, n)
}

// old returns a server of the earlier version, the leader last, and nil if there is none left.
func (g *group) old(leader *node) (old *node) {
	for _, n := range g.members {
		if n.binary != g.o.Server && (old == nil || old == leader) {
			old = n
		}
	}
	return old
}

// cutOff cuts a server off from the others.
func (g *group) cutOff(ctx context.Context, n *node) error {
	err := g.silence(ctx, n)
	for _, p := range g.nodes {
		if p != n {
			err = errors.Join(err, ip("-n", p.space, "route", "add", "blackhole", n.ip+"/32"))
		}
	}
	return err
}

// silence makes a server's messages to the others disappear.
func (g *group) silence(_ context.Context, n *node) (err error) {
	for _, p := range g.nodes {
		if p != n {
			err = errors.Join(err, ip("-n", n.space, "route", "add", "blackhole", p.ip+"/32"))
		}
	}
	return err
}

// reconnect undoes cutOff and silence.
func (g *group) reconnect(context.Context, *node) error {
	for _, n := range g.nodes {
		for _, p := range g.nodes {
			_ = ip("-n", n.space, "route", "del", "blackhole", p.ip+"/32")
		}
	}
	return nil
}

// fillDisk fills a server's disk, and waits until the server has noticed it. Long values fill what the server has
// reserved on it.
func (g *group) fillDisk(ctx context.Context, n *node) error {
	f, err := os.Create(g.filler(n))
	if err != nil {
		return err
	}
	defer f.Close()
	client := g.client()
	defer client.Close()
	long := make([]byte, 256<<10)
	size := int64(0)
	return await(ctx, n.name+" notices that its disk is full", func() (bool, error) {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(g.dir(n), &fs); err != nil {
			return false, err
		}
		// The server may remove files, and what is freed is filled, too.
		for part := int64(fs.Bavail) * fs.Bsize; part >= fs.Bsize; {
			if err := syscall.Fallocate(int(f.Fd()), 0, size, part); err == nil {
				size += part
				break
			} else if !errors.Is(err, syscall.ENOSPC) {
				return false, err
			}
			part /= 2
		}
		_ = client.Set(ctx, "long", long, 0).Err() // the server that leads may be the one that cannot write
		st, err := n.status(ctx)
		return st["raft_problem"] != "", err
	})
}

// freeDisk makes room on a server's disk, and starts the server again.
func (g *group) freeDisk(ctx context.Context, n *node) error {
	return errors.Join(os.Remove(g.filler(n)), g.end(ctx, n), g.start(ctx, n))
}

// loseDirectory kills a server and empties its directory.
func (g *group) loseDirectory(ctx context.Context, n *node) error {
	return errors.Join(g.kill(ctx, n), g.emptyDirectory(n))
}

func (g *group) emptyDirectory(n *node) error {
	entries, err := os.ReadDir(g.dir(n))
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(g.dir(n), e.Name())))
	}
	return err
}

// join starts the server that is not a member, and waits until it counts for majorities.
func (g *group) join(ctx context.Context, _ *node) error {
	var spare *node
	for _, n := range g.nodes {
		if !slices.Contains(g.members, n) {
			spare = n
		}
	}
	g.members = append(g.members, spare)
	if err := g.start(ctx, spare); err != nil {
		return err
	}
	added := false
	return await(ctx, spare.name+" joins", func() (bool, error) {
		if !added {
			err := g.members[0].client.Do(ctx, "RAFT.ADD", spare.raftAddr()).Err()
			added = err == nil
			return false, err
		}
		st, err := spare.status(ctx)
		return st["raft_voters"] == strconv.Itoa(len(g.members)), err
	})
}

// leave removes a member, which is the server that joins next.
func (g *group) leave(ctx context.Context, n *node) error {
	g.members = slices.DeleteFunc(g.members, func(m *node) bool { return m == n })
	err := await(ctx, n.name+" leaves", func() (bool, error) {
		if st, err := n.status(ctx); err != nil || st["raft_state"] == "removed" {
			return err == nil, err
		}
		return false, g.members[0].client.Do(ctx, "RAFT.REMOVE", n.raftAddr()).Err()
	})
	return errors.Join(err, g.end(ctx, n), g.emptyDirectory(n))
}

// transfer makes another server lead.
func (g *group) transfer(ctx context.Context, n *node) error {
	return n.client.Do(ctx, "RAFT.TRANSFER").Err()
}

// await repeats a question until the answer is yes. The error names the last error of the question.
func await(ctx context.Context, what string, done func() (bool, error)) (err error) {
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		var yes bool
		if yes, err = done(); yes {
			return nil
		}
	}
	return fmt.Errorf("waited %v in vain: %s (last error: %v)", patience, what, errors.Join(err, ctx.Err()))
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
	var ended error
	err = await(ctx, "the group is whole", func() (bool, error) {
		var states []map[string]string
		leader = nil
		for _, n := range g.members {
			select {
			case <-n.exited:
				ended = fmt.Errorf("%s has ended: %s", n.name, g.log.Name())
				return true, nil
			default:
			}
			st, err := n.status(ctx)
			if err != nil {
				return false, err
			}
			if st["raft_state"] == "leader" {
				leader = n
			}
			states = append(states, st)
		}
		return leader != nil && whole(states), nil
	})
	return leader, errors.Join(ended, err)
}

// atLeader repeats something at the leader until it succeeds.
func (g *group) atLeader(ctx context.Context, do func(c *redis.Client) error) error {
	return await(ctx, "the leader answers", func() (bool, error) {
		leader, err := g.awaitWhole(ctx)
		if err == nil {
			err = do(leader.client)
		}
		return err == nil, err
	})
}

// whole reports whether the states of all members say that they count for majorities and have what the leader has.
func whole(states []map[string]string) bool {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	committed, followers, voters := 0, 0, 0
	for _, st := range states {
		if st["raft_state"] == "leader" {
			committed, voters = number(st["raft_commit_index"]), number(st["raft_voters_online"])
		}
	}
	for _, st := range states {
		// The load continues, so a follower is always slightly behind.
		if st["raft_state"] == "follower" && number(st["raft_applied_index"])+100 > committed && st["raft_leader"] != "" {
			followers++
		}
	}
	return voters == len(states) && followers == len(states)-1
}

func (g *group) close() (err error) {
	g.reconnect(context.Background(), nil)
	for _, n := range g.nodes {
		if n.cmd != nil {
			_ = n.cmd.Process.Kill()
			<-n.exited
		}
		if n.client != nil {
			err = errors.Join(err, n.client.Close())
		}
	}
	g.remove()
	return errors.Join(err, g.log.Close())
}
