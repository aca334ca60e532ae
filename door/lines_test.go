package door_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/resp"
)

// The door of these tests: a line is a command, its words separated by spaces, and so is its reply, as text. "AUTH
// user password" and "NAME name" are what they say; "EVENTS pattern" shows the messages that are published from then
// on.

func init() {
	door.Register(door.Kind{
		Name: "lines", Port: 7777, TLS: true, Events: "Kg$",
		New:        func(h door.Host) (door.Door, error) { return newLines(h) },
		Directives: []door.Directive{{Name: "lines-greeting", Default: "hello", Check: checkGreeting}},
	})
	door.Register(door.Kind{
		Name: "guarded-lines", Authenticates: true,
		New: func(h door.Host) (door.Door, error) { return newLines(h) },
	})
}

func checkGreeting(value string) error {
	if value == "" {
		return errors.New("a greeting has words")
	}
	return nil
}

// lines is the door.
type lines struct {
	host  door.Host
	stop  chan struct{}  // Serve returns when something comes
	wg    sync.WaitGroup // the goroutines of peers
	count atomic.Int64   // lines that were read

	mu     sync.Mutex // protects what follows
	peers  map[*linePeer]struct{}
	own    door.Client // from Serve on
	closed bool
}

// linePeer is who sends lines.
type linePeer struct {
	door   *lines
	conn   net.Conn
	client door.Client
	lines  chan string
}

func newLines(h door.Host) (*lines, error) {
	if h.Setting("lines-greeting") == "impossible" {
		return nil, errors.New("nobody can be greeted so")
	}
	return &lines{host: h, stop: make(chan struct{}, 1), peers: map[*linePeer]struct{}{}}, nil
}

// Serve implements door.Door.
func (d *lines) Serve(l net.Listener) error {
	if err := d.begin(); err != nil {
		return err
	}
	conns := make(chan net.Conn)
	go func() {
		defer close(conns)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns <- conn
		}
	}()
	for {
		select {
		case conn, ok := <-conns:
			if !ok {
				return nil
			}
			d.welcome(conn)
		case <-d.stop:
			l.Close()
			for conn := range conns {
				conn.Close()
			}
			return errors.New("a peer has stopped the door")
		}
	}
}

// begin makes the door's own client, unless the door is closed already.
func (d *lines) begin() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.own, err = d.host.OwnClient()
	}
	return err
}

// welcome begins to serve a peer.
func (d *lines) welcome(conn net.Conn) {
	client, err := d.host.Client(door.PeerOf(conn))
	if err != nil {
		fmt.Fprintf(conn, "-%v\n", err)
		conn.Close()
		return
	}
	p := &linePeer{d, conn, client, make(chan string)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		client.Close()
		conn.Close()
		return
	}
	d.peers[p] = struct{}{}
	d.wg.Go(p.read)
	d.wg.Go(p.execute)
	d.wg.Go(func() {
		<-p.client.Done()
		p.conn.Close()
	})
}

// Close implements door.Door.
func (d *lines) Close() error {
	d.mu.Lock()
	d.closed = true
	for p := range d.peers {
		p.client.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
	if d.own == (door.Client{}) {
		return nil // it has never served
	}
	defer d.own.Close()
	_, err := d.own.Do(context.Background(), "INCR", "doors closed")
	return err
}

// Info implements door.Door.
func (d *lines) Info(add func(field, value string)) {
	add("lines_read", strconv.FormatInt(d.count.Load(), 10))
}

// read passes lines on, and ends the client when the peer has gone, also in the middle of a command.
func (p *linePeer) read() {
	defer close(p.lines)
	defer p.client.Close()
	fmt.Fprintln(p.conn, p.door.host.Setting("lines-greeting"))
	in := bufio.NewScanner(p.conn)
	for in.Scan() {
		p.door.count.Add(1)
		select {
		case p.lines <- in.Text():
		case <-p.client.Done():
			return
		}
	}
}

// execute executes lines.
func (p *linePeer) execute() {
	defer func() {
		p.door.mu.Lock()
		delete(p.door.peers, p)
		p.door.mu.Unlock()
	}()
	for line := range p.lines {
		if _, err := fmt.Fprintln(p.conn, p.answer(strings.Fields(line))); err != nil {
			p.client.Close()
		}
	}
}

// answer executes one line and returns what to send.
func (p *linePeer) answer(words []string) string {
	ctx := context.Background() // a peer that goes closes the client
	var r resp.Reply
	var err error
	switch {
	case len(words) == 0:
		return ""
	case words[0] == "STOP":
		p.door.stop <- struct{}{}
	case words[0] == "NAME" && len(words) == 2:
		err = p.client.SetName(ctx, words[1])
	case words[0] == "AUTH" && len(words) == 3:
		err = p.client.Auth(ctx, words[1], words[2])
	case words[0] == "EVENTS" && len(words) == 2:
		return p.events(ctx, words[1])
	default:
		r, err = p.client.Do(ctx, words)
		if err == nil {
			return text(r)
		}
	}
	if err != nil {
		return "-" + err.Error()
	}
	return "OK"
}

// events has messages sent to the peer.
func (p *linePeer) events(ctx context.Context, pattern string) string {
	s, err := p.client.PSubscribe(ctx, pattern)
	if err != nil {
		return "-" + err.Error()
	}
	p.door.wg.Go(func() {
		<-p.client.Done()
		s.Close()
	})
	p.door.wg.Go(func() {
		for {
			m, err := s.Next(ctx)
			if err != nil {
				return
			}
			fmt.Fprintln(p.conn, m.Channel, m.Payload)
		}
	})
	return "OK"
}
