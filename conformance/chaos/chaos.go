// Package chaos runs the servers of a group in one process, on disks in memory that lose what was not synced and over a
// network in memory that can be cut, while clients read and write, and holds what the clients saw against what one
// register for each key could have done (linearizability, github.com/anishathalye/porcupine).
package chaos

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/internal/crashfs"
	"github.com/atomredis/atomredis/internal/transcript"
	"github.com/atomredis/atomredis/server"
)

// Options say what a run does.
type Options struct {
	Seed    uint64
	Nodes   int
	Clients int
	Keys    int
	// Faults is how many faults there are, Timeout raft-timeout.
	Faults  int
	Timeout time.Duration
	// Settings are further directives of all servers, name=value.
	Settings []string
	Log      *slog.Logger
}

// Report is what a run did.
type Report struct {
	Operations, Acknowledged, Unknown int
	Faults                            map[string]int
	// Linearizable is what the check found.
	Linearizable porcupine.CheckResult
}

type group struct {
	o     Options
	rnd   *rand.Rand
	net   *network
	nodes []*node
	began time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
}

type node struct {
	addr   string
	fs     *crashfs.FS
	srv    *server.Server
	client atomic.Pointer[string] // where clients reach it
}

// Run runs a group and its clients.
func Run(o Options) (Report, error) {
	g := &group{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 1)), net: newNetwork(), began: time.Now()}
	for i := range o.Nodes {
		g.nodes = append(g.nodes, &node{addr: fmt.Sprintf("node%d:1", i), fs: crashfs.New()})
	}
	for _, n := range g.nodes {
		if err := g.start(n); err != nil {
			return Report{}, err
		}
	}
	defer func() {
		for _, n := range g.nodes {
			g.net.heal()
			n.srv.Abandon()
		}
	}()
	if err := g.awaitWhole(); err != nil {
		return Report{}, err
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range o.Clients {
		clients.Go(func() { g.client(i, stop) })
	}
	r := Report{Faults: map[string]int{}}
	err := g.faults(r.Faults)
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
	r.Operations, r.Unknown = len(g.history), g.unknown
	r.Acknowledged = r.Operations - r.Unknown
	r.Linearizable = porcupine.CheckOperationsTimeout(registers, g.history, time.Minute)
	return r, nil
}

// start starts a node on its disk.
func (g *group) start(n *node) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var peers []string
	for _, p := range g.nodes {
		peers = append(peers, p.addr)
	}
	conf := config.NewConfig()
	for _, pair := range append([]string{"port=0", "dir=/db", "save=", "appendonly=yes", "checkpoint-size=1mb",
		"raft-addr=" + n.addr, "raft-peers=" + strings.Join(peers, " "),
		"raft-timeout=" + strconv.FormatInt(g.o.Timeout.Milliseconds(), 10)}, g.o.Settings...) {
		name, value, _ := strings.Cut(pair, "=")
		if err := conf.Set(name, value, false); err != nil {
			return fmt.Errorf("%s: %w", pair, err)
		}
	}
	srv, err := server.New(conf, g.o.Log.With("node", n.addr), server.Options{FS: n.fs, Goroutines: true,
		Listeners: []net.Listener{l},
		Group:     server.GroupNetwork{Listener: g.net.listen(n.addr), Dial: g.net.dialer(n.addr)}})
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.addr, err)
	}
	n.srv = srv
	at := l.Addr().String()
	n.client.Store(&at)
	return nil
}

// crash ends a node as a loss of power would, and starts it on what its disk has.
func (g *group) crash(n *node) error {
	g.net.isolate(n.addr) // first: what it acknowledges now must be on disks
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: g.rnd.IntN(2) * g.rnd.IntN(101), RNG: g.rnd}
	n.client.Store(nil)
	clone := n.fs.CrashClone(cfg)
	n.srv.Abandon()
	time.Sleep(time.Duration(g.rnd.Int64N(int64(3 * g.o.Timeout))))
	n.fs = &crashfs.FS{MemFS: clone}
	return g.start(n)
}

// faults does what can go wrong, one after the other.
func (g *group) faults(count map[string]int) error {
	pause := func(most time.Duration) { time.Sleep(time.Duration(g.rnd.Int64N(int64(most)))) }
	for range g.o.Faults {
		pause(2 * g.o.Timeout)
		n := g.nodes[g.rnd.IntN(len(g.nodes))]
		if g.rnd.IntN(2) == 0 {
			if l := g.leader(); l != nil {
				n = l
			}
		}
		what := []string{"crash", "cut off", "one way", "halves", "all crash"}[g.rnd.IntN(5)]
		count[what]++
		g.o.Log.Info("fault", "what", what, "node", n.addr)
		switch what {
		case "crash":
			if err := g.crash(n); err != nil {
				return err
			}
		case "all crash":
			for _, n := range g.nodes {
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
	}
	return nil
}

// leader returns the node that says that it leads, nil if none does.
func (g *group) leader() *node {
	for _, n := range g.nodes {
		if n.srv.GroupStatus().State == "leader" {
			return n
		}
	}
	return nil
}

var errNotWhole = errors.New("the group does not become whole")

// awaitWhole waits until a node leads and all count for majorities.
func (g *group) awaitWhole() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		l := g.leader()
		if l == nil {
			continue
		}
		st := l.srv.GroupStatus()
		whole := len(st.Members) == len(g.nodes)
		for _, m := range st.Members {
			whole = whole && m.Voter && m.Online
		}
		if whole {
			return nil
		}
	}
	return errNotWhole
}

// patience is for how long a client waits for a reply.
const patience = 2 * time.Second

// client reads and writes until stop is closed.
func (g *group) client(id int, stop chan struct{}) {
	rnd := rand.New(rand.NewPCG(g.o.Seed, uint64(id)+2))
	var c *transcript.Conn
	at := rnd.IntN(len(g.nodes))
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
			if c = g.connect(at); c == nil {
				time.Sleep(time.Millisecond)
				continue
			}
		}
		in := input{key: rnd.IntN(g.o.Keys), op: opRead}
		switch rnd.IntN(3) {
		case 0:
			in.op, in.value = opWrite, strconv.Itoa(id)+"-"+strconv.Itoa(n)
		case 1:
			in.op, in.value = opAppend, strconv.Itoa(id)+"-"+strconv.Itoa(n)
		}
		if !g.do(c, id, in) {
			c.Close()
			c = nil
		}
	}
}

func (g *group) connect(node int) *transcript.Conn {
	at := g.nodes[node].client.Load()
	if at == nil {
		return nil
	}
	nc, err := transcript.Dial(*at)
	if err != nil {
		return nil
	}
	return transcript.NewConn(nc)
}

// do does an operation, in a transaction that tells whether a leader has done it. It reports whether the connection can
// be used further.
func (g *group) do(c *transcript.Conn, client int, in input) bool {
	key := "key:" + strconv.Itoa(in.key)
	words := []string{"GET", key}
	switch in.op {
	case opWrite:
		words = []string{"SET", key, in.value}
	case opAppend:
		words = []string{"EVAL", "local v = redis.call('GET', KEYS[1]) or '' " +
			"v = string.sub(v .. ',' .. ARGV[1], -40) redis.call('SET', KEYS[1], v) return v", "1", key, in.value}
	}
	op := porcupine.Operation{ClientId: client, Input: in, Call: int64(time.Since(g.began))}
	c.Append("MULTI")
	c.Append("ROLE")
	c.Append(words...)
	c.Append("EXEC")
	var reply transcript.Value
	err := c.Flush()
	for i := 0; i < 4 && err == nil; i++ {
		if reply, err = c.Read(patience); err == nil && reply.Kind == transcript.Closed {
			err = net.ErrClosed
		}
	}
	op.Return = int64(time.Since(g.began))
	switch {
	case err != nil:
		if in.op == opRead {
			return false // it has told nothing
		}
		// It may be done later, or never.
		op.Output, op.Return = output{unknown: true}, 1<<62
		g.note(op, true)
		return false
	case len(reply.Elems) != 2: // refused as a whole
		return false
	case reply.Elems[0].Elems[0].Text != "master":
		return false
	}
	op.Output = output{value: reply.Elems[1].Text, absent: reply.Elems[1].Null}
	g.note(op, false)
	return true
}

func (g *group) note(op porcupine.Operation, unknown bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.history = append(g.history, op)
	if unknown {
		g.unknown++
	}
}

// readAll reads every key, so that nothing acknowledged can be missing in the end.
func (g *group) readAll() error {
	for key := range g.o.Keys {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return errNotWhole
			}
			done := false
			for i := range g.nodes {
				if c := g.connect(i); c != nil && !done {
					done = g.do(c, g.o.Clients, input{key: key, op: opRead})
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
