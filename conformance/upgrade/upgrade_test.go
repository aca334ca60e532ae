//go:build unix

// Package upgrade runs servers of an earlier version beside those of this one: a group that is upgraded one server at a
// time and downgraded again, shards that exchange slots, replicas, and a data directory. It needs git with the earlier
// commit.
package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// before is the last commit whose servers do not know the hello of package internal/wire/peer.
const before = "4e02a953b1a499b316ed060e4e0e0a99dbbe07e4"

const (
	timeout = 60 * time.Second
	tick    = 20 * time.Millisecond
)

var ctx = context.Background()

// builds are the binaries, built once for all tests.
type builds struct {
	sync.Once
	dir      string
	old, new string
	skip     string // why they cannot be built
	err      error
}

var binaries builds

func TestMain(m *testing.M) {
	code := m.Run()
	if binaries.dir != "" {
		os.RemoveAll(binaries.dir)
	}
	os.Exit(code)
}

// versions returns the binaries of the earlier version and of this one.
func versions(t *testing.T) (old, new string) {
	t.Helper()
	if testing.Short() {
		t.Skip("two versions would have to be built")
	}
	b := &binaries
	b.Do(func() {
		if err := exec.Command("git", "-C", "../..", "cat-file", "-e", before+"^{commit}").Run(); err != nil {
			b.skip = "commit " + before[:8] + " is not in this clone"
			return
		}
		if b.dir, b.err = os.MkdirTemp("", "upgrade"); b.err == nil {
			b.err = b.build()
		}
	})
	if b.skip != "" {
		t.Skip(b.skip)
	}
	require.NoError(t, b.err)
	return b.old, b.new
}

// build builds both versions. The earlier one is taken from git.
func (b *builds) build() error {
	source := filepath.Join(b.dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return err
	}
	archive := exec.Command("git", "-C", "../..", "archive", before)
	unpack := exec.Command("tar", "-x", "-C", source)
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := errors.Join(archive.Start(), unpack.Run(), archive.Wait()); err != nil {
		return fmt.Errorf("git archive: %w", err)
	}
	b.old, b.new = filepath.Join(b.dir, "old"), filepath.Join(b.dir, "new")
	for binary, in := range map[string]string{b.old: source, b.new: "../.."} {
		cmd := exec.Command("go", "build", "-pgo=off", "-trimpath", "-tags", "grpcnotrace", "-o", binary, "./cmd/atomredis")
		cmd.Dir, cmd.Env = in, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build in %s: %w: %s", in, err, out)
		}
	}
	return nil
}

// node is a server, of one version or the other.
type node struct {
	*redis.Client
	t          *testing.T
	addr, raft string
	dir        string
	settings   []string
	cmd        *exec.Cmd
	log        bytes.Buffer
}

// newNode returns a server that is not running yet.
func newNode(t *testing.T, settings ...string) *node {
	n := &node{t: t, addr: freeport.Addr(t), raft: freeport.Addr(t), dir: t.TempDir(), settings: settings}
	n.Client = redis.NewClient(&redis.Options{Addr: n.addr, MaxRetries: -1})
	t.Cleanup(func() {
		n.Client.Close()
		if n.cmd != nil {
			_ = n.cmd.Process.Kill()
			_ = n.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("%s (%s):\n%s", n.addr, n.raft, n.log.String())
		}
	})
	return n
}

// start starts the server.
func (n *node) start(binary string) {
	n.t.Helper()
	_, port, err := net.SplitHostPort(n.addr)
	require.NoError(n.t, err)
	n.cmd = exec.Command(binary, append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", n.dir, "--save", "", "--appendonly", "yes",
		"--enable-debug-command", "yes"}, n.settings...)...)
	n.cmd.Stdout, n.cmd.Stderr = &n.log, &n.log
	require.NoError(n.t, n.cmd.Start())
	n.until("it starts", func() bool { // one that looks for its group answers too
		err := n.Ping(ctx).Err()
		return err == nil || strings.HasPrefix(err.Error(), "MASTERDOWN")
	})
}

// restart ends the server cleanly and starts another version on its data.
func (n *node) restart(binary string) {
	n.t.Helper()
	require.NoError(n.t, n.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(n.t, n.cmd.Wait())
	n.cmd = nil
	n.start(binary)
}

// until waits for a condition.
func (n *node) until(what string, ok func() bool) {
	n.t.Helper()
	require.Eventually(n.t, ok, timeout, tick, "%s: %s", n.addr, what)
}

// field returns a field of INFO replication.
func (n *node) field(name string) string {
	for line := range strings.SplitSeq(n.Info(ctx, "replication").Val(), "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return value
		}
	}
	return ""
}

// digest returns the digest of all data.
func (n *node) digest() string {
	text, err := n.Do(ctx, "DEBUG", "DIGEST").Text()
	require.NoError(n.t, err)
	return text
}

// fill stores values of several types.
func (n *node) fill() {
	n.t.Helper()
	for i := range 100 {
		key := fmt.Sprint(i)
		require.NoError(n.t, errors.Join(
			n.Set(ctx, "string"+key, strings.Repeat(key, 100), 0).Err(), n.RPush(ctx, "list"+key, 1, 2, key).Err(),
			n.HSet(ctx, "hash"+key, "field", key).Err(), n.ZAdd(ctx, "zset"+key, redis.Z{Score: float64(i), Member: key}).Err(),
			n.XAdd(ctx, &redis.XAddArgs{Stream: "stream" + key, Values: []string{"field", key}}).Err(),
			n.Set(ctx, "expires"+key, key, time.Hour).Err(), n.Do(ctx, "JSON.SET", "json"+key, "$", `{"a":[1,2]}`).Err()))
	}
}

// group is three servers that share a journal.
type group []*node

func newGroup(t *testing.T, binary string) (g group) {
	for range 3 {
		g = append(g, newNode(t))
	}
	var peers []string
	for _, n := range g {
		peers = append(peers, n.raft)
	}
	for _, n := range g {
		n.settings = []string{"--raft-addr", n.raft, "--raft-peers", strings.Join(peers, ","), "--raft-timeout", "1500",
			"--replicated-proxy", "yes"}
		n.start(binary)
	}
	return g
}

// whole waits until RAFT.CHECK of each server finds nothing wrong with the group. It returns the leader.
func (g group) whole() (leader *node) {
	g[0].t.Helper()
	for _, n := range g {
		var problems []string
		require.Eventually(n.t, func() bool {
			var err error
			problems, err = n.Do(ctx, "RAFT.CHECK").StringSlice()
			return err == nil && len(problems) == 0
		}, timeout, tick, "%s: %v", n.addr, &problems)
	}
	g[0].until("a leader", func() bool {
		for _, n := range g {
			if n.field("raft_state") == "leader" {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// lead makes a server the leader.
func (g group) lead(n *node) {
	g[0].t.Helper()
	n.until("it leads", func() bool {
		for _, other := range g {
			if other != n && other.field("raft_state") == "leader" {
				_ = other.Do(ctx, "RAFT.TRANSFER", n.raft).Err() // it may no longer be the leader
			}
		}
		return n.field("raft_state") == "leader"
	})
	g.whole()
}

// load writes through each server until stop, which returns the acknowledged writes.
func (g group) load() (stop func() map[string]string) {
	var writing sync.WaitGroup
	done := make(chan struct{})
	written := make([]map[string]string, len(g))
	for i, n := range g {
		written[i] = map[string]string{}
		writing.Go(func() {
			for j := 0; ; j++ {
				select {
				case <-done:
					return
				default:
				}
				key, value := fmt.Sprintf("load:%d:%d", i, j), fmt.Sprint(j)
				// The server may be down, and a change of leader may end the connection.
				if n.Set(ctx, key, value, 0).Err() == nil {
					written[i][key] = value
				} else {
					time.Sleep(tick)
				}
			}
		})
	}
	return func() map[string]string {
		close(done)
		writing.Wait()
		all := map[string]string{}
		for _, w := range written {
			maps.Copy(all, w)
		}
		return all
	}
}

// requireForwards checks that a follower's clients reach the leader with pipelines, transactions, blocking commands and
// long values.
func requireForwards(t *testing.T, n *node, name string) {
	t.Helper()
	require.Equal(t, "follower", n.field("raft_state"))
	long := strings.Repeat("x", 3<<20)
	key := func(s string) string { return "forward:" + name + ":" + s }
	require.NoError(t, n.Set(ctx, key("long"), long, 0).Err())
	require.Equal(t, long, n.Get(ctx, key("long")).Val())
	pipe := n.TxPipeline()
	for i := range 100 {
		pipe.RPush(ctx, key("list"), i)
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	got := make(chan []string, 1)
	other := redis.NewClient(&redis.Options{Addr: n.addr})
	defer other.Close()
	go func() { got <- other.BLPop(ctx, timeout, key("queue")).Val() }()
	require.NoError(t, n.RPush(ctx, key("queue"), "item").Err())
	require.Equal(t, []string{key("queue"), "item"}, <-got)
	require.EqualValues(t, 100, n.LLen(ctx, key("list")).Val())
	sub := other.Subscribe(ctx, key("channel"))
	defer sub.Close()
	_, err = sub.Receive(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, n.Publish(ctx, key("channel"), "message").Val())
	message, err := sub.ReceiveTimeout(ctx, timeout)
	require.NoError(t, err)
	require.Equal(t, "message", message.(*redis.Message).Payload)
}

// requireStream checks that a follower has the leader's stream for replicas.
func requireStream(t *testing.T, n *node) {
	t.Helper()
	n.until("PSYNC", func() bool {
		conn, err := net.Dial("tcp", n.addr)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(timeout)))
		_, err = io.WriteString(conn, "PSYNC ? -1\r\n")
		require.NoError(t, err)
		begin := make([]byte, len("+FULLRESYNC"))
		_, err = io.ReadFull(conn, begin)
		return err == nil && string(begin) == "+FULLRESYNC"
	})
}

// A group is upgraded one server at a time under load, the leader last, and downgraded in the same way. Forwarded
// commands and streams for replicas work between the versions in both directions.
func TestAGroupIsUpgradedServerByServerAndBack(t *testing.T) {
	old, new := versions(t)
	g := newGroup(t, old)
	g.whole().fill()
	stop := g.load()
	for _, binary := range []string{new, old} {
		name := filepath.Base(binary)
		last := g.whole()
		others := slices.DeleteFunc(slices.Clone(g), func(n *node) bool { return n == last })
		others[0].restart(binary)
		g.whole()
		g.lead(last)
		requireForwards(t, others[0], name+" to the other")
		requireStream(t, others[0])
		g.lead(others[0])
		requireForwards(t, last, "to "+name)
		requireStream(t, last)
		others[1].restart(binary)
		g.whole()
		last.restart(binary)
		g.whole()
	}
	written := stop()
	require.Greater(t, len(written), 100)
	g.whole()
	for _, n := range g {
		pipe := n.Pipeline()
		got := map[string]*redis.StringCmd{}
		for key := range written {
			got[key] = pipe.Get(ctx, key)
		}
		_, err := pipe.Exec(ctx)
		require.NoError(t, err)
		for key, value := range written {
			require.Equal(t, value, got[key].Val(), key)
		}
	}
	for _, n := range g { // a follower may have to catch up
		n.until("it has the same data", func() bool { return n.digest() == g[0].digest() })
	}
}

// Slots move between shards of two versions in both directions while their keys change, and published messages arrive.
func TestShardsOfTwoVersionsExchangeSlots(t *testing.T) {
	old, new := versions(t)
	shard := func(binary, slots string) *node {
		n := newNode(t)
		n.settings = []string{"--cluster-enabled", "yes", "--cluster-slots", slots, "--raft-addr", n.raft, "--raft-peers", n.raft,
			"--raft-timeout", "300"}
		n.start(binary)
		n.until("it leads", func() bool { return n.field("raft_state") == "leader" })
		return n
	}
	a, b := shard(old, "0-16383"), shard(new, "none")
	for i, from := range []*node{a, b} { // each meets the other one; the second time does nothing
		to := []*node{b, a}[i]
		host, port, _ := net.SplitHostPort(to.addr)
		_, bus, _ := net.SplitHostPort(to.raft)
		require.NoError(t, from.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err())
		for _, n := range []*node{a, b} {
			n.until("it knows all slots", func() bool {
				return strings.Contains(n.ClusterInfo(ctx).Val(), "cluster_slots_assigned:16384") &&
					strings.Contains(n.ClusterInfo(ctx).Val(), "cluster_size:")
			})
		}
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{a.addr, b.addr}, MaxRedirects: 20})
	defer client.Close()
	const slots = 10
	keys := func(slot int) string { return "{" + cluster.TagOf(slot) + "}" }
	for slot := range slots {
		for i := range 50 {
			require.NoError(t, client.Set(ctx, fmt.Sprint(keys(slot), i), strings.Repeat("x", 1000), 0).Err())
		}
		require.NoError(t, client.Set(ctx, keys(slot)+"long", strings.Repeat("x", 1<<20), time.Hour).Err())
	}
	var counting sync.WaitGroup
	done, counted := make(chan struct{}), make([]int64, slots)
	for slot := range slots {
		counting.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if client.Incr(ctx, keys(slot)+"count").Err() == nil {
					counted[slot]++
				}
			}
		})
	}
	for _, to := range []*node{b, a, b} {
		task, err := to.Do(ctx, "CLUSTER", "MIGRATION", "IMPORT", 0, slots-1).Text()
		require.NoError(t, err)
		to.until("the slots are there", func() bool {
			st, err := to.Do(ctx, "CLUSTER", "MIGRATION", "STATUS", "ID", task).Result()
			require.NoError(t, err)
			require.NotContains(t, fmt.Sprint(st), "failed")
			return strings.Contains(fmt.Sprint(st), "completed")
		})
	}
	close(done)
	counting.Wait()
	for slot := range slots {
		require.Positive(t, counted[slot])
		require.Equal(t, fmt.Sprint(counted[slot]), client.Get(ctx, keys(slot)+"count").Val())
		require.EqualValues(t, 52, b.ClusterCountKeysInSlot(ctx, slot).Val())
		require.Equal(t, 1<<20, len(client.Get(ctx, keys(slot)+"long").Val()))
	}
	a.until("its keys of the slots are gone", func() bool { return a.DBSize(ctx).Val() == 0 })
	for i, to := range []*node{a, b} {
		sub := to.Subscribe(ctx, "channel")
		_, err := sub.Receive(ctx)
		require.NoError(t, err)
		from := []*node{b, a}[i]
		// A message may be dropped while the servers connect, as PUBLISH allows.
		to.until("a message", func() bool {
			require.NoError(t, from.Publish(ctx, "channel", "message").Err())
			message, err := sub.ReceiveTimeout(ctx, tick)
			return err == nil && message.(*redis.Message).Payload == "message"
		})
		sub.Close()
	}
}

// A replica of one version follows a master of the other.
func TestReplicasOfTheOtherVersion(t *testing.T) {
	old, new := versions(t)
	for _, c := range []struct{ name, master, replica string }{{"old", old, new}, {"new", new, old}} {
		t.Run(c.name+" master", func(t *testing.T) {
			master, replica := newNode(t), newNode(t)
			master.start(c.master)
			replica.start(c.replica)
			master.fill()
			host, port, _ := net.SplitHostPort(master.addr)
			require.NoError(t, replica.ReplicaOf(ctx, host, port).Err())
			replica.until("it follows", func() bool { return replica.field("master_link_status") == "up" })
			require.NoError(t, master.Set(ctx, "later", "value", 0).Err())
			replica.until("it has all", func() bool { return replica.Get(ctx, "later").Val() == "value" })
			require.Equal(t, master.digest(), replica.digest())
		})
	}
}

// This version can open the data directory of the earlier one.
func TestADataDirectoryOfTheEarlierVersion(t *testing.T) {
	old, new := versions(t)
	n := newNode(t)
	n.start(old)
	n.fill()
	want := n.digest()
	n.restart(new)
	require.Equal(t, want, n.digest())
	require.NoError(t, n.Set(ctx, "later", "value", 0).Err())
	n.restart(new)
	require.Equal(t, "value", n.Get(ctx, "later").Val())
}
