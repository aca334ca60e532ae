// Package chaos tests a group of servers in one process. The servers have disks in memory that lose and damage data,
// and a network in memory that is slow, breaks and can be cut, while clients read and write. The clients' history must
// be linearizable, with a register or a list for each key (github.com/anishathalye/porcupine).
//
// Run is meant for a bubble of testing/synctest: time passes only while all goroutines wait for it, so a run takes as
// long as its work, and the machine's load has no influence. The seed decides which faults happen, and when. It does
// not decide the order of goroutines or the times of Raft's elections, so a seed repeats a run only approximately.
package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	_ "github.com/atomredis/atomredis/doors/sentinel"
	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/server"
)

// Options configure a run.
type Options struct {
	Seed    uint64
	Nodes   int
	Clients int
	// Keys is the number of keys of each kind: strings, pairs of strings written in one transaction, hashes, lists.
	Keys int
	// Witness makes the first node a witness.
	Witness bool
	// Faults is the number of faults, Timeout the raft-timeout; clocks run faster or slower by up to drift.
	Faults  int
	Timeout time.Duration
	// Settings are further directives of all servers, name=value.
	Settings []string
	Log      *slog.Logger
}

// Report describes a run.
type Report struct {
	Operations, Acknowledged, Unknown int
	Faults                            map[string]int
	history                           []porcupine.Operation
}

// Check reports whether the clients' history is linearizable. It must not be called in a bubble.
func (r Report) Check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(registers, r.history, time.Minute)
}

// drift is the largest relative error of a clock; raft allows 0.1 between two servers.
const drift = 0.04

type group struct {
	o     Options
	rnd   *rand.Rand
	net   *network
	nodes []*node
	began time.Time
	// stranger tries to join all the time, and does not know raft-secret.
	stranger *node

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
}

type node struct {
	addr   string
	secret string
	fs     *crashfs.FS
	full   atomic.Bool                   // its disk is full
	out    bool                          // it is not a member of the group
	srv    atomic.Pointer[server.Server] // nil while it is stopped
	pace   float64                       // of its clock: the length of its second
}

// group starts a group.
func (o Options) group() (*group, error) {
	g := &group{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 1)), net: newNetwork(rand.New(rand.NewPCG(o.Seed, 0))),
		began: time.Now()}
	for i := range o.Nodes + 1 { // the last one is to replace another
		g.nodes = append(g.nodes, &node{addr: fmt.Sprintf("node%d:1", i), secret: "known", fs: crashfs.New(), out: i == o.Nodes,
			pace: 1 - drift + 2*drift*g.rnd.Float64()})
	}
	g.stranger = &node{addr: "stranger:1", secret: "guessed", fs: crashfs.New(), pace: 1}
	for _, n := range g.members() {
		if err := g.start(n); err != nil {
			g.end()
			return nil, err
		}
	}
	return g, nil
}

// members are the nodes in the group.
func (g *group) members() (list []*node) {
	for _, n := range g.nodes {
		if !n.out {
			list = append(list, n)
		}
	}
	return list
}

// end ends all servers and connections.
func (g *group) end() {
	g.net.heal()
	for _, n := range append(slices.Clone(g.nodes), g.stranger) {
		if srv := n.srv.Load(); srv != nil {
			srv.Abandon()
		}
	}
	g.net.close()
}

// Run runs a group and its clients.
func Run(o Options) (Report, error) {
	g, err := o.group()
	if err != nil {
		return Report{}, err
	}
	defer g.end()
	if err := g.awaitWhole(); err != nil {
		return Report{}, err
	}
	if err := g.createIndex(); err != nil {
		return Report{}, err
	}
	if err := g.start(g.stranger); err != nil {
		return Report{}, err
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range o.Clients {
		clients.Go(func() { g.client(i, stop) })
	}
	r := Report{Faults: map[string]int{}}
	err = g.faults(r.Faults)
	if err == nil {
		err = g.awaitWhole()
	}
	time.Sleep(2 * o.Timeout)
	close(stop)
	clients.Wait()
	if err != nil {
		return r, err
	}
	if err := g.readAll(); err != nil {
		return r, err
	}
	if st := g.stranger.srv.Load().GroupStatus(); st.State != "joining" || g.knows(g.stranger) {
		return r, fmt.Errorf("a server without the secret has joined: %+v", st)
	}
	r.Operations, r.Unknown, r.history = len(g.history), g.unknown, g.history
	r.Acknowledged = r.Operations - r.Unknown
	return r, nil
}

// start starts a node on its disk.
func (g *group) start(n *node) error {
	var peers []string
	for _, p := range g.nodes[:g.o.Nodes] {
		peers = append(peers, p.addr)
	}
	if !slices.Contains(peers, n.addr) {
		peers = append(peers, n.addr)
	}
	conf := config.NewConfig()
	witness := "no"
	if g.o.Witness && n == g.nodes[0] {
		witness = "yes"
	}
	for _, pair := range append([]string{"port=0", "raft-witness=" + witness, "replica-announce-port=1", "dir=/db", "save=", "appendonly=yes", "checkpoint-size=1mb",
		"raft-addr=" + n.addr, "raft-peers=" + strings.Join(peers, " "), "raft-secret=" + n.secret,
		"raft-timeout=" + strconv.Itoa(int(math.Round(float64(g.o.Timeout.Milliseconds())*n.pace)))}, g.o.Settings...) {
		name, value, _ := strings.Cut(pair, "=")
		if err := conf.Set(name, value, false); err != nil {
			return fmt.Errorf("%s: %w", pair, err)
		}
	}
	srv, err := server.New(conf, g.o.Log.With("node", n.addr), server.Options{FS: crashfs.Full(n.fs, &n.full), Goroutines: true,
		Listeners: []net.Listener{g.net.listen(clientsOf(n.addr))},
		Doors:     map[string]net.Listener{"sentinel": g.net.listen(sentinelOf(n.addr))},
		Group: server.GroupNetwork{Listener: g.net.listen(n.addr), Dial: g.net.dialer(n.addr),
			SegmentSize: 32 << 10}})
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.addr, err)
	}
	n.srv.Store(srv)
	return nil
}

// clientsOf is the address at which clients reach a node, and sentinelOf the one at which clients of Redis Sentinel do.
func clientsOf(addr string) string  { return addr + "/clients" }
func sentinelOf(addr string) string { return addr + "/clients/sentinel" }

// crash ends a node as a loss of power would, and starts it again with the surviving data of its disk.
func (g *group) crash(n *node) error {
	g.stop(n)
	return g.start(n)
}

// stop ends a node as a loss of power would.
func (g *group) stop(n *node) {
	g.stopWith(n, crashfs.CloneCfg{UnsyncedDataPercent: g.rnd.IntN(2) * g.rnd.IntN(101), RNG: g.rnd})
}

// stopWith is stop; cfg describes what is left of data that was not synced.
func (g *group) stopWith(n *node, cfg crashfs.CloneCfg) {
	g.net.isolate(n.addr) // first: anything it acknowledges from now on must be on disks
	clone := n.fs.CrashClone(cfg)
	if srv := n.srv.Swap(nil); srv != nil {
		srv.Abandon()
	}
	time.Sleep(time.Duration(g.rnd.Int64N(int64(3 * g.o.Timeout))))
	n.fs = clone
}

// loseDisk ends a node, and restarts it with an empty directory.
func (g *group) loseDisk(n *node) error {
	g.stop(n)
	n.fs = crashfs.New()
	return g.start(n)
}

// damage ends a node, flips some bits on its disk, and starts it. The node works if nothing depends on these bits.
// Otherwise it must find the damage and stay out of the group; then it gets an empty directory, and found is true.
func (g *group) damage(n *node) (found bool, err error) {
	g.stop(n)
	files, err := filesIn(n.fs, "/db")
	if err != nil {
		return false, err
	}
	for range 1 + g.rnd.IntN(3) {
		if err := g.flip(n.fs, files[g.rnd.IntN(len(files))]); err != nil {
			return false, err
		}
	}
	if g.rnd.IntN(2) == 0 {
		if err := g.flipLast(n.fs, files); err != nil {
			return false, err
		}
	}
	if g.start(n) == nil && g.awaitWhole() == nil {
		return false, nil
	}
	return true, g.loseDisk(n)
}

// flip changes a bit of a file.
func (g *group) flip(fs *crashfs.FS, name string) error {
	b, err := fs.Bytes(name)
	if err != nil || len(b) == 0 {
		return err
	}
	return g.flipAt(fs, name, g.rnd.IntN(len(b)))
}

// flipLast changes a bit at the end of the group's journal.
func (g *group) flipLast(fs *crashfs.FS, files []string) error {
	last := ""
	for _, name := range files { // the names of segments are in their order
		if strings.Contains(name, "/raft/journal/journal-") {
			last = name
		}
	}
	if last == "" {
		return nil
	}
	b, err := fs.Bytes(last)
	if err != nil {
		return err
	}
	used := len(bytes.TrimRight(b, "\x00"))
	if used == 0 {
		return nil
	}
	return g.flipAt(fs, last, used-1-g.rnd.IntN(min(used, 100)))
}

// flipAt changes a bit of a byte of a file.
func (g *group) flipAt(fs *crashfs.FS, name string, at int) error {
	f, err := fs.OpenReadWrite(name)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	_, err = f.ReadAt(b, int64(at))
	b[0] ^= 1 << g.rnd.IntN(8)
	if err == nil {
		_, err = f.WriteAt(b, int64(at))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// filesIn returns the files in a directory and its sub-directories, in order.
func filesIn(fs disk.FS, dir string) (files []string, err error) {
	names, err := fs.List(dir)
	slices.Sort(names)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		stat, err := fs.Stat(path)
		if err != nil {
			return nil, err
		}
		if !stat.IsDir() {
			files = append(files, path)
			continue
		}
		more, err := filesIn(fs, path)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, err
}

// fill makes a node's disk full for some time, and then restarts the node.
func (g *group) fill(n *node) error {
	n.full.Store(true)
	time.Sleep(time.Duration(g.rnd.Int64N(int64(6 * g.o.Timeout))))
	g.stop(n)
	n.full.Store(false)
	return g.start(n)
}

// replace has the outside node join the group, on an empty disk, and removes another, while the network is slow for one
// of the nodes.
func (g *group) replace(n *node) error {
	i := slices.IndexFunc(g.nodes, func(n *node) bool { return n.out })
	joins := g.nodes[i]
	g.net.delay(g.nodes[g.rnd.IntN(len(g.nodes))].addr, time.Duration(1+g.rnd.Int64N(int64(g.o.Timeout/4))))
	// It may join by itself, and must not count before it is added, unless raft-peers name it.
	early := joins == g.nodes[g.o.Nodes] && g.rnd.IntN(2) == 0
	if early {
		joins.fs = crashfs.New()
		if err := g.start(joins); err != nil {
			return err
		}
		if err := g.awaitLearner(joins); err != nil {
			return err
		}
	}
	if err := g.ask(func() bool { return g.added(joins) }, "RAFT.ADD", joins.addr); err != nil {
		return err
	}
	joins.out = false
	if !early {
		joins.fs = crashfs.New()
		if err := g.start(joins); err != nil {
			return err
		}
	}
	if g.rnd.IntN(2) == 0 { // the other one leaves once this one counts, or before
		if err := g.awaitWhole(); err != nil {
			return err
		}
	}
	if err := g.ask(func() bool { return !g.knows(n) }, "RAFT.REMOVE", n.addr); err != nil {
		return err
	}
	g.stop(n)
	n.out = true
	return nil
}

// knows reports whether the leader considers a node a member of the group.
func (g *group) knows(n *node) bool { return g.member(n) != nil }

// added reports whether the leader considers a node a member that has been added.
func (g *group) added(n *node) bool {
	m := g.member(n)
	return m != nil && m.Role != quorum.Waiting
}

// member returns what the leader knows of a node, nil if nothing or without a leader.
func (g *group) member(n *node) *quorum.Member {
	l := g.leader()
	if l == nil {
		return nil
	}
	members := l.srv.Load().GroupStatus().Members
	if i := slices.IndexFunc(members, func(m quorum.Member) bool { return m.Addr == n.addr }); i >= 0 {
		return &members[i]
	}
	return nil
}

// awaitLearner waits until a node that has joined by itself has all data. It must not vote.
func (g *group) awaitLearner(n *node) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(g.o.Timeout / 10) {
		m := g.member(n)
		if m == nil {
			continue
		}
		if m.Role != quorum.Waiting {
			return fmt.Errorf("%s has joined by itself, and counts", n.addr)
		}
		if st := n.srv.Load().GroupStatus(); st.State == "learner" && m.Online && m.Index > 0 {
			return nil
		}
	}
	return fmt.Errorf("%s does not join by itself", n.addr)
}

// demote makes a node a learner, unless it leads. It must not lead until it is added again.
func (g *group) demote(n *node) error {
	is := func(role quorum.Role) bool {
		m := g.member(n)
		return m != nil && m.Role == role
	}
	if is(quorum.Witness) {
		return nil
	}
	if err := g.ask(func() bool { return is(quorum.Learner) || g.leader() == n }, "RAFT.ADD", n.addr, "LEARNER"); err != nil {
		return err
	}
	if !is(quorum.Learner) {
		return nil
	}
	time.Sleep(time.Duration(g.rnd.Int64N(int64(6 * g.o.Timeout))))
	if st := n.srv.Load().GroupStatus(); st.State == "leader" {
		return fmt.Errorf("%s is a learner, and leads", n.addr)
	}
	return g.ask(func() bool { return is(quorum.Voter) }, "RAFT.ADD", n.addr)
}

// ask repeats a request to the leader until done returns true. The leader may lose its role meanwhile, or refuse a change that
// leaves no majority online.
func (g *group) ask(done func() bool, args ...string) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(g.o.Timeout / 10) {
		if done() {
			return nil
		}
		l := g.leader()
		if l == nil {
			continue
		}
		if c := g.connect(slices.Index(g.nodes, l)); c != nil {
			c.Append(args...)
			if c.Flush() == nil {
				_, _ = c.Read(replyTimeout)
			}
			c.Close()
		}
	}
	return fmt.Errorf("%s is not done", strings.Join(args, " "))
}

var kinds = []string{"crash", "all crash", "cut off", "one way", "halves", "slow", "broken connections", "disk lost", "damage",
	"full disk", "replaced", "transfer", "learner"}

// faults makes the faults, one after the other.
func (g *group) faults(count map[string]int) error {
	pause := func(most time.Duration) { time.Sleep(time.Duration(g.rnd.Int64N(int64(most)))) }
	for range g.o.Faults {
		pause(2 * g.o.Timeout)
		nodes := g.members()
		n := nodes[g.rnd.IntN(len(nodes))]
		if g.rnd.IntN(2) == 0 {
			if l := g.leader(); l != nil {
				n = l
			}
		}
		what := kinds[g.rnd.IntN(len(kinds))]
		count[what]++
		g.o.Log.Info("fault", "what", what, "node", n.addr)
		switch what {
		case "crash":
			if err := g.crash(n); err != nil {
				return err
			}
		case "all crash":
			for _, n := range nodes {
				if err := g.crash(n); err != nil {
					return err
				}
			}
		case "cut off":
			for _, p := range g.nodes {
				g.net.cut(n.addr, p.addr)
				g.net.cut(p.addr, n.addr)
			}
		case "one way":
			for _, p := range g.nodes {
				if g.rnd.IntN(2) == 0 {
					g.net.cut(n.addr, p.addr)
				} else {
					g.net.cut(p.addr, n.addr)
				}
			}
		case "slow":
			g.net.delay(n.addr, time.Duration(1+g.rnd.Int64N(int64(g.o.Timeout))))
		case "broken connections":
			g.net.reset()
		case "full disk":
			if err := g.fill(n); err != nil {
				return err
			}
		case "transfer":
			if c := g.connect(slices.Index(g.nodes, n)); c != nil { // which asks the leader
				c.Append("RAFT.TRANSFER")
				if c.Flush() == nil {
					_, _ = c.Read(replyTimeout)
				}
				c.Close()
			}
		case "disk lost", "damage", "replaced", "learner":
			// Only a minority may lose its data, or its votes.
			err := g.awaitWhole()
			if g.o.Witness && err == nil {
				// The witness may be receiving entries that a voter, which was away, does not have yet: if the leader's disk were
				// lost now, these two would be lost at once.
				time.Sleep(g.o.Timeout)
				err = g.awaitWhole()
			}
			switch {
			case err != nil:
			case what == "damage":
				var found bool
				if found, err = g.damage(n); found {
					count["damage found"]++
				}
			case what == "replaced":
				err = g.replace(n)
			case what == "learner":
				err = g.demote(n)
			default:
				err = g.loseDisk(n)
			}
			if err != nil {
				return fmt.Errorf("%q of %s: %w", what, n.addr, err)
			}
		case "halves":
			for _, p := range g.nodes {
				for _, q := range g.nodes {
					if p.addr < q.addr && g.rnd.IntN(2) == 0 {
						g.net.cut(p.addr, q.addr)
						g.net.cut(q.addr, p.addr)
					}
				}
			}
		}
		pause(6 * g.o.Timeout)
		g.net.heal()
		if what == "disk lost" || what == "damage" || what == "replaced" || what == "learner" {
			if err := g.awaitWhole(); err != nil {
				return fmt.Errorf("after %q of %s: %w", what, n.addr, err)
			}
		}
	}
	return nil
}

// leader returns the node that considers itself the leader, nil if none does.
func (g *group) leader() *node {
	for _, n := range g.nodes {
		if srv := n.srv.Load(); srv != nil && srv.GroupStatus().State == "leader" {
			return n
		}
	}
	return nil
}

var errNotWhole = errors.New("the group does not become whole")

// awaitWhole waits until a node leads and all nodes count for majorities and know that they do: Raft's library gives no
// vote to a node that it does not yet know to count.
func (g *group) awaitWhole() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		l := g.leader()
		if l == nil {
			continue
		}
		st := l.srv.Load().GroupStatus()
		nodes := g.members()
		whole := len(st.Members) == len(nodes)
		for _, m := range st.Members {
			whole = whole && m.Role.Votes() && m.Online
		}
		for _, n := range nodes {
			srv := n.srv.Load()
			whole = whole && srv != nil && srv.GroupStatus().Applied >= st.Committed
		}
		if whole {
			return nil
		}
	}
	return errNotWhole
}

const (
	// replyTimeout is how long a client waits for a reply.
	replyTimeout = 2 * time.Second
	// thinking is the longest rest of a client before its next request: time passes only when every goroutine waits for
	// it.
	thinking = 10 * time.Millisecond
)

// client reads and writes until stop is closed. Every other client asks a Sentinel port which node leads, and then believes
// it until its connection ends or it gets an error, as many clients do. The others try all nodes in turn.
func (g *group) client(id int, stop chan struct{}) {
	rnd := rand.New(rand.NewPCG(g.o.Seed, uint64(id)+2))
	var c *transcript.Conn
	at, find, do := rnd.IntN(len(g.nodes)), g.connect, g.doAtMaster
	if id%2 == 1 {
		find, do = g.connectByName, g.do
	}
	for n := 0; ; n++ {
		select {
		case <-stop:
			if c != nil {
				c.Close()
			}
			return
		default:
		}
		if c == nil {
			at = (at + 1) % len(g.nodes)
			if c = find(at); c == nil {
				time.Sleep(time.Millisecond)
				continue
			}
		}
		in := input{key: rnd.IntN(len(operations) * g.o.Keys), value: strconv.Itoa(id) + "-" + strconv.Itoa(n)}
		ops := operations[in.key/g.o.Keys]
		in.op = ops[rnd.IntN(len(ops))]
		time.Sleep(time.Duration(rnd.Int64N(int64(thinking))))
		if !do(c, id, in) {
			c.Close()
			c = nil
		}
	}
}

// connect connects to a node; it returns nil if that is down.
func (g *group) connect(node int) *transcript.Conn { return g.dial(node, clientsOf) }

// connectByName connects to the node that a node's Sentinel port names, nil if it names none.
func (g *group) connectByName(at int) *transcript.Conn {
	port := g.dial(at, sentinelOf)
	if port == nil {
		return nil
	}
	defer port.Close()
	named, err := port.Do(replyTimeout, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")
	if err != nil || len(named.Elems) != 2 {
		return nil
	}
	addr := net.JoinHostPort(named.Elems[0].Text, named.Elems[1].Text)
	i := slices.IndexFunc(g.nodes, func(n *node) bool { return n.addr == addr })
	if i < 0 {
		return nil
	}
	return g.connect(i)
}

func (g *group) dial(node int, port func(addr string) string) *transcript.Conn {
	if g.nodes[node].srv.Load() == nil {
		return nil
	}
	nc, err := g.net.dialer("client")(port(g.nodes[node].addr), replyTimeout)
	if err != nil {
		return nil
	}
	return transcript.NewConn(nc)
}

// operations are the operations on each kind of key: on strings, on pairs of them, on hashes read through an index, and
// on lists.
var operations = [4][]int{{opRead, opWrite, opAppend}, {opRead, opWrite}, {opRead, opWrite}, {opPush, opPop}}

// readable is the number of kinds, the first ones, that can be read.
const readable = 3

// index finds a hash by its number, and returns its value.
const index = "hashes"

// createIndex creates the index.
func (g *group) createIndex() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for i := range g.nodes {
			c := g.connect(i)
			if c == nil {
				continue
			}
			c.Append("FT._CREATEIFNX", index, "PREFIX", "1", "key:", "SCHEMA", "number", "TAG", "value", "TAG", "SORTABLE", "UNF")
			var reply transcript.Value
			err := c.Flush()
			if err == nil {
				reply, err = c.Read(replyTimeout)
			}
			c.Close()
			if err == nil && reply.Text == "OK" {
				return nil
			}
		}
	}
	return errNotWhole
}

// commands returns the commands of an operation. The reply to the last one is the operation's result.
func (g *group) commands(in input) [][]string {
	number := strconv.Itoa(in.key)
	key := "key:" + number
	pair, indexed := in.key/g.o.Keys == 1, in.key/g.o.Keys == 2
	switch in.op {
	case opWrite:
		if indexed {
			return [][]string{{"HSET", key, "number", number, "value", in.value}}
		}
		set := [][]string{{"SET", key, in.value}}
		if pair {
			set = append(set, []string{"SET", "other:" + key, in.value})
		}
		return set
	case opAppend:
		return [][]string{{"EVAL", "local v = redis.call('GET', KEYS[1]) or '' " +
			"v = string.sub(v .. ',' .. ARGV[1], -40) redis.call('SET', KEYS[1], v) return v", "1", key, in.value}}
	case opPush:
		return [][]string{{"RPUSH", key, in.value}}
	case opPop:
		return [][]string{{"LPOP", key}}
	}
	if pair { // nobody sees one written and not the other
		return [][]string{{"EVAL", "local a, b = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) " +
			"if a == b then return a end return 'torn'", "2", key, "other:" + key}}
	}
	if indexed {
		return [][]string{{"FT.AGGREGATE", index, "@number:{" + number + "}", "GROUPBY", "1", "@value"}}
	}
	return [][]string{{"GET", key}}
}

// doAtMaster is do for a client that does not know whether the node leads: the reply shows it.
func (g *group) doAtMaster(c *transcript.Conn, client int, in input) bool {
	return g.run(c, client, in, append([][]string{{"ROLE"}}, g.commands(in)...), func(replies []transcript.Value) bool {
		return replies[0].Elems[0].Text == "master"
	})
}

// do does an operation. It reports whether the connection can still be used.
func (g *group) do(c *transcript.Conn, client int, in input) bool {
	return g.run(c, client, in, g.commands(in), func([]transcript.Value) bool { return true })
}

// run executes the commands of an operation, in a transaction if there are several, and notes the result if ok accepts the
// replies. It reports whether it does.
func (g *group) run(c *transcript.Conn, client int, in input, commands [][]string, ok func([]transcript.Value) bool) bool {
	op := porcupine.Operation{ClientId: client, Input: in, Call: int64(time.Since(g.began))}
	replies, err := g.send(c, commands)
	op.Return = int64(time.Since(g.began))
	switch {
	case err != nil:
		if in.op == opRead {
			return false // there is no reply
		}
		// It may still be executed later, or never.
		op.Output, op.Return = output{unknown: true}, 1<<62
		g.note(op, true)
		return false
	case len(replies) != len(commands) || !ok(replies): // refused as a whole
		return false
	}
	last := replies[len(commands)-1]
	if commands[len(commands)-1][0] == "FT.AGGREGATE" {
		last = valueOf(last)
	}
	op.Output = output{value: last.Text, absent: last.Null}
	g.note(op, false)
	return true
}

// send sends commands, in a transaction if there are several, and returns their replies; none if they were refused.
func (g *group) send(c *transcript.Conn, commands [][]string) ([]transcript.Value, error) {
	sent := commands
	if len(commands) > 1 {
		sent = append(append([][]string{{"MULTI"}}, commands...), []string{"EXEC"})
	}
	for _, words := range sent {
		c.Append(words...)
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	var last transcript.Value
	for range sent {
		var err error
		if last, err = c.Read(replyTimeout); err != nil {
			return nil, err
		}
		if last.Kind == transcript.Closed {
			return nil, net.ErrClosed
		}
	}
	switch {
	case last.Kind == transcript.Error:
		return nil, nil
	case len(commands) == 1:
		return []transcript.Value{last}, nil
	}
	return last.Elems, nil
}

// valueOf returns the value in the found rows, of which there is at most one.
func valueOf(rows transcript.Value) transcript.Value {
	switch len(rows.Elems) {
	case 1:
		return transcript.Value{Null: true}
	case 2:
		return rows.Elems[1].Elems[1]
	}
	return transcript.Value{Text: rows.String()} // a value that nobody has written
}

func (g *group) note(op porcupine.Operation, unknown bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.history = append(g.history, op)
	if unknown {
		g.unknown++
	}
}

// readAll reads every key, so that losing anything acknowledged is noticed in the end.
func (g *group) readAll() error {
	for key := range readable * g.o.Keys {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return errNotWhole
			}
			done := false
			for i := range g.nodes {
				if c := g.connect(i); c != nil {
					done = done || g.doAtMaster(c, g.o.Clients, input{key: key, op: opRead})
					c.Close()
				}
			}
			if done {
				break
			}
		}
	}
	return nil
}
