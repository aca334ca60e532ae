// Package sentinel is the door for clients of Redis Sentinel, which ask it for the master and subscribe to changes. It
// reports what the server knows of its group, or of its master and replicas. docs/cluster.md describes it.
package sentinel

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	fillTables()
	door.Register(door.Kind{
		Name: "sentinel", PortDirective: "sentinel-port", TLS: true,
		New:        func(h door.Host) (door.Door, error) { return newDoor(h), nil },
		Commands:   []door.Command{{Name: "sentinel", Categories: []string{"admin", "slow", "dangerous"}, Subs: subcommandNames()}},
		Directives: []door.Directive{{Name: nameDirective, Default: "mymaster", Check: checkName}},
	})
}

// nameDirective is the directive with the name of the master for clients.
const nameDirective = "sentinel-master-name"

func checkName(value string) error {
	if value == "" || strings.ContainsAny(value, " ,\t\r\n") {
		return errors.New("argument must be a name, without spaces and commas")
	}
	return nil
}

// Limits of a peer.
const (
	maxRequest       = 64 << 10 // bytes
	maxSubscriptions = 1024
	maxUnread        = 1 << 20 // unread bytes of output
	writeTime        = 10 * time.Second
)

// period is the time between two checks of the topology.
const period = 100 * time.Millisecond

// sentinel is the door.
type sentinel struct {
	door.Peers
	looking           sync.Mutex // serializes look
	state             atomic.Pointer[state]
	stop              chan struct{}
	watching          sync.WaitGroup
	requests, publish atomic.Int64

	mu    sync.Mutex // protects peers; taken before peer.mu
	peers map[*peer]struct{}
}

func newDoor(h door.Host) *sentinel {
	d := &sentinel{stop: make(chan struct{}), peers: map[*peer]struct{}{}}
	d.state.Store(&state{})
	d.Peers = door.Peers{Host: h, Peer: d.peer, Refuse: func(conn net.Conn, why error) {
		var w resp.Writer
		w.Error("ERR " + why.Error())
		conn.Write(w.Buf)
	}}
	return d
}

// Serve implements door.Door.
func (d *sentinel) Serve(l net.Listener) error {
	d.look(time.Now())
	d.watching.Go(d.watch)
	return d.Peers.Serve(l)
}

// Close implements door.Door.
func (d *sentinel) Close() error {
	close(d.stop)
	err := d.Peers.Close()
	d.watching.Wait()
	return err
}

// Info implements door.Door.
func (d *sentinel) Info(add func(field, value string)) {
	add("requests", strconv.FormatInt(d.requests.Load(), 10))
	add("events", strconv.FormatInt(d.publish.Load(), 10))
}

// watch checks the topology periodically.
func (d *sentinel) watch() {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			d.look(now)
		case <-d.stop:
			return
		}
	}
}

// look updates the state from the topology, and publishes the changes. It returns the new state.
func (d *sentinel) look(now time.Time) *state {
	d.looking.Lock()
	defer d.looking.Unlock()
	old := d.state.Load()
	next := old.next(d.Host.Topology(), now)
	d.state.Store(next)
	d.tell(func(host string) []event { return next.events(old, d.name(), host) })
	return next
}

// tell publishes events. Each peer gets the events for the host at which it has reached the door.
func (d *sentinel) tell(events func(host string) []event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.publish.Add(int64(len(events(""))))
	for p := range d.peers {
		for _, e := range events(p.host) {
			p.deliver(e)
		}
	}
}

func (d *sentinel) name() string { return d.Host.Setting(nameDirective) }

// event is a message to subscribers.
type event struct{ channel, payload string }

// peer is a peer with its connection.
type peer struct {
	d    *sentinel
	conn *door.Conn
	host string // the host at which it has reached the door

	mu       sync.Mutex // protects what follows
	w        resp.Writer
	channels map[string]struct{}
	patterns map[string]struct{}
	ended    bool
	wake     chan struct{}
}

// peer serves a peer.
func (d *sentinel) peer(c *door.Conn) {
	p := &peer{d: d, conn: c, wake: make(chan struct{}, 1), channels: map[string]struct{}{}, patterns: map[string]struct{}{}}
	p.w.Proto = 2
	p.host, _, _ = net.SplitHostPort(c.LocalAddr().String())
	d.mu.Lock()
	d.peers[p] = struct{}{}
	d.mu.Unlock()
	written := make(chan struct{})
	c.Go(func() {
		defer close(written)
		p.write()
	})
	p.read()
	d.mu.Lock()
	delete(d.peers, p)
	d.mu.Unlock()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.signal()
	<-written
}

// read executes the peer's commands until it stops sending.
func (p *peer) read() {
	parser := resp.Parser{MaxBulk: maxRequest}
	buf, begin := make([]byte, 0, 4096), 0
	var args [][]byte
	for {
		var n int
		var err error
		if args, n, err = parser.Next(buf[begin:], args); err != nil {
			p.reply(func(w *resp.Writer) { w.Error("ERR " + err.Error()) })
			return
		}
		if n == 0 {
			buf, begin = append(buf[:0], buf[begin:]...), 0
			if len(buf) >= maxRequest {
				return
			}
			if len(buf) == cap(buf) {
				buf = append(make([]byte, 0, 2*cap(buf)), buf...)
			}
			got, err := p.conn.Read(buf[len(buf):cap(buf)])
			if err != nil {
				return
			}
			buf = buf[:len(buf)+got]
			continue
		}
		begin += n
		if len(args) == 0 {
			continue
		}
		p.d.requests.Add(1)
		p.conn.Requested()
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = string(a)
		}
		if !p.execute(words) {
			return
		}
	}
}

// write sends the peer's output until the connection ends.
func (p *peer) write() {
	defer p.conn.Close()
	for {
		select {
		case <-p.wake:
		case <-p.conn.Context().Done():
			return
		}
		p.mu.Lock()
		out, ended := p.w.Buf, p.ended
		p.w.Buf = nil
		p.mu.Unlock()
		if len(out) > 0 {
			p.conn.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := p.conn.Write(out); err != nil {
				return
			}
		}
		if ended {
			return
		}
	}
}

func (p *peer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// reply appends to the peer's output. A peer that does not read is disconnected.
func (p *peer) reply(write func(w *resp.Writer)) {
	p.mu.Lock()
	write(&p.w)
	slow := len(p.w.Buf) > maxUnread || len(p.w.Buf) > door.Stranger && !p.conn.Client.Admitted()
	p.mu.Unlock()
	if slow {
		p.conn.Close()
	}
	p.signal()
}

// deliver sends an event to the peer, once for each matching subscription.
func (p *peer) deliver(e event) {
	p.mu.Lock()
	var patterns []string
	for pattern := range p.patterns {
		if glob.Match([]byte(pattern), []byte(e.channel), false) {
			patterns = append(patterns, pattern)
		}
	}
	_, subscribed := p.channels[e.channel]
	p.mu.Unlock()
	if !subscribed && len(patterns) == 0 {
		return
	}
	p.reply(func(w *resp.Writer) {
		push := func(words ...string) {
			w.Push(len(words))
			for _, word := range words {
				w.BulkString(word)
			}
		}
		if subscribed {
			push("message", e.channel, e.payload)
		}
		for _, pattern := range patterns {
			push("pmessage", pattern, e.channel, e.payload)
		}
	})
}
